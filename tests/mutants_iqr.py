"""Mutants of propose-test-release; controls beside them.

The black boxes here are weaker than a loss at a half-line: what is flagged are events in the tails, of which a δ is
taken first.  Each has at least a fifth more loss than is claimed, in an event of probability .04 or more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpcausal.papers.statistics.iqr import IqrReach
from dpcausal.privacy.sensitivity import Norm
from tests.mutants import Case, by_black_box, by_falsifier

Rows = Any

DELTA = 0.04


# Statistics.


def long_cells(rows: Rows) -> Any:
    reach = IqrReach(rows[:, 0], 0, 20)
    if reach.iqr == 0:
        return np.array([0.0, -700.0])
    cell = 2 * math.floor(math.log(reach.iqr) / 2)
    left = [reach.highest(j) >= math.exp(cell + 2) or reach.lowest(j) < math.exp(cell) for j in range(reach.most + 1)]
    return np.array([left.index(True), math.log(reach.iqr)])


def in_one_long_cell(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    """Return records at 0, 1.1 and 6: one of them takes the IQR from 1.1 to 6, within [1, e²)."""
    upper = -(-3 * m // 4)
    rows = np.zeros((m, 1))
    rows[m // 2 : upper], rows[upper:] = 1.1, 6.0
    return rows


# Noise.


Answers = tuple[float, float, float]


def tested(
    one: Answers, other: Answers, threshold: float, scale: float = 2.0, exact: bool = False, tell: bool = False
) -> Callable[[int], tuple[Any, Any]]:
    """Return outputs of propose-test-release with noise of ``scale``; 2 is right at ε = 1."""

    def side(coins: np.random.Generator, answers: Answers, size: int) -> list[float | None]:
        first, second, value = answers
        noise = coins.laplace(0, scale, (2, size)) * (not exact)
        passed = first + noise[0] > threshold, second + noise[1] > threshold
        noisy = value + coins.laplace(0, scale, size)
        told = np.where(passed[0], 1e3, 0.0) if tell else 0.0
        return [float(v) if ok else None for v, ok in zip(noisy + told, passed[0] | passed[1], strict=True)]

    def outputs(size: int) -> tuple[Any, Any]:
        coins = np.random.default_rng(8)
        return side(coins, one, size), side(coins, other, size)

    return outputs


FAR = 1e6
AT_ONE = (1.0, 1.0, -FAR), (1.0, 1.0, FAR)
"""One record from leaving both cells, and two values far apart: an answer tells which."""


def threshold(delta: float, scale: float = 2.0) -> float:
    return 1 + scale * math.log(1 / delta)


T = threshold(1e-6)
CROSSING = (T, T, 0.0), (T + 1, T - 1, 1.0)
"""To fail the first test, to pass the second, and a low value: each less likely by e^½ on the other side."""


MUTANTS: list[Case] = [
    by_falsifier("log IQR proposed on cells of length 2", long_cells, 1 + 2.0**-40, sizes=(16, 33), columns=1,
                 high=20.0, norm=Norm.TESTED, starts={"in one long cell": in_one_long_cell}, evaluations=400),
    by_black_box("propose-test-release with the printed threshold", tested(*AT_ONE, threshold(0.01, 1.0)), delta=0.01),
    by_black_box("propose-test-release that pays half of its δ", tested(*AT_ONE, threshold(DELTA)), delta=DELTA / 2),
    by_black_box("propose-test-release that tells which test was passed", tested(*CROSSING, T, tell=True), delta=1e-6),
    by_black_box("propose-test-release with exact distances",
                 tested((T, T, 0.0), (T + 1, T + 1, 1.0), T, exact=True), delta=1e-6),
]  # fmt: skip

CONTROLS: list[Case] = [
    by_black_box("propose-test-release one record from leaving both cells", tested(*AT_ONE, threshold(DELTA)),
                 delta=DELTA),
    by_black_box("propose-test-release that does not tell which test was passed", tested(*CROSSING, T), delta=1e-6),
]  # fmt: skip
