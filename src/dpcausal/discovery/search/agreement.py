"""The graph of whitened pairs on which three searches agree: strongest first, hill climbing, and sampled orders.

Noise of half the released variance is added again and again; each time the first two searches join pairs.  Orders of
the columns are sampled from the released numbers; they give the share of likely DAGs that join a pair.  A pair is an
edge if the mean of the three shares is above a half, and its support is that mean, calibrated.  Tests leave out
weak edges, scores draw too many: their errors differ.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial
from itertools import combinations, permutations

import numpy as np

from dpcausal.core.progress import progress
from dpcausal.discovery.copies import LARGEST_NOISE, parts_of
from dpcausal.discovery.graph import Arc, Edge
from dpcausal.discovery.pvalues import GraphTest
from dpcausal.discovery.search.dag_scores import OF_FULL_ORDERS, OF_ORDERS, hill_climbed_edges, order_sampling
from dpcausal.discovery.search.pc import Skeleton, Terms, orient
from dpcausal.discovery.search.strongest_first import (
    candidates,
    conditioning_sets,
    neighbours_in,
    retained_pairs,
    strongest_first,
)
from dpcausal.discovery.support import REDRAW_SEED, Support, calibrated_support, usual_redraws
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.releases.level_moments import NoisyWhitened
from dpcausal.releases.third_moments import NoisyTriples

PART = 0.5
"""Variance of the added noise as a part of the released; all of it loses weak edges, less leaves false ones in."""

FULL_PENALTY = 8.0
"""Of climbing, for each degree of freedom, where tests given two columns are full."""

LEAST_COLUMNS = 10
"""Fewest columns that are described by how far they determine each other."""

USUAL, USUAL_OF_TWO, STEEPNESS, MOST_DOUBT = 0.16, 0.25, 2.5, 0.25
"""Of how far columns determine others: what is usual of one and of two, and how fast and far support falls beyond."""

IRREPLACEABLE, MOST_EXPLAINED, STRONGEST = 0.1, 0.5, 4
"""An edge is sure where one end explains at least the first part of the other's variance that no two other columns
explain, and these explain at most the second part of its own; as many of the strongest are tried as the first of two.
Of 54 deterministic networks."""

LEAST_SUPPORT = 0.5
"""Above it a pair stands.  All these were chosen on alarm, insurance, child and generated networks."""


def averaged_search(
    release: NoisyWhitened, terms: Terms, copies: dict[str, str], redraws: int | None = None
) -> tuple[Skeleton, Support]:
    """Return the pairs that stand, and the support of all; the order of the columns does not matter. An edge to a
    column that has copies may be one to a copy: there what is more is taken off, for this or for how far columns
    determine others."""
    release, known = release.by_name(), terms.knowledge
    full = isinstance(release, NoisyTriples)
    rng = generator_from_seed(REDRAW_SEED)
    first = candidates(release, terms) if full else strongest_first(release, terms)
    drawn = [release.with_extra_noise(rng, PART) for _ in range(redraws or usual_redraws(len(release.names)))]
    tested, scored = Counter[Edge](), Counter[Edge]()
    with progress(len(drawn), "draws of noise") as step:
        for one in drawn:
            if full:
                joined = hill_climbed_edges(one, terms, first.edges, FULL_PENALTY)
                tested.update(retained_pairs(one, first, terms) - first.untested)
            else:
                joined = hill_climbed_edges(one, terms)
                tested.update(strongest_first(one, terms, edges_alone=True).edges - first.untested)
            scored.update(joined - first.untested)
            step("draws of noise")
    likely: dict[Edge, float] = {}
    if not release.is_exact:  # two searches without noise: sampled orders cost them true edges there
        weighed = OF_FULL_ORDERS if full else OF_ORDERS
        likely = order_sampling(release, terms, rng, first.edges if full else None, *weighed)
    shares = {
        edge: ((tested[edge] + scored[edge]) / len(drawn) + likely.get(edge, 0.0)) / (2 if release.is_exact else 3)
        for edge in (tested.keys() if full else tested.keys() | scored.keys() | likely.keys()) - first.untested
    }
    required = {pair for pair in first.untested if known.joined(*pair)}
    edges = frozenset(required | {edge for edge, share in shares.items() if share > LEAST_SUPPORT + 1e-9})
    arrows: Counter[Arc] = Counter()
    for one in drawn:
        skeleton = replace(first, edges=edges, separating=_separating_sets(one, terms, edges))
        graph = orient(release.names, skeleton, known, GraphTest(one, terms))
        arrows.update(arc for arc in graph.directed if frozenset(arc) not in required)
    separating, weakest = _separating_sets(release, terms, edges), _weakest_margins(release, terms, edges - required)
    skeleton = replace(first, edges=edges, separating=separating, weakest=weakest)
    clearness = math.inf if release.is_exact else release.count / release.deviation
    doubted = release.doubt * determinism_penalty(release, terms)
    parts = parts_of(copies)
    sure = irreplaceable_edges(release, terms, edges - required) if doubted else frozenset[Edge]()
    doubts = {edge: max(0.0 if edge in sure else doubted, 1 - math.prod(parts.get(end, 1.0) for end in edge))
              for edge in shares}  # fmt: skip
    support = {
        edge: calibrated_support(share, clearness, release.steepest, doubts[edge]) for edge, share in shares.items()
    }
    return skeleton, Support(len(drawn), support, {arc: count / len(drawn) for arc, count in arrows.items()})


def determinism_penalty(release: NoisyWhitened, terms: Terms) -> float:
    """Return how far columns nearly determine others: how much of the shares of searches is to be taken off.

    min(¼, 2½ max(mean e² − 0.16, mean f² − 0.25)),  e and f the part of a column's variance that one other column, and
    this and a second one, explain; copies are left out

    Given such columns nothing of the other is left to be tested, so that tests choose between true and false edges by
    what they are worst at.  Of published and other generated networks the means are 0.07 to 0.27 and 0.08 to 0.35, of
    those whose tables are nearly deterministic 0.14 to 0.54 and 0.3 to 0.71.
    """
    names, known = release.names, terms.knowledge
    explained, nearest = np.zeros(len(names)), dict[int, int]()
    searched = [x for x, a in enumerate(names) if not all(known.forbids_edge(a, b) for b in names if b != a)]
    if len(names) < LEAST_COLUMNS or not searched:
        return 0.0

    for x, z in permutations(searched, 2):
        if (one := explained_part(release, x, z)) > explained[x]:
            explained[x], nearest[x] = one, z
    second = np.zeros(len(names))
    for x, z in nearest.items():
        second[x] = max((explained_part(release, x, y, (z,)) for y in searched if y not in (x, z)), default=0.0)
    both = 1 - (1 - explained) * (1 - second)
    beyond = max(float(np.mean(explained[searched] ** 2)) - USUAL, float(np.mean(both[searched] ** 2)) - USUAL_OF_TWO)
    return min(max(STEEPNESS * beyond, 0.0), MOST_DOUBT)


def explained_part(release: NoisyWhitened, x: int, z: int, given: tuple[int, ...] = ()) -> float:
    """Return what part of a column's variance another explains beyond what the given do, less its noise."""
    residual, levels = release.residual(x, z, given), len(release.shares[x]) - 1
    if residual is None or (given and residual.added > LARGEST_NOISE * levels):
        return 0.0
    sure = max(residual.strength, 0.0)
    sure -= residual.added + math.sqrt(sure * residual.added)  # beyond its noise
    return min(max(sure, 0.0) / levels, 1.0)


