"""A causal graph up to Markov equivalence: directed where the data determine it, undirected elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dpcausal.codec import storable
from dpcausal.discovery.search.orientation import Marks, close_under_meek, extend_to_dag, member_dags, v_structures
from dpcausal.errors import ParameterError

Arc = tuple[str, str]
Edge = frozenset[str]


@storable("Cpdag")
@dataclass(frozen=True)
class Cpdag:
    """A completed partially directed acyclic graph, its nodes named.

    Attributes
    ----------
    nodes : tuple of str
        In the order of the schema.
    directed : frozenset of (cause, effect)
        Arcs that point the same way in every DAG of the class.
    undirected : frozenset of frozensets of two names
        Edges whose direction the class leaves open.

    Notes
    -----
    *Guarantee*: none of its own.  It holds no data: what it was made from was released before.

    Examples
    --------
    >>> graph = Cpdag.from_dag(["a", "b", "c"], [("a", "b"), ("c", "b")])
    >>> sorted(graph.directed), graph.v_structures
    ([('a', 'b'), ('c', 'b')], frozenset({('a', 'b', 'c')}))
    """

    nodes: tuple[str, ...]
    directed: frozenset[Arc] = frozenset()
    undirected: frozenset[Edge] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", tuple(self.nodes))
        object.__setattr__(self, "directed", frozenset((a, b) for a, b in self.directed))
        object.__setattr__(self, "undirected", frozenset(frozenset(edge) for edge in self.undirected))
        known = set(self.nodes)
        pairs = [frozenset(arc) for arc in self.directed] + list(self.undirected)
        if len(known) != len(self.nodes) or any(len(pair) != 2 or not pair <= known for pair in pairs):
            raise ParameterError("a graph has different nodes, and edges between two of them")
        if len(set(pairs)) != len(pairs):
            raise ParameterError("a graph joins two nodes by at most one edge")

    @classmethod
    def from_dag(cls, nodes: Iterable[str], arcs: Iterable[Arc]) -> Cpdag:
        """Return the class of a DAG: its v-structures, and what Meek's rules make of them.

        *Source*: Meek (1995), Theorem 3.
        """
        listed, given = tuple(nodes), frozenset(arcs)
        marks, dag = Marks(listed, map(frozenset, given)), Marks.of(listed, given, ())
        if not dag.acyclic():
            raise ParameterError("the arcs of a DAG form no cycle")
        for first, node, second in v_structures(dag):
            marks.orient(first, node)
            marks.orient(second, node)
        close_under_meek(marks)
        return cls.of_marks(listed, marks)

    @classmethod
    def of_marks(cls, nodes: Iterable[str], marks: Marks) -> Cpdag:
        return cls(tuple(nodes), frozenset(marks.arcs()), frozenset(marks.edges()))

    @property
    def skeleton(self) -> frozenset[Edge]:
        """Pairs of adjacent nodes."""
        return frozenset(frozenset(arc) for arc in self.directed) | self.undirected

    def arcs(self) -> list[Arc]:
        """Return the arcs, sorted."""
        return sorted(self.directed)

    def edges(self) -> list[Arc]:
        """Return the two names of each undirected edge, sorted."""
        return sorted((min(edge), max(edge)) for edge in self.undirected)

    @property
    def v_structures(self) -> frozenset[tuple[str, str, str]]:
        """Triples (x, z, y), x before y, of arcs x → z ← y with x and y not adjacent."""
        return v_structures(self.marks())

    def marks(self) -> Marks:
        """Return a working copy that can be oriented further."""
        return Marks.of(self.nodes, self.directed, self.undirected)

    def a_dag(self) -> frozenset[Arc] | None:
        """Return one DAG with this skeleton, these arcs and no further v-structure; ``None`` if there is none.

        *Source*: Dor & Tarsi (1992).
        """
        return extend_to_dag(self.marks())

    def dags(self, most: int = 10_000) -> Iterator[frozenset[Arc]]:
        """Return the DAGs of the class, at most so many."""
        return islice(member_dags(self.marks()), most)

    def d_separated(self, x: str, y: str, given: Iterable[str] = ()) -> bool:
        """Return whether a set separates two nodes, in every DAG of the class alike."""
        import networkx

        nodes = x, y, *given
        if len(set(nodes)) < len(nodes) or not set(nodes) <= set(self.nodes):
            text = f"x, y and given must be different nodes of the graph, which are {', '.join(self.nodes)}"
            raise ParameterError(text, argument="given", rule="names", value=nodes)
        dag = self.a_dag()
        if dag is None:
            raise ParameterError("no DAG belongs to this graph: d-separation is not defined")
        directed = networkx.DiGraph(list(dag))
        directed.add_nodes_from(self.nodes)
        return bool(networkx.is_d_separator(directed, {x}, {y}, set(nodes[2:])))

    def _ordered_pairs(self) -> set[Arc]:
        return set(self.directed) | {pair for a, b in self.edges() for pair in ((a, b), (b, a))}

    def f1(self, truth: Cpdag) -> float:
        """Return F1 over ordered pairs: an arc counts as one, an undirected edge as both; 1 for two empty graphs."""
        return _f1(self._ordered_pairs(), truth._ordered_pairs())

    def skeleton_f1(self, truth: Cpdag) -> float:
        """Return F1 over adjacent pairs."""
        return _f1(set(self.skeleton), set(truth.skeleton))

    def to_networkx(self) -> Any:
        """Return a ``networkx.DiGraph``; an undirected edge is two arcs."""
        import networkx

        graph = networkx.DiGraph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(sorted(self._ordered_pairs()))
        return graph

    def to_dict(self) -> dict[str, list[Any]]:
        """Return nodes, arcs and edges as sorted lists."""
        return {
            "nodes": list(self.nodes),
            "directed": [list(arc) for arc in self.arcs()],
            "undirected": [list(pair) for pair in self.edges()],
        }

    def __str__(self) -> str:
        drawn = [f"{a} -> {b}" for a, b in self.arcs()] + [f"{a} -- {b}" for a, b in self.edges()]
        return ", ".join(drawn) or "no edges"

    def to_dagitty(self) -> str:
        """Return the text that DAGitty reads: ``dag``, or ``pdag`` where an edge is undirected (``--``)."""
        lines = [_quoted(node) for node in self.nodes]
        lines += [f"{_quoted(a)} -> {_quoted(b)}" for a, b in self.arcs()]
        lines += [f"{_quoted(a)} -- {_quoted(b)}" for a, b in self.edges()]
        return ("pdag" if self.undirected else "dag") + " {\n" + "\n".join(lines) + "\n}\n"

    def to_dot(self) -> str:
        """Return the graph in the DOT language; undirected edges have ``dir=none``."""
        lines = [f"  {_quoted(node)};" for node in self.nodes]
        lines += [f"  {_quoted(a)} -> {_quoted(b)};" for a, b in self.arcs()]
        lines += [f"  {_quoted(a)} -> {_quoted(b)} [dir=none];" for a, b in self.edges()]
        return "digraph {\n" + "\n".join(lines) + "\n}\n"

    def to_graphml(self) -> str:
        """Return the graph as GraphML.

        An edge's ``kind`` distinguishes arcs (``directed``) from edges (``undirected``).
        """
        import networkx

        graph = networkx.DiGraph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(self.arcs(), kind="directed")
        graph.add_edges_from(self.edges(), kind="undirected")
        return "\n".join(networkx.generate_graphml(graph)) + "\n"


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _f1(estimate: set[Any], truth: set[Any]) -> float:
    if not estimate and not truth:
        return 1.0
    return 2 * len(estimate & truth) / (len(estimate) + len(truth))
