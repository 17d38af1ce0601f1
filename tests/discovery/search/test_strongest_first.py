"""Searches of whitened pairs: strongest first, full tests given two columns, climbing, sampled orders."""

import math
from dataclasses import replace
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.discovery.search import dag_scores as orders
from dpcausal.discovery.search.agreement import averaged_search
from dpcausal.discovery.search.dag_scores import hill_climbed_edges, order_sampling, sets_of_parents
from dpcausal.discovery.search.pc import Terms
from dpcausal.discovery.search.strongest_first import (
    START_BAR,
    candidates,
    needed_triples,
    retained_pairs,
    strongest_first,
)
from dpcausal.discovery.support import calibrated_support
from dpcausal.privacy.noise import generator_from_seed
from tests.discovery.ways import THREE, TWO, graph_of

CHAIN = {frozenset(pair) for pair in ("ab", "bc", "cd")}
TERMS = Terms("pc", 0.003, 2, dpc.Knowledge(), 0.03)


def released(order: str = "abcd", epsilon: float = 1.0) -> Any:
    """Return noisy pairs of a chain of three levels, and of a fifth column whose second level is rare."""
    rng = np.random.default_rng(1)
    values = {"a": rng.integers(0, 3, 20_000)}
    for above, name in ("ab", "bc", "cd"):
        values[name] = np.where(rng.random(20_000) < 0.7, values[above], rng.integers(0, 3, 20_000))
    values["e"] = (np.arange(20_000) < 3).astype(int)
    schema = dpc.Schema({name: TWO if name == "e" else THREE for name in order})
    return graph_of(values, schema, dpc.ApproxDP(epsilon, 1e-6), 2, method="whitened").release


def test_climbing_joins_the_chain_and_minds_knowledge() -> None:
    release = released()
    assert hill_climbed_edges(release, TERMS) == CHAIN
    known = dpc.Knowledge(forbidden=[("b", "c"), ("c", "b")], required=[("a", "d")])
    bound = hill_climbed_edges(release, replace(TERMS, knowledge=known))
    assert frozenset("ad") in bound and frozenset("bc") not in bound


def test_climbing_ends_where_gains_go_round() -> None:
    """Noise alone, far above the links: gains of such numbers add up to no score."""
    release = released()
    for seed in range(8):
        noise = np.triu(np.random.default_rng(seed).normal(0, 0.3 * release.count, release.matrix.shape), 1)
        assert hill_climbed_edges(replace(release, matrix=release.matrix + noise + noise.T), replace(TERMS, alpha=0.9))


def test_draws_of_little_noise_count_for_less_than_their_share(monkeypatch: Any) -> None:
    """A share counts by its odds to the power of 1.7 where noise is large, and squared where it is small, or none."""
    monkeypatch.setattr("dpcausal.discovery.search.agreement.order_sampling", lambda *asked: {})
    steep, middle = (1.5**k / (1 + 1.5**k) for k in (1.7, 1 + 0.7 * 0.5))
    supports = [calibrated_support(0.6, 70 * math.sqrt(square), 2.0, 0.0) for square in (0.01, 0.8, 0.9, 1.0)]
    assert supports == pytest.approx([steep, steep, middle, 0.6])
    assert calibrated_support(0.6, 84.0, 2.0, 0.0) == pytest.approx(0.6**1.44)
    assert calibrated_support(0.6, 1e9, 2.0, 0.0) == calibrated_support(0.6, math.inf, 2.0, 0.0) == 0.6**2
    assert calibrated_support(1.0, 1e9, 2.0, 0.0) == 1.0 and calibrated_support(1.0, 1e9, 2.0, 0.3) == 0.7
    release = released(epsilon=0.02)
    faint = np.where(np.eye(len(release.matrix)) == 1, release.matrix, 0.06 * release.matrix)
    clear = replace(release, matrix=faint, deviation=release.count / 110)
    shares, told = (averaged_search(one, TERMS, {}, 16)[1].edges for one in (release, clear))
    assert release.count / release.deviation < 60 and len({*shares.values()}) > 1 and len({*told.values()}) > 1
    draws = {both / 48 for both in range(33)}
    sharpened = [one**1.7 / (one**1.7 + (1 - one) ** 1.7) for one in draws]
    assert all(min(abs(share - one) for one in sharpened) < 1e-9 for share in shares.values())
    assert all(min(abs(share - one**2) for one in draws) < 1e-9 for share in told.values())
    assert averaged_search(replace(release, deviation=0.0), TERMS, {}, 2)[1].edges


