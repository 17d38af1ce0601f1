"""Graphs of tables whose rows may lack columns: left out of every sum, and their number noisy where it is needed."""

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.statistics.contrasts import contrasts_sensitivity

N = 3000
LEVELS = dpc.Schema({"a": dpc.Levels([0, 1]), "b": dpc.Levels([0, 1, 2]), "c": dpc.Levels([0, 1])})
NUMBERS = dpc.Schema({name: dpc.Bounded(-4, 4) for name in "abc"})
METHODS: dict[str, tuple[dpc.Schema, Any]] = {
    "table": (LEVELS, dpc.PureDP(1.0)),
    "parities": (LEVELS, dpc.ZCDP(0.5)),
    "whitened": (LEVELS, dpc.ZCDP(0.5)),
    "triples": (LEVELS, dpc.ZCDP(0.5)),
    "moments": (NUMBERS, dpc.ZCDP(0.5)),
}
Frame = dict[str, np.ndarray]


def frame(name: str, seed: int, share: float = 0.3) -> Frame:
    """Return rows of a → b and c apart, of which a share lacks each column."""
    rng = np.random.default_rng(seed)
    a, c = (rng.integers(0, 2, N).astype(float) if name != "moments" else rng.standard_normal(N) for _ in "ac")
    b = a + (rng.random(N) < 0.3) if name != "moments" else a + rng.standard_normal(N)
    columns = {"a": a, "b": b, "c": c}
    for column in columns.values():
        column[rng.random(N) < share] = np.nan
    return columns


@pytest.mark.parametrize("name", ["parities", "whitened", "moments"])
def test_independent_columns_stay_apart_where_many_rows_are_left_out(name: str) -> None:
    """For p-values that take n for the number of kept rows, or a midpoint for what is missing."""
    found = 0
    for seed in range(12):
        columns = frame(name, 100 + seed, share=0.0)
        rng = np.random.default_rng(seed)
        jointly = rng.random(N) < 0.5
        columns["a"][jointly], columns["c"][jointly] = np.nan, np.nan
        with dpc.simulated_noise(seed):
            table = dpc.Table(columns, METHODS[name][0], dpc.Ledger.in_memory(dpc.ZCDP(10), accept_large_epsilon=True))
            graph = dpc.discover(table, method=name, loss=dpc.ZCDP(0.5)).graph
        found += frozenset("ac") in graph.skeleton
    assert found <= 2  # at level .01: 3 of 12 with probability 2e-4


def test_the_bound_with_the_count_is_that_of_all_changes_of_a_row() -> None:
    """Brute force over rows of all levels and the row that is left out."""
    import itertools
    import math

    from dpcausal.statistics.contrasts import contrast_basis

    for sizes, batch in [((2,), [(0,)]), ((2, 3), [(0,), (1,), (0, 1)]), ((2, 2), [(0, 1)]), ((3, 4), [(0,), (1,)])]:

        def contrasts(row: tuple[int, ...] | None, batch: Any = batch, sizes: Any = sizes) -> np.ndarray:
            parts = [np.array([0.0 if row is None else 1.0])]
            for members in batch:
                part = np.ones(1)
                for i in members:
                    part = np.kron(part, contrast_basis(sizes[i])[row[i]] if row else np.zeros(sizes[i] - 1))
                parts.append(part)
            return np.concatenate(parts)

        rows = [None, *itertools.product(*map(range, sizes))]
        worst = max(math.dist(contrasts(one), contrasts(other)) for one in rows for other in rows)
        bound = float(contrasts_sensitivity(sizes, batch, 10, counted=True).bound)
        assert worst <= bound and (len(batch) != 1 or worst > 0.8 * bound)
