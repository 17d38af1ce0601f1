"""Priv-PC, SVT-PC, EM-PC and SG as their papers evaluate them: replications without a guarantee.

The score of a test is the upper normal tail of the conditional tau of Definition 6 of Wang, Pang & Song (2020), a
number of [0, ½], with the sensitivity Φ(6/√n) − ½ that is claimed for it; strata of at most two records, and constant
ones, are skipped.  Why none of it is private: ``docs/errata_discovery.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.dependence.conditional_kendall import stratum_kendall_numerators
from dpcausal.dependence.published_rank import kendall_weight
from dpcausal.dependence.smooth_median import smooth_median
from dpcausal.discovery.calculators import advanced_composition, optimal_subsample, subsampled_epsilon
from dpcausal.discovery.pc import Skeleton, Test, Verdict, find_skeleton, find_skeleton_at_once
from dpcausal.discovery.rank_scores import RankScores
from dpcausal.discovery.reconciled import INDEPENDENT, pvalues
from dpcausal.discovery.search import Settings
from dpcausal.privacy.noise import PublicGenerator

Counts = npt.NDArray[np.int64]

ALPHA = 0.1
TWEAK = 0.02
DELTA = 1e-3


def published_tau(counts: Counts) -> float:
    """Return the conditional tau of Definition 6 from strata, as evaluated: small and constant strata are skipped."""
    from numpy import sqrt

    sizes = counts.sum(axis=(0, 1))
    numerators = stratum_kendall_numerators(counts)
    varied = ((counts.sum(axis=1) > 0).sum(axis=0) > 1) & ((counts.sum(axis=0) > 0).sum(axis=0) > 1)
    kept = (sizes > 2) & (varied if counts.shape[2] > 1 else True)
    m = sizes[kept].astype(np.float64)
    if not m.size:
        return 0.0
    weights = kendall_weight(m)
    tau = numerators[kept] / (m * (m - 1) / 2)
    return float((weights * tau).sum() / sqrt(weights.sum()))


def published_score(counts: Counts) -> float:
    """Return the upper normal tail of |tau|: ½ where nothing speaks against independence."""
    return 0.5 * math.erfc(abs(published_tau(counts)) / math.sqrt(2))


def claimed_sensitivity(n: int) -> float:
    """Return Φ(6/√n) − ½."""
    return 0.5 * math.erf(6 / math.sqrt(n) / math.sqrt(2))


@dataclass
class Replica:
    """One run of a published system on exact counts, with noise from public randomness.

    Attributes
    ----------
    epsilon : float
        The paper's parameter: ε of one round.
    rounds : int
        Rounds that fired, which the reported loss is computed from afterwards.
    """

    names: tuple[str, ...]
    counts: Counts = field(repr=False)
    epsilon: float
    settings: Settings
    generator: PublicGenerator
    test: str = ""
    rounds: int = 0
    asked: int = 0

    def __post_init__(self) -> None:
        self.n = int(self.counts.sum())
        self.bound = claimed_sensitivity(max(self.n, 1))
        self.whole = RankScores(self.names, self.counts)

    def laplace(self, scale: float) -> float:
        return float(self.generator.laplace(0, scale))

    def score(self, scores: RankScores, test: Test) -> float:
        return published_score(scores.strata(*test))

    def skeleton(self, ask: Callable[..., Verdict]) -> Skeleton:
        return find_skeleton_at_once(
            self.names, ask, knowledge=self.settings.knowledge, max_order=self.settings.max_order
        )

    def priv_pc(self) -> tuple[Skeleton, str]:
        """Run Algorithm 2; report 2 · advanced composition of ε/2 over the rounds that fired, δ = 1e-3."""
        half = self.epsilon / 2
        share = optimal_subsample(self.n, self.epsilon) / max(self.n, 1)
        sieve = 2 * self.bound / math.sqrt(share) / subsampled_epsilon(1 / share, half)

        def refreshed() -> tuple[RankScores, float]:
            rows = int(self.n * share)
            sample = self.generator.multivariate_hypergeometric(self.counts.ravel(), rows, method="marginals")
            drawn = RankScores(self.names, sample.reshape(self.counts.shape))
            return drawn, ALPHA - TWEAK + self.laplace(sieve)

        state = [refreshed()]

        def ask(*test: Any) -> Verdict:
            drawn, bar = state[0]
            if self.score(drawn, test) + self.laplace(2 * sieve) < bar:
                return Verdict(False)
            self.rounds += 1
            state[0] = refreshed()
            return Verdict(self.score(self.whole, test) + self.laplace(self.bound / half) >= ALPHA)

        found = self.skeleton(ask)
        total = 2 * advanced_composition(half, self.rounds, DELTA / 2)
        return found, f"({total:.4g}, {DELTA:g})-DP after {self.rounds} rounds"

    def svt_pc(self) -> tuple[Skeleton, str]:
        """Run the sparse vector alone; the threshold is refreshed with Gaussian noise, as evaluated."""
        scale = 2 * self.bound / self.epsilon
        bar = [ALPHA + self.laplace(scale)]

        def ask(*test: Any) -> Verdict:
            if self.score(self.whole, test) + self.laplace(4 * scale) < bar[0]:
                return Verdict(False)
            self.rounds += 1
            bar[0] = ALPHA + float(self.generator.normal(0, scale))
            return Verdict(True)

        found = self.skeleton(ask)
        total = advanced_composition(self.epsilon, self.rounds, DELTA)
        return found, f"({total:.4g}, {DELTA:g})-DP after {self.rounds} rounds"

    def gaussian_pc(self) -> tuple[Skeleton, str]:
        """Perturb every test of a subsample with Gaussian noise; report by the moments accountant."""
        share = 0.5
        noise = math.sqrt(2 * math.log(1.25 / DELTA)) / self.epsilon
        rows = int(self.n * share)

        def ask(*test: Any) -> Verdict:
            self.asked += 1
            sample = self.generator.multivariate_hypergeometric(self.counts.ravel(), rows, method="marginals")
            score = self.score(RankScores(self.names, sample.reshape(self.counts.shape)), test)
            return Verdict(score + float(self.generator.normal(0, noise * self.bound / math.sqrt(share))) >= ALPHA)

        found = self.skeleton(ask)
        from dpcausal.discovery.calculators import moments_accountant

        total = moments_accountant(share, noise, max(self.asked, 1), DELTA)
        return found, f"({total:.4g}, {DELTA:g})-DP after {self.asked} tests"

    def reconciled(self) -> tuple[Skeleton, str]:
        """Run Algorithm 6 with the printed decay e^(−kε) and noise S/(ε/2); report ε times the tests made."""
        kind: Any = self.test or "g"

        def ask(*test: Any) -> Verdict:
            self.asked += 1
            values = pvalues(self.counts, [self.names.index(name) for name in (*test[:2], *test[2])], kind)
            middle, bound = smooth_median(values, self.epsilon)
            return Verdict(middle + bound / (self.epsilon / 2) * self.laplace(1.0) >= INDEPENDENT)

        found = self.skeleton(ask)
        return found, f"({self.epsilon * self.asked:.4g}, {DELTA:g})-DP after {self.asked} tests"

    def em_pc(self) -> tuple[Skeleton, str]:
        """Run EM-PC with the G-test: node by node, how many edges to remove, and which, by the exponential mechanism.

        The score of an edge is (G_α − G)·sign, scaled to records by its largest change per record at a 2×2 table,
        2 log n: in place of the greedy search of the paper's code, whose result has no proved sensitivity either.
        """
        decided: dict[frozenset[str], tuple[str, ...]] = {}

        def begin(order: int, tests: list[Test], neighbours: dict[str, tuple[str, ...]]) -> None:
            decided.clear()
            for node in self.names:
                best: dict[frozenset[str], tuple[float, Test]] = {}
                for test in tests:
                    pair = frozenset(test[:2])
                    if node in pair and pair not in decided and set(test[2]) <= set(neighbours[node]):
                        best[pair] = max(best.get(pair, (-math.inf, test)), (self._records(test), test))
                if best:
                    self._eliminate(best, decided)

        def ask(x: str, y: str, given: tuple[str, ...]) -> Verdict:
            return Verdict(decided.get(frozenset((x, y))) == given)

        found = find_skeleton(
            self.names, ask, knowledge=self.settings.knowledge, max_order=self.settings.max_order, begin=begin
        )
        total = advanced_composition(self.epsilon, self.rounds, DELTA)
        return found, f"({total:.4g}, {DELTA:g})-DP after {self.rounds} nodes"

    def _records(self, test: Test) -> float:
        from scipy.special import chdtri

        counts = self.whole.strata(*test).astype(np.float64)
        expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0, keepdims=True)
        expected /= np.maximum(counts.sum(axis=(0, 1), keepdims=True), 1)
        positive = counts > 0
        statistic = 2 * float((counts[positive] * np.log(counts[positive] / expected[positive])).sum())
        freedom = (counts.shape[0] - 1) * (counts.shape[1] - 1) * counts.shape[2]
        return (float(chdtri(max(freedom, 1), ALPHA)) - statistic) / (2 * math.log(max(self.n, 3)))

    def _eliminate(
        self, best: dict[frozenset[str], tuple[float, Test]], decided: dict[frozenset[str], tuple[str, ...]]
    ) -> None:
        self.rounds += 1
        pairs = sorted(best, key=lambda pair: -best[pair][0])
        values = [best[pair][0] for pair in pairs]
        # With b removed, the worst miss on either side of the level.
        fit = [
            -max(-values[b - 1] if b else 0.0, values[b] if b < len(values) else 0.0, 0.0)
            for b in range(len(values) + 1)
        ]
        number = self._softmax(fit, self.epsilon / 2)
        for _ in range(number):
            chosen = self._softmax([best[pair][0] for pair in pairs], self.epsilon / 2 / number)
            pair = pairs.pop(chosen)
            decided[pair] = best[pair][1][2]

    def _softmax(self, utilities: list[float], epsilon: float) -> int:
        scaled = np.asarray(utilities) * epsilon / 2
        return int(np.argmax(scaled + self.generator.gumbel(size=scaled.shape)))
