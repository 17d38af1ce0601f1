"""Columns that released numbers cannot tell apart: one of them is searched, near copies keep their own edges."""

import math
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.discovery.copies import one_column, parts_of
from tests.discovery.ways import THREE, TWO, graph_of

CHAIN = [("a", "b"), ("b", "c"), ("c", "d"), ("e", "d"), ("d", "f"), ("b", "g"), ("h", "g"), ("f", "i"), ("g", "j")]
COPIED = {"b": "b_code", "d": "d_code", "g": "g_code"}


def discrete(rows: int, seed: int) -> dict[str, Any]:
    rng, found = np.random.default_rng(seed), dict[str, Any]()
    for name in "abcehdfgij":
        parents = [found[p] for p, child in CHAIN if child == name]
        base = np.max(parents, axis=0) if parents else 0
        own = rng.random(rows) < (0.6 if parents else 0.0)
        found[name] = np.where(own, base, rng.integers(0, 3, rows))
    return found | {copy: np.array([2, 0, 1])[found[name]] for name, copy in COPIED.items()}


def test_an_edge_that_may_be_of_a_copy_has_less_support_the_more_copies_there_are() -> None:
    assert parts_of({"x2": "x", "z2": "z", "z3": "z"}) == pytest.approx({"x": 3 / 4, "z": 2 / 3})


@pytest.mark.parametrize("method", ["whitened", "triples", "parities"])
def test_bijections_of_discrete_columns_are_one_column_and_hide_no_edge(method: str) -> None:
    """Seen to fail: .36 and .20 of the skeleton were found by triples and parities."""
    found = graph_of(discrete(20_000, 1), THREE, dpc.ApproxDP(1, 1e-6), method=method)
    assert found.copies == {copy: name for name, copy in COPIED.items()}
    lines = {frozenset(pair) for pair in COPIED.items()}
    assert found.graph.skeleton == lines | {frozenset(arc) for arc in CHAIN}
    assert {frozenset((row["from"], row["to"])) for row in found.edges() if row["copy"]} == lines
    assert found.to_dict()["copies"] == found.copies
    parts = parts_of(found.copies) if method != "parities" else {}
    assert all(found.support.edges[frozenset(pair)] <= math.prod(parts.get(end, 1.0) for end in pair) for pair in CHAIN)
    again = found.release.discover()
    assert again.copies == found.copies
    for one in (found, again):
        assert [sum(copy in caveat for caveat in one.guarantee.caveats) for copy in COPIED.values()] == [1, 1, 1]


@pytest.mark.parametrize("loss", [dpc.PureDP(2), dpc.NoPrivacy()])
def test_a_copy_in_a_table_of_counts_is_one_column_too(loss: Any) -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(0, 2, 20_000)
    z = np.where(rng.random(20_000) < 0.8, x, 1 - x)
    y = np.where(rng.random(20_000) < 0.8, z, 1 - z)
    found = graph_of({"x": x, "z": z, "zz": 1 - z, "y": y}, TWO, loss, method="table")
    assert found.copies == {"zz": "z"}
    assert found.graph.skeleton == {frozenset(e) for e in (("x", "z"), ("y", "z"), ("z", "zz"))}


def test_columns_that_differ_in_a_few_records_are_copies_only_as_far_as_noise_tells() -> None:
    counts = np.array([[5_000.0, 60.0], [40.0, 4_900.0]])
    assert not one_column(counts, 0.0) and not one_column(counts, 100.0) and one_column(counts, 2_500.0)
    rare = np.array([[9_700.0, 150.0], [150.0, 0.0]])  # independent and rare: most records agree
    assert not one_column(rare, 0.0) and not one_column(rare, 2_500.0)


@pytest.mark.parametrize(("spread", "epsilon"), [(0.5, 1), (0.25, 1), (0.5, 0.3)])
def test_numbers_that_go_closely_together_get_no_false_edge(spread: float, epsilon: float) -> None:
    """a and b cause c, c causes d and e, at correlations of .95 and .985.  Seen to fail: .6 of all such pairs."""
    true = {frozenset(pair) for pair in ("ac", "bc", "cd", "ce")}
    false = 0
    for seed in range(3):
        coins = np.random.default_rng(seed)
        a, b = coins.normal(size=(2, 20_000))
        c = a + b + spread * coins.normal(size=20_000)
        d, e = c + spread * coins.normal(size=(2, 20_000))
        frame = dict(zip("abcde", (a, b, c, d, e), strict=True))
        false += len(graph_of(frame, dpc.Bounded(-8, 8), dpc.ApproxDP(epsilon, 1e-6)).graph.skeleton - true)
    assert false <= 1


@pytest.mark.parametrize("arcs", [("ab", "bc", "cd", "de"), ("ab", "ac", "ad", "ae")], ids=["chain", "fork"])
def test_numbers_that_follow_each_other_closely_in_a_line_or_from_one_get_no_false_edge(arcs: tuple[str, ...]) -> None:
    """At level 0.05 0.6 of 12 false edges are expected; 8 and 9 are drawn where noise of a direction is not heeded."""
    true, false = set(map(frozenset, arcs)), 0
    for seed in range(2):
        noise, frame = np.random.default_rng(seed).normal(size=(5, 20_000)), dict[str, Any]()
        for name, own in zip("abcde", noise, strict=True):
            frame[name] = next((frame[arc[0]] + 0.35 * own for arc in arcs if arc[1] == name), own)
        found = graph_of(frame, dpc.Bounded(-8, 8), dpc.ApproxDP(0.6, 1e-6)).graph.skeleton
        assert true <= found
        false += len(found - true)
    assert false <= 1
