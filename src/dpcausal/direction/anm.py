"""The additive noise model on one split: regress both ways, score what is left, the smaller score wins.

Y = f(X) + N with N independent of X makes the residuals of y on x independent of x, and those of x on y depend
on y.  Everything here is plain computation on one set of rows; what may leave is decided by ``holdout`` and
``blocks``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcausal.dependence.hsic import root_hsic
from dpcausal.dependence.iqr import IqrReach, interquartile_range
from dpcausal.dependence.rank import kendall, spearman
from dpcausal.privacy.noise import PublicGenerator

Column = npt.NDArray[np.float64]
Interval = tuple[float, float]


@dataclass(frozen=True)
class Recipe:
    """Public settings of the regressions and the split.

    Attributes
    ----------
    training_share : float
        Share of the rows that the regressions are fitted on, in (0, 1).
    penalty : float
        λ of the ridge objective (λ/2)‖w‖² + (1/n) Σ (w·φ(x_i) − y_i)², > 0.
    regression_width : float
        Width of the regressions' Gaussian kernel, as a share of the half-width of the column's public range, or of
        its spread in the training rows where ``adaptive``.
    """

    training_share: float
    penalty: float
    regression_width: float
    adaptive: bool


@dataclass(frozen=True)
class Residuals:
    """One split's test rows and residuals, their public ranges, and kernel widths from the training rows."""

    x: Column
    y: Column
    left_y: Column
    left_x: Column
    range_x: Interval
    range_y: Interval
    width_x: float
    width_y: float
    width_left_y: float
    width_left_x: float

    @property
    def m(self) -> int:
        """Number of test rows."""
        return len(self.x)

    @property
    def range_left_y(self) -> Interval:
        """Residuals of y lie within its range's width: predictions are clipped to the range."""
        width = self.range_y[1] - self.range_y[0]
        return -width, width

    @property
    def range_left_x(self) -> Interval:
        width = self.range_x[1] - self.range_x[0]
        return -width, width

    def forward(self) -> tuple[Column, Column]:
        """Return x and the residuals of y: their score is that of "x causes y"."""
        return self.x, self.left_y

    def backward(self) -> tuple[Column, Column]:
        return self.y, self.left_x


def split_rows(
    rows: int, training_share: float, generator: PublicGenerator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the positions of training and test rows: a public random split, at least 2 rows in each."""
    train = min(max(2, round(rows * training_share)), rows - 2)
    order = generator.permutation(rows).astype(np.int64)
    return np.sort(order[:train]), np.sort(order[train:])


def typical_distance(values: Column, fallback: float) -> float:
    """Return the median distance between rows a public step apart; ``fallback`` where that is 0.

    For unprotected or block-internal rows only: a bandwidth from protected rows would be a release.
    """
    half = len(values) // 2
    distance = float(np.median(np.abs(values[:half] - values[half : 2 * half]))) if half else 0.0
    return distance if math.isfinite(distance) and distance > 0 else fallback


def fit_both(
    x: Column,
    y: Column,
    train: npt.NDArray[np.int64],
    test: npt.NDArray[np.int64],
    range_x: Interval,
    range_y: Interval,
    recipe: Recipe,
    generator: PublicGenerator,
) -> Residuals:
    """Regress each column on the other on the training rows and return the residuals of the test rows.

    Parameters
    ----------
    x, y : float64 arrays, shape (n,)
        Within their ranges.
    train, test : int64 arrays
        Disjoint positions.
    range_x, range_y : (float, float)
        Public ranges.
    recipe : Recipe
        Public settings.
    generator : PublicGenerator
        For random features.
    """
    from dpcausal.regression.kernel_ridge import fit

    def regress(cause: Column, effect: Column, range_cause: Interval, range_effect: Interval) -> tuple[Column, Column]:
        middle, half = (range_cause[0] + range_cause[1]) / 2, (range_cause[1] - range_cause[0]) / 2
        spread = typical_distance(cause[train], half) if recipe.adaptive else half
        predictor = fit(
            (cause[train] - middle) / spread,
            effect[train],
            penalty=recipe.penalty,
            width=recipe.regression_width,
            clip=range_effect,
            generator=generator,
        )
        return (
            effect[train] - predictor((cause[train] - middle) / spread),
            effect[test] - predictor((cause[test] - middle) / spread),
        )

    training_left_y, left_y = regress(x, y, range_x, range_y)
    training_left_x, left_x = regress(y, x, range_y, range_x)
    half_x, half_y = (range_x[1] - range_x[0]) / 2, (range_y[1] - range_y[0]) / 2
    return Residuals(
        x=x[test],
        y=y[test],
        left_y=left_y,
        left_x=left_x,
        range_x=range_x,
        range_y=range_y,
        width_x=typical_distance(x[train], half_x),
        width_y=typical_distance(y[train], half_y),
        width_left_y=typical_distance(training_left_y, half_y),
        width_left_x=typical_distance(training_left_x, half_x),
    )


def _root_hsic_scores(rest: Residuals) -> tuple[float, float]:
    forward = root_hsic(
        *rest.forward(),
        width_x=rest.width_x,
        width_y=rest.width_left_y,
        range_x=rest.range_x,
        range_y=rest.range_left_y,
    )
    backward = root_hsic(
        *rest.backward(),
        width_x=rest.width_y,
        width_y=rest.width_left_x,
        range_x=rest.range_y,
        range_y=rest.range_left_x,
    )
    return forward, backward


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
    "hsic": _root_hsic_scores,
    "spearman": lambda rest: (abs(spearman(*rest.forward())), abs(spearman(*rest.backward()))),
    "kendall": lambda rest: (abs(kendall(*rest.forward())), abs(kendall(*rest.backward()))),
    "iqr": _iqr_scores,
    "variance": _variance_scores,
}
"""The exact scores of ("x causes y", "y causes x"), the smaller wins; ``variance`` only without privacy."""
