"""A trial of public sizes: exact without noise, less noise than cells, right intervals, and wrong sizes show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.effects.cells.corner_counts import GRID
from dpcausal.effects.estimators.trial_design import WRONG_SIZES, assigned_sum, assigned_sum_sensitivity
from dpcausal.errors import InfeasibleError, ParameterError
from dpcausal.methods import RandomizedTrial

SCHEMA = dpc.Schema({
    "arm": dpc.Levels(["c", "d", "e"]), "site": dpc.Levels(["n", "s"]), "y": dpc.Bounded(0, 60),
    "ill": dpc.Levels([0, 1]),
})  # fmt: skip
SIZES = [[60, 90], [80, 40], [100, 130]]


def trial(seed: int, times: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    arm, site = (np.repeat(axis.ravel(), times * np.ravel(SIZES)) for axis in np.indices((3, 2)))
    y = np.clip(rng.gamma(1.5, 4, len(arm)) + 3 * site + 2 * (arm == 2), 0, 60)
    ill = (rng.random(len(arm)) < 0.3 + 0.1 * (arm == 2)).astype(int)
    return {"arm": np.array(["c", "d", "e"])[arm], "site": np.array(["n", "s"])[site], "y": y, "ill": ill}


def ask(columns: Any, loss: Any, sizes: Any = SIZES, **more: Any) -> dpc.Effect:
    ledger = dpc.Ledger.without_privacy() if isinstance(loss, dpc.NoPrivacy) else dpc.Ledger.in_memory(loss)
    asked: Any = {"treatment": "arm", "outcome": "y", "adjust": ["site"], "treated": "e", "control": "c"} | more
    return dpc.effect(dpc.Table(columns, SCHEMA, ledger), **asked, loss=loss, method=RandomizedTrial(sizes=sizes))


@pytest.mark.parametrize("estimand", ["ate", "att"])
@pytest.mark.parametrize("outcome", ["y", "ill"])
def test_without_noise_it_is_the_stratified_difference_and_its_textbook_error(estimand: str, outcome: str) -> None:
    columns, sizes = trial(1, times=4), (4 * np.array(SIZES)).tolist()
    found = ask(columns, dpc.NoPrivacy(), sizes, estimand=estimand, outcome=outcome)
    y, arm, site = columns[outcome], columns["arm"], columns["site"]
    parts = [[y[(arm == a) & (site == z)] for z in "ns"] for a in "ce"]
    weights = np.array([len(parts[1][z]) + (len(parts[0][z]) if estimand == "ate" else 0) for z in (0, 1)], float)
    weights /= weights.sum()
    assert found.estimate == pytest.approx(
        sum(w * (parts[1][z].mean() - parts[0][z].mean()) for z, w in enumerate(weights)), abs=1e-6
    )
    variance = sum(w**2 * part[z].var(ddof=1) / len(part[z]) for z, w in enumerate(weights) for part in parts)
    assert found.standard_error == pytest.approx(variance**0.5, rel=1e-5)
    assert found.interval is not None and found.noise_error == pytest.approx(0, abs=1e-9)


def test_the_noise_is_less_than_that_of_cells_and_intervals_hold() -> None:
    held, off, others = [], [], []
    for seed in range(60):
        columns = trial(seed)
        with dpc.simulated_noise(seed):
            found = ask(columns, dpc.PureDP(1))
            ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
            cells = dpc.effect(dpc.Table(columns, SCHEMA, ledger), treatment="arm", outcome="y", adjust=["site"],
                               treated="e", control="c", loss=dpc.PureDP(1), method="stratified")  # fmt: skip
        assert found.interval is not None and found.estimate is not None and cells.noise_error is not None
        held.append(found.interval[0] <= 2 <= found.interval[1])
        off.append(found.estimate - ask(columns, dpc.NoPrivacy()).estimate)  # type: ignore[operator]
        others.append(cells.noise_error)
    assert np.mean(held) > 0.93 - 3 * (0.0475 / 60) ** 0.5
    assert np.std(off) == pytest.approx(found.noise_error, rel=0.45)
    assert found.noise_error is not None and found.noise_error < 0.6 * np.median(others)


def test_wrong_sizes_withhold_the_interval() -> None:
    columns = trial(3, times=20)
    wrong = [[20 * size for size in row] for row in SIZES[::-1]]
    with dpc.simulated_noise(1):
        right = ask(columns, dpc.PureDP(1), sizes=[[20 * size for size in row] for row in SIZES])
        found = ask(columns, dpc.PureDP(1), sizes=wrong)
    assert right.interval is not None and right.by_group == ()
    assert found.interval is None and found.interval_reason == WRONG_SIZES


def test_what_does_not_fit_is_refused_before_the_spend() -> None:
    columns, ledger = trial(4), dpc.Ledger.in_memory(dpc.PureDP(1))
    table = dpc.Table(columns, SCHEMA, ledger)
    asked: Any = {"treatment": "arm", "outcome": "y", "adjust": ["site"], "treated": "e", "control": "c"}
    for sizes, rule in (
        (None, "one of two"), ([1, 2], "shape"), (SIZES[:2], "shape"), ([[60, "x"], [80, 40], [100, 130]], "shape"),
        ([[60, 90], [80, 40], [100, 131]], "sum"), ([[1, 149], [80, 40], [100, 130]], "minimum"),
    ):  # fmt: skip
        with pytest.raises(ParameterError) as error:
            dpc.effect(table, **asked, loss=dpc.PureDP(1), method=RandomizedTrial(sizes=sizes))
        assert (error.value.argument, error.value.rule) == ("sizes", rule)
    with pytest.raises(ParameterError) as error:
        both = RandomizedTrial(sizes=SIZES, probabilities=[0.3, 0.3, 0.4])
        dpc.effect(table, **asked, loss=dpc.PureDP(1), method=both)
    assert error.value.rule == "one of two"
    with pytest.raises(InfeasibleError) as refused:
        dpc.effect(table, **asked, loss=dpc.PureDP(0.01), method=RandomizedTrial(sizes=SIZES))
    assert (refused.value.argument, refused.value.rule) == ("sizes", "noise")
    assert ledger.remaining.epsilon == 1


def test_the_released_cells_are_asked_again_free() -> None:
    found = ask(trial(5, times=20), dpc.PureDP(1), sizes=(20 * np.array(SIZES)).tolist())
    assert isinstance(found.release, dpc.Release)
    again: Any = dpc.Release.from_json(found.release.to_json())
    other = again.effect(treatment="arm", outcome="y", treated="d", control="c")
    assert other.interval is not None and other.interval[0] < 0.5 < other.interval[1] + 2


@pytest.mark.proves("assigned-sum")
def test_two_ends_attain_the_bound_and_a_row_that_is_left_out_adds_nothing() -> None:
    ends = [int(assigned_sum(np.array([u]), np.array([1.0]), np.array([GRID]))[0]) for u in (-1.0, 0.0, 1.0, 9.0)]
    assert ends == [-GRID, -GRID, GRID, GRID] and ends[3] - ends[0] == assigned_sum_sensitivity().bound
    hostile = np.array([np.nan, np.inf, -np.inf, 1.0])
    assert abs(int(assigned_sum(hostile[:1], np.array([5.0]), np.array([GRID]))[0])) <= GRID
    assert int(assigned_sum(hostile, np.ones(4), np.array([GRID, GRID, GRID, 0]))[0]) == 0
