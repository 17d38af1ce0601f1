"""From a graph to what is adjusted for, and the whole loop from one noisy release to effects."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.discovery.adjustment import adjustment_sets
from dpcausal.errors import ParameterError

NAMES = "abcde"


def test_ida_has_the_causes_of_the_treatment_in_every_member_of_the_class() -> None:
    rng, nothing = np.random.default_rng(3), dpc.Knowledge()
    for _ in range(60):
        order = rng.permutation(list(NAMES))
        arcs = [(str(x), str(y)) for x, y in combinations(order, 2) if rng.random() < 0.5]
        graph = dpc.Cpdag.from_dag(NAMES, arcs)
        expected = {tuple(sorted({x for x, y in dag if y == "a"} - {"b"})) for dag in graph.dags()}
        assert set(adjustment_sets(graph, nothing, "a", "b", "ida")) == expected


def test_earlier_tiers_leave_out_what_the_treatment_may_have_caused() -> None:
    graph = dpc.Cpdag.from_dag(NAMES, [("c", "a"), ("d", "b"), ("a", "b"), ("a", "e"), ("b", "e")])
    known = dpc.Knowledge(tiers=[["c", "d"], ["a"], ["b", "e"]])
    assert adjustment_sets(graph, known, "a", "b", "earlier") == (("c", "d"),)
    for rule, knowledge in (("earlier", dpc.Knowledge()), ("all", known)):
        with pytest.raises(ParameterError):
            adjustment_sets(graph, knowledge, "a", "b", rule)


def test_an_arrow_that_became_a_line_may_be_of_a_collider_after_all() -> None:
    found = dpc.Cpdag.from_dag("abcd", [("c", "a"), ("d", "a")])
    graph = dpc.Cpdag("abcd", undirected=["ca", "da"])
    assert adjustment_sets(graph, dpc.Knowledge(), "a", "b", "ida") == ((), ("c",), ("d",))
    assert adjustment_sets(graph, dpc.Knowledge(), "a", "b", "ida", found) == ((), ("c",), ("d",), ("c", "d"))


def clinic(seed: int, n: int = 4_000) -> dict[str, Any]:
    """Two causes of treatment and outcome, one of them weak, and what follows; the effect is .04."""
    rng = np.random.default_rng(seed)
    age, ward = rng.integers(0, 2, (2, n))
    treat = (rng.random(n) < 0.3 + 0.35 * age + 0.06 * ward).astype(int)
    well = (rng.random(n) < 0.25 + 0.04 * treat + 0.3 * age + 0.05 * ward).astype(int)
    return {"age": age, "ward": ward, "treat": treat, "well": well, "back": (rng.random(n) < 0.2 + 0.5 * well) * 1}


def test_from_one_noisy_table_to_effects_no_missing_edge_is_an_effect_of_0() -> None:
    # 12 runs at little ε, where edges go missing: fewer than 9 sets of intervals cover with probability 2e-3 at .95.
    known, covered, lost = dpc.Knowledge(tiers=[["age", "ward"], ["treat"], ["well"], ["back"]]), 0, 0
    for seed in range(12):
        columns, loss = clinic(seed), dpc.PureDP(0.4)
        schema = dpc.Schema({name: dpc.Levels([0, 1]) for name in columns})
        table = dpc.Table(columns, schema, dpc.Ledger.in_memory(loss))
        with dpc.simulated_noise(seed):
            found = dpc.discover(table, loss=loss, method="table", knowledge=known)
        lost += frozenset(("treat", "well")) not in found.graph.skeleton
        head = table.ledger.head
        of_class, (earlier,) = (
            found.effects(treatment="treat", outcome="well", adjust=rule) for rule in ("ida", "earlier")
        )
        assert table.ledger.head == head and table.ledger.remaining.epsilon == 0
        for one in (*of_class, earlier):
            assert one.estimate is not None and one.estimate != 0
            assert one.interval is None or one.interval[1] - one.interval[0] > 0.05
        assert earlier.adjusted_for == ("age", "ward") and earlier.interval is not None
        covered += earlier.interval[0] <= 0.04 <= earlier.interval[1]
    assert covered >= 9 and lost >= 2
