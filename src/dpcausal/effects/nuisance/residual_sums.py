"""Sums of residuals by bins and times bounded functions, counts by bins, sums of numbers of [0, 1]: whole numbers.

Each unit has the mass ``GRID``, or less if it is left out or weighted.  Proofs: ``residual_sums.md``.
"""

import math
from collections.abc import Sequence

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.effects.cells.corner_counts import GRID
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity

OF_WIDE, OF_FINE, LEAST_FINE = 1.0, 2.7, 1e-9
"""Coefficients of a histogram are kept beyond so many deviations: those of its wide cells, and of fine ones inside.  A
fine cell holds at least such a share of what it would hold if all were alike."""


def histograms(cells: Integers, sizes: Sequence[int], mass: Integers) -> Integers:
    """Return the masses by bins, ``sizes`` of them, of one column after another: exact.

    The masses of a unit's rows sum to at most ``GRID``.  *Guarantee*: ``histograms_sensitivity(columns)``.
    """
    counts = [np.bincount(column, mass, size) for column, size in zip(cells.T, sizes, strict=True)]
    return np.concatenate(counts).astype(np.int64)


def histograms_sensitivity(columns: int) -> Sensitivity:
    """Return the l2 sensitivity of ``histograms``: √(2 · columns) · ``GRID``."""
    return _sensitivity(math.sqrt(2 * columns), "histograms")


def residual_sums(cells: Integers, size: int, residuals: Reals, mass: Integers) -> Integers:
    """Return the sum of each residual by bins, shape (residuals, size), in units of 1 / ``GRID``: exact.

    What lies outside [−1, 1] counts as the nearer end, what is no number as 0.
    *Guarantee*: ``residual_sums_sensitivity(residuals)``.
    """
    whole = _inside(residuals, -1.0)
    whole *= mass[:, None]
    return np.stack([np.bincount(cells, column, size) for column in np.rint(whole, out=whole).T]).astype(np.int64)


def residual_sums_sensitivity(residuals: int, norm: Norm = Norm.L2) -> Sensitivity:
    """Return the sensitivity of ``residual_sums`` of M residuals: 2√M · ``GRID`` in l2, 2M · ``GRID`` in l1.

    Examples
    --------
    >>> residual_sums_sensitivity(1).bound / GRID
    2.0
    """
    return _sensitivity(2 * (float(residuals) if norm is Norm.L1 else math.sqrt(residuals)), "residual-sums", norm)


def pair_functions(functions: Reals, residuals: Reals, mass: Integers) -> Integers:
    """Return the sum of each residual times each function, shape (M, K), in units of 1 / ``GRID``: exact.

    Both are cut to [−1, 1].  *Guarantee*: ``pair_functions_sensitivity(K, M)``.
    """
    functions, residuals = _inside(functions, -1.0), _inside(residuals, -1.0)
    sums = [[np.rint(r * f * mass).sum() for f in functions.T] for r in residuals.T]
    return np.array(sums, dtype=np.float64).astype(np.int64)


def pair_functions_sensitivity(functions: int, residuals: int) -> Sensitivity:
    """Return the l2 sensitivity of ``pair_functions``: 2√(K·M) · ``GRID``."""
    return _sensitivity(2 * math.sqrt(functions * residuals), "pair-functions")


def capped_squares(numbers: Reals, mass: Integers) -> Integers:
    """Return the sum of each number of [0, 1], shape (M,), in units of 1 / ``GRID``: exact.

    What lies outside counts as the nearer end, what is no number as 0.  *Guarantee*: ``capped_squares_sensitivity(M)``.
    """
    whole = np.rint(_inside(numbers, 0.0) * mass[:, None])
    return np.asarray(whole.sum(axis=0).astype(np.int64))


def capped_squares_sensitivity(numbers: int) -> Sensitivity:
    """Return the l2 sensitivity of ``capped_squares``: √M · ``GRID``."""
    return _sensitivity(math.sqrt(numbers), "capped-squares")


def _inside(values: Reals, low: float) -> Reals:
    inside: Reals = np.clip(values, low, 1.0)
    inside[np.isnan(inside)] = 0.0
    return inside


def _sensitivity(factor: float, proof: str, norm: Norm = Norm.L2) -> Sensitivity:
    bound = factor * GRID if factor.is_integer() else math.nextafter(factor * GRID, math.inf)
    return Sensitivity(bound, norm, Relation.REPLACE_ONE, proof, symmetric=True)


