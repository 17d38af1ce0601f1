"""Hill climbing over DAGs on whitened pairs: arrows are added, taken out and turned while the score gains.

An arrow gains the χ² of its link given the child's other parents, less a penalty for each of its degrees of freedom;
the noise is in the χ².
"""

from __future__ import annotations

import math

from dpcausal.discovery.search.pc import Edge, Terms
from dpcausal.releases.level_moments import NoisyWhitened

PENALTY = 4.0
"""For each degree of freedom; chosen on alarm, insurance, child and generated networks at ε = 0.1."""

MOST_PARENTS = 3


def climbed(
    release: NoisyWhitened, terms: Terms, among: frozenset[Edge] | None = None, penalty: float = PENALTY
) -> frozenset[Edge]:
    """Return the pairs that the DAG of a local optimum joins, among some, or those linked at the level of the terms."""
    names = release.names
    columns = range(len(names))
    parents = required_parents(release, terms)
    sure = {(cause, effect) for effect in columns for cause in parents[effect]}
    allowed = allowed_parents(release, terms, among)

    def gains(x: int) -> dict[int, float]:
        """Return what each allowed parent adds, or loses if it is taken out."""
        gain_of = {}
        for z in allowed[x]:
            left = release.residual(x, z, tuple(sorted(parents[x] - {z})))
            gain_of[z] = -math.inf if left is None else left.statistic - penalty * left.freedom
        return gain_of

    gained = [gains(x) for x in columns]
    been: set[tuple[frozenset[int], ...]] = set()
    # Gains do not add up to one score, so that steps could go round.
    while (here := tuple(map(frozenset, parents))) not in been:
        been.add(here)
        best, step = 1e-6, None
        for x in columns:
            for z, gain in gained[x].items():
                if z in parents[x]:
                    if (z, x) in sure:
                        continue
                    turned = gained[z].get(x, -math.inf) if len(parents[z]) < MOST_PARENTS else -math.inf
                    if -gain > best:
                        best, step = -gain, (z, x, False)
                    if turned - gain > best and not _leads(parents, z, x, skip=True):
                        best, step = turned - gain, (z, x, True)
                elif gain > best and len(parents[x]) < MOST_PARENTS and not _leads(parents, x, z):
                    best, step = gain, (z, x, False)
        if step is None:
            break
        z, x, turn = step
        parents[x] ^= {z}
        gained[x] = gains(x)
        if turn:
            parents[z].add(x)
            gained[z] = gains(z)
    return frozenset(frozenset((names[z], names[x])) for x in columns for z in parents[x])


def required_parents(release: NoisyWhitened, terms: Terms) -> list[set[int]]:
    """Return of each column the parents that knowledge requires."""
    return [
        {number for number, cause in enumerate(release.names) if (cause, effect) in terms.knowledge.required}
        for effect in release.names
    ]


def allowed_parents(release: NoisyWhitened, terms: Terms, among: frozenset[Edge] | None) -> list[list[int]]:
    """Return of each column those that may be its parents, among some pairs or those linked at the level."""
    names, columns = release.names, range(len(release.names))
    linked = {
        (x, y) for x in columns for y in columns
        if x < y and (_linked(release, x, y, terms) if among is None else frozenset((names[x], names[y])) in among)
    }  # fmt: skip
    return [
        [z for z in columns if (min(x, z), max(x, z)) in linked and terms.knowledge.allows(names[z], names[x])]
        for x in columns
    ]


def _linked(release: NoisyWhitened, x: int, y: int, terms: Terms) -> bool:
    if terms.knowledge.forbids_edge(release.names[x], release.names[y]):
        return False
    residual = release.residual(x, y, ())
    return residual is not None and residual.pvalue <= terms.level(0)


def _leads(parents: list[set[int]], start: int, end: int, skip: bool = False) -> bool:
    seen, todo = {end}, [end]
    while todo:
        below = todo.pop()
        for above in parents[below]:
            if above == start and not (skip and below == end):
                return True
            if above not in seen and above != start:
                seen.add(above)
                todo.append(above)
    return False
