"""Orientation: a graph that is being directed, v-structures, Meek's rules, and the DAGs that are left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from typing import Any

Pair = frozenset[Any]
Forbids = Any  # callable (a, b) -> bool
IsSeparated = Callable[[Any, Any, tuple[Any, ...]], bool]


class Marks:
    """A graph on hashable nodes whose edges are turned into arcs one by one. ``unsure`` pairs may be edges: they count
    as adjacent, so that nothing is concluded from their being apart, and nothing else is concluded from them."""

    def __init__(self, nodes: Iterable[Any], edges: Iterable[Pair], unsure: Iterable[Pair] = ()) -> None:
        self.nodes = tuple(nodes)
        self.open: dict[Any, set[Any]] = {node: set() for node in self.nodes}
        self.parents: dict[Any, set[Any]] = {node: set() for node in self.nodes}
        self.children: dict[Any, set[Any]] = {node: set() for node in self.nodes}
        self.unsure = {frozenset(pair) for pair in unsure}
        self.add_open(edges)

    def add_open(self, edges: Iterable[Pair]) -> None:
        for a, b in map(tuple, edges):
            self.open[a].add(b)
            self.open[b].add(a)

    def next_to(self, a: Any) -> set[Any]:
        return self.open[a] | self.parents[a] | self.children[a]

    @classmethod
    def of(cls, nodes: Iterable[Any], arcs: Iterable[tuple[Any, Any]], edges: Iterable[Pair]) -> Marks:
        listed = list(arcs)
        marks = cls(nodes, [*edges, *(frozenset(arc) for arc in listed)])
        for a, b in listed:
            marks.orient(a, b)
        return marks

    def copy(self) -> Marks:
        return Marks.of(self.nodes, self.arcs(), self.edges())

    def adjacent(self, a: Any, b: Any) -> bool:
        return b in self.next_to(a) or frozenset((a, b)) in self.unsure

    def orient(self, a: Any, b: Any) -> bool:
        if b not in self.open[a]:
            return False
        self.open[a].discard(b)
        self.open[b].discard(a)
        self.children[a].add(b)
        self.parents[b].add(a)
        return True

    def arcs(self) -> list[tuple[Any, Any]]:
        return [(a, b) for a in self.nodes for b in self.nodes if b in self.children[a]]

    def edges(self) -> list[Pair]:
        return [frozenset((a, b)) for i, a in enumerate(self.nodes) for b in self.nodes[i + 1 :] if b in self.open[a]]

    def reaches(self, a: Any, b: Any) -> bool:
        seen, todo = {a}, [a]
        while todo:
            for child in self.children[todo.pop()]:
                if child == b:
                    return True
                if child not in seen:
                    seen.add(child)
                    todo.append(child)
        return False

    def acyclic(self) -> bool:
        try:
            TopologicalSorter(self.parents).prepare()
        except CycleError:
            return False
        return True


def point_colliders(
    marks: Marks, separating: Mapping[Pair, Iterable[Any]], forbids: Forbids = None,
    is_separated: IsSeparated | None = None,
) -> None:  # fmt: skip
    """Point x → z ← y where x and y are apart, z is next to both, and z is not in the set that separated them.

    In the order of the nodes; an arc that contradicts an earlier one, a forbidden one, or one that would close a
    cycle is left out, so that the outcome is defined for every set of answers.  With ``is_separated`` both arcs are
    drawn or none, and none if x and y are apart given z too: a collider links them, so noise could hide a chain.

    *Source*: Spirtes, Glymour & Scheines (2000), step C of PC; ``is_separated`` is this library's.
    """
    place = {node: k for k, node in enumerate(marks.nodes)}
    wanted = []
    for pair, between in separating.items():
        x, y = sorted(pair, key=place.__getitem__)
        if marks.adjacent(x, y):
            continue
        common = marks.next_to(x) & marks.next_to(y)
        between = set(between)
        wanted += [
            (place[x], place[y], place[z], x, y, z) for z in common
            if z not in between
            and not (is_separated and is_separated(x, y, tuple(sorted({*between, z}, key=place.__getitem__))))
        ]  # fmt: skip
    for _, _, _, x, y, z in sorted(wanted, key=lambda triple: triple[:3]):
        free = [a for a in (x, y) if not (forbids is not None and forbids(a, z)) and not marks.reaches(z, a)]
        for a in free if is_separated is None or len(free) == 2 else ():
            marks.orient(a, z)


def close_under_meek(marks: Marks, forbids: Forbids = None) -> None:
    """Apply Meek's four rules until none applies; an arc that would close a cycle, or is forbidden, is not drawn.

    An open edge a — b becomes a → b if: (R1) c → a with c and b apart; (R2) a → c → b; (R3) a — c → b and a — d → b
    with c and d apart; (R4) a — d → c → b with a next to c, d and b apart, which only knowledge brings about.

    *Source*: Meek (1995), rules R1 to R4.
    """
    changed = True
    while changed:
        changed = False
        for a in marks.nodes:
            for b in sorted(marks.open[a], key=marks.nodes.index):
                if b in marks.open[a] and _is_implied(marks, a, b):
                    if (forbids is not None and forbids(a, b)) or marks.reaches(b, a):
                        continue
                    changed |= marks.orient(a, b)


def _is_implied(marks: Marks, a: Any, b: Any) -> bool:
    if any(not marks.adjacent(c, b) for c in marks.parents[a]):  # R1: c → a — b
        return True
    if marks.children[a] & marks.parents[b]:  # R2: a → c → b
        return True
    between = marks.open[a] & marks.parents[b]  # a — c → b
    if any(not marks.adjacent(c, d) for c, d in combinations(between, 2)):  # R3
        return True
    # R4: a — d → c → b with a next to c, d and b apart
    near = (c for c in marks.parents[b] if marks.adjacent(a, c))
    return any(not marks.adjacent(d, b) for c in near for d in marks.parents[c] & marks.open[a])


def extend_to_dag(marks: Marks) -> frozenset[tuple[Any, Any]] | None:
    """Return the arcs of one DAG of the class, or ``None``.

    Take out, again and again, a node without children whose open neighbours are next to all its other neighbours,
    pointing its open edges to it.  *Source*: Dor & Tarsi (1992).
    """
    rest = marks.copy()
    arcs = set(rest.arcs())
    left = list(rest.nodes)
    while left:
        for node in left:
            if rest.children[node]:
                continue
            around = rest.open[node] | rest.parents[node]
            if all(all(other == near or rest.adjacent(near, other) for other in around) for near in rest.open[node]):
                break
        else:
            return None
        arcs |= {(near, node) for near in rest.open[node]}
        for near in rest.open[node]:
            rest.open[near].discard(node)
        for parent in rest.parents[node]:
            rest.children[parent].discard(node)
        rest.open[node], rest.parents[node] = set(), set()
        left.remove(node)
    return frozenset(arcs)


def v_structures(marks: Marks) -> frozenset[tuple[Any, Any, Any]]:
    """Return the triples (x, z, y), x before y, of arcs x → z ← y with x and y apart."""
    return frozenset(
        (x, z, y) for z in marks.nodes for x, y in combinations(sorted(marks.parents[z]), 2) if not marks.adjacent(x, y)
    )


def member_dags(marks: Marks) -> Iterator[frozenset[tuple[Any, Any]]]:
    """Yield the DAGs with this skeleton, these arcs and no further v-structure."""
    known = v_structures(marks)

    def grow(current: Marks) -> Iterator[frozenset[tuple[Any, Any]]]:
        if not current.acyclic() or v_structures(current) - known:
            return
        open_edges = current.edges()
        if not open_edges:
            yield frozenset(current.arcs())
            return
        a, b = sorted(open_edges[0], key=current.nodes.index)
        for tail, head in ((a, b), (b, a)):
            further = current.copy()
            further.orient(tail, head)
            close_under_meek(further)
            yield from grow(further)

    yield from grow(marks)
