"""The median of block values in [0, 1] and a smooth bound on what one record can move it by: ``smooth_median.md``."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpcausal.errors import ParameterError
from dpcausal.privacy.neighbours import Relation
from dpcausal.privacy.sensitivity import Norm, Sensitivity

Reals = npt.NDArray[np.float64]

ROUNDING = 1e-12
"""Taken off β and added to S: outweighs the rounding of both."""

LEAST = 1e-250
"""A smaller S counts as this: e^(−kβ) may come out as 0, and S must not."""


def smooth_median(values: Reals, beta: float) -> Reals:
    """Return the median of an odd, public number M of values in [0, 1] and its β-smooth bound S, in (0, 1 + 1e-12].

    S = max_{k ≥ 0} e^(−kβ) A_k,  A_k = max_{0 ≤ t ≤ k+1} (x_(m+t) − x_(m+t−k−1))

    where x_(1) ≤ … ≤ x_(M), m = (M + 1)/2, and values beyond the ends are 0 and 1; a record changes one value.
    *Source*: Nissim, Raskhodnikova & Smith (2007), Proposition 3.4; Wang, Pang & Song (2020), Definition 10, has
    e^(−kε) for e^(−kβ).
    """
    M = len(values)
    if M % 2 == 0 or not (math.isfinite(beta) and beta > 10 * ROUNDING):
        raise ParameterError("a smooth median needs an odd number of values and beta above 1e-11")
    ordered = np.sort(np.clip(values, 0.0, 1.0))
    m = (M - 1) // 2
    reach = M  # from here on both ends are passed: A_k = 1
    padded = np.concatenate([np.zeros(reach + 1), ordered, np.ones(reach + 1)])
    centre = m + reach + 1
    best = 0.0
    decay = math.exp(-(beta - ROUNDING))
    weight = 1.0
    for k in range(reach + 1):
        if weight <= best:
            break
        t = np.arange(k + 2)
        best = max(best, weight * float((padded[centre + t] - padded[centre + t - k - 1]).max()))
        weight *= decay
    return np.array([ordered[m], max(best, LEAST) * (1 + ROUNDING)])


def smooth_median_sensitivity(beta: float) -> Sensitivity:
    """Return the sensitivity of ``smooth_median``: the median moves by at most the smaller S, log S by at most β."""
    return Sensitivity(beta, Norm.SMOOTH, Relation.REPLACE_ONE, "smooth-median")
