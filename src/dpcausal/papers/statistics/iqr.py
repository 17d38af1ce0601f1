"""The interquartile range of clipped values: how far replaced records can move it, exactly, and who wins by it.

For m records x_(1) ≤ … ≤ x_(m) of a public range [L, U]:

    IQR = x_(u) − x_(l),  l = ⌈m/4⌉,  u = ⌈3m/4⌉

Order statistics, not interpolated quantiles: their reach after j replacements is known in closed form, also in
floating point.  The global sensitivity is U − L, so no additive noise on the IQR itself is of use.
Intervals of the IQR that are proposed, and the distance to leaving them, are the statistics of propose-test-release:
kept beside the algorithm that Kusner et al. (2016) print; the flip distance is far surer of a direction.
Proofs: ``iqr.md``.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpcausal.errors import ParameterError
from dpcausal.papers.statistics.rank import signed
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity, Unit
from dpcausal.privacy.unpicklable import ProcessLocal

Column = npt.NDArray[np.float64]

HALF_CELL = 0.5
"""The shift of the second interval's grid with which it always holds the IQR."""

LEAST = math.exp(-700.0)
"""An IQR below this counts as 0: among still smaller floats no cell of log IQR is true to its length."""

_ROUNDING = 2.0**-40
"""More than log IQR and the edges of a cell, as floats, can add to its length of 1."""


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


class Interval(NamedTuple):
    lower: float
    upper: float


def interval_distance(reach: IqrReach, interval: Interval) -> int:
    """Return min{j ≥ 0: hi_j ≥ upper or lo_j < lower}: the replacements that move the IQR out of ``interval``.

    *Source*: Dwork & Lei (2009); Kusner et al. (2016), appendix, Algorithm 1.
    """
    if not 0 <= interval.lower < interval.upper:
        raise ParameterError(f"the interval needs 0 <= lower < upper, got [{interval.lower}, {interval.upper})")
    return least(lambda j: reach.highest(j) >= interval.upper or reach.lowest(j) < interval.lower, reach.most)


def proposed_intervals(iqr: float, shift: float = HALF_CELL) -> tuple[Interval, Interval]:
    """Return the intervals of length 1 in log IQR that propose-test-release proposes, of an IQR of at least ``LEAST``.

    B₁ = [e^k, e^{k+1}), k = ⌊log IQR⌋;  B₂ = [e^{k₂ − ½}, e^{k₂ + ½}), k₂ = ⌊log IQR + shift⌋
    """
    if not LEAST <= iqr < math.inf:
        raise ParameterError("proposed intervals need a finite IQR of at least e^-700")
    first = _cell(iqr, 0.0)
    second = _cell(iqr, -shift)
    # Cut off where an IQR counts as 0, so that going there is leaving every cell.
    return (
        Interval(max(LEAST, _exp(first)), _exp(first + 1.0)),
        Interval(max(LEAST, _exp(second - 0.5)), _exp(second + 0.5)),
    )


def proposed_distances(reach: IqrReach, shift: float = HALF_CELL) -> tuple[int, int]:
    """Return A₁, A₂: the replacements that move the IQR out of its proposals; (0, 0) at an IQR below ``LEAST``.

    With ``HALF_CELL`` one replaced record moves each by at most 1; of another grid only A₁.
    """
    if reach.iqr < LEAST:
        return 0, 0
    first, second = proposed_intervals(reach.iqr, shift)
    return interval_distance(reach, first), interval_distance(reach, second)


def interval_sensitivity(unit: Unit = Unit.ROW) -> Sensitivity:
    return Sensitivity(1, Norm.LINF, Relation.REPLACE_ONE, "iqr-interval-distance", unit)


def proposal(reach: IqrReach, shift: float = HALF_CELL) -> npt.NDArray[np.float64]:
    """Return A₁, A₂ and log IQR, what propose-test-release asks of a column; an IQR of 0 counts as ``LEAST``."""
    return np.array([*proposed_distances(reach, shift), math.log(max(reach.iqr, LEAST))], dtype=np.float64)


def proposal_sensitivity(unit: Unit = Unit.ROW) -> Sensitivity:
    """Return the sensitivity 1 + 2⁻⁴⁰ of ``proposal`` with ``HALF_CELL``; of log IQR where a distance is above 1."""
    return Sensitivity(1 + _ROUNDING, Norm.TESTED, Relation.REPLACE_ONE, "log-iqr-proposal", unit)


def _exp(exponent: float) -> float:
    return math.exp(exponent) if exponent < 709.75 else math.inf


def _cell(iqr: float, offset: float) -> int:
    k = math.floor(math.log(iqr) - offset)
    # The logarithm is rounded; the edges decide, so that the cells are a partition.
    while _exp(k + offset) > iqr:
        k -= 1
    while _exp(k + 1 + offset) <= iqr:
        k += 1
    return k
