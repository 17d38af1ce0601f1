"""Strongest first and climbing: a chain in any order of the columns; knowledge; what is untested is told."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.discovery.search.agreement import averaged
from dpcausal.discovery.search.hill_climbing import climbed
from dpcausal.discovery.search.pc import Terms
from dpcausal.discovery.search.strongest_first import strongest_first
from dpcausal.discovery.support import calibrated

CHAIN = {frozenset(pair) for pair in ("ab", "bc", "cd")}
TERMS = Terms("pc", 0.003, 2, dpc.Knowledge(), 0.03)


def released(order: str = "abcd", epsilon: float = 1.0) -> Any:
    """Return noisy pairs of a chain of three levels, and of a fifth column whose second level is rare."""
    rng = np.random.default_rng(1)
    values = {"a": rng.integers(0, 3, 20_000)}
    for above, name in ("ab", "bc", "cd"):
        values[name] = np.where(rng.random(20_000) < 0.7, values[above], rng.integers(0, 3, 20_000))
    values["e"] = (np.arange(20_000) < 3).astype(int)
    schema = dpc.Schema({name: dpc.Levels([0, 1, 2] if name != "e" else [0, 1]) for name in order})
    loss = dpc.ApproxDP(epsilon, 1e-6)
    with dpc.simulated_noise(2):
        table = dpc.Table({name: values[name] for name in order}, schema, dpc.Ledger.in_memory(loss))
        return dpc.discover(table, loss=loss, method="whitened").release


def test_a_chain_is_found_in_any_order_of_the_columns() -> None:
    for order in ("abcd", "dbca"):
        found = strongest_first(released(order), TERMS)
        assert found.edges == CHAIN and set(found.separating) == {frozenset(pair) for pair in ("ac", "bd", "ad")}
        assert found.separating[frozenset("ac")] == ("b",) and not found.untested


def test_climbing_joins_the_chain_and_minds_knowledge() -> None:
    release = released()
    assert climbed(release, TERMS) == CHAIN
    known = dpc.Knowledge(forbidden=[("b", "c"), ("c", "b")], required=[("a", "d")])
    bound = climbed(release, replace(TERMS, knowledge=known))
    assert frozenset("ad") in bound and frozenset("bc") not in bound


def test_climbing_ends_where_gains_go_round() -> None:
    """Noise alone, far above the links: gains of such numbers add up to no score."""
    release = released()
    for seed in range(8):
        noise = np.triu(np.random.default_rng(seed).normal(0, 0.3 * release.count, release.matrix.shape), 1)
        assert climbed(replace(release, matrix=release.matrix + noise + noise.T), replace(TERMS, alpha=0.9))


def test_draws_of_little_noise_count_for_less_than_their_share(monkeypatch: Any) -> None:
    """A share of .6 is told as .6^.8 where noise is large, and as .6² where it is small, or none."""
    monkeypatch.setattr("dpcausal.discovery.search.agreement.order_sampling", lambda *asked: {})
    assert [calibrated(0.6, w, 2.0, 0.0) for w in (5.0, 60.0, 70.0)] == [0.6**0.8, 0.6**0.8, 0.6]
    assert calibrated(0.6, 84.0, 2.0, 0.0) == pytest.approx(0.6**1.44)
    assert calibrated(0.6, 1e9, 2.0, 0.0) == calibrated(0.6, math.inf, 2.0, 0.0) == 0.6**2
    assert calibrated(1.0, 1e9, 2.0, 0.0) == 1.0 and calibrated(1.0, 1e9, 2.0, 0.3) == 0.7
    release = released(epsilon=0.02)
    faint = np.where(np.eye(len(release.matrix)) == 1, release.matrix, 0.06 * release.matrix)
    clear = replace(release, matrix=faint, deviation=release.count / 110)
    shares, told = (averaged(one, TERMS, 16)[1].edges for one in (release, clear))
    assert release.count / release.deviation < 60 and len({*shares.values()}) > 1 and len({*told.values()}) > 1
    draws = {both / 48 for both in range(33)}
    assert all(min(abs(share - one**0.8) for one in draws) < 1e-9 for share in shares.values())
    assert all(min(abs(share - one**2) for one in draws) < 1e-9 for share in told.values())
    assert averaged(replace(release, deviation=0.0), TERMS, 2)[1].edges


def test_the_draws_decide_and_their_shares_are_the_support() -> None:
    release = released()
    skeleton, shares = averaged(release, TERMS, 4)
    assert skeleton.edges == CHAIN and all(shares.edges[edge] > 0.99 for edge in CHAIN)
    assert skeleton.separating.keys() == {frozenset("ac"), frozenset("bd")} and shares.redraws == 4
    assert all(skeleton.weakest[edge] < 1e-6 for edge in CHAIN)


def test_the_same_numbers_in_another_order_give_the_same_graph() -> None:
    release = released()
    turned = [*range(6, 8), *range(4, 6), *range(2, 4), *range(2), 8]
    other = replace(release, names=release.names[::-1], places=release.places[::-1], shares=release.shares[::-1],
                    matrix=release.matrix[np.ix_(turned, turned)])  # fmt: skip
    one, same = strongest_first(release, TERMS), strongest_first(other, TERMS)
    assert one.edges == same.edges and one.separating == same.separating


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
    monkeypatch.setattr("dpcausal.discovery.search.agreement.climbed", lambda release, terms: more)
    skeleton, shares = averaged(released(epsilon=0.1), TERMS, 4)
    assert 1 / 3 <= shares.edges[frozenset("ad")] < 0.5 and skeleton.edges == CHAIN


def test_knowledge_saves_tests() -> None:
    known = dpc.Knowledge(forbidden=[("a", "d"), ("d", "a")], required=[("a", "b")])
    release = released()
    free, bound = (strongest_first(release, replace(TERMS, knowledge=one)) for one in (dpc.Knowledge(), known))
    assert bound.tests < free.tests and bound.edges == CHAIN and bound.untested == {frozenset("ab")}


def test_a_column_whose_levels_are_lost_is_not_tested_and_not_joined() -> None:
    found = released("abcde", 0.5).discover()
    assert found.untested == {frozenset((name, "e")) for name in "abcd"}
    assert not any("e" in edge for edge in found.graph.skeleton)
