"""The factor model: what one donor moves, and what follows from a release."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import dpcausal as dpc
from dpcausal.audit import falsify
from dpcausal.privacy.sensitivity import Norm
from dpcausal.synthetic_control.donor_rows import FINE, Grid, at_length, squared_lengths, within_radius
from dpcausal.synthetic_control.methods import factor
from tests.conformance import check_claim
from tests.synthetic_control.neighbours import granted

RADIUS = 3000
GRID = Grid(2.0**-12, 10, 2**24)


def whole(rows: Any) -> Any:
    return np.rint(rows * FINE).astype(np.int64)


def model(mean: Any, directions: Any, noise: float) -> factor.FactorRelease:
    return factor.FactorRelease(np.asarray(mean, dtype=np.int64), directions, noise, 1.0)


@pytest.mark.proves("row-radius")
def test_no_donor_moves_a_count_of_rows_by_more_than_one() -> None:
    check_claim(
        lambda rows: factor.rows_within(squared_lengths(whole(rows)), RADIUS),
        lambda m: factor.count_sensitivity(),
        sizes=(2, 7),
        columns=3,
        low=-1.0,
        slack=0.0,
        evaluations=2_800,
    )


@pytest.mark.proves("clipped-sum")
def test_no_donor_moves_the_clipped_sum_past_the_bound() -> None:
    check_claim(
        lambda rows: within_radius(whole(rows), RADIUS).sum(axis=0),
        lambda m: factor.sum_sensitivity(RADIUS),
        sizes=(1, 6),
        columns=2,
        low=-1.0,
        slack=0.0,
        evaluations=2_800,
    )


def axes_apart(rng: Any, m: int, low: Any, high: Any) -> Any:
    rows = np.zeros((m, 2))
    rows[0, 0] = 1.0
    return rows


def directions(rows: Any) -> Any:
    return factor.products(at_length(whole(rows), factor.LENGTH))


@pytest.mark.proves("direction-products")
def test_no_donor_moves_the_products_past_the_bound() -> None:
    check_claim(
        directions, lambda m: factor.products_sensitivity(), sizes=(1, 6), columns=2, low=-1.0, slack=0.0,
        evaluations=2_800, starts={"axes apart": axes_apart},
    )  # fmt: skip


@pytest.mark.proves("direction-products")
def test_the_bound_of_the_products_is_attained_and_heavier_corners_are_caught() -> None:
    one, other = (factor.products(at_length(np.array([row]), factor.LENGTH)) for row in ([7, 0], [0, 2**29]))
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
    assert factor.symmetric(factor.products(rows).astype(np.float64), 4).tolist() == exact


@pytest.mark.proves("clipped-sum")
def test_the_clip_is_exact_for_whole_numbers_and_leaves_short_rows_alone() -> None:
    rng = np.random.default_rng(3)
    rows = rng.integers(-2 * FINE, 2 * FINE, (3_000, 5))
    for radius in (1, 7, 4_096, 9_000):
        clipped = within_radius(rows, radius)
        assert (squared_lengths(clipped) <= radius * radius).all()
        short = squared_lengths(rows) <= radius * radius
        assert (clipped[short] == rows[short]).all()


def test_without_privacy_the_model_is_that_of_numpy() -> None:
    made = dpc.simulate.factor_panel(400, seed=4)
    released = factor.release(made.donors, GRID, granted(dpc.NoPrivacy()), dpc.NoPrivacy())
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


def test_the_triangle_is_undone() -> None:
    rows = np.array([[1, 2, 3], [0, -1, 5]])
    matrix = factor.symmetric(factor.products(rows).astype(np.float64), 3)
    np.testing.assert_allclose(matrix, rows.T @ rows)


def test_the_moments_of_other_engines_are_the_same_whole_numbers() -> None:
    """DuckDB and polars, from the long table: the rows less their last value, cut to a radius, and their products."""
    made = dpc.simulate.factor_panel(60, seed=8)
    z = GRID.rows(made.donors)
    clipped, ways = within_radius(z, 2_000), at_length(z, factor.LENGTH)
    assert (clipped != z).any()
    n, T = z.shape
    unit, time = np.repeat(np.arange(n), T), np.tile(np.arange(T), n)
    long = pl.DataFrame({"u": unit, "t": time, "x": made.donors.ravel()})
    connection = duckdb.connect()
    connection.register("long", long.to_arrow())
    cut = (
        "with g as (select u, t, cast(round_even(x * 4096, 0) as bigint) q from long),"
        " l as (select u, q as last from g where t = 9),"
        " z as (select g.u, t, q - last as z from g join l on g.u = l.u),"
        " s as (select u, sum(z * z) as s from z group by u),"
        " c as (select z.u, t, case when s.s <= 4000000 then z else"
        " cast(trunc(z * (2000 * (1 - 1e-12) / sqrt(cast(s.s as double)))) as bigint) end as c"
        " from z join s on z.u = s.u),"
        " d as (select z.u, t, cast(trunc(z * (16384 * (1 - 1e-12) / sqrt(cast(greatest(s.s, 1) as double))))"
        " as bigint) as d from z join s on z.u = s.u)"
    )
    sums = connection.execute(cut + " select sum(c) from c group by t order by t").fetchall()
    assert [int(value[0]) for value in sums] == clipped.sum(axis=0).tolist()
    crossed = connection.execute(
        cut + " select sum(a.d * b.d) from d a join d b on a.u = b.u and a.t <= b.t group by a.t, b.t order by a.t, b.t"
    ).fetchall()
    weights = np.where(np.eye(T, dtype=bool), factor.DIAGONAL, factor.OFF)[np.triu_indices(T)]
    assert [int(value[0]) for value in crossed] == (factor.products(ways) // weights).tolist()

    wide = long.pivot(on="t", index="u", values="x").drop("u")
    scaled = wide.select((pl.all() * FINE).round(mode="half_to_even").cast(pl.Int64))
    less = scaled.select([(pl.col(name) - pl.col("9")).alias(name) for name in scaled.columns])
    long_rows = less.with_columns(s=pl.sum_horizontal([pl.col(name) ** 2 for name in less.columns]))
    factor_of = 2000 * (1 - 1e-12) / pl.col("s").cast(pl.Float64).sqrt()
    cut_rows = long_rows.select([
        pl.when(pl.col("s") <= 4_000_000).then(pl.col(name))
        .otherwise((pl.col(name) * factor_of).cast(pl.Int64)).alias(name)
        for name in less.columns
    ])  # fmt: skip
    assert cut_rows.sum().row(0) == tuple(clipped.sum(axis=0).tolist())


def test_a_release_of_noise_alone_still_makes_a_forecast() -> None:
    rng = np.random.default_rng(9)
    for size in (0.0, 1e-9, 1e3, 1e12):
        matrix = size * rng.normal(size=(6, 6))
        fitted = factor.forecaster(model(np.zeros(6), matrix + matrix.T, size / 100), 4)
        assert np.isfinite(fitted.change(rng.normal(size=(3, 6)))).all()
        missed, scales = fitted.measured(rng.integers(-(2**28), 2**28, (3, 6)))
        assert np.isfinite(missed).all() and (scales > 0).all()


def test_with_any_number_of_donors_a_unit_keeps_periods_to_tell_its_own_noise_by() -> None:
    """Seen to fail: without noise every eigenvalue passed the threshold of noise and counted as a factor."""
    loadings = np.random.default_rng(12).normal(size=(2, 13))
    for own in (0.01, 0.3):
        fitted = factor.forecaster(model(np.zeros(13), loadings.T @ loadings + own * np.eye(13), 0.0), 10)
        assert (len(fitted.loadings), fitted.freedom) == (2, 7) and fitted.rest == pytest.approx(own, rel=1e-6)


def test_the_level_is_no_factor_beside_the_level() -> None:
    """Seen to fail: noise of the last value moves a whole row, which took a period of each unit's own noise."""
    for matrix, factors in ((np.ones((13, 13)) + 0.1 * np.eye(13), 0),
                            (np.ones((13, 13)) + np.diag(np.arange(13.0)) @ np.ones((13, 13)) @ np.diag(np.arange(13.0))
                             + 0.1 * np.eye(13), 1)):  # fmt: skip
        fitted = factor.forecaster(model(np.zeros(13), matrix, 0.0), 10)
        assert (len(fitted.loadings), fitted.freedom) == (factors, 9 - factors)
        np.testing.assert_allclose(fitted.basis @ fitted.basis.T, np.eye(1 + factors), atol=1e-6)
