"""Tables of counts of discrete columns, and what one replaced record moves in them.  Proofs: ``contingency.md``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from dpcausal.privacy.neighbours import Relation
from dpcausal.privacy.sensitivity import Norm, Sensitivity

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
    """Return the sensitivity of a table of counts: 2 in l1, √2 in l2."""
    bound: int | float = 2 if norm is Norm.L1 else math.sqrt(2)  # the float of √2 lies above it
    return Sensitivity(bound, norm, Relation.REPLACE_ONE, "contingency-table", symmetric=True)


def histograms(columns: Iterable[Codes], bins: int) -> Counts:
    """Return the histogram of each column, shape (columns, bins)."""
    return np.stack([np.bincount(column, minlength=bins) for column in columns]).astype(np.int64, copy=False)


def histograms_sensitivity(columns: int) -> Sensitivity:
    """Return the l2 sensitivity of the histograms of several columns: √(2 · columns)."""
    bound = math.nextafter(math.sqrt(2 * columns), math.inf)
    return Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "column-histograms", symmetric=True)
