"""The smooth median: both of its conditions over all neighbours found, against brute force, and a mutant."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from dpcausal.dependence.smooth_median import smooth_median, smooth_median_sensitivity
from dpcausal.errors import ParameterError
from dpcausal.privacy.conditional import conditional_change
from dpcausal.privacy.sensitivity import Norm
from tests.conformance import STARTS, check_claim

Rows = Any
BETA = 0.2


def statistic(rows: Rows) -> Any:
    return smooth_median(rows[:, 0], BETA)


@pytest.mark.proves("smooth-median")
def test_the_bound_is_reached_and_never_passed() -> None:
    check_claim(statistic, lambda m: smooth_median_sensitivity(BETA), sizes=(5, 13), columns=1, starts=STARTS)


@pytest.mark.proves("smooth-median")
def test_all_neighbours_of_small_data_keep_both_conditions() -> None:
    values = (0.0, 0.1, 0.5, 0.55, 1.0)
    worst = 0.0
    for data in itertools.combinations_with_replacement(values, 5):
        for place, new in itertools.product(range(5), values):
            other = list(data)
            other[place] = new
            one, two = smooth_median(np.array(data), BETA), smooth_median(np.array(other), BETA)
            worst = max(worst, conditional_change(one, two, Norm.SMOOTH))
    assert worst <= BETA
    assert worst > 0.95 * BETA


def local(data: list[float]) -> float:
    """Return the most that one change to 0, to 1 or to a value of the data moves the median."""
    middle = sorted(data)[len(data) // 2]
    moved = 0.0
    for place, new in itertools.product(range(len(data)), (0.0, 1.0)):
        other = list(data)
        other[place] = new
        moved = max(moved, abs(sorted(other)[len(data) // 2] - middle))
    return moved


def test_the_smooth_bound_is_that_of_brute_force() -> None:
    """Every data set k changes away has the changed values at the ends, where they open the widest gaps."""
    rng = np.random.default_rng(1)
    for _ in range(10):
        data = [round(float(v), 2) for v in rng.random(5)]
        best = 0.0
        for k in range(4):
            for places in itertools.combinations(range(5), k):
                for news in itertools.product((0.0, 1.0, *data), repeat=k):
                    other = list(data)
                    for place, new in zip(places, news, strict=True):
                        other[place] = new
                    best = max(best, math.exp(-k * 0.5) * local(other))
        assert smooth_median(np.array(data), 0.5)[1] == pytest.approx(best, rel=1e-9)


def test_it_is_scipys_median_and_the_bound_is_never_0() -> None:
    rng = np.random.default_rng(2)
    values = rng.random(21)
    assert smooth_median(values, 0.1)[0] == np.median(values)
    assert 0 < smooth_median(np.full(21, 0.5), 0.1)[1] < 0.5
    assert smooth_median(np.array([0.5]), 0.1)[1] == pytest.approx(math.exp(0) * 0.5, rel=1)


def test_what_has_no_middle_is_refused() -> None:
    with pytest.raises(ParameterError):
        smooth_median(np.zeros(4), 0.1)
    with pytest.raises(ParameterError):
        smooth_median(np.zeros(5), 0.0)


def test_the_bound_is_above_zero_where_its_weights_are_not() -> None:
    """A draw that failed for a column without variation would tell of it."""
    for beta in (1.45, 1.6, 50.0):
        assert 1e-300 < smooth_median(np.ones(1001), beta)[1] < 1e-200
