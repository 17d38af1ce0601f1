"""Networks whose tables are nearly deterministic: edges of high support are true, with no penalty they are not."""

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.discovery.search import agreement
from tests.discovery.ways import THREE, graph_of

ROWS, COLUMNS = 10_000, 12


def firm_edges(own: float, seeds: range = range(1), rows: int = ROWS) -> list[bool]:
    """Return of each edge of support 0.95 or more whether it is true.

    A column is a random table of one or two earlier ones, but for a share of the records, which are random.
    """
    found = []
    for seed in seeds:
        rng, frame, arcs = np.random.default_rng(seed), dict[str, Any](), set()
        for place in range(COLUMNS):
            many = int(rng.integers(1, 3)) if place > 2 else 0
            parents = [str(name) for name in rng.choice(list(frame), many, replace=False)] if many else []
            codes = [*(frame[name] for name in parents), *[np.zeros(rows, dtype=int)] * 2][:2]
            free = rng.random(rows) < (own if parents else 1.0)
            table = rng.integers(0, 3, (3, 3))[codes[0], codes[1]]
            frame[f"v{place:02d}"] = np.where(free, rng.integers(0, 3, rows), table)
            arcs |= {frozenset((name, f"v{place:02d}")) for name in parents}
        graph = graph_of(frame, THREE, dpc.ApproxDP(3, 1e-6), seed, method="whitened")
        copies = {frozenset(pair) for pair in graph.copies.items()}
        edges = [edge for edge in graph.graph.skeleton - copies if graph.support.edges.get(edge, 0) >= 0.95]
        found += [edge in arcs for edge in edges]
    return found


@pytest.mark.replication
@pytest.mark.parametrize(("own", "seeds", "least"), [
    (0.0, 1, 0),
    (0.005, 4, 5),  # edges that no column can replace are sure: none where all edges are doubted alike
    (0.5, 1, 8),
])  # fmt: skip
def test_edges_of_high_support_are_true_though_tables_are_nearly_deterministic(
    own: float, seeds: int, least: int
) -> None:
    found = firm_edges(own, range(seeds))
    assert len(found) >= least and sum(found) >= 0.9 * len(found)


@pytest.mark.parametrize("others", ["alike", "two that together are the same", "independent"])
def test_an_edge_is_replaceable_where_other_columns_explain_as_much(others: str) -> None:
    rng, n = np.random.default_rng(4), 20_000
    a, free = rng.integers(0, 4, n), rng.random((2, n)) < 0.01
    frame = {f"v{place}": rng.integers(0, 2, n) for place in range(8)} | {"a": a}
    frame["b"] = np.where(free[0], rng.integers(0, 4, n), (a + 1) % 4)
    if others == "alike":
        frame["c"] = np.where(free[1], rng.integers(0, 4, n), a)
    elif others != "independent":
        frame |= {"c": a // 2, "d": a % 2}
    schema = dpc.Schema({name: dpc.Levels(range(int(codes.max()) + 1)) for name, codes in frame.items()})
    graph = graph_of(frame, schema, dpc.NoPrivacy(), method="whitened")
    edge: Any = frozenset(("a", "b"))
    sure = agreement.irreplaceable_edges(graph.release.by_name(), graph.terms, [edge, frozenset(("a", "v1"))])
    assert sure == ({edge} if others == "independent" else set())


def test_without_the_penalty_false_edges_have_high_support(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "determinism_penalty", lambda *_: 0.0)
    found = firm_edges(0.005, range(2))
    assert len(found) >= 5 and not all(found)
