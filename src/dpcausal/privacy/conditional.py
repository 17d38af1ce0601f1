"""Bounds that hold on a condition: what neighbours may differ by under ``Norm.SMOOTH`` and ``Norm.TESTED``.

Some statistics have no bound of use that holds for all data.  Their mechanisms take more than the value: a private
bound beside it, or private distances to where the bound fails.  What must hold for neighbours is then a property of
the whole answer, written here once for the audits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpcausal.privacy.sensitivity import Norm

ROUNDING = 1e-12
"""Relative float slack of the inner comparison."""

CONDITIONAL = (Norm.SMOOTH, Norm.TESTED)


def conditional_change(one: Any, other: Any, norm: Norm) -> float:
    """Return the change between two neighbours' answers, to be compared with the declared bound.

    SMOOTH, answers (v, S):  |log S − log S′| if |v − v′| ≤ min(S, S′), else ∞
    TESTED, answers (A₁, …, A_k, v):  max_j |A_j − A′_j|, and |v − v′| too unless all A_j, A′_j ≤ 1

    where v is the value, S > 0 its smooth bound, and A_j a number of records.
    """
    a, b = (np.asarray(answer, dtype=np.float64).ravel() for answer in (one, other))
    if a.shape != b.shape or len(a) < 2 or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return math.inf
    moved = abs(float(a[-1] - b[-1]) if norm is Norm.TESTED else float(a[0] - b[0]))
    if norm is Norm.TESTED:
        distances = float(np.max(np.abs(a[:-1] - b[:-1])))
        return distances if max(float(a[:-1].max()), float(b[:-1].max())) <= 1 else max(distances, moved)
    if norm is not Norm.SMOOTH or len(a) != 2 or not (a[1] > 0 and b[1] > 0):
        return math.inf
    return abs(math.log(a[1]) - math.log(b[1])) if moved <= min(a[1], b[1]) * (1 + ROUNDING) else math.inf
