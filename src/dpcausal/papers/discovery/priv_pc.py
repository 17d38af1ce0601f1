"""Priv-PC and SVT-PC: PC whose tests are sieved by the sparse vector, and in Priv-PC examined once more.

Wang, Pang & Song (2020), Algorithms 1 and 2; SVT-PC is Algorithm 5, the sieve alone.
Errata: Theorem 3 (the sensitivity of the conditional tau), Algorithm 2 (a total that is counted afterwards, a threshold
refreshed with too little noise), strata left out as evaluated (``docs/appendix/errata-discovery-search.md``); SVT-PC as
evaluated refreshes its threshold with Gaussian noise, whose loss is unbounded (``docs/appendix/errata-discovery.md``).
Corrected, each round brings all tests that would be asked from here on, were nothing more removed, and finds the first
on the independent side; the number of rounds and the total are fixed beforehand.  No subsample is drawn: with a
statistic whose sensitivity is c/m on m of n rows the noise c/(m log(1 + (n/m)(e^ε − 1))) is least at m = n.
"""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

from dpcausal.core import validate as public
from dpcausal.core.method import Run
from dpcausal.discovery.question import DiscoveryQuestion, SearchOutcome
from dpcausal.discovery.search.pc import (
    Edge,
    Skeleton,
    Terms,
    Test,
    Verdict,
    find_skeleton,
    neighbours_of,
    starting_edges,
)
from dpcausal.discovery.search.pc import tests_of_order as tests_of
from dpcausal.mechanisms.additive import geometric, laplace_scale
from dpcausal.papers.discovery.pc_system import ALPHA, DELTA, STEPS, PcSystem, RankScores, Replica, steps_sensitivity
from dpcausal.papers.discovery.sieve_and_examine import advanced_composition, optimal_subsample, subsampled_epsilon
from dpcausal.papers.mechanisms.sparse_vector import first_above
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Norm, Query

TWEAK = 0.02
"""t, by which the sieve's threshold is lowered, as in the paper's evaluation."""

HALF = Fraction(1, 2)


@dataclass(frozen=True, kw_only=True)
class PrivPc(PcSystem):
    """Priv-PC: sieve by the sparse vector, then examine.

    Parameters
    ----------
    constants : str
        ``"published"`` (not private, with consent) or ``"corrected"`` (with a proof).
    max_order : int, optional
        Largest conditioning set, 0 to 8; by default as far as the columns go, 2 where corrected.
    """

    name: ClassVar[str] = "Priv-PC"
    about: ClassVar[str] = "tests by sieve-and-examine"
    examines: ClassVar[bool] = True

    constants: Literal["published", "corrected"] = "published"

    @property
    def printed(self) -> bool:
        """Whether it runs as published."""
        return self.constants == "published"

    @property
    def unproven(self) -> str:
        return f"{self.name} (constants='corrected' has a proof)" if self.printed else ""

    def usual_order(self, columns: int) -> int:
        return super().usual_order(columns) if self.printed else 2

    def filled(self, columns: int) -> Self:
        public.check_choice("constants", self.constants, ("published", "corrected"))
        return super().filled(columns)

    def proofs_of(self, question: DiscoveryQuestion, loss: PureDP) -> tuple[str, ...]:
        return (STEPS, "sparse-vector", "geometric") if self.examines else (STEPS, "sparse-vector")

    def feasibility_note(self, question: DiscoveryQuestion, loss: PureDP | NoPrivacy) -> str:
        if isinstance(loss, PureDP) and not self.printed:
            bound = steps_sensitivity(question.sizes).bound
            each = loss.part(Fraction(1, default_rounds(len(question.names))))
            laplace_scale(4 * bound * 1.01, each.part(HALF))
        return ""

    def release(self, run: Run[DiscoveryQuestion]) -> SearchOutcome:
        question = run.question
        counts = self.counts(run.data, question, run.rng)
        if self.printed:
            return self.replicated(counts, run)
        terms = self.terms(question.alpha, question.knowledge)
        scores = RankScores(question.names, counts)
        threshold = scores.threshold(question.n, terms.alpha)
        rounds = default_rounds(len(question.names))
        each = run.loss.part(Fraction(1, rounds))
        sieve = Sieve(scores, terms, run.budget, each, rounds, threshold, self.examines)
        return self.outcome(find_skeleton(question.names, sieve.ask, terms, sieve.begin), terms, question)

    def as_published(self, replica: Replica) -> tuple[Skeleton, str]:
        """Run Algorithm 2; report 2 · advanced composition of ε/2 over the rounds that fired, δ = 1e-3."""
        half = replica.epsilon / 2
        share = optimal_subsample(replica.n, replica.epsilon) / max(replica.n, 1)
        scale = 2 * replica.bound / math.sqrt(share) / subsampled_epsilon(1 / share, half)

        def refreshed() -> tuple[RankScores, float]:
            return replica.sample(share), ALPHA - TWEAK + replica.laplace(scale)

        state = [refreshed()]

        def ask(*test: Any) -> Verdict:
            drawn, bar = state[0]
            if replica.score(drawn, test) + replica.laplace(2 * scale) < bar:
                return Verdict(False)
            replica.rounds += 1
            state[0] = refreshed()
            return Verdict(replica.score(replica.whole, test) + replica.laplace(replica.bound / half) >= ALPHA)

        skeleton = replica.skeleton(ask)
        total = 2 * advanced_composition(half, replica.rounds, DELTA / 2)
        return skeleton, f"({total:.4g}, {DELTA:g})-DP after {replica.rounds} rounds"


