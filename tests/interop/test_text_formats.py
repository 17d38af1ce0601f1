"""A graph as a text: what is written is read back, by us and by networkx, and what stands in no CPDAG is refused."""

from typing import Any

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcausal import Cpdag, interop
from dpcausal.errors import MissingDependencyError, ParameterError

NAMES = ["age", "blood pressure", "größe", 'a "b"', "c<d>", "x.1", "[k]", "back\\slash", "digraph", "-"]
PLAIN = ["age", "smoker", "größe", "x.1", "dose_2", "apart"]


def graphs(names: list[str]) -> st.SearchStrategy[Cpdag]:
    """Any marks between any pairs: reading and writing must not depend on what a PC could return."""
    pairs = [(a, b) for place, a in enumerate(names) for b in names[place + 1 :]]

    def made(marks: list[int]) -> Cpdag:
        arcs = [pair if mark == 1 else pair[::-1] for pair, mark in zip(pairs, marks, strict=True) if mark in (1, 2)]
        return Cpdag(tuple(names), arcs, [pair for pair, mark in zip(pairs, marks, strict=True) if mark == 3])

    size = len(pairs)
    return st.lists(st.sampled_from([0, 0, 1, 2, 3]), min_size=size, max_size=size).map(made)


@given(graphs(NAMES))
def test_what_is_written_is_read_back_whatever_the_names(graph: Cpdag) -> None:
    assert interop.from_dagitty(interop.to_dagitty(graph)) == graph
    assert interop.from_dot(interop.to_dot(graph)) == graph
    assert interop.from_networkx(interop.to_networkx(graph)) == graph


@given(graphs(PLAIN))
def test_tetrads_text_is_read_back(graph: Cpdag) -> None:
    assert interop.from_tetrad(interop.to_tetrad(graph)) == graph


def test_a_graph_without_undirected_edges_is_a_dag_to_dagitty() -> None:
    assert Cpdag(("a", "b"), [("a", "b")]).to_dagitty().startswith("dag {")
    assert Cpdag(("a", "b"), [], [("a", "b")]).to_dagitty().startswith("pdag {")


def test_texts_as_those_tools_write_them_are_read() -> None:
    ours = Cpdag(("a", "b", "c", "d"), [("a", "c"), ("b", "c")], [("c", "d")])
    dagitty = 'pdag {\nbb="-2,-2,3,3"\na [exposure,pos="-1.0,0.5"]\nb\n"c" [pos="0,1"]\nd\n{a b} -> c\nc -- d\n}\n'
    dot = """strict digraph "g" {
      // a comment
      graph [rankdir=LR]; node [shape=box, style="filled"]; splines=true
      a; b; c; d;
      c -> a [dir=back, color="#ff0000"]; b -> c; /* and
      another */ c -> d [dir=none]
    }"""
    tetrad = "Graph Nodes:\na,b,c,d\n\nGraph Edges:\n1. a --> c dd nl\n2. c <-- b\n3. c --- d\n\nGraph Attributes:\n"
    assert interop.from_dagitty(dagitty) == ours
    assert interop.from_dot(dot) == ours
    assert interop.from_tetrad(tetrad) == ours
    assert interop.from_dot("graph { a -- b }") == Cpdag(("a", "b"), [], [("a", "b")])
    assert interop.from_networkx(networkx.path_graph(["a", "b", "c"])) == Cpdag(tuple("abc"), [], ["ab", "bc"])
    assert interop.from_networkx(networkx.MultiDiGraph([("a", "b"), ("a", "b")])) == Cpdag(tuple("ab"), [("a", "b")])


UNDIRECTED = Cpdag(("a", "b"), [], [("a", "b")])
REFUSED = [
    *((interop.from_dagitty, text, ".") for text in (
        "dag { a <-> b }", "dag { a -> b", "a -> b", "dag { a -> b } c", "dag { a -> b b -> a }", "dag { a -> }",
        "dag { a -> a }", "mag { a -> b }", "dag { a -> ; }", "")),
    *((interop.from_dot, f"digraph {{ {body} }}", ".") for body in (
        "a -> b [dir=both]", "a -> <b>", "a -> Node", "subgraph s -> a", "a <- b", '"a -> b')),
    *((interop.from_tetrad, f"Graph Nodes:\na;b\n\nGraph Edges:\n1. a {mark} b\n", "no CPDAG")
      for mark in ("o-o", "o->", "<->", "-->>")),
    (interop.to_tetrad, Cpdag(("blood pressure",)), "no place for the name"),
    (interop.from_networkx, networkx.path_graph(3), "text"), (interop.to_dowhy, UNDIRECTED, "takes a DAG"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "given_graph", "words"), REFUSED)
def test_what_is_no_cpdag_or_has_no_place_in_a_format_is_refused(call: Any, given_graph: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        call(given_graph)


EDGES = {  # what stands between the braces of a digraph, and the graph that it means to Graphviz; "" is refused
    "edge [dir=both]; a -> b": "", "edge [dir=both] a -> b": "", "Edge [dir=both]; a -> b": "",
    "edge [dir=none]; a -> b; c -> d [dir=forward]": "c -> d, a -- b", "edge [dir=back]; a -> b": "b -> a",
    "subgraph s { edge [dir=both]; a -> b }": "", "subgraph s { edge [dir=none]; a -> b } c -> d": "c -> d, a -- b",
    "SUBGRAPH { a -> b }": "a -> b", "{ edge [dir=none]; a -> b } -> c": "a -> c, b -> c, a -- b",
    "edge [dir=none]; subgraph { edge [dir=forward]; a -> b } c -> d": "a -> b, c -- d",
    "a -> b [arrowhead=none]": "a -- b", "a -> b [dir=both, arrowtail=none]": "a -> b", "a -> b [arrowhead=odot]": "",
    'a -> b ["dir"="both"]': "", "a -> b [dir=sideways]": "", 'a -> b [dir="bo" + "th"]': "",
    "a -> b [label=<dir=none>]": "",
    'a -> b [label="dir=none"]': "a -> b", "a:n -> b:s:w": "a -> b", "# dir=both\n a -> b": "a -> b",
    'a -> b [label="\n# ", dir=none]': "a -- b", 'a -> b [label="x]': "", "{" * 3000 + "}" * 3000: "",
    "a -> {b {c -> d}}": "a -> b, a -> c, a -> d, c -> d",
}  # fmt: skip


@pytest.mark.parametrize("body", EDGES)
def test_an_edge_of_dot_is_what_its_attributes_make_of_it(body: str) -> None:
    """Seen to fail: what ``edge [...]`` says was not read, so edges with two heads became arrows."""
    meant = EDGES[body]
    if meant == "":
        with pytest.raises(ParameterError):
            interop.from_dot(f"digraph {{ {body} }}")
    else:
        assert str(interop.from_dot(f"DiGraph {{ {body} }}")) == meant


def test_a_package_that_is_not_there_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pgmpy", "pgmpy.base", "causallearn", "causallearn.graph.Edge", "causallearn.utils.cit"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    with pytest.raises(MissingDependencyError, match=r"dpcausal\[pgmpy\]"):
        interop.to_pgmpy(Cpdag(("a",)))
    for use in (interop.to_causal_learn, interop.from_causal_learn, interop.MeteredCiTest.in_causal_learn):
        with pytest.raises(MissingDependencyError, match=r"dpcausal\[causal-learn\]"):
            use(Cpdag(("a",)))  # type: ignore[arg-type]
