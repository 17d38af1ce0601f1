"""What the target's own past says of its future: free, since the target is public, and every answer's yardstick."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]

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
    slope = float(t @ past) / float(t @ t)
    line: Reals = past.mean() + slope * (np.arange(len(past), len(past) + ahead) - (len(past) - 1) / 2)
    return line


def _tried(name: str, past: Reals, ahead: int) -> float:
    """Return the error of a rule over forecasts of at most ``ahead`` periods from each origin of the second half."""
    first = max(2, (len(past) + 1) // 2)
    errors = [
        _rule(name, past[:origin], len(past[origin : origin + ahead])) - past[origin : origin + ahead]
        for origin in range(first, len(past))
    ]
    return float(np.sqrt(np.mean(np.concatenate(errors) ** 2))) if errors else 0.0


def donor_free(past: Reals, ahead: int) -> DonorFree:
    """Return the forecast of the next ``ahead`` periods; ``past`` has at least one, on the scale [−1, 1]."""
    errors = {name: _tried(name, past, ahead) for name in ("last value", "mean", "trend")}
    best = min(errors, key=errors.__getitem__)
    least = NO_ERROR * float(np.abs(past - past[-1]).max())
    return DonorFree(
        rule=best,
        path=_rule(best, past, ahead),
        error=errors[best] if errors[best] > least else None,
        last_error=errors["last value"] if errors["last value"] > least else UNKNOWN_SCALE,
    )
