"""Pictures: layers without graphviz, marks of what is shown, the caller's axes."""

from dataclasses import replace

import numpy as np

import dpcausal as dpc
from dpcausal.discovery.result import layers, positions


def test_effects_lie_below_their_causes() -> None:
    graph = dpc.Cpdag.from_dag("abcde", [("a", "c"), ("b", "c"), ("c", "d"), ("b", "d")])
    place = positions(graph)
    assert layers(graph) == [["a", "b", "e"], ["c"], ["d"]]
    assert all(place[cause][1] > place[effect][1] for cause, effect in graph.directed)
    assert len(set(place.values())) == 5


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
    schema = dpc.Schema({name: dpc.Levels([0, 1]) for name in columns})
    with dpc.simulated_noise(1):
        supported = dpc.discover(dpc.Table(columns, schema, dpc.Ledger.in_memory(dpc.PureDP(1))), loss=dpc.PureDP(1))
        found = replace(supported, support=None)
    ax = Figure().subplots()
    assert found.plot(ax) is ax
    assert "margin" in ax.get_title() and "NOT PRIVATE" in ax.get_title()
    assert {text.get_text() for text in ax.texts} >= {r"\$a\$", "b"}
    drawn = supported.plot()
    assert "share of re-drawn noise" in drawn.get_title()
    drawn.figure.canvas.draw()
