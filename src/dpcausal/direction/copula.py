"""Whether a block could be a linear-Gaussian pair that is seen through monotone scales: then no direction is told.

Of such a pair, y = h(a x + e), one direction may have additive noise on the scales as they are, and the wrong one as
well as the right one.  Ranks do not see the scales: their normal scores are linear and Gaussian.
"""

from __future__ import annotations

import math

import numpy as np

from dpcausal.direction.spline import Column

LARGEST = 0.999
"""Correlations beyond it are taken as it: what is left over of a line is noise of the ranks."""

TERMS = (2, 1), (1, 2), (3, 1), (1, 3), (2, 2)
"""Orders of the Hermite polynomials, of a column and of what the other leaves over, whose mean product is tested."""


def normal_scores(values: Column) -> Column:
    """Return Φ⁻¹((rank + ½)/n) with variance 1; equal values keep the order of the rows."""
    from scipy.special import ndtri

    scores = np.empty(len(values))
    scores[np.argsort(values, kind="stable")] = ndtri((np.arange(len(values)) + 0.5) / len(values))
    return np.asarray(scores / scores.std())


def gaussian_pvalue(x: Column, y: Column) -> float:
    """Return the smaller p-value of two tests that the normal scores of n rows are jointly Gaussian.

    T = n Σ (mean h_i(u) h_j(v))²,  v = (w − ρu)/√(1 − ρ²),  about χ² with 5 degrees of freedom

    where u and w are the scores of the columns, either way round, and h_i the normed Hermite polynomials.
    """
    from scipy.special import gammaincc

    scores = normal_scores(x), normal_scores(y)
    rho = float(np.clip(np.mean(scores[0] * scores[1]), -LARGEST, LARGEST))

    def statistic(u: Column, w: Column) -> float:
        of_u, of_v = _hermite(u), _hermite((w - rho * u) / math.sqrt(1 - rho**2))
        return len(u) * sum(float(np.mean(of_u[i] * of_v[j])) ** 2 for i, j in TERMS)

    return float(gammaincc(len(TERMS) / 2, max(statistic(*scores), statistic(*scores[::-1])) / 2))


def _hermite(u: Column) -> tuple[Column, ...]:
    return np.ones(len(u)), u, (u**2 - 1) / math.sqrt(2), (u**3 - 3 * u) / math.sqrt(6)
