"""What shortening rows did to their covariance, undone as if rows were normal.

A row u of variances λ along the eigenvectors counts with the weight w = min(1, R² / (¼ + |u|²)).  Of normal rows the
weighted covariance has the same eigenvectors, and the eigenvalues

    λ′_i = λ_i E[w z_i²] / E[w],   w = min(1, R² / (¼ + Σ λ_j z_j²)),   z of variance one

so that the large ones lose most, and what is 0 in its inverse is not 0 in the inverse of the other.  The map from λ to
λ′ is inverted.  *Source*: Dürre, Tyler and Vogel (2016), for signs of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from dpcausal.privacy.noise import generator_from_seed

Reals = npt.NDArray[np.float64]

BESIDE = 0.5
"""The entry beside a row's columns."""

POINTS = 4096
"""At which the means are taken: in every column the same quantiles of z², put in some order."""

STEPS, CLOSE = 60, 1e-5
"""Most steps of the inversion, and the change of λ below which it ends."""

SEED = 4_402_716_098_153_227


@cache
def _points(columns: int) -> Reals:
    from scipy.special import ndtri

    quantiles = ndtri((1 + (np.arange(POINTS) + 0.5) / POINTS) / 2) ** 2
    generator = generator_from_seed(SEED)
    return np.stack([generator.permutation(quantiles / quantiles.mean()) for _ in range(columns)], axis=1)


@dataclass(frozen=True, eq=False)
class Lengthened:
    """A covariance as of rows that were not shortened, and how errors of the given one are carried into it.

    ``vectors``: of both; ``turning``: the square of what an error between two of them is multiplied by, 0 for one;
    ``stretching``: what λ gains by λ′; ``products``: E[w² u_i² u_j²] / E[w]² along the vectors; ``given``: λ′.
    """

    covariance: Reals
    vectors: Reals
    turning: Reals
    stretching: Reals
    products: Reals
    given: Reals

    def variances(self, a: Reals, b: Reals) -> tuple[float, float]:
        """Return those of aᵀ C b: of noise of variance one off the diagonal, two on it; and of one normal row."""
        along, across = a @ self.vectors, b @ self.vectors
        both = along * across
        own = both @ self.stretching

        def between(weights: Reals) -> float:
            return float(along**2 @ weights @ across**2 + both @ weights @ both)

        of_noise = between(self.turning) + 2 * float(own @ own)
        of_row = between(self.turning * self.products) + float(own @ self.products @ own - (own @ self.given) ** 2)
        return of_noise, of_row


def untouched(covariance: Reals) -> Lengthened:
    """Return the covariance of rows that were not shortened, without what it says of sampling."""
    columns = len(covariance)
    one, none = np.eye(columns), np.zeros((columns, columns))
    return Lengthened(covariance, one, 1 - one, one, none, np.zeros(columns))


def lengthened(covariance: Reals, squared: float) -> Lengthened:
    """Return what a covariance of rows shortened to a squared length was before: none of its eigenvalues need be > 0.

    What is below 0 is noise alone, and stays.
    """
    given, vectors = np.linalg.eigh(covariance)
    z = _points(len(given))
    kept = np.maximum(given, 1e-9 * max(float(given[-1]), 1e-300))
    found = kept.copy()
    for _ in range(STEPS):
        weight = np.minimum(1.0, squared / (BESIDE**2 + z @ found))
        before, found = found, kept * weight.mean() * len(z) / (weight @ z)
        if float(np.abs(found - before).max()) <= CLOSE * float(found.max()):
            break
    length = BESIDE**2 + z @ found
    weight = np.minimum(1.0, squared / length)
    mean = weight.mean()
    shares = weight @ z / len(z) / mean
    slope = np.where(length > squared, -squared / length**2, 0.0) / mean
    by_slope = slope @ z / len(z)
    jacobian = found[:, None] * ((z * slope[:, None]).T @ z / len(z) - np.outer(shares, by_slope)) + np.diag(shares)
    values = np.where(given > 0, found, given)
    gaps = given[:, None] - given
    apart = np.abs(gaps) > 1e-6 * max(float(np.abs(given).max()), 1e-300)
    nearly = 1 / np.sqrt(np.outer(shares, shares))
    turning = np.where(apart, (values[:, None] - values) / np.where(apart, gaps, 1.0), nearly) ** 2
    np.fill_diagonal(turning, 0.0)
    products = (z * (weight**2)[:, None]).T @ z / len(z) / mean**2 * np.outer(found, found)
    return Lengthened(
        (vectors * values) @ vectors.T, vectors, turning, np.linalg.inv(jacobian), products, np.maximum(given, 0.0)
    )
