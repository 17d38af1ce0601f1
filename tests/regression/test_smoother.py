"""Residuals inside a block: ridge by other means, exact and by features alike, and total."""

import numpy as np
import pytest

from dpcausal.privacy.noise import generator_from_seed
from dpcausal.regression import smoother
from dpcausal.regression.smoother import LINEAR, WIDTH, Given, smooth, standardised


def given(z: np.ndarray, levels: np.ndarray | None = None) -> Given:
    return Given(z, np.empty((len(z), 0), dtype=np.int64) if levels is None else levels)


def some(n: int, d: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n + d)
    z = rng.standard_normal((n, d))
    return z, np.column_stack([np.sin(2 * z[:, 0]) + rng.standard_normal(n), z[:, -1] ** 2 + rng.standard_normal(n)])


def test_few_rows_have_the_residuals_of_kernel_ridge():
    from sklearn.kernel_ridge import KernelRidge

    z, U = some(80, 2)
    levels = np.arange(80)[:, None] % 3
    scaled, responses = standardised(z), standardised(U)
    K = LINEAR * scaled @ scaled.T + np.equal.outer(levels[:, 0], levels[:, 0])
    for column in scaled.T:
        K = K + np.exp(-0.5 * (np.subtract.outer(column, column) / WIDTH) ** 2)
    values, vectors = np.linalg.eigh(K)
    alpha = smoother._unexplained_share(responses, vectors.T @ responses, np.maximum(values, 0)) / 2
    fitted = KernelRidge(alpha=alpha, kernel="precomputed").fit(K, responses).predict(K)
    expected = responses - fitted
    found = smooth(given(z, levels), U, generator_from_seed(0))
    assert found.residuals == pytest.approx(expected - expected.mean(axis=0), abs=1e-8)
    M = np.linalg.matrix_power(np.eye(80) - K @ np.linalg.inv(K + alpha * np.eye(80)), 2)
    assert found.spread == pytest.approx(80 * np.trace(M @ M) / np.trace(M) ** 2, rel=1e-6)


def test_features_come_near_the_exact_residuals(monkeypatch):
    z, U = some(240, 2)
    exact = smooth(given(z), U, generator_from_seed(0))
    monkeypatch.setattr(smoother, "_has_few_rows", lambda *sizes: False)
    monkeypatch.setattr(smoother, "LEAST_PAIRS", 150)
    monkeypatch.setattr(smoother, "PAIRS", 150)
    near = smooth(given(z), U, generator_from_seed(0))
    assert (near.residuals != exact.residuals).any()
    assert np.corrcoef(exact.residuals[:, 0], near.residuals[:, 0])[0, 1] > 0.98
    assert near.spread == pytest.approx(exact.spread, rel=0.15)


@pytest.mark.parametrize("n", [60, 700])
def test_a_smooth_function_is_taken_out_and_noise_is_left(n):
    rng = np.random.default_rng(1)
    z, noise = rng.uniform(-2, 2, (n, 1)), rng.standard_normal(n)
    found = smooth(given(z), np.column_stack([5 * z[:, 0] + np.sin(3 * z[:, 0]), noise]), generator_from_seed(0))
    assert found.residuals[:, 0].std() < 0.15 and found.residuals[:, 1].std() > 0.6


@pytest.mark.parametrize("n", [60, 400])
def test_constant_tied_and_huge_columns_have_finite_residuals(n):
    for z in (np.zeros((n, 2)), np.full((n, 1), 1e99), np.repeat([[1e99], [-1e99]], n // 2, axis=0)):
        for u in (np.zeros((n, 2)), np.full((n, 1), 0.1), np.arange(n)[:, None] * 1e95, np.eye(n)[:, :1]):
            with np.errstate(all="ignore"):
                found = smooth(given(z, np.zeros((n, 1), dtype=np.int64)), u, generator_from_seed(0))
            assert np.isfinite(found.residuals).all() and found.spread >= 1
    assert (smooth(given(np.zeros((n, 1))), np.full((n, 1), 0.1), generator_from_seed(0)).residuals == 0).all()


def test_without_given_columns_responses_are_standardised():
    found = smooth(given(np.empty((50, 0))), np.arange(50.0)[:, None], generator_from_seed(0))
    assert found.residuals.mean() == pytest.approx(0, abs=1e-12) and found.residuals.std() == pytest.approx(1)
    assert found.spread == 1


@pytest.mark.parametrize(("rate", "share"), [(1.0, 1.0), (16.0, 1 / 3)])
def test_a_kernel_is_narrowed_where_a_rough_function_is_clearly_there(rate, share):
    rng = np.random.default_rng(3)
    z = rng.uniform(-2, 2, (900, 1))
    noise = rng.standard_normal((900, 2))
    u = standardised(np.column_stack([np.sin(rate * z[:, 0]) + 0.7 * noise[:, 0], noise[:, 1]]))
    levels = np.empty((900, 0), dtype=np.int64)
    found = smoother._kernel_width(standardised(z), levels, u, generator_from_seed(0))
    assert found == pytest.approx(WIDTH * share)
    assert smoother._kernel_width(standardised(z), levels, u[:, 1:], generator_from_seed(0)) == WIDTH


def test_two_hundred_given_columns_take_seconds_in_any_block():
    # Few features each, and the kernel itself where rows are few: of 200 columns up to 1,000.
    rng = np.random.default_rng(1)
    given = Given(rng.standard_normal((1_001, 200)), np.empty((1_001, 0), dtype=np.int64))
    U = given.numbers[:, :2] + 0.5 * rng.standard_normal((1_001, 2))
    for rows in (400, 1_001):
        part = np.arange(rows)
        found = smooth(given.at(part), U[part], generator_from_seed(1)).residuals
        assert found.shape == (rows, 2) and (found.std(axis=0) < 0.9).all()
