"""The interquartile algorithm through the whole public call, on a pair of neighbours at a jump of ⌊log IQR⌋.

The split is public and everything is promised for each split, so the pair is made for one: its seed takes the place
of the fresh one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import dpcausal as dpc
from dpcausal.direction.scores.anm import split_rows
from dpcausal.privacy.noise import PublicGenerator, generator_from_seed

ROWS, TRAINING_ROWS, SEED = 360, 8, 0
SHARE = TRAINING_ROWS / ROWS
SCHEMA = dpc.Schema({"x": dpc.Bounded(-10, 10), "y": dpc.Bounded(-10, 10)})
LOSS = dpc.ApproxDP(1, 3e-6)

Columns = dict[str, npt.NDArray[np.float64]]


def same_split() -> tuple[PublicGenerator, int]:
    """Return what stands in for ``public_generator`` in the call."""
    return generator_from_seed(SEED), SEED


def neighbours() -> tuple[Columns, Columns]:
    """Return two tables that differ in one row of the test half.

    The training rows are constant, so both regressions are, and the residuals of x on y are x itself.  In the test
    half half of the x are 0, the upper quartile is 1 by one record, and all below it are 1 − 1e-9: that record
    takes the IQR of x, and of its residuals, from 1 to 1 − 1e-9, and ⌊log IQR⌋ from 0 to −1.  A quarter of the
    records, 88, must change to move any of the four by more; the second distance printed for x falls from 88 to 0.
    """
    _, test = split_rows(ROWS, SHARE, generator_from_seed(SEED))
    upper = -(-3 * len(test) // 4) - 1
    places = np.arange(len(test))
    x, y = np.zeros(ROWS), np.full(ROWS, 1.5)
    x[test] = np.where(places < len(test) // 2, 0.0, np.where(places < upper, 1 - 1e-9, 1.0))
    y[test] = 3.0 * (places % 2)
    moved = x.copy()
    moved[test[upper]] = 1 - 1e-9
    return {"x": x, "y": y}, {"x": moved, "y": y}


def call(columns: Columns, method: Any) -> Callable[[], float | None]:
    """Return the public call on a table, from an in-memory ledger of its own; it answers with the margin."""

    def margin() -> float | None:
        table = dpc.Table(
            columns, SCHEMA, dpc.Ledger.in_memory(LOSS, protect="test", accept_large_epsilon=True), missing="impute"
        )
        answer = dpc.direction(
            table, "x", "y", score="iqr", loss=LOSS, accept_unproven=True,
            method=method(training_share=SHARE),
        )  # fmt: skip
        return answer.margin

    return margin
