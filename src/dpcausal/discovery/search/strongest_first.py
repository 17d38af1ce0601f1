"""The strongest-first search: pairs join in the order of their strength, tested given neighbours that have joined.

A weak pair is then tested given strong neighbours only, where PC would condition on all that noise leaves.
"""

from __future__ import annotations

from itertools import combinations

from dpcausal.discovery.search.pc import Edge, Skeleton, Terms
from dpcausal.releases.level_moments import NoisyWhitened

BAR = 0.05
"""Least share of its strength that a pair must keep given others: noise and near-faithfulness leave a rest."""


def strongest_first(release: NoisyWhitened, terms: Terms, bar: float = BAR, edges_alone: bool = False) -> Skeleton:
    """Return the pairs that stand: first the strongest, each given what has joined one of its ends.

    A pair of which one column has but one kept level is not tested, and not joined.  ``edges_alone``: any set that
    separates a pair will do, where the best is not asked for.
    """
    names, known = release.names, terms.knowledge
    place = {name: number for number, name in enumerate(names)}
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
        residual = release.residual(place[x], place[y], ())
        if residual is None:
            untested.add(pair)
            continue
        tests += 1
        weakest[pair] = residual.pvalue
        if weakest[pair] > terms.level(0):
            separating[pair] = ()
        else:
            waiting.append((residual.strength, x, y))
    around: dict[str, set[str]] = {name: set() for name in names}
    for a, b in map(tuple, joined):
        around[a].add(b)
        around[b].add(a)
    # Ties by name, so that the order of the columns does not matter.
    for strength, x, y in sorted(waiting, key=lambda one: (-one[0], *sorted(one[1:]))):
        pair = frozenset((x, y))
        best: tuple[float, tuple[str, ...]] | None = None
        for given in conditioning_sets(around[x] - {y}, around[y] - {x}, terms.max_order):
            residual = release.residual(place[x], place[y], tuple(place[z] for z in given))
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
    """Return the sets of up to so many neighbours of either end, small ones first."""
    sets = dict.fromkeys(
        given for size in range(1, largest + 1) for side in (of_x, of_y)
        for given in combinations(sorted(side), size)
    )  # fmt: skip
    return sorted(sets, key=lambda given: (len(given), given))
