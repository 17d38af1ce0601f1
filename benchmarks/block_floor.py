"""The rows that even the best sum of bounded scores of blocks needs for power .8: what blocks can do of five numbers.

    python -m benchmarks block_floor [tables of z] [draws]

x and y are sums of smooth curves of five numbers plus noise of variance 1, the curves drawn from a Gaussian process
(each of variance .245 and width .5, as .7 sin 2z has), whose law the test knows.  The link: noises of correlation .1.
The null is the one that is hardest to tell from it: no link, and curves of x and y that share a little, smooth and
rough (of width .25).  Both laws of a block given z are normal, so the ratio of their likelihoods is known: scores are
its clipped logarithm, the sum is taken for normal, the test is one-sided.  Reading: the page on independence.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq, minimize

from benchmarks.sample_cost import LINK, without_privacy
from dpcausal.independence.law import noisy_power

SIZES, EPSILONS = (15, 22, 30, 45, 60, 90, 125), (1.0, 0.25, 0.1)
COLUMNS, VARIANCE, WIDTH, ROUGH, ALPHA, POWER = 5, 0.245, 0.5, 0.25, 0.05, 0.8
CLIPS = (0.5, 1.0, 2.0, 4.0, 8.0, math.inf)

Reals = Any


def additive(Z: Reals, width: float) -> Reals:
    """Return the sum over the columns of their curves' covariances, of variance 1 each."""
    return np.exp(-0.5 * ((Z[:, None] - Z[None]) / width) ** 2).sum(axis=2)


def laws(Z: Reals, shared: Reals) -> tuple[Reals, Reals]:
    """Return the covariances of (x, y) with the link, and of a null with rough curves and shared ones."""
    smooth, rough, one = VARIANCE * additive(Z, WIDTH), additive(Z, ROUGH) / COLUMNS, np.eye(len(Z))
    size, across, along = shared
    linked = np.block([[smooth + one, LINK * one], [LINK * one, smooth + one]])
    own, cross = smooth + (1 - size) * one + size * rough, across * rough + along * smooth
    return linked, np.block([[own, cross], [cross, own]])


def divergence(Z: Reals, shared: Reals) -> float:
    """Return Kullback and Leibler's divergence of the law with the link from the null."""
    linked, null = laws(Z, shared)
    ratio = cho_solve(cho_factor(null), linked)
    return float(np.trace(ratio) - len(ratio) - np.linalg.slogdet(ratio)[1]) / 2


def hardest(tables: list[Reals]) -> Reals:
    """Return how much the curves of the null share that is hardest to tell apart, on some of the tables."""

    def apart(shared: Reals) -> float:
        inside = 0 <= shared[0] <= 0.9 and abs(shared[1]) <= shared[0] and abs(shared[2]) <= 0.9
        return float(np.mean([divergence(Z, shared) for Z in tables])) if inside else 1e3

    return minimize(apart, (0.06, 0.06, 0.05), method="Nelder-Mead", options={"maxiter": 60, "fatol": 1e-4}).x


def ratios(Z: Reals, shared: Reals, draws: int, coins: Any) -> tuple[Reals, Reals]:
    """Return log likelihood ratios, link over null, of blocks drawn from either."""
    both, found = laws(Z, shared), []
    factors = [cho_factor(law, lower=True) for law in both]
    halves = [2 * np.log(np.diag(factor)).sum() for factor, _ in factors]
    for law in both:
        drawn = np.linalg.cholesky(law) @ coins.standard_normal((len(law), draws))
        linked, null = ((drawn * cho_solve(factor, drawn)).sum(axis=0) for factor in factors)
        found.append((null - linked + halves[1] - halves[0]) / 2)
    return found[0], found[1]


def blocks_needed(linked: Reals, null: Reals, epsilon: float) -> float:
    """Return the blocks that a one-sided test needs whose scores are clipped log likelihood ratios, the sums normal."""
    fewest = math.inf
    for clip in CLIPS:
        scores = [np.sign(one) if clip == math.inf else np.clip(clip * one, -1, 1) for one in (linked, null)]
        (up, down), spread = (float(one.mean()) for one in scores), max(float(one.std()) for one in scores)

        def short(blocks: float, gap: float = up - down, spread: float = spread) -> float:
            deviation, scale = math.sqrt(blocks) * spread, 2 / epsilon
            least = brentq(lambda t: noisy_power(0.0, deviation, scale, t) - ALPHA, 0.0, 20 * (deviation + scale))
            return noisy_power(blocks * gap, deviation, scale, least) - POWER

        if short(1e7) > 0:
            fewest = min(fewest, brentq(short, 1.0, 1e7, rtol=1e-3))
    return fewest


def main(arguments: list[str]) -> int:
    """Print the floors over the rows that a test without privacy needs."""
    tables, draws = (*(int(one) for one in arguments), *(10, 4_000)[len(arguments) :])[:2]
    base, coins = without_privacy(LINK), np.random.default_rng(0)
    print(f"rows over the {base:.0f} without privacy, at least, ε = {EPSILONS}")
    for size in SIZES:
        drawn = [np.random.default_rng(seed).standard_normal((size, COLUMNS)) for seed in range(tables)]
        shared = hardest(drawn[:4])
        found = [ratios(Z, shared, draws, coins) for Z in drawn]
        linked, null = (np.concatenate(one) for one in zip(*found, strict=True))
        rows = (size * blocks_needed(linked, null, epsilon) / base for epsilon in EPSILONS)
        print(f"blocks of {size:4} rows:  {' / '.join(f'{one:.2f}' for one in rows)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
