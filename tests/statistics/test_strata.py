"""Moments inside strata: against plain numpy and permutations, their bounds reached and never passed."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpcausal.privacy.sensitivity import Norm
from dpcausal.statistics.strata import (
    GRID,
    StratumMoments,
    contingency,
    contingency_sensitivity,
    covariance_sensitivity,
    histograms_sensitivity,
    stratum_moments,
    stratum_spread,
)
from tests.conformance import check_claim

Rows = Any

UNITS = 64


STRATA: dict[str, Any] = {"columns": 3, "high": [1.0, 1.0, 2.0]}


def whole(rows: Rows) -> Any:
    return np.rint(rows[:, :2] * UNITS).astype(np.int64), np.rint(rows[:, 2]).astype(np.int64)


def moments(rows: Rows) -> StratumMoments:
    values, strata = whole(rows)
    return stratum_moments(*values.T, strata, (UNITS, UNITS))


def covariance(rows: Rows) -> int:
    return moments(rows).covariance


def variance(rows: Rows) -> int:
    return moments(rows).variance


def spread(rows: Rows) -> int:
    return stratum_spread(np.rint(rows[:, 0]).astype(np.int64), whole(rows)[1])


def corners(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    """All others at (1, 1) in one stratum and at (1, 0) in the other, a row at (0, 0) of the first."""
    rows = np.ones((m, 3))
    rows[: m // 2, 2] = 0
    rows[m // 2 :, 1:] = 0, 2
    rows[0] = 0
    return rows


@pytest.mark.proves("stratum-covariance")
@pytest.mark.proves("contingency-table")
def test_the_bounds_of_one_stratum_and_of_a_table_in_l2_are_reached_and_never_passed() -> None:
    def one(rows: Rows) -> int:
        return covariance(np.column_stack([rows, np.zeros(len(rows))]))

    def table(rows: Rows) -> Any:
        return contingency(list(np.rint(rows).astype(np.int64).T), [2, 3, 2]).ravel()

    check_claim(one, lambda m: covariance_sensitivity(1), sizes=(5, 30), reached=0.8, mutant=0.75, columns=2)
    check_claim(table, lambda m: contingency_sensitivity(Norm.L2), sizes=(3, 9), columns=3, high=[1.0, 2.0, 1.0])


@pytest.mark.proves("stratum-covariance")
def test_the_bound_of_the_covariance_is_nearly_attained() -> None:
    rows = corners(None, 801, None, None)
    moved = rows.copy()
    moved[0] = 0, 1, 2
    assert 0.99 < (covariance(rows) - covariance(moved)) / covariance_sensitivity(2).bound <= 1


def exact_variance(counts: tuple[int, int, int, int]) -> Fraction:
    m, a, b = sum(counts), counts[0] + counts[1], counts[0] + counts[2]
    return Fraction(a * (m - a) * b * (m - b), m * m * (m - 1)) if m > 1 else Fraction(0)


@pytest.mark.proves("stratum-variance")
def test_every_row_gained_by_every_small_table_moves_the_variance_as_proved() -> None:
    gains = set()
    for m in range(15):
        for counts in itertools.product(range(m + 1), repeat=3):
            if sum(counts) <= m:
                table = (*counts, m - sum(counts))
                gains.add(exact_variance((table[0] + 1, *table[1:])) - exact_variance(table))
    assert max(gains) == Fraction(1, 4) and Fraction(-1, 8) <= min(gains) < Fraction(-1, 40)


def test_the_variance_is_that_of_all_permutations() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, UNITS + 1, (2, 6))
    each = [stratum_moments(np.array(order), y, np.zeros(6, dtype=np.int64), (UNITS, UNITS)).covariance
            for order in itertools.permutations(x.tolist())]  # fmt: skip
    stated = stratum_moments(x, y, np.zeros(6, dtype=np.int64), (UNITS, UNITS)).variance
    assert np.var(np.array(each) / GRID) == pytest.approx(stated / GRID, rel=1e-4)


def test_both_are_those_of_plain_numpy_stratum_by_stratum() -> None:
    rng = np.random.default_rng(2)
    x, y, strata = rng.integers(0, 2, 400), rng.integers(0, UNITS + 1, 400), rng.integers(0, 30, 400) * 7
    found = stratum_moments(x, y, strata, (1, UNITS))
    total, of_variance = 0.0, 0.0
    for code in set(strata.tolist()):
        a, b = x[strata == code], y[strata == code] / UNITS
        if len(a) > 1:
            total += len(a) * np.cov(a, b, bias=True)[0, 1]
            of_variance += a.var() * b.var() * len(a) ** 2 / (len(a) - 1)
    assert abs(found.covariance / GRID - total) < 1e-3 and abs(found.variance / GRID - of_variance) < 1e-3


def test_no_rows_and_rows_alone_say_nothing() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert stratum_moments(none, none, none, (1, 1)) == (0, 0)
    assert stratum_moments(np.array([0, 1]), np.array([0, 1]), np.array([3, 4]), (1, 1)) == (0, 0)


def test_a_table_counts_every_declared_cell() -> None:
    codes = [np.array([0, 1, 1, 0, 1]), np.array([2, 0, 0, 2, 1])]
    counts = contingency(codes, [2, 3])
    for cell in itertools.product(range(2), range(3)):
        assert counts[cell] == sum((a, b) == cell for a, b in zip(*codes, strict=True))


def test_the_roots_of_bounds_are_rounded_up() -> None:
    assert float(contingency_sensitivity(Norm.L2).bound) ** 2 >= 2
    assert Fraction(histograms_sensitivity(7).bound) ** 2 > 14
