"""How many records have an outcome at its bounds, from released sums: bounds that are too narrow shrink an effect."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.data.columns import Bounded

MARGIN, LEAST_SHARE, SURE = 0.05, 0.5, 3.0
"""Within such a part of the width a value is at a bound.  The note needs such a share of the records, by so many
deviations of the noise."""
LEAST_SPREAD = 0.75
"""Of the largest variance that a mean allows, with all values at the bounds: with less, low values may be usual."""


class OutcomeSums(NamedTuple):
    """Released N, T and Q of a number, of all records, in parts of its bounds' width, with the noise's covariance."""

    values: Reals
    noise: Reals


def share_at_bounds(sums: OutcomeSums) -> float:
    """Return the least share of the records that have a value within ``MARGIN`` of a bound; 0 if none is shown.

    A value u that is farther from both bounds has u(1 − u) ≥ MARGIN(1 − MARGIN) and 1 − u ≥ MARGIN.
    The share of such values is at most that of Markov's inequality for u(1 − u), and for 1 − u.
    """
    fewest, inside, below = -_limit(sums, (-1, 0, 0)), _limit(sums, (0, 1, -1)), _limit(sums, (1, -1, 0))
    if fewest <= 0:
        return 0.0
    number, total, squares = sums.values
    mean = total / number
    largest = mean * (1 - mean)
    spread = (squares / number - mean**2) / largest if largest > 0 else 0.0
    beyond = min(inside / (MARGIN * (1 - MARGIN)), below / MARGIN) / fewest
    is_usual = mean < 1 / 2 and spread < LEAST_SPREAD
    return 0.0 if is_usual else min(max(1 - beyond, 0.0), 1.0)


def _limit(sums: OutcomeSums, weights: tuple[int, int, int]) -> float:
    row = np.array(weights, dtype=np.float64)
    return float(row @ sums.values) + SURE * math.sqrt(max(float(row @ sums.noise @ row), 0.0))


def narrow_bounds_text(name: str, column: Bounded, sums: OutcomeSums) -> str:
    """Return that many records lie at an outcome's bounds; empty where the sums leave it open, and of yes and no."""
    share = share_at_bounds(sums)
    if share < LEAST_SHARE or (column.lower, column.upper) == (0, 1):
        return ""
    (lower, upper), percent = column.ends, min(int(100 * share), 99)
    return (f"at least {percent} % of the records have {name!r} at or near its bounds {lower} and {upper}: if "
            "values lie beyond them, the effect is too small; declare bounds that hold nearly all values")  # fmt: skip
