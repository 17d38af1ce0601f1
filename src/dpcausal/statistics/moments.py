"""Sums of products of bounded rows on a fixed grid, exact.  Proof: ``second_moments.md``."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.arrays import Reals
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity

MOST_BITS = 16
"""Finest grid, 2⁻¹⁶ of a unit."""


def grid_bits(n: int, radius: float) -> int:
    """Return s such that sums over n rows of products of entries on the grid 2⁻ˢ are exact in float64."""
    return min(math.floor((52 - math.log2(n)) / 2 - math.log2(radius) - 1e-9), MOST_BITS)


def clip_rows(rows: Reals, radius: float, bits: int) -> Reals:
    """Return rows shortened to length ``radius``, each entry on the grid 2^(−bits) rounded towards 0, times 2^bits.
    Each from its own row alone, bit for bit: single correctly rounded operations, one column after another."""
    shrink = np.minimum(1.0, radius * (1 - 2.0**-40) / np.maximum(np.sqrt(squared_lengths(rows)), 1e-300))
    shrink *= 2.0**bits  # a power of two rounds nothing
    return np.asarray(np.trunc(rows * shrink[:, None]))


def squared_lengths(rows: Reals) -> Reals:
    """Return the squared length of each row from itself alone, one column after another."""
    squared = np.zeros(len(rows))
    for column in rows.T:
        squared += column * column
    return squared


def variance_roots(covariance: npt.NDArray[np.floating[Any]]) -> Reals:
    """Return the roots of the variances of a noisy covariance; of one near or below 0, that of its row's largest entry.

    Entries over these roots are finite.
    """
    variances, largest = np.diag(covariance), np.abs(covariance).max(axis=1, initial=0.0)
    sizes = np.where(variances > 1e-12 * largest, variances, np.maximum(largest, 1e-300))
    return np.asarray(np.sqrt(sizes), dtype=np.float64)


def second_moments(grid_rows: Reals) -> Reals:
    """Return Σ_r x x' of rows on the grid as one row: the diagonal, then √2 times the upper triangle, so that its
    length is the Frobenius norm."""
    return scaled(upper_of(grid_rows.T @ grid_rows), grid_rows.shape[1])


def upper_of(matrix: Reals) -> Reals:
    return np.concatenate([np.diagonal(matrix), matrix[np.triu_indices(len(matrix), 1)]])


def scaled(upper: npt.NDArray[np.float64 | np.int64], columns: int) -> Reals:
    return np.concatenate([upper[:columns], math.sqrt(2) * upper[columns:]])


def unpacked_matrix(row: Reals, columns: int) -> Reals:
    matrix = np.zeros((columns, columns))
    upper = np.triu_indices(columns, 1)
    matrix[upper] = row[columns:] / math.sqrt(2)
    matrix += matrix.T
    matrix[np.diag_indices(columns)] = row[:columns]
    return matrix


def second_moments_sensitivity(radius: float, bits: int, columns: int) -> Sensitivity:
    square = math.ldexp(radius, bits) ** 2
    entries = columns * (columns + 1) // 2
    bound = math.sqrt(2) * square * (1 + 2.0**-50) + 2 * math.sqrt(entries)
    return Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "second-moments", symmetric=True)


CONSTANT = 0.5
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
class UntruncatedMoments:
    """A covariance as of rows that were not shortened, and how errors of the given one are carried into it.
    ``vectors``: of both; ``turning``: the square of what an error between two of them is multiplied by, 0 for one;
    ``stretching``: what λ gains by λ′; ``products``: E[w² u_i² u_j²] / E[w]² along the vectors; ``given``: λ′."""

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


def untouched(covariance: Reals) -> UntruncatedMoments:
    columns = len(covariance)
    one, none = np.eye(columns), np.zeros((columns, columns))
    return UntruncatedMoments(covariance, one, 1 - one, one, none, np.zeros(columns))


def untruncated_moments(covariance: Reals, squared: float) -> UntruncatedMoments:
    """Return what a covariance of rows shortened to a squared length was before; what is below 0 is noise and stays."""
    given, vectors = np.linalg.eigh(covariance)
    z = _points(len(given))
    positive = np.maximum(given, 1e-9 * max(float(given[-1]), 1e-300))
    eigenvalues = positive.copy()
    for _ in range(STEPS):
        weight = np.minimum(1.0, squared / (CONSTANT**2 + z @ eigenvalues))
        before, eigenvalues = eigenvalues, positive * weight.mean() * len(z) / (weight @ z)
        if float(np.abs(eigenvalues - before).max()) <= CLOSE * float(eigenvalues.max()):
            break
    length = CONSTANT**2 + z @ eigenvalues
    weight = np.minimum(1.0, squared / length)
    mean = weight.mean()
    shares = weight @ z / len(z) / mean
    slope = np.where(length > squared, -squared / length**2, 0.0) / mean
    by_slope = slope @ z / len(z)
    by_eigenvalue = (z * slope[:, None]).T @ z / len(z) - np.outer(shares, by_slope)
    jacobian = eigenvalues[:, None] * by_eigenvalue + np.diag(shares)
    values = np.where(given > 0, eigenvalues, given)
    gaps = given[:, None] - given
    distinct = np.abs(gaps) > 1e-6 * max(float(np.abs(given).max()), 1e-300)
    nearly = 1 / np.sqrt(np.outer(shares, shares))
    turning = np.where(distinct, (values[:, None] - values) / np.where(distinct, gaps, 1.0), nearly) ** 2
    np.fill_diagonal(turning, 0.0)
    products = (z * (weight**2)[:, None]).T @ z / len(z) / mean**2 * np.outer(eigenvalues, eigenvalues)
    return UntruncatedMoments(
        (vectors * values) @ vectors.T, vectors, turning, np.linalg.inv(jacobian), products, np.maximum(given, 0.0)
    )
