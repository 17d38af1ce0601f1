"""The rows that sums over pairs of neighbours need for power .8 at the least, whatever bounded scores they add up.

    python -m benchmarks pair_floor

K = Σ φ(x_i − x_j) χ(y_i − y_j) over all pairs at most k apart in z, φ and χ odd, never falling and at most 1: one row
moves it by 6k, as it moves signs.  The noises are normal, *their deviations known*, the means constant, no pair is lost
at the ends and the variance is known for nothing: that is a floor for tests that must find all this out.  φ and χ are
mixtures of sgn(u) 1{|u| > t}, 19 cuts t each; the best mixtures are found numerically (Powell) from the best clipped
difference.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm

from benchmarks.sample_cost import LINK, without_privacy
from dpcausal.independence.null_laws import farthest_of, noisy_power, normal_laplace_pvalue

Reals = Any

EPSILONS, NEIGHBOURS = (1.0, 0.25, 0.1), (4, 5, 6, 7, 10, 10**9)
CUTS = np.concatenate([np.arange(0.0, 1.45, 0.1), [1.6, 1.8, 2.0, 2.3]])
"""In deviations of a difference."""


def _both_beyond(correlation: float) -> Reals:
    """Return P(u > t, v > t') of two differences with this correlation."""
    law = [[1.0, correlation], [correlation, 1.0]]
    return np.array([[multivariate_normal.cdf([-a, -b], cov=law) for b in CUTS] for a in CUTS])


SLOPES = 2 * norm.pdf(CUTS)
"""How much the mean of the sign beyond each cut grows with the mean of a difference."""
SQUARES = 2 * norm.sf(np.maximum.outer(CUTS, CUTS))
SHARED = 2 * (_both_beyond(0.5) - _both_beyond(-0.5))
"""Mean products of the signs beyond two cuts, of one difference and of two that share a row."""


def cost(first: Reals, second: Reals, k: int, epsilon: float) -> float:
    """Return the rows for power .8 of two mixtures of cuts, over those without privacy."""
    correlation, scale = LINK / math.sqrt(1 + LINK**2), 6 / epsilon
    signal = correlation * float((first @ SLOPES) * (second @ SLOPES))
    own = float((first @ SQUARES @ first) * (second @ SQUARES @ second))
    sharing = float((first @ SHARED @ first) * (second @ SHARED @ second))
    spread, low, high = own / k + (4 - 2 / k) * sharing, 200.0, 20_000.0
    while high - low > 0.5:
        n = (low + high) / 2
        deviation = math.sqrt(spread * n)
        least = farthest_of(lambda sum: normal_laplace_pvalue(sum, deviation, scale) <= 0.05, deviation)  # noqa: B023
        low, high = (low, n) if noisy_power(n * signal, deviation, scale, least) >= 0.8 else (n, high)
    return high / without_privacy(LINK)


def mixture(free: Reals) -> Reals:
    """Return weights of sum 1."""
    grown = np.exp(free - free.max())
    return grown / grown.sum()


def floor(k: int, epsilon: float) -> tuple[float, float, float]:
    """Return the cost of signs, of the best clipped difference, and of the best mixtures that are found."""
    clipped = [np.where(np.arange(CUTS.size) < most, 1 / most, 0.0) for most in range(1, CUTS.size + 1)]
    costs = [cost(one, one, k, epsilon) for one in clipped]
    start = np.log(np.maximum(clipped[int(np.argmin(costs))], 1e-3))
    found = minimize(
        lambda free: cost(mixture(free[: CUTS.size]), mixture(free[CUTS.size :]), k, epsilon), np.tile(start, 2),
        method="Powell", options={"maxfev": 2_000, "xtol": 1e-2, "ftol": 1e-4},
    )  # fmt: skip
    return costs[0], min(costs), min(*costs, float(found.fun))


def main(_arguments: list[str]) -> int:
    """Print the floors."""
    for k in NEIGHBOURS:
        for epsilon in EPSILONS:
            signs, clipped, best = floor(k, epsilon)
            told = f"{k} neighbours" if k < 10**9 else "any number of neighbours"
            words = f"signs {signs:.2f}, differences clipped at best {clipped:.2f}, any score {best:.3f}"
            print(f"{told:26} epsilon {epsilon:<5} {words}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
