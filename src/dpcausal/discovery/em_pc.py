"""EM-PC with a proof: how many edges of a node to remove, and which, by noisy max over scores of bounded sensitivity.

After Xu, Yuan & Wu (2017), whose scores have no proved bound.  Here an edge's score is the least |T| over its
conditioning sets: a minimum moves by no more than its parts do.  Every node of every order has the same fixed share,
whether it has edges to remove or not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dpcausal.discovery.pc import Edge, Test, Verdict
from dpcausal.discovery.rank_scores import RankScores
from dpcausal.mechanisms.selection import noisy_max
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Query


@dataclass
class Eliminator:
    """The pruner: decides all of an order when it begins.

    Attributes
    ----------
    each : PureDP or NoPrivacy
        Loss of one node in one order: half for the number, half for the choice.
    threshold : int
        Steps up to which a pair counts as independent.
    """

    scores: RankScores
    names: tuple[str, ...]
    allotment: Allotment
    each: PureDP | NoPrivacy
    threshold: int
    _decided: dict[Edge, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def begin(self, order: int, tests: list[Test], neighbours: dict[str, tuple[str, ...]]) -> None:
        """Choose, node by node, how many and which of its edges to remove."""
        self._decided = {}
        for node in self.names:
            sets: dict[Edge, list[Test]] = {}
            for test in tests:
                pair = frozenset(test[:2])
                if node in pair and pair not in self._decided and set(test[2]) <= set(neighbours[node]):
                    sets.setdefault(pair, []).append(test)
            if sets:
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
        half = self.each.part(Fraction(1, 2)) if isinstance(self.each, PureDP) else self.each
        number = noisy_max(self._query(utilities, "how many"), self.allotment, half)
        left = [test for tests in sets.values() for test in tests]
        for _ in range(number):
            share = half.part(Fraction(1, number)) if isinstance(half, PureDP) else half
            # Edge and conditioning set in one choice: the set shows in the orientation, so it must be private too.
            query = self._query([self.scores.independence(test) for test in left], "which")
            chosen = left[noisy_max(query, self.allotment, share)]
            self._decided[frozenset(chosen[:2])] = chosen[2]
            left = [test for test in left if frozenset(test[:2]) != frozenset(chosen[:2])]

    def _query(self, values: list[int], label: str) -> Query:
        return Query(np.array(values, dtype=np.int64), self.scores.sensitivity, label)
