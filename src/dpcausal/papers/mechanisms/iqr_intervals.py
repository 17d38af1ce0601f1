"""Proposed intervals of the IQR and the distance to leaving them: the statistics of propose-test-release.

Kept beside the algorithm that Kusner et al. (2016) print; the flip distance is far surer of a direction.
Proofs: ``iqr_intervals.md``.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpcausal.errors import ParameterError
from dpcausal.papers.statistics.iqr import IqrReach, least
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity, Unit

HALF_CELL = 0.5
"""The shift of the second interval's grid with which it always holds the IQR."""

LEAST = math.exp(-700.0)
"""An IQR below this counts as 0: among still smaller floats no cell of log IQR is true to its length."""

_ROUNDING = 2.0**-40
"""More than log IQR and the edges of a cell, as floats, can add to its length of 1."""


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
