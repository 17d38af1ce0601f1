"""Triples: a pair that two columns separate together, which pairs alone leave joined; what is released for that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import dpcausal as dpc
from dpcausal.discovery.search.pc import Terms
from dpcausal.discovery.search.second_order import START_BAR, candidates, needed_triples, retained_pairs
from dpcausal.discovery.search.strongest_first import strongest_first

TERMS = Terms("pc", 0.01, 2, dpc.Knowledge(), 0.03)
TRUTH = {frozenset(pair) for pair in ("zx", "wx", "zy", "wy")}


def columns(rows: int = 20_000) -> dict[str, Any]:
    """Return x and y that are both likely where z and w are one: more than either adds alone."""
    rng = np.random.default_rng(1)
    z, w = rng.random(rows) < 0.5, rng.random(rows) < 0.5
    found = {"z": z, "w": w} | {name: rng.random(rows) < 0.05 + 0.85 * (z & w) for name in "xy"}
    return {name: column.astype(int) for name, column in found.items()}


def found(method: str, order: str = "zwxy", made: dict[str, Any] | None = None, **options: Any) -> Any:
    made = made or columns()
    loss = dpc.ApproxDP(2, 1e-6)
    with dpc.simulated_noise(3):
        table = dpc.Table({name: made[name] for name in order}, dpc.Schema(dict.fromkeys(order, dpc.Levels([0, 1]))),
                          dpc.Ledger.in_memory(loss))  # fmt: skip
        return dpc.discover(table, loss=loss, method=method, **options)


def test_a_pair_that_two_columns_separate_together_is_apart_where_pairs_join_it() -> None:
    full = found("triples")
    assert full.graph.skeleton >= TRUTH and frozenset("xy") not in full.graph.skeleton
    assert {(0, 1, 2), (0, 1, 3)} <= set(full.release.triples)
    assert frozenset("xy") in full.release.pairs.discover().graph.skeleton


def test_without_privacy_it_is_found_too_and_in_any_order() -> None:
    made = columns(5_000)
    table = dpc.Table(made, dpc.Schema(dict.fromkeys(made, dpc.Levels([0, 1]))), dpc.Ledger.without_privacy())
    exact = dpc.discover(table, loss=dpc.NoPrivacy(), method="triples")
    assert exact.graph.skeleton == TRUTH and exact.support is None
    release = found("triples").release
    one, other = release.discover(), release.by_name().discover()
    assert (one.graph.skeleton, one.support) == (other.graph.skeleton, other.support)


def test_triples_are_those_of_sets_of_which_no_part_is_needless() -> None:
    """No set of two is asked of a pair one of whose ends is not linked to either given the other."""
    release = found("triples").release
    start = candidates(release, TERMS)
    shares = [np.array(p) for p in release.shares]
    assert frozenset("xy") in start.edges
    alone = replace(start, edges=frozenset(map(frozenset, ("xy", "xz", "yz"))))
    assert needed_triples(release, start, TERMS, shares) == list(release.triples)
    assert needed_triples(release, alone, TERMS, shares) == []
    left = retained_pairs(release, start, TERMS)
    assert TRUTH <= left < start.edges and frozenset("xy") not in left
    known = replace(TERMS, knowledge=dpc.Knowledge(required=[("x", "y")]))
    assert frozenset("xy") in retained_pairs(release, candidates(release, known), known)


def test_the_release_is_asked_again_and_knows_its_method() -> None:
    release = dpc.Release.from_json(found("triples").release.to_json())
    again = release.discover(knowledge=dpc.Knowledge(tiers=[["z", "w"], ["x", "y"]]))
    assert again.method == "triples" and again.graph.directed == {("z", "x"), ("w", "x"), ("z", "y"), ("w", "y")}


def test_a_cause_beside_a_near_copy_of_it_is_found_though_strongest_first_loses_it() -> None:
    """y follows x, and z is x but for six rows in a thousand: given z next to nothing of the pair is left."""
    rng, rows = np.random.default_rng(0), 20_000
    z = rng.random(rows) < 0.5
    x = z ^ (rng.random(rows) < 0.006)
    y = rng.random(rows) < np.where(x, 0.75, 0.25)
    told = found("triples", "xyz", {"z": z.astype(int), "x": x.astype(int), "y": y.astype(int)})
    pairs, copy, link = told.release.pairs, frozenset("xz"), frozenset("xy")
    assert strongest_first(pairs, TERMS, START_BAR).edges == {copy}
    assert candidates(told.release, TERMS).edges == told.graph.skeleton == {copy, link}
    clear = replace(pairs, deviation=0.0)  # orders are not sampled without noise
    assert candidates(clear, TERMS) == strongest_first(clear, TERMS, START_BAR)
    known = replace(TERMS, knowledge=dpc.Knowledge(forbidden=[("x", "y"), ("y", "x")]))
    assert link not in candidates(told.release, known).edges


def test_a_full_test_that_is_lost_in_the_noise_separates_no_pair() -> None:
    release = found("triples").release
    start = candidates(release, TERMS)
    lost = replace(release, thirds_deviation=100 * release.thirds_deviation)
    left = lost.residual(*(lost.names.index(name) for name in "xy"), tuple(map(lost.names.index, "wz")))
    assert left.pvalue > 0.9  # which the test of pairs and noise alone would take for independence
    assert retained_pairs(lost, start, TERMS) == retained_pairs(release, start, TERMS) | {frozenset("xy")}
