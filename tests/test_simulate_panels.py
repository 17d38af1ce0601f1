"""Simulated panels: the stated laws, the same panel for the same seed, a shock that the past does not show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import ParameterError


@pytest.mark.parametrize("design", [dpc.simulate.factor_panel, dpc.simulate.linear_panel])
def test_a_seed_gives_the_same_panel_within_the_bounds(design: Any) -> None:
    one, again, other = design(30, seed=5), design(30, seed=5), design(30, seed=6)
    np.testing.assert_array_equal(one.donors, again.donors)
    np.testing.assert_array_equal(one.target, again.target)
    assert (one.donors != other.donors).any()
    assert np.abs(one.donors).max() <= 1 and np.abs(one.target).max() <= 1
    assert one.donors.shape == (30, 13) and one.start == 10 and design(3).seed != design(3).seed


@pytest.mark.parametrize("design", [dpc.simulate.factor_panel, dpc.simulate.linear_panel])
def test_the_effect_is_added_to_the_target_after_the_start_only(design: Any) -> None:
    with_effect, without = design(5, effect=-0.25, seed=3), design(5, seed=3)
    np.testing.assert_array_equal(with_effect.donors, without.donors)
    np.testing.assert_array_equal(with_effect.untreated, without.target)
    change = with_effect.target - without.target
    assert not change[:10].any()
    moved = np.maximum(-1, without.target[10:] - 0.25)
    np.testing.assert_allclose(change[10:], moved - without.target[10:], atol=1e-12)


def test_the_shock_shows_in_the_donors_and_not_in_the_targets_past() -> None:
    """Over 40 seeds the donors' mean jump from before to after is ±shock, give or take the factors' own walk."""
    jumps = []
    for seed in range(40):
        made, quiet = (dpc.simulate.factor_panel(400, shock=s, noise=0.0, seed=seed) for s in (0.2, 0.0))
        np.testing.assert_allclose(made.target[:10], quiet.target[:10])
        jumps.append(float((made.donors - quiet.donors)[:, 10:].mean()))
    assert np.abs(np.abs(jumps) - 0.2).max() < 0.05
    assert min(jumps) < 0 < max(jumps)


def test_a_straight_line_predicts_the_linear_design() -> None:
    errors = []
    for seed in range(20):
        made = dpc.simulate.linear_panel(3, seed=seed)
        slope, level = np.polyfit(np.arange(10), made.target[:10], 1)
        errors.append(np.abs(level + slope * np.arange(10, 13) - made.target[10:]).max())
    assert np.mean(errors) < 0.03


@pytest.mark.parametrize(
    "arguments", [{"donors": 0}, {"donors": True}, {"donors": 5, "before": 0}, {"donors": 5, "after": 1.5},
                  {"donors": 5, "shock": -1}, {"donors": 5, "noise": float("nan")}, {"donors": 5, "seed": -1}]
)  # fmt: skip
def test_public_faults_are_told(arguments: Any) -> None:
    with pytest.raises(ParameterError):
        dpc.simulate.factor_panel(**arguments)
