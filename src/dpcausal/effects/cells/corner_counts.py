"""Sums of a number by cells, with their squares, as counts: each record is spread over the corners of its cell.

A number u of [0, 1] puts the mass (1 − u)², 2u(1 − u), u² on three corners of its cell.  The masses sum to 1, so a
record weighs in the noise what a record of a plain table weighs, and

    Σ 1 = c₀ + c₁ + c₂,  Σ u = c₁/2 + c₂,  Σ u² = c₂

A column of two levels needs the two ends only, and no number one corner.  Proof: ``corner_counts.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

GRID = 2**26
"""The whole mass of a record, in integers."""


def corners(unit: Reals, degree: int, mass: Integers | None = None) -> Integers:
    """Return each record's masses, shape (n, degree + 1), whole numbers of at least 0 that sum to ``GRID``.

    Parameters
    ----------
    unit : float array, shape (n,)
        In [0, 1]; what is no number lies in the middle, what lies outside at the nearer end: no record weighs more.
    degree : int
        2; 1 where the values are 0 and 1; 0 to count only.
    mass : int64 array, shape (n,), optional
        What they sum to instead, where a unit has several rows or a row a weight: at most ``GRID`` a unit.
    """
    unit = np.clip(np.nan_to_num(unit, nan=0.5), 0.0, 1.0)
    whole = np.full(len(unit), float(GRID)) if mass is None else mass.astype(np.float64)
    top = np.rint(whole * (unit * unit if degree == 2 else unit))
    middle = np.minimum(np.rint(2 * whole * unit * (1 - unit)), whole - top)
    masses = {0: [whole], 1: [whole - top, top], 2: [whole - top - middle, middle, top]}[degree]
    return np.stack(masses, axis=1).astype(np.int64)


def functionals(degree: int) -> Reals:
    """Return what Σ 1, Σ u, Σ u² are of the corners, one a row."""
    tables = {0: [[1], [0], [0]], 1: [[1, 1], [0, 1], [0, 1]], 2: [[1, 1, 1], [0, 0.5, 1], [0, 0, 1]]}
    return np.array(tables[degree], dtype=np.float64)


def corner_counts(cells: Integers, number: int, kept: Mask, values: Sequence[Integers]) -> Integers:
    """Return the masses in each cell, shape (number, corners of all values): exact.

    Parameters
    ----------
    cells : int64 array, shape (n,)
        Each record's cell.
    kept : bool array, shape (n,)
        A record that is not kept has no mass.
    values : sequence of int64 arrays
        ``corners`` of each value.

    Notes
    -----
    *Guarantee*: ``corner_counts_sensitivity(number of values)``.
    """
    columns = [column[kept] for masses in values for column in masses.T]
    # Sums of whole numbers below 2⁵³: float64 adds them exactly.
    sums = [np.bincount(cells[kept], weights=column, minlength=number) for column in columns]
    return np.stack(sums, axis=1).astype(np.int64)


def corner_counts_sensitivity(values: int, norm: Norm = Norm.L1) -> Sensitivity:
    """Return the sensitivity of ``corner_counts``: 2·``GRID`` a value in l1, √(2·values)·``GRID`` in l2.

    Examples
    --------
    >>> corner_counts_sensitivity(1).bound / GRID
    2.0
    """
    bound: int | float = 2 * GRID * values
    if norm is Norm.L2:
        bound = math.nextafter(math.sqrt(2 * values) * GRID, math.inf)
    return Sensitivity(bound, norm, Relation.REPLACE_ONE, "corner-counts", symmetric=True)
