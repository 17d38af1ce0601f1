"""Sums of products of bounded rows on a fixed grid, exact.  Proof: ``second_moments.md``."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpcausal.privacy.neighbours import Relation
from dpcausal.privacy.sensitivity import Norm, Sensitivity

Reals = npt.NDArray[np.float64]

MOST_BITS = 16
"""Finest grid, 2⁻¹⁶ of a unit."""

FEW = 32
"""Columns whose products are summed by pieces."""

ONE_THREAD = 1 << 18
"""So many multiplications BLAS does not share among threads."""


def grid_bits(n: int, radius: float) -> int:
    """Return s such that sums over n rows of products of entries on the grid 2⁻ˢ are exact in float64.

    No finer than is of use: the noise, in units of 4⁻ˢ, has a largest scale that can be drawn.
    """
    return min(math.floor((52 - math.log2(n)) / 2 - math.log2(radius) - 1e-9), MOST_BITS)


def clip_rows(rows: Reals, radius: float, bits: int) -> Reals:
    """Return rows shortened to length ``radius``, each entry on the grid 2^(−bits) rounded towards 0, times 2^bits.

    Each from its own row alone, bit for bit: single correctly rounded operations, one column after another.
    """
    squared, grid = np.zeros(len(rows)), np.empty_like(rows, dtype=np.float64)
    for column, room in zip(rows.T, grid.T, strict=True):
        squared += np.multiply(column, column, out=room)
    shrink = np.minimum(1.0, radius * (1 - 2.0**-40) / np.maximum(np.sqrt(squared), 1e-300))
    shrink *= 2.0**bits  # a power of two rounds nothing
    np.multiply(rows, shrink[:, None], out=grid)
    return np.trunc(grid, out=grid)


def second_moments(grid_rows: Reals) -> Reals:
    """Return Σ_r x x' of rows on the grid as one row: the diagonal, then √2 times the upper triangle.

    The Euclidean length of this row is the Frobenius norm of the matrix.
    """
    return packed(grid_rows.T @ grid_rows)


def gram(grid_rows: Reals) -> Reals:
    """Return Σ_r x x' of rows on the grid, its diagonal and what is above it: whole numbers, exact in any order.

    Of few columns in pieces so small that BLAS shares none among threads, and without ``x.T @ x``, for which it has
    another way that takes twice as long: the first column is left out on the right.
    """
    rows, columns = grid_rows.shape
    if columns > FEW:
        found: Reals = grid_rows.T @ grid_rows
        return found
    piece = 1 << (ONE_THREAD // columns**2).bit_length() - 1
    whole = rows - rows % piece
    found = grid_rows[whole:].T @ grid_rows[whole:]
    if whole:
        first, pieces = grid_rows[:whole, 0], grid_rows[:whole].T.reshape(columns, -1, piece).transpose(1, 0, 2)
        found[:, 1:] += (pieces @ pieces[:, 1:].transpose(0, 2, 1)).sum(axis=0)
        found[0, 0] += first @ first
    return found


def packed(matrix: Reals) -> Reals:
    """Return a symmetric matrix of whole numbers as one row: the diagonal, then √2 times the upper triangle."""
    return scaled(upper_of(matrix), len(matrix))


def upper_of(matrix: Reals) -> Reals:
    """Return the diagonal, then the upper triangle."""
    return np.concatenate([np.diagonal(matrix), matrix[np.triu_indices(len(matrix), 1)]])


def scaled(upper: npt.NDArray[np.float64 | np.int64], columns: int) -> Reals:
    """Return the row of ``upper_of`` with √2 times the triangle."""
    return np.concatenate([upper[:columns], math.sqrt(2) * upper[columns:]])


def unpacked(row: Reals, columns: int) -> Reals:
    """Return the symmetric matrix that ``second_moments`` made a row of."""
    matrix = np.zeros((columns, columns))
    upper = np.triu_indices(columns, 1)
    matrix[upper] = row[columns:] / math.sqrt(2)
    matrix += matrix.T
    matrix[np.diag_indices(columns)] = row[:columns]
    return matrix


def second_moments_sensitivity(radius: float, bits: int, columns: int) -> Sensitivity:
    """Return the l2 sensitivity of ``second_moments``: √2 (2^bits · radius)², plus rounding."""
    square = math.ldexp(radius, bits) ** 2
    entries = columns * (columns + 1) // 2
    bound = math.sqrt(2) * square * (1 + 2.0**-50) + 2 * math.sqrt(entries)
    return Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "second-moments", symmetric=True)
