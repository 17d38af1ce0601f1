"""The factor model: what one donor moves, and what follows from a release."""

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.audit import falsify
from dpcausal.privacy.sensitivity import Norm
from dpcausal.synthetic_control.donor_rows import FINE, Grid, at_length, squared_lengths, within_radius
from dpcausal.synthetic_control.methods import factor
from tests.synthetic_control.neighbours import granted

GRID = Grid(2.0**-12, 10, 2**24)


def whole(rows: Any) -> Any:
    return np.rint(rows * FINE).astype(np.int64)


def model(mean: Any, directions: Any, noise: float) -> factor.FactorRelease:
    return factor.FactorRelease(np.asarray(mean, dtype=np.int64), directions, noise, 1.0)


@pytest.mark.proves("direction-products")
def test_the_bound_of_the_products_is_attained_and_heavier_corners_are_caught() -> None:
    one, other = (factor.residual_products(at_length(np.array([row]), factor.LENGTH)) for row in ([7, 0], [0, 2**29]))
    moved, bound = float(np.linalg.norm((one - other).astype(float))), factor.products_sensitivity().bound
    assert bound * (1 - 2 / factor.LENGTH) < moved <= bound

    def heavy(rows: Any) -> Any:
        total = at_length(whole(rows), factor.LENGTH)
        matrix = (total.T @ total).astype(float)
        return np.array([5 * matrix[0, 0], 10 * matrix[0, 1], 5 * matrix[1, 1]])

    assert falsify(heavy, bound, sizes=(1,), columns=2, low=-1.0, norm=Norm.L2, evaluations=3_000).violated


@pytest.mark.proves("direction-products")
@pytest.mark.proves("clipped-sum")
@pytest.mark.parametrize("periods", [2, 13, 40, 1_000])
def test_no_row_however_long_passes_its_length_and_no_square_overflows(periods: int) -> None:
    """Rows up to the largest there are, beside exact whole numbers: an overflow made a length of 0 of 2³²."""
    grid, rng = Grid.of([1e-300], 1, periods), np.random.default_rng(3)
    assert grid.step == 2.0**-40 and 16 * periods * grid.most**2 < 2**62
    scaled = np.sign(rng.uniform(-1, 1, (40, periods))) * 10.0 ** -rng.integers(0, 14, (40, 1))
    rows = 2 * grid.rows(scaled)  # as a row less a mean of the same size
    assert np.abs(rows).max() == 2 * grid.most
    exact = [sum(int(value) ** 2 for value in row) for row in rows]
    assert squared_lengths(rows).tolist() == exact
    for radius in (1, 9_000, factor.LENGTH):
        for made in (within_radius(rows, radius), at_length(rows, radius)):
            assert max(sum(int(value) ** 2 for value in row) for row in made) <= radius**2
    assert (at_length(np.zeros((2, 3), dtype=np.int64), factor.LENGTH) == 0).all()


def test_exact_sums_of_directions_do_not_depend_on_the_kernel() -> None:
    """A block's products in floats are the whole numbers that Python has, at the largest length."""
    rng = np.random.default_rng(4)
    rows = at_length(rng.integers(-(2**29), 2**29, (300, 4)), factor.LENGTH)
    exact = [[sum(int(a) * int(b) for a, b in zip(rows[:, i], rows[:, j], strict=True)) for j in range(4)]
             for i in range(4)]  # fmt: skip
    assert factor.symmetric_matrix(factor.residual_products(rows).astype(np.float64), 4).tolist() == exact


@pytest.mark.proves("row-radius")
@pytest.mark.proves("clipped-sum")
def test_the_clip_is_exact_for_whole_numbers_and_leaves_short_rows_alone() -> None:
    rng = np.random.default_rng(3)
    rows = rng.integers(-2 * FINE, 2 * FINE, (3_000, 5))
    for radius in (1, 7, 4_096, 9_000):
        clipped = within_radius(rows, radius)
        assert (squared_lengths(clipped) <= radius * radius).all()
        short = (rows**2).sum(axis=1) <= radius * radius
        assert (clipped[short] == rows[short]).all()
        assert (
            factor.rows_within(squared_lengths(rows), radius) == short.sum() and factor.count_sensitivity().bound == 1
        )


def test_without_privacy_the_model_is_that_of_numpy() -> None:
    made = dpc.simulate.factor_panel(400, seed=4)
    released = factor.release_model(made.donors, GRID, granted(dpc.NoPrivacy()), dpc.NoPrivacy())
    z = (made.donors - made.donors[:, 9:10]) * FINE
    # 80 % of the rows are not clipped.
    assert np.abs(released.mean - z.mean(axis=0)).max() < 0.1 * np.abs(z).std()
    left = z - released.mean
    directions = left / np.linalg.norm(left, axis=1)[:, None]
    np.testing.assert_allclose(released.directions, directions.T @ directions / 400, atol=1e-3)
    assert 0.25 < released.spread / np.mean((left**2).sum(axis=1)) < 4 and released.noise == 0


