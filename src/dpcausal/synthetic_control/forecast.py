"""What a unit's own past says of its future: free for the target, which is public, and every answer's yardstick."""

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
class DonorFree:
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


def _rule(name: str, past: Reals, ahead: int) -> Reals:
    if name == "last value":
        return np.full(ahead, past[-1])
    if name == "mean" or len(past) < 2:
        return np.full(ahead, past.mean())
    t = np.arange(len(past)) - (len(past) - 1) / 2
    slope = float((t * past).sum()) / float((t * t).sum())
    line: Reals = past.mean() + slope * (np.arange(len(past), len(past) + ahead) - (len(past) - 1) / 2)
    return line


def tried(past: Reals, ahead: int) -> tuple[Reals, Reals]:
    """Return each rule's mean squared error on pasts of shape (T0, n), and its forecast of the later mean: (3, n) each.

    Errors are of forecasts of at most ``ahead`` periods from each origin of the second half.  Column by column, each
    unit's from its own past alone, bit for bit.
    """
    start, units = past.shape
    squares, count = np.zeros((3, units)), 0
    level, tilt = np.zeros(units), np.zeros(units)  # Σx and Σtx of what came before the origin
    for origin in range(1, start + 1):
        level = level + past[origin - 1]
        tilt = tilt + past[origin - 1] * float(origin - 1)
        middle = (origin - 1) / 2
        mean = level / origin
        slope = (tilt - level * middle) / max(origin * (origin * origin - 1) / 12, 1.0)
        if max(2, (start + 1) // 2) <= origin:
            for place in range(origin, min(origin + ahead, start)):
                count += 1
                for rule, told in enumerate((past[origin - 1], mean, mean + slope * (place - middle))):
                    missed = told - past[place]
                    squares[rule] += missed * missed
    return squares / max(count, 1), np.array([past[-1], mean, mean + slope * ((start + ahead) / 2)])


def own_means(past: Reals, ahead: int) -> Reals:
    """Return the later mean that each unit's best rule forecasts; ``past`` is (T0, n)."""
    squares, later = tried(past, ahead)
    best = np.argmin(squares, axis=0)
    return np.asarray(later[best, np.arange(past.shape[1])])


def donor_free(past: Reals, ahead: int) -> DonorFree:
    """Return the forecast of the next ``ahead`` periods; ``past`` has at least one, on the scale [−1, 1]."""
    squares, _ = tried((past - past[-1])[:, None], ahead)
    errors = dict(zip(RULES, np.sqrt(squares[:, 0]).tolist(), strict=True))
    best = min(errors, key=errors.__getitem__)
    least = NO_ERROR * float(np.abs(past - past[-1]).max())
    return DonorFree(
        rule=best,
        path=_rule(best, past, ahead),
        error=errors[best] if errors[best] > least else None,
        last_error=errors["last value"] if errors["last value"] > least else UNKNOWN_SCALE,
    )
