"""Haar wavelets of sums by bins: the transform, and two ways to shrink noisy sums.  Post-processing alone."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


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


def smoothed(sums: Reals, deviation: float, threshold: float, rise: float) -> Reals:
    """Return sums by bins in order, with the noise shrunken by translation-invariant hard thresholding.

    The sums are mirrored at their ends, and the thresholded transforms of all circular shifts are averaged.

    Parameters
    ----------
    sums : float array, shape (a power of 2,)
    deviation : float
        Of each sum.
    threshold, rise : float
        In deviations: of the coarse details, and so much more a level from the third on.

    Notes
    -----
    *Source*: Coifman & Donoho (1995), translation-invariant de-noising.
    """

    def averaged(values: Reals) -> Reals:
        size = len(values)
        if size == 1:
            return values
        least = deviation * (threshold + rise * max(math.log2(size) - 3, 0.0))
        total = np.zeros_like(values)
        for shift in (0, 1):
            moved = np.roll(values, -shift)
            details = (moved[0::2] - moved[1::2]) / math.sqrt(2)
            details = np.where(np.abs(details) > least, details, 0.0)
            coarse = averaged((moved[0::2] + moved[1::2]) / math.sqrt(2))
            rebuilt = np.empty_like(values)
            rebuilt[0::2], rebuilt[1::2] = (coarse + details) / math.sqrt(2), (coarse - details) / math.sqrt(2)
            total += np.roll(rebuilt, shift)
        return total / 2

    return averaged(np.concatenate([sums, sums[::-1]]))[: len(sums)]


def haar_of_grid(sums: Reals) -> Reals:
    """Return the Haar coefficients along both axes."""
    return haar(haar(sums).T).T


def smoothed_grid(sums: Reals, deviation: float, threshold: float, finer: float) -> Reals:
    """Return sums by the cells of a grid with the noise shrunken by hard thresholding.

    ``finer`` is added to the threshold beyond the coarsest details.
    """
    coefficients = haar_of_grid(sums)
    level = np.maximum.outer(*(haar_levels(size) for size in sums.shape))
    least = deviation * np.where(level <= 1, threshold, threshold + finer)
    thresholded = np.where(np.abs(coefficients) > least, coefficients, 0.0)
    return inverse_haar(inverse_haar(thresholded).T).T
