"""Units as rows of integers, so that sums are exact in any order and on any engine; forecasts from their own past."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.data.schema import Bounded

FULL = 4096
"""The weight of a donor that counts in full."""
FINE = 4096
"""Steps in the size of the targets' own changes: a donor's value is rounded to one of them."""
LEAST_STEP = 2.0**-40
"""No step is smaller, on the scale [−1, 1]: whole numbers stay exact as floats, far below any change of interest."""
BLOCK = 8192
"""Donors brought into whole numbers at a time."""
RULES = ("last value", "mean", "trend")
UNKNOWN_SCALE = 2.0**-9
"""What a target whose past is flat is taken to vary by, a thousandth of the range: nothing public says more."""
NO_ERROR = 2.0**-30
"""An error is not known if it is no more than this share of how far the past lies from its last value: rounding."""


def to_scale(values: Reals, bounds: Bounded) -> Reals:
    half = bounds.width / 2
    return np.clip((values - bounds.midpoint) / half, -1, 1)


def from_scale(values: Reals, bounds: Bounded) -> Reals:
    return np.clip(bounds.midpoint + bounds.width / 2 * values, bounds.lower, bounds.upper)


@dataclass(frozen=True)
class Grid:
    """Public steps on the scale [−1, 1], of the size of the targets' own changes: no donor and no bound decides it.

    A row is whole numbers of steps less its own last value before ``start``, each at most ``most``: 16 T most² < 2⁶²,
    so squared lengths of rows, and of differences of two, do not overflow.
    """

    step: float
    start: int
    most: int

    @classmethod
    def of(cls, sizes: Sequence[float], start: int, periods: int) -> Grid:
        return cls(max(min(sizes) / FINE, LEAST_STEP), start, math.isqrt((2**62 - 1) // (16 * periods)))

    def rows(self, scaled: Reals) -> Integers:
        whole = np.rint(scaled / self.step).astype(np.int64)
        return np.asarray(np.clip(whole - whole[:, self.start - 1 : self.start], -self.most, self.most))

    def blocks(self, scaled: Reals) -> Iterator[Integers]:
        """Yield the rows, some at a time: all that is made of a row looks at this row alone."""
        for first in range(0, len(scaled), BLOCK):
            yield self.rows(scaled[first : first + BLOCK])


def squared_lengths(rows: Integers) -> Integers:
    return np.asarray((rows * rows).sum(axis=1))


def within_radius(rows: Integers, radius: int) -> Integers:
    """Return rows of length at most ``radius``: longer ones are shrunk onto it and cut towards 0, each by itself.

    ‖row‖² ≤ radius² holds exactly: the factor radius/‖row‖ is lowered by 1e-12, which outweighs its rounding, and
    cutting towards 0 shortens.
    """
    squared = squared_lengths(rows)
    return np.where((squared > radius * radius)[:, None], _shrunk_rows(rows, squared, radius), rows)


def at_length(rows: Integers, length: int) -> Integers:
    """Return the directions of rows: each of at most ``length``, and nearly that; a row of zeros stays."""
    return _shrunk_rows(rows, squared_lengths(rows), length)


def _shrunk_rows(rows: Integers, squared: Integers, length: int) -> Integers:
    factor = length * (1 - 1e-12) / np.sqrt(np.maximum(squared, 1).astype(np.float64))
    return np.trunc(rows * factor[:, None]).astype(np.int64)


def ordered_sums(columns: Sequence[Reals], factors: Sequence[float] | Reals) -> Reals:
    """Return Σ_t factor_t · column_t by single products and additions in this order.

    IEEE arithmetic rounds each correctly, so an entry is the same bits wherever its row stands and on every machine; a
    matrix product is not, its last bits depend on the rows beside.
    """
    total = np.zeros(len(columns[0])) if len(columns) else np.zeros(0)
    for column, factor in zip(columns, factors, strict=True):
        total += column * float(factor)
    return total


@dataclass(frozen=True)
class TargetOnlyForecast:
    """A forecast of the target from its own past, on the scale [−1, 1] but not cut at it, chosen on that past.

    ``error`` is the rule's root mean square error in the second half of the past, ``None`` where it is not known;
    ``last_error`` that of the last value, above 0.
    """

    rule: str
    path: Reals
    error: float | None
    last_error: float

    @property
    def expected(self) -> float:
        """The error that is reckoned with: the last value's where that of the rule is not known."""
        return self.last_error if self.error is None else self.error


def _rule_forecast(name: str, past: Reals, ahead: int, places: Reals) -> Reals:
    if name == "last value":
        return np.full(ahead, past[-1])
    if name == "mean" or len(past) < 2:
        return np.full(ahead, past.mean())
    middle = places[: len(past)].mean()
    t = places[: len(past)] - middle
    slope = float((t * past).sum()) / float((t * t).sum())
    return np.asarray(past.mean() + slope * (places[len(past) : len(past) + ahead] - middle))


def forecast_trials(past: Reals, ahead: int, places: Reals | None = None) -> tuple[Reals, Reals]:
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


def random_walk_error(past: Reals, after: int) -> float:
    """Return how far the mean of that many periods lies from the last value, if a past's steps are a random walk's.

    Of m periods that is √((m + 1)(2m + 1)/(6m)) steps.
    """
    return math.sqrt(float(np.mean(np.diff(past) ** 2)) * (after + 1) * (2 * after + 1) / (6 * after))


def own_means(past: Reals, ahead: int, places: Reals | None = None) -> Reals:
    squares, later = forecast_trials(past, ahead, places)
    best = np.argmin(squares, axis=0)
    return np.asarray(later[best, np.arange(past.shape[1])])


def donor_free(past: Reals, ahead: int, places: Reals | None = None) -> TargetOnlyForecast:
    """Return the forecast of the next ``ahead`` periods; ``past`` has at least one, on the scale [−1, 1]."""
    at = np.arange(len(past) + ahead, dtype=np.float64) if places is None else places
    squares, _ = forecast_trials((past - past[-1])[:, None], ahead, at)
    errors = dict(zip(RULES, np.sqrt(squares[:, 0]).tolist(), strict=True))
    best = min(errors, key=errors.__getitem__)
    least = NO_ERROR * float(np.abs(past - past[-1]).max())
    return TargetOnlyForecast(
        rule=best,
        path=_rule_forecast(best, past, ahead, at),
        error=errors[best] if errors[best] > least else None,
        last_error=errors["last value"] if errors["last value"] > least else UNKNOWN_SCALE,
    )