def test_the_released_model_forecasts_as_the_normal_law_does() -> None:
    rng = np.random.default_rng(5)
    loadings = rng.normal(size=(2, 6))
    covariance = loadings.T @ loadings + 0.3 * np.eye(6)
    fitted = factor.forecaster(model(np.arange(6), covariance, 0.0), 4)
    expected = np.linalg.solve(covariance[:4, :4], covariance[:4, 4:])
    # Without noise all eigenvalues are kept, and the residual variance is the floor.
    np.testing.assert_allclose(fitted.slopes, expected, atol=2e-3)
    row = rng.normal(size=6)
    np.testing.assert_allclose(fitted.change(row[None])[0], [4, 5] + (row[:4] - np.arange(4)) @ fitted.slopes)


def test_a_units_scale_is_what_level_and_factors_leave_of_its_past() -> None:
    rng = np.random.default_rng(11)
    matrix = 10 * np.outer(line := rng.normal(size=9), line) + 0.1 * np.eye(9)
    fitted = factor.forecaster(model(np.zeros(9), matrix, 0.1), 6)
    assert len(fitted.loadings) == 1 and fitted.freedom == 4
    rows = rng.integers(-9_000, 9_000, (5, 9))
    missed, scales = fitted.measured(rows)
    basis, _ = np.linalg.qr(np.column_stack([np.ones(6), fitted.loadings[0, :6]]))
    left = rows[:, :6] - rows[:, :6] @ basis @ basis.T
    np.testing.assert_allclose(scales**2, ((left**2).sum(axis=1) + 1.5 * fitted.rest) / 5.5, rtol=1e-6)
    np.testing.assert_allclose(missed, rows[:, 6:].mean(axis=1) - rows[:, :6] @ fitted.slopes.mean(axis=1), atol=0.01)


def test_calm_and_volatile_are_told_apart_by_the_differences_that_the_released_model_expects() -> None:
    rng = np.random.default_rng(13)
    loadings, mean = rng.normal(size=(2, 8)), np.arange(8) ** 2
    fitted = factor.forecaster(model(mean, loadings.T @ loadings + 0.3 * np.eye(8), 0.0), 5)
    drawn = rng.multivariate_normal(fitted.mean, fitted.covariance, 200_000)[:, :5]
    assert fitted.swing == pytest.approx(0.35 * (np.diff(drawn, axis=1) ** 2).mean(), rel=0.02)
    rows = np.array([[7] * 8, [10**6 * (-1) ** k for k in range(8)]])
    assert fitted.swings(rows).tolist() == [-1, 1]
    unit = np.sqrt(fitted.swing * 1.5)
    assert fitted.swings(np.rint(1000 * unit * np.arange(8))[None] / 1000)[0] == pytest.approx(0.4, abs=1e-3)


def test_noise_alone_keeps_no_factor() -> None:
    """Eigenvalues of 40 × 40 symmetric noise pass s√(2T) in about none of 50 draws: at most 10 (chance below 1e-9)."""
    rng, T = np.random.default_rng(6), 40
    kept = 0
    for _ in range(50):
        noise = rng.normal(size=(T, T))
        symmetric = np.triu(noise, 1) / np.sqrt(2)
        matrix = symmetric + symmetric.T + np.diag(rng.normal(size=T))
        kept += len(factor.forecaster(model(np.zeros(T), matrix, 1.0), 30).loadings)
    assert kept <= 10


def test_a_release_of_noise_alone_still_makes_a_forecast() -> None:
    rng = np.random.default_rng(9)
    for size in (0.0, 1e-9, 1e3, 1e12):
        matrix = size * rng.normal(size=(6, 6))
        fitted = factor.forecaster(model(np.zeros(6), matrix + matrix.T, size / 100), 4)
        assert np.isfinite(fitted.change(rng.normal(size=(3, 6)))).all()
        missed, scales = fitted.measured(rng.integers(-(2**28), 2**28, (3, 6)))
        assert np.isfinite(missed).all() and (scales > 0).all()


def test_with_any_number_of_donors_a_unit_keeps_periods_to_tell_its_own_noise_by() -> None:
    loadings = np.random.default_rng(12).normal(size=(2, 13))
    for own in (0.01, 0.3):
        fitted = factor.forecaster(model(np.zeros(13), loadings.T @ loadings + own * np.eye(13), 0.0), 10)
        assert (len(fitted.loadings), fitted.freedom) == (2, 7) and fitted.rest == pytest.approx(own, rel=1e-6)


def test_the_level_is_no_factor_beside_the_level() -> None:
    for matrix, factors in ((np.ones((13, 13)) + 0.1 * np.eye(13), 0),
                            (np.ones((13, 13)) + np.diag(np.arange(13.0)) @ np.ones((13, 13)) @ np.diag(np.arange(13.0))
                             + 0.1 * np.eye(13), 1)):  # fmt: skip
        fitted = factor.forecaster(model(np.zeros(13), matrix, 0.0), 10)
        assert (len(fitted.loadings), fitted.freedom) == (factors, 9 - factors)
        np.testing.assert_allclose(fitted.basis @ fitted.basis.T, np.eye(1 + factors), atol=1e-6)


def test_constant_donors_are_answered_without_privacy_and_show_no_interval() -> None:
    for target in (np.full(9, 5.0), 5 + np.random.default_rng(0).normal(size=9)):
        panel = dpc.Panel.from_arrays(np.full((300, 9), 5.0), target, start=6, bounds=dpc.Bounded(0, 10),
                                      ledger=dpc.Ledger.without_privacy())  # fmt: skip
        found = dpc.synthetic_control(panel, loss=dpc.NoPrivacy(), method="factor", force=True)
        assert np.isfinite(found.att) and found.interval is None