@dataclass(frozen=True, kw_only=True)
class SvtPc(PrivPc):
    """SVT-PC: the sparse vector alone; ``constants`` and ``max_order`` as in ``PrivPc``."""

    name: ClassVar[str] = "SVT-PC"
    about: ClassVar[str] = "tests by the sparse vector"
    examines: ClassVar[bool] = False

    def as_published(self, replica: Replica) -> tuple[Skeleton, str]:
        """Run the sparse vector; the threshold is refreshed with Gaussian noise, as evaluated."""
        scale = 2 * replica.bound / replica.epsilon
        bar = [ALPHA + replica.laplace(scale)]

        def ask(*test: Any) -> Verdict:
            if replica.score(replica.whole, test) + replica.laplace(4 * scale) < bar[0]:
                return Verdict(False)
            replica.rounds += 1
            bar[0] = ALPHA + float(replica.generator.normal(0, scale))
            return Verdict(True)

        skeleton = replica.skeleton(ask)
        total = advanced_composition(replica.epsilon, replica.rounds, DELTA)
        return skeleton, f"({total:.4g}, {DELTA:g})-DP after {replica.rounds} rounds"


def default_rounds(columns: int) -> int:
    """Return the public number of rounds: 1.3 for each pair of columns, less one."""
    return max(1, math.ceil(1.3 * columns * (columns - 1) / 2 - 1))


@dataclass
class Sieve:
    """The pruner with a proof: ``rounds`` are left, each costs ``each``; when they are used up all other edges stay.

    Steps up to ``threshold`` count as independent; one that ``examines`` does so with half of the round's loss.
    """

    scores: RankScores
    terms: Terms
    allotment: CallBudget
    each: PureDP | NoPrivacy
    rounds: int
    threshold: int
    examines: bool
    _edges: set[Edge] = field(init=False, repr=False)
    _tests: list[Test] = field(default_factory=list, repr=False)
    _order: int = 0
    _next: Test | None = None
    """The test that the last round found, until it is asked; ``None``: a round is due, unless it is over."""
    _over: bool = False
    """Whether no further round is run."""

    def __post_init__(self) -> None:
        self._edges = starting_edges(self.scores.names, self.terms.knowledge)

    def begin(self, order: int, tests: list[Test], neighbours: dict[str, tuple[str, ...]]) -> None:
        self._order, self._tests = order, tests

    def ask(self, x: str, y: str, given: tuple[str, ...]) -> Verdict:
        test = x, y, given
        if self._next is None and not self._over:
            self._next = self._round(test)
            self._over = self._next is None
        if test != self._next:
            return Verdict(False)
        self._next, self._over = None, self.rounds == 0
        if self.examines and not self._examined(test):
            return Verdict(False)
        self._edges.discard(frozenset((x, y)))
        return Verdict(True)

    def _round(self, first: Test) -> Test | None:
        names = self.scores.names
        left = self._tests[self._tests.index(first) :]
        upcoming = [test for test in left if frozenset(test[:2]) in self._edges]
        neighbours = neighbours_of(names, self._edges)
        for order in range(self._order + 1, self.terms.max_order + 1):
            upcoming += tests_of(names, neighbours, order, self.terms.knowledge)
        self.rounds -= 1
        loss = self.each.part(HALF) if self.examines else self.each
        query = self.scores.query(upcoming, "sieve")
        place = first_above(query, self.allotment, loss, threshold=-self.threshold)
        return None if place is None else upcoming[place]

    def _examined(self, test: Test) -> bool:
        claim = replace(self.scores.sensitivity, norm=Norm.L1)
        query = Query(self.scores.independence(test), claim, "examine")
        return bool(geometric(query, self.allotment, self.each.part(HALF)) >= -self.threshold)
