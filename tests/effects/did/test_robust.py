"""Effects where trends need not be parallel: bounds of linear programs, and intervals that cover."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import norm

import dpcausal as dpc
from dpcausal.effects.did.robust import EventStudy, robust_effects
from tests.effects.did.test_api import EXACT, ROLES, asked, frame, made, table
from tests.refusals import rule_of

EVENTS = [None, -4, -3, -2, 0, 1, 2]


def study(values: Any, covariance: Any = None) -> EventStudy:
    """Return a study whose mean effect is that of its three events after treatment."""
    mean = np.vstack([[0, 0, 0, 1 / 3, 1 / 3, 1 / 3], np.eye(6)])
    own = np.zeros((6, 6)) if covariance is None else np.asarray(covariance)
    return EventStudy(EVENTS, [2, -3, -2, -1, 1, 2, 3], mean @ values, mean @ own @ mean.T)


def effects(values: Any, mbar: float, covariance: Any = None) -> dict[str, Any]:
    about: dict[str, Any] = {"outcome": "y", "coverage": 0.95, "n": 9, "guarantee": None}
    found = robust_effects(study(values, covariance), (mbar,), about, True)
    return {one.name: one for one in found.effects} | {"breakdown": found.breakdown}


def program(values: Any, weights: Any, mbar: float) -> tuple[float, float]:
    """Return the least and the largest effect by linear programs over paths δ of events −4 to 2, 0 at −1."""
    before, after = np.append(values[:3], 0.0), values[3:]
    slopes = np.diff(before)
    change = np.diff(np.eye(7), axis=0)
    fixed = {"A_eq": np.eye(7)[:4], "b_eq": before}
    cases = [(np.vstack([sign * change[3:] for sign in (-1, 1)]), np.full(6, mbar * size)) for size in abs(slopes)]
    objective = np.concatenate([np.zeros(4), weights])
    ends = []
    for (matrix, most), sign in product(cases, (-1, 1)):
        solved = linprog(sign * objective, A_ub=matrix, b_ub=most, bounds=(None, None), **fixed)
        ends.append(weights @ after - sign * solved.fun)
    return min(ends), max(ends)


def test_bounds_are_those_of_linear_programs() -> None:
    rng = np.random.default_rng(1)
    for _ in range(5):
        values, mbar = rng.normal(size=6), float(rng.uniform(0, 3))
        found = effects(values, mbar)
        for name, weights in {"all": np.full(3, 1 / 3), **{f"{e:+d}": np.eye(3)[e] for e in range(3)}}.items():
            assert found[name].bounds == pytest.approx(program(values, weights, mbar), abs=1e-7)
            assert found[name].interval == pytest.approx(found[name].bounds)


def test_with_one_change_before_the_first_effect_has_the_interval_of_two_normals() -> None:
    covariance = np.array([[0.04, 0.01], [0.01, 0.09]])
    one = EventStudy([None, -2, 0], [1, -1, 1], np.array([1.0, 0.2, 1.0]),
                     covariance[np.ix_([1, 0, 1], [1, 0, 1])])  # fmt: skip
    about: dict[str, Any] = {"outcome": "y", "coverage": 0.9, "n": 9, "guarantee": None}
    found = robust_effects(one, (2.0,), about, True)
    ends = [1 + 2 * sign * 0.2 + side * norm.ppf(0.95) * np.sqrt(0.09 + 4 * 0.04 + 4 * sign * 0.01)
            for sign in (-1, 1) for side in (-1, 1)]  # fmt: skip
    assert found.effects[-1].interval == pytest.approx((min(ends), max(ends)))
    assert found.effects[0].interval == found.effects[-1].interval


def test_intervals_cover_the_worst_trend_and_the_breakdown_is_where_they_reach_zero() -> None:
    rng, root = np.random.default_rng(2), np.tril(np.full((6, 6), 0.1)) * np.linspace(0.5, 1, 6)
    slopes, held = np.array([0.0, 0.1, -0.3]), 0
    before = -np.cumsum(slopes[::-1])[::-1]
    truth = np.concatenate([before, 1 + 0.3 * np.arange(1, 4)])  # effects of 1, and the worst trend
    for _ in range(1_000):
        found = effects(truth + root @ rng.normal(size=6), 1.0, root @ root.T)
        held += found["+2"].interval[0] <= 1 <= found["+2"].interval[1]
    assert 930 <= held <= 1_000
    found = effects(truth, 1.0, root @ root.T)
    low, high = effects(truth, found["breakdown"], root @ root.T)["all"].interval
    assert min(abs(low), abs(high)) < 1e-6


def test_a_result_has_them_free_and_one_period_before_treatment_is_too_few() -> None:
    y, g = made(900)
    found = asked(frame(y, g), EXACT)
    robust = found.robust_trends(mbar=[0, 1])
    assert [one.mbar for one in robust.effects if one.name == "all"] == [0, 1]
    for one in robust.effects:
        own = found.att if one.event is None else next(e for e in found.event_study if e.event == one.event)
        if one.mbar == 0:
            assert one.bounds == pytest.approx((own.estimate, own.estimate))
            assert one.interval == pytest.approx(own.interval)
        assert one.interval[0] < one.bounds[0] <= one.bounds[1] < one.interval[1]
    assert found.robust_trends(mbar=1).effects == found.robust_trends(mbar=[1]).effects
    assert list(robust.rows()[0]) == [*robust.named, "outcome", "coverage", "n"]
    assert robust.breakdown > 0 and len(robust.rows()) == len(robust.effects) and robust.headline()
    late = table(frame(y, g), EXACT).where("t", among=[2, 3, 4]).where("g", among=["3", "never"])
    assert rule_of(lambda: dpc.did(late, **ROLES, loss=EXACT).robust_trends()) == "periods"
