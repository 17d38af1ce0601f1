"""Second moments on a grid: exact sums, and √2 R² reached and never passed."""

from fractions import Fraction

import numpy as np
import pytest

from dpcausal.statistics.moments import clip_rows, grid_bits, second_moments, unpacked_matrix, variance_roots

RADIUS = 1.5


@pytest.mark.proves("second-moments")
def test_sums_are_exact_and_rows_no_longer_than_the_radius() -> None:
    rng = np.random.default_rng(4)
    rows = rng.normal(0, 2, (5_000, 4))
    bits = grid_bits(len(rows), RADIUS)
    grid = clip_rows(rows, RADIUS, bits)
    integers = [[int(value) for value in row] for row in grid]
    assert (grid == np.trunc(grid)).all()
    limit = Fraction(RADIUS) * 2**bits
    assert all(sum(value * value for value in row) <= limit**2 for row in integers)
    exact = sum(row[0] * row[1] for row in integers)
    assert unpacked_matrix(second_moments(grid), 4)[0, 1] == pytest.approx(exact, rel=1e-15)
    assert second_moments(grid)[0] == sum(row[0] ** 2 for row in integers)
    assert np.allclose(unpacked_matrix(second_moments(rows), 4), rows.T @ rows)
    assert np.allclose(clip_rows(np.array([[30.0, 40.0]]), 1.0, 30) / 2**30, [[0.6, 0.8]], atol=1e-8)


@pytest.mark.proves("second-moments")
@pytest.mark.parametrize("columns", [1, 2, 3, 7, 8, 9, 33])
def test_a_shortened_row_is_the_same_bits_wherever_it_stands_and_whatever_stands_beside_it(columns: int) -> None:
    rng = np.random.default_rng(columns)
    for n in (1, 2, 5, 8, 17, 64, 100, 257):
        rows = rng.normal(size=(n, columns)) * 10 ** rng.uniform(-3, 3, (n, 1))
        for order in "CF":
            clipped = clip_rows(np.array(rows, order=order), RADIUS, 16)  # type: ignore[call-overload]
            for place in range(n):
                assert (clip_rows(rows[place : place + 1], RADIUS, 16)[0] == clipped[place]).all()
            others = np.array(rows * 10 ** rng.uniform(-300, 200, rows.shape), order=order)  # type: ignore[call-overload]
            others[n // 2] = rows[n // 2]
            with np.errstate(all="ignore"):
                assert (clip_rows(others, RADIUS, 16)[n // 2] == clipped[n // 2]).all()


def test_roots_of_noisy_variances_scale_every_entry_to_a_finite_one() -> None:
    covariance = np.array([[-1e18, 3e17, 2.0], [3e17, 1e18, -4e8], [2.0, -4e8, 1.0]])
    roots = variance_roots(covariance)
    assert roots.tolist() == pytest.approx([1e9, 1e9, 1.0])
    assert np.abs(covariance / np.outer(roots, roots)).max() <= 1e12
    assert variance_roots(np.diag([4.0, 9.0])).tolist() == [2.0, 3.0]
