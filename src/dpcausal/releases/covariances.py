"""Covariances with noise in them: without small eigenvalues, as products, and as what equations are solved with."""

import numpy as np

from dpcausal.arrays import Reals

LEAST_LEFT = 0.05
"""Least eigenvalue that is taken of what is left of a column given others."""


def of_factors(a: Reals, b: Reals) -> Reals:
    return np.asarray(a[:, None, :, None] * b[None, :, None, :])


def with_eigenvalue_floor(covariance: Reals, least: float = LEAST_LEFT) -> tuple[Reals, Reals]:
    """Return a covariance without eigenvalues near 0, and its inverse root."""
    if covariance.size == 1:  # of two levels, in a fraction of the time
        one = np.maximum(covariance, least)
        return one, 1 / np.sqrt(one)
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, least)
    return (vectors * values) @ vectors.T, (vectors / np.sqrt(values)) @ vectors.T


def with_ridge(spread: Reals) -> Reals:
    """Return covariances, shape (…, k, k), that no released value makes singular."""
    ridge = 1e-12 * np.maximum(np.trace(spread, axis1=-2, axis2=-1), 1.0)
    return np.asarray(spread + ridge[..., None, None] * np.eye(spread.shape[-1]))
