"""Convert graphs to and from objects of other packages, at no privacy cost."""

from __future__ import annotations

from typing import Any

from dpcausal.discovery.graph import Cpdag
from dpcausal.errors import MissingDependencyError, ParameterError


def from_networkx(graph: Any) -> Cpdag:
    """Read a networkx graph; in a directed one, two arcs between two nodes are an undirected edge."""
    nodes = tuple(graph.nodes)
    if not all(isinstance(node, str) for node in nodes):
        raise ParameterError("the nodes of a graph are names: text")
    ways = {(a, b) for a, b, *_ in graph.edges}
    ways |= set() if graph.is_directed() else {(b, a) for a, b in ways}
    arcs = frozenset((a, b) for a, b in ways if (b, a) not in ways or a == b)
    return Cpdag(nodes, arcs, frozenset(frozenset(way) for way in ways - arcs))


def to_causal_learn(graph: Cpdag) -> Any:
    """Return a ``GeneralGraph`` of causal-learn; its PC's ``CausalGraph`` holds one as ``G``."""
    edge, endpoint, general, node = _causal_learn()
    made = {name: node(name) for name in graph.nodes}
    general_graph = general(list(made.values()))
    for a, b in graph.arcs():
        general_graph.add_edge(edge(made[a], made[b], endpoint.TAIL, endpoint.ARROW))
    for a, b in graph.edges():
        general_graph.add_edge(edge(made[a], made[b], endpoint.TAIL, endpoint.TAIL))
    return general_graph


def from_causal_learn(graph: Any) -> Cpdag:
    """Read a ``GeneralGraph`` of causal-learn, or the ``CausalGraph`` of its PC; circles and two heads are refused."""
    _causal_learn()
    general = getattr(graph, "G", graph)
    arcs, edges = [], []
    for edge in general.get_graph_edges():
        a, b = edge.get_node1().get_name(), edge.get_node2().get_name()
        marks = edge.get_endpoint1().name, edge.get_endpoint2().name
        if marks == ("TAIL", "TAIL"):
            edges.append(frozenset((a, b)))
        elif set(marks) == {"TAIL", "ARROW"}:
            arcs.append((a, b) if marks[1] == "ARROW" else (b, a))
        else:
            raise ParameterError("an edge with a circle or with two heads is not allowed in a CPDAG")
    nodes = tuple(node.get_name() for node in general.get_nodes())
    return Cpdag(nodes, frozenset(arcs), frozenset(edges))


def to_pgmpy(graph: Cpdag) -> Any:
    """Return a ``pgmpy.base.PDAG``, or a ``DAG`` where no edge is undirected."""
    try:
        from pgmpy.base import DAG, PDAG
    except ImportError:
        raise MissingDependencyError("pgmpy", "pgmpy") from None
    pgmpy_graph = PDAG(graph.arcs(), graph.edges()) if graph.undirected else DAG(graph.arcs())
    pgmpy_graph.add_nodes_from(graph.nodes)
    return pgmpy_graph


def from_pgmpy(graph: Any) -> Cpdag:
    """Read a ``DAG``, ``PDAG`` or network of pgmpy."""
    if not hasattr(graph, "undirected_edges"):
        return from_networkx(graph)
    edges = frozenset(frozenset(edge) for edge in graph.undirected_edges)
    return Cpdag(tuple(graph.nodes), frozenset(graph.directed_edges), edges)


def to_dowhy(graph: Cpdag) -> Any:
    """Return the ``networkx.DiGraph`` that DoWhy takes for ``CausalModel(graph=)`` and its ``gcm`` models.

    Raises
    ------
    ParameterError
        An edge is undirected: DoWhy takes a DAG.
    """
    if graph.undirected:
        raise ParameterError(
            "DoWhy takes a DAG, and this graph leaves directions open: name them by knowledge=, or ask it of each DAG "
            "of the class, Cpdag(graph.nodes, dag) for dag in graph.dags()"
        )
    return graph.to_networkx()


def from_dowhy(model: Any) -> Cpdag:
    """Read the graph of DoWhy's ``CausalModel`` or of a model of its ``gcm``."""
    held = getattr(model, "graph", None)
    return from_networkx(model._graph._graph if held is None else held)


def _causal_learn() -> tuple[Any, Any, Any, Any]:
    try:
        from causallearn.graph.Edge import Edge
        from causallearn.graph.Endpoint import Endpoint
        from causallearn.graph.GeneralGraph import GeneralGraph
        from causallearn.graph.GraphNode import GraphNode
    except ImportError:
        raise MissingDependencyError("causal-learn", "causal-learn") from None
    return Edge, Endpoint, GeneralGraph, GraphNode
