"""Whether records bunch at a cutoff: the log density on either side, by noisy counts of bins.

On each side a line is fitted to the log density over the longest stretch from the cutoff on which the counts do not
reject it.  A parabola over the same stretch gives the density at the cutoff: what bends less than the counts can show
moves it by less than its error.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.effects.rdd.lines import SideFit

STRETCHES = 12
"""How many stretches are tried, the squares of even steps up to the whole of a side."""
REJECTED = 0.2
"""A line is rejected where its chi-squared has a lower p-value."""
ROUNDS, CLOSE, LONGEST = 60, 1e-6, 50.0
"""Most rounds of Fisher scoring, its smallest step, and the largest logarithm."""


class _Fit(NamedTuple):
    end: float
    """The log density at the cutoff."""
    variance: float
    chi_squared: float
    free: int


def bunching_pvalue(both: Sequence[SideFit]) -> float | None:
    """Return the p-value that the density has no jump at the cutoff, or ``None`` where a side has too few bins."""
    from scipy.special import ndtr

    ends = [_log_density(side) for side in both]
    if any(one is None for one in ends):
        return None
    left, right = (one for one in ends if one is not None)
    error = math.sqrt(max(left.variance + right.variance, 1e-300))
    return float(2 * ndtr(-abs(right.end - left.end) / error))


def _log_density(side: SideFit) -> _Fit | None:
    from scipy.special import chdtrc

    longest, whole = None, float(side.far.max())
    for step in range(STRETCHES, 0, -1):
        line, parabola = (_polynomial(side, whole * (step / STRETCHES) ** 2, degree) for degree in (1, 2))
        if line is None or parabola is None:
            break
        longest = parabola
        if chdtrc(line.free, line.chi_squared) > REJECTED:
            break
    return longest


def _polynomial(side: SideFit, stretch: float, degree: int) -> _Fit | None:
    # By Fisher scoring; bins weigh 1 − x / stretch.
    inside = side.middle < stretch
    if np.count_nonzero(inside) < degree + 3:
        return None
    x, counts = side.middle[inside] / stretch, side.counts[inside]
    span = np.where(side.far > side.near, side.far - side.near, 1.0)[inside]
    powers, noise = np.vander(x, degree + 1, increasing=True), len(side.sums) * float(side.noise[0, 0])
    logs = np.zeros(degree + 1)
    logs[0] = math.log(max(float(counts.sum()), 1.0) / float(span.sum()))

    def fitted() -> tuple[Reals, Reals, Reals, Reals]:
        mean = span * np.exp(np.clip(powers @ logs, -LONGEST, LONGEST))
        variance, gradient = np.maximum(mean, 1e-3) + noise, powers * mean[:, None]
        weights = (1 - x) / variance
        information = (gradient.T * weights) @ gradient
        return mean, variance, gradient, information + 1e-9 * np.trace(information) * np.eye(degree + 1)

    for _ in range(ROUNDS):
        mean, variance, gradient, information = fitted()
        step = np.linalg.solve(information, gradient.T @ ((1 - x) / variance * (counts - mean)))
        logs = logs + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < CLOSE:
            break
    mean, variance, gradient, information = fitted()
    row = np.linalg.solve(information, gradient.T * ((1 - x) / variance))[0]
    chi_squared = float(((counts - mean) ** 2 / variance).sum())
    return _Fit(float(logs[0]), float(row**2 @ variance), chi_squared, len(x) - degree - 1)
