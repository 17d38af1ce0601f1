"""The rows that tests of partial correlation need for power .8 at the least: what blocks can do, and what any test.

    python -m benchmarks block_floor [tables of z] [draws]

Three floors, all one-sided; their proofs are on the page on independence.  *Any test that knows the means* climbs from
level to power no faster than privacy and Neyman and Pearson allow; beside it, what the clamped likelihood ratio of the
rows attains.  *Any test in blocks that knows the means*.  *Sums over blocks that know only the law of the means*: x and
y are sums of smooth curves of five numbers plus noise of variance 1, the curves drawn from a Gaussian process (each of
variance .245 and width .5, as .7 sin 2z has).  The link: noises of correlation .1.  The null is the one that is hardest
to tell from it: no link, and curves of x and y that share a little, smooth and rough (of width .25).  Both laws of a
block given z are normal, so the ratio of their likelihoods is known, and with it the best bounded score.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq, minimize
from scipy.stats import norm

from benchmarks.sample_cost import LINK, without_privacy
from dpcausal.independence.null_laws import noisy_power

SIZES, EPSILONS = (8, 15, 22, 30, 45, 60, 90, 125, 250), (1.0, 0.25, 0.1)
COLUMNS, VARIANCE, WIDTH, ROUGH, ALPHA, POWER = 5, 0.245, 0.5, 0.25, 0.05, 0.8
SLOPES, WEIGHTS = 2.0 ** np.arange(-4, 7), (0.0, 0.25, 0.5, 0.75, 1.0)
KNOWN, PAIRS, STEP = (60, 125, 250, 500), 200_000, 0.002
CLAMPS = (0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.5)

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


def best_score(ratio: Reals, means: tuple[float, float], slope: float, weight: float) -> Reals:
    """Return the scores of blocks with such likelihood ratios that leave the most gap for so much variance."""
    lean = (1 - weight) * means[1] + weight * means[0] * ratio
    return np.clip((slope * (ratio - 1) + lean) / ((1 - weight) + weight * ratio), -1, 1)


def terms_needed(up: Reals, down: Reals, reach: float, epsilon: float, alpha: float = ALPHA) -> float:
    """Return how many terms of size up to the reach, drawn from either law, a one-sided test needs, sums normal."""
    gap = float(up.mean() - down.mean())

    def short(terms: float) -> float:
        deviation, scale = math.sqrt(terms) * float(down.std()), 2 * reach / epsilon
        least = brentq(lambda t: noisy_power(0.0, deviation, scale, t) - alpha, 0.0, 20 * (deviation + scale))
        return noisy_power(terms * gap, math.sqrt(terms) * float(up.std()), scale, least) - POWER

    return brentq(short, 1.0, 1e7, rtol=1e-3) if gap > 0 and short(1e7) > 0 else math.inf


def blocks_needed(linked: Reals, null: Reals, epsilon: float) -> float:
    """Return the fewest blocks of all bounded scores, of log likelihood ratios of blocks of either law."""
    up, down = (np.exp(np.clip(one, -30, 30)) for one in (linked, null))
    fewest = math.inf
    for slope in SLOPES:
        for weight in WEIGHTS:
            means = 0.0, 0.0
            for _ in range(5):
                scores = [best_score(one, means, slope, weight) for one in (up, down)]
                means = float(scores[0].mean()), float(scores[1].mean())
            fewest = min(fewest, terms_needed(*scores, 1.0, epsilon))
    return fewest


def known_ratios(rows: int, draws: int, coins: Any) -> tuple[Reals, Reals]:
    """Return log likelihood ratios of so many rows with and without the link, whose means are known."""
    correlation = LINK / math.sqrt(1 + LINK**2)
    found = []
    for linked in (correlation, 0.0):
        total = np.zeros(draws)
        for _ in range(rows):
            x, other = coins.standard_normal((2, draws))
            y = linked * x + math.sqrt(1 - linked**2) * other
            square = correlation * (2 * x * y - correlation * (x * x + y * y)) / (2 * (1 - correlation**2))
            total += square - math.log1p(-(correlation**2)) / 2
        found.append(total)
    return found[0], found[1]


def most_gain(up: Reals, down: Reals, epsilon: float) -> float:
    """Return the log of the largest (1 + k P(S))/(1 + k Q(S)), k = e^ε − 1, over sets of large ratio, of draws."""
    cuts, k = np.sort(np.concatenate([up, down])), math.expm1(epsilon)
    above = [1 - np.searchsorted(np.sort(one), cuts) / len(one) for one in (up, down)]
    return float(np.log((1 + k * above[0]) / (1 + k * above[1])).max())


def known_blocks(linked: Reals, null: Reals, epsilon: float) -> float:
    """Return the fewest blocks of any test that is private for whole blocks."""
    gain = max(most_gain(linked, null, epsilon), most_gain(-null, -linked, epsilon))
    across = 2 * math.log(math.cosh(gain / 2)) / gain  # what the block that takes the chance past a half may add
    return math.log(0.25 / (ALPHA * (1 - POWER))) / gain - across


def any_test(epsilon: float, coins: Any) -> float:
    """Return the fewest rows of any test that knows the means: level grows with the link as slowly as it may."""
    score = np.sort(np.prod(coins.standard_normal((2, PAIRS)), axis=0))[::-1]
    k, shares = math.expm1(epsilon), np.arange(1, PAIRS + 1) / PAIRS
    speed = float((k * np.cumsum(score) / PAIRS / (1 + k * shares)).max())
    chance = np.arange(ALPHA, POWER, STEP)
    near = np.abs(chance - 0.5) < STEP
    correlation = LINK / math.sqrt(1 + LINK**2)
    best = np.where(near, norm.pdf(0), np.maximum(norm.pdf(norm.ppf(chance)), norm.pdf(norm.ppf(chance + STEP))))
    best *= math.sqrt(1 + correlation**2) / (1 - correlation**2)  # the information of a row at the link

    def short(rows: float) -> float:
        fastest = np.minimum(rows * speed * np.minimum(chance + STEP, 1 - chance), math.sqrt(rows) * best)
        return correlation - float((STEP / fastest).sum())

    return brentq(short, 10.0, 1e6)


def main(arguments: list[str]) -> int:
    """Print the floors over the rows that a test without privacy needs."""
    tables, draws = (*(int(one) for one in arguments), *(10, 4_000)[len(arguments) :])[:2]
    base, coins = without_privacy(LINK), np.random.default_rng(0)
    print(f"rows over the {base:.0f} without privacy, at least, ε = {EPSILONS}")

    def told(what: str, rows: Iterable[float]) -> None:
        print(f"{what:54}{' / '.join(f'{one / base:.2f}' for one in rows)}", flush=True)

    told("any test, known means", (any_test(epsilon, coins) for epsilon in EPSILONS))
    pairs = known_ratios(1, PAIRS, coins)
    for alpha, sides in ((ALPHA, "one-sided"), (ALPHA / 2, "two-sided")):
        clamped = (min(terms_needed(*(np.clip(one, -c, c) for one in pairs), c, epsilon, alpha) for c in CLAMPS)
                   for epsilon in EPSILONS)  # fmt: skip
        told(f"clamped ratios of rows, known means, {sides}", clamped)
    for size in KNOWN:
        both = known_ratios(size, 10 * draws, coins)
        told(
            f"any test in blocks of {size} rows, known means",
            (size * known_blocks(*both, epsilon) for epsilon in EPSILONS),
        )
    for size in SIZES:
        drawn = [np.random.default_rng(seed).standard_normal((size, COLUMNS)) for seed in range(tables)]
        shared = hardest(drawn[:4])
        found = [ratios(Z, shared, draws, coins) for Z in drawn]
        linked, null = (np.concatenate(one) for one in zip(*found, strict=True))
        told(f"sums over blocks of {size} rows", (size * blocks_needed(linked, null, epsilon) for epsilon in EPSILONS))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
