"""Graphs to and from objects of other packages, at no privacy cost, and a test that their PC can call."""

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.table import Table
from dpcausal.discovery.graph import Cpdag
from dpcausal.errors import MissingDependencyError, ParameterError
from dpcausal.independence.api import ci_test
from dpcausal.independence.question import IndependenceTest
from dpcausal.privacy.loss import Loss


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
    edge, endpoint, general, node = (getattr(_imported(f"causallearn.graph.{name}", "causal-learn"), name)
                                     for name in ("Edge", "Endpoint", "GeneralGraph", "GraphNode"))  # fmt: skip
    made = {name: node(name) for name in graph.nodes}
    general_graph = general(list(made.values()))
    for a, b in graph.arcs():
        general_graph.add_edge(edge(made[a], made[b], endpoint.TAIL, endpoint.ARROW))
    for a, b in graph.edges():
        general_graph.add_edge(edge(made[a], made[b], endpoint.TAIL, endpoint.TAIL))
    return general_graph


def from_causal_learn(graph: Any) -> Cpdag:
    """Read a ``GeneralGraph`` of causal-learn, or the ``CausalGraph`` of its PC; circles and two heads are refused."""
    _imported("causallearn.graph.Edge", "causal-learn")
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
    base = _imported("pgmpy.base", "pgmpy")
    pgmpy_graph = base.PDAG(graph.arcs(), graph.edges()) if graph.undirected else base.DAG(graph.arcs())
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


def _imported(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise MissingDependencyError(package, package) from None


class MeteredCiTest:
    """``ci_test`` for the PC of pgmpy and causal-learn: each different question is paid once, at ``loss``.

    Parameters
    ----------
    table : Table
        Its ledger pays; its schema names the columns.
    loss : Loss
        What one question may cost.  How many a PC asks is not known before: d(d − 1)/2 of d columns without a given
        one, then the more, the more edges are left.  The ledger stops it.
    method, alpha : str or method, float
        As in ``ci_test``; ``alpha`` matters to methods that release a decision without a p-value, which then count
        as 0 or 1.

    Attributes
    ----------
    answers : dict
        The released result of each question, by its pair and what was given.
    p_value_, effect_size_ : float, None
        Of the last question, where pgmpy looks for them.

    Raises
    ------
    BudgetExceededError
        Out of the PC, when the ledger refuses; what was answered stays in ``answers`` and is free in the next run.

    Notes
    -----
    *Guarantee*: that of ``ci_test``, added up by the ledger over questions that the PC chooses by answers before.  The
    PC is given ``placeholder``, zeros in the table's shape: what it computes follows from released answers alone.
    Answers go by their columns: for another table, loss, method or ``alpha`` make another test.

    Examples
    --------
    >>> import dpcausal as dpc
    >>> rows = dpc.simulate.smooth_design(3000, effect=0.5, seed=1)
    >>> table = dpc.Table(rows.columns, rows.schema, dpc.Ledger.in_memory(dpc.PureDP(2)))
    >>> test = MeteredCiTest(table, loss=dpc.PureDP(1))
    >>> with dpc.simulated_noise(2):
    ...     print(test("x", "y", ["z1"], significance_level=0.05), test("y", "x", ["z1"]), len(test.answers))
    False False 1
    """

    def __init__(
        self, table: Table, *, loss: Loss, method: str | IndependenceTest = "auto", alpha: float = 0.05
    ) -> None:
        self.table, self.loss, self.method, self.alpha = table, loss, method, alpha
        self.names: tuple[str, ...] = tuple(table.schema)
        self.answers: dict[tuple[frozenset[str], frozenset[str]], Any] = {}
        self.p_value_, self.effect_size_ = 1.0, None

    @property
    def placeholder(self) -> NDArray[np.float64]:
        """Zeros in the table's public shape: ``pc(test.placeholder, 0.05, test.in_causal_learn())``."""
        return np.broadcast_to(0.0, (self.table.n, len(self.names)))

    def p_value(self, x: str, y: str, given: Iterable[str] = ()) -> float:
        """Ask, or look up what was asked."""
        first, second = sorted((x, y), key=self.names.index)
        among = sorted(set(given), key=self.names.index)
        key = frozenset((x, y)), frozenset(among)
        if key not in self.answers:
            self.answers[key] = ci_test(
                self.table, first, second, given=among, loss=self.loss, method=self.method, alpha=self.alpha
            )
        answer = self.answers[key]
        return float(answer.decision != "dependent") if answer.pvalue is None else float(answer.pvalue)

    def __call__(
        self, X: str, Y: str, Z: Sequence[str] = (), *_: Any, significance_level: float = 0.05, **__: Any
    ) -> bool:
        """Return whether independence stands, as pgmpy asks: ``PC(ci_test=test)``."""
        self.p_value_ = self.p_value(X, Y, Z)
        return self.p_value_ >= significance_level

    def in_causal_learn(self) -> str:
        """Register the test with causal-learn, and return the name for its ``indep_test=``."""
        cit, paid = _imported("causallearn.utils.cit", "causal-learn"), self
        base: Any = cit.CIT_Base

        class Asking(base):  # type: ignore[misc]
            """Columns by their places, as causal-learn asks."""

            def __init__(self, data: Any, **_: Any) -> None:
                self.method = name

            def __call__(self, X: int, Y: int, condition_set: Any = None) -> float:
                x, y, *given = (paid.names[int(place)] for place in (X, Y, *(condition_set or ())))
                return paid.p_value(x, y, given)

        name = f"dpcausal-{id(self)}"
        cit.register_ci_test(name, Asking)
        return name
