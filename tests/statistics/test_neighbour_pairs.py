"""Sign products of neighbours in z: against brute force, their bounds reached and never passed, their null variance."""

import itertools
from typing import Any

import numpy as np
import pytest

from dpcausal.errors import ParameterError
from dpcausal.statistics.neighbour_pairs import (
    ENDS,
    PairSums,
    null_variance,
    pair_counts,
    pair_sums,
    signed_sensitivity,
    untied_sensitivity,
    z_order,
)
from tests.conformance import STARTS, check_claim

Rows = Any

BOX: dict[str, Any] = {"columns": 5, "low": [0, 0, 0, 0, 0], "high": [1, 1, 1, 1, 1]}
"""x, y, z, a cell and whether the row is kept, by rounding; the last mostly 1 in the starts below."""


def sums(rows: Rows, k: int = 2, ends: int = ENDS) -> PairSums:
    x, y, z, cells, kept = rows.T
    keys = np.random.default_rng(len(rows)).permutation(len(rows))
    return pair_sums(x, y, z, np.rint(cells).astype(np.int64), keys, kept > 0.25, k, ends)


def worst(k: int, n: int, *, moved: bool = False, tied: bool = False, ends: int = ENDS) -> Rows:
    """The tight construction: a row that is concordant with 2k others and keeps k discordant pairs apart, and its move.

    For the untied pairs: those that it keeps apart, and those that it will part, are tied or not.
    """
    rows = np.ones((n, 5))
    rows[:, 2], rows[:, 3] = np.arange(n) / n, 0
    first, second = (ends + 1) * k - 1, (ends + 3) * k + 1
    rows[first - k : first, :2], rows[first + 1 : first + 1 + k, :2] = (0.5, 0.5) if tied else (0.3, 0.7), (0.7, 0.3)
    if tied:
        rows[first + 1 : first + 1 + k, :2] = 0.5
    rows[second - k + 1 : second + 1, :2], rows[second + 1 : second + 1 + k, :2] = 0.3, 0.7
    rows[first, :2] = 0.0
    if moved:
        rows[first, :3] = 0.0, 1.0, (second + 0.5) / n
        if tied:
            rows[first, :2] = 0.3, 0.7  # tied in x with those before it, in y with those after it
    return rows


SIZES = (32, 61)
"""Rows for k = 1 and 2."""


