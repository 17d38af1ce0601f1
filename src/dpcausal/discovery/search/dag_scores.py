"""Scores of DAGs on whitened pairs: hill climbing, and the share of likely DAGs that join a pair by sampled orders.

**Climbing** adds arrows, takes them out and turns them while the score gains.  An arrow gains the χ² of its link given
the child's other parents, less a penalty for each of its degrees of freedom; the noise is in the χ².

**Orders**: in an order of the columns the parents of a column are up to three of its likely ones that come before it.
A set of them has the weight exp(gain/heat): the gain is the χ² of each of its arrows given the stronger ones, as of a
likelihood, less a penalty for each degree of freedom.  A likelihood has the heat 2; more is for numbers of which noise
and shortened rows make more than there is.  Sets are summed over, orders are sampled by Metropolis' steps, of public
random numbers.

*Source*: Friedman & Koller (2003), Machine Learning 50, for the sum over sets and the walk over orders; the gains are
this library's.
"""

import math
from collections.abc import Sequence
from graphlib import TopologicalSorter
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.discovery.search.pc import Edge, Terms
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.releases.level_moments import NoisyWhitened

PENALTY = 4.0
"""For each degree of freedom; chosen on alarm, insurance, child and generated networks at ε = 0.1."""

MOST_PARENTS = 3


def hill_climbed_edges(
    release: NoisyWhitened, terms: Terms, among: frozenset[Edge] | None = None, penalty: float = PENALTY
) -> frozenset[Edge]:
    """Return the pairs that the DAG of a local optimum joins, among some, or those linked at the level of the terms."""
    names = release.names
    columns = range(len(names))
    parents = required_parents(release, terms)
    sure = {(cause, effect) for effect in columns for cause in parents[effect]}
    allowed = allowed_parents(release, terms, among)

    def gains(x: int) -> dict[int, float]:
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
                    if turned - gain > best and not _has_path(parents, z, x, skip=True):
                        best, step = turned - gain, (z, x, True)
                elif gain > best and len(parents[x]) < MOST_PARENTS and not _has_path(parents, x, z):
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
    return [
        {number for number, cause in enumerate(release.names) if (cause, effect) in terms.knowledge.required}
        for effect in release.names
    ]


def allowed_parents(release: NoisyWhitened, terms: Terms, among: frozenset[Edge] | None) -> list[list[int]]:
    """Return of each column those that may be its parents, among some pairs or those linked at the level."""
    names, columns = release.names, range(len(release.names))
    linked = {
        (x, y) for x in columns for y in columns
        if x < y and (_is_linked(release, x, y, terms) if among is None else frozenset((names[x], names[y])) in among)
    }  # fmt: skip
    return [
        [z for z in columns if (min(x, z), max(x, z)) in linked and terms.knowledge.allows(names[z], names[x])]
        for x in columns
    ]


def _is_linked(release: NoisyWhitened, x: int, y: int, terms: Terms) -> bool:
    if terms.knowledge.forbids_edge(release.names[x], release.names[y]):
        return False
    residual = release.residual(x, y, ())
    return residual is not None and residual.pvalue <= terms.level(0)


def _has_path(parents: list[set[int]], start: int, end: int, skip: bool = False) -> bool:
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


MOST_LIKELY, HIDING = 10, 12
"""Parents that are likely, and how many of the strongest may hide one of them."""

MOST_EXPLAINED = 0.95
"""Largest share of a column that a link is taken to explain."""

OF_ORDERS, OF_FULL_ORDERS = (4.0, 4.0), (16.0, 8.0)
"""Penalty for each degree of freedom and heat: of pairs, and where tests given two columns are full."""

WALKS, STEPS, EACH = 2, 10_000, 20
"""Walks, steps of each, of which three tenths are left out, and how many lie between two looks."""


class Sets(NamedTuple):
    """A column's likely parents, sets of them as bits over these, and what each gains."""

    likely: list[int]
    members: Integers
    gains: Reals

    def holds(self) -> Reals:
        return (self.members[:, None] >> np.arange(len(self.likely)) & 1).astype(np.float64)


def order_sampling(
    release: NoisyWhitened, terms: Terms, rng: PublicGenerator, among: frozenset[Edge] | None, penalty: float,
    heat: float,
) -> dict[Edge, float]:  # fmt: skip
    names = release.names
    sure, sets = required_parents(release, terms), sets_of_parents(release, terms, among, penalty)
    parents = np.mean([_Walk(sets, sure, heat, rng).shares() for _ in range(WALKS)], axis=0)
    shares = parents + parents.T
    return {
        frozenset((names[x], names[z])): float(shares[x, z])
        for x, z in combinations(range(len(names)), 2) if shares[x, z] > 0
    }  # fmt: skip


