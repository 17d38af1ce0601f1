"""Priv-PC and SVT-PC with a proof: rounds of the sparse vector, their number and total cost fixed in advance.

Each round brings all tests that would be asked from here on, were nothing more removed, and finds the first that is
on the independent side; Priv-PC then examines it once more.  No subsample is drawn: with a statistic whose
sensitivity is c/m on m of n rows the noise c/(m log(1 + (n/m)(e^ε − 1))) is least at m = n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from dpcausal.discovery.knowledge import Knowledge
from dpcausal.discovery.pc import Edge, Test, Verdict, neighbours_of, starting_edges, tests_of_order
from dpcausal.discovery.rank_scores import RankScores
from dpcausal.mechanisms.additive import geometric
from dpcausal.mechanisms.sparse_vector import first_above
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity


def default_rounds(columns: int) -> int:
    """Return the public number of rounds: 1.3 for each pair of columns, less one."""
    return max(1, math.ceil(1.3 * columns * (columns - 1) / 2 - 1))


@dataclass
class Sieve:
    """The pruner of Priv-PC (``examine=True``) and SVT-PC.

    Attributes
    ----------
    rounds : int
        Rounds left.  When they are used up every further edge stays.
    each : PureDP or NoPrivacy
        Loss of a round.
    threshold : int
        Steps up to which a pair counts as independent.
    """

    scores: RankScores
    names: tuple[str, ...]
    knowledge: Knowledge
    max_order: int
    allotment: Allotment
    each: PureDP | NoPrivacy
    rounds: int
    threshold: int
    examine: bool
    _edges: set[Edge] = field(init=False, repr=False)
    _tests: list[Test] = field(default_factory=list, repr=False)
    _order: int = 0
    _place: int = 0
    _until: int | None = None  # tests until the one that was found; None: a round is due; −1: no further round

    def __post_init__(self) -> None:
        self._edges = starting_edges(self.names, self.knowledge)

    def begin(self, order: int, tests: list[Test], neighbours: dict[str, tuple[str, ...]]) -> None:
        """Note the tests of an order."""
        self._order, self._tests, self._place = order, tests, 0

    def ask(self, x: str, y: str, given: tuple[str, ...]) -> Verdict:
        """Answer one test from the round that covers it."""
        self._place = self._tests.index((x, y, given), self._place)
        if self._until is None:
            self._until = self._round()
        if self._until != 0:
            self._until -= self._until > 0
            return Verdict(False)
        self._until = None if self.rounds else -1
        if self.examine and not self._examined((x, y, given)):
            return Verdict(False)
        self._edges.discard(frozenset((x, y)))
        return Verdict(True)

    def _round(self) -> int:
        """Run one round over all tests that may come, and return how many to pass over; −1 if none is found."""
        upcoming = [test for test in self._tests[self._place :] if frozenset(test[:2]) in self._edges]
        neighbours = neighbours_of(self.names, self._edges)
        for order in range(self._order + 1, self.max_order + 1):
            upcoming += tests_of_order(self.names, neighbours, order, self.knowledge)
        self.rounds -= 1
        loss = self.each.part(Fraction(1, 2)) if self.examine and isinstance(self.each, PureDP) else self.each
        query = self.scores.query(upcoming, "sieve")
        found = first_above(query, self.allotment, loss, threshold=-self.threshold)
        return -1 if found is None else found

    def _examined(self, test: Test) -> bool:
        loss = self.each.part(Fraction(1, 2)) if isinstance(self.each, PureDP) else self.each
        bound = self.scores.sensitivity
        claim = Sensitivity(bound.bound, Norm.L1, bound.relation, "conditional-kendall-steps")
        noisy = geometric(Query(self.scores.independence(test), claim, "examine"), self.allotment, loss)
        return bool(noisy >= -self.threshold)
