"""From released statistics to a graph: PC with tests that know the noise, or on a table the exact score search.

All of it is post-processing, defined for every released value.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from dpcausal.discovery.graph import Cpdag, Edge
from dpcausal.discovery.knowledge import Knowledge
from dpcausal.discovery.pc import Skeleton, find_skeleton, orient
from dpcausal.discovery.release import Statistic
from dpcausal.discovery.score_search import MOST_COLUMNS, best_dag, class_of, local_scores
from dpcausal.discovery.tables import NoisyTable
from dpcausal.privacy.noise import PublicGenerator

SCREEN_ORDER = 1
"""Largest conditioning set of the tests that screen edges for the score search."""

LARGEST_MARGIN = 300.0

LATER_ALPHA = 0.03
"""Default level of contrasts' tests given two or more columns: noise leaves those the least power, and an edge should
not fall for want of power alone."""


@dataclass(frozen=True)
class Settings:
    """How released statistics are searched: public, and free to change.

    Attributes
    ----------
    search : str
        ``"score"``: screen by tests, then the exact search for the best score; ``"pc"``: tests alone.
    alpha : float
        Level of the tests.
    max_order : int
        Largest conditioning set.
    knowledge : Knowledge
    later : float, optional
        Level of the tests given two or more columns, by default ``alpha``.
    """

    search: str
    alpha: float
    max_order: int
    knowledge: Knowledge
    later: float | None = None


@dataclass(frozen=True)
class Found:
    """A graph and how firmly its edges stand.

    Attributes
    ----------
    margin : dict
        For each edge how far it is from falling out: nats of score lost without it, or powers of ten between the
        level and the largest p-value of its tests.
    untested : frozenset
        Edges that no test could be made for; they stand for want of counts, not for evidence.
    tests : int
    """

    graph: Cpdag
    margin: dict[Edge, float]
    untested: frozenset[Edge]
    tests: int


def default_settings(method: str, columns: int) -> tuple[str, float, int]:
    """Return the default search, level and largest order of a method."""
    if method == "table":
        return ("score", 0.05, SCREEN_ORDER) if columns <= MOST_COLUMNS else ("pc", 0.01, 2)
    if method in ("parities", "moments"):
        return "pc", 0.01, 2 if method == "parities" else 3
    return ("pc", 0.05, 1) if method == "ci-test" else ("pc", 0.1, 2)


def search(statistic: Statistic, settings: Settings) -> Found:
    """Return the graph of released statistics."""
    ask: Any = statistic.asker(settings.alpha, settings.later)
    known = settings.knowledge
    skeleton = find_skeleton(statistic.names, ask, knowledge=known, max_order=settings.max_order)
    if settings.search == "score" and isinstance(statistic, NoisyTable):
        return _by_score(statistic, skeleton, known)
    return by_tests(statistic.names, skeleton, settings)


def by_tests(names: tuple[str, ...], skeleton: Skeleton, settings: Settings) -> Found:
    """Return the oriented skeleton with the margins of its tests."""
    graph = orient(names, skeleton, settings.knowledge)
    margin, untested = {}, set()
    for edge in skeleton.edges:
        weakest = skeleton.weakest.get(edge)
        if weakest is None:
            untested.add(edge)
        else:
            lowest = 10.0 ** (-LARGEST_MARGIN)
            margin[edge] = math.log10(settings.alpha) - math.log10(max(weakest, lowest))
    return Found(graph, margin, frozenset(untested), skeleton.tests)


def _by_score(table: NoisyTable, skeleton: Skeleton, known: Knowledge) -> Found:
    scores = local_scores(table, skeleton.edges, known)
    best = best_dag(scores)
    if best is None:  # required arrows form no cycle, so a DAG of them alone is always allowed
        return Found(Cpdag(table.names), {}, frozenset(), skeleton.tests)
    graph = class_of(table.names, best[1], known)
    margin = {}
    for edge in graph.skeleton:
        if not known.joined(*sorted(edge)):
            without = best_dag(scores, edge)
            margin[edge] = best[0] - without[0] if without else LARGEST_MARGIN
    tested = frozenset(skeleton.weakest)
    return Found(graph, margin, graph.skeleton - tested, skeleton.tests)


@dataclass(frozen=True)
class Support:
    """Shares of re-drawn noise in which an edge stands at all, and in which it is an arrow.

    Attributes
    ----------
    redraws : int
    edges : dict from pairs to shares
    arrows : dict from (cause, effect) to shares
    """

    redraws: int
    edges: dict[Edge, float]
    arrows: dict[tuple[str, str], float]


def support(statistic: Statistic, settings: Settings, redraws: int, generator: PublicGenerator) -> Support:
    """Return how often edges and arrows stand when the noise is drawn again: a parametric bootstrap, free of cost.

    The released statistics stand for the truth and get fresh noise of the stated law.  It speaks of the noise alone,
    not of the sampling of the rows.
    """
    edges: Counter[Edge] = Counter()
    arrows: Counter[tuple[str, str]] = Counter()
    for _ in range(redraws):
        graph = search(statistic.redrawn(generator), settings).graph
        edges.update(graph.skeleton)
        arrows.update(graph.directed)
    return Support(
        redraws,
        {edge: count / redraws for edge, count in edges.items()},
        {arc: count / redraws for arc, count in arrows.items()},
    )
