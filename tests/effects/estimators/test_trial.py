"""Trials of public sizes or probabilities: exact without noise, less noise than cells, and wrong designs show."""

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.effects.estimators import trial_design as design
from dpcausal.effects.estimators.trial import NO_GAIN
from dpcausal.methods import RandomizedTrial
from tests.effects.tables import EXACT, effect_of, table_of

SCHEMA: dict[str, Any] = {
    "a": dpc.Levels(["c", "d", "e"]),
    "site": dpc.Levels(["n", "s"]),
    "y": dpc.Bounded(0, 60),
    "ill": dpc.Levels([0, 1]),
}
SIZES = np.array([[60, 90], [80, 40], [100, 130]])
CHANCES = np.array([[0.6, 0.4], [0.2, 0.2], [0.2, 0.4]])
"""Of each arm, by site."""


def drawn(seed: int, n: int | None = None, times: int = 1) -> dict[str, Any]:
    """Return a trial of those sizes, so many times, or of n persons with those probabilities; the effect of e is 2."""
    rng = np.random.default_rng(seed)
    if n is None:
        arm, site = (np.repeat(axis.ravel(), times * np.ravel(SIZES)) for axis in np.indices((3, 2)))
    else:
        site = rng.integers(0, 2, n)
        arm = (rng.random(n) >= np.cumsum(CHANCES, axis=0)[:-1, site]).sum(axis=0)
    y = np.clip(rng.gamma(1.5, 4, len(arm)) + 3 * site + 2 * (arm == 2), 0, 60)
    ill = (rng.random(len(arm)) < 0.3 + 0.1 * (arm == 2)).astype(int)
    return {"a": np.array(["c", "d", "e"])[arm], "site": np.array(["n", "s"])[site], "y": y, "ill": ill}


def ask(columns: Any, loss: Any, method: Any = None, seed: int = 1, missing: str = "impute", **more: Any) -> Any:
    if not isinstance(method, str):
        given = {"sizes": SIZES} if method is None else method
        method = RandomizedTrial(**{name: np.asarray(one).tolist() for name, one in given.items()})
    question = {"adjust": ["site"], "treated": "e", "control": "c"} | more
    return effect_of(table_of(columns, SCHEMA, loss, missing=missing), loss, method, seed, **question)


@pytest.mark.parametrize("outcome", ["y", "ill"])
@pytest.mark.parametrize("estimand", ["ate", "att"])
def test_without_noise_of_known_sizes_it_is_the_stratified_difference(estimand: str, outcome: str) -> None:
    columns = drawn(1, times=4)
    result = ask(columns, EXACT, {"sizes": 4 * SIZES}, estimand=estimand, outcome=outcome)
    y, arm, site = columns[outcome], columns["a"], columns["site"]
    parts = [[y[(arm == a) & (site == z)] for z in "ns"] for a in "ce"]
    everybody = [(site == z).sum() for z in "ns"]
    weights = np.array([everybody[z] if estimand == "ate" else len(parts[1][z]) for z in (0, 1)], float)
    weights /= weights.sum()
    estimate = sum(w * (parts[1][z].mean() - parts[0][z].mean()) for z, w in enumerate(weights))
    variance = sum(w**2 * part[z].var(ddof=1) / len(part[z]) for z, w in enumerate(weights) for part in parts)
    assert result.estimate == pytest.approx(estimate, abs=1e-6) and result.interval is not None
    assert result.standard_error == pytest.approx(variance**0.5, rel=1e-5)
    assert result.noise_error == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("outcome", ["y", "ill"])
def test_without_noise_of_known_probabilities_it_is_the_difference_at_one_mix_of_all_rows(outcome: str) -> None:
    columns = drawn(1, 30_000)
    result = ask(columns, EXACT, {"probabilities": CHANCES}, outcome=outcome)
    y, arm, site = columns[outcome], columns["a"], columns["site"]
    mix = np.array([(site == z).mean() for z in "ns"])
    parts = [[y[(arm == a) & (site == z)] for z in "ns"] for a in "ce"]
    gaps = np.array([parts[1][z].mean() - parts[0][z].mean() for z in (0, 1)])
    assert result.estimate == pytest.approx(mix @ gaps, abs=1e-4)
    scores = sum(part[z].var() * mix[z] / CHANCES[a][z] for a, part in zip((0, 2), parts, strict=True) for z in (0, 1))
    scores += mix @ (gaps - mix @ gaps) ** 2
    assert result.standard_error == pytest.approx((scores / len(y)) ** 0.5, rel=0.03) and result.interval is not None


@pytest.mark.parametrize(("method", "n", "epsilon", "gain"), [
    ({"sizes": SIZES}, None, 1, 0.6), ({"probabilities": CHANCES}, 3_000, 0.5, 0.7),
])  # fmt: skip
def test_the_noise_is_less_than_that_of_cells_and_intervals_hold(
    method: Any, n: Any, epsilon: float, gain: float
) -> None:
    covered, off, others, own = [], [], [], []
    for seed in range(30):
        columns = drawn(seed, n)
        result = ask(columns, dpc.PureDP(epsilon), method, seed)
        covered.append(result.interval[0] <= 2 <= result.interval[1])
        off.append(result.estimate - ask(columns, EXACT, method).estimate)
        others.append(ask(columns, dpc.PureDP(epsilon), "stratified", seed).noise_error)
        own.append(result.noise_error)
    assert np.mean(covered) > 0.93 - 3 * (0.0651 / 30) ** 0.5
    assert np.std(off) == pytest.approx(np.median(own), rel=0.5) and np.median(own) < gain * np.median(others)


def test_wrong_sizes_or_probabilities_have_no_interval() -> None:
    columns, loss = drawn(3, times=20), dpc.PureDP(1)
    assert ask(columns, loss, {"sizes": 20 * SIZES}).interval is not None
    assert ask(columns, loss, {"sizes": 20 * SIZES[::-1]}).interval_reason == design.WRONG_SIZES
    columns = drawn(3, 30_000)
    assert ask(columns, loss, {"probabilities": CHANCES}).interval is not None
    wrong = ask(columns, loss, {"probabilities": [0.4, 0.2, 0.4]})
    assert wrong.interval_reason == design.WRONG_PROBABILITIES and wrong.estimate == pytest.approx(2, abs=0.6)


def test_rows_without_an_outcome_are_left_out_and_do_not_move_the_answer() -> None:
    columns = drawn(5, 20_000)
    columns["y"] = np.where(np.arange(20_000) % 5 < 2, np.nan, columns["y"])
    result = ask(columns, dpc.PureDP(2), {"probabilities": CHANCES}, 2, missing="drop")
    assert result.interval[0] < 2 < result.interval[1]


@pytest.mark.parametrize(("epsilon", "caveat"), [(0.2, False), (8, True)])
def test_it_says_where_stratified_is_predicted_to_be_as_accurate(epsilon: float, caveat: bool) -> None:
    result = ask(drawn(6, 3_000), dpc.PureDP(epsilon), {"probabilities": [0.5, 0.25, 0.25]}, adjust=[])
    assert (NO_GAIN in result.guarantee.caveats) is caveat