def test_noisy_numbers_in_another_order_give_the_same_graph_and_support() -> None:
    release = released(epsilon=0.03)
    turned = [2, 3, 6, 7, 0, 1, 4, 5, 8]
    names, places, shares = (tuple(part[k] for k in (1, 3, 0, 2)) for part in
                             (release.names, release.places, release.shares))  # fmt: skip
    matrix = release.matrix[np.ix_(turned, turned)]
    one = release.discover()
    other = replace(release, names=names, places=places, shares=shares, matrix=matrix).discover()
    assert "(margin" in one.details() and "support 100%" in one.details()
    assert other.graph.nodes == names and set(one.support.edges.values()) - {0.0, 1.0}
    assert (one.graph.directed, one.graph.undirected) == (other.graph.directed, other.graph.undirected)
    assert one.support == other.support and one.margin == other.margin


def test_what_one_search_never_joins_is_out(monkeypatch: Any) -> None:
    more = frozenset({*CHAIN, frozenset("ad")})
    monkeypatch.setattr("dpcausal.discovery.search.agreement.hill_climbed_edges", lambda release, terms: more)
    skeleton, shares = averaged_search(released(epsilon=0.1), TERMS, {}, 4)
    assert 1 / 3 <= shares.edges[frozenset("ad")] < 0.5 and skeleton.edges == CHAIN


def test_a_column_whose_levels_are_lost_is_not_tested_and_not_joined() -> None:
    found = released("abcde", 0.5).discover()
    assert found.untested == {frozenset((name, "e")) for name in "abcd"}
    assert not any("e" in edge for edge in found.graph.skeleton)


FULL = Terms("pc", 0.01, 2, dpc.Knowledge(), 0.03)
TRUTH = {frozenset(pair) for pair in ("zx", "wx", "zy", "wy")}


def both_needed(rows: int = 20_000) -> dict[str, Any]:
    """Return x and y that are both likely where z and w are one: more than either adds alone."""
    rng = np.random.default_rng(1)
    z, w = rng.random(rows) < 0.5, rng.random(rows) < 0.5
    found = {"z": z, "w": w} | {name: rng.random(rows) < 0.05 + 0.85 * (z & w) for name in "xy"}
    return {name: column.astype(int) for name, column in found.items()}


def by_triples(made: dict[str, Any] | None = None) -> Any:
    return graph_of(made or both_needed(), TWO, dpc.ApproxDP(2, 1e-6), seed=3, method="triples")


def test_a_pair_that_two_columns_separate_together_is_apart_where_pairs_join_it() -> None:
    full = by_triples()
    assert full.graph.skeleton >= TRUTH and frozenset("xy") not in full.graph.skeleton
    assert {(0, 1, 2), (0, 1, 3)} <= set(full.release.triples)
    assert frozenset("xy") in full.release.pairs.discover().graph.skeleton


def test_without_privacy_it_is_found_too_and_in_any_order() -> None:
    exact = graph_of(both_needed(5_000), TWO, dpc.NoPrivacy(), method="triples")
    assert exact.graph.skeleton == TRUTH and exact.support is None
    release = by_triples().release
    one, other = release.discover(), release.by_name().discover()
    assert (one.graph.skeleton, one.support) == (other.graph.skeleton, other.support)


def test_triples_are_those_of_sets_of_which_no_part_is_needless() -> None:
    """No set of two is asked of a pair one of whose ends is not linked to either given the other."""
    release = by_triples().release
    start = candidates(release, FULL)
    shares = [np.array(p) for p in release.shares]
    assert frozenset("xy") in start.edges
    alone = replace(start, edges=frozenset(map(frozenset, ("xy", "xz", "yz"))))
    assert needed_triples(release, start, FULL, shares) == list(release.triples)
    assert needed_triples(release, alone, FULL, shares) == []
    left = retained_pairs(release, start, FULL)
    assert TRUTH <= left < start.edges and frozenset("xy") not in left
    known = replace(FULL, knowledge=dpc.Knowledge(required=[("x", "y")]))
    assert frozenset("xy") in retained_pairs(release, candidates(release, known), known)


