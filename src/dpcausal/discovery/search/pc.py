"""The PC loop, once: order by order, in its order-independent form, with a pluggable test.

Within an order the neighbours that conditioning sets are drawn from are those at its start, so that the outcome does
not depend on the order of the columns (Colombo & Maathuis 2014), and the tests of an order are known when it begins.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, zip_longest
from typing import Literal

from dpcausal.codec import storable
from dpcausal.discovery.graph import Cpdag
from dpcausal.discovery.knowledge import Knowledge
from dpcausal.discovery.search.orientation import Marks, close_under_meek, point_colliders

Edge = frozenset[str]
Test = tuple[str, str, tuple[str, ...]]


@storable("Terms")
@dataclass(frozen=True)
class Terms:
    """How numbers are searched: public, and free to change. ``"score"``: screen by tests, then the exact search for the
    best score; ``"pc"``: tests alone.  ``later`` is the level of the tests given two or more columns, by default
    ``alpha``."""

    search: Literal["score", "pc"]
    alpha: float
    max_order: int
    knowledge: Knowledge
    later: float | None = None

    def level(self, given: int) -> float:
        return self.alpha if self.later is None or given < 2 else self.later

    def at_alpha(self, pvalue: float, given: int) -> float:
        """Return a p-value as far from ``alpha`` as it is, as a ratio, from the level of its own test."""
        return pvalue if self.later is None or given < 2 else pvalue * (self.alpha / self.later)


@dataclass(frozen=True)
class Verdict:
    """What a test answers: whether the pair is separated, and its p-value or noisy score where there is one.
    ``separated`` is ``None`` where no part of the data bears on the question: not tested."""

    separated: bool | None
    pvalue: float | None = None


Ask = Callable[[str, str, tuple[str, ...]], Verdict]
JointRun = Callable[[list[Test]], None]
Begin = Callable[[int, list[Test], dict[str, tuple[str, ...]]], None]


@dataclass(frozen=True)
class Skeleton:
    """Where the loop ended: edges, the set that separated each removed pair, the largest p-value of each tested one.
    Pairs excluded by knowledge are in neither; ``tests`` counts those made.  Of ``untested`` pairs no test was made,
    for want of counts or because knowledge requires them; only the latter are edges."""

    edges: frozenset[Edge]
    separating: dict[Edge, tuple[str, ...]]
    weakest: dict[Edge, float] = field(default_factory=dict)
    tests: int = 0
    untested: frozenset[Edge] = frozenset()


def tests_of_order(
    nodes: Sequence[str], neighbours: dict[str, tuple[str, ...]], order: int, knowledge: Knowledge
) -> Iterator[Test]:
    """Yield the tests of one order: each pair with every set of that size among either end's other neighbours."""
    for place, x in enumerate(nodes):
        for y in nodes[place + 1 :]:
            if y not in neighbours[x] or knowledge.joined(x, y):
                continue
            seen: set[tuple[str, ...]] = set()
            for end, other in ((x, y), (y, x)):
                around = [node for node in neighbours[end] if node != other]
                for given in combinations(around, order):
                    if given not in seen:
                        seen.add(given)
                        yield x, y, given


def neighbours_of(nodes: Sequence[str], edges: set[Edge]) -> dict[str, tuple[str, ...]]:
    return {x: tuple(y for y in nodes if y != x and frozenset((x, y)) in edges) for x in nodes}


def starting_edges(nodes: Sequence[str], knowledge: Knowledge) -> set[Edge]:
    return {frozenset(pair) for pair in combinations(nodes, 2) if not knowledge.forbids_edge(*pair)}


