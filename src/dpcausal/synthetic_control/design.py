"""The plan of a synthetic control: cost, settings and feasibility, from public numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpcausal.mechanisms.additive import gaussian_scale, laplace_scale
from dpcausal.privacy.loss import ZCDP, Loss, NoPrivacy, PureDP
from dpcausal.synthetic_control.forecast import TargetOnlyForecast

Base = PureDP | ZCDP | NoPrivacy
"""What the releases of a call share."""

MOST_NOISE, MUCH_NOISE = 2.4, 0.5
"""A panel is refused where the noise in the mean effect is expected to pass so many errors of the own forecast.

``matched`` weighs donors and own forecast by noise r and prior 1.5: it is expected to err by r/√(r² + 1.5²) of that,
0.85 at r = 2.4.  From the second on an answer says how much noise there is."""


def deviation_of(bound: float | int | Fraction, loss: Base, numbers: int = 1) -> float:
    """Return the standard deviation of noise on each number of a vector with an l2 bound; 0 without privacy.

    The ball in dimension d has E‖z‖² = d(d + 1)s², hence √(d + 1)·s a coordinate; s = Δ/ε.
    """
    if isinstance(loss, PureDP):
        return math.sqrt(numbers + 1) * laplace_scale(bound, loss)
    return gaussian_scale(bound, loss)


@dataclass(frozen=True)
class Plan:
    """A call after its public arguments were checked; one target.

    Attributes
    ----------
    target, method, spent : object, str, Loss
        Who, how, and what the call costs, all targets together.
    base : PureDP, ZCDP or NoPrivacy
        What this target's releases share, in the currency of the method.
    path, mixing, interval, pvalue : Fraction
        Their shares of ``base``; 0 for what is not released, ``interval_reason`` and ``pvalue_reason`` say why.
    start, after, donors, periods : int
        T0, m, n, T.
    free : DonorFree
        The forecast from the target's own past.
    att_noise, path_noise : float or None
        Expected standard deviation of the noise in the mean effect and in each period, in the outcome's unit; ``None``
        where no such forecast is made.
    noise_ratio : float or None
        ``att_noise`` over the error of the donor-free forecast.
    scale : float
        Half the width of the bounds: what 1 on the scale [−1, 1] is in the outcome's unit.
    constants : dict
        Public constants of the method, in the outcome's unit.
    """

    target: Any
    method: str
    spent: Loss
    base: Base
    path: Fraction
    mixing: Fraction
    interval: Fraction
    pvalue: Fraction
    interval_reason: str
    pvalue_reason: str
    start: int
    after: int
    donors: int
    periods: int
    free: TargetOnlyForecast
    att_noise: float | None
    path_noise: float | None
    noise_ratio: float | None
    scale: float
    constants: dict[str, float] = field(default_factory=dict, hash=False)

    @property
    def verdict(self) -> str:
        """Whether the panel is large enough for the budget, in a sentence."""
        if self.att_noise is not None and self.noise_ratio is None:
            return "Whether the donors add more than noise is unknown: the target's own past shows no error to compare."
        if self.noise_ratio is None:
            return "No forecast of the noise is made for this method."
        size = f"the noise in the mean effect is expected to be {self.noise_ratio:.2g} times"
        yard = f"the error of the target's own {self.free.rule} forecast"
        if self.noise_ratio > MOST_NOISE:
            would = f"Use about {self.enough_donors} donors, or {self._times(self.noise_ratio / MOST_NOISE)}."
            return f"Too small: {size} {yard}, more than {MOST_NOISE:g}. {would}"
        return f"Feasible: {size} {yard}."

    @property
    def enough_donors(self) -> int | None:
        """How many donors, at this loss, bring the noise down to what is not refused; ``None`` if that is not known."""
        return None if self.noise_ratio is None else math.ceil(self.noise_ratio / MOST_NOISE * self.donors)

    def _times(self, more: float) -> str:
        """Return how much larger a loss divides the noise by so much; of (ε, δ) the noise is about inverse to ε."""
        amount, times = ("rho", more * more) if isinstance(self.spent, ZCDP) else ("epsilon", more)
        return f"{math.ceil(10 * times) / 10:g} times the {amount}"
