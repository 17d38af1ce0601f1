"""The additive noise model: regress both ways, score what is left, the smaller score wins.

Y = f(X) + N with N independent of X makes the residuals of y on x independent of x, and those of x on y depend
on y.  Everything here is plain computation on given rows; what may leave is decided by the methods.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.privacy.noise import PublicGenerator
from dpcausal.statistics.hsic import root_hsic

Column = npt.NDArray[np.float64]
Interval = tuple[float, float]

WIDTH_SHARE = 0.7
"""Widths of the scores' kernels, as a share of the median distance."""

DISTANCE_ROWS = 300
"""Rows that a median distance is taken over."""

LEAST_ROWS = 8
"""Fewest rows of a direction, or of a block: each half then has at least 2."""

TABLE_PLACES = 2**14 + 1
"""Places of a regression's table over the public range of its regressor, and again over its training values."""


@dataclass(frozen=True, eq=False, repr=False)
class Residuals:
    x: Column
    y: Column
    left_y: Column
    left_x: Column
    range_x: Interval
    range_y: Interval
    range_left_y: Interval
    range_left_x: Interval
    width_x: float
    width_y: float
    width_left_y: float
    width_left_x: float

    @property
    def m(self) -> int:
        return len(self.x)

    def forward(self) -> tuple[Column, Column]:
        return self.x, self.left_y

    def backward(self) -> tuple[Column, Column]:
        return self.y, self.left_x

    def widths_and_ranges(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what HSIC takes beside the columns of ``forward`` and of ``backward``."""
        forward = self.width_x, self.width_left_y, self.range_x, self.range_left_y
        backward = self.width_y, self.width_left_x, self.range_y, self.range_left_x
        names = "width_x", "width_y", "range_x", "range_y"
        return dict(zip(names, forward, strict=True)), dict(zip(names, backward, strict=True))


def half_sizes(rows: int, training_share: float) -> tuple[int, int]:
    train = min(max(2, round(rows * training_share)), rows - 2)
    return train, rows - train


def split_rows(
    rows: int, training_share: float, generator: PublicGenerator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    train, _ = half_sizes(rows, training_share)
    order = generator.permutation(rows).astype(np.int64)
    return np.sort(order[:train]), np.sort(order[train:])


def typical_distance(values: Column, fallback: float) -> float:
    """Return the median distance of at most ``DISTANCE_ROWS`` evenly spaced rows, never 0; not of protected rows."""
    some = values[:: max(1, len(values) // DISTANCE_ROWS)][:DISTANCE_ROWS]
    distances = np.abs(some[:, None] - some)[np.triu_indices(len(some), 1)]
    distance = float(np.median(distances)) if len(some) > 1 else 0.0
    # Columns with many ties have a median distance of 0: a tenth of the spread keeps the kernel informative.
    distance = distance if distance > 0 else float(np.std(values)) / 10
    return distance if math.isfinite(distance) and distance > 0 else fallback


def _standardised(values: Column, by: Column) -> Column:
    spread = float(np.std(by))
    return (values - float(np.mean(by))) / (spread if math.isfinite(spread) and spread > 0 else 1.0)


def _prediction_table(
    predictor: Callable[[Column], Column], by: Column, interval: Interval
) -> Callable[[Column], Column]:
    """Return predictions by a table that the training rows alone make, so that each is a function of its own row."""
    # Over the public range alone, bounds a thousand times too wide would leave a few places where the rows are.
    wide = np.linspace(interval[0], interval[1], TABLE_PLACES)
    places = np.union1d(wide, np.linspace(np.min(by), np.max(by), TABLE_PLACES))
    heights = predictor(_standardised(places, by))
    return lambda values: np.interp(values, places, heights)


def fit_halves(
    x: Column, y: Column, train: npt.NDArray[np.int64], test: npt.NDArray[np.int64], range_x: Interval,
    range_y: Interval, generator: PublicGenerator,
) -> Residuals:  # fmt: skip
    """Return the residuals of the test rows, each column regressed on the other on the training rows. Kernel widths and
    ridge are tuned on the training rows, which are not protected."""
    from dpcausal.regression.kernel_ridge import fit, tune

    def regress(cause: Column, effect: Column, range_cause: Interval, range_effect: Interval) -> tuple[Column, Column]:
        regressor, response = _standardised(cause[train], cause[train]), _standardised(effect[train], effect[train])
        setting = tune(regressor, response)
        # Centred by the training mean: there is no intercept.
        centre = float(np.mean(effect[train]))
        clip = range_effect[0] - centre, range_effect[1] - centre
        response = effect[train] - centre
        predictor = fit(
            regressor, response, penalty=setting.penalty, width=setting.width, clip=clip, generator=generator
        )
        table = _prediction_table(predictor, cause[train], range_cause)

        def residuals(rows: npt.NDArray[np.int64]) -> Column:
            return effect[rows] - np.clip(centre + table(cause[rows]), *range_effect)

        return residuals(train), residuals(test)

    training_left_y, left_y = regress(x, y, range_x, range_y)
    training_left_x, left_x = regress(y, x, range_y, range_x)
    width_x, width_y = range_x[1] - range_x[0], range_y[1] - range_y[0]
    training = ((x[train], width_x), (y[train], width_y), (training_left_y, width_y), (training_left_x, width_x))
    return Residuals(
        x[test], y[test], left_y, left_x, range_x, range_y, (-width_y, width_y), (-width_x, width_x),
        *(WIDTH_SHARE * typical_distance(values, width / 2) for values, width in training),
    )  # fmt: skip


def fit_all(x: Column, y: Column, generator: PublicGenerator) -> Residuals:
    """Return leave-one-out residuals of all rows, for use inside a block; scale, ranges and widths are their own."""
    from dpcausal.regression.kernel_ridge import leave_one_out, tune

    def residuals(regressor: Column, response: Column) -> Column:
        setting = tune(regressor, response)
        return leave_one_out(regressor, response, penalty=setting.penalty, width=setting.width, generator=generator)

    x, y = _standardised(x, x), _standardised(y, y)
    columns = x, y, residuals(x, y), residuals(y, x)
    ranges: Any = [(float(np.min(values)) - 1e-6, float(np.max(values)) + 1e-6) for values in columns]
    return Residuals(*columns, *ranges, *(WIDTH_SHARE * typical_distance(values, 1.0) for values in columns))


def hsic_scores(rest: Residuals, statistic: Callable[..., float] = root_hsic) -> tuple[float, float]:
    """Return HSIC's root, or HSIC itself, of ("x causes y", "y causes x"): the smaller wins."""
    of_forward, of_backward = rest.widths_and_ranges()
    return statistic(*rest.forward(), **of_forward), statistic(*rest.backward(), **of_backward)
