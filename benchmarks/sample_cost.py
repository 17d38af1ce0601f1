"""Sample cost of privacy: rows for power 0.8 at ε over the rows that a test without privacy needs.

x = sin z + e, y = cos z + e′ + 0.1 e given one number.  Without privacy: Fisher's z of the noises themselves,
(1.96 + 0.8416)²/atanh(ρ)² + 3 rows.  Rows are found by a probit regression of the power on √n over a ladder of n, so
that each ladder uses all its runs; the noise is summed up, not drawn; ε = inf gives what the statistic itself costs.
Of five numbers the terms of blocks are measured once and their sums drawn, with an effect of either sign.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import ndtri

from benchmarks.designs.independence.shapes import one
from benchmarks.independence_level import critical, planned, share
from benchmarks.run import Report, options
from dpcausal.data.table import Table
from dpcausal.independence.methods.block_test import LEAST_LEARNING, RESAMPLES
from dpcausal.independence.null_laws import (
    FEW_BLOCKS,
    REACH,
    block_pvalue,
    normal_laplace_pvalue,
    permutation_score,
    term,
)
from dpcausal.independence.question import IndependenceQuestion
from dpcausal.mechanisms.additive import laplace_scale
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.regression.marginal_likelihood import likely_residuals
from dpcausal.regression.smoother import Given
from dpcausal.statistics.neighbour_pairs import signed_sensitivity

LINK = 0.1
TARGETS = {1.0: 1.4, 0.25: 2.5, 0.1: 5.5}
SEVERAL_TARGETS = {1.0: 2.0, 0.25: 5.0, 0.1: 12.0}
LADDERS = {
    math.inf: (900, 1_100, 1_300), 1.0: (1_100, 1_300, 1_500), 0.25: (1_700, 2_100, 2_500), 0.1: (3_500, 4_200, 5_000),
}


def without_privacy(link: float) -> float:
    """Return the rows for power 0.8 of Fisher's z at 0.05."""
    correlation = link / math.sqrt(1 + link**2)
    return float((ndtri(0.975) + ndtri(0.8)) ** 2 / math.atanh(correlation) ** 2 + 3)


def powers(n: int, repetitions: int, link: float, epsilon: float) -> tuple[float, float]:
    """Return the default's power with n rows at ε, and its standard error."""
    shape, sums, exact = one(np.sin, np.cos), [], epsilon == math.inf
    for seed in range(repetitions):
        data = shape(n, np.random.default_rng(seed), link)
        question = IndependenceQuestion.of(
            Table(data.columns, data.schema, Ledger.in_memory(PureDP(1))), "x", "y", data.given, 0.05
        )
        test = planned(question, 1.0 if exact else epsilon)
        sums.append(test.sums(question.read(), question, generator_from_seed(seed)).signed)
    scale = 1e-9 if exact else laplace_scale(signed_sensitivity(test.neighbours).bound, PureDP(epsilon))
    least = critical(normal_laplace_pvalue, test.deviation(question), scale)
    likely = np.array([float(abs(one) >= least) if exact else share(one, least, scale) for one in sums])
    return float(likely.mean()), float(likely.std() / repetitions**0.5)


def rows_for_power(ladder: tuple[int, ...], found: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the rows with power 0.8, by a probit regression of the power on √n, and their standard error."""
    rates, errors = np.array(found).T
    slope, start = np.polyfit(np.sqrt(ladder), ndtri(np.clip(rates, 0.01, 0.99)), 1)
    root = (ndtri(0.8) - start) / slope
    # d probit/d power at 0.8 is 1/φ(0.84) = 3.57; the ladder's errors are averaged.
    error = 3.57 * float(np.sqrt((errors**2).mean() / len(ladder))) / slope
    return float(root**2), float(2 * root * error)


def block_terms(count: int, link: float) -> list[int]:
    """Return the terms of the blocks of the fewest rows, x and y additive in five numbers with opposite signs."""
    rng, terms = np.random.default_rng(2), []
    for place in range(count):
        Z, noise = rng.standard_normal((5, LEAST_LEARNING)), rng.standard_normal((2, LEAST_LEARNING))
        mean = 0.7 * np.sin(2 * Z).sum(axis=0)
        both = np.stack([mean + noise[0], -mean + noise[1] + link * noise[0]], axis=1)
        given = Given(Z.T.copy(), np.empty((LEAST_LEARNING, 0), dtype=np.int64))
        found = likely_residuals(given, (both[:, :1], both[:, 1:]))
        left, right = found.residuals[:, :1], found.residuals[:, 1:]
        terms.append(term(permutation_score(left, right, RESAMPLES, found.spread, generator_from_seed(place))))
    return terms


def power_of_terms(terms: list[int], blocks: int, epsilon: float, draws: int = 2_000) -> float:
    """Return how often a sum of this many terms, with its noise, is significant at 0.05."""
    rng, ratio = np.random.default_rng(3), math.exp(-epsilon / (2 * REACH))
    noisy = rng.choice(terms, (draws, blocks)).sum(axis=1) + rng.geometric(1 - ratio, draws)
    noisy -= rng.geometric(1 - ratio, draws)
    low, high = 0, 20 * REACH * blocks
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if block_pvalue(middle, blocks, epsilon, True) <= 0.05 else (middle, high)
    return float(np.mean(np.abs(noisy) >= high))


def blocks_for_power(terms: list[int], epsilon: float) -> int:
    """Return the blocks at which that is 0.8."""
    low, high = FEW_BLOCKS, 4_000
    while high - low > max(1, low // 40):
        middle = (low + high) // 2
        low, high = (low, middle) if power_of_terms(terms, middle, epsilon) >= 0.8 else (middle, high)
    return high


def main(arguments: list[str], name: str = "sample_cost", **changed: Any) -> int:
    given = options(__doc__, arguments, **{"runs": 1_000} | changed)
    report, runs, base = Report(name, "independence", given, arguments), given.runs, without_privacy(LINK)

    def cost(design: str, epsilon: float, value: float, error: float, most: float) -> None:
        report.add(design, {"rows over those without privacy": (value, error)}, epsilon=epsilon, runs=runs)
        report.target(f"{design}, ε = {epsilon:g}: cost {value:.2f} ± {2 * error:.2f}, at most {most}",
                      value - 2 * error <= most)  # fmt: skip

    for epsilon, ladder in LADDERS.items():
        rows, error = rows_for_power(ladder, [powers(n, runs, LINK, epsilon) for n in ladder])
        cost(f"one number, effect {LINK:g}", epsilon, rows / base, error / base, TARGETS.get(epsilon, math.inf))
    both = block_terms(runs, LINK), [-one for one in block_terms(runs, -LINK)]
    for epsilon, most in SEVERAL_TARGETS.items():
        costs = [LEAST_LEARNING * blocks_for_power(terms, epsilon) / base for terms in both]
        cost(f"five numbers, additive, effects of {LINK:g} and -{LINK:g}", epsilon, sum(costs) / 2, 0.0, most)
    return report.finish()
