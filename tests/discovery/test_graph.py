"""Graphs: classes of DAGs against brute force, distances, d-separation, texts for other tools, pictures."""

import io
import itertools
import pickle
from collections import defaultdict
from dataclasses import replace
from functools import lru_cache

import networkx
import numpy as np
import pytest
from matplotlib.figure import Figure

import dpcausal as dpc
from dpcausal.discovery.result import positions
from dpcausal.errors import ParameterError
from tests.discovery.ways import TWO, graph_of
from tests.refusals import rule_of

NODES = ("a", "b", "c", "d")
PAIRS = list(itertools.combinations(NODES, 2))


def all_dags() -> list[frozenset[tuple[str, str]]]:
    found = []
    for marks in itertools.product((0, 1, 2), repeat=len(PAIRS)):
        arcs = [pair if mark == 1 else pair[::-1] for pair, mark in zip(PAIRS, marks, strict=True) if mark]
        if networkx.is_directed_acyclic_graph(networkx.DiGraph(arcs)):
            found.append(frozenset(arcs))
    return found


DAGS = all_dags()


def independences(dag: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str, frozenset[str]]]:
    graph = networkx.DiGraph(list(dag))
    graph.add_nodes_from(NODES)
    return frozenset(
        (x, y, frozenset(given))
        for x, y in PAIRS
        for size in range(3)
        for given in itertools.combinations([n for n in NODES if n not in (x, y)], size)
        if networkx.is_d_separator(graph, {x}, {y}, set(given))
    )


@lru_cache(maxsize=1)
def classes() -> dict[frozenset[tuple[str, str, frozenset[str]]], set[frozenset[tuple[str, str]]]]:
    """Return the DAGs by their independences; worked out where a test asks, not by each worker that collects."""
    found = defaultdict(set)
    for dag in DAGS:
        found[independences(dag)].add(dag)
    return found


def test_the_class_of_every_dag_on_four_nodes_is_that_of_its_independences_and_lists_its_members() -> None:
    assert len(DAGS) == 543 and len(classes()) == 185  # Robinson's and Gillispie & Perlman's counts
    for members in classes().values():
        graphs = {dpc.Cpdag.from_dag(NODES, dag) for dag in members}
        assert len(graphs) == 1
        graph = graphs.pop()
        assert graph.directed == frozenset.intersection(*members)
        listed = list(graph.dags())
        assert len(listed) == len(set(listed)) and set(listed) == members
        assert graph.a_dag() in members


def test_d_separation_is_that_of_the_members() -> None:
    for known, members in itertools.islice(classes().items(), 40):
        graph = dpc.Cpdag.from_dag(NODES, next(iter(members)))
        for x, y in PAIRS:
            assert graph.d_separated(x, y) == ((x, y, frozenset()) in known)
            rest = [n for n in NODES if n not in (x, y)]
            assert graph.d_separated(x, y, rest) == ((x, y, frozenset(rest)) in known)


@pytest.mark.parametrize("asked", [("a", "a", []), ("a", "z", []), ("a", "b", ["a"]), ("a", "b", ["z"])])
def test_separation_is_asked_of_different_nodes_of_the_graph(asked: tuple[str, str, list[str]]) -> None:
    assert rule_of(lambda: dpc.Cpdag(NODES, directed=[("a", "b")]).d_separated(*asked)) == "names"


def test_agreement_counts_pairs() -> None:
    truth = dpc.Cpdag(NODES, directed=[("a", "b"), ("c", "b")], undirected=[{"c", "d"}])
    assert truth.f1(truth) == truth.skeleton_f1(truth) == 1
    other = dpc.Cpdag(NODES, directed=[("b", "a"), ("c", "b"), ("c", "d")])
    assert other.skeleton_f1(truth) == 1
    assert other.f1(truth) == pytest.approx(2 * 2 / (3 + 4))
    empty = dpc.Cpdag(NODES)
    assert empty.f1(empty) == 1 and empty.f1(truth) == 0


def test_a_graph_without_members_says_so() -> None:
    square = dpc.Cpdag(NODES, undirected=[{"a", "b"}, {"b", "c"}, {"c", "d"}, {"d", "a"}])
    assert square.a_dag() is None and list(square.dags()) == []
    with pytest.raises(ParameterError):
        square.d_separated("a", "c")


def test_the_texts_are_read_by_other_tools() -> None:
    names = ('a "b"', "c<d>", "e")
    graph = dpc.Cpdag(names, directed=[(names[0], names[1])], undirected=[{names[1], names[2]}])
    read = networkx.read_graphml(io.BytesIO(graph.to_graphml().encode()))
    assert set(read.nodes) == set(names) and read.number_of_edges() == 2
    assert sorted(read.get_edge_data(*edge)["kind"] for edge in read.edges) == ["directed", "undirected"]
    assert '"a \\"b\\"" -> "c<d>"' in graph.to_dot() and "dir=none" in graph.to_dot()
    assert graph.to_dagitty().startswith("pdag {") and '"c<d>" -- "e"' in graph.to_dagitty()
    assert set(graph.to_networkx().edges) == {(names[0], names[1]), (names[1], names[2]), (names[2], names[1])}


def test_a_graph_is_a_value() -> None:
    graph = dpc.Cpdag.from_dag(NODES, [("a", "b")])
    assert pickle.loads(pickle.dumps(graph)) == graph and len({graph, graph}) == 1
    assert graph.to_dict() == {"nodes": list(NODES), "directed": [], "undirected": [["a", "b"]]}
    assert str(graph) == "a -- b" and str(dpc.Cpdag(NODES)) == "no edges"


@pytest.mark.parametrize(
    "parts",
    [{"directed": [("a", "a")]}, {"directed": [("a", "z")]}, {"directed": [("a", "b"), ("b", "a")]},
     {"undirected": [{"a", "b"}], "directed": [("a", "b")]}],
)  # fmt: skip
def test_what_is_no_graph_is_refused(parts: dict[str, list[tuple[str, str]]]) -> None:
    with pytest.raises(ParameterError):
        dpc.Cpdag(NODES, **parts)


def test_effects_lie_below_their_causes() -> None:
    graph = dpc.Cpdag.from_dag("abcde", [("a", "c"), ("b", "c"), ("c", "d"), ("b", "d")])
    place = positions(graph)
    assert sorted(place, key=lambda node: (-place[node][1], place[node][0])) == list("abecd")
    assert len({height for _, height in place.values()}) == 3 and len(set(place.values())) == 5
    assert all(place[cause][1] > place[effect][1] for cause, effect in graph.directed)


def test_a_graph_that_no_dag_has_is_still_laid_out() -> None:
    square = dpc.Cpdag("abcd", undirected=["ab", "bc", "cd", "da"])
    assert set(positions(square)) == set("abcd")
    cycle = dpc.Cpdag("abc", directed=["ab", "bc", "ca"])
    assert set(positions(cycle)) == set("abc")


def test_the_picture_says_what_the_widths_are_and_that_nothing_is_private() -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, 5_000)
    columns = {"$a$": a, "b": np.where(rng.random(5_000) < 0.8, a, 1 - a)}
    supported = graph_of(columns, TWO, dpc.PureDP(1))
    found = replace(supported, support=None)
    ax = Figure().subplots()
    assert found.plot(ax) is ax
    assert "margin" in ax.get_title() and "NOT PRIVATE" in ax.get_title()
    assert {text.get_text() for text in ax.texts} >= {r"\$a\$", "b"}
    drawn = supported.plot()
    assert "share of re-drawn noise" in drawn.get_title()
    drawn.figure.canvas.draw()
