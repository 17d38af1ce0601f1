"""The law of x in words: the same law, and the same answer, as by a function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.privacy.noise import generator_from_seed

coins = generator_from_seed(3)
N = 1500
Z = coins.uniform(-1, 1, N)
LEVELS = coins.integers(0, 2, N)
X = np.clip(0.1 + 0.5 * Z - 0.2 * LEVELS + 0.4 * coins.normal(size=N), -2, 2)
COLUMNS = {"z": Z, "l": LEVELS, "x": X, "y": Z + coins.normal(size=N), "t": (coins.random(N) < 0.4).astype(int)}
SCHEMA = dpc.Schema({
    "z": dpc.Bounded(-1, 1), "x": dpc.Bounded(-2, 2), "y": dpc.Bounded(-4, 4), "l": dpc.Levels([0, 1]),
    "t": dpc.Levels([0, 1]),
})  # fmt: skip


@pytest.mark.parametrize(("x", "given", "words", "law"), [
    ("x", ["z", "l"], {"mean": {"l": -0.2, "intercept": 0.1, "z": 0.5}, "sd": 0.4},
     dpc.ModelX(mean=lambda z: 0.1 + 0.5 * z[:, 0] - 0.2 * z[:, 1], sd=0.4)),
    ("x", [], {"mean": 0, "sd": 0.5}, dpc.ModelX(mean=lambda z: np.zeros(len(z)), sd=0.5)),
    ("t", ["l"], {"mean": 0.4}, dpc.ModelX(mean=lambda z: np.full(len(z), 0.4))),
    ("t", ["l"], {"table": [[0.6, 0.4], [0.6, 0.4]]}, dpc.ModelX(table=[[0.6, 0.4], [0.6, 0.4]])),
])  # fmt: skip
@pytest.mark.parametrize("kind", [dpc.methods.Crt, dpc.methods.CrtDecision])
def test_a_stated_law_answers_as_the_function_does(
    x: str, given: list[str], words: Any, law: dpc.ModelX, kind: Any
) -> None:
    answers = []
    for model in (words, law):
        with dpc.simulated_noise(1):
            missing = "drop" if kind.supports_missing else "impute"
            table = dpc.Table(COLUMNS, SCHEMA, dpc.Ledger.in_memory(dpc.PureDP(2)), missing=missing)
            answers.append(dpc.ci_test(table, x, "y", given=given, loss=dpc.PureDP(1), method=kind(model_x=model)))
    assert answers[0].statistic == answers[1].statistic and answers[0].decision == answers[1].decision
