"""Effects where trends are not parallel, by how much they differed before treatment: Rambachan & Roth (2023).

Let δ be the difference of cohorts' trends, 0 in the last period before treatment, and d its changes before that.  Each
change after treatment is at most M̄ max |d|, so that |δ| ≤ M̄ (e + 1) max |d| at event e.  If the largest change is σ
d_s, the interval made with it covers; the union over all s and both signs holds that one.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.codec import storable
from dpcausal.effects.result import Interval, normal_reach
from dpcausal.errors import ParameterError
from dpcausal.result import Guarantee, Result, ci_text, flat_row, number_text, signed_text

MOST_MBAR = 1e4


class EventStudy(NamedTuple):
    """The mean effect, whose event is ``None``, and those of all events, with their covariance.

    ``held`` has how many periods after treatment began each holds on average, from 1 on.
    """

    events: list[int | None]
    held: list[float]
    values: Reals
    covariance: Reals

    def changes(self) -> Reals:
        """Return how each change before treatment is made of the values, a row each, the last one first."""
        place = {event: k for k, event in enumerate(self.events)}
        rows = []
        for event in sorted((one for one in self.events if one is not None and one < -1), reverse=True):
            if event + 1 == -1 or event + 1 in place:
                row = np.zeros(len(self.events))
                row[place[event]] = -1.0
                if event + 1 < -1:
                    row[place[event + 1]] = 1.0
                rows.append(row)
        return np.array(rows).reshape(len(rows), len(self.events))


@storable("RobustEffect")
@dataclass(frozen=True)
class RobustEffect:
    """An effect under one bound on trends: what it allows of the estimate, and the interval, sampling and noise in."""

    name: str
    event: int | None
    mbar: float
    bounds: Interval
    interval: Interval | None


@storable("RobustEffects")
@dataclass(frozen=True, eq=False)
class RobustEffects(Result):
    """Effects where trends need not be parallel.

    Attributes
    ----------
    outcome : str
    effects : tuple of RobustEffect
        Of the mean effect, ``"all"``, and of each event, under each ``mbar``.
    breakdown : float or None
        The largest ``mbar`` under which the interval of the mean effect leaves 0 out; ``None``: under none.
    coverage : float
    n : int
        Persons, public.
    guarantee : Guarantee
    """

    named = ("name", "event", "mbar", "bounds_low", "bounds_high", "interval_low", "interval_high")

    outcome: str
    effects: tuple[RobustEffect, ...]
    breakdown: float | None
    coverage: float
    n: int
    guarantee: Guarantee

    def headline(self) -> list[str]:
        lines = [f"Effect of treatment on {self.outcome} under relative magnitudes of trends, {self.n:,} persons"]
        for one in self.effects:
            if one.event is None:
                bounds = " to ".join(signed_text(end, one.bounds) for end in one.bounds)
                lines.append(f"  mbar {number_text(one.mbar):>5}  {bounds}   {ci_text(one.interval, self.coverage)}")
        if self.breakdown is not None:
            lines.append(f"The interval of the mean effect leaves 0 out for mbar up to {number_text(self.breakdown)}.")
        return lines

    def rows(self) -> list[dict[str, Any]]:
        shared = {"outcome": self.outcome, "coverage": self.coverage, "n": self.n}
        return [flat_row(vars(one)) | shared for one in self.effects]


def robust_effects(study: EventStudy, mbars: tuple[float, ...], about: dict[str, Any], shown: bool) -> RobustEffects:
    """Return the effects from the mean one on, ``about`` them what the study's result says; ``shown``: intervals too.
    """
    from scipy.optimize import brentq

    changes = study.changes()
    if not len(changes):
        raise ParameterError("bounds on trends need two periods before treatment", argument="mbar", rule="periods")
    coverage, rows = about["coverage"], []
    for place, event in enumerate(study.events):
        if event is None or event >= 0:
            for mbar in mbars:
                bounds, interval = _ends(study, changes, place, mbar, coverage)
                name = "all" if event is None else f"{event:+d}"
                rows.append(RobustEffect(name, event, mbar, bounds, interval if shown else None))

    def margin(mbar: float) -> float:
        low, high = _ends(study, changes, 0, mbar, coverage)[1]
        return max(low, -high)

    breakdown = None
    if shown and study.events[0] is None and margin(0.0) > 0:
        breakdown = MOST_MBAR if margin(MOST_MBAR) > 0 else float(brentq(margin, 0.0, MOST_MBAR))
    return RobustEffects(effects=tuple(rows), breakdown=breakdown, **about)


def _ends(study: EventStudy, changes: Reals, place: int, mbar: float, coverage: float) -> tuple[Interval, Interval]:
    own, reach, ends = np.eye(len(study.values))[place], normal_reach(coverage), []
    for change in changes:
        for sign in (-1, 1):
            along = own + sign * mbar * study.held[place] * change
            error = math.sqrt(max(float(along @ study.covariance @ along), 0.0))
            ends.append((float(along @ study.values), error))
    middles, low, high = [one for one, _ in ends], *zip(*((m - reach * e, m + reach * e) for m, e in ends), strict=True)
    return (min(middles), max(middles)), (min(low), max(high))
