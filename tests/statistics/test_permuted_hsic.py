"""HSIC of permuted columns: one record stands in two pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpcausal.statistics.hsic import permuted_root_hsic_sensitivity, root_hsic, root_hsic_sensitivity
from tests.conformance import check_claim

Rows = Any
FAR = {"width_x": 1e-3, "width_y": 1e-3, "range_x": (0.0, 1.0), "range_y": (0.0, 1.0)}


def permuted(rows: Rows) -> float:
    """Return √HSIC with y turned by one place: y of a record meets the x of the one before."""
    return root_hsic(rows[:, 0], np.roll(rows[:, 1], -1), **FAR)


def halves_in_step(rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    """Return records whose turned pairs agree, at two places; replacing one makes two pairs disagree."""
    x = (np.arange(m) % 2).astype(np.float64)
    return np.column_stack([x, np.roll(x, 1)])


@pytest.mark.proves("permuted-root-hsic")
def test_no_replaced_record_moves_the_permuted_root_past_its_bound_nor_a_smaller_one():
    # Slack: .81 of the bound is found at 40 records, which is more than the columns as they stand can move.
    found = check_claim(
        permuted, permuted_root_hsic_sensitivity, sizes=(40,), reached=0.75, mutant=0.7,
        starts={"halves": halves_in_step},
    )
    for one in found:
        moved = one.ratio * float(permuted_root_hsic_sensitivity(40).bound)
        assert moved > 1.2 * float(root_hsic_sensitivity(40).bound)


def test_the_constant_is_four():
    for m in (10, 1000):
        exact = 4 * (m - 1) / m**2
        assert exact <= float(permuted_root_hsic_sensitivity(m).bound) <= exact + 1e-8
        assert permuted_root_hsic_sensitivity(m).bound > root_hsic_sensitivity(m).bound