def haar(values: Reals) -> Reals:
    """Return the orthonormal Haar coefficients along the first axis, whose length is a power of 2: the mean first."""
    details: list[Reals] = []
    while len(values) > 1:
        even, odd = values[0::2], values[1::2]
        details.insert(0, (even - odd) / math.sqrt(2))
        values = (even + odd) / math.sqrt(2)
    return np.concatenate([values, *details])


def inverse_haar(coefficients: Reals) -> Reals:
    """Return the values of which ``haar`` makes these coefficients."""
    values, size = coefficients[:1], 1
    while size < len(coefficients):
        details, finer = coefficients[size : 2 * size], np.empty((2 * size, *coefficients.shape[1:]))
        finer[0::2], finer[1::2] = (values + details) / math.sqrt(2), (values - details) / math.sqrt(2)
        values, size = finer, 2 * size
    return values


def haar_levels(size: int) -> Integers:
    """Return the level of each coefficient: 0 the mean, 1 the coarsest detail, up to log2 of the size."""
    return np.array([index.bit_length() for index in range(size)], dtype=np.int64)


def density(noisy: Reals, wider: Reals, deviation: float, count: float) -> Reals:
    """Return the noisy counts of fine cells shrunken, at least 0, with a given sum.

    ``wider`` are noisy counts of cells that are as many times as wide: each has the noise of a fine one, so fine cells
    only say how the counts inside a wide one differ.
    """
    of_wide, details = haar(wider), haar(noisy)
    of_wide = np.where(np.abs(of_wide) > deviation * OF_WIDE, of_wide, 0.0)
    of_wide[0] = count / math.sqrt(len(wider))
    wide = nearest_counts(inverse_haar(of_wide), count)[:, None]
    details = np.where(np.abs(details) > deviation * OF_FINE, details, 0.0)
    details[: len(wider)] = 0.0
    inside = inverse_haar(details).reshape(len(wider), -1)
    positive = np.maximum(wide / inside.shape[1] + inside, 0.0) + LEAST_FINE * count / len(noisy)
    fine = positive * wide / positive.sum(axis=1, keepdims=True) + LEAST_FINE * count / len(noisy)
    return np.asarray(fine.ravel() * count / fine.sum())


def nearest_counts(noisy: Reals, count: float) -> Reals:
    """Return the counts of at least 0 with a given sum whose squared distance from noisy ones is least."""
    falling = np.sort(noisy)[::-1]
    excess = (np.cumsum(falling) - count) / np.arange(1, len(noisy) + 1)
    positive = max(int(np.count_nonzero(falling > excess)), 1)
    return np.asarray(np.maximum(noisy - excess[positive - 1], 0.0))


def smoothed(sums: Reals, deviation: float, threshold: float, rise: float) -> Reals:
    """Return sums by bins in order, a power of 2 of them, with the noise shrunken by hard thresholding.

    The sums are mirrored at their ends, and the thresholded transforms of all circular shifts are averaged.  The
    threshold, in deviations, rises from the third level on.  *Source*: Coifman & Donoho (1995).
    """

    def averaged(values: Reals) -> Reals:
        """Along the last axis, its length a power of 2."""
        size = values.shape[-1]
        if size == 1:
            return values
        least = deviation * (threshold + rise * max(math.log2(size) - 3, 0.0))
        moved = np.stack([values, np.roll(values, -1, axis=-1)])
        even, odd = moved[..., 0::2], moved[..., 1::2]
        details = (even - odd) / math.sqrt(2)
        details = np.where(np.abs(details) > least, details, 0.0)
        coarse = averaged((even + odd) / math.sqrt(2))
        rebuilt = np.empty_like(moved)
        rebuilt[..., 0::2], rebuilt[..., 1::2] = (coarse + details) / math.sqrt(2), (coarse - details) / math.sqrt(2)
        return np.asarray((rebuilt[0] + np.roll(rebuilt[1], 1, axis=-1)) / 2)

    return averaged(np.concatenate([sums, sums[::-1]]))[: len(sums)]


def smoothed_grid(sums: Reals, deviation: float, threshold: float, finer: float) -> Reals:
    """Return sums by the cells of a grid with the noise shrunken by hard thresholding. ``finer`` is added to the
    threshold beyond the coarsest details."""
    coefficients = haar(haar(sums).T).T
    level = np.maximum.outer(*(haar_levels(size) for size in sums.shape))
    least = deviation * np.where(level <= 1, threshold, threshold + finer)
    thresholded = np.where(np.abs(coefficients) > least, coefficients, 0.0)
    return inverse_haar(inverse_haar(thresholded).T).T
