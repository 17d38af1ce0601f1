"""EM-PC: node by node, how many edges to remove and which, by private selection.

Xu, Yuan & Wu (2017), as the baseline of Wang, Pang & Song (2020).  Erratum: its scores have no proved bound, and its
published code approximates them by a greedy search.  Corrected, an edge's score is the least |T| over its conditioning
sets: a minimum moves by no more than its parts do; every node of every order has the same fixed share, whether it has
edges to remove or not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpcausal.discovery.pc import Edge, Skeleton, Terms, Test, Verdict, find_skeleton
from dpcausal.discovery.question import Graph
from dpcausal.mechanisms.additive import laplace_scale
from dpcausal.mechanisms.selection import noisy_max
from dpcausal.papers.pc_system import ALPHA, DELTA, Counts, PcSystem, Replica
from dpcausal.papers.rank_scores import STEPS, RankScores, steps_sensitivity
from dpcausal.papers.sieve_and_examine import advanced_composition
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Query

HALF = Fraction(1, 2)


@dataclass(frozen=True, kw_only=True)
class EmPc(PcSystem):
    """EM-PC: edges to remove are selected; ``constants`` and ``max_order`` as in all systems here."""

    name: ClassVar[str] = "EM-PC"
    about: ClassVar[str] = "edges to remove by private selection"

    def claims(self, question: Graph, spent: PureDP) -> tuple[str, ...]:
        return STEPS, "noisy-max"

    def draw_noise(self, question: Graph, spent: PureDP) -> None:
        columns = len(question.names)
        bound = steps_sensitivity(question.sizes).bound
        least = Fraction(1, 2 * columns * (self.order + 1) * max(columns - 1, 1))
        laplace_scale(2 * bound * 1.01, spent.part(least))

    def proved(
        self, counts: Counts, question: Graph, terms: Terms, spent: PureDP | NoPrivacy, allotment: Allotment
    ) -> Skeleton:
        scores = RankScores(question.names, counts)
        threshold = scores.threshold(question.n, terms.alpha)
        each = spent.part(Fraction(1, len(question.names) * (terms.max_order + 1)))
        pruner = Eliminator(scores, allotment, each, threshold)
        return find_skeleton(question.names, pruner.ask, terms, pruner.begin)

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

        found = find_skeleton(replica.names, ask, replica.terms, begin)
        total = advanced_composition(replica.epsilon, replica.rounds, DELTA)
        return found, f"({total:.4g}, {DELTA:g})-DP after {replica.rounds} nodes"


def sets_of(
    node: str, tests: list[Test], neighbours: dict[str, tuple[str, ...]], decided: dict[Edge, tuple[str, ...]]
) -> dict[Edge, list[Test]]:
    """Return the tests of each of a node's edges that is not decided, by sets of the node's own neighbours."""
    sets: dict[Edge, list[Test]] = {}
    for test in tests:
        pair = frozenset(test[:2])
        if node in pair and pair not in decided and set(test[2]) <= set(neighbours[node]):
            sets.setdefault(pair, []).append(test)
    return sets


@dataclass
class Eliminator:
    """The pruner with a proof: decides all of an order when it begins.

    A node in one order costs ``each``, half for the number, half for the choice; steps up to ``threshold`` count as
    independent.
    """

    scores: RankScores
    allotment: Allotment
    each: PureDP | NoPrivacy
    threshold: int
    _decided: dict[Edge, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def begin(self, order: int, tests: list[Test], neighbours: dict[str, tuple[str, ...]]) -> None:
        """Choose, node by node, how many and which of its edges to remove."""
        self._decided = {}
        for node in self.scores.names:
            if sets := sets_of(node, tests, neighbours, self._decided):
                self._choose(sets)

    def ask(self, x: str, y: str, given: tuple[str, ...]) -> Verdict:
        """Return what was decided, at the set that was chosen with it."""
        return Verdict(self._decided.get(frozenset((x, y))) == given)

    def _choose(self, sets: dict[Edge, list[Test]]) -> None:
        least = [min(-self.scores.independence(test) for test in tests) for tests in sets.values()]
        ascending = sorted(least)
        # With b edges removed the b-th smallest should be below the threshold, the next above: the larger miss counts.
        beyond = [0, *(value - self.threshold for value in ascending)]
        short = [*(self.threshold - value for value in ascending), 0]
        utilities = [-max(*miss, 0) for miss in zip(beyond, short, strict=True)]
        half = self.each.part(HALF)
        number = noisy_max(self._query(utilities, "how many"), self.allotment, half)
        left = [test for tests in sets.values() for test in tests]
        for _ in range(number):
            # Edge and conditioning set in one choice: the set shows in the orientation, so it must be private too.
            query = self._query([self.scores.independence(test) for test in left], "which")
            chosen = left[noisy_max(query, self.allotment, half.part(Fraction(1, number)))]
            self._decided[frozenset(chosen[:2])] = chosen[2]
            left = [test for test in left if frozenset(test[:2]) != frozenset(chosen[:2])]

    def _query(self, values: list[int], label: str) -> Query:
        return Query(np.array(values, dtype=np.int64), self.scores.sensitivity, label)


def _records(replica: Replica, test: Test) -> float:
    """Return how many records a G-test is from its critical value, as published."""
    from scipy.special import chdtri

    counts = replica.whole.strata(*test).astype(np.float64)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0, keepdims=True)
    expected /= np.maximum(counts.sum(axis=(0, 1), keepdims=True), 1)
    positive = counts > 0
    statistic = 2 * float((counts[positive] * np.log(counts[positive] / expected[positive])).sum())
    freedom = (counts.shape[0] - 1) * (counts.shape[1] - 1) * counts.shape[2]
    return (float(chdtri(max(freedom, 1), ALPHA)) - statistic) / (2 * math.log(max(replica.n, 3)))


def _eliminated(replica: Replica, best: dict[Edge, tuple[float, Test]]) -> dict[Edge, tuple[str, ...]]:
    """Return the edges of a node that are removed, with their sets, as published."""
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
