"""Donors as rows of whole numbers: what sums are made of, so that they are exact in any order and on any engine."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpcausal.data.schema import Bounded

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FULL = 4096
"""The weight of a donor that counts in full."""

GRID = 4096
"""Steps between 0 and 1 on the scale [−1, 1]: a donor's value is rounded to 1/8192 of the range."""


def to_scale(values: Reals, bounds: Bounded) -> Reals:
    """Return values within the bounds on the scale [−1, 1]."""
    half = bounds.width / 2
    return np.clip((values - bounds.midpoint) / half, -1, 1)


def from_scale(values: Reals, bounds: Bounded) -> Reals:
    """Return values of the scale [−1, 1] in the outcome's unit, within the bounds."""
    return np.clip(bounds.midpoint + bounds.width / 2 * values, bounds.lower, bounds.upper)


def on_grid(scaled: Reals) -> Integers:
    """Return values in [−1, 1] as whole numbers in [−GRID, GRID], to nearest."""
    return np.rint(scaled * GRID).astype(np.int64)


def from_last(rows: Integers, start: int) -> Integers:
    """Return each row less its own last value before the start, shape (n, T): entries in [−2 GRID, 2 GRID]."""
    return rows - rows[:, start - 1 : start]


def squared_lengths(rows: Integers) -> Integers:
    """Return Σ_t row_t² for each row, exactly."""
    return np.asarray((rows * rows).sum(axis=1))


def within_radius(rows: Integers, radius: int) -> Integers:
    """Return rows of length at most ``radius``: longer ones are shrunk onto it and cut towards 0, each by itself.

    ‖row‖² ≤ radius² holds exactly: the factor radius/‖row‖ is lowered by 1e-12, which outweighs its rounding, and
    cutting towards 0 shortens.
    """
    squared = squared_lengths(rows)
    long = squared > radius * radius
    factor = radius * (1 - 1e-12) / np.sqrt(np.where(long, squared, 1).astype(np.float64))
    shrunk = np.trunc(rows * factor[:, None]).astype(np.int64)
    return np.where(long[:, None], shrunk, rows)


def largest_length(periods: int) -> int:
    """Return the length that no row of ``from_last`` passes: one entry is 0, the others at most 2."""
    return math.isqrt(4 * GRID * GRID * max(periods - 1, 1)) + 1
