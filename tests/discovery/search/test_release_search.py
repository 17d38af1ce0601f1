"""The score search against brute force over all DAGs, with knowledge, margins, and noisy scores."""

import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import networkx
import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.discovery import pvalues
from dpcausal.discovery.knowledge import Knowledge
from dpcausal.discovery.pvalues import GraphTest
from dpcausal.discovery.search.exact_score import MOMENTS_PENALTY, best_dag, class_of, local_score, local_scores
from dpcausal.discovery.search.pc import Terms
from dpcausal.discovery.search.release_search import search, support
from dpcausal.discovery.support import Support, graph_with_support, usual_redraws
from dpcausal.releases.counts import NoisyTable
from dpcausal.releases.moments import NoisyMoments
from dpcausal.statistics.strata import contingency

NAMES = ("a", "b", "c", "d")
ALL = [frozenset(pair) for pair in itertools.combinations(NAMES, 2)]


def exact_table(seed: int = 1, rows: int = 3_000) -> NoisyTable:
    rng = np.random.default_rng(seed)
    a, c = rng.integers(0, 2, rows), rng.integers(0, 3, rows)
    b = np.where(rng.random(rows) < 0.8, a | (c > 0), rng.integers(0, 2, rows))
    d = np.where(rng.random(rows) < 0.7, b, 1 - b)
    return NoisyTable(NAMES, rows, contingency([a, b, c, d], [2, 2, 3, 2]), 0.0, "exact")


def bic(table: NoisyTable, x: int, parents: tuple[int, ...]) -> float:
    """Return the textbook score of one column, cell by cell."""
    counts = table.counts
    total = 0.0
    for place in itertools.product(*(range(k) for k in counts.shape)):
        joint = counts[tuple(p if i in (x, *parents) else slice(None) for i, p in enumerate(place))].sum()
        above = counts[tuple(p if i in parents else slice(None) for i, p in enumerate(place))].sum()
        if counts[place]:
            total += counts[place] * math.log(joint / above)
    freedom = (counts.shape[x] - 1) * math.prod(counts.shape[p] for p in parents)
    return total - math.log(table.n) / 2 * freedom


def subsets(members: list[int]) -> Iterator[tuple[int, ...]]:
    return itertools.chain.from_iterable(itertools.combinations(members, size) for size in range(len(members) + 1))


def test_the_local_score_is_the_textbook_bic_without_noise() -> None:
    table = exact_table()
    for x in range(4):
        for parents in subsets([p for p in range(4) if p != x]):
            assert local_score(table, x, parents) == pytest.approx(bic(table, x, parents), rel=1e-10)


def best_by_force(score: Callable[[int, tuple[int, ...]], float], known: Knowledge) -> float:
    """Return the best score of all 543 DAGs of four columns that knowledge allows."""
    sets = [list(subsets([p for p in range(4) if p != x])) for x in range(4)]
    scores = {(x, parents): score(x, parents) for x in range(4) for parents in sets[x]}
    best = -math.inf
    for chosen in itertools.product(*sets):
        arcs = [(NAMES[p], NAMES[x]) for x, parents in enumerate(chosen) for p in parents]
        if not networkx.is_directed_acyclic_graph(networkx.DiGraph(arcs)):
            continue
        if known.required <= set(arcs) and all(known.allows(*arc) for arc in arcs):
            best = max(best, sum(scores[x, parents] for x, parents in enumerate(chosen)))
    return best


@pytest.mark.parametrize(
    "known",
    [Knowledge(), Knowledge(tiers=[["d"], ["a", "b", "c"]]), Knowledge(required=[("d", "a")], forbidden=[("a", "b")])],
)
def test_the_search_finds_the_best_dag_of_all(known: Knowledge) -> None:
    table = exact_table()
    found = best_dag(local_scores(table, ALL, known))
    assert found is not None
    assert found[0] == pytest.approx(best_by_force(partial(local_score, table), known), rel=1e-12)
    assert known.required <= found[1] and all(known.allows(*arc) for arc in found[1])


def test_without_an_edge_the_score_falls_by_its_margin() -> None:
    table = exact_table()
    settings = Terms("score", 0.05, 1, Knowledge())
    found = search(table, settings)
    assert found.graph.skeleton == {frozenset("ab"), frozenset("bc"), frozenset("bd")}
    scores = local_scores(table, ALL, Knowledge())
    for edge in found.graph.skeleton:
        less = best_dag(scores, edge)
        assert less is not None and edge not in {frozenset(arc) for arc in less[1]}
        # The search looks at screened edges only, so that without one it can lose more than over all edges.
        assert found.margin[edge] >= best_dag(scores)[0] - less[0] - 1e-9 > 0  # type: ignore[index]


