"""Mutants of effects: their sums."""

from __future__ import annotations

from dpcausal.effects.corner_counts import GRID, corner_counts_sensitivity
from dpcausal.privacy.sensitivity import Norm
from tests.mutants import Case, by_falsifier
from tests.registry.effects import HIGH, of_two_numbers, sums_by_cell

DOMAIN = {"columns": 4, "high": HIGH.tolist(), "sizes": (5, 9)}

MUTANTS: list[Case] = [
    by_falsifier("sums by cells by the bound of a record added", sums_by_cell, GRID, norm=Norm.L1, **DOMAIN),
    by_falsifier("two numbers by the bound of one", of_two_numbers, 2 * GRID, norm=Norm.L1, **DOMAIN),
]

CONTROLS: list[Case] = [
    by_falsifier("two numbers by their bound", of_two_numbers, corner_counts_sensitivity(2).bound, norm=Norm.L1,
                 **DOMAIN),
]  # fmt: skip
