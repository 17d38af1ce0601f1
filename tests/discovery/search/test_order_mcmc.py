"""Sampled orders: the same shares as by all orders; knowledge; no share for what is not linked."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.discovery.search import order_mcmc as orders
from dpcausal.discovery.search.order_mcmc import order_sampling, sets_of_parents
from dpcausal.privacy.noise import generator_from_seed
from tests.discovery.search.test_strongest_first import CHAIN, TERMS, released

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


def test_a_chain_is_likely_and_nothing_else() -> None:
    found = order_sampling(released(), TERMS, generator_from_seed(1), None, 4.0, 4.0)
    assert {pair for pair, share in found.items() if share > 0.5} == CHAIN
    known = dpc.Knowledge(forbidden=[("b", "c"), ("c", "b")])
    assert frozenset("bc") not in order_sampling(
        released(), replace(TERMS, knowledge=known), generator_from_seed(1), None, 4.0, 4.0
    )


def test_of_many_linked_columns_those_that_no_other_hides_are_likely(monkeypatch: Any) -> None:
    monkeypatch.setattr(orders, "MOST_LIKELY", 1)
    sets = sets_of_parents(released(), TERMS, PAIRS, 4.0)
    assert [one.likely for one in (sets[0], sets[3])] == [[1], [2]]
