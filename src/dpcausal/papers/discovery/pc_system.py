"""What the systems of Wang, Pang & Song (2020) share: each runs as the paper evaluates it.

They are replications without a guarantee: why none of them is private is in ``docs/appendix/errata-discovery.md``.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from itertools import combinations, permutations
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpcausal.core.method import Run
from dpcausal.data.counts import counts_of
from dpcausal.data.table import Table
from dpcausal.discovery.question import (
    LARGEST_ORDER,
    DiscoveryQuestion,
    GraphSearch,
    SearchOutcome,
    check_cells,
)
from dpcausal.discovery.search.pc import Ask, Edge, Skeleton, Terms, Test, orient, starting_edges
from dpcausal.discovery.search.release_search import SearchResult
from dpcausal.papers.direction.rank_scores import RankScores, claimed_sensitivity, published_score
from dpcausal.papers.mechanisms.replication import replicate
from dpcausal.privacy.loss import ApproxDP, Loss, PureDP
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity

Counts = npt.NDArray[np.int64]

ALPHA = 0.1
DELTA = 1e-3
"""As in the paper's evaluation."""

UNPROVEN = "conditional-tau-published-unproven"


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
        question, rng = run.question, run.rng
        terms = self.terms(question.alpha, question.knowledge)
        epsilon = run.loss.epsilon if isinstance(run.loss, (PureDP, ApproxDP)) else 1.0
        claim = Sensitivity(claimed_sensitivity(question.n), Norm.LINF, Relation.REPLACE_ONE, UNPROVEN)

        def published(exact: Counts) -> tuple[Skeleton, str]:
            return self.as_published(Replica(question.names, np.maximum(exact, 0), epsilon, terms, rng))

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
    tests ``asked`` afterwards.
    """

    names: tuple[str, ...]
    counts: Counts = field(repr=False)
    epsilon: float
    terms: Terms
    generator: PublicGenerator
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
