"""References without privacy, against scipy and closed forms."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import nnls

from dpcausal.papers.statistics.ridge_weights import ridge_weights
from dpcausal.synthetic_control.methods.simplex import simplex_weights


def by_nnls(X: Any, y: Any) -> Any:
    """Return simplex weights by non-negative least squares with a heavy row that asks for a sum of 1."""
    A, b = np.vstack([X.T, 1e4 * np.ones(len(X))]), np.append(y, 1e4)
    return nnls(A, b, maxiter=1000 * len(X))[0]


@pytest.mark.parametrize("n, T0", [(1, 5), (2, 1), (5, 10), (38, 19), (100, 10), (30, 40), (10, 3)])
def test_simplex_weights_fit_the_past_as_well_as_any(n: int, T0: int) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.uniform(-1, 1, (n, T0)), rng.uniform(-1.5, 1.5, T0) * rng.uniform(0.1, 1)
        ours, other = simplex_weights(X, y), by_nnls(X, y)
        assert (ours >= 0).all() and ours.sum() == pytest.approx(1, abs=1e-12)
        assert ((y - X.T @ ours) ** 2).sum() <= ((y - X.T @ (other / other.sum())) ** 2).sum() + 1e-12


def test_simplex_weights_keep_the_conditions_of_the_optimum() -> None:
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(50, 20)), rng.normal(size=20)
    w = simplex_weights(X, y)
    gradient = X @ (X.T @ w - y)
    assert gradient.min() >= gradient @ w - 1e-8
    np.testing.assert_allclose(gradient[w > 1e-9], gradient @ w, atol=1e-8)


def test_degenerate_donors_have_weights_too() -> None:
    for X in (np.zeros((4, 3)), np.ones((4, 3)), np.tile([0.1, 0.2, 0.3], (4, 1)), np.full((2, 1), 0.5)):
        w = simplex_weights(X, np.full(X.shape[1], 0.7))
        assert np.isfinite(w).all() and (w >= 0).all() and w.sum() == pytest.approx(1)


def test_the_ridge_path_is_that_of_the_papers_objective() -> None:
    rng = np.random.default_rng(9)
    X, Y, y, penalty = rng.uniform(-1, 1, (6, 5)), rng.uniform(-1, 1, (6, 2)), rng.uniform(-1, 1, 5), 3.0
    weights = np.linalg.solve(X @ X.T + penalty / 2 * np.eye(6), X @ y)
    np.testing.assert_allclose(Y.T @ ridge_weights(X, y, penalty / 2), Y.T @ weights)
    T0 = 5

    def objective(f: Any) -> Any:
        return ((y - X.T @ f) ** 2).sum() / T0 + penalty / (2 * T0) * (f @ f)

    for _ in range(20):
        assert objective(weights) <= objective(weights + 0.01 * rng.normal(size=6))
