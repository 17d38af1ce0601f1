"""Sums by bins and along functions: exact, of rows in any order, and within their bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpcausal.effects.cells.corner_counts import GRID
from dpcausal.effects.estimators.residual_sums import (
    capped_squares,
    capped_squares_sensitivity,
    histograms,
    histograms_sensitivity,
    pair_functions,
    pair_functions_sensitivity,
    residual_sums,
    residual_sums_sensitivity,
)
from tests.conformance import check_claim
from tests.registry.effects import (
    IN_BINS,
    OF_COLUMNS,
    OF_PAIRS,
    OF_SQUARES,
    histograms_of,
    pairs_of,
    residuals_of,
    squares_of,
)

WHOLE = np.array([GRID])


@pytest.mark.proves("histograms")
def test_the_bound_of_histograms_holds_is_reached_and_5_percent_less_is_caught() -> None:
    check_claim(histograms_of, lambda m: histograms_sensitivity(2), sizes=(4, 9), **OF_COLUMNS)


@pytest.mark.proves("residual-sums")
def test_the_bound_of_residual_sums_holds_is_reached_and_5_percent_less_is_caught() -> None:
    check_claim(residuals_of, lambda m: residual_sums_sensitivity(2), sizes=(4, 9), **IN_BINS)


@pytest.mark.proves("pair-functions")
def test_the_bound_of_pair_functions_holds_is_reached_and_5_percent_less_is_caught() -> None:
    check_claim(pairs_of, lambda m: pair_functions_sensitivity(2, 2), sizes=(4, 9), **OF_PAIRS)


@pytest.mark.proves("capped-squares")
def test_the_bound_of_capped_squares_holds_is_reached_and_5_percent_less_is_caught() -> None:
    check_claim(squares_of, lambda m: capped_squares_sensitivity(2), sizes=(4, 9), **OF_SQUARES)


@pytest.mark.proves("residual-sums")
@pytest.mark.parametrize("count", [1, 2, 3])
def test_residuals_that_go_from_end_to_end_in_one_bin_attain_the_bound(count: int) -> None:
    low, high = (residual_sums(np.array([1]), 4, np.full((1, count), end), WHOLE) for end in (-1.0, 1.0))
    moved = float(np.linalg.norm((high - low).astype(float)))
    assert moved == pytest.approx(float(residual_sums_sensitivity(count).bound), rel=1e-15)


@pytest.mark.proves("pair-functions")
def test_functions_at_their_ends_attain_the_bound() -> None:
    functions = np.array([[1.0, -1.0, 1.0]])
    low, high = (pair_functions(functions, np.full((1, 2), end), WHOLE) for end in (-1.0, 1.0))
    moved = float(np.linalg.norm((high - low).astype(float)))
    assert moved == pytest.approx(float(pair_functions_sensitivity(3, 2).bound), rel=1e-15)


@pytest.mark.proves("residual-sums")
def test_a_person_of_several_rows_moves_no_sum_farther_than_one_row() -> None:
    """Brute force over where two rows of half the mass lie, and how large their residuals are, before and after."""
    mass, ends, bound = np.full(2, GRID // 2), (-1.0, 0.3, 1.0), float(residual_sums_sensitivity(1).bound)
    sums = [
        residual_sums(np.array(cells), 2, np.array(values)[:, None], mass).astype(float)
        for cells in ([0, 0], [0, 1], [1, 1]) for values in ([a, b] for a in ends for b in ends)
    ]  # fmt: skip
    moved = max(float(np.linalg.norm(one - other)) for one in sums for other in sums)
    assert moved == pytest.approx(bound, rel=1e-15)


@pytest.mark.proves("histograms")
@pytest.mark.proves("capped-squares")
def test_sums_are_those_of_numpy_whatever_the_order() -> None:
    rng = np.random.default_rng(5)
    cells, values, mass = rng.integers(0, 8, 5_000), rng.uniform(-1, 1, (5_000, 2)), np.full(5_000, GRID)
    mass[rng.random(5_000) < 0.2] = 0
    order = rng.permutation(5_000)

    def made(places: Any) -> list[Any]:
        c, v, m = cells[places], values[places], mass[places]
        return [histograms(c[:, None], 8, m), residual_sums(c, 8, v, m), pair_functions(v[:, ::-1], v, m),
                capped_squares(v**2, m)]  # fmt: skip

    first = made(np.arange(5_000))
    assert all((one == other).all() for one, other in zip(first, made(order), strict=True))
    kept = mass > 0
    for cell in range(8):
        inside = kept & (cells == cell)
        assert first[0][0, cell] == GRID * inside.sum()
        assert first[1][:, cell] / GRID == pytest.approx(values[inside].sum(axis=0), abs=1e-4)
    assert first[2] / GRID == pytest.approx(values[kept].T @ values[kept, ::-1], abs=1e-4)
    assert first[3] / GRID == pytest.approx((values[kept] ** 2).sum(axis=0), abs=1e-4)


def test_what_is_no_number_or_outside_weighs_no_more_than_another() -> None:
    odd = np.array([[np.nan], [np.inf], [-np.inf], [1e300]])
    mass = np.full(4, GRID)
    assert residual_sums(np.arange(4), 4, odd, mass).ravel().tolist() == [0, GRID, -GRID, GRID]
    assert capped_squares(odd, mass).tolist() == [2 * GRID]
    assert pair_functions(odd, odd, mass).tolist() == [[3 * GRID]]