def irreplaceable_edges(release: NoisyWhitened, terms: Terms, edges: Iterable[Edge]) -> frozenset[Edge]:
    """Return the edges of which one end explains a part of the other's variance that no two other columns explain.

    Where columns determine others, a test of an edge may be given what determines one end, and then shows nothing.  It
    is not so of an edge whose one end has variance that only the other end explains, while others leave that end open.
    """
    names, known = release.names, terms.knowledge
    searched = [x for x, a in enumerate(names) if not all(known.forbids_edge(a, b) for b in names if b != a)]
    part = cache(partial(explained_part, release))

    def explained(x: int, others: list[int]) -> float:
        """Return the largest part that two columns explain, the first of them among the strongest."""
        first = sorted(others, key=lambda z: -part(x, z))[:STRONGEST]
        left = ((1 - part(x, z)) * (1 - part(x, y, (z,))) for z in first for y in others if y != z)
        return 1 - min(left, default=1.0)

    irreplaceable = set()
    for edge in edges:
        x, z = map(names.index, sorted(edge))
        others = [one for one in searched if one not in (x, z)]
        for own, other in ((x, z), (z, x)):
            gain = explained(own, [*others, other]) - explained(own, others)
            if gain >= IRREPLACEABLE and explained(other, others) <= MOST_EXPLAINED:
                irreplaceable.add(edge)
    return frozenset(irreplaceable)


def _separating_sets(release: NoisyWhitened, terms: Terms, edges: frozenset[Edge]) -> dict[Edge, tuple[str, ...]]:
    separating: dict[Edge, tuple[str, ...]] = {}
    around, ask = neighbours_in(release.names, edges), GraphTest(release, terms)
    for x, y in combinations(release.names, 2):
        if frozenset((x, y)) in edges or not around[x] & around[y] or terms.knowledge.forbids_edge(x, y):
            continue
        best = -1.0
        for given in ((), *conditioning_sets(around[x], around[y], terms.max_order)):
            pvalue = ask(x, y, given).pvalue
            if pvalue is not None and pvalue > best:
                best, separating[frozenset((x, y))] = pvalue, given
            if not given and best > terms.level(2):
                break
    return separating


def _weakest_margins(release: NoisyWhitened, terms: Terms, edges: frozenset[Edge]) -> dict[Edge, float]:
    around, ask, largest = neighbours_in(release.names, edges), GraphTest(release, terms), {}
    for x, y in map(sorted, edges):
        sets = ((), *conditioning_sets(around[x] - {y}, around[y] - {x}, terms.max_order))
        tests = ((ask(x, y, given).pvalue, len(given)) for given in sets)
        largest[frozenset((x, y))] = max(terms.at_alpha(pvalue, size) for pvalue, size in tests if pvalue is not None)
    return largest
