"""The average effect on several treated units, from answers that one call gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcausal.codec import storable
from dpcausal.data.periods import unit_name
from dpcausal.errors import ParameterError, called
from dpcausal.report import Guarantee, Result
from dpcausal.synthetic_control.result import SyntheticControl


@storable("AverageEffect")
@dataclass(frozen=True, eq=False)
class AverageEffect(Result):
    """The average of several targets' mean effects, each over its own treated periods.

    Attributes
    ----------
    targets : tuple
    effects : tuple of float
        Their mean effects.
    att : float
        The average of these, each target counted once.
    interval : tuple of two floats, or None
        Of the average, at ``coverage``: as wide as the targets' own are on average.  ``None``: see ``interval_reason``.
    interval_reason : str
    coverage : float
    guarantee : Guarantee
        That of the call.
    """

    targets: tuple[Any, ...]
    effects: tuple[float, ...]
    att: float
    interval: tuple[float, float] | None
    interval_reason: str
    coverage: float
    guarantee: Guarantee

    def headline(self) -> list[str]:
        lines = [f"Average effect on {len(self.targets)} treated units: {self.att:+.4g}."]
        if self.interval is None:
            return [*lines, f"No interval: {self.interval_reason}."]
        low, high = self.interval
        return [*lines, f"{self.coverage:.0%} interval of the average effect: {low:.4g} to {high:.4g}."]


@called
def average_effect(answers: Sequence[SyntheticControl]) -> AverageEffect:
    """Return the average effect on all targets of one call of ``synthetic_controls``, free: it asks no donor.

    Parameters
    ----------
    answers : sequence of SyntheticControl
        Of one call, whenever each target was treated.

    Returns
    -------
    AverageEffect

    Notes
    -----
    *Guarantee*: that of the call; nothing else is released.  *Interval*: errors of targets share the model's, how much
    no release tells.  Where their joint law is elliptical the scale of a mean is at most the mean of the scales, so an
    interval as wide as the targets' are on average holds at any dependence.  Where errors have nothing in common it is
    too wide by the root of the number of targets.

    Examples
    --------
    >>> import dpcausal as dpc
    >>> made = dpc.simulate.factor_panel(2000, effect=0.3, seed=1)
    >>> targets = {"early": made.target, "late": made.target + 0.01}
    >>> panel = dpc.Panel.from_arrays(made.donors, targets, start={"early": 10, "late": 11}, bounds=made.bounds,
    ...                               ledger=dpc.Ledger.in_memory(dpc.ApproxDP(2, 1e-6), unit="unit"))
    >>> with dpc.simulated_noise(4):
    ...     answers = dpc.synthetic_controls(panel, loss=dpc.ApproxDP(2, 1e-6))
    >>> found = dpc.average_effect(answers)
    >>> found.interval[0] < 0.3 < found.interval[1]
    True
    """
    listed = list(answers) if isinstance(answers, Sequence) else []
    if not listed or not all(isinstance(answer, SyntheticControl) for answer in listed):
        raise ParameterError("answers must be those of a call of synthetic_controls")
    first = listed[0]
    calls = {(answer.guarantee.ledger_head, answer.guarantee.loss, answer.coverage) for answer in listed}
    if len(calls) > 1 or len({unit_name(answer.target) for answer in listed}) < len(listed):
        raise ParameterError("answers must be of different targets, and of one call, which shared one budget")
    halves, effects = [], tuple(float(answer.att) for answer in listed)
    reason = ""
    for answer in listed:
        if answer.interval is None:
            reason = reason or f"{answer.target} has none, {answer.interval_reason}"
        else:
            halves.append((answer.interval[1] - answer.interval[0]) / 2)
    att, half = float(np.mean(effects)), float(np.mean(halves)) if not reason else None
    caveats = dict.fromkeys(caveat for answer in listed for caveat in answer.guarantee.caveats)
    return AverageEffect(
        targets=tuple(answer.target for answer in listed), effects=effects, att=att,
        interval=None if half is None else (att - half, att + half), interval_reason=reason, coverage=first.coverage,
        guarantee=replace(first.guarantee, caveats=tuple(caveats)),
    )  # fmt: skip
