"""Search a graph in released numbers: PC or strongest first with noise-aware tests, or the best score.

All of it is post-processing, defined for every released value.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from dpcausal.core.progress import progress
from dpcausal.discovery.copies import copies_of, graph_with_copies, terms_without_copies
from dpcausal.discovery.graph import Arc, Cpdag, Edge
from dpcausal.discovery.knowledge import Knowledge
from dpcausal.discovery.pvalues import GraphTest
from dpcausal.discovery.search.agreement import averaged_search
from dpcausal.discovery.search.exact_score import best_dag, class_of, local_scores
from dpcausal.discovery.search.pc import Ask, Skeleton, Terms, find_skeleton, orient, sure_class
from dpcausal.discovery.search.strongest_first import strongest_first
from dpcausal.discovery.support import REDRAW_SEED, UNDECIDED, Support, usual_redraws
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.releases.contrasts import NoisyContrasts
from dpcausal.releases.counts import NoisyTable
from dpcausal.releases.level_moments import NoisyWhitened
from dpcausal.releases.moments import NoisyMoments
from dpcausal.releases.release import Release
from dpcausal.releases.third_moments import NoisyTriples

LARGEST_MARGIN = 300.0

MOST_IN_A_PART, HIDES_ALL = 0.6, 0.9
"""Share of the records in one part of a number above which it does not separate; and above which it shows no links."""


@dataclass(frozen=True)
class SearchResult:
    """A graph and the margins of its edges. ``margin``: for each edge how far it is from falling out, log-likelihood
    units of score lost without it, or powers of ten between the level and the largest p-value of its tests.
    ``untested``: pairs without a test; those that knowledge requires are edges, without margin and support, and with no
    arrow but from knowledge."""

    graph: Cpdag
    margin: dict[Edge, float]
    untested: frozenset[Edge]
    tests: int
    support: Support | None = None
    """Where the search itself draws noise again."""
    copies: dict[str, str] = field(default_factory=dict)
    """Each copy's original; an undirected edge joins the two."""


def search(release: Release, terms: Terms) -> SearchResult:
    """Return the graph of released numbers, without its copies."""
    form, copies = release.as_graph_release(), copies_of(release, terms)
    terms = terms_without_copies(terms, copies, release.names)
    result = _of_pairs(form, terms, copies) if isinstance(form, NoisyWhitened) else _by_rule(release, terms)
    return replace(result, graph=graph_with_copies(result.graph, copies), copies=copies)


def _by_rule(release: Release, terms: Terms, margins: bool = True) -> SearchResult:
    release = release.as_graph_release()
    ask = GraphTest(release, terms)
    skeleton = find_skeleton(release.names, ask, terms, together=ask.together)
    if terms.search == "score" and isinstance(release, NoisyTable | NoisyMoments):
        return _by_score(release, skeleton, terms, ask, margins)
    # Contrasts rarely have the power to say that a pair is linked given one column more.
    return by_tests(release.names, skeleton, terms, None if isinstance(release, NoisyContrasts) else ask)


def _of_pairs(release: NoisyWhitened, terms: Terms, copies: dict[str, str]) -> SearchResult:
    ordered = release.by_name()
    exact = release.is_exact
    if exact and not isinstance(ordered, NoisyTriples):
        skeleton, shares = strongest_first(ordered, terms), None
    else:
        skeleton, shares = averaged_search(ordered, terms, copies, 1 if exact else None)
    result = by_tests(ordered.names, skeleton, terms, GraphTest(ordered, terms))
    graph = Cpdag(release.names, result.graph.directed, result.graph.undirected)
    return replace(result, graph=graph, support=None if exact else shares)


def by_tests(names: tuple[str, ...], skeleton: Skeleton, terms: Terms, ask: Ask | None = None) -> SearchResult:
    """Return the oriented skeleton with the margins of its tests; ``ask`` if one more test is free."""
    graph = orient(names, skeleton, terms.knowledge, ask)
    lowest = 10.0 ** (-LARGEST_MARGIN)
    margin = {
        edge: max(0.0, math.log10(terms.alpha) - math.log10(max(weakest, lowest)))
        for edge, weakest in skeleton.weakest.items() if edge in skeleton.edges
    }  # fmt: skip
    return SearchResult(graph, margin, skeleton.untested, skeleton.tests)


