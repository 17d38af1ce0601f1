"""Sample cost of privacy: rows for power .8 at ε over the rows that a test without privacy needs.

    python -m benchmarks sample_cost [repetitions]

x = sin z + e, y = cos z + e′ + .1 e given one number.  Without privacy: Fisher's z of the noises themselves,
(1.96 + .8416)²/atanh(ρ)² + 3 rows.  Rows are found by a probit regression of rejections on √n over a ladder of n, so
that each ladder uses all its runs.  The same at an effect for which 100,000 rows are needed without privacy; and of
five numbers from the terms of blocks, measured once, whose sums are drawn.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from scipy.special import ndtri

from benchmarks.independence_shapes import one
from dpcausal.independence.blocks import LEAST_LEARNING, RESAMPLES
from dpcausal.independence.law import FEW_BLOCKS, REACH, block_pvalue, term
from dpcausal.independence.power import power
from dpcausal.independence.ranks import permutation_score
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.regression.likely_kernel import likely_residuals
from dpcausal.regression.smoother import Given

LINK = 0.1
TARGETS = {1.0: 1.4, 0.25: 2.5, 0.1: 5.5}
SEVERAL_TARGETS = {1.0: 2.0, 0.25: 5.0, 0.1: 12.0}
LARGE, LARGE_LADDER = 100_000, (100_000, 125_000, 150_000)
LADDERS = {1.0: (700, 1_000, 1_400), 0.25: (1_300, 2_000, 3_000), 0.1: (2_800, 4_200, 6_000)}


def without_privacy(link: float) -> float:
    """Return the rows for power .8 of Fisher's z at .05."""
    correlation = link / math.sqrt(1 + link**2)
    return float((ndtri(0.975) + ndtri(0.8)) ** 2 / math.atanh(correlation) ** 2 + 3)


def rows_for_power(epsilon: float, repetitions: int, ladder: tuple[int, ...], link: float) -> float:
    """Return the rows at which the default has power .8, by a probit regression of rejections on √n."""
    shape = one(np.sin, np.cos)
    found = [
        power(n, loss=PureDP(epsilon), design=lambda n, seed: shape(n, np.random.default_rng(seed), link),
              repetitions=repetitions, seed=11).rate
        for n in ladder
    ]  # fmt: skip
    slope, start = np.polyfit(np.sqrt(ladder), ndtri(np.clip(found, 0.01, 0.99)), 1)
    print(f"  power at {ladder}: {', '.join(f'{rate:.3f}' for rate in found)}")
    return float(((ndtri(0.8) - start) / slope) ** 2)


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
        for epsilon, most in (TARGETS if base < LARGE else dict.fromkeys(TARGETS, 1.4)).items():
            ladder = LADDERS[epsilon] if base < LARGE else LARGE_LADDER
            rows = rows_for_power(epsilon, count, ladder, link)
            # The power's error at .8, carried over to rows: d power/d n there is about φ(.84) (2.8/2)/n.
            error = 2 * math.sqrt(0.16 / (len(ladder) * count)) / (0.28 * 1.4) * rows / base
            missed |= rows / base - error > most
            cost = f"cost {rows / base:.2f} ± {error:.2f}"
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
