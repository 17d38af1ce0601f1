"""Rank scores: exact values against definitions and scipy, exact sensitivities against neighbours."""

from dataclasses import replace
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpcausal.errors import ParameterError
from dpcausal.papers.direction.anm_test_privacy import RANKS
from dpcausal.papers.statistics import rank
from dpcausal.papers.statistics.rank import kendall, spearman, spearman_numerator
from dpcausal.statistics.rank import kendall_numerator


def signs(values):
    return np.sign(values[:, None] - values[None, :]).astype(int)


def spearman_by_definition(x, y):
    return int((signs(x).sum(axis=1) * signs(y).sum(axis=1)).sum())


def kendall_by_definition(x, y):
    return int((signs(x) * signs(y)).sum()) // 2


def worst_pair(m):
    """The pair that attains both bounds: a common increasing line, one record moved from corner to corner."""
    line = np.arange(1.0, m)
    return (np.append(line, m), np.append(line, m)), (np.append(line, 0), np.append(line, m))


def spearman_numerator_sensitivity(m, calibration=rank.LEAST):
    bound = int((rank.spearman_sensitivity(m, calibration).bound - rank.ROUNDING) * m * (m * m - 1) / 3)
    return replace(rank.spearman_sensitivity(m), bound=bound)


SCORES = {  # the numerators are the same scores without their denominators: all small tables and pairs drawn, below
    "rho": (spearman, rank.spearman_sensitivity),
    "|rho|": (lambda x, y: abs(spearman(x, y)), rank.spearman_sensitivity),
    "N": (spearman_numerator, spearman_numerator_sensitivity),
    "|N|": (lambda x, y: abs(spearman_numerator(x, y)), spearman_numerator_sensitivity),
    "tau": (kendall, rank.kendall_sensitivity),
    "|tau|": (lambda x, y: abs(kendall(x, y)), rank.kendall_sensitivity),
    "K": (kendall_numerator, rank.kendall_numerator_sensitivity),
    "|K|": (lambda x, y: abs(kendall_numerator(x, y)), rank.kendall_numerator_sensitivity),
}


@pytest.mark.proves("spearman-rho")
@pytest.mark.proves("kendall-tau")
@pytest.mark.parametrize("m", [2, 3, 4, 5, 17, 1000])
def test_the_witness_attains_both_bounds_and_for_absolute_values_from_five_and_four_records_on(m):
    one, other = worst_pair(m)
    for name, bound, least in (("N", 2 * m * (m - 1), 5), ("K", 2 * (m - 1), 4)):
        score, claim = SCORES[name]
        a, b = score(*one), score(*other)
        assert a - b == bound == claim(m).bound and isinstance(claim(m).bound, int)
        assert (abs(abs(a) - abs(b)) == a - b) == (m >= least)


@pytest.mark.parametrize("m", [2, 10, 999, 10**6])
def test_the_stated_bounds_are_the_papers_and_the_corrected_fractions(m):
    half_ulps = Fraction(1, 2**53)
    assert rank.spearman_sensitivity(m).bound == Fraction(6, m + 1) + half_ulps
    assert rank.kendall_sensitivity(m).bound == Fraction(4, m) + half_ulps
    assert rank.spearman_sensitivity(m, RANKS).bound == Fraction(30, m) + half_ulps
    assert rank.kendall_sensitivity(m, RANKS).bound == Fraction(4, m) + half_ulps
    assert spearman_numerator_sensitivity(m, RANKS).bound == 10 * (m * m - 1)


@pytest.mark.parametrize("name", ["rho", "tau"])
def test_without_the_allowance_for_rounding_two_floats_pass_the_exact_bound(name):
    score, claim = SCORES[name]
    pairs = {m: worst_pair(m) for m in range(2, 60)}
    exact_bounds = {m: claim(m).bound - rank.ROUNDING for m in pairs}
    changes = {m: abs(Fraction(score(*one)) - Fraction(score(*other))) for m, (one, other) in pairs.items()}
    assert any(changes[m] > exact_bounds[m] for m in changes)
    assert all(changes[m] <= exact_bounds[m] + rank.ROUNDING for m in changes)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=30))
@settings(max_examples=200, deadline=None)
def test_numerators_follow_the_definition_with_ties(rows):
    x, y = np.array(rows, dtype=float).T
    m = len(rows)
    N, K = spearman_by_definition(x, y), kendall_by_definition(x, y)
    assert (spearman_numerator(x, y), kendall_numerator(x, y)) == (N, K)
    with mock.patch("dpcausal.statistics.rank.SHORT", 0):  # by the sort of longer columns
        assert kendall_numerator(x, y) == K
    assert spearman(x, y) == float(Fraction(3 * N, m * (m * m - 1)))
    assert kendall(x, y) == float(Fraction(2 * K, m * (m - 1)))
    midrank = np.cov(stats.rankdata(x), stats.rankdata(y), bias=True)[0, 1] * 12 / (m * m - 1)
    assert spearman(x, y) == pytest.approx(midrank, abs=1e-12)


def test_a_numerator_beyond_64_bits_is_exact():
    m = 3_100_000
    x = np.arange(m, dtype=float)
    largest = m * (m * m - 1) // 3
    assert largest > 2**63
    assert spearman_numerator(x, x) == largest
    assert spearman_numerator(x, -x) == -largest


def test_kendall_counts_a_million_records_exactly():
    m = 10**6
    x = np.arange(m, dtype=float)
    rotated = np.roll(x, 300_000)  # discordant: each of the 300 000 moved ones with each of the others
    assert kendall_numerator(x, -x) == -(m * (m - 1) // 2)
    assert kendall_numerator(x, rotated) == m * (m - 1) // 2 - 2 * 300_000 * 700_000


def test_nan_counts_as_one_largest_value_and_infinities_keep_their_place():
    x = np.array([np.nan, 1.0, -np.inf, np.nan, np.inf, -0.0, 0.0])
    plain = np.array([9.0, 1.0, -5.0, 9.0, 5.0, 0.0, 0.0])
    y = np.array([3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.0])
    for score, _ in SCORES.values():
        assert score(x, y) == score(plain, y) and score(y, x) == score(y, plain)
        assert score(np.zeros(7), y) == score(y, np.zeros(7)) == 0


@pytest.mark.parametrize("name", ["rho", "N", "tau", "K"])
def test_few_records_and_columns_of_other_shapes_are_refused(name):
    score, claim = SCORES[name]
    for x, y in ((0, 0), (1, 1), (4, 3), (4, ())):
        with pytest.raises(ParameterError):
            score(np.zeros(x), np.zeros(y))
    with pytest.raises(ParameterError):
        claim(1)
