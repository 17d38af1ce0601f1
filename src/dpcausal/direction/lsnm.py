"""The location-scale noise model: y = f(x) + s(x)·e with e independent of x, judged by entropies.

    D = [ĥ(y) + ĥ(e_X) + mean log s_X] − [ĥ(x) + ĥ(e_Y) + mean log s_Y]

where e_Y = (y − f(x))/s(x) and e_X the same the other way.  As the rows grow, D tends to I(e_X; y) − I(e_Y; x),
whatever f and s are: above 0 if "x causes y" leaves less dependence.  Inside blocks only: all is taken from the rows.
Proof: ``verdict.md``, lsnm.
"""

from __future__ import annotations

import math

import numpy as np

from dpcausal.direction.spline import Column, Spline
from dpcausal.privacy.noise import PublicGenerator

PASSES = 4
"""Most times that the mean is fitted anew with the weights of the scale."""

FLOOR = 1e-4
"""Squared residuals are raised by this share of their mean before the logarithm."""

MOST_RATIO = 1e3
"""Largest ratio of two weights' square roots."""

FEW_VALUES = 0.9
"""Below this share of different values a column is spread over its steps."""


def spread(values: Column, coins: PublicGenerator) -> Column:
    """Return a column of variance 1, its ties moved apart within its usual step by public coins; 0 if it is constant.

    Rounded or heaped values have no density: an entropy of spacings would be −∞, the same way in every block.
    """
    noise = coins.uniform(-0.5, 0.5, len(values))
    distinct = np.unique(values)
    if len(distinct) > 1 and len(distinct) < FEW_VALUES * len(values):
        values = values + noise * float(np.median(np.diff(distinct)))
    deviation = float(np.std(values))
    if not (math.isfinite(deviation) and deviation > 0 and len(distinct) > 1):
        return np.zeros(len(values))
    return np.asarray((values - np.mean(values)) / deviation)


def entropy(values: Column) -> float:
    """Return the differential entropy by spacings of √n/2 places (Vasicek 1976); −∞ where so many values are equal."""
    n, ordered = len(values), np.sort(values)
    m = max(1, round(math.sqrt(n) / 2))
    ends = np.concatenate([np.full(m, ordered[0]), ordered, np.full(m, ordered[-1])])
    return float(np.mean(np.log(n / (2 * m) * (ends[2 * m :] - ends[: -2 * m]))))


def location_scale(spline: Spline, u: Column) -> tuple[Column, Column, Column]:
    """Return the residuals of the mean alone, those over their scale, and the log scale; all leave-one-out.

    The scale is a spline of log(r² + c), fitted in turn with the mean while the Gaussian likelihood of the left-out
    rows gains; it is constant unless that is better.
    """
    _, plain = spline.fit(u)
    left, best = plain, (plain, np.zeros(len(u)))
    gained = -0.5 * math.log(float(np.mean(plain**2)))
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
    return plain, *best


def half(regressor: Column, spline: Spline, response: Column) -> tuple[float, Column]:
    """Return ĥ(regressor) + ĥ(e) + mean log s, and the residuals of the mean alone."""
    plain, rest, scale = location_scale(spline, response)
    return entropy(regressor) + entropy(rest) + float(np.mean(scale)), plain


def scores(x: Column, y: Column, coins: PublicGenerator) -> tuple[float, float]:
    """Return the scores of ("x causes y", "y causes x"), the smaller wins: the second less the first is D."""
    x, y = spread(x, coins), spread(y, coins)
    return half(x, Spline(x), y)[0], half(y, Spline(y), x)[0]