def test_the_class_of_the_best_dag_is_told() -> None:
    graph = class_of(NAMES, [("a", "b"), ("c", "b"), ("b", "d")], Knowledge())
    assert graph.directed == {("a", "b"), ("c", "b"), ("b", "d")}
    pointed = class_of(NAMES, [("a", "b")], Knowledge(forbidden=[("a", "b")]))
    assert pointed.directed == {("b", "a")}


def test_noise_in_the_penalty_keeps_noise_from_adding_edges() -> None:
    """Independent columns with strong noise: plain BIC on the noisy table joins many, the penalised score few."""
    rng, edges = np.random.default_rng(3), np.zeros(2)
    pairs = [frozenset(pair) for pair in itertools.combinations("abcde", 2)]
    for _ in range(10):
        counts = contingency([rng.integers(0, 2, 4_000) for _ in range(5)], [2] * 5)
        counts = counts + np.rint(rng.laplace(0, 40, counts.shape)).astype(np.int64)
        for place, variance in enumerate((2 * 40.0**2, 0.0)):
            table = NoisyTable(tuple("abcde"), 4_000, counts, variance, "geometric")
            edges[place] += len(best_dag(local_scores(table, pairs, Knowledge()))[1])  # type: ignore[index]
    assert edges[0] < 0.6 * edges[1]


def test_tests_given_two_columns_have_their_own_level() -> None:
    table = exact_table()
    low, high = 1e-9, 1 - 1e-9
    first = GraphTest(table, Terms("pc", low, 2, Knowledge(), later=high))
    later = GraphTest(table, Terms("pc", high, 2, Knowledge(), later=low))
    assert first("a", "c", ()).separated and not later("a", "c", ()).separated
    assert not first("c", "d", ("a", "b")).separated and later("c", "d", ("a", "b")).separated


@pytest.mark.parametrize("kind", ["score", "pc"])
def test_what_could_not_be_tested_has_no_margin_support_or_arrow(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """a and c cause b, b causes d; without a test of (b, c) it is no edge, and nothing points at b."""
    table, terms = exact_table(), Terms(kind, 0.001, 2, Knowledge())
    assert search(table, terms).graph.directed == {("a", "b"), ("c", "b"), ("b", "d")}
    real = pvalues.pvalue_of
    monkeypatch.setattr(
        pvalues, "pvalue_of", lambda release, x, y, given: None if {x, y} == {1, 2} else real(release, x, y, given)
    )
    found = search(table, terms)
    assert found.untested == {frozenset("bc")} and found.graph.skeleton == {frozenset(e) for e in ("ab", "bd")}
    assert not found.graph.directed and set(found.margin) == {frozenset("ab"), frozenset("bd")}
    assert set(support(table, terms, 3).edges) == {frozenset("ab"), frozenset("bd")}


def test_an_arrow_of_little_support_is_a_line_unless_knowledge_points_it() -> None:
    graph = dpc.Cpdag.from_dag("abcd", [("a", "b"), ("c", "b"), ("b", "d")])
    shares = Support(10, dict.fromkeys(graph.skeleton, 1.0), {("a", "b"): 0.4, ("c", "b"): 0.5, ("b", "d"): 0.0})
    told = graph_with_support(graph, shares, Knowledge())
    assert told.directed == {("c", "b")} and told.skeleton == graph.skeleton
    assert graph_with_support(graph, shares, Knowledge(forbidden=[("b", "a")])).directed == {("a", "b"), ("c", "b")}
    assert graph_with_support(graph, shares, Knowledge(required=[("b", "d")])).directed == {("b", "d"), ("c", "b")}
    assert graph_with_support(graph, None, Knowledge()) == graph
    sizes = ((8, 100), (30, 100), (30, 2_000), (30, 3_000))
    assert [usual_redraws(*size) for size in sizes] == [40, 16, 10, 0]


def test_the_best_score_of_moments_is_that_of_all_dags() -> None:
    """Each DAG is scored by regressions on rows of the same correlations."""
    rng = np.random.default_rng(5)
    values = rng.normal(size=(400, 4))
    values[:, 2] += values[:, 0] - values[:, 1]
    values[:, 3] += 0.8 * values[:, 2]
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    moments = NoisyMoments(tuple("abcd"), 400, (0.0,) * 4, (1.0,) * 4, values.T @ values / 400, 0.0)

    def score(x: int, parents: tuple[int, ...]) -> float:
        above = values[:, list(parents)]
        left = values[:, x] - above @ np.linalg.lstsq(above, values[:, x], rcond=None)[0]
        return -200 * math.log(float(np.mean(left**2))) - MOMENTS_PENALTY / 2 * math.log(400) * len(parents)

    found = best_dag(local_scores(moments, ALL, Knowledge()))
    assert found is not None and found[0] == pytest.approx(best_by_force(score, Knowledge()), rel=1e-4)
    assert {frozenset(arc) for arc in found[1]} == {frozenset("ac"), frozenset("bc"), frozenset("cd")}
