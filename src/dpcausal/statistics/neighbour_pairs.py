"""Sign products of pairs of rows that stand close in the order of z: no regression, and one row moves them by O(k).

    K = Σ sgn(x_i − x_j) sgn(y_i − y_j),  Q = Σ |sgn(x_i − x_j) sgn(y_i − y_j)|

over pairs of a cell at most k apart in the order, closer still near its ends.  Integers throughout, no number of rows
excepted.  Proofs: ``neighbour_pairs.md``.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpcausal.arrays import Integers, Reals
from dpcausal.errors import ParameterError
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity, Unit

ENDS = 8
"""The row of rank p from an end of its cell has partners up to ⌊p/8⌋ further on, unless a caller says another whole
number than 8: in the tails of z, where neighbours in the order may be far apart, only the closest meet."""

MOST_NEIGHBOURS = 1_000


class PairSums(NamedTuple):
    signed: int
    untied: int


def pair_sums(
    x: Reals, y: Reals, z: Reals, cells: Integers, keys: Integers, complete: npt.NDArray[np.bool_], k: int,
    ends: int = ENDS,
) -> PairSums:  # fmt: skip
    """Return K and Q of the k nearest in z on either side, inside a cell.

    ``keys``, a public permutation of the positions, breaks ties of z; a row that is not kept stands nowhere.
    *Guarantee*: ``signed_sensitivity(k)``, ``untied_sensitivity(k)``.
    """
    order = z_order(z, cells, keys, complete)
    x, y, cells = x[order], y[order], cells[order]
    before, after = _pair_reaches(cells, k, ends)
    signed = untied = 0
    for lag in range(1, k + 1):
        close = (before[:-lag] >= lag) & (after[lag:] >= lag)
        close &= cells[:-lag] == cells[lag:]
        both = _signs(x, lag) * _signs(y, lag) * close
        signed += int(both.sum(dtype=np.int64))
        untied += int(np.count_nonzero(both))
    return PairSums(signed, untied)


def z_order(z: Reals, cells: Integers, keys: Integers, complete: npt.NDArray[np.bool_]) -> Integers:
    """Return the positions of the rows kept, by cell, z and key: how two rows stand does not depend on a third."""
    order = np.empty_like(keys)
    order[keys] = np.arange(keys.size, dtype=np.int64)
    order = order[complete[order]]
    order = order[np.argsort(z[order], kind="stable")]
    return order[np.argsort(cells[order], kind="stable")]


def _pair_reaches(cells: Integers, k: int, ends: int) -> tuple[Integers, Integers]:
    first = np.flatnonzero(np.diff(cells, prepend=-1))
    sizes = np.diff(first, append=cells.size)
    places = np.arange(cells.size, dtype=np.int64)
    front = places - np.repeat(first, sizes) + 1
    back = np.repeat(first + sizes, sizes) - places
    return np.minimum(front // ends, k), np.minimum(back // ends, k)


def _signs(values: Reals, lag: int) -> npt.NDArray[np.int8]:
    ahead, behind = values[lag:], values[:-lag]
    return (ahead > behind).astype(np.int8) - (ahead < behind).astype(np.int8)


def pair_counts(n: int, k: int, ends: int = ENDS) -> tuple[int, int]:
    """Return N, the pairs of one cell of n rows, and D = Σ_i deg_i (deg_i − 1), deg_i those of row i."""
    few = min(n, (2 * ends + 4) * k)
    before, after = _pair_reaches(np.zeros(few, dtype=np.int64), k, ends)
    degrees = np.zeros(few, dtype=np.int64)
    for lag in range(1, min(k, few - 1) + 1):
        close = (before[:-lag] >= lag) & (after[lag:] >= lag)
        degrees[:-lag] += close
        degrees[lag:] += close
    more = n - few
    return int(degrees.sum()) // 2 + more * k, int((degrees * (degrees - 1)).sum()) + more * 2 * k * (2 * k - 1)


def null_variance(n: int, k: int, untied: float | None = None, ends: int = ENDS) -> float:
    """Return a bound on Var K where x and y are independent inside windows: N + D/9; with Q, a bound on E Q, less. V =
    min(N, Q) + min(D/9, (4k − 2) Q/4) where N and D are of one cell of n rows: several cells, or fewer rows, have no
    more.  Claim neighbour-variance."""
    pairs, sharing = pair_counts(n, k, ends)
    if untied is None:
        return pairs + sharing / 9
    some = min(max(untied, 0.0), float(pairs))
    return some + min(sharing / 9, (4 * k - 2) * some / 4)


def signed_sensitivity(k: int, unit: Unit = Unit.ROW) -> Sensitivity:
    """Return the sensitivity of K: 6k."""
    return Sensitivity(6 * _checked_count(k), Norm.ABSOLUTE, Relation.REPLACE_ONE, "neighbour-pairs", unit)


def untied_sensitivity(k: int, unit: Unit = Unit.ROW) -> Sensitivity:
    return Sensitivity(3 * _checked_count(k), Norm.ABSOLUTE, Relation.REPLACE_ONE, "untied-pairs", unit)


def _checked_count(k: int) -> int:
    if not 1 <= k <= MOST_NEIGHBOURS:
        raise ParameterError(f"neighbours must be a whole number between 1 and {MOST_NEIGHBOURS}")
    return k
