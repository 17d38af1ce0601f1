"""PC by noisy tests: Priv-PC, SVT-PC, and the baselines EM-PC and SG.

Priv-PC and SVT-PC sieve the tests by the sparse vector; Priv-PC examines once more what the sieve lets through.
Wang, Pang & Song (2020), Algorithms 1 and 2; SVT-PC is Algorithm 5, the sieve alone.
Errata: Theorem 3 (the sensitivity of the conditional tau), Algorithm 2 (a total that is counted afterwards, a threshold
refreshed with too little noise), strata left out as evaluated (``docs/appendix/errata-discovery-search.md``); SVT-PC as
evaluated refreshes its threshold with Gaussian noise, whose loss is unbounded (``docs/appendix/errata-discovery.md``).
Corrected, each round brings all tests that would be asked from here on, were nothing more removed, and finds the first
on the independent side; the number of rounds and the total are fixed beforehand.  No subsample is drawn: with a
statistic whose sensitivity is c/m on m of n rows the noise c/(m log(1 + (n/m)(e^ε − 1))) is least at m = n.

EM-PC, Xu, Yuan & Wu (2017), selects node by node how many edges to remove and which.  Erratum: its scores have no
proved bound, and its published code approximates them by a greedy search (``docs/appendix/errata-discovery.md``).
SG, section 4, is PC with Gaussian noise on every test, with the moments accountant of Abadi et al. (2016).  Errata: the
sensitivity of the conditional tau (Theorem 3) and strata left out as evaluated (same page).
"""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dpcausal.core import validate as public
from dpcausal.core.method import Run
from dpcausal.discovery.question import DiscoveryQuestion, SearchOutcome
from dpcausal.discovery.search import pc
from dpcausal.discovery.search.pc import Edge, Skeleton, Terms, Test, Verdict
from dpcausal.mechanisms.additive import geometric, laplace_scale
from dpcausal.papers.discovery import sieve_and_examine as formulas
from dpcausal.papers.discovery.pc_system import ALPHA, DELTA, STEPS, PcSystem, RankScores, Replica, steps_sensitivity
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
    def as_printed(self) -> bool:
        return self.constants == "published"

    @property
    def unproven(self) -> str:
        return f"{self.name} (constants='corrected' has a proof)" if self.as_printed else ""

    def usual_order(self, columns: int) -> int:
        return super().usual_order(columns) if self.as_printed else 2

    def filled(self, columns: int) -> Self:
        public.check_choice("constants", self.constants, ("published", "corrected"))
        return super().filled(columns)

    def proofs_of(self, question: DiscoveryQuestion, loss: PureDP) -> tuple[str, ...]:
        return (STEPS, "sparse-vector", "geometric") if self.examines else (STEPS, "sparse-vector")

    def feasibility_note(self, question: DiscoveryQuestion, loss: PureDP | NoPrivacy) -> str:
        if isinstance(loss, PureDP) and not self.as_printed:
            bound = steps_sensitivity(question.sizes).bound
            each = loss.part(Fraction(1, default_rounds(len(question.names))))
            laplace_scale(4 * bound * 1.01, each.part(HALF))
        return ""

    def release(self, run: Run[DiscoveryQuestion]) -> SearchOutcome:
        question = run.question
        counts = self.counts(run.data, question, run.rng)
        if self.as_printed:
            return self.replicated(counts, run)
        terms = self.terms(question.alpha, question.knowledge)
        scores = RankScores(question.names, counts)
        threshold = scores.threshold(question.n, terms.alpha)
        rounds = default_rounds(len(question.names))
        each = run.loss.part(Fraction(1, rounds))
        sieve = Sieve(scores, terms, run.budget, each, rounds, threshold, self.examines)
        return self.outcome(pc.find_skeleton(question.names, sieve.ask, terms, sieve.begin), terms, question)

    def as_published(self, replica: Replica) -> tuple[Skeleton, str]:
        """Run Algorithm 2; report 2 · advanced composition of ε/2 over the rounds that fired, δ = 1e-3."""
        half = replica.epsilon / 2
        share = formulas.optimal_subsample(replica.n, replica.epsilon) / max(replica.n, 1)
        scale = 2 * replica.bound / math.sqrt(share) / formulas.subsampled_epsilon(1 / share, half)

        def refreshed() -> tuple[RankScores, float]:
            return replica.sample(share), ALPHA - TWEAK + replica.laplace(scale)

        state = [refreshed()]

        def ask(*test: Any) -> Verdict:
            drawn, bar = state[0]
            if drawn.published(test) + replica.laplace(2 * scale) < bar:
                return Verdict(False)
            replica.rounds += 1
            state[0] = refreshed()
            return Verdict(replica.whole.published(test) + replica.laplace(replica.bound / half) >= ALPHA)

        skeleton = replica.skeleton(ask)
        total = 2 * formulas.advanced_composition(half, replica.rounds, DELTA / 2)
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
            if replica.whole.published(test) + replica.laplace(4 * scale) < bar[0]:
                return Verdict(False)
            replica.rounds += 1
            bar[0] = ALPHA + float(replica.generator.normal(0, scale))
            return Verdict(True)

        skeleton = replica.skeleton(ask)
        total = formulas.advanced_composition(replica.epsilon, replica.rounds, DELTA)
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
        self._edges = pc.starting_edges(self.scores.names, self.terms.knowledge)

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
        neighbours = pc.neighbours_of(names, self._edges)
        for order in range(self._order + 1, self.terms.max_order + 1):
            upcoming += pc.tests_of_order(names, neighbours, order, self.terms.knowledge)
        self.rounds -= 1
        loss = self.each.part(HALF) if self.examines else self.each
        query = self.scores.query(upcoming, "sieve")
        place = first_above(query, self.allotment, loss, threshold=-self.threshold)
        return None if place is None else upcoming[place]

    def _examined(self, test: Test) -> bool:
        claim = replace(self.scores.sensitivity, norm=Norm.L1)
        query = Query(self.scores.independence(test), claim, "examine")
        return bool(geometric(query, self.allotment, self.each.part(HALF)) >= -self.threshold)


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
                    decided.update(_eliminated_edges(replica, best))

        def ask(x: str, y: str, given: tuple[str, ...]) -> Verdict:
            return Verdict(decided.get(frozenset((x, y))) == given)

        skeleton = pc.find_skeleton(replica.names, ask, replica.terms, begin)
        total = formulas.advanced_composition(replica.epsilon, replica.rounds, DELTA)
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


def _eliminated_edges(replica: Replica, best: dict[Edge, tuple[float, Test]]) -> dict[Edge, tuple[str, ...]]:
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
            score = replica.sample(SHARE).published(test)
            scale = noise * replica.bound / math.sqrt(SHARE)
            return Verdict(score + float(replica.generator.normal(0, scale)) >= ALPHA)

        skeleton = replica.skeleton(ask)
        total = formulas.moments_accountant(SHARE, noise, max(replica.tests_made, 1), DELTA)
        return skeleton, f"({total:.4g}, {DELTA:g})-DP after {replica.tests_made} tests"
