"""Plans of trials: arms as the design has them, n and ε sought, and widths as they are then found."""

import json
import math
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dpcausal as dpc
from dpcausal.cli import app
from dpcausal.errors import ParameterError
from dpcausal.methods import RandomizedTrial

SIZES: Any = [[60, 90], [80, 40], [100, 130]]
ONE, MANY = dpc.PureDP(1), 3_000


@pytest.mark.parametrize(("method", "words"), [
    (RandomizedTrial(sizes=SIZES), {"cells": 2, "treated": 2, "control": 0}),
    (RandomizedTrial(probabilities=[0.6, 0.4]), {"spread": 0.1}),
])  # fmt: skip
def test_n_and_epsilon_that_are_sought_give_back_what_they_were_sought_for(method: Any, words: Any) -> None:
    there = dpc.plan("effect", n=MANY, loss=ONE, method=method, **words)
    n = dpc.plan("effect", loss=ONE, accuracy=there.accuracy, method=method, **words)
    epsilon = dpc.plan("effect", n=MANY, accuracy=there.accuracy, delta=0.0, method=method, **words)
    assert abs(n.n / MANY - 1) < 0.05 and abs(epsilon.loss.epsilon - 1) < 0.12
    assert "treated:" not in there.summary()


def test_a_plan_is_within_a_tenth_of_the_half_widths_of_trials() -> None:
    schema = dpc.Schema({"arm": dpc.Levels(["c", "d", "e"]), "site": dpc.Levels(["n", "s"]), "y": dpc.Bounded(0, 10)})
    asked: Any = {"treatment": "arm", "outcome": "y", "adjust": ["site"], "treated": "e", "control": "d"}
    method = RandomizedTrial(sizes=SIZES)
    told = dpc.plan("effect", schema=schema, **asked, n=MANY, loss=ONE, spread=0.15, method=method)
    sizes = (MANY // 500 * np.array(SIZES)).tolist()
    wide = []
    for seed in range(100, 125):
        rng = np.random.default_rng(seed)
        arm, site = (np.repeat(axis.ravel(), np.ravel(sizes)) for axis in np.indices((3, 2)))
        y = np.clip(5 + 1.5 * rng.standard_t(6, MANY) / 1.5**0.5, 0, 10)
        frame = {"arm": np.array(["c", "d", "e"])[arm], "site": np.array(["n", "s"])[site], "y": y}
        with dpc.simulated_noise(seed):
            found = dpc.effect(dpc.Table(frame, schema, dpc.Ledger.in_memory(ONE)), **asked, loss=ONE,
                               method=RandomizedTrial(sizes=sizes))  # fmt: skip
        assert found.interval is not None
        wide.append((found.interval[1] - found.interval[0]) / 2)
    assert told.accuracy == pytest.approx(float(np.median(wide)), rel=0.1)


def test_a_design_that_does_not_fit_is_named() -> None:
    for method in (RandomizedTrial(), RandomizedTrial(sizes=[1, 2, 3]), RandomizedTrial(probabilities=[0.5, 0.2])):
        with pytest.raises(ParameterError) as error:
            dpc.plan("effect", n=MANY, loss=ONE, method=method, cells=2)
        assert error.value.rule in ("shape", "one of two")


def test_the_command_plans_a_trial_as_the_library_does() -> None:
    told = dpc.plan("effect", n=MANY, loss=ONE, method=RandomizedTrial(probabilities=[[0.8, 0.7], [0.2, 0.3]]), cells=2)
    words = ["plan", "effect", "--n", str(MANY), "--epsilon", "1", "--cells", "2", "--method", "trial", "--json"]
    found = json.loads(CliRunner().invoke(app, [*words, "--probabilities", ".8,.7;.2,.3"]).output)
    assert found["accuracy"] == told.accuracy and "trial(" in found["assumed"]["method"]
    assert CliRunner().invoke(app, words).exit_code == 2
    assert "--method trial" in CliRunner().invoke(app, [*words[:-3], "--probabilities", ".8,.2"]).output


@pytest.mark.parametrize("said", [False, True])
def test_a_plan_says_whether_there_is_an_interval_with_the_word_that_tails_are_short_and_without(said: bool) -> None:
    method = dpc.methods.Aipw(light_tails=said)
    few, many = (
        dpc.plan("effect", n=n, loss=dpc.ApproxDP(1, 1e-6), adjust=1, method=method) for n in (3_000, 12_000)
    )
    assert math.isinf(few.accuracy) is not said and math.isfinite(many.accuracy)
    other = "without light_tails=True" if said else "with light_tails=True"
    assert f"{other} {'no interval' if said else '±'}" in few.summary() and f"{other} ±" in many.summary()
