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
from dpcausal.synthetic_control import factor
from dpcausal.synthetic_control.rows import GRID, from_last, largest_length, on_grid, squared_lengths, within_radius
from tests.conformance import check_claim
from tests.synthetic_control.neighbours import granted

RADIUS = 3000


def whole(rows: Any) -> Any:
    return np.rint(rows * GRID).astype(np.int64)


@pytest.mark.proves("row-radius")
def test_no_donor_moves_a_count_of_rows_by_more_than_one() -> None:
    check_claim(
        lambda rows: factor.rows_within(whole(rows), RADIUS),
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


@pytest.mark.proves("clipped-products")
def test_no_donor_moves_the_products_past_the_bound() -> None:
    check_claim(
        lambda rows: factor.products(within_radius(whole(rows), RADIUS)),
        lambda m: factor.products_sensitivity(RADIUS),
        sizes=(1, 6),
        columns=2,
        low=-1.0,
        slack=0.0,
        evaluations=2_800,
        starts={"axes apart": axes_apart},
    )


@pytest.mark.proves("clipped-products")
def test_the_bound_of_the_products_is_attained_and_heavier_corners_are_caught() -> None:
    one, other = np.array([[RADIUS, 0]]), np.array([[0, RADIUS]])
    moved = float(np.linalg.norm((factor.products(one) - factor.products(other)).astype(float)))
    assert 0 <= factor.products_sensitivity(RADIUS).bound - moved < 2

    def heavy(rows: Any) -> Any:
        total = within_radius(whole(rows), RADIUS)
        matrix = (total.T @ total).astype(float)
        return np.array([5 * matrix[0, 0], 10 * matrix[0, 1], 5 * matrix[1, 1]])

    assert falsify(heavy, factor.products_sensitivity(RADIUS).bound, sizes=(1,), columns=2, low=-1.0, norm=Norm.L2,
                   evaluations=3_000).violated  # fmt: skip


@pytest.mark.proves("clipped-sum")
def test_the_clip_is_exact_for_whole_numbers_and_leaves_short_rows_alone() -> None:
    rng = np.random.default_rng(3)
    rows = rng.integers(-2 * GRID, 2 * GRID, (3_000, 5))
    for radius in (1, 7, 4_096, 9_000):
        clipped = within_radius(rows, radius)
        assert (squared_lengths(clipped) <= radius * radius).all()
        short = squared_lengths(rows) <= radius * radius
        assert (clipped[short] == rows[short]).all()
    longest = np.sqrt(squared_lengths(from_last(on_grid(np.array([[-1.0, 1, 1, 1, -1]])), 5)).max())
    assert longest <= largest_length(5) <= longest * np.sqrt(4 / 3) + 2


def test_without_privacy_the_moments_are_those_of_numpy() -> None:
    made = dpc.simulate.factor_panel(400, seed=4)
    rows = on_grid(made.donors)
    released = factor.release(rows, 10, granted(dpc.NoPrivacy()), dpc.NoPrivacy())
    z = from_last(rows, 10) / GRID
    # 95 % of the rows are not clipped.
    assert np.abs(released.mean - z.mean(axis=0)).max() < 0.01
    values = np.diag(np.cov(z.T))
    assert np.abs(np.diag(released.covariance) - values).max() < 0.12 * values.max()
    assert released.covariance_noise == released.mean_noise == 0


def test_the_released_model_forecasts_as_the_normal_law_does() -> None:
    rng = np.random.default_rng(5)
    loadings = rng.normal(size=(2, 6))
    covariance = loadings.T @ loadings + 0.3 * np.eye(6)
    model = factor.FactorRelease(np.arange(6) / 10, covariance, 0.0, 0.0)
    fitted = factor.forecaster(model, 4)
    expected = np.linalg.solve(covariance[:4, :4], covariance[:4, 4:])
    # Without noise all eigenvalues are kept, and the residual variance is the floor.
    np.testing.assert_allclose(fitted.slopes, expected, atol=2e-3)
    row = rng.normal(size=6)
    np.testing.assert_allclose(fitted.change(row), [0.4, 0.5] + (row[:4] - model.mean[:4]) @ fitted.slopes)


def test_noise_alone_keeps_no_factor() -> None:
    """Eigenvalues of 40 × 40 symmetric noise pass s√(2T) in about none of 50 draws: at most 10 (chance below 1e-9)."""
    rng, T = np.random.default_rng(6), 40
    kept = 0
    for _ in range(50):
        noise = rng.normal(size=(T, T))
        symmetric = np.triu(noise, 1) / np.sqrt(2)
        matrix = symmetric + symmetric.T + np.diag(rng.normal(size=T))
        kept += factor.forecaster(factor.FactorRelease(np.zeros(T), matrix, 0.1, 1.0), 30).rank
    assert kept <= 10


def test_the_triangle_is_undone() -> None:
    rows = np.array([[1, 2, 3], [0, -1, 5]])
    matrix = factor.symmetric(factor.products(rows).astype(np.float64), 3)
    np.testing.assert_allclose(matrix, rows.T @ rows)


def test_the_moments_of_other_engines_are_the_same_whole_numbers() -> None:
    """DuckDB and polars, from the long table: the rows less their last value, cut to a radius, and their products."""
    made = dpc.simulate.factor_panel(60, seed=8)
    rows = on_grid(made.donors)
    z = from_last(rows, 10)
    clipped = within_radius(z, 2_000)
    assert (clipped != z).any()
    n, T = rows.shape
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
        " from z join s on z.u = s.u)"
    )
    sums = connection.execute(cut + " select sum(c) from c group by t order by t").fetchall()
    assert [int(value[0]) for value in sums] == clipped.sum(axis=0).tolist()
    crossed = connection.execute(
        cut + " select sum(a.c * b.c) from c a join c b on a.u = b.u and a.t <= b.t group by a.t, b.t order by a.t, b.t"
    ).fetchall()
    weights = np.where(np.eye(T, dtype=bool), factor.DIAGONAL, factor.OFF)[np.triu_indices(T)]
    assert [int(value[0]) for value in crossed] == (factor.products(clipped) // weights).tolist()

    wide = long.pivot(on="t", index="u", values="x").drop("u")
    scaled = wide.select((pl.all() * GRID).round(mode="half_to_even").cast(pl.Int64))
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
        fitted = factor.forecaster(factor.FactorRelease(np.zeros(6), matrix + matrix.T, 0.1, size / 100), 4)
        assert np.isfinite(fitted.change(rng.normal(size=(3, 6)))).all()