def find_skeleton(
    nodes: Sequence[str], ask: Ask, terms: Terms, begin: Begin | None = None, together: JointRun | None = None
) -> Skeleton:
    """Return where the loop ends.

    It removes the edges whose ends some set separates, and at the end those of which no test was made; pairs that
    knowledge excludes or joins are not tested.  ``begin`` gets all tests of an order, and each node's neighbours,
    before the first of them is made.  ``ask`` is called once for each test that is still needed, in the order of
    ``tests_of_order``; where tests are quicker made ``together``, each pair's first of an order, then each one's
    second, and so on: with the same outcome.
    """
    edges = starting_edges(nodes, terms.knowledge)
    separating: dict[Edge, tuple[str, ...]] = {}
    weakest: dict[Edge, float] = {}
    tested: set[Edge] = set()
    untested: set[Edge] = set()
    count = 0
    for order in range(terms.max_order + 1):
        neighbours = neighbours_of(nodes, edges)
        tests = list(tests_of_order(nodes, neighbours, order, terms.knowledge))
        if not tests:
            break
        if begin is not None:
            begin(order, tests, neighbours)
        for x, y, given in _needed_tests(tests, edges, together):
            pair = frozenset((x, y))
            verdict = ask(x, y, given)
            count += 1
            if verdict.separated is not None:
                tested.add(pair)
            if verdict.pvalue is not None:
                weakest[pair] = max(weakest.get(pair, 0.0), terms.at_alpha(verdict.pvalue, len(given)))
            if verdict.separated:
                edges.discard(pair)
                separating[pair] = given
        untested |= edges - tested
        # What no test of an order bears on, none of a larger set does.
        edges.intersection_update({pair for pair in edges if pair in tested or terms.knowledge.joined(*pair)})
    return Skeleton(frozenset(edges), separating, weakest, count, frozenset(untested | (edges - tested)))


def _needed_tests(tests: list[Test], edges: set[Edge], together: JointRun | None) -> Iterator[Test]:
    if together is None:
        yield from (test for test in tests if frozenset(test[:2]) in edges)
        return
    of_pair: dict[tuple[str, str], list[Test]] = {}
    for test in tests:
        of_pair.setdefault(test[:2], []).append(test)
    for wave in zip_longest(*of_pair.values()):
        needed = [test for test in wave if test is not None and frozenset(test[:2]) in edges]
        together(needed)
        yield from needed


def orient(nodes: Sequence[str], skeleton: Skeleton, knowledge: Knowledge, ask: Ask | None = None) -> Cpdag:
    """Direct a skeleton: required arrows, what tiers and forbidden arrows leave, colliders, Meek's rules. It is defined
    for every skeleton and every answer: what contradicts an earlier arrow is left out.  An untested edge is no ground
    for an arrow and gets none but from knowledge.  With ``ask``, which must be free, no collider is made of a pair that
    it separates given the column between them too."""
    marks = _sure_marks(nodes, skeleton, knowledge)
    is_separated = None if ask is None else lambda x, y, given: ask(x, y, given).separated is True
    point_colliders(marks, skeleton.separating, lambda a, b: not knowledge.allows(a, b), is_separated)
    return _closed_graph(nodes, marks, skeleton, knowledge)


def sure_class(nodes: Sequence[str], skeleton: Skeleton, dag: Cpdag, knowledge: Knowledge) -> Cpdag:
    """Return the class of a DAG as far as the tested edges of its skeleton determine it."""
    marks = _sure_marks(nodes, skeleton, knowledge)
    for x, z, y in sorted(dag.v_structures):
        if z in marks.next_to(x) & marks.next_to(y):
            marks.orient(x, z)
            marks.orient(y, z)
    return _closed_graph(nodes, marks, skeleton, knowledge)


def _sure_marks(nodes: Sequence[str], skeleton: Skeleton, knowledge: Knowledge) -> Marks:
    unsure = {edge for edge in skeleton.untested if not knowledge.joined(*edge)}
    marks = Marks(nodes, skeleton.edges - unsure, unsure)
    apply_knowledge(marks, knowledge)
    return marks


def _closed_graph(nodes: Sequence[str], marks: Marks, skeleton: Skeleton, knowledge: Knowledge) -> Cpdag:
    close_under_meek(marks, lambda a, b: not knowledge.allows(a, b))
    marks.add_open(marks.unsure.intersection(skeleton.edges))
    marks.unsure = set()  # nothing more is to be concluded
    apply_knowledge(marks, knowledge)
    return Cpdag.of_marks(nodes, marks)


def apply_knowledge(marks: Marks, knowledge: Knowledge) -> None:
    """Point the edges that knowledge leaves one direction for; one that would close a cycle stays undirected."""
    for edge in marks.edges():
        a, b = sorted(edge)
        for cause, effect in ((a, b), (b, a)):
            one_way = knowledge.allows(cause, effect) and not knowledge.allows(effect, cause)
            if one_way and not marks.reaches(effect, cause):
                marks.orient(cause, effect)
