"""Scales of columns from noisy quartiles: against the law that the columns were drawn from."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.discovery.methods.moments import NARROWEST, Binned, Scales, Units, learning
from dpcausal.statistics.strata import histograms_sensitivity

N = 40_000


def counted(unit: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Return how many values of each column lie between cuts, one after the other."""
    edges = np.concatenate([np.full((len(cuts), 1), -1.0), cuts, np.full((len(cuts), 1), 2.0)], axis=1)
    return np.array([
        [int(((a < column) & (column <= b)).sum()) for a, b in pairwise(row)]
        for column, row in zip(unit.T, edges, strict=True)
    ])  # fmt: skip


def scales(unit: np.ndarray, two: list[bool], deviation: float) -> Scales:
    rng = np.random.default_rng(1)

    rounds = learning(np.array(two), N, deviation)
    cuts = next(rounds)
    while True:
        counts = counted(unit, cuts)
        try:
            cuts = rounds.send(counts + rng.normal(0, deviation, counts.shape))
        except StopIteration as last:
            return last.value


@pytest.mark.parametrize("deviation", [0.0, 100.0, 1_000.0])
@pytest.mark.parametrize(("middle", "spread"), [(0.5, 0.15), (0.5, 0.002), (0.13, 0.01), (0.7, 0.05)])
def test_a_normal_column_has_its_own_middle_and_width(middle: float, spread: float, deviation: float) -> None:
    unit = np.random.default_rng(2).normal(middle, spread, (N, 2))
    found = scales(unit, [False, False], deviation)
    # A noise of a fortieth of the rows leaves a factor of two.
    near = 1.15 if deviation < 500 else 2.0
    assert (found[1] < near * spread).all() and (found[1] > spread / near).all()
    assert (abs(found[0] - middle) < (near - 1) * spread + 0.001).all()
    assert found.complete == pytest.approx(N, abs=4 * deviation)


def test_two_levels_are_measured_by_their_share() -> None:
    unit = (np.random.default_rng(3).random((N, 2)) < [0.5, 0.1]).astype(float)
    middles, widths, _ = scales(unit, [True, True], 50.0)
    np.testing.assert_allclose(middles, [0.5, 0.1], atol=0.01)
    np.testing.assert_allclose(widths, [0.5, 0.3], atol=0.02)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_scales_of_a_constant_column_and_of_no_rows_are_finite_and_positive(value: float) -> None:
    for unit in (np.full((N, 1), value), np.empty((0, 1))):
        middles, widths, kept = scales(unit, [False], 30.0)
        assert np.isfinite(middles).all() and (widths >= NARROWEST).all() and kept > 0


def test_the_kernel_counts_as_a_loop_does_and_a_replaced_row_moves_it_by_its_bound() -> None:
    rng = np.random.default_rng(4)
    names, reach = ("a", "b", "c"), 0.0
    schema = dpc.Schema(dict.fromkeys(names, dpc.Bounded(0, 1)))
    cuts = np.sort(rng.random((3, 7)), axis=1)
    for _ in range(40):
        values = rng.random((30, 3))
        values[:3, 0] = cuts[0, :3]
        other = values.copy()
        other[rng.integers(30)] = rng.integers(0, 2, 3)
        tables = [
            dpc.Table(dict(zip(names, rows.T, strict=True)), schema, dpc.Ledger.in_memory(dpc.ZCDP(1)))
            for rows in (values, other)
        ]
        first, second = (table.records(names).sum(Binned(Units.of(table, names), cuts)) for table in tables)
        np.testing.assert_array_equal(first, counted(values, cuts))
        reach = max(reach, float(np.linalg.norm(first - second)))
    assert 0.99 < reach / float(histograms_sensitivity(3).bound) <= 1