def test_a_cause_beside_a_near_copy_of_it_is_found_though_strongest_first_loses_it() -> None:
    """y follows x, and z is x but for six rows in a thousand: given z next to nothing of the pair is left."""
    rng, rows = np.random.default_rng(0), 20_000
    z = rng.random(rows) < 0.5
    x = z ^ (rng.random(rows) < 0.006)
    y = rng.random(rows) < np.where(x, 0.75, 0.25)
    told = by_triples({"x": x.astype(int), "y": y.astype(int), "z": z.astype(int)})
    pairs, copy, link = told.release.pairs, frozenset("xz"), frozenset("xy")
    assert strongest_first(pairs, FULL, START_BAR).edges == {copy}
    assert candidates(told.release, FULL).edges == told.graph.skeleton == {copy, link}
    clear = replace(pairs, deviation=0.0)  # orders are not sampled without noise
    assert candidates(clear, FULL) == strongest_first(clear, FULL, START_BAR)
    known = replace(FULL, knowledge=dpc.Knowledge(forbidden=[("x", "y"), ("y", "x")]))
    assert link not in candidates(told.release, known).edges


def test_a_full_test_that_is_lost_in_the_noise_separates_no_pair() -> None:
    release = by_triples().release
    start = candidates(release, FULL)
    lost = replace(release, thirds_deviation=100 * release.thirds_deviation)
    left = lost.residual(*(lost.names.index(name) for name in "xy"), tuple(map(lost.names.index, "wz")))
    assert left.pvalue > 0.9  # which the test of pairs and noise alone would take for independence
    assert retained_pairs(lost, start, FULL) == retained_pairs(release, start, FULL) | {frozenset("xy")}


PAIRS = frozenset(map(frozenset, combinations("abcd", 2)))


def by_all_orders(release: Any, terms: Any, penalty: float, heat: float) -> dict[frozenset[str], float]:
    """Return the shares over all orders, each with every DAG that fits it."""
    names, sets = release.names, sets_of_parents(release, terms, PAIRS, penalty)
    found, whole = dict.fromkeys(PAIRS, 0.0), 0.0
    for order in permutations(range(4)):
        weights, joined = [1.0] * 4, {}
        for x in range(4):
            earlier = set(order[: order.index(x)])
            above = [
                ({likely for k, likely in enumerate(sets[x].likely) if bits >> k & 1}, np.exp(gain / heat))
                for bits, gain in zip(sets[x].members.tolist(), sets[x].gains.tolist(), strict=True)
            ]
            fits = [(one, weight) for one, weight in above if one <= earlier]
            weights[x] = sum(weight for _, weight in fits)
            joined |= {(x, z): sum(w for one, w in fits if z in one) / (weights[x] or 1.0) for z in range(4)}
        whole += float(np.prod(weights))
        for (x, z), share in joined.items():
            if x != z:
                found[frozenset((names[x], names[z]))] += float(np.prod(weights)) * share
    return {pair: share / whole for pair, share in found.items()}


@pytest.mark.parametrize("required", [[], [("d", "a")]])
def test_the_walk_tells_the_shares_of_all_orders(required: Any) -> None:
    """Much heat, so that shares are neither 0 nor 1: within .03, some five errors of the walk."""
    terms = replace(TERMS, knowledge=dpc.Knowledge(required=required))
    release = released(epsilon=0.02)
    heat = 0.5 * max(release.residual(x, y, ()).statistic for x, y in combinations(range(4), 2))
    found = order_sampling(release, terms, generator_from_seed(1), PAIRS, 4.0, heat)
    asked = by_all_orders(release, terms, 4.0, heat)
    assert sum(0.05 < share < 0.95 for share in asked.values()) >= 3
    assert all(abs(found.get(pair, 0.0) - share) < 0.03 for pair, share in asked.items())
    assert not required or found[frozenset("ad")] == pytest.approx(1)


def test_of_many_linked_columns_those_that_no_other_hides_are_likely(monkeypatch: Any) -> None:
    monkeypatch.setattr(orders, "MOST_LIKELY", 1)
    sets = sets_of_parents(released(), TERMS, PAIRS, 4.0)
    assert [one.likely for one in (sets[0], sets[3])] == [[1], [2]]
