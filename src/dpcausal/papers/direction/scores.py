"""The scores of residuals that only the published systems have."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpcausal.direction.scores.anm import Column, Residuals, hsic_scores
from dpcausal.papers.statistics.iqr import IqrReach, interquartile_range
from dpcausal.papers.statistics.rank import kendall, spearman


def reaches(rest: Residuals) -> tuple[tuple[IqrReach, IqrReach], tuple[IqrReach, IqrReach]]:
    """Return the reach of the four IQRs: of x and its residuals' pair, then of y's."""
    return (
        (IqrReach(rest.x, *rest.range_x), IqrReach(rest.left_y, *rest.range_left_y)),
        (IqrReach(rest.y, *rest.range_y), IqrReach(rest.left_x, *rest.range_left_x)),
    )


def _log(value: float) -> float:
    # Total: a spread of 0 counts as the least normal float.
    return math.log(max(value, 2.0**-1022))


def _iqr_scores(rest: Residuals) -> tuple[float, float]:
    def score(pair: tuple[Column, Column]) -> float:
        return _log(interquartile_range(pair[0])) + _log(interquartile_range(pair[1]))

    return score(rest.forward()), score(rest.backward())


def _variance_scores(rest: Residuals) -> tuple[float, float]:
    def score(pair: tuple[Column, Column]) -> float:
        return _log(float(np.var(pair[0]))) + _log(float(np.var(pair[1])))

    return score(rest.forward()), score(rest.backward())


SCORES: dict[str, Callable[[Residuals], tuple[float, float]]] = {
    "hsic": hsic_scores,
    "spearman": lambda rest: (abs(spearman(*rest.forward())), abs(spearman(*rest.backward()))),
    "kendall": lambda rest: (abs(kendall(*rest.forward())), abs(kendall(*rest.backward()))),
    "iqr": _iqr_scores,
    "variance": _variance_scores,
}
"""The scores of ("x causes y", "y causes x") from residuals, the smaller wins; ``variance`` has no sensitivity."""
