"""Forecast a unit from its own past: free for the public target, and the benchmark of every result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]

RULES = ("last value", "mean", "trend")

UNKNOWN_SCALE = 2.0**-9
"""What a target whose past is flat is taken to vary by, a thousandth of the range: nothing public says more."""

NO_ERROR = 2.0**-30
"""An error is not known if it is no more than this share of how far the past lies from its last value: rounding."""


@dataclass(frozen=True)
class TargetOnlyForecast:
    """A forecast of the target from its own past, on the scale [−1, 1] but not cut at it, chosen on that past.

    ``error`` is the rule's root mean square error, forecasting the second half of the past from what came before,
    ``None`` where nothing could be tried or nothing was missed; ``last_error`` that of the last value, above 0.
    """

    rule: str
    path: Reals
    error: float | None
    last_error: float

    @property
    def expected(self) -> float:
        """The error that is reckoned with: the last value's where that of the rule is not known."""
        return self.last_error if self.error is None else self.error


def _rule(name: str, past: Reals, ahead: int, places: Reals) -> Reals:
    if name == "last value":
        return np.full(ahead, past[-1])
    if name == "mean" or len(past) < 2:
        return np.full(ahead, past.mean())
    middle = places[: len(past)].mean()
    t = places[: len(past)] - middle
    slope = float((t * past).sum()) / float((t * t).sum())
    line: Reals = past.mean() + slope * (places[len(past) : len(past) + ahead] - middle)
    return line


def tried(past: Reals, ahead: int, places: Reals | None = None) -> tuple[Reals, Reals]:
    """Return each rule's mean squared error on pasts of shape (T0, n), and its forecast of the later mean: (3, n) each.

    Errors are of forecasts of at most ``ahead`` periods from each origin of the second half.  Column by column, each
    unit's from its own past alone, bit for bit.  ``places`` are when the T0 + ``ahead`` periods are, by default 0, 1, …
    """
    start, units = past.shape
    at = (np.arange(start + ahead, dtype=np.float64) if places is None else places).tolist()
    squares, count = np.zeros((3, units)), 0
    level, tilt = np.zeros(units), np.zeros(units)  # Σx and Σtx of what came before the origin
    once, twice = 0.0, 0.0  # Σt and Σt²
    for origin in range(1, start + 1):
        t = at[origin - 1]
        level = level + past[origin - 1]
        tilt = tilt + past[origin - 1] * t
        once, twice = once + t, twice + t * t
        middle = once / origin
        mean = level / origin
        slope = (tilt - level * middle) / max(twice - once * once / origin, 1.0)
        if max(2, (start + 1) // 2) <= origin:
            for place in range(origin, min(origin + ahead, start)):
                count += 1
                for rule, predicted in enumerate((past[origin - 1], mean, mean + slope * (at[place] - middle))):
                    missed = predicted - past[place]
                    squares[rule] += missed * missed
    return squares / max(count, 1), np.array([past[-1], mean, mean + slope * (sum(at[start:]) / ahead - middle)])


def own_means(past: Reals, ahead: int, places: Reals | None = None) -> Reals:
    """Return the later mean that each unit's best rule forecasts; ``past`` is (T0, n)."""
    squares, later = tried(past, ahead, places)
    best = np.argmin(squares, axis=0)
    return np.asarray(later[best, np.arange(past.shape[1])])


def donor_free(past: Reals, ahead: int, places: Reals | None = None) -> TargetOnlyForecast:
    """Return the forecast of the next ``ahead`` periods; ``past`` has at least one, on the scale [−1, 1]."""
    at = np.arange(len(past) + ahead, dtype=np.float64) if places is None else places
    squares, _ = tried((past - past[-1])[:, None], ahead, at)
    errors = dict(zip(RULES, np.sqrt(squares[:, 0]).tolist(), strict=True))
    best = min(errors, key=errors.__getitem__)
    least = NO_ERROR * float(np.abs(past - past[-1]).max())
    return TargetOnlyForecast(
        rule=best,
        path=_rule(best, past, ahead, at),
        error=errors[best] if errors[best] > least else None,
        last_error=errors["last value"] if errors["last value"] > least else UNKNOWN_SCALE,
    )
