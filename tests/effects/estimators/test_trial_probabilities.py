"""A trial of public probabilities: exact without noise, narrower than cells, right whatever its centres."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.effects.cells.corner_counts import GRID
from dpcausal.effects.estimators.trial import NO_GAIN
from dpcausal.effects.estimators.trial_design import (
    STEPS,
    WRONG_PROBABILITIES,
    centred_score,
    centred_score_sensitivity,
)
from dpcausal.errors import InfeasibleError, ParameterError
from dpcausal.methods import RandomizedTrial

SCHEMA = dpc.Schema({
    "arm": dpc.Levels(["c", "d", "e"]), "site": dpc.Levels(["n", "s"]), "y": dpc.Bounded(0, 60),
    "ill": dpc.Levels([0, 1]),
})  # fmt: skip
CHANCES = [[0.6, 0.4], [0.2, 0.2], [0.2, 0.4]]
"""Of each arm, by site."""


def trial(seed: int, n: int = 3_000) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    site = rng.integers(0, 2, n)
    arm = (rng.random(n) >= np.cumsum(CHANCES, axis=0)[:-1, site]).sum(axis=0)
    y = np.clip(rng.gamma(1.5, 4, n) + 3 * site + 2 * (arm == 2), 0, 60)
    ill = (rng.random(n) < 0.3 + 0.1 * (arm == 2)).astype(int)
    return {"arm": np.array(["c", "d", "e"])[arm], "site": np.array(["n", "s"])[site], "y": y, "ill": ill}


def ask(columns: Any, loss: Any, chances: Any = CHANCES, **more: Any) -> dpc.Effect:
    ledger = dpc.Ledger.without_privacy() if isinstance(loss, dpc.NoPrivacy) else dpc.Ledger.in_memory(loss)
    asked: Any = {"treatment": "arm", "outcome": "y", "adjust": ["site"], "treated": "e", "control": "c",
                  "method": RandomizedTrial(probabilities=chances)}  # fmt: skip
    return dpc.effect(dpc.Table(columns, SCHEMA, ledger), **asked | more, loss=loss)


@pytest.mark.parametrize("outcome", ["y", "ill"])
def test_without_noise_it_is_the_difference_at_one_mix_of_all_rows_and_its_textbook_error(outcome: str) -> None:
    columns = trial(1, 30_000)
    found = ask(columns, dpc.NoPrivacy(), outcome=outcome)
    y, arm, site = columns[outcome], columns["arm"], columns["site"]
    mix = np.array([(site == z).mean() for z in "ns"])
    parts = [[y[(arm == a) & (site == z)] for z in "ns"] for a in "ce"]
    gaps = np.array([parts[1][z].mean() - parts[0][z].mean() for z in (0, 1)])
    assert found.estimate == pytest.approx(mix @ gaps, abs=1e-4)
    scores = sum(part[z].var() * mix[z] / CHANCES[a][z] for a, row in ((0, parts[0]), (2, parts[1]))
                 for z, part in enumerate([row, row]))  # fmt: skip
    scores += mix @ (gaps - mix @ gaps) ** 2
    assert found.standard_error == pytest.approx((scores / len(y)) ** 0.5, rel=0.03) and found.interval is not None


def test_at_a_small_loss_it_is_nearer_than_cells_and_its_intervals_hold() -> None:
    held, off, others, wide = [], [], [], []
    for seed in range(30):
        columns = trial(seed)
        with dpc.simulated_noise(seed):
            found = ask(columns, dpc.PureDP(0.5))
            cells = ask(columns, dpc.PureDP(0.5), method="stratified")
        assert found.interval is not None and found.estimate is not None and found.noise_error is not None
        held.append(found.interval[0] <= 2 <= found.interval[1])
        off.append(found.estimate - ask(columns, dpc.NoPrivacy()).estimate)  # type: ignore[operator]
        others.append(cells.noise_error)
        wide.append(found.noise_error)
    assert np.mean(held) > 0.93 - 3 * (0.0651 / 30) ** 0.5
    assert np.std(off) == pytest.approx(float(np.median(wide)), rel=0.5)
    assert np.median(wide) < 0.7 * np.median(others)


def test_wrong_probabilities_withhold_the_interval_and_move_the_answer_little() -> None:
    columns = trial(3, 30_000)
    with dpc.simulated_noise(1):
        right = ask(columns, dpc.PureDP(1))
        found = ask(columns, dpc.PureDP(1), [0.4, 0.2, 0.4])
    assert right.interval is not None and found.interval is None
    assert found.interval_reason == WRONG_PROBABILITIES
    assert found.estimate == pytest.approx(2, abs=0.6)


def test_rows_without_an_outcome_are_left_out_and_do_not_pull_the_answer() -> None:
    columns = trial(5, 20_000)
    columns["y"] = np.where(np.arange(20_000) % 5 < 2, np.nan, columns["y"])
    table = dpc.Table(columns, SCHEMA, dpc.Ledger.in_memory(dpc.PureDP(2)), missing="drop")
    with dpc.simulated_noise(2):
        found = dpc.effect(table, treatment="arm", outcome="y", adjust=["site"], treated="e", control="c",
                           loss=dpc.PureDP(2), method=RandomizedTrial(probabilities=CHANCES))  # fmt: skip
    assert found.interval is not None and found.interval[0] < 2 < found.interval[1]


def test_what_does_not_fit_is_refused_before_the_spend() -> None:
    columns = trial(4)
    for chances in (None, [0.5, 0.5], [0.2, 0.2, 0.2], [[0.6, 0.4], [0.2, "x"], [0.2, 0.4]], [0.5, np.nan, 0.5]):
        with pytest.raises(ParameterError) as error:
            ask(columns, dpc.PureDP(1), chances)
        assert error.value.rule == ("one of two" if chances is None else "shape")
    with pytest.raises(ParameterError) as error:
        ask(columns, dpc.PureDP(1), [0.5, 0.499, 0.001])
    assert (error.value.argument, error.value.rule) == ("probabilities", "minimum")
    with pytest.raises(ParameterError) as error:
        ask(columns, dpc.PureDP(1), estimand="att")
    assert error.value.argument == "estimand"
    with pytest.raises(InfeasibleError) as refused:
        ask(columns, dpc.PureDP(0.003))
    assert (refused.value.argument, refused.value.rule) == ("probabilities", "noise")


def test_it_says_where_stratified_is_predicted_to_be_as_accurate() -> None:
    columns = trial(6)
    for epsilon, told in ((0.2, False), (8, True)):
        with dpc.simulated_noise(1):
            found = ask(columns, dpc.PureDP(epsilon), [0.5, 0.25, 0.25], adjust=[])
        assert (NO_GAIN in found.guarantee.caveats) == told
    with pytest.raises(InfeasibleError) as refused:
        ask(columns, dpc.PureDP(8), [0.5, 0.25, 0.25], adjust=[], outcome="ill")
    assert refused.value.rule == "no gain"


@pytest.mark.proves("centred-score")
def test_the_ends_of_a_reach_attain_the_bound_and_parts_of_a_person_stay_within() -> None:
    bound = centred_score_sensitivity().bound
    for zero in (0.0, 0.3, 1 / STEPS, 1 - 1e-9, 1.0, 2.0, -1.0):
        low, high = (int(centred_score(np.array([u]), zero, np.array([GRID]))[0]) for u in (-9.0, 9.0))
        assert low <= 0 <= high and high - low == bound == GRID
        parts = np.array([GRID // 3, GRID // 3, GRID - 2 * (GRID // 3)])
        for u, end in ((-9.0, low), (9.0, high)):
            assert abs(int(centred_score(np.full(3, u), zero, parts)[0])) <= abs(end)
    assert int(centred_score(np.array([np.nan, 1.0]), 0.5, np.array([GRID, 0]))[0]) == 0
