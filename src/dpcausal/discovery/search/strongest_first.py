"""The strongest-first search, and the full tests given two columns of the pairs that it joins.

Pairs join in the order of their strength, tested given neighbours that have joined: a weak pair is then tested given
strong neighbours only, where PC would condition on all that noise leaves.

Where third moments are released, pairs are tested again given two columns in full: those that strongest-first joins,
and those that sampled orders of the pairs find likely, since strongest-first loses a pair to near-copies of its ends.
A set is not tested if a part of it is enough: if x ⊥ y | z, w and x ⊥ w | z then x ⊥ y | z (contraction), and pairs
show the latter two.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations

from dpcausal.arrays import Reals
from dpcausal.discovery.search.dag_scores import OF_ORDERS, order_sampling
from dpcausal.discovery.search.pc import Edge, Skeleton, Terms
from dpcausal.discovery.support import REDRAW_SEED
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.releases.level_moments import NoisyWhitened, Residual
from dpcausal.statistics.level_moments import MOST_THIRDS, Triple, third_entries

BAR = 0.05
"""Least share of its strength that a pair must keep given others: noise and near-faithfulness leave a rest."""


def strongest_first(release: NoisyWhitened, terms: Terms, bar: float = BAR, edges_alone: bool = False) -> Skeleton:
    """Return the pairs that stand: first the strongest, each given what has joined one of its ends. A pair of which one
    column has but one kept level is not tested, and not joined.  ``edges_alone``: any set that separates a pair will
    do, where the best is not asked for."""
    names, known = release.names, terms.knowledge
    separating: dict[Edge, tuple[str, ...]] = {}
    weakest: dict[Edge, float] = {}
    untested, joined, waiting = set(), set(), []
    tests = 0
    for x, y in combinations(names, 2):
        pair = frozenset((x, y))
        if known.joined(x, y):
            joined.add(pair)
            untested.add(pair)
            continue
        if known.forbids_edge(x, y):
            continue
        residual = _residual(release, x, y)
        if residual is None:
            untested.add(pair)
            continue
        tests += 1
        weakest[pair] = residual.pvalue
        if weakest[pair] > terms.level(0):
            separating[pair] = ()
        else:
            waiting.append((residual.strength, x, y))
    around = neighbours_in(names, joined)
    # Ties by name, so that the order of the columns does not matter.
    for strength, x, y in sorted(waiting, key=lambda one: (-one[0], *sorted(one[1:]))):
        pair = frozenset((x, y))
        best: tuple[float, tuple[str, ...]] | None = None
        for given in conditioning_sets(around[x] - {y}, around[y] - {x}, terms.max_order):
            residual = _residual(release, x, y, given)
            if residual is None:
                continue
            tests += 1
            pvalue = residual.pvalue
            weakest[pair] = max(weakest[pair], terms.at_alpha(pvalue, len(given)))
            gone = pvalue > terms.level(len(given)) or residual.strength < bar * strength
            if gone and (best is None or pvalue > best[0]):
                best = (pvalue, given)
                if edges_alone:
                    break
        if best is not None:
            separating[pair] = best[1]
        else:
            joined.add(pair)
            around[x].add(y)
            around[y].add(x)
    return Skeleton(frozenset(joined), separating, weakest, tests, frozenset(untested))


def conditioning_sets(of_x: set[str], of_y: set[str], largest: int) -> list[tuple[str, ...]]:
    sets = dict.fromkeys(
        given for size in range(1, largest + 1) for side in (of_x, of_y)
        for given in combinations(sorted(side), size)
    )  # fmt: skip
    return sorted(sets, key=lambda given: (len(given), given))


def neighbours_in(names: Iterable[str], edges: Iterable[Edge]) -> dict[str, set[str]]:
    neighbours: dict[str, set[str]] = {name: set() for name in names}
    for a, b in map(tuple, edges):
        neighbours[a].add(b)
        neighbours[b].add(a)
    return neighbours


START_BAR, FULL_BAR = 0.02, 0.01
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
    triples: dict[Triple, None] = {}
    entries, around = 0, neighbours_in(release.names, skeleton.edges)
    for _, x, y in _by_strength(release, skeleton.edges - skeleton.untested):
        for given in _conditioning_sets(release, around, x, y, min(terms.max_order, 2)):
            for end in (x, y) if len(given) > 1 else ():
                a, b, c = sorted(map(release.names.index, (end, *given)))
                more = 0 if (a, b, c) in triples else third_entries(shares, [(a, b, c)])
                if more and entries + more <= MOST_THIRDS:
                    entries += more
                    triples[a, b, c] = None
    return sorted(triples)


def retained_pairs(release: NoisyWhitened, skeleton: Skeleton, terms: Terms) -> frozenset[Edge]:
    """Return the pairs of a skeleton that stay: the weakest are tested first, given neighbours of either end."""
    left, around = set(skeleton.edges), neighbours_in(release.names, skeleton.edges)
    for strength, x, y in _by_strength(release, skeleton.edges - skeleton.untested):
        for given in _conditioning_sets(release, around, x, y, terms.max_order):
            residual = _residual(release, x, y, given)
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
    return residual.pvalue > LAXER * terms.level(given) or residual.strength < FULL_BAR * strength


def _by_strength(release: NoisyWhitened, edges: Iterable[Edge]) -> list[tuple[float, str, str]]:
    alone = {(x, y): _residual(release, x, y) for x, y in map(sorted, edges)}
    return sorted((residual.strength if residual else 0.0, *pair) for pair, residual in alone.items())


def _conditioning_sets(
    release: NoisyWhitened, around: dict[str, set[str]], x: str, y: str, largest: int
) -> Iterator[tuple[str, ...]]:
    for given in conditioning_sets(around[x] - {y}, around[y] - {x}, largest):
        links = (_residual(release, end, z, [w for w in given if w != z]) for end in (x, y) for z in given)
        if all(link is not None and link.pvalue <= NEEDED for link in links):
            yield given


def _residual(release: NoisyWhitened, x: str, y: str, given: Iterable[str] = ()) -> Residual | None:
    place = release.names.index
    return release.residual(place(x), place(y), tuple(map(place, given)))
