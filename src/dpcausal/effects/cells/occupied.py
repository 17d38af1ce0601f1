"""Where the records of a number lie within its public bounds, from a noisy histogram of fine bins."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpcausal.data.schema import Bounded
from dpcausal.data.table import Table
from dpcausal.effects.cells.api import CellSums, Paid, cell_variance, noisy_cells
from dpcausal.effects.cells.value import cut_text
from dpcausal.errors import LossError
from dpcausal.privacy.budget import CallBudget

Reals = npt.NDArray[np.float64]

FINE = 64
"""Bins of one width, of the declared bounds or of a side of a cutoff."""
SPARSE, NOISE, OUTSIDE = 0.02, 2.5, 0.08
"""The outer quarter of a range is left where it has so few of the records, or so many deviations of its noise; at most
so many records in all are left out."""
HIDDEN = 0.04
"""A histogram is released where two deviations of the noise of a quarter of its bins are at most so many records."""


def equal_parts(column: Bounded, parts: int, window: tuple[float, float] | None = None) -> Bounded:
    """Return a column cut into parts of one width within a window, or as it is where text cannot distinguish the ends.

    What lies outside the window belongs to its outermost parts.
    """
    lower, upper = (column.lower, column.upper) if window is None else window
    cuts = [lower + (upper - lower) * part / parts for part in range(1, parts)]
    labels = {cut_text(cut) for cut in cuts}
    inside = parts > 1 and column.lower < cuts[0] and cuts[-1] < column.upper
    return Bounded(column.lower, column.upper, cuts=cuts) if inside and len(labels) == len(cuts) else column


def is_clear(n: float, loss: Paid, bins: int = FINE) -> bool:
    """Return whether a histogram of n records shows the window: public."""
    try:
        return 2 * math.sqrt(bins / 4 * cell_variance(1, loss)) <= HIDDEN * n
    except LossError:  # so little that its noise could not be drawn
        return False


def histogram(
    table: Table, name: str, column: Bounded, loss: Paid, allotment: CallBudget
) -> tuple[Reals, float]:  # fmt: skip
    """Release how many records lie in each part of a column; return also the deviation of the noise."""
    question = CellSums.of(table, (name,), (), ((name, column),))
    cells = noisy_cells(question, loss, allotment)
    return np.asarray(cells.counts[..., 0], dtype=np.float64), math.sqrt(cells.variance)


def window(counts: Reals, deviation: float, from_first: bool = False) -> tuple[int, int]:
    """Return the first bin of the records and the one after the last: outer quarters are left while nearly empty.

    With ``from_first`` only those at the end are.
    """
    low, high, out = 0, len(counts), 0.0
    total = max(float(counts.sum()), 1.0)
    while high - low > 1:
        size = max((high - low) // 4, 1)
        ends = [(float(counts[high - size : high].sum()), 0, size)]
        if not from_first:
            ends.append((float(counts[low : low + size].sum()), size, 0))
        few, below, above = min(ends)
        out += max(few, 0.0)
        if few > max(SPARSE * total, NOISE * math.sqrt(size) * deviation) or out > OUTSIDE * total:
            break
        low, high = low + below, high - above
    return low, high
