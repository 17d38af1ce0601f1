"""The location-scale noise model: y = f(x) + s(x)·e with e independent of x, judged by entropies.

    D = [ĥ(y) + ĥ(e_X) + mean log s_X] − [ĥ(x) + ĥ(e_Y) + mean log s_Y]

where e_Y = (y − f(x))/s(x) and e_X the same the other way.  As the rows grow, D tends to I(e_X; y) − I(e_Y; x),
whatever f and s are: above 0 if "x causes y" leaves less dependence.  Freedom of the scale costs accuracy where no
scale is needed: a forced choice leaves it constant there.  Inside blocks only: all is taken from the rows.
Proof: ``verdict.md``, lsnm.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpcausal.direction.spline import Column, Spline
from dpcausal.privacy.noise import PublicGenerator

PASSES = 4
"""Most times that the mean is fitted anew with the weights of the scale."""

FLOOR = 1e-4
"""Squared residuals are raised by this share of their mean before the logarithm."""

MOST_RATIO = 1e3
"""Largest ratio of two weights' square roots."""

FEW_VALUES = 0.9
"""Below this share of different values a column is spread over its steps, and the other made as coarse."""

LEAST_VALUES = 10
"""Different values of a column below which none is a heap, and a block does not say which way it leans."""

LEAST_HEAP = 0.03
"""Least share of the rows that makes a heap of a value."""

LEAST_GAIN = 0.08
"""Gain of the scale in log likelihood a row, of the direction where it gains more, up to which scales are constant."""


def heaped(values: Column) -> npt.NDArray[np.bool_]:
    """Return which rows lie on a heap, as where a column is cut at a bound or mostly 0: no density has one.

    A heap has 1.5 m + 5√m − 1.5 rows or more, m the mean of the two values on either side: chance makes few of those.
    """
    distinct, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(distinct) < LEAST_VALUES:
        return np.zeros(len(values), dtype=np.bool_)
    four = np.array([1, 1, 0, 1, 1])
    beside = np.maximum(1, np.convolve(counts, four, "same") / np.convolve(np.ones(len(counts)), four, "same"))
    least = np.maximum(1.5 * beside + 5 * np.sqrt(beside) - 1.5, LEAST_HEAP * len(values))
    return np.asarray((counts >= least)[place], dtype=np.bool_)


def _step(values: Column) -> float:
    """Return the usual step of a column of few values over its deviation, 0 of one whose values hardly repeat."""
    distinct, deviation = np.unique(values), float(np.std(values))
    few = 1 < len(distinct) < FEW_VALUES * len(values)
    return float(np.median(np.diff(distinct))) / deviation if few and 0 < deviation < math.inf else 0.0


def spread(x: Column, y: Column, coins: PublicGenerator) -> tuple[Column, Column]:
    """Return both columns with variance 1, as coarse as the coarser one, and their ties moved apart by public coins.

    Rounded values have no density: an entropy of spacings would be −∞, the same way in every block, and a regression
    on coarse values fits worse than one of them.  A constant column is 0.
    """
    step = max(_step(x), _step(y))
    return _spread(x, step, coins), _spread(y, step, coins)


def _spread(values: Column, step: float, coins: PublicGenerator) -> Column:
    noise, deviation = coins.uniform(-0.5, 0.5, len(values)), float(np.std(values))
    if not (0 < deviation < math.inf and np.any(values != values[0])):
        return np.zeros(len(values))
    values = (values - np.mean(values)) / deviation
    if step > 0:
        own = _step(values)
        values = (values if own >= step else np.round(values / step) * step) + noise * max(own, step)
    return np.asarray((values - np.mean(values)) / np.std(values))


def entropy(values: Column) -> float:
    """Return the differential entropy by spacings of √n/2 places (Vasicek 1976); −∞ where so many values are equal."""
    n, ordered = len(values), np.sort(values)
    m = max(1, round(math.sqrt(n) / 2))
    ends = np.concatenate([np.full(m, ordered[0]), ordered, np.full(m, ordered[-1])])
    return float(np.mean(np.log(n / (2 * m) * (ends[2 * m :] - ends[: -2 * m]))))


def location_scale(spline: Spline, u: Column) -> tuple[Column, Column, Column, float]:
    """Return the residuals of the mean alone, those over their scale, the log scale, and what the scale gains a row.

    The scale is a spline of log(r² + c), fitted in turn with the mean while the Gaussian likelihood of the left-out
    rows gains; it is constant unless that is better.  All four are leave-one-out.
    """
    _, plain = spline.fit(u)
    left, best = plain, (plain, np.zeros(len(u)))
    least = gained = -0.5 * math.log(float(np.mean(plain**2)))
    for _ in range(PASSES):
        logs = 0.5 * np.log(left**2 + FLOOR * float(np.mean(left**2)))
        fitted, missed = spline.fit(logs)
        scale = logs - missed
        gain = -float(np.mean(scale)) - 0.5 * math.log(float(np.mean(left**2 * np.exp(-2 * scale))))
        if not gain > gained:
            break
        gained, best = gain, (left * np.exp(-scale), scale)
        centred = np.clip(fitted - np.median(fitted), -math.log(MOST_RATIO) / 2, math.log(MOST_RATIO) / 2)
        left = spline.fit(u, np.exp(-2 * centred))[1]
    return plain, *best, gained - least


def half(regressor: Column, spline: Spline, response: Column) -> tuple[float, Column, Column]:
    """Return ĥ(regressor) + ĥ(e) + mean log s, the residuals of the mean alone, and those over their scale."""
    plain, rest, scale, _ = location_scale(spline, response)
    return entropy(regressor) + entropy(rest) + float(np.mean(scale)), plain, rest


def scores(x: Column, y: Column, coins: PublicGenerator) -> tuple[float, float]:
    """Return the scores of ("x causes y", "y causes x"), the smaller wins: the second less the first is D.

    Rows on a heap are left out: as a cause it would win, as an effect lose, whatever the other rows say.  If neither
    scale gains enough both are constant.
    """
    whole = ~(heaped(x) | heaped(y))
    x, y = spread(x[whole], y[whole], coins)
    (plain, rest, scale, gain), (back, rest_back, scale_back, gain_back) = (
        location_scale(Spline(regressor), response) for regressor, response in ((x, y), (y, x))
    )
    if max(gain, gain_back) <= LEAST_GAIN:
        return entropy(x) + entropy(plain), entropy(y) + entropy(back)
    forward, backward = float(np.mean(scale)), float(np.mean(scale_back))
    return entropy(x) + entropy(rest) + forward, entropy(y) + entropy(rest_back) + backward
