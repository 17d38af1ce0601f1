"""Third moments of whitened levels: a bound over all pairs of rows, attained; sums in groups; one row alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from dpcausal.statistics.level_moments import (
    constant,
    features,
    merged_levels,
    row_entries,
    third_entries,
    third_moments,
    third_moments_sensitivity,
    weight_sums,
)

EVEN = [np.array([0.5, 0.5])] * 3
SHARES = [np.array([0.5, 0.5]), np.array([0.2, 0.5, 0.3]), np.array([0.9, 0.1])]
PLACES = [(0, 1), (0, 1, 2), (0, 1)]
ALL = [(0, 1, 2)]


def of_rows(rows: Any, length: float, shares: Any = SHARES, places: Any = PLACES, squared: float = 2.0) -> Any:
    return third_moments(
        weight_sums(list(np.rint(rows).astype(np.int64).T), places, shares, squared, ALL, length, len(rows)),
        shares, ALL, len(rows),
    )  # fmt: skip


@pytest.mark.proves("third-moments")
def test_two_rows_of_three_even_columns_that_differ_in_all_attain_it() -> None:
    """Up to the constant beside the products: a twentieth in the square."""
    low, high = (of_rows(np.full((1, 3), code), 0.4, EVEN, [(0, 1)] * 3) for code in (0, 1))
    bound = float(third_moments_sensitivity(EVEN, ALL, 0.4, 1).bound)
    assert 0.975 * bound < np.linalg.norm(low - high) <= bound


@pytest.mark.proves("third-moments")
def test_the_bound_holds_for_all_pairs_of_rows_whatever_was_released_before() -> None:
    """For shares far from those of the rows, merged levels, any list and length, and a row that is left out."""
    rng = np.random.default_rng(1)
    for sizes in ((2, 2, 2), (3, 2, 4), (2, 2, 2, 3)):
        every = list(itertools.combinations(range(len(sizes)), 3))
        for trial in range(6):
            noisy = [rng.normal(20, 40, size) for size in sizes]
            places, shares = zip(*(merged_levels(part, 4.0 * (trial % 2)) for part in noisy), strict=True)
            triples = every[: 1 + trial % len(every)]
            length = float(np.exp(rng.uniform(-3, 3)))
            rows = [np.array([row]) for row in itertools.product(*map(range, sizes))]
            sums = [
                third_moments(
                    weight_sums(list(row.T), places, shares, 0.7 * row_entries(shares), triples, length, 10),
                    shares, triples, 10,
                ) for row in rows
            ]  # fmt: skip
            bound = float(third_moments_sensitivity(shares, triples, length, 10).bound)
            assert max(float(np.linalg.norm(a - b)) for a in [*sums, 0 * sums[0]] for b in sums) <= bound


def test_sums_add_over_groups_of_rows_bit_for_bit() -> None:
    rows = np.random.default_rng(3).integers(0, [2, 3, 2], (500, 3))
    whole, first, last = (
        weight_sums(list(part.T), PLACES, SHARES, 2.0, ALL, 1.5, 500) for part in (rows, rows[:77], rows[77:])
    )
    assert (first + last == whole).all() and not weight_sums(list(rows[:0].T), PLACES, SHARES, 2.0, ALL, 1.5, 500).any()


def test_a_row_counts_as_its_weighted_products() -> None:
    """By the textbook: w² of the second moments where that is shorter, else the length."""
    row = np.array([1, 2, 1])
    parts = [features(p)[code] for p, code in zip(SHARES, row, strict=True)]
    product = np.einsum("a,b,c->abc", *parts).ravel()
    phi = np.append(product, constant(third_entries(SHARES, ALL)))
    w2 = 2.0 / (1 + sum(float(part @ part) for part in parts))
    for length in (0.5, 50.0):
        g = min(w2, length / float(np.linalg.norm(phi)))
        np.testing.assert_allclose(of_rows(row[None, :], length), g * phi, rtol=1e-5)
