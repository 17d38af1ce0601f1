"""Tables of counts of discrete columns, and what one replaced record moves in them.  Proofs: ``contingency.md``."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpcausal.privacy.neighbours import Relation
from dpcausal.privacy.sensitivity import Norm, Sensitivity

Codes = npt.NDArray[np.integer]
Counts = npt.NDArray[np.int64]


def contingency(codes: Sequence[Codes], sizes: Sequence[int]) -> Counts:
    """Return the table of counts: every declared cell, empty ones included.

    Parameters
    ----------
    codes : sequence of integer arrays, shape (n,)
        One a column, values 0, …, size − 1.
    sizes : sequence of int
        Number of declared levels of each column.

    Returns
    -------
    int64 array, shape ``sizes``

    Notes
    -----
    *Guarantee*: ``contingency_sensitivity()``.

    Examples
    --------
    >>> import numpy as np
    >>> contingency([np.array([0, 1, 1]), np.array([2, 0, 0])], [2, 3]).tolist()
    [[0, 0, 1], [2, 0, 0]]
    """
    cells = math.prod(sizes)
    place = np.zeros(len(codes[0]), dtype=np.int64)
    for column, size in zip(codes, sizes, strict=True):
        place *= size
        place += column
    return np.bincount(place, minlength=cells).astype(np.int64, copy=False).reshape(tuple(sizes))


def contingency_sensitivity(norm: Norm = Norm.L1) -> Sensitivity:
    """Return the sensitivity of a table of counts: 2 in l1, √2 in l2.

    Examples
    --------
    >>> contingency_sensitivity().bound, contingency_sensitivity(Norm.L2).bound == 2**0.5
    (2, True)
    """
    bound: int | float = 2 if norm is Norm.L1 else math.sqrt(2)  # the float of √2 lies above it
    return Sensitivity(bound, norm, Relation.REPLACE_ONE, "contingency-table")


def histograms(columns: Sequence[Codes], bins: int) -> Counts:
    """Return the histogram of each column, shape (columns, bins).

    Notes
    -----
    *Guarantee*: ``histograms_sensitivity(number of columns)``.
    """
    return np.stack([np.bincount(column, minlength=bins) for column in columns]).astype(np.int64, copy=False)


def histograms_sensitivity(columns: int) -> Sensitivity:
    """Return the l2 sensitivity of the histograms of several columns: √(2 · columns)."""
    bound = math.nextafter(math.sqrt(2 * columns), math.inf)
    return Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "column-histograms")
