"""The interquartile range: its exact reach against brute force, the flip distance against neighbours."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from dpcausal.errors import HiddenAnswerError, ParameterError
from dpcausal.papers.statistics.iqr import IqrReach, interquartile_range, iqr_signed_distance, quartiles
from tests.statistics.iqr_brute_force import iqr_by_definition, reachable


def distance(rows, low=0.0, high=1.0):
    A, B, C, E = (IqrReach(column, low, high) for column in rows.T)
    return iqr_signed_distance((A, B), (C, E))


@pytest.mark.parametrize("m", [2, 3, 4, 5, 7, 8, 101])
def test_the_range_is_that_of_the_inverted_distribution_function(m):
    x = np.random.default_rng(m).standard_normal(m)
    upper, lower = np.quantile(x, [0.75, 0.25], method="inverted_cdf")
    assert interquartile_range(x) == IqrReach(x, -9, 9).iqr == upper - lower == iqr_by_definition(list(x))
    assert quartiles(m)[0] < quartiles(m)[1]


@pytest.mark.proves("iqr-reach")
def test_the_reach_is_the_brute_force_one():
    rng = np.random.default_rng(0)
    compared = 0
    for _ in range(60):
        m, upper = int(rng.integers(2, 7)), int(rng.integers(1, 8))
        x = rng.integers(0, upper + 1, m)
        reach = IqrReach(x, 0, upper)
        for j, within in zip(range(m + 2), reachable(x.tolist(), range(upper + 1)), strict=False):
            ranges = [iqr_by_definition(data) for data in within]
            assert (reach.highest(j), reach.lowest(j)) == (max(ranges), min(ranges)), (x, upper, j)
            compared += 1
            if len(within) > 1500:
                break
        assert (reach.highest(m), reach.lowest(m)) == (upper, 0)
        assert (reach.highest(reach.most), reach.lowest(reach.most)) == (upper, 0)
        assert reach.most <= m
    assert compared > 250


def test_the_flip_distance_is_the_first_replacement_count_by_a_plain_scan():
    rng = np.random.default_rng(5)
    seen = set()
    for _ in range(300):
        m = int(rng.integers(2, 40))
        rows = rng.uniform(0, 1, (m, 4)) ** rng.uniform(0.3, 3, 4)
        rows = np.round(rows, int(rng.integers(1, 6)))
        A, B, C, E = reaches = [IqrReach(column, 0, 1) for column in rows.T]
        p, q, s, t = (reach.iqr for reach in reaches)
        z = distance(rows)
        assert (z >= 0) == (p * q <= s * t)
        if z >= 0:
            flips = [A.highest(j) * B.highest(j) > C.lowest(j) * E.lowest(j) for j in range(m + 1)]
            assert z == flips.index(True, 1) - 1
        else:
            flips = [C.highest(j) * E.highest(j) >= A.lowest(j) * B.lowest(j) for j in range(m + 1)]
            assert z == -flips.index(True, 1)
        seen.add(z)
    assert min(seen) <= -4
    assert max(seen) >= 4


def test_values_outside_the_range_and_nan_are_mapped_record_by_record():
    wild = IqrReach([np.nan, -np.inf, 0.5, np.inf, 7.0], 0, 1)
    plain = IqrReach([0.0, 0.0, 0.5, 1.0, 1.0], 0, 1)
    for j in range(6):
        assert (wild.highest(j), wild.lowest(j)) == (plain.highest(j), plain.lowest(j))


@pytest.mark.parametrize(
    ("lower", "upper"), [(2**53 + 1, 2**53 + 3), (np.float32(0.1), np.float32(16777218)), (Fraction(1, 3), 2**60 + 1)]
)
def test_a_range_is_that_of_the_floats_whatever_the_kind_of_its_ends(lower, upper):
    # Their difference in their own arithmetic is not that of the floats: with it hi_j fell in j.
    ends = [float(lower), float(upper)]
    reach = IqrReach(np.array(ends), lower, upper)
    assert reach.width == reach.iqr == ends[1] - ends[0]
    assert [reach.highest(j) for j in range(4)] == [reach.width] * 4


def distance_of(*reaches):
    return iqr_signed_distance(reaches[:2], reaches[2:])


SHORT, LONG = IqrReach(np.zeros(4), 0, 1), IqrReach(np.zeros(5), 0, 1)
TINY, HUGE = IqrReach(np.zeros(4), 0, 1e-170), IqrReach(np.zeros(4), 0, 1e160)
REFUSALS = [
    *((IqrReach, np.zeros(shape), 0, 1) for shape in (0, 1, (4, 2))),
    *((IqrReach, np.zeros(4), *ends) for ends in ((1, 1), (2, 1), (0, math.inf), (math.nan, 1), (-1e308, 1e308))),
    (interquartile_range, np.zeros(1)),
    (distance_of, SHORT, SHORT, SHORT, LONG), (distance_of, *[TINY] * 4), (distance_of, *[HUGE] * 4),
]  # fmt: skip


@pytest.mark.parametrize(("call", "arguments"), [(call, rest) for call, *rest in REFUSALS])
def test_few_records_and_ranges_without_a_finite_width_or_product_are_refused(call, arguments):
    with pytest.raises(ParameterError):
        call(*arguments)


def test_a_reach_shows_no_value_and_does_not_pickle():
    reach = IqrReach(np.array([0.123456, 0.654321]), 0, 1)
    assert "1234" not in repr(reach)
    assert "6543" not in str(reach)
    with pytest.raises(HiddenAnswerError):
        pickle.dumps(reach)
