"""Where columns of numbers lie and how widely: noisy histograms that close in on both quartiles of each.

A normal law is fitted to all bins of all rounds, by the means of its posterior.  Around each of its quartiles the next
round has eight bins where the former had one, so four rounds tell a scale in bounds that are a thousand times too wide.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]

ROUNDS = 4
PARTS = 8
"""Parts of an interval in a round."""

LEAST_SHARE = 0.02
"""Least share of kept rows that a noisy count is taken for."""

LEAST_ERROR = 0.01
"""Of a share: columns are not quite normal."""

LEAST_SPREAD = 0.05
"""Of a column of two levels, 0 and 1."""

NARROWEST = 1 / PARTS**ROUNDS
_WIDTHS = np.append(2.0 ** np.arange(np.log2(NARROWEST), 0, 0.25), 1.0)
_MIDDLES = np.linspace(0.0, 1.0, 33)
_QUARTILE = 0.6744897501960817
"""Of a normal law, in its deviations."""


class Scales(NamedTuple):
    """A middle and a width of each column, of values in [0, 1], and the noisy number of kept rows."""

    middles: Reals
    widths: Reals
    kept: float


def learning(two_levels: npt.NDArray[np.bool_], n: int, deviation: float) -> Generator[Reals, Reals, Scales]:
    """Return the scales of columns of values in [0, 1]; on the way, ask for counts.

    It yields cuts, shape (columns, cuts), and takes how many values are up to the first, from there to the second, and
    so on, with noise of that deviation.
    """
    columns = len(two_levels)
    sides = np.zeros((columns, 2))  # where the intervals around the quartiles begin
    told: list[tuple[Reals, Reals]] = []
    totals, fits = [], np.zeros((columns, 2))
    for step in range(ROUNDS):
        width = float(PARTS) ** -step
        inside = np.arange(PARTS + 1) if step else np.arange(1, PARTS)
        cuts = np.sort((sides[:, : 2 if step else 1, None] + inside * width / PARTS).reshape(columns, -1), axis=1)
        counts = yield cuts
        total = np.maximum(counts.sum(axis=1), LEAST_SHARE * n)
        told.append((cuts, counts / total[:, None]))
        totals.append(total)
        error = max(deviation / float(np.mean(totals)), LEAST_ERROR)
        fits = np.array([_normal([(a[k], b[k]) for a, b in told], error) for k in range(columns)])
        quartiles = fits[:, :1] + fits[:, 1:] * np.array([-_QUARTILE, _QUARTILE])
        sides = np.floor(np.clip(quartiles, 0.0, 1 - NARROWEST) * PARTS / width) * width / PARTS
    present = np.clip(told[0][1][:, PARTS // 2 :].sum(axis=1), 0.0, 1.0)
    spread = np.maximum(np.sqrt(present * (1 - present)), LEAST_SPREAD)
    middles, widths = np.where(two_levels, [present, spread], fits.T)
    return Scales(middles, widths, float(np.mean(totals)))


def _normal(told: list[tuple[Reals, Reals]], error: float) -> tuple[float, float]:
    """Return the posterior means of the middle and, on its logarithm, of the width of a normal law; flat priors."""
    from scipy.special import ndtr

    middles = np.unique(np.concatenate([_MIDDLES, *(cuts for cuts, _ in told)]))
    misfit = np.zeros((len(middles), len(_WIDTHS)))
    for cuts, shares in told:
        law = ndtr((cuts - middles[:, None, None]) / _WIDTHS[:, None])
        bins = np.diff(law, axis=2, prepend=0.0, append=1.0)
        misfit += ((bins - shares) ** 2).sum(axis=2) / (2 * error**2)
    weight = np.exp(misfit.min() - misfit)
    weight /= weight.sum()
    return float(weight.sum(axis=1) @ middles), float(np.exp(weight.sum(axis=0) @ np.log(_WIDTHS)))
