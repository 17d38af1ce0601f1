"""Where columns of numbers lie and how widely: both quartiles of each by noisy halving of its bounds.

Each step is a histogram of three bins, whose cuts are functions of the steps before.  A normal law is then fitted to
all noisy shares at all cuts, by the mean of its posterior: free, and far less noisy than the last cuts alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpcausal.dependence.contingency import Counts, histograms

Reals = npt.NDArray[np.float64]

STEPS = 12
"""A quartile is told to 2⁻¹² of the bounds, so that these may be a thousand times too wide."""

LEAST_SHARE = 0.02
"""Least share of kept rows that a noisy count is taken for."""

LEAST_ERROR = 0.01
"""Of a share: columns are not quite normal."""

LEAST_SPREAD = 0.05
"""Of a column of two levels, 0 and 1."""

_WIDTHS = 2.0 ** np.arange(-STEPS, 0.01, 0.25)
_MIDDLES = np.linspace(0.0, 1.0, 129)


class Scales(NamedTuple):
    """A middle and a width of each column, of values in [0, 1], and the noisy number of kept rows."""

    middles: Reals
    widths: Reals
    kept: float


def learned(
    unit: Reals, two_levels: npt.NDArray[np.bool_], n: int, deviation: float, release: Callable[[Counts], Reals]
) -> Scales:
    """Return the scales of columns of values in [0, 1]; ``release`` adds noise of that deviation to three bins each."""
    columns = unit.shape[1]
    low, high = np.zeros((2, columns)), np.ones((2, columns))
    cuts, shares, totals = [], [], []
    for _ in range(STEPS):
        middle = (low + high) / 2
        bins = [(column > a).astype(np.int64) + (column > b) for column, a, b in zip(unit.T, *middle, strict=True)]
        noisy = release(histograms(bins, 3))
        total = np.maximum(noisy.sum(axis=1), LEAST_SHARE * n)
        below = np.clip(np.cumsum(noisy, axis=1)[:, :2].T / total, -1.0, 2.0)
        # The cuts of the two quartiles may have crossed: the bins are of the smaller and the larger one.
        below = np.where(middle[0] <= middle[1], below, below[::-1])
        right = below < np.array([[0.25], [0.75]])
        low, high = np.where(right, middle, low), np.where(right, high, middle)
        cuts.append(middle)
        shares.append(below)
        totals.append(total)
    places, told, count = np.concatenate(cuts), np.concatenate(shares), float(np.mean(totals))
    error = max(deviation / count, LEAST_ERROR)
    fitted = np.array([_normal(*one, error) for one in zip(places.T, told.T, strict=True)])
    absent = np.clip(told.mean(axis=0), 0.0, 1.0)
    spread = np.maximum(np.sqrt(absent * (1 - absent)), LEAST_SPREAD)
    middles, widths = np.where(two_levels, [1 - absent, spread], fitted.T)
    return Scales(middles, widths, count)


def _normal(cuts: Reals, shares: Reals, error: float) -> tuple[float, float]:
    """Return the posterior means of the middle and, on its logarithm, of the width of a normal law; flat priors."""
    from scipy.special import ndtr

    # The cuts come close to the quartiles, those of a step lie one on either side of the middle.
    middles = np.unique(np.concatenate([_MIDDLES, cuts, (cuts[::2] + cuts[1::2]) / 2]))
    law = ndtr((cuts - middles[:, None, None]) / _WIDTHS[:, None])
    misfit = ((law - shares) ** 2).sum(axis=2) / (2 * error**2)
    weight = np.exp(misfit.min() - misfit)
    weight /= weight.sum()
    return float(weight.sum(axis=1) @ middles), float(np.exp(weight.sum(axis=0) @ np.log(_WIDTHS)))