def worst_start(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    return worst((m - 3) // 29, m)


def tied_start(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    return worst((m - 3) // 29, m, tied=True)


@pytest.mark.proves("neighbour-pairs")
@pytest.mark.proves("untied-pairs")
@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("ends", [1, 2, 4, ENDS])
def test_the_bounds_are_attained(k: int, ends: int) -> None:
    for tied, claim, bound in ((False, signed_sensitivity, 6 * k), (True, untied_sensitivity, 3 * k)):
        rows = [worst(k, 29 * k + 3, moved=moved, tied=tied, ends=ends) for moved in (False, True)]
        before, after = (sums(one, k, ends)[tied] for one in rows)
        assert before - after == claim(k).bound == bound


@pytest.mark.proves("neighbour-pairs")
def test_the_bound_of_the_signed_sum_is_never_passed_where_the_ends_are_graded_over_fewer_ranks() -> None:
    check_claim(
        lambda rows: sums(rows, (len(rows) - 3) // 14, 2).signed, lambda m: signed_sensitivity((m - 3) // 14),
        sizes=(17, 31), reached=0.3, mutant=0.25,
        starts={**STARTS, "worst": lambda _rng, m, low, high: worst((m - 3) // 14, m, ends=2)}, **BOX,
    )  # fmt: skip


def by_hand(rows: Rows, k: int, ends: int) -> PairSums:
    keys = np.random.default_rng(len(rows)).permutation(len(rows))
    signed = untied = 0
    for cell in (0, 1):
        members = [i for i in range(len(rows)) if rows[i, 4] > 0.25 and round(rows[i, 3]) == cell]
        members.sort(key=lambda i: (rows[i, 2], keys[i]))
        m = len(members)
        for i, j in itertools.combinations(range(1, m + 1), 2):
            if j - i <= min(k, i // ends, (m + 1 - j) // ends):
                a, b = rows[members[i - 1]], rows[members[j - 1]]
                product = int(np.sign(a[0] - b[0]) * np.sign(a[1] - b[1]))
                signed += product
                untied += abs(product)
    return PairSums(signed, untied)


@pytest.mark.parametrize("ends", [2, 4, ENDS])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_sums_are_those_of_the_definition_with_ties_cells_and_rows_left_out(k: int, ends: int) -> None:
    rng = np.random.default_rng(k)
    for n in (1, 2, 24, 71, 131):
        rows = rng.integers(0, 4, (n, 5)) / 3
        assert sums(rows, k, ends) == by_hand(rows, k, ends)


@pytest.mark.parametrize("ends", [2, 4, ENDS])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_pairs_are_counted_as_they_are_made(k: int, ends: int) -> None:
    for n in (1, 23, 24, 60, 27 * k, 28 * k, 28 * k + 1, 150):
        line = np.arange(float(n))
        degrees = np.zeros(n)
        for i, j in itertools.combinations(range(1, n + 1), 2):
            if j - i <= min(k, i // ends, (n + 1 - j) // ends):
                degrees[[i - 1, j - 1]] += 1
        assert pair_counts(n, k, ends) == (degrees.sum() / 2, (degrees * (degrees - 1)).sum())
        keys = np.arange(n)
        whole = pair_sums(line, line, line, np.zeros(n, dtype=np.int64), keys, np.ones(n, dtype=bool), k, ends)
        assert whole == (pair_counts(n, k, ends)[0],) * 2


@pytest.mark.proves("neighbour-variance")
def test_several_cells_or_fewer_rows_have_no_more_pairs_and_no_more_that_share_a_row() -> None:
    rng = np.random.default_rng(5)
    for _ in range(300):
        k, sizes = int(rng.integers(1, 6)), rng.integers(0, 160, int(rng.integers(1, 5)))
        ends = int(rng.integers(1, 9))
        parts = np.array([pair_counts(int(m), k, ends) for m in sizes]).sum(axis=0)
        whole = pair_counts(int(sizes.sum()) + int(rng.integers(0, 3)), k, ends)
        assert (parts <= whole).all() and whole[1] <= (4 * k - 2) * whole[0]


@pytest.mark.proves("neighbour-variance")
@pytest.mark.parametrize("chances", [(0.5, 0.3, 0.2), (0.9, 0.05, 0.05), (0.5, 0.5, 0.0)])
def test_the_null_variance_is_exact_and_below_its_bounds_over_all_columns_of_three_values(chances: Any) -> None:
    n, k, ends = 10, 1, 4
    columns = np.array(list(itertools.product(range(3), repeat=n)))
    weights = np.prod(np.asarray(chances)[columns], axis=1)
    pairs = [(i, i + 1) for i in range(n) if min((i + 1) // ends, (n - i - 1) // ends) >= 1]
    signs = np.stack([np.sign(columns[:, i] - columns[:, j]) for i, j in pairs], axis=1).astype(float)
    covariance = (signs * weights[:, None]).T @ signs
    variance = float((covariance**2).sum())  # x and y alike and independent
    q, c = 1 - np.sum(np.square(chances)), (1 - np.sum(np.power(chances, 3))) / 3
    N, D = pair_counts(n, k, ends)
    assert len(pairs) == N and variance == pytest.approx(N * q**2 + D * c**2, rel=1e-9)
    assert variance <= null_variance(n, k, N * q**2, ends) <= null_variance(n, k, ends=ends)


def test_without_ties_the_variance_is_that_of_the_formula() -> None:
    rng, n, k = np.random.default_rng(6), 150, 4
    keys, cells, kept = np.arange(n), np.zeros(n, dtype=np.int64), np.ones(n, dtype=bool)
    z = np.arange(float(n))
    found = [pair_sums(*rng.standard_normal((2, n)), z, cells, keys, kept, k).signed for _ in range(2_000)]
    # A variance of 2,000 about normal sums is within 18 % but for 1e-8.
    assert 0.82 < np.var(found) / null_variance(n, k) < 1.18


def test_how_two_rows_stand_does_not_depend_on_a_third() -> None:
    rng = np.random.default_rng(7)
    for _ in range(200):
        n = 12
        z, cells, keys = rng.integers(0, 3, n).astype(float), rng.integers(0, 2, n), rng.permutation(n)
        kept = rng.random(n) < 0.8
        other = z.copy(), cells.copy(), kept.copy()
        for column, value in zip(other, (rng.integers(0, 3), rng.integers(0, 2), rng.random() < 0.5), strict=True):
            column[4] = value
        orders = z_order(z, cells, keys, kept), z_order(other[0], other[1], keys, other[2])
        assert [row for row in orders[0] if row != 4] == [row for row in orders[1] if row != 4]


@pytest.mark.parametrize("k", [0, -1, 1_001])
def test_too_few_or_too_many_neighbours_are_refused(k: int) -> None:
    with pytest.raises(ParameterError):
        signed_sensitivity(k)
