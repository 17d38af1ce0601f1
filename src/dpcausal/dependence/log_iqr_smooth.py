"""A smooth bound of what one record can move sums and differences of log IQRs by.

The local sensitivity of log IQR is small on nearly all data and large on some; the smooth bound is as large as the
local one and e^−β times as large as that of data a record away.  ``mechanisms.smooth_sensitivity`` scales noise to it.
Proofs: ``log_iqr_smooth.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from dpcausal.dependence.iqr import IqrReach, quartiles
from dpcausal.dependence.log_iqr import GRID_DEPTH
from dpcausal.errors import ParameterError
from dpcausal.privacy.confined import Confined
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.sensitivity import Norm, Sensitivity

Column = npt.NDArray[np.float64]

LEAST_WIDTH = 1e-290
"""In a narrower range the floor of the IQR would not be true to its size as a float."""

_ROUNDING = 2.0**-40
"""Added to every bound: more than what the rounding of a log IQR can move it by."""

_STEP_UP = 1 + 2.0**-40
"""Weights fall by this much less than e^−β a record, more than all roundings of a bound."""


class LogIqrSteps(Confined):
    """A column's log IQR, cut off at a public floor, and bounds of its local sensitivity at a distance of k records.

    q = log max(IQR, F),  F = (U − L)·e^−16;  b_k = log(1 + G_k / max(lo_{k+1}, F)),  at most 16

    where G_k is the widest gap that k replacements can leave beside a quartile: the largest x_(i+k+1) − x_(i) with
    l − 1 − k ≤ i ≤ l or u − 1 − k ≤ i ≤ u.

    *Guarantee*: one replaced record moves q by at most b_0, and b_k at a neighbour is at most b_{k+1}
    (``log_iqr_smooth.md``, log-iqr-smooth).  The object holds private values: it shows none and does not pickle.
    """

    confined = "a LogIqrSteps holds private values and does not leave the process"

    __slots__ = ("_first", "_floor", "_ordered", "_second", "reach", "top")

    def __init__(self, x: Column, lower: float, upper: float) -> None:
        self.reach = IqrReach(x, lower, upper)
        if self.reach.width < LEAST_WIDTH:
            raise ParameterError(f"the range must be at least {LEAST_WIDTH:g} wide for a floor of log IQR")
        lower, upper, m = float(lower), float(upper), self.reach.m
        ordered = np.sort(np.fmin(np.fmax(np.asarray(x, dtype=np.float64), lower), upper))
        # Beyond the ends the bounds, as often as any k ≤ m asks for: x_(i) stands at place i + m.
        self._ordered = np.concatenate((np.full(m + 1, lower), ordered, np.full(m + 1, upper)))
        low, high = quartiles(m)
        self._first, self._second = low + 1 + m, high + 1 + m
        self._floor = self.reach.width * math.exp(-GRID_DEPTH)
        self.top = math.log(self.reach.width / self._floor) + _ROUNDING

    @property
    def value(self) -> float:
        """Return q."""
        return math.log(max(self.reach.iqr, self._floor))

    def __repr__(self) -> str:
        return f"LogIqrSteps(m={self.reach.m}, width={self.reach.width}, values hidden)"

    def widest_gap(self, k: int) -> float:
        """Return G_k, 0 ≤ k < m, in O(k)."""
        widest = 0.0
        for place in (self._first, self._second):
            start, stop = place - 1 - k, place + 1
            widest = max(widest, float(np.max(self._ordered[start + k + 1 : stop + k + 1] - self._ordered[start:stop])))
        return widest

    def bound(self, k: int) -> float:
        """Return b_k, and from k = m on the most that q can move by at all; it never decreases in k."""
        if k >= self.reach.m:
            return self.top
        least = max(self.reach.lowest(k + 1), self._floor)
        return min(self.top, math.log1p(self.widest_gap(k) / least) + _ROUNDING)


def smooth_log_iqr(columns: Sequence[LogIqrSteps], signs: Sequence[int], beta: float) -> Column:
    """Return v = Σ_c ± q_c of columns of the same records, and a β-smooth bound S on its move; both are private.

    S = max_{k ≥ 0} e^{−βk} Σ_c b_k(c).  *Source*: Nissim, Raskhodnikova & Smith (2007), Definition 2.1 and Lemma 2.3.
    """
    if not columns or len(signs) != len(columns) or any(column.reach.m != columns[0].reach.m for column in columns):
        raise ParameterError("a sum of log IQRs needs columns of the same records, and a sign for each")
    if not (math.isfinite(beta) and beta > 0) or not all(sign in (1, -1) for sign in signs):
        raise ParameterError("beta must be finite and above 0, a sign 1 or -1")
    value = sum(sign * column.value for sign, column in zip(signs, columns, strict=True))
    m = columns[0].reach.m
    # Each product is rounded, but the extra factor outweighs that: weights fall by at most e^−β a record.
    weights = np.cumprod(np.append(1.0, np.full(m, math.exp(-beta) * _STEP_UP)))
    # No weight below that of the rounding can win: b_0 is at least this.
    last = int(np.searchsorted(-weights, -_ROUNDING / (2 * largest_bound(columns))))
    bound = _largest_product(weights, lambda k: math.fsum(column.bound(k) for column in columns), min(m, last))
    return np.array([value, bound])


def largest_bound(columns: Sequence[LogIqrSteps]) -> float:
    """Return the public number that S never passes: the most that the sum can move by at all."""
    return math.fsum(column.top for column in columns) * _STEP_UP


def smooth_sensitivity(beta: float, unit: Unit = Unit.ROW) -> Sensitivity:
    """Return the sensitivity of ``smooth_log_iqr``: v moves by at most the smaller S, log S by at most β."""
    return Sensitivity(beta, Norm.SMOOTH, Relation.REPLACE_ONE, "log-iqr-smooth", unit)


def _largest_product(weights: Column, rising: Callable[[int], float], last: int) -> float:
    """Return max over k = 0, …, last of weights[k]·rising(k), where weights fall and ``rising`` does not.

    Between two looked-at places no product passes the left one's weight times the right one's bound.
    """
    at = {0: rising(0), last: rising(last)}
    best = max(float(weights[k]) * at[k] for k in at)
    spans = [(0, last)]
    while spans:
        start, stop = spans.pop()
        if stop - start < 2 or float(weights[start + 1]) * at[stop] <= best:
            continue
        middle = (start + stop) // 2
        at[middle] = rising(middle)
        best = max(best, float(weights[middle]) * at[middle])
        spans += [(start, middle), (middle, stop)]
    return best
