"""Sums of paths by cohort: counts, squares and what was shortened beside them, at almost no cost.

Proof: ``cohort_sums.md``.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpcausal.dependence.second_moments import clip_rows, grid_bits, second_moments
from dpcausal.privacy.neighbours import Relation
from dpcausal.privacy.sensitivity import Norm, Sensitivity

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def entries_of(columns: int) -> int:
    """Return how many numbers a cohort has: count, sums, squares, number and sums of what was shortened."""
    return 2 + 2 * columns + columns * (columns + 1) // 2


def cohort_bits(n: int, radius: float) -> int:
    """Return the grid on which sums over n persons are exact."""
    return grid_bits(n, radius)


def factors(radius: float, bits: int) -> tuple[float, float, float]:
    """Return what a person counts, what a square is multiplied by, and what a shortened row counts: units 2^(−bits)."""
    length = math.ldexp(radius, bits)
    return float(math.floor(length / math.sqrt(2))), 1 / (math.sqrt(2) * length), float(math.floor(length / 5))


def cohort_sums(cohorts: Integers, number: int, rows: Reals, kept: Mask, radius: float, bits: int) -> Reals:
    """Return for each cohort the numbers of ``cohort-sums``, in units of 2^(−bits), shape (number, ``entries_of``).

    Parameters
    ----------
    cohorts : int64 array, shape (n,)
        Each person's.
    rows : float array, shape (n, d)
    kept : bool array, shape (n,)
        A person that is not kept has no sums.

    Notes
    -----
    *Guarantee*: ``cohort_sums_sensitivity(number, d, radius, bits)``.
    """
    inside = clip_rows(rows, radius, bits)
    squared = np.zeros(len(rows))
    for column in rows.T:
        squared += column * column
    shortened = squared > radius * radius
    count, square, short = factors(radius, bits)
    found = []
    for cohort in range(number):
        here = kept & (cohorts == cohort)
        cut = inside[here & shortened]
        found.append(np.concatenate([
            [count * float(here.sum())], inside[here].sum(axis=0), square * second_moments(inside[here]),
            [short * float(len(cut))], cut.sum(axis=0) / 5,
        ]))  # fmt: skip
    return np.stack(found)


def cohort_sums_sensitivity(number: int, columns: int, radius: float, bits: int) -> Sensitivity:
    """Return the l2 sensitivity of ``cohort_sums``: √4.16 · 2^bits · radius; rounding is added.

    Examples
    --------
    >>> round(float(cohort_sums_sensitivity(3, 2, 1.0, 16).bound) / 2**16, 3)
    2.04
    """
    bound = math.sqrt(4.16) * math.ldexp(radius, bits) * (1 + 2.0**-50) + 2 * math.sqrt(number * entries_of(columns))
    return Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "cohort-sums", symmetric=True)
