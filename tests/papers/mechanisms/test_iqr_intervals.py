"""Proposed intervals: the corrected distances have sensitivity 1, the published second one has none."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcausal.errors import ParameterError
from dpcausal.papers.direction.anm_test_privacy import NO_SHIFT
from dpcausal.papers.statistics.iqr import (
    HALF_CELL,
    LEAST,
    Interval,
    IqrReach,
    interval_distance,
    proposal_sensitivity,
    proposed_distances,
    proposed_intervals,
)
from tests.registry.mechanisms import published_columns
from tests.statistics.iqr_brute_force import iqr_by_definition, reachable


@pytest.mark.proves("iqr-interval-distance")
def test_the_distance_is_the_brute_force_count():
    rng = np.random.default_rng(1)
    compared = 0
    for _ in range(60):
        m, upper = int(rng.integers(2, 7)), int(rng.integers(2, 8))
        x = rng.integers(0, upper + 1, m)
        start, stop = sorted(rng.choice(np.arange(1, upper + 2), 2, replace=False).tolist())
        counted = interval_distance(IqrReach(x, 0, upper), Interval(start, stop))
        for j, within in enumerate(reachable(x.tolist(), range(upper + 1))):
            left = any(not start <= iqr_by_definition(data) < stop for data in within)
            assert left == (j >= counted)
            compared += 1
            if left or len(within) > 1500:
                break
    assert compared > 80


def test_the_published_second_distance_jumps_by_more_than_150_at_a_thousand_records():
    # log IQR just above and just below an integer: k, and with it the second interval, jumps by a whole cell.
    above, below = (IqrReach(column, -10, 10) for column in published_columns())
    assert below.iqr < above.iqr == 1
    assert proposed_distances(below, NO_SHIFT)[1] == 0
    assert proposed_distances(above, NO_SHIFT)[1] > 150
    assert abs(proposed_distances(below)[1] - proposed_distances(above)[1]) <= 1


@pytest.mark.proves("iqr-interval-distance")
@given(st.one_of(st.floats(LEAST, 1.7e308), st.integers(-1400, 1418).map(lambda k: math.exp(k / 2))))
@settings(max_examples=500, deadline=None)
def test_the_corrected_intervals_hold_the_range_and_have_length_one_in_its_logarithm(iqr):
    for first, interval in zip((True, False), proposed_intervals(iqr), strict=True):
        assert LEAST <= interval.lower <= iqr < interval.upper
        if 1e-300 < iqr < 1e300:
            exponent = math.log(interval.lower) + (0 if first else 0.5)
            assert exponent == pytest.approx(round(exponent), abs=1e-9)
            assert math.log(interval.upper / interval.lower) == pytest.approx(1)


@pytest.mark.proves("iqr-interval-distance")
def test_at_every_edge_and_one_float_below_it_the_intervals_hold_the_range():
    # The rounded logarithm of the float below e^k is k itself: only a comparison with the edges places it.
    misplaced = 0
    for k in range(-1488, 1419):
        edge = math.exp(k / 2)
        for iqr in (edge, math.nextafter(edge, 0)):
            if iqr >= LEAST:
                assert all(interval.lower <= iqr < interval.upper for interval in proposed_intervals(iqr))
                misplaced += not math.exp(math.floor(math.log(iqr))) <= iqr
    assert misplaced > 100


def test_the_published_intervals_are_those_printed():
    assert proposed_intervals(2.0, NO_SHIFT) == (Interval(1, math.e), Interval(math.exp(-0.5), math.exp(0.5)))
    assert proposed_intervals(2.0, HALF_CELL) == (Interval(1, math.e), Interval(math.exp(0.5), math.exp(1.5)))
    assert proposed_intervals(1.5, HALF_CELL)[1] == proposed_intervals(1.5, NO_SHIFT)[1]


def test_a_range_of_zero_has_distance_zero():
    constant = IqrReach(np.full(9, 0.5), 0, 1)
    assert proposed_distances(constant) == proposed_distances(constant, NO_SHIFT) == (0, 0)
    nearly = IqrReach(np.repeat([0.0, 0.9 * LEAST, 1.0], [3, 5, 1]), 0, 1)
    assert 0 < nearly.iqr < LEAST and proposed_distances(nearly) == (0, 0)


@pytest.mark.proves("log-iqr-proposal")
def test_no_cell_is_longer_than_the_bound_and_some_are_as_long_as_one():
    lengths = []
    for k in range(-1400, 1418):
        for interval in proposed_intervals(max(LEAST, math.exp(k / 2))):
            last = min(math.nextafter(interval.upper, 0), 1.7e308)
            lengths.append(math.log(last) - math.log(interval.lower))
    assert 1 - 1e-13 < max(lengths) <= proposal_sensitivity().bound


def test_intervals_that_are_not_positive_and_ranges_without_a_logarithm_are_refused():
    for interval in (Interval(-1, 1), Interval(1, 1), Interval(math.nan, 1)):
        with pytest.raises(ParameterError):
            interval_distance(IqrReach(np.zeros(4), 0, 1), interval)
    for iqr in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ParameterError):
            proposed_intervals(iqr)
