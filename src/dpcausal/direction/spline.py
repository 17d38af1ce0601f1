"""A natural cubic smoothing spline of one column on another, with leave-one-out residuals: for use inside a block.

    min over f of Σ w_i (u_i − f(v_i))² + α ∫ f''²,  α by leave-one-out

with knots at quantiles of v.  Nothing here is private: all is taken from the rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]

MOST_KNOTS, LEAST_KNOTS, ROWS_PER_KNOT = 12, 5, 12

PENALTIES = 24
"""Values of α that are tried, from no smoothing to a straight line."""

MOST_LEVERAGE = 0.99
"""A row that alone decides its own fit would have a leave-one-out residual without bound."""


class Spline:
    """Splines on one regressor: the basis is made once, for any response and weights.

    The coefficients are values at the knots; *source*: Wood (2017), section 5.3.1.
    """

    def __init__(self, v: Column) -> None:
        distinct = np.unique(v)
        if len(distinct) < 3:
            raise ValueError("a spline needs three different values")
        count = min(MOST_KNOTS, max(LEAST_KNOTS, len(v) // ROWS_PER_KNOT), len(distinct))
        t = distinct[np.linspace(0, len(distinct) - 1, count).round().astype(np.int64)]
        h, K = np.diff(t), count
        D, B = np.zeros((K - 2, K)), np.zeros((K - 2, K - 2))
        row = np.arange(K - 2)
        D[row, row], D[row, row + 2] = 1 / h[:-1], 1 / h[1:]
        D[row, row + 1] = -D[row, row] - D[row, row + 2]
        B[row, row] = (h[:-1] + h[1:]) / 3
        B[row[1:], row[:-1]] = B[row[:-1], row[1:]] = h[1:-1] / 6
        curvature = np.zeros((K, K))  # second derivatives at the knots from the values there
        curvature[1:-1] = np.linalg.solve(B, D)
        self._S = D.T @ curvature[1:-1]
        j = np.clip(np.searchsorted(t, v, side="right") - 1, 0, K - 2)
        width, below, above = h[j], v - t[j], t[j + 1] - v
        X = (above**3 / width - width * above)[:, None] / 6 * curvature[j]
        X += (below**3 / width - width * below)[:, None] / 6 * curvature[j + 1]
        place = np.arange(len(v))
        X[place, j] += above / width
        X[place, j + 1] += below / width
        self._X = X
        self._plain = self._directions(np.ones(len(v)))

    def _directions(self, weights: Column) -> tuple[Column, Column]:
        """Return Z and λ with Z'WZ = I and penalty Σ λ_j c_j² of the fit Zc: Demmler and Reinsch."""
        L = np.linalg.cholesky(self._X.T @ (weights[:, None] * self._X))
        half = np.linalg.solve(L, self._S)
        values, U = np.linalg.eigh(np.linalg.solve(L, half.T))
        return np.linalg.solve(L, self._X.T).T @ U, np.maximum(values, 0.0)

    def fit(self, u: Column, weights: Column | None = None) -> tuple[Column, Column]:
        """Return the fitted values, and the residuals that each row has from a fit without it."""
        Z, values = self._plain if weights is None else self._directions(weights)
        w = np.ones(len(u)) if weights is None else weights
        alphas = np.geomspace(1e-3 / values[-1], 1e3 / max(values[2], 1e-12 * values[-1]), PENALTIES)
        shrunk = 1 / (1 + np.outer(values, alphas))
        fits = Z @ ((Z.T @ (w * u))[:, None] * shrunk)
        leverage = np.minimum(w[:, None] * (Z**2 @ shrunk), MOST_LEVERAGE)
        left = (u[:, None] - fits) / (1 - leverage)
        best = int(np.argmin(w @ left**2))
        return fits[:, best], left[:, best]
