"""What the systems of Wang, Pang & Song (2020) share: each runs as the paper evaluates it, by one score of its tests.

They are replications without a guarantee: why none of them is private is in ``docs/appendix/errata-discovery.md``.
The score is Kendall's tau within strata.  As printed it is the upper normal tail of the conditional tau of Definition
6, a number of [0, ½], with the sensitivity Φ(6/√n) − ½ that is claimed for it; strata of at most two records, and
constant ones, are skipped.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations
from statistics import NormalDist
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpcausal.core.method import Run
from dpcausal.data.counts import counts_of
from dpcausal.data.table import Table
from dpcausal.discovery.question import LARGEST_ORDER, DiscoveryQuestion, GraphSearch, SearchOutcome, check_cells
from dpcausal.discovery.search.pc import Ask, Edge, Skeleton, Terms, Test, orient, starting_edges
from dpcausal.discovery.search.release_search import SearchResult
from dpcausal.papers.independence.priv_kendall import kendall_weight
from dpcausal.papers.mechanisms.replication import replicate
from dpcausal.papers.statistics import rank
from dpcausal.privacy.loss import ApproxDP, Loss, PureDP
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity

Counts = npt.NDArray[np.int64]

ALPHA = 0.1
DELTA = 1e-3
"""As in the paper's evaluation."""

UNPROVEN, STEPS = "conditional-tau-published-unproven", "conditional-kendall-steps"
"""The claims of the scores as published, and with a proof."""


def two_valued(sizes: Sequence[int]) -> bool:
    return all(size <= 2 for size in sizes)


def steps_sensitivity(sizes: Sequence[int]) -> Sensitivity:
    return rank.conditional_kendall_steps_sensitivity(two_valued(sizes))


@dataclass
class RankScores:
    """Steps of T for each test, from the exact table of counts, one axis a column; all private."""

    names: tuple[str, ...]
    counts: Counts = field(repr=False)
    _known: dict[Test, int] = field(default_factory=dict, repr=False)

    @property
    def sensitivity(self) -> Sensitivity:
        return steps_sensitivity(self.counts.shape)

    def strata(self, x: str, y: str, given: Sequence[str]) -> Counts:
        """Return the exact counts, shape (levels of x, levels of y, strata)."""
        axes = [self.names.index(name) for name in (x, y, *given)]
        others = tuple(axis for axis in range(self.counts.ndim) if axis not in axes)
        left = sorted(axes)
        values = self.counts.sum(axis=others).transpose([left.index(axis) for axis in axes])
        return np.asarray(values.reshape(values.shape[0], values.shape[1], -1))

    def independence(self, test: Test) -> int:
        """Return −|steps|: 0 where nothing speaks against independence, lower the more does."""
        if test not in self._known:
            self._known[test] = -abs(rank.table_kendall_steps(self.strata(*test)))
        return self._known[test]

    def published(self, test: Test) -> float:
        return published_score(self.strata(*test))

    def query(self, tests: Sequence[Test], label: str) -> Query:
        return Query(np.array([self.independence(test) for test in tests], dtype=np.int64), self.sensitivity, label)

    def threshold(self, n: int, alpha: float) -> int:
        """Return the public size of the steps up to which a pair counts as independent.

        z · √n · ½ for two levels, ⅔ otherwise: the standard deviation of n T under independence is at most that.
        """
        deviation = 0.5 if two_valued(self.counts.shape) else 2 / 3
        z = -NormalDist().inv_cdf(max(alpha / 2, 1e-300))
        return max(1, math.ceil(z * math.sqrt(n) * deviation * rank.GRID))


def published_tau(counts: Counts) -> float:
    """Return the conditional tau of Definition 6 from strata, as evaluated: small and constant strata are skipped."""
    sizes = counts.sum(axis=(0, 1))
    numerators = rank.stratum_kendall_numerators(counts)
    varied = ((counts.sum(axis=1) > 0).sum(axis=0) > 1) & ((counts.sum(axis=0) > 0).sum(axis=0) > 1)
    usable = (sizes > 2) & (varied if counts.shape[2] > 1 else True)
    m = sizes[usable].astype(np.float64)
    if not m.size:
        return 0.0
    weights = kendall_weight(m)
    tau = numerators[usable] / (m * (m - 1) / 2)
    return float((weights * tau).sum() / np.sqrt(weights.sum()))


def published_score(counts: Counts) -> float:
    """Return the upper normal tail of |tau|: ½ where nothing speaks against independence."""
    return 0.5 * math.erfc(abs(published_tau(counts)) / math.sqrt(2))


def claimed_sensitivity(n: int) -> float:
    """Return Φ(6/√n) − ½."""
    return 0.5 * math.erf(6 / math.sqrt(n) / math.sqrt(2))


