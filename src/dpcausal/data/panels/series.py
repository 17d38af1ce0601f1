"""The targets' own series and covariates, which are public: which periods count, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.columns import exact_number
from dpcausal.data.panels.matrix import filled
from dpcausal.data.panels.periods import Label, period_label
from dpcausal.data.schema import Bounded
from dpcausal.errors import ParameterError

Reals = NDArray[np.float64]


def place_of(times: tuple[Label, ...], target: Any, start: Any) -> int:
    label = period_label(start)
    if label not in times:
        raise ParameterError(
            f"start of {target!r} must be one of the periods {times[0]} … {times[-1]} that the targets have"
        )
    place = times.index(label)
    if place < 1:
        raise ParameterError(f"start of {target!r} leaves no period before it: the first is {times[0]}")
    return place


def check_target(name: Any, series: Reals, start: int, times: tuple[Label, ...], bounds: Bounded) -> None:
    """Raise where a target's own series, which is public, would be answered wrongly: nothing of it is filled or cut."""
    outside = np.flatnonzero((series < bounds.lower) | (series > bounds.upper))
    if len(outside):
        raise ParameterError(
            f"target {name!r} lies outside the bounds {exact_number(bounds.lower)} to {exact_number(bounds.upper)} in "
            f"{times[outside[0]]}: declare wider bounds"
        )
    absent = np.isnan(series)
    if absent[start:].any():
        first = times[start + int(np.argmax(absent[start:]))]
        raise ParameterError(f"target {name!r} has no value in {first}, which is treated: its effect is unknown there")
    if (left := int((~absent[:start]).sum())) < min(start, 3):
        raise ParameterError(f"target {name!r} has {left} values before its start in {times[start]}, fewer than 3")


def observed_places(
    series: dict[Any, Reals], starts: dict[Any, int], times: tuple[Label, ...]
) -> NDArray[np.int64]:  # fmt: skip
    """Return the places of the periods that count: those that no target misses."""
    absent = {name: np.isnan(values) for name, values in series.items()}
    lacks = np.logical_or.reduce(list(absent.values()))
    for name, start in starts.items():
        if lacks[start:].any():  # then another target lacks it, before its own start
            place = start + int(np.argmax(lacks[start:]))
            other = next(one for one, missing in absent.items() if missing[place])
            raise ParameterError(
                f"target {other!r} has no value in {times[place]}, when {name!r} is treated: ask about {other!r} in a "
                "panel of its own"
            )
    return np.flatnonzero(~lacks)


def own_covariates(name: Any, before: Reals, columns: dict[str, Bounded]) -> Reals:
    """Return a target's means over the periods before its start that have a value, (p,), scaled to [−1, 1]."""
    means = []
    for values, (covariate, column) in zip(before, columns.items(), strict=True):
        seen = np.clip(values[~np.isnan(values)], column.lower, column.upper)
        if not len(seen):
            raise ParameterError(f"target {name!r} has no value of {covariate!r} before its start")
        means.append((seen.mean() - column.midpoint) / (column.width / 2))
    return np.clip(np.array(means, dtype=np.float64), -1, 1)


def covariate_means(blocks: Reals, columns: list[Bounded], before: int, missing: str) -> Reals:
    """Return each unit's means before the start, (units, p), scaled to [−1, 1]; ``blocks`` is (units, p, T)."""
    means = np.empty((len(blocks), len(columns)))
    for place, column in enumerate(columns):
        clean = filled(blocks[:, place, :before], column, missing)
        means[:, place] = (clean.mean(axis=1) - column.midpoint) / (column.width / 2)
    return np.clip(means, -1, 1)
