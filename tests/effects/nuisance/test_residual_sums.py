"""Sums by bins and along functions: exact, within their bounds, and their noise shrunken along wavelets."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from dpcausal.effects.cells.corner_counts import GRID
from dpcausal.effects.nuisance import residual_sums as sums


def moved(one: Any, other: Any) -> float:
    return float(np.linalg.norm((one - other).astype(float)))


@pytest.mark.proves("residual-sums")
def test_a_person_of_several_rows_moves_no_sum_farther_than_one_row() -> None:
    # Brute force over where two rows of half the mass lie, and how large their residuals are, before and after.
    mass, ends = np.full(2, GRID // 2), (-1.0, 0.3, 1.0)
    persons = [
        sums.residual_sums(np.array(cells), 2, np.array(values)[:, None], mass)
        for cells in ([0, 0], [0, 1], [1, 1]) for values in ([a, b] for a in ends for b in ends)
    ]  # fmt: skip
    farthest = max(moved(one, other) for one in persons for other in persons)
    assert farthest == pytest.approx(float(sums.residual_sums_sensitivity(1).bound), rel=1e-15)


@pytest.mark.proves("histograms")
@pytest.mark.proves("capped-squares")
def test_sums_are_those_of_numpy_whatever_the_order() -> None:
    rng = np.random.default_rng(5)
    cells, values, mass = rng.integers(0, 8, 5_000), rng.uniform(-1, 1, (5_000, 2)), np.full(5_000, GRID)
    mass[rng.random(5_000) < 0.2] = 0

    def all_sums(places: Any) -> list[Any]:
        c, v, m = cells[places], values[places], mass[places]
        pairs = sums.pair_functions(v[:, ::-1], v, m)
        counts = sums.histograms(np.stack([c, c // 4]).T, (8, 2), m)
        return [counts, sums.residual_sums(c, 8, v, m), pairs, sums.capped_squares(v**2, m)]

    first, complete = all_sums(np.arange(5_000)), mass > 0
    for one, other in zip(first, all_sums(rng.permutation(5_000)), strict=True):
        assert np.array_equal(one, other)
    for cell in range(8):
        inside = complete & (cells == cell)
        assert first[0][cell] == GRID * inside.sum()
        assert first[1][:, cell] / GRID == pytest.approx(values[inside].sum(axis=0), abs=1e-4)
    assert first[0][8:].tolist() == [first[0][:4].sum(), first[0][4:8].sum()]
    assert first[2] / GRID == pytest.approx(values[complete].T @ values[complete, ::-1], abs=1e-4)
    assert first[3] / GRID == pytest.approx((values[complete] ** 2).sum(axis=0), abs=1e-4)


def test_what_is_no_number_or_outside_weighs_no_more_than_another() -> None:
    odd, mass = np.array([[np.nan], [np.inf], [-np.inf], [1e300]]), np.full(4, GRID)
    assert sums.residual_sums(np.arange(4), 4, odd, mass).ravel().tolist() == [0, GRID, -GRID, GRID]
    assert sums.capped_squares(odd, mass).tolist() == [2 * GRID]
    assert sums.pair_functions(odd, odd, mass).tolist() == [[3 * GRID]]


@pytest.mark.parametrize("size", [1, 2, 16, 256])
def test_the_haar_transform_is_orthonormal_and_is_inverted(size: int) -> None:
    matrix = sums.haar(np.eye(size))
    assert matrix @ matrix.T == pytest.approx(np.eye(size), abs=1e-12)
    assert sums.inverse_haar(matrix) == pytest.approx(np.eye(size), abs=1e-12)
    assert sums.haar_levels(size).tolist() == [0, *(1 + int(np.log2(one)) for one in range(1, size))]


def test_the_nearest_counts_are_those_that_a_solver_finds() -> None:
    rng = np.random.default_rng(4)
    for noisy in (rng.normal(2, 3, 8), rng.normal(-5, 1, 8), np.zeros(8), np.array([9.0] + [-1.0] * 7)):
        found = minimize(
            lambda counts, noisy=noisy: np.square(counts - noisy).sum(), np.full(8, 10 / 8), bounds=[(0, None)] * 8,
            constraints={"type": "eq", "fun": lambda counts: counts.sum() - 10}, method="SLSQP", tol=1e-12,
        )  # fmt: skip
        assert sums.nearest_counts(noisy, 10.0) == pytest.approx(found.x, abs=1e-4)


def test_fine_cells_without_noise_are_the_counts_themselves() -> None:
    counts = np.random.default_rng(5).poisson(3, 256).astype(float)
    wide = counts.reshape(32, 8).sum(axis=1)
    assert sums.density(counts, wide, 0.0, counts.sum()) == pytest.approx(counts, abs=1e-5)


def test_quarters_of_a_skewed_column_lie_nearer_than_where_noise_is_cut_at_nothing() -> None:
    rng, n, noise, quarters = np.random.default_rng(6), 50_000, 90.0, (0.25, 0.5, 0.75)
    places = np.minimum((rng.exponential(size=n) / 10 * 2048).astype(int), 2047)
    fine, wide = np.bincount(places, minlength=2048), np.bincount(places // 64, minlength=32)
    truth, errors = np.quantile(places, quarters), []
    for _ in range(40):
        noisy, wider = fine + noise * rng.normal(size=2048), wide + noise * rng.normal(size=32)
        for counts in (sums.density(noisy, wider, noise, n), np.repeat(np.maximum(wider, 0.0) / 64, 64)):
            errors.append(np.interp(quarters, np.cumsum(counts) / counts.sum(), np.arange(2048)) - truth)
    own, cut = (np.sqrt(np.mean(np.square(errors[first::2]))) for first in (0, 1))
    assert own < cut / 2


def test_nothing_is_lost_without_noise_and_the_mean_alone_is_left_where_noise_hides_all() -> None:
    values = np.random.default_rng(1).normal(size=32)
    assert sums.smoothed(values, 0.0, 1.5, 0.25) == pytest.approx(values, abs=1e-12)
    assert sums.smoothed(values, 1e9, 1.5, 0.25) == pytest.approx(np.full(32, values.mean()), abs=1e-12)
    grid = values.reshape(4, 8)
    assert sums.smoothed_grid(grid, 0.0, 1.5, 0.7) == pytest.approx(grid, abs=1e-12)
    assert not sums.smoothed_grid(grid, 1e9, 1.5, 0.7).any()


def test_what_is_smoothed_is_the_mean_of_thresholded_transforms_of_all_circular_shifts() -> None:
    values = np.random.default_rng(3).normal(size=16) * np.linspace(0, 4, 16)
    mirrored = np.concatenate([values, values[::-1]])
    least = 0.5 * (1.5 + 0.25 * np.maximum(sums.haar_levels(32) - 3, 0))
    least[0] = 0.0
    total = np.zeros(32)
    for shift in range(32):
        coefficients = sums.haar(np.roll(mirrored, -shift))
        large = np.where(np.abs(coefficients) > least, coefficients, 0.0)
        total += np.roll(sums.inverse_haar(large), shift)
    assert sums.smoothed(values, 0.5, 1.5, 0.25) == pytest.approx(total[:16] / 32, abs=1e-12)


def test_thresholding_brings_noisy_steps_nearer() -> None:
    rng, truth = np.random.default_rng(2), np.repeat([0.0, 8.0, -4.0, 0.0], 16)
    noisy = truth + rng.normal(size=64)
    assert np.square(sums.smoothed(noisy, 1.0, 2.0, 0.25) - truth).sum() < np.square(noisy - truth).sum() / 2