@dataclass(frozen=True, kw_only=True)
class PcSystem(GraphSearch):
    """A system of the paper, not private: it takes consent and releases decisions only.

    Parameters
    ----------
    max_order : int, optional
        Largest conditioning set, 0 to 8; by default as far as the columns go.
    """

    losses: ClassVar[tuple[type[Loss], ...]] = (PureDP,)
    usual_alpha: ClassVar[float] = ALPHA
    by_place: ClassVar[bool] = False
    """Whether it deals the rows into blocks by their places."""

    @property
    def unproven(self) -> str:
        return self.name

    def usual_order(self, columns: int) -> int:
        return min(columns - 2, LARGEST_ORDER)

    def check(self, question: DiscoveryQuestion) -> None:
        check_cells(question)

    def release(self, run: Run[DiscoveryQuestion]) -> SearchOutcome:
        return self.replicated(self.counts(run.data, run.question, run.rng), run)

    def replicated(self, counts: Counts, run: Run[DiscoveryQuestion]) -> SearchOutcome:
        """Run the published system; ε is the paper's own parameter, 1 without privacy."""
        question, terms = run.question, self.terms(run.question.alpha, run.question.knowledge)
        epsilon = run.loss.epsilon if isinstance(run.loss, (PureDP, ApproxDP)) else 1.0
        claim = Sensitivity(claimed_sensitivity(question.n), Norm.LINF, Relation.REPLACE_ONE, UNPROVEN)

        def published(exact: Counts) -> tuple[Skeleton, str]:
            return self.as_published(Replica(question.names, np.maximum(exact, 0), epsilon, terms, run.rng))

        skeleton, reported = replicate(Query(counts, claim, self.name), run.budget, published)
        return self.outcome(skeleton, terms, question, reported)

    def outcome(
        self, skeleton: Skeleton, terms: Terms, question: DiscoveryQuestion, reported: str = ""
    ) -> SearchOutcome:
        """Return what leaves of a skeleton; a replica's own loss is recorded, and its random numbers had a seed."""
        result = SearchResult(orient(question.names, skeleton, terms.knowledge), {}, skeleton.untested, skeleton.tests)
        seeded = bool(reported) or self.by_place
        return SearchOutcome(result, terms, reported=reported, seeded=seeded, by_place=self.by_place)

    def counts(self, private: Table, question: DiscoveryQuestion, rng: PublicGenerator) -> Counts:
        """Return the exact counts that it works on."""
        return counts_of(private, question.names)

    @abstractmethod
    def as_published(self, replica: Replica) -> tuple[Skeleton, str]:
        """Run the published system; return what it reports of its own loss too."""


@dataclass
class Replica:
    """One run of a published system on exact counts, with noise from public randomness.

    ``epsilon`` is the paper's parameter, ε of one round; the reported loss is computed from ``rounds`` that fired and
    ``tests_made`` afterwards.
    """

    names: tuple[str, ...]
    counts: Counts = field(repr=False)
    epsilon: float
    terms: Terms
    generator: PublicGenerator
    rounds: int = 0
    tests_made: int = 0

    def __post_init__(self) -> None:
        self.n = int(self.counts.sum())
        self.bound = claimed_sensitivity(max(self.n, 1))
        self.whole = RankScores(self.names, self.counts)

    def laplace(self, scale: float) -> float:
        return float(self.generator.laplace(0, scale))

    def sample(self, share: float) -> RankScores:
        """Return the scores of a share of the rows, drawn without replacement."""
        rows = int(self.n * share)
        drawn = self.generator.multivariate_hypergeometric(self.counts.ravel(), rows, method="marginals")
        return RankScores(self.names, drawn.reshape(self.counts.shape))

    def skeleton(self, ask: Ask) -> Skeleton:
        """Remove each edge as soon as a set separates its ends, as the first form of PC does.

        The neighbours are those of the moment, of the first end only, over all ordered pairs; the outcome depends on
        the order of the columns.  *Source*: Spirtes, Glymour & Scheines (2000), steps A and B; Wang, Pang & Song
        (2020), Algorithms 2 and 3.
        """
        nodes, terms, count = self.names, self.terms, 0
        edges = starting_edges(nodes, terms.knowledge)
        separating: dict[Edge, tuple[str, ...]] = {}
        for order in range(terms.max_order + 1):
            for x, y in permutations(nodes, 2):
                pair = frozenset((x, y))
                if pair not in edges or terms.knowledge.joined(x, y):
                    continue
                around = [node for node in nodes if node != y and frozenset((x, node)) in edges and node != x]
                for given in combinations(around, order):
                    count += 1
                    if ask(x, y, given).separated:
                        edges.discard(pair)
                        separating[pair] = given
                        break
        return Skeleton(frozenset(edges), separating, {}, count)
