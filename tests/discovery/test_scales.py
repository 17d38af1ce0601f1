"""Scales of columns from noisy quartiles: against the law that the columns were drawn from."""

from __future__ import annotations

import numpy as np
import pytest

from dpcausal.dependence.contingency import Counts, histograms_sensitivity
from dpcausal.discovery.scales import STEPS, learned

N = 40_000


def scales(unit: np.ndarray, two: list[bool], deviation: float, seed: int = 1) -> tuple[np.ndarray, np.ndarray, float]:
    rng = np.random.default_rng(seed)
    return learned(unit, np.array(two), N, deviation, lambda bins: bins + rng.normal(0, deviation, bins.shape))


@pytest.mark.parametrize("deviation", [0.0, 100.0, 1_000.0])
@pytest.mark.parametrize(("middle", "spread"), [(0.5, 0.15), (0.5, 0.002), (0.13, 0.01), (0.7, 0.05)])
def test_a_normal_column_has_its_own_middle_and_width(middle: float, spread: float, deviation: float) -> None:
    unit = np.random.default_rng(2).normal(middle, spread, (N, 2))
    found = scales(unit, [False, False], deviation)
    # A noise of a fortieth of the rows leaves a factor of two.
    near = 1.15 if deviation < 500 else 2.0
    assert (found[1] < near * spread).all() and (found[1] > spread / near).all()
    assert (abs(found[0] - middle) < (near - 1) * spread + 0.001).all()
    assert found[2] == pytest.approx(N, abs=deviation)


def test_two_levels_are_measured_by_their_share() -> None:
    unit = (np.random.default_rng(3).random((N, 2)) < [0.5, 0.1]).astype(float)
    middles, widths, _ = scales(unit, [True, True], 50.0)
    np.testing.assert_allclose(middles, [0.5, 0.1], atol=0.01)
    np.testing.assert_allclose(widths, [0.5, 0.3], atol=0.02)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_scales_of_a_constant_column_and_of_no_rows_are_finite_and_positive(value: float) -> None:
    for unit in (np.full((N, 1), value), np.empty((0, 1))):
        middles, widths, kept = scales(unit, [False], 30.0)
        assert np.isfinite(middles).all() and (widths >= 2.0**-STEPS).all() and kept > 0


def test_a_replaced_row_moves_the_bins_of_a_step_by_their_stated_bound() -> None:
    seen: list[Counts] = []

    def spy(bins: Counts) -> np.ndarray:
        seen.append(bins)
        return bins.astype(float)

    rng = np.random.default_rng(4)
    unit, reach = rng.random((30, 3)), 0.0
    for _ in range(40):
        other = unit.copy()
        other[rng.integers(30)] = rng.integers(0, 2, 3)
        for rows in (unit, other):
            learned(rows, np.zeros(3, dtype=bool), 30, 0.0, spy)
        first, second = seen[0], seen[STEPS]  # the cuts of the first step are those of the bounds
        reach = max(reach, float(np.linalg.norm(first - second)))
        seen.clear()
    assert 0.99 < reach / float(histograms_sensitivity(3).bound) <= 1
