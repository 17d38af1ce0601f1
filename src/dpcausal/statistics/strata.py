"""Covariance inside strata, and its permutation variance: one row moves them by O(1), however many the strata.

    S = Σ_s Σ_{i∈s} (x_i − x̄_s)(y_i − ȳ_s),  W = Σ_s Σ(x_i − x̄_s)² Σ(y_i − ȳ_s)² / (m_s − 1)

for x, y in [0, 1]; W is the variance of S where x is permuted inside its strata.  Whole numbers of units of 1/GRID,
each stratum's rounded down.  Proofs: ``stratum_moments.md``.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpcausal.arrays import Integers
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity, Unit

GRID = 2**20

MOST_UNITS = 2**15
"""Values are whole numbers of at most so many units: sums of their products stay exact in 64 bits below 8e9 rows."""


class StratumMoments(NamedTuple):
    covariance: int
    variance: int


def stratum_moments(x: Integers, y: Integers, strata: Integers, units: tuple[int, int]) -> StratumMoments:
    """Return S and W of whole numbers from 0 to their units, each stratum's term rounded down.

    *Guarantee*: ``covariance_sensitivity``, ``variance_sensitivity``.
    """
    distinct, codes = np.unique(strata, return_inverse=True)
    return of_sums(stratum_sums(x, y, codes, len(distinct)), units)


def stratum_sums(x: Integers, y: Integers, strata: Integers, count: int) -> Integers:
    """Return Σ 1, x, y, xy, x², y² of each stratum, shape (count, 6): of parts of the rows they add up."""
    order = np.argsort(strata, kind="stable")
    first = np.flatnonzero(np.diff(strata[order], prepend=-1))
    sums = np.zeros((count, 6), dtype=np.int64)
    if first.size:
        a, b = x[order], y[order]
        for place, column in enumerate((np.ones_like(a), a, b, a * b, a * a, b * b)):
            sums[strata[order[first]], place] = np.add.reduceat(column, first)
    return sums


def of_sums(sums: Integers, units: tuple[int, int]) -> StratumMoments:
    covariance = variance = 0
    for m, of_x, of_y, of_xy, of_xx, of_yy in sums[sums[:, 0] > 1].tolist():
        unit = m * units[0] * units[1]
        spread = (m * of_xx - of_x * of_x) * (m * of_yy - of_y * of_y)
        covariance += GRID * (m * of_xy - of_x * of_y) // unit
        variance += GRID * spread // (unit * unit * (m - 1))
    return StratumMoments(covariance, variance)


def stratum_spread(x: Integers, strata: Integers) -> int:
    """Return Σ_s Σ (x_i − x̄_s)² of a column of zeros and ones in units, each stratum's term rounded down.

    *Guarantee*: ``spread_sensitivity()``.
    """
    return stratum_moments(x, x, strata, (1, 1)).covariance


def covariance_sensitivity(strata: int, unit: Unit = Unit.ROW) -> Sensitivity:
    """Return the sensitivity of S in units: 2 GRID + 1, and GRID if there is but one stratum."""
    bound = GRID if strata == 1 else 2 * GRID + 1
    return Sensitivity(bound, Norm.ABSOLUTE, Relation.REPLACE_ONE, "stratum-covariance", unit, symmetric=True)


def variance_sensitivity(unit: Unit = Unit.ROW) -> Sensitivity:
    return Sensitivity(3 * GRID // 8 + 1, Norm.ABSOLUTE, Relation.REPLACE_ONE, "stratum-variance", unit, symmetric=True)


def spread_sensitivity(unit: Unit = Unit.ROW) -> Sensitivity:
    return Sensitivity(GRID + 1, Norm.ABSOLUTE, Relation.REPLACE_ONE, "stratum-spread", unit, symmetric=True)


Codes = npt.NDArray[np.integer]
Counts = npt.NDArray[np.int64]


def contingency(codes: Sequence[Codes], sizes: Sequence[int]) -> Counts:
    """Return the table of counts of codes 0, …, size − 1, shape ``sizes``: every declared cell, empty ones included."""
    cells = math.prod(sizes)
    place = np.zeros(len(codes[0]), dtype=np.int64)
    for column, size in zip(codes, sizes, strict=True):
        place *= size
        place += column
    return np.bincount(place, minlength=cells).astype(np.int64, copy=False).reshape(tuple(sizes))


def contingency_sensitivity(norm: Norm = Norm.L1) -> Sensitivity:
    bound: int | float = 2 if norm is Norm.L1 else math.sqrt(2)  # the float of √2 lies above it
    return Sensitivity(bound, norm, Relation.REPLACE_ONE, "contingency-table", symmetric=True)


def histograms(columns: Iterable[Codes], bins: int) -> Counts:
    return np.stack([np.bincount(column, minlength=bins) for column in columns]).astype(np.int64, copy=False)


def histograms_sensitivity(columns: int, norm: Norm = Norm.L2) -> Sensitivity:
    bound: int | float = 2 * columns if norm is Norm.L1 else math.nextafter(math.sqrt(2 * columns), math.inf)
    return Sensitivity(bound, norm, Relation.REPLACE_ONE, "column-histograms", symmetric=True)
