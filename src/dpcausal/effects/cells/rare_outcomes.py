"""Limits of two risks, their difference and ratios, where few records have an outcome, or few do not.

The risk of an arm is m = Σ w_z T_z / N_z; its limits are Wilson's with the noise's variance beside that of sampling:

    (m − θ)² = c² (θ (1 − θ) / n + k (σ_TT − 2θ σ_NT + θ² σ_NN)),  1/n = Σ w²/N,  k = Σ (w/N)²

Those of both arms make the limits of a difference and of a ratio (the recovery of variances).  There are always limits,
so none is shown only where chance made an outcome look frequent.  *Source*: Wilson (1927), Newcombe (1998), Donner &
Zou (2012); the noise, this library.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpcausal.effects.cells.standardise import ArmMeans, Sums

ENOUGH = 60
"""So many records with the outcome in each arm, and without, are enough for normal limits: those cover 0.94 there."""


@dataclass(frozen=True)
class Risk:
    """A risk and its limits, within 0 and 1; its variance, and what the weights of the strata add to that."""

    value: float
    low: float
    high: float
    variance: float
    beyond: float
    rarer: float
    """Records with the outcome, or without, whichever are fewer, were all of one stratum."""

    def with_weights(self, reach: float) -> Risk:
        """Return it with limits that count the weights too."""
        below = math.hypot(self.value - self.low, reach * math.sqrt(self.beyond))
        above = math.hypot(self.high - self.value, reach * math.sqrt(self.beyond))
        low, high = max(self.value - below, 0.0), min(self.value + above, 1.0)
        return replace(self, low=low, high=high, beyond=0.0)

    def without(self) -> Risk:
        """Return that of lacking the outcome."""
        return replace(self, value=1 - self.value, low=1 - self.high, high=1 - self.low)


def risks(sums: Sums, adjusted: ArmMeans, treated_only: bool, reach: float) -> tuple[Risk, Risk]:
    """Return those of control and treated, from the sums of strata that are all supported."""
    weights = sums.weights(treated_only)
    weights = weights / weights.sum()
    (nn, nt), (_, tt) = sums.noise
    both, inflation = [], sums.noise_inflation(treated_only)
    for arm in (0, 1):
        of_count = weights / sums.N[arm]
        loud = of_count * inflation[arm]
        share, sampling, noise = sums.T[arm] / sums.N[arm], float(weights @ of_count), float(loud @ loud)
        m, p = float(np.clip(weights @ share, 0.0, 1.0)), np.clip(share, 0.0, 1.0)
        fixed = float(weights * of_count @ (p * (1 - p)) + loud**2 @ (tt - 2 * p * nt + p * p * nn))
        square = 1 + reach**2 * (sampling - noise * nn)
        middle = m + reach**2 * (sampling / 2 - noise * nt)
        root = math.sqrt(max(middle**2 - square * (m * m - reach**2 * noise * tt), 0.0))
        low, high = max(min((middle - root) / square, m), 0.0), min(max((middle + root) / square, m), 1.0)
        beyond = max(float(adjusted.covariance[arm, arm]) - fixed, 0.0)
        both.append(Risk(m, low, high, fixed, beyond, min(m, 1 - m) / sampling))
    return both[0], both[1]


def difference(control: Risk, treated: Risk, variance: float, reach: float) -> tuple[float, float]:
    """Return its limits, from its variance too: the weights are those of both arms."""
    gap = treated.value - control.value
    rest = reach * math.sqrt(max(variance - control.variance - treated.variance, 0.0))
    below = math.hypot(treated.value - treated.low, control.high - control.value, rest)
    above = math.hypot(treated.high - treated.value, control.value - control.low, rest)
    return gap - below, gap + above


def ratio(control: Risk, treated: Risk, reach: float) -> tuple[float | None, tuple[float, float]]:
    """Return the ratio of risks, none of a control risk of 0, and its limits; the upper one may be infinite."""
    one, zero = treated.with_weights(reach), control.with_weights(reach)
    estimate = one.value / zero.value if zero.value > 0 else None
    return estimate, _limits((one.low, one.value, one.high), (zero.low, zero.value, zero.high))


def odds_ratio(control: Risk, treated: Risk, reach: float) -> tuple[float | None, tuple[float, float]]:
    """Return the ratio of odds, likewise: of the rarer of having and lacking the outcome."""
    one, zero = treated, control
    if treated.value + control.value > 1:
        one, zero = control.without(), treated.without()
    above, below = (
        tuple(p / (1 - p) if p < 1 else math.inf for p in (risk.low, risk.value, risk.high))
        for risk in (one.with_weights(reach), zero.with_weights(reach))
    )
    estimate = above[1] / below[1] if below[1] > 0 and above[1] < math.inf else None
    return estimate, _limits(above, below)


def _limits(above: tuple[float, ...], below: tuple[float, ...]) -> tuple[float, float]:
    (a_low, a, a_high), (b_low, b, b_high) = above, below
    product = a * b
    low = high = 0.0
    if a_low > 0 and b_high < math.inf:
        gained, lost = a_low * (2 * a - a_low), b_high * (2 * b - b_high)
        low = gained / (product + math.sqrt(max(product**2 - gained * lost, 0.0)))
    if b_low <= 0 or a_high == math.inf:
        return low, math.inf
    gained, lost = a_high * (2 * a - a_high), b_low * (2 * b - b_low)
    high = (product + math.sqrt(max(product**2 - gained * lost, 0.0))) / lost
    return low, high
