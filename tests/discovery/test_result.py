"""Pictures: layers without graphviz, marks of what is shown, the caller's axes."""

from dataclasses import replace

import numpy as np

import dpcausal as dpc
from dpcausal.discovery.result import positions
from tests.discovery.ways import TWO, graph_of


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
    from matplotlib.figure import Figure

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
