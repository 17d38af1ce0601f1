"""Two baselines of Wang, Pang & Song (2020): EM-PC, by private selection, and SG, by noise on every test.

EM-PC: Xu, Yuan & Wu (2017), node by node how many edges to remove and which.  Erratum: its scores have no proved bound,
and its published code approximates them by a greedy search (``docs/appendix/errata-discovery.md``).
SG: section 4, PC with Gaussian noise on every test, with the moments accountant of Abadi et al. (2016).  Errata: the
sensitivity of the conditional tau (Theorem 3) and strata left out as evaluated (same page).
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpcausal.discovery.search.pc import Edge, Skeleton, Test, Verdict, find_skeleton
from dpcausal.papers.discovery.pc_system import ALPHA, DELTA, PcSystem, Replica
from dpcausal.papers.discovery.sieve_and_examine import advanced_composition, moments_accountant


@dataclass(frozen=True, kw_only=True)
class EmPc(PcSystem):
    """EM-PC: edges to remove are selected; ``max_order`` as in all systems here."""

    name: ClassVar[str] = "EM-PC"
    about: ClassVar[str] = "edges to remove by private selection"

    def as_published(self, replica: Replica) -> tuple[Skeleton, str]:
        """Run EM-PC with the G-test, as evaluated.

        The score of an edge is (G_α − G)·sign, scaled to records by its largest change per record at a 2×2 table, 2 log
        n: in place of the greedy search of the paper's code, whose result has no proved sensitivity either.
        """
        decided: dict[Edge, tuple[str, ...]] = {}

        def begin(order: int, tests: list[Test], neighbours: dict[str, tuple[str, ...]]) -> None:
            decided.clear()
            for node in replica.names:
                sets = sets_of(node, tests, neighbours, decided)
                best = {pair: max((_records(replica, test), test) for test in each) for pair, each in sets.items()}
                if best:
                    decided.update(_eliminated(replica, best))

        def ask(x: str, y: str, given: tuple[str, ...]) -> Verdict:
            return Verdict(decided.get(frozenset((x, y))) == given)

        skeleton = find_skeleton(replica.names, ask, replica.terms, begin)
        total = advanced_composition(replica.epsilon, replica.rounds, DELTA)
        return skeleton, f"({total:.4g}, {DELTA:g})-DP after {replica.rounds} nodes"


def sets_of(
    node: str, tests: list[Test], neighbours: dict[str, tuple[str, ...]], decided: dict[Edge, tuple[str, ...]]
) -> dict[Edge, list[Test]]:
    sets: dict[Edge, list[Test]] = {}
    for test in tests:
        pair = frozenset(test[:2])
        if node in pair and pair not in decided and set(test[2]) <= set(neighbours[node]):
            sets.setdefault(pair, []).append(test)
    return sets


def _records(replica: Replica, test: Test) -> float:
    from scipy.special import chdtri

    counts = replica.whole.strata(*test).astype(np.float64)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0, keepdims=True)
    expected /= np.maximum(counts.sum(axis=(0, 1), keepdims=True), 1)
    positive = counts > 0
    statistic = 2 * float((counts[positive] * np.log(counts[positive] / expected[positive])).sum())
    freedom = (counts.shape[0] - 1) * (counts.shape[1] - 1) * counts.shape[2]
    return (float(chdtri(max(freedom, 1), ALPHA)) - statistic) / (2 * math.log(max(replica.n, 3)))


def _eliminated(replica: Replica, best: dict[Edge, tuple[float, Test]]) -> dict[Edge, tuple[str, ...]]:
    replica.rounds += 1
    pairs = sorted(best, key=lambda pair: -best[pair][0])
    values = [best[pair][0] for pair in pairs]
    # With b removed, the worst miss on either side of the level.
    fit = [
        -max(-values[b - 1] if b else 0.0, values[b] if b < len(values) else 0.0, 0.0) for b in range(len(values) + 1)
    ]
    number = _softmax(replica, fit, replica.epsilon / 2)
    removed = {}
    for _ in range(number):
        chosen = _softmax(replica, [best[pair][0] for pair in pairs], replica.epsilon / 2 / number)
        pair = pairs.pop(chosen)
        removed[pair] = best[pair][1][2]
    return removed


def _softmax(replica: Replica, utilities: list[float], epsilon: float) -> int:
    scaled = np.asarray(utilities) * epsilon / 2
    return int(np.argmax(scaled + replica.generator.gumbel(size=scaled.shape)))


SHARE = 0.5
"""Of the rows, in the sample of each test as published."""


@dataclass(frozen=True, kw_only=True)
class SubsampledGaussian(PcSystem):
    """SG: Gaussian noise on every test; ``max_order`` as in all systems here."""

    name: ClassVar[str] = "SG"
    about: ClassVar[str] = "tests with Gaussian noise"

    def as_published(self, replica: Replica) -> tuple[Skeleton, str]:
        """Perturb every test of a subsample with Gaussian noise; report by the moments accountant."""
        noise = math.sqrt(2 * math.log(1.25 / DELTA)) / replica.epsilon

        def ask(*test: Any) -> Verdict:
            replica.tests_made += 1
            score = replica.score(replica.sample(SHARE), test)
            scale = noise * replica.bound / math.sqrt(SHARE)
            return Verdict(score + float(replica.generator.normal(0, scale)) >= ALPHA)

        skeleton = replica.skeleton(ask)
        total = moments_accountant(SHARE, noise, max(replica.tests_made, 1), DELTA)
        return skeleton, f"({total:.4g}, {DELTA:g})-DP after {replica.tests_made} tests"
