"""Kendall's tau within strata, combined so that one record moves it by O(1/n) whatever the strata.

T = (2/n) Σ_s K_s / n_s: each stratum's tau-a, weighted by the pairs it can have per record.  Defined for every data
set: an empty, a tiny or a constant stratum adds 0, ties add 0.  Proofs: ``conditional_kendall.md``.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpcausal.dependence.rank import kendall_numerator
from dpcausal.errors import ParameterError
from dpcausal.privacy.neighbours import Relation
from dpcausal.privacy.sensitivity import Norm, Sensitivity

Column = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

GRID = 2**20
"""A stratum's term is counted in units of 1/GRID, rounded down: an integer statistic for integer noise."""


def conditional_kendall(x: Column, y: Column, strata: Column) -> float:
    """Return T = (2/n) Σ_s K_s / n_s, in (−1, 1): Kendall's tau within strata, each of equal values of ``strata``.

    K_s is concordant minus discordant pairs of stratum s, ties 0; n_s its number of records.  Under independence
    T · 1.5 √n is about standard normal where there are no ties.  In place of Definition 6 of Wang, Pang & Song (2020),
    which no O(1/√n) bound holds for.
    """
    n = _length(x, y, strata)
    total = Fraction(0)
    for rows in strata_rows(strata):
        if len(rows) > 1:
            total += Fraction(kendall_numerator(x[rows], y[rows]), len(rows))
    return float(2 * total / n)


def conditional_kendall_steps(x: Column, y: Column, strata: Column) -> int:
    """Return n · T in units of 1/GRID, each stratum's term rounded down: Σ_s ⌊2 · GRID · K_s / n_s⌋."""
    _length(x, y, strata)
    return sum(
        2 * GRID * kendall_numerator(x[rows], y[rows]) // len(rows) for rows in strata_rows(strata) if len(rows) > 1
    )


def table_kendall_steps(counts: Counts) -> int:
    """Return ``conditional_kendall_steps`` from a table of counts, shape (levels of x, levels of y, strata).

    Exact below n = 2³¹; levels are in their order.
    """
    sizes = counts.sum(axis=(0, 1))
    pairs = stratum_kendall_numerators(counts)
    return sum(
        2 * GRID * int(pair) // int(size) for pair, size in zip(pairs.tolist(), sizes.tolist(), strict=True) if size > 1
    )


def stratum_kendall_numerators(counts: Counts) -> Counts:
    """Return K_s of each stratum of a table of counts, shape (levels of x, levels of y, strata)."""
    # Records with both codes larger, less those with a larger x and a smaller y.
    larger_x = np.cumsum(counts[::-1], axis=0)[::-1]
    larger_x = np.concatenate([larger_x[1:], np.zeros_like(larger_x[:1])], axis=0)
    up_to_y = np.cumsum(larger_x, axis=1)
    total = up_to_y[:, -1:]
    above = (total - up_to_y) - np.concatenate([np.zeros_like(up_to_y[:, :1]), up_to_y[:, :-1]], axis=1)
    return np.asarray((counts * above).sum(axis=(0, 1)), dtype=np.int64)


def conditional_kendall_sensitivity(n: int, binary: bool = False, one_stratum: bool = False) -> Sensitivity:
    """Return the sensitivity of T: max(4 − 4/n, 6 − 16/(n + 1))/n, below 6/n; for two-valued x and y below 4/n.

    With one public stratum, which all rows are in or stand alone, it is (4 − 4/n)/n.
    For all strata, their number and sizes included; 2⁻⁵² is added for rounding.
    """
    if n < 2:
        raise ParameterError(f"a rank score needs at least 2 records, got {n}")
    inside = 4 - Fraction(4, n)
    across = 4 - Fraction(8, n + 1) if binary else max(inside, 6 - Fraction(16, n + 1))
    steps = inside if one_stratum and not binary else across
    return Sensitivity(
        steps / n + Fraction(1, 2**52), Norm.ABSOLUTE, Relation.REPLACE_ONE, "conditional-kendall", symmetric=True
    )


def conditional_kendall_steps_sensitivity(binary: bool = False) -> Sensitivity:
    """Return the sensitivity of the integer steps, each of many statistics at once: 6 · GRID + 1, 4 · GRID + 1."""
    return Sensitivity(
        (4 if binary else 6) * GRID + 1, Norm.LINF, Relation.REPLACE_ONE, "conditional-kendall-steps"
    )


def _length(x: Column, y: Column, strata: Column) -> int:
    shapes = {np.shape(x), np.shape(y), np.shape(strata)}
    if len(shapes) != 1 or len(np.shape(x)) != 1 or len(x) < 2:
        raise ParameterError("x, y and strata must be one-dimensional, of one length of at least 2")
    return len(x)


def strata_rows(strata: Column) -> list[npt.NDArray[np.int64]]:
    """Return the positions of each stratum's records."""
    _, codes = np.unique(strata, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
