"""The interquartile range of clipped values: how far replaced records can move it, exactly, and who wins by it.

For m records x_(1) ≤ … ≤ x_(m) of a public range [L, U]:

    IQR = x_(u) − x_(l),  l = ⌈m/4⌉,  u = ⌈3m/4⌉

Order statistics, not interpolated quantiles: their reach after j replacements is known in closed form, also in
floating point.  The global sensitivity is U − L, so no additive noise on the IQR itself is of use.
Proofs: ``iqr.md``.
"""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dpcausal.errors import ParameterError
from dpcausal.papers.statistics.rank import signed
from dpcausal.privacy.process_local import ProcessLocal

Column = npt.NDArray[np.float64]


def interquartile_range(x: Column) -> float:
    """Return x_(u) − x_(l), l = ⌈m/4⌉, u = ⌈3m/4⌉, of m ≥ 2 finite values."""
    low, high = quartiles(len(x))
    ordered = np.partition(np.asarray(x, dtype=np.float64), (low, high))
    return float(ordered[high] - ordered[low])


class IqrReach(ProcessLocal):
    """The exact largest and smallest IQR after at most j replacements inside a public range [L, U].

    hi_j = max over a + b = j of x_(u+b) − x_(l−a),  lo_j = min over a + b = j of max(0, x_(u−b) − x_(l+a)),
    where x_(k) is U for k > m and L for k < 1.  Values are clipped into the range, NaN counts as its lower end.

    *Guarantee*: hi_j at a data set is at most hi_{j+1} at each neighbour, lo_j at least lo_{j+1}, as floats
    (``iqr.md``, iqr-reach).  The object holds private values: it shows none and does not pickle.
    """

    confined = "an IqrReach holds private values and does not leave the process"

    __slots__ = ("_above", "_below", "_inner", "_outer_most", "iqr", "m", "width")

    def __init__(self, x: Column, lower: float, upper: float) -> None:
        # The width must be the float difference of the floats that the values are compared with: the difference of
        # large integers or of float32 numbers can be less than that of two values, and hi_j would fall.
        lower, upper = float(lower), float(upper)
        if not (math.isfinite(upper - lower) and lower < upper):
            raise ParameterError(f"the range needs finite lower < upper and a finite width, got [{lower}, {upper}]")
        if np.ndim(x) != 1:
            raise ParameterError(f"an interquartile range needs a one-dimensional array, got {np.ndim(x)} dimensions")
        low, high = quartiles(len(x))
        # fmax and fmin map NaN to the bound, so the values are finite and the map is one of single records.
        ordered = np.sort(np.fmin(np.fmax(np.asarray(x, dtype=np.float64), lower), upper))
        self.m = len(ordered)
        self.width = upper - lower
        self._above = np.append(ordered[high:], upper)  # x_(u), x_(u+1), …, x_(m), U
        self._below = np.append(ordered[low::-1], lower)  # x_(l), x_(l−1), …, x_(1), L
        self._inner = ordered[low : high + 1]  # x_(l), …, x_(u)
        self._outer_most = len(self._above) + len(self._below) - 2
        self.iqr = float(ordered[high] - ordered[low])

    @property
    def most(self) -> int:
        return max(self._outer_most, len(self._inner) - 1)

    def highest(self, j: int) -> float:
        """Return hi_j, j ≥ 0, in O(j); it never decreases in j."""
        if j >= self._outer_most:
            return self.width
        start, stop = max(0, j - len(self._below) + 1), min(j, len(self._above) - 1)  # the b of a + b = j
        return float(np.max(self._above[start : stop + 1] - self._below[j - stop : j - start + 1][::-1]))

    def lowest(self, j: int) -> float:
        """Return lo_j, j ≥ 0, in O(j); it never increases in j."""
        last = len(self._inner) - 1
        if j >= last:
            return 0.0
        return float(np.min(self._inner[last - j :] - self._inner[: j + 1]))

    def __repr__(self) -> str:
        return f"IqrReach(m={self.m}, width={self.width}, values hidden)"


def iqr_signed_distance(first: tuple[IqrReach, IqrReach], second: tuple[IqrReach, IqrReach]) -> int:
    """Return the signed flip distance of two pairs of columns of the same records, scored by log IQR(A) + log IQR(B).

    The pair with the smaller product of IQRs wins, the first at equality; no logarithm is taken.

    first (A, B) wins:  d = min{j ≥ 1: hi_j(A)·hi_j(B) > lo_j(C)·lo_j(E)},  z = d − 1
    second (C, E) wins: d = min{j ≥ 1: hi_j(C)·hi_j(E) ≥ lo_j(A)·lo_j(B)},  z = −d

    *Guarantee*: one replaced record moves z by at most 1 (``iqr.md``, iqr-flip-distance), also in floating point.
    *Source*: Kusner et al. (2016), section 3.3, for the score; the distance is this library's.
    """
    (A, B), (C, E) = first, second
    if not A.m == B.m == C.m == E.m:
        raise ParameterError("the four columns must have the same number of records")
    for pair in (first, second):
        if not 0 < pair[0].width * pair[1].width < math.inf:
            raise ParameterError("the product of the widths of a pair's ranges must be positive and finite as a float")
    first_wins = A.iqr * B.iqr <= C.iqr * E.iqr

    def can_flip(j: int) -> bool:
        if first_wins:
            return A.highest(j) * B.highest(j) > C.lowest(j) * E.lowest(j)
        return C.highest(j) * E.highest(j) >= A.lowest(j) * B.lowest(j)

    # At j = 0 the winner wins: the search may start there and never returns 0.
    most = max(reach.most for pair in (first, second) for reach in pair)
    return signed(first_wins, least(can_flip, most))


def quartiles(m: int) -> tuple[int, int]:
    if m < 2:
        raise ParameterError(f"an interquartile range needs at least 2 records, got {m}")
    return -(-m // 4) - 1, -(-3 * m // 4) - 1


def least(holds: Callable[[int], bool], most: int) -> int:
    """Return the least j in 0, …, most at which a condition holds that, once it holds, stays; it holds at most."""
    below, above = -1, 0
    while above < most and not holds(above):
        below, above = above, min(most, 2 * above + 1)
    while above - below > 1:
        middle = (below + above) // 2
        if holds(middle):
            above = middle
        else:
            below = middle
    return above
