"""What the target's own past says of its future: free, since the target is public, and every answer's yardstick."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]

LEAST_ERROR = 0.02
"""Least forecast error that is believed, on the scale [−1, 1]: a hundredth of the range."""

UNKNOWN_ERROR = 0.125
"""Error assumed where the past is too short to try a forecast on: a sixteenth of the range."""


@dataclass(frozen=True)
class DonorFree:
    """A forecast of the target from its own past, on the scale [−1, 1] but not cut at it, chosen on that past.

    ``error`` is the rule's root mean square error, forecasting the second half of the past from what came before;
    ``last_error`` that of the last value.
    """

    rule: str
    path: Reals
    error: float
    last_error: float


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
    return float(np.sqrt(np.mean(np.concatenate(errors) ** 2))) if errors else UNKNOWN_ERROR


def donor_free(past: Reals, ahead: int) -> DonorFree:
    """Return the forecast of the next ``ahead`` periods; ``past`` has at least one, on the scale [−1, 1]."""
    errors = {name: _tried(name, past, ahead) for name in ("last value", "mean", "trend")}
    best = min(errors, key=errors.__getitem__)
    return DonorFree(
        rule=best,
        path=_rule(best, past, ahead),
        error=max(errors[best], LEAST_ERROR),
        last_error=max(errors["last value"], LEAST_ERROR),
    )
