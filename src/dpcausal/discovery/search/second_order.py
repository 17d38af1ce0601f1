"""Pairs that whitened pairs join, tested again given two columns in full: which triples that needs, and what is left.

Tested are pairs that strongest-first joins, and those that sampled orders of the pairs find likely: strongest-first
loses a pair to near-copies of its ends.  A set is not tested if a part of it is enough: if x ⊥ y | z, w and x ⊥ w | z
then x ⊥ y | z (contraction), and pairs show the latter two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

from dpcausal.discovery.search.order_mcmc import OF_ORDERS, order_sampling
from dpcausal.discovery.search.pc import Edge, Skeleton, Terms
from dpcausal.discovery.search.strongest_first import conditioning_sets, strongest_first
from dpcausal.discovery.support import REDRAW_SEED
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.releases.level_moments import Columns, NoisyWhitened, Residual
from dpcausal.statistics.level_moments import MOST_THIRDS, Reals, Triple, third_entries

START_BAR, BAR = 0.02, 0.01
"""Least share of its strength that a pair must keep given others: to be tested in full, and then."""

LIKELY = 0.4
"""Share of sampled orders of the pairs above which a pair is tested in full though strongest-first leaves it out."""

SEEN = 0.1
"""Share of a pair's strength that a full test must be able to detect: where its error is more it separates none."""

NEEDED = 0.001
"""Level at which either end must be linked to each column that is given, given the others."""

LAXER = 3.0
"""Levels of the tests of pairs that have joined, in the usual ones: added noise takes power from them."""


def candidates(release: NoisyWhitened, terms: Terms) -> Skeleton:
    """Return the pairs that are tested in full; without noise those that strongest-first joins."""
    pairs = release.pairs
    first = strongest_first(pairs, terms, START_BAR)
    if pairs.is_exact:
        return first
    shares = order_sampling(pairs, terms, generator_from_seed(REDRAW_SEED), None, *OF_ORDERS)
    return replace(first, edges=first.edges | {pair for pair, share in shares.items() if share > LIKELY})


def needed_triples(release: NoisyWhitened, skeleton: Skeleton, terms: Terms, shares: list[Reals]) -> list[Triple]:
    """Return the triples that full tests of a skeleton's pairs need, of the weakest pairs first as far as they go."""
    place = {name: number for number, name in enumerate(release.names)}
    triples: dict[Triple, None] = {}
    entries, around = 0, _around(skeleton.edges)
    for _, x, y in _by_strength(release, skeleton.edges - skeleton.untested):
        for given in _sets(release, around, x, y, min(terms.max_order, 2)):
            if len(given) < 2:
                continue
            for end in (place[x], place[y]):
                a, b, c = sorted((end, *given))
                more = 0 if (a, b, c) in triples else third_entries(shares, [(a, b, c)])
                if more and entries + more <= MOST_THIRDS:
                    entries += more
                    triples[a, b, c] = None
    return sorted(triples)


def retained_pairs(release: NoisyWhitened, skeleton: Skeleton, terms: Terms) -> frozenset[Edge]:
    """Return the pairs of a skeleton that stay: the weakest are tested first, given neighbours of either end."""
    place = {name: number for number, name in enumerate(release.names)}
    left, around = set(skeleton.edges), _around(skeleton.edges)
    for strength, x, y in _by_strength(release, skeleton.edges - skeleton.untested):
        for given in _sets(release, around, x, y, terms.max_order):
            residual = release.residual(place[x], place[y], given)
            if residual is not None and _is_separated(residual, strength, terms, len(given)):
                left.discard(frozenset((x, y)))
                around[x].discard(y)
                around[y].discard(x)
                break
    return frozenset(left)


def _is_separated(residual: Residual, strength: float, terms: Terms, given: int) -> bool:
    # φ² of k numbers, of which nothing is left, has √(2/k) times the mean as its deviation.
    if given > 1 and math.sqrt(2 / residual.freedom) * residual.added > SEEN * strength:
        return False
    return residual.pvalue > LAXER * terms.level(given) or residual.strength < BAR * strength


def _around(edges: Iterable[Edge]) -> dict[str, set[str]]:
    neighbours: dict[str, set[str]] = {}
    for a, b in map(tuple, edges):
        neighbours.setdefault(a, set()).add(b)
        neighbours.setdefault(b, set()).add(a)
    return neighbours


def _by_strength(release: NoisyWhitened, edges: Iterable[Edge]) -> list[tuple[float, str, str]]:
    place = {name: number for number, name in enumerate(release.names)}
    strengths = []
    for x, y in map(sorted, edges):
        alone = release.residual(place[x], place[y], ())
        strengths.append((alone.strength if alone else 0.0, x, y))
    return sorted(strengths)


def _sets(release: NoisyWhitened, around: dict[str, set[str]], x: str, y: str, largest: int) -> Iterator[Columns]:
    place = {name: number for number, name in enumerate(release.names)}
    for names in conditioning_sets(around[x] - {y}, around[y] - {x}, largest):
        given = tuple(place[z] for z in names)
        parts = [(z, tuple(w for w in given if w != z)) for z in given]
        if all(_linked(release, place[end], z, rest) for end in (x, y) for z, rest in parts):
            yield given


def _linked(release: NoisyWhitened, x: int, z: int, given: Columns) -> bool:
    residual = release.residual(x, z, given)
    return residual is not None and residual.pvalue <= NEEDED
