"""Sample cost of privacy: rows for power .8 at ε over the rows that a test without privacy needs.

    python -m benchmarks sample_cost [repetitions]

x = sin z + e, y = cos z + e′ + .1 e given one number.  Without privacy: Fisher's z of the noises themselves,
(1.96 + .8416)²/atanh(ρ)² + 3 rows.  Rows are found by a probit regression of the power on √n over a ladder of n, so
that each ladder uses all its runs; the noise is summed up, not drawn.  The same at an effect for which 100,000 rows are
needed without privacy; and of five numbers from the terms of blocks, measured once, whose sums are drawn.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable

import numpy as np
from scipy.special import ndtri

from benchmarks.independence_level import critical, settled, share
from benchmarks.independence_shapes import one
from dpcausal.data.table import Table
from dpcausal.dependence.neighbour_pairs import signed_sensitivity
from dpcausal.independence.blocks import LEAST_LEARNING, RESAMPLES
from dpcausal.independence.law import FEW_BLOCKS, REACH, block_pvalue, normal_laplace_pvalue, term
from dpcausal.independence.question import Hypothesis
from dpcausal.independence.ranks import permutation_score
from dpcausal.mechanisms.additive import laplace_scale
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.regression.likely_kernel import likely_residuals
from dpcausal.regression.smoother import Given

LINK = 0.1
TARGETS = {1.0: 1.4, 0.25: 2.5, 0.1: 5.5}
SEVERAL_TARGETS = {1.0: 2.0, 0.25: 5.0, 0.1: 12.0}
LARGE, LARGE_LADDER = 100_000, (100_000, 125_000, 150_000)
LADDERS = {(900, 1_100, 1_300): (1.0,), (1_700, 2_100, 2_500): (0.25,), (3_500, 4_200, 5_000): (0.1,)}


def without_privacy(link: float) -> float:
    """Return the rows for power .8 of Fisher's z at .05."""
    correlation = link / math.sqrt(1 + link**2)
    return float((ndtri(0.975) + ndtri(0.8)) ** 2 / math.atanh(correlation) ** 2 + 3)


def powers(n: int, repetitions: int, link: float, epsilons: Iterable[float]) -> list[tuple[float, float]]:
    """Return the default's power with n rows at each ε, and its standard error."""
    shape, sums = one(np.sin, np.cos), []
    for seed in range(repetitions):
        data = shape(n, np.random.default_rng(seed), link)
        question = Hypothesis.of(
            Table(data.columns, data.schema, Ledger.in_memory(PureDP(1))), "x", "y", data.given, 0.05
        )
        test = settled(question, 1.0)  # neighbours, whatever ε
        sums.append(test.sums(question.read(), question, generator_from_seed(seed)).signed)
    found = []
    for epsilon in epsilons:
        scale = laplace_scale(signed_sensitivity(test.neighbours).bound, PureDP(epsilon))
        least = critical(normal_laplace_pvalue, test.deviation(question), scale)
        likely = np.array([share(one, least, scale) for one in sums])
        found.append((float(likely.mean()), float(likely.std() / repetitions**0.5)))
    return found


def rows_for_power(ladder: tuple[int, ...], found: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the rows with power .8, by a probit regression of the power on √n, and their standard error."""
    rates, errors = np.array(found).T
    slope, start = np.polyfit(np.sqrt(ladder), ndtri(np.clip(rates, 0.01, 0.99)), 1)
    root = (ndtri(0.8) - start) / slope
    # d probit/d power at .8 is 1/φ(.84) = 3.57; the ladder's errors are averaged.
    error = 3.57 * float(np.sqrt((errors**2).mean() / len(ladder))) / slope
    return float(root**2), float(2 * root * error)


def block_terms(count: int, link: float) -> list[int]:
    """Return the terms of so many blocks of the fewest rows, x and y additive in five numbers with opposite signs."""
    rng, terms = np.random.default_rng(2), []
    for place in range(count):
        Z, noise = rng.standard_normal((5, LEAST_LEARNING)), rng.standard_normal((2, LEAST_LEARNING))
        mean = 0.7 * np.sin(2 * Z).sum(axis=0)
        both = np.stack([mean + noise[0], -mean + noise[1] + link * noise[0]], axis=1)
        found = likely_residuals(Given(Z.T.copy(), np.empty((LEAST_LEARNING, 0), dtype=np.int64)), both)
        left, right = found.residuals[:, :1], found.residuals[:, 1:]
        terms.append(term(permutation_score(left, right, RESAMPLES, found.spread, generator_from_seed(place))))
    return terms


def power_of_terms(terms: list[int], blocks: int, epsilon: float, draws: int = 2_000) -> float:
    """Return how often a sum of so many of the terms, with its noise, is significant at .05."""
    rng, ratio = np.random.default_rng(3), math.exp(-epsilon / (2 * REACH))
    noisy = rng.choice(terms, (draws, blocks)).sum(axis=1) + rng.geometric(1 - ratio, draws)
    noisy -= rng.geometric(1 - ratio, draws)
    low, high = 0, 20 * REACH * blocks
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if block_pvalue(middle, blocks, epsilon, True) <= 0.05 else (middle, high)
    return float(np.mean(np.abs(noisy) >= high))


def blocks_for_power(terms: list[int], epsilon: float) -> int:
    """Return the blocks at which that is .8."""
    low, high = FEW_BLOCKS, 4_000
    while high - low > max(1, low // 40):
        middle = (low + high) // 2
        low, high = (low, middle) if power_of_terms(terms, middle, epsilon) >= 0.8 else (middle, high)
    return high


def main(arguments: list[str]) -> int:
    """Return 0 if every target was met."""
    repetitions = int(arguments[0]) if arguments else 1_000
    missed = False
    for base in (without_privacy(LINK), float(LARGE)):
        link = LINK if base < LARGE else LINK * math.sqrt((without_privacy(LINK) - 3) / LARGE)
        count = repetitions if base < LARGE else max(20, repetitions // 10)
        print(f"One number given, effect {link:.3g}, {count} tables a power; without privacy {base:.0f} rows")
        ladders = LADDERS if base < LARGE else {LARGE_LADDER: tuple(TARGETS)}
        for ladder, epsilons in ladders.items():
            each = [powers(n, count, link, epsilons) for n in ladder]
            for epsilon, found in zip(epsilons, zip(*each, strict=True), strict=True):
                rows, error = rows_for_power(ladder, list(found))
                most = TARGETS[epsilon] if base < LARGE else 1.4
                missed |= (rows - 2 * error) / base > most
                print(f"  power at {ladder}: {', '.join(f'{rate:.3f}' for rate, _ in found)}")
                cost = f"cost {rows / base:.2f} ± {2 * error / base:.2f}"
                print(f"epsilon {epsilon:<5} {rows:7.0f} rows, {cost} (target {most})", flush=True)
    base = without_privacy(LINK)
    print(f"Five numbers given, additive, effect {LINK:g}: sums of the terms of {repetitions} blocks of 125 rows")
    terms = block_terms(repetitions, LINK)
    for epsilon, most in SEVERAL_TARGETS.items():
        rows = LEAST_LEARNING * blocks_for_power(terms, epsilon)
        missed |= rows / base > most
        print(f"epsilon {epsilon:<5} {rows:7.0f} rows, cost {rows / base:.1f} (target {most})", flush=True)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
