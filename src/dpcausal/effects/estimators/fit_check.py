"""What fresh noisy sums of both models' residuals show: the bias that is left, and whether each model fits.

To the second order a doubly robust score is off by E[(e − ê)(m − m̂) / (e(1 − e))].  Along orthonormal functions this
is a sum of products of two residual sums.  Their noises are independent of each other, so the products have no bias.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcausal.effects.estimators.wavelets import haar, haar_of_grid
from dpcausal.effects.result import FitCheck

Reals = npt.NDArray[np.float64]

WIDER = 1.69
"""The variance of the correction counts so many times in the interval."""
LEAST_FULL = 0.3
"""A bin counts as holding at least such a share of what it would hold if all were alike."""
LEFT = 1.2
"""Of models that fit the sums' squares are so many times those of noise and sampling, for what shrinkage leaves:
measured, so that a model that fits is rejected at level 0.05 in about one draw of ten or fewer."""
MOST_IN_TAIL = 4.0
"""Outcomes in the outermost bin are fitted if their sum of residuals is within so many deviations of 0."""


@dataclass(frozen=True)
class Sums:
    """Noisy sums of the residuals of treatment and outcome along functions, shape (2, K), in units of both."""

    sums: Reals
    noise: Reals
    bins: tuple[int, ...]
    """Of a feature or a grid; of pair functions none."""
    counts: Reals | None = None
    """Of the bins of one feature, where they may be far from equally full."""

    def coefficients(self) -> tuple[Reals, Reals]:
        """Return the sums along orthonormal functions without the mean, shape (2, K), and how much of the noise's
        variance is in each."""
        if self.counts is not None:
            shares = np.maximum(self.counts, LEAST_FULL * self.counts.mean())
            shares = shares / shares.sum()
            scaled = (self.sums - np.outer(self.sums.sum(axis=1), shares)) / np.sqrt(shares * len(shares))
            return scaled, 1 / (shares * len(shares))
        if not self.bins:
            found = self.sums
        elif len(self.bins) == 1:
            found = np.stack([haar(one)[1:] for one in self.sums])
        else:
            found = np.stack([haar_of_grid(one.reshape(self.bins))[1:, 1:].ravel() for one in self.sums])
        return found, np.ones(found.shape[1])

    @property
    def terms(self) -> int:
        """How many functions there are."""
        return len(self.counts) - 1 if self.counts is not None else self.coefficients()[0].shape[1]


@dataclass(frozen=True)
class Checked:
    """The check, the correction's variance and what it would be if both models fitted."""

    check: FitCheck
    variance: float
    null: float

    @property
    def shrunken(self) -> float:
        """Return the correction that the estimate takes: less, the nearer it is to its noise."""
        correction = self.check.correction
        return correction * max(0.0, 1 - self.null / correction**2) if correction else 0.0


def checked(sums: list[Sums], variances: tuple[float, float], count: float, chance: float) -> Checked:
    """Return the check.

    Parameters
    ----------
    found : list of Sums
    variances : two floats
        Of one row's residual of treatment and outcome.
    count, chance : float
        Rows, and e(1 − e).
    """
    from scipy.special import chdtrc

    correction = variance = null = 0.0
    energies, terms, tail = np.zeros(2), 0, 0.0
    for one in sums:
        (M, N), loud = one.coefficients()
        size = math.prod(one.bins)
        of_m, of_n = (noise**2 * loud + count / size * own for noise, own in zip(one.noise, variances, strict=True))
        scale = size / (count**2 * chance)
        least = float(of_m @ of_n)
        correction += scale * float(M @ N)
        variance += scale**2 * max(float(M**2 @ of_n) + float(N**2 @ of_m) - least, least / 2)
        null += scale**2 * least
        energies += float((M**2 / of_m).sum()), float((N**2 / of_n).sum())
        terms += one.terms
        if len(one.bins) == 1 and one.bins[0] > 2:
            tail = max(tail, float(np.abs(one.sums[1, [0, -1]]).max()) / math.sqrt(float(of_n[0])))
    pvalues = [float(chdtrc(terms, energy / LEFT)) for energy in energies]
    error = math.sqrt(WIDER * variance)
    return Checked(FitCheck(correction, error, pvalues[0], pvalues[1], tail), WIDER * variance, null)
