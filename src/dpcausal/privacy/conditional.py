"""Bounds that hold on a condition: what neighbours may differ by under ``Norm.TESTED``.

Some statistics have no bound of use that holds for all data.  Their mechanisms take more than the value: a private
distances to where the bound fails.  What must hold for neighbours is then a property of
the whole answer, written here once for the audits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpcausal.privacy.sensitivity import Norm

CONDITIONAL = (Norm.TESTED,)


def conditional_change(one: Any, other: Any, norm: Norm) -> float:
    """Return the change between two neighbours' answers, to be compared with the declared bound.

    TESTED, answers (A₁, …, A_k, v):  max_j |A_j − A′_j|, and |v − v′| too unless all A_j, A′_j ≤ 1

    where v is the value and A_j a number of records.
    """
    a, b = (np.asarray(answer, dtype=np.float64).ravel() for answer in (one, other))
    if norm not in CONDITIONAL or a.shape != b.shape or len(a) < 2 or not np.isfinite([a, b]).all():
        return math.inf
    distances = float(np.max(np.abs(a[:-1] - b[:-1])))
    return distances if max(a[:-1].max(), b[:-1].max()) <= 1 else max(distances, abs(float(a[-1] - b[-1])))