def sets_of_parents(release: NoisyWhitened, terms: Terms, among: frozenset[Edge] | None, penalty: float) -> list[Sets]:
    """Return of each column its sets of parents with their gains; required ones are in all of them."""
    candidates = []
    for x, (linked, sure) in enumerate(
        zip(allowed_parents(release, terms, among), required_parents(release, terms), strict=True)
    ):

        def gain(z: int, given: Sequence[int], x: int = x) -> float:
            left = release.residual(x, z, tuple(given))
            if left is None:
                return -math.inf
            # Of what is explained, −log(1 − r²) adds up to the same whichever comes first, r² does not.
            least = min(len(release.shares[x]), len(release.shares[z])) - 1
            share = min(max(left.strength / least, 1e-9), MOST_EXPLAINED)
            return -left.statistic * math.log1p(-share) / share - penalty * left.freedom

        free = sorted((z for z in linked if z not in sure), key=lambda z: (-gain(z, ()), z))
        if len(free) > MOST_LIKELY:
            hidden = {z: min(gain(z, ()), *(gain(z, (w,)) for w in free[:HIDING] if w != z)) for z in free}
            free = sorted(free, key=lambda z: (-hidden[z], z))[:MOST_LIKELY]
        always = sorted(sure)
        gains: dict[tuple[int, ...], float] = {(): 0.0}
        for size in range(1, max(MOST_PARENTS - len(always), 0) + 1):
            for chosen in combinations(free, size):
                gains[chosen] = gains[chosen[:-1]] + gain(chosen[-1], [*always, *chosen[:-1]])
        likely = [*always, *free]
        bits = [sum(1 << likely.index(z) for z in (*always, *chosen)) for chosen in gains]
        candidates.append(Sets(likely, np.array(bits, dtype=np.int64), np.array([*gains.values()])))
    return candidates


class _Walk:
    def __init__(self, sets: list[Sets], sure: list[set[int]], heat: float, rng: PublicGenerator) -> None:
        self.sets, self.heat, self.rng = sets, heat, rng
        self.masks = [sum(1 << z for z in one.likely) for one in sets]
        self.holds = [one.holds() for one in sets]
        self.known: list[dict[int, tuple[float, Reals]]] = [{} for _ in sets]
        level = [0] * len(sets)
        for x in TopologicalSorter({x: sorted(above) for x, above in enumerate(sure)}).static_order():
            level[x] = 1 + max((level[z] for z in sure[x]), default=0)
        self.order = sorted(rng.permutation(len(sets)).tolist(), key=level.__getitem__)

    def at(self, x: int, before: int) -> tuple[float, Reals]:
        """Return the log weight of a column after those of a bit mask, and the share of each parent."""
        before &= self.masks[x]
        cached = self.known[x].get(before)
        if cached is not None:
            return cached
        likely, members, gains = self.sets[x]
        free = sum(1 << place for place, z in enumerate(likely) if before >> z & 1)
        weights = np.where((members & ~free) == 0, gains / self.heat, -np.inf)
        top, shares = float(weights.max()), np.zeros(len(self.sets))
        if top > -math.inf:
            weights = np.exp(weights - top)
            total = float(weights.sum())
            shares[likely] = weights @ self.holds[x] / total
            top += math.log(total)
        self.known[x][before] = top, shares
        return top, shares

    def weights(self, part: list[int], before: int) -> list[float]:
        weights, known, masks = [], self.known, self.masks
        for x in part:
            cached = known[x].get(before & masks[x])
            weights.append((cached or self.at(x, before))[0])
            before |= 1 << x
        return weights

    def shares(self) -> Reals:
        columns = len(self.order)
        shares, looks = np.zeros((columns, columns)), 0
        now = self.weights(self.order, 0)
        kinds, bars = self.rng.integers(0, 5, STEPS).tolist(), np.log(self.rng.random(STEPS)).tolist()
        starts = self.rng.integers(0, columns, STEPS).tolist()
        ends = ((np.array(starts) + self.rng.integers(1, columns, STEPS)) % columns).tolist()
        for step, (kind, bar, i, j) in enumerate(zip(kinds, bars, starts, ends, strict=True)):
            i, j = (i, i + 1) if kind < 3 and i + 1 < columns else sorted((i, j))
            part = self.order[i : j + 1]
            # Neighbours change places, or any two, or one moves to the place of another.
            if kind < 4:
                part[0], part[-1] = part[-1], part[0]
            else:
                part = [*part[1:], part[0]] if step % 2 else [part[-1], *part[:-1]]
            fresh = self.weights(part, sum(1 << x for x in self.order[:i]))
            if sum(fresh) - sum(now[i : j + 1]) > bar:
                self.order[i : j + 1], now[i : j + 1] = part, fresh
            if step >= 0.3 * STEPS and step % EACH == 0:
                looks, before = looks + 1, 0
                for x in self.order:
                    shares[x] += self.at(x, before)[1]
                    before |= 1 << x
        return shares / looks