def _by_score(
    release: NoisyTable | NoisyMoments, skeleton: Skeleton, terms: Terms, ask: Ask, margins: bool
) -> SearchResult:
    known, edges = terms.knowledge, skeleton.edges
    scores = local_scores(release, edges, known)
    best = best_dag(scores)
    while best is not None and (needless := _arcs_by_cutting(release, best[1], known, ask)):
        edges -= needless
        scores = local_scores(release, edges, known)
        best = best_dag(scores)
    if best is None:  # required arrows form no cycle, so a DAG of them alone is always allowed
        return SearchResult(Cpdag(release.names), {}, frozenset(), skeleton.tests)
    graph = class_of(release.names, best[1], known)
    untested = skeleton.untested
    if untested:
        of_dag = Skeleton(graph.skeleton, {}, untested=untested)
        graph = sure_class(release.names, of_dag, Cpdag.from_dag(release.names, best[1]), known)
    margin = {}
    for edge in graph.skeleton - untested if margins else ():
        without = best_dag(scores, edge)
        margin[edge] = best[0] - without[0] if without else LARGEST_MARGIN
    return SearchResult(graph, margin, untested, skeleton.tests)


def _arcs_by_cutting(
    release: NoisyTable | NoisyMoments, arcs: Iterable[Arc], known: Knowledge, ask: Ask
) -> frozenset[Edge]:
    """Return the arcs of a DAG that what varies within the parts of a child's other parents may explain: scores, unlike
    tests, take a number that is cut as known."""
    if not isinstance(release, NoisyTable) or not release.cut:
        return frozenset()
    parents: dict[str, list[str]] = {}
    for cause, effect in sorted(arcs):
        parents.setdefault(effect, []).append(cause)
    return frozenset(
        frozenset((cause, effect)) for effect, causes in parents.items() for cause in causes
        if len(causes) > 2 and not known.joined(cause, effect) and not set(causes).isdisjoint({*release.cut} - {cause})
        and ask(cause, effect, tuple(one for one in causes if one != cause)).separated
    )  # fmt: skip


def undecided_edges(release: Release, terms: Terms) -> dict[Edge, str]:
    """Return the pairs that a number may link of which one part of one width has most of the records: with that number.

    It must be linked with both, as far as so few parts can show.
    """
    form = release.as_graph_release()
    if not isinstance(form, NoisyTable) or not form.equal_parts:
        return {}
    ask, undecided = GraphTest(form, replace(terms, search="pc")), dict[Edge, str]()
    for name in sorted(form.equal_parts, reverse=True):
        records = np.maximum(form.margin((form.names.index(name),)), 0.0)
        crowded = float(records.max()) / max(float(records.sum()), 1.0)
        if crowded > MOST_IN_A_PART:
            others = [one for one in form.names if one != name]
            linked = [one for one in others if crowded > HIDES_ALL or not ask(one, name, ()).separated]
            undecided |= {frozenset(pair): name for pair in combinations(linked, 2)}
    return undecided


def without_noise(release: Release) -> bool:
    form = release.as_graph_release()
    return isinstance(form, NoisyTable | NoisyContrasts | NoisyMoments | NoisyWhitened) and form.is_exact


def support(release: Release, terms: Terms, redraws: int | None = None) -> Support:
    """Return how often edges and arrows stand when the noise is drawn refresh: a parametric bootstrap, free of cost.
    The released numbers are taken as the truth and get fresh noise of the stated distribution.  It applies to the noise
    alone, not of the sampling of the rows.  The draws are the same each time, so that one release has one support."""
    form, copies = release.as_graph_release(), copies_of(release, terms)
    terms = terms_without_copies(terms, copies, release.names)
    if isinstance(form, NoisyWhitened):
        return averaged_search(form, terms, copies, redraws)[1]
    redraws = redraws or usual_redraws(len(release.names))
    edges: Counter[Edge] = Counter()
    arrows: Counter[Arc] = Counter()
    generator = generator_from_seed(REDRAW_SEED)
    with progress(redraws, "draws of noise") as step:
        for _ in range(redraws):
            result = _by_rule(release.with_extra_noise(generator), terms, margins=False)
            edges.update(result.graph.skeleton - result.untested)
            arrows.update(arc for arc in result.graph.directed if frozenset(arc) not in result.untested)
            step("draws of noise")
    undecided = undecided_edges(release, terms)
    return Support(
        redraws,
        {edge: min(count / redraws, UNDECIDED if edge in undecided else 1.0) for edge, count in edges.items()},
        {arc: count / redraws for arc, count in arrows.items()},
    )
