"""Second moments of rows measured from a released middle in a released shape; how many were shortened, and where to.

Proofs: ``ellipsoid.md``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity
from dpcausal.statistics.moments import clip_rows, grid_bits, upper_of

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

SCALES = 48
"""Bins of ``scale_histograms``: the k-th holds |u| of [2^(−(k+1)/2), 2^(−k/2)), the last all below."""
WHOLE = 2**20
"""The mass of a unit in ``scale_histograms``, in integers."""


def scale_histograms(unit: Reals, mass: Integers) -> Integers:
    """Return for each column how many |u| lie between successive powers of 1/√2, shape (columns, ``SCALES``).

    ``unit``, shape (n, d), is in [−1, 1]; the ``mass`` of all rows of a unit is at most ``WHOLE``.

    *Guarantee*: ``scale_histograms_sensitivity(d)``.
    """
    edges = 2.0 ** (-np.arange(SCALES - 1, 0, -1) / 2)
    bins = SCALES - 1 - np.searchsorted(edges, np.abs(unit), side="right")
    return np.stack([np.bincount(column, mass, SCALES) for column in bins.T]).astype(np.int64)


def scale_histograms_sensitivity(columns: int) -> Sensitivity:
    """Return the l2 sensitivity of ``scale_histograms``: √(2 · columns) · ``WHOLE``."""
    bound = math.nextafter(math.sqrt(2 * columns) * WHOLE, math.inf)
    return Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "scale-histograms", symmetric=True)


def whitened(unit: Reals, middle: Reals, inverse: Reals) -> Reals:
    """Return z with z_j = Σ_i inverse[j, i] (u_i − middle_i), each row from itself alone, one column after another."""
    moved = [unit[:, i] - middle[i] for i in range(unit.shape[1])]
    rows = np.zeros((len(unit), len(inverse)))
    for j in range(len(inverse)):
        for i, column in enumerate(moved):
            rows[:, j] += inverse[j, i] * column
    return rows


def anchor(radius: float) -> float:
    """Return k, the constant beside a row: half the radius."""
    return radius / 2


def ellipse_bits(n: int, radius: float) -> int:
    return grid_bits(n, math.hypot(radius, anchor(radius)))


def ellipse_moments(
    rows: Reals, complete: Mask, radius: float, bits: int, weights: Reals | None = None, owners: Integers | None = None
) -> Reals:
    """Return Σ ww′ over complete rows, w = (z shortened to the radius, k); how many were shortened; their sum.

    In units of 4^(−bits): the entries of ``second_moments``, the number times R²/3, the sum times R/3.  ``weights`` is
    what part of its unit each row is, at most 1 in all of a unit, ``owners`` whose it is: a unit's sum is rounded once.

    *Guarantee*: ``ellipse_moments_sensitivity(radius, bits, d)``.
    """
    sums = ellipse_sums(rows, complete, radius, bits, weights, owners)
    return ellipse_answer(sums, rows.shape[1], radius, bits, weights is not None)


def ellipse_sums(
    rows: Reals, complete: Mask, radius: float, bits: int, weights: Reals | None = None, owners: Integers | None = None
) -> Integers:
    """Return whole numbers that add over rows, of which ``ellipse_answer`` makes the answer."""
    inside = clip_rows(rows, radius, bits) * complete[:, None]
    constant = np.trunc(math.ldexp(anchor(radius), bits)) * complete
    squared = np.zeros(len(rows))
    for column in rows.T:
        squared += column * column
    shortened = (squared > radius * radius) & complete
    if weights is None:
        grid = np.column_stack([inside, constant])
        return np.concatenate(
            [upper_of(grid.T @ grid), [float(shortened.sum())], inside[shortened].sum(axis=0)]
        ).astype(np.int64)

    def total(values: npt.NDArray[Any]) -> float:
        each = weights * values
        return float(np.rint(each if owners is None else np.bincount(owners, each)).sum())

    columns, (number, towards) = [*inside.T, constant], units_of(radius, bits)
    products = [total(one * one) for one in columns]
    products += [total(one * other) for i, one in enumerate(columns) for other in columns[i + 1 :]]
    return np.array(
        [*products, total(number * shortened), *(total(towards * column * shortened) for column in inside.T)]
    ).astype(np.int64)


def ellipse_answer(sums: Integers, columns: int, radius: float, bits: int, weighted: bool) -> Reals:
    """Return the answer; sums of weighted rows were multiplied before they were rounded."""
    number, towards = (1.0, 1.0) if weighted else units_of(radius, bits)
    answer = sums.astype(np.float64)
    answer[columns + 1 : -columns - 1] *= math.sqrt(2)
    answer[-columns - 1] *= number
    answer[-columns:] *= towards
    return answer


def units_of(radius: float, bits: int) -> tuple[float, float]:
    """Return what a shortened row counts in units of 4^(−bits), R²/3 cut, and the factor of its entries, R/3."""
    length = math.ldexp(radius, bits)
    return float(math.floor(length**2 / 3)), length / 3


def ellipse_moments_sensitivity(radius: float, bits: int, columns: int) -> Sensitivity:
    """Return the l2 sensitivity of ``ellipse_moments`` of d columns, 4^bits √(2(R² + k²)² + 2w²(1 + k²/R²) + w⁴/2R⁴).

    w = R²/3 is what a shortened row counts; rounding is added.

    Examples
    --------
    >>> round(float(ellipse_moments_sensitivity(1.0, 14, 3).bound) / 4**14, 4)
    1.8463
    """
    k2, w = (anchor(radius) / radius) ** 2, 1 / 3
    exact = math.sqrt(2 * (1 + k2) ** 2 + 2 * w**2 * (1 + k2) + w**4 / 2) * math.ldexp(radius, bits) ** 2
    entries = (columns + 1) * (columns + 2) // 2 + columns
    bound = exact * (1 + 2.0**-30) + 4 * math.sqrt(entries)
    return Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "ellipse-moments", symmetric=True)
