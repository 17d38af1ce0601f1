"""Targets unlike their donors, flat targets and small pools: what the interval is, or why there is none."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

import dpcausal as dpc
from dpcausal.errors import InfeasibleError
from dpcausal.synthetic_control.donor_rows import random_walk_error
from dpcausal.synthetic_control.methods.factor import FactorRelease, forecaster
from dpcausal.synthetic_control.question import MOST_NOISE
from tests.synthetic_control.neighbours import answer_to, panel_of, plan_of

PURE, APPROXIMATE = dpc.PureDP(1), dpc.ApproxDP(1, 1e-6)
T, START, DONORS, BOUNDS = 24, 16, 1000, dpc.Bounded(-60, 140)


def rows(kind: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    walk, other = np.cumsum(rng.normal(0, 1, (2, T)), axis=1)
    own = {"larger": 3 * walk, "of another kind": other, "against": -walk, "jagged": 2 * np.diff(other, prepend=0),
           "seasonal": 4 * np.sin(np.pi * np.arange(T) / 4)}  # fmt: skip
    level = rng.uniform(0.8, 1.2, DONORS + 1)[:, None]
    made = 40 + level * walk + rng.normal(0, 0.4, (DONORS + 1, T))
    if kind != "like":
        made[0] = 40 + own[kind] + rng.normal(0, 0.4, T)
    return made


def asked(made: Any, loss: Any, seed: int = 0, start: int = START, **options: Any) -> dpc.SyntheticControl:
    return answer_to(panel_of(made[1:], made[0], loss, start, BOUNDS), loss, seed, **options)


@pytest.mark.parametrize("kind", ["larger", "of another kind", "against", "seasonal", "jagged"])
def test_the_factor_model_gives_no_interval_and_no_p_value_where_the_target_is_unlike(kind: str) -> None:
    found = [asked(rows(kind, seed), APPROXIMATE, seed) for seed in range(10)]
    withheld = [one for one in found if one.interval is None]
    assert len(withheld) >= 7
    assert all(one.pvalue is None and one.interval_reason == one.pvalue_reason != "" for one in withheld)
    assert all(np.isfinite(one.counterfactual).all() for one in found)


@pytest.mark.parametrize("loss", [PURE, APPROXIMATE])
def test_a_target_like_its_donors_keeps_its_interval(loss: Any) -> None:
    found = [asked(rows("like", seed), loss, seed) for seed in range(10)]
    assert sum(one.interval is not None for one in found) >= 9
    assert sum(one.interval is not None and one.interval[0] <= 0 <= one.interval[1] for one in found) >= 8


@pytest.mark.replication
@pytest.mark.parametrize("kind", ["like", "larger", "of another kind", "against", "seasonal", "jagged"])
def test_matched_intervals_are_no_narrower_than_what_donors_leave_of_the_own_variation_and_hold(kind: str) -> None:
    found, inside = [asked(rows(kind, seed), PURE, seed) for seed in range(10 if kind == "like" else 40)], 0
    for one in found:
        assert one.interval is not None and one.donor_weight is not None and one.own_fit is not None
        left = min(-2 * math.log(min(one.donor_weight / DONORS, 1)), 2)
        least = student.ppf(0.95, START // 2) * one.own_fit * math.sqrt(left)
        assert (one.interval[1] - one.interval[0]) / 2 >= least * (1 - 1e-9)
        inside += one.interval[0] <= 0 <= one.interval[1]
    # 4 of 10 without.  Where the target is unlike its donors no effect is called significant.
    assert inside >= (7 if kind == "like" else 36)
    assert kind == "like" or sum((one.pvalue or 1) < 0.1 for one in found) <= 4


def test_a_past_is_unlike_a_factor_model_far_along_its_factor_or_where_it_leaves_a_walk() -> None:
    factor = np.sin(np.pi * (np.arange(T) - START + 1) / 5)
    shares = np.outer(factor, factor) / (factor @ factor) / 2 + np.eye(T) / (2 * T)
    model = forecaster(FactorRelease(np.zeros(T, dtype=np.int64), shares, 0.0, 1e6 * T), START)
    noise, walk = np.random.default_rng(1).normal(size=(2, T)) * (np.arange(T) != START - 1)
    along = factor * math.sqrt(float(factor[:START] @ model.covariance[:START, :START] @ factor[:START]))
    along /= float(factor[:START] @ factor[:START])

    def unlikeness(moved: Any) -> float:
        row = np.rint(300 * noise + moved).astype(np.int64)
        return model.unlikeness(row - row[START - 1])

    assert unlikeness(0) == unlikeness(along) == 0 and 0 < unlikeness(3 * along) < 1 == unlikeness(5 * along)
    assert unlikeness(3000 * np.cumsum(walk)) == 1


@pytest.mark.parametrize(("slope", "before"), [(0.05, 17), (0.1, 21)])
def test_a_trend_of_the_targets_own_widens_the_interval_and_raises_the_p_value(slope: float, before: int) -> None:
    """``before`` of 30 intervals covered 0 when no error of a trend was counted; 12 and 7 p-values were .1 or less."""
    found = []
    for seed in range(30):
        made = rows("like", seed)
        made[0] += slope * (np.arange(T) - START)
        found.append(asked(made, APPROXIMATE, seed))
    shown = [one.interval for one in found if one.interval is not None]
    assert len(shown) >= 27 and sum(low <= 0 <= high for low, high in shown) >= before + 5
    assert sum((one.pvalue or 1) <= 0.1 for one in found) <= 6


def test_a_trends_error_is_what_the_forecast_misses_of_it_and_0_where_noise_would_show_as_much() -> None:
    shares = np.eye(T) / T
    model = forecaster(FactorRelease(np.zeros(T, dtype=np.int64), shares, 0.0, 1e6 * T), START)
    rng = np.random.default_rng(2)
    line, noise = np.arange(T) - (START - 1.0), rng.normal(0, 1e3, (200, T))

    def errors(slope: float) -> Any:
        moved = np.rint(noise + slope * line).astype(np.int64)
        moved[:, START - 1] = 0
        return np.array([model.trend_error(row) for row in moved])

    # No period predicts another, so the forecast is the mean: a line is missed by all of its mean later on.
    missed = float(line[START:].mean())
    assert 0.05 < np.mean(errors(0) > 0) < 0.2
    assert np.median(errors(500)) == pytest.approx(500 * missed, rel=0.3) and (errors(500) > 0).all()
    np.testing.assert_allclose(errors(-5e4), 5e4 * missed, rtol=0.02)


@pytest.mark.parametrize("after", [1, 3, 8, 40])
def test_the_mean_of_a_random_walk_lies_as_far_off_as_its_covariance_says(after: int) -> None:
    past = np.array([0.0, 2, 0, 2, 0])  # steps of size 2
    covariance = 4 * np.minimum.outer(np.arange(1, after + 1), np.arange(1, after + 1))
    assert random_walk_error(past, after) == pytest.approx(math.sqrt(float(covariance.mean())), rel=1e-12)


@pytest.mark.parametrize("loss", [dpc.PureDP(4), dpc.ApproxDP(4, 1e-6)])
@pytest.mark.parametrize("past", ["flat", "line"])
def test_a_past_that_does_not_vary_gives_neither_interval_nor_p_value_and_pays_for_none(loss: Any, past: str) -> None:
    made = rows("like", 1)
    made[0] = 2.0 if past == "flat" else np.arange(T)
    plan = plan_of(panel_of(made[1:], made[0], loss, START, BOUNDS), loss=loss)
    assert (plan.interval, plan.pvalue) == (0, 0) and plan.interval_reason and plan.pvalue_reason
    found = asked(made, loss)
    assert found.interval is None and found.pvalue is None and found.pvalue_reason == plan.pvalue_reason


@pytest.mark.parametrize(("loss", "kind"), [
    (dpc.PureDP(1), "like"), (dpc.PureDP(0.5), "like"), (dpc.PureDP(1), "larger"),
])  # fmt: skip
def test_few_donors_are_answered_where_noise_leaves_them_a_say_and_a_refusal_names_a_number_that_would_do(
    loss: Any, kind: str
) -> None:
    made = rows(kind, 5)

    def plan(n: int) -> Any:
        return plan_of(panel_of(made[1 : n + 1], made[0], loss, START, BOUNDS), loss=loss)

    small = plan(6)
    assert small.noise_ratio > MOST_NOISE and small.donors_needed > 6
    assert str(small.donors_needed) in small.verdict
    with pytest.raises(InfeasibleError):
        asked(made[:7], loss)
    enough = plan(small.donors_needed)
    assert enough.noise_ratio <= MOST_NOISE
    found = asked(made[: small.donors_needed + 1], loss)
    assert found.interval is None and any(enough.verdict.rstrip(".") == one for one in found.guarantee.caveats)
