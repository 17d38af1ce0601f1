"""Rank scores within strata: the bounds are reached and never passed, whatever the strata."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau

from dpcausal.errors import ParameterError
from dpcausal.papers.statistics.rank import (
    GRID,
    conditional_kendall_steps,
    conditional_kendall_steps_sensitivity,
    table_kendall_steps,
)
from dpcausal.statistics.rank import conditional_kendall, conditional_kendall_sensitivity
from tests.conformance import STARTS, search
from tests.registry.discovery import opposed

Rows = Any


def two_corners(m: int) -> Rows:
    """For two values: all at (1, 1) in one stratum, all at (1, 0) in the other, and a record at (0, 0)."""
    half = (m - 1) // 2
    rows = np.ones((m, 3))
    rows[:half, 2] = 0
    rows[half : 2 * half] = 1, 0, 1
    rows[2 * half :] = 0, 0, 0
    return rows


SPECIAL: dict[str, Any] = {
    "binary": {"levels": [0, 1], "columns": 3, "sizes": (5, 9),
               "starts": {**STARTS, "two corners": lambda _rng, m, low, high: two_corners(m)}},
    "one_stratum": {"columns": 2, "sizes": (5, 11)},
}  # fmt: skip


@pytest.mark.proves("conditional-kendall")
@pytest.mark.parametrize("case", SPECIAL)
def test_the_bounds_of_two_values_and_of_one_stratum_are_reached_and_never_passed(case: str) -> None:
    def coefficient(rows: Rows) -> float:
        return conditional_kendall(rows[:, 0], rows[:, 1], rows[:, 2] if case == "binary" else np.zeros(len(rows)))

    def bound(m: int) -> Any:
        return conditional_kendall_sensitivity(m, **{case: True}).bound

    assert 0.99 < search(coefficient, bound, evaluations=3_000, **SPECIAL[case]).ratio <= 1 + 1e-12


def _with(rows: Rows, record: tuple[float, ...]) -> Rows:
    moved = rows.copy()
    moved[-1] = record
    return moved


@pytest.mark.proves("conditional-kendall-steps")
@pytest.mark.parametrize("binary", [False, True])
def test_the_integer_steps_keep_their_bound_and_reach_it_as_n_grows(binary: bool) -> None:
    bound = conditional_kendall_steps_sensitivity(binary).bound
    for m in (9, 801):
        rows = two_corners(m) if binary else opposed(m)
        others = [_with(rows, (1, 1, 2)), _with(rows, (0, 1, 1))]
        moves = [abs(conditional_kendall_steps(*rows.T) - conditional_kendall_steps(*other.T)) for other in others]
        assert (0.99 if m > 9 else 0.5) * bound < max(moves) <= bound


@pytest.mark.proves("conditional-kendall")
def test_a_record_that_leaves_a_public_stratum_to_stand_alone_keeps_the_bound_of_one() -> None:
    rng, most = np.random.default_rng(3), 0.0
    for _ in range(2_000):
        n = int(rng.integers(2, 12))
        rows = np.column_stack([rng.integers(0, 4, (n, 2)), np.where(rng.random(n) < 0.2, np.arange(1, n + 1), 0)])
        other = _with(rows, (*rng.integers(0, 4, 2), 0 if rng.random() < 0.5 else n + 1))
        moved = abs(conditional_kendall(*rows.T) - conditional_kendall(*other.T))
        most = max(most, moved / float(conditional_kendall_sensitivity(n, one_stratum=True).bound))
    assert 0.9 < most <= 1 + 1e-12


def test_one_stratum_gives_scipys_coefficient_without_ties() -> None:
    rng = np.random.default_rng(1)
    x, y, one = rng.normal(size=60), rng.normal(size=60), np.zeros(60)
    # n T = (n − 1) tau for one stratum: 2K/n over n.
    assert math.isclose(conditional_kendall(x, y, one), kendalltau(x, y).statistic * 59 / 60, rel_tol=1e-12)


def test_a_table_gives_the_steps_of_its_records() -> None:
    rng = np.random.default_rng(2)
    x, y, s = rng.integers(0, 3, 300), rng.integers(0, 4, 300), rng.integers(0, 5, 300)
    s[s == 3] = 4  # an empty stratum
    counts = np.zeros((3, 4, 5), dtype=np.int64)
    np.add.at(counts, (x, y, s), 1)
    records = conditional_kendall_steps(x.astype(float), y.astype(float), s.astype(float))
    assert table_kendall_steps(counts) == records
    assert abs(records / GRID / 300 - conditional_kendall(x.astype(float), y.astype(float), s.astype(float))) < 1e-5
    assert conditional_kendall(np.zeros(5), np.arange(5.0), np.arange(5.0)) == 0
    assert table_kendall_steps(np.zeros((2, 2, 3), dtype=np.int64)) == 0
    for refused in (lambda: conditional_kendall(np.zeros(1), np.zeros(1), np.zeros(1)),
                    lambda: conditional_kendall_sensitivity(1)):  # fmt: skip
        with pytest.raises(ParameterError):
            refused()


def test_the_bounds_are_below_six_and_four_over_n() -> None:
    for n in (2, 3, 10, 1000):
        assert conditional_kendall_sensitivity(n).bound < Fraction(6, n) + Fraction(1, 2**50)
        assert conditional_kendall_sensitivity(n, binary=True).bound < Fraction(4, n) + Fraction(1, 2**50)
