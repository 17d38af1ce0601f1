"""Periods in order, and when each cohort was first treated among them: from declared levels alone, all public."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dpcausal.data.columns import Levels
from dpcausal.data.panels.period_scale import in_order, place_of
from dpcausal.errors import ParameterError, Setting

Label = str | int | bool


@dataclass(frozen=True)
class Cohorts:
    """Which period is where in time, and where each cohort starts.

    Attributes
    ----------
    times, cohorts : tuple of str
        Periods in order of time; cohorts in declared order: those that the subgroup leaves.
    time_codes, cohort_codes : tuple of int
        Codes of their levels.
    starts : tuple of int
        The place of each cohort's first treated period; 0 if there is no period before it, −1 for never.
    notes : tuple of str
        How the periods are ordered, and how cohorts count that are no period.
    """

    times: tuple[str, ...]
    time_codes: tuple[int, ...]
    cohorts: tuple[str, ...]
    cohort_codes: tuple[int, ...]
    starts: tuple[int, ...]
    notes: tuple[str, ...]


def cohorts_of(
    time: str, periods: Levels, time_codes: tuple[int, ...], cohort: str, groups: Levels,
    cohort_codes: tuple[int, ...], never: Iterable[Label] | None,
) -> Cohorts:  # fmt: skip
    """Return when each cohort starts; refuse levels that could mean two things."""
    labels = [periods.labels[code] for code in time_codes]
    order, scale = in_order(time, labels)
    labels = [labels[place] for place in order]
    untreated = None if never is None else never_levels(never, cohort, groups)
    named = [groups.labels[code] for code in cohort_codes]
    start_of = {one: _start(one, labels, scale, one in (untreated or ())) for one in named}
    strange = [one for one in named if start_of[one] is None]
    spelled = [
        one for one in strange if place_of(one) is not None or _strip_traceback(one) in map(_strip_traceback, labels)
    ]
    if spelled or (strange and untreated is not None) or len(strange) > 1:
        wrong = ", ".join(map(repr, spelled or strange))
        raise ParameterError(
            f"levels of {cohort!r} are no period of {time!r}: {wrong}. A cohort is named by its first treated period",
            argument="cohort", rule="cohort-levels", value=cohort,
            hint=("list the levels that mean never treated with ", Setting("never")),
        )  # fmt: skip
    starts = tuple(-1 if start_of[one] is None else int(start_of[one] or 0) for one in named)
    return Cohorts(
        tuple(map(str, labels)), tuple(time_codes[place] for place in order), tuple(map(str, named)), cohort_codes,
        starts, _notes(cohort, labels, scale, named, starts),
    )  # fmt: skip


def _start(one: Label, labels: list[Label], scale: str, untreated: bool) -> int | None:
    if untreated:
        return -1
    if not scale:
        return labels.index(one) if one in labels else next(
            (place for place, label in enumerate(labels) if str(label) == str(one)), None
        )  # fmt: skip
    own, places = place_of(one), [place_of(label) for label in labels]
    if own is None or own[0] != scale:
        return None
    return next((place for place, other in enumerate(places) if other is not None and other >= own), -1)


def _notes(
    cohort: str, labels: list[Label], scale: str, named: list[Label], starts: tuple[int, ...]
) -> tuple[str, ...]:
    by = f"in order of their {scale}s" if scale else "in the declared order of their names"
    notes = [f"periods {by}: {labels[0]} to {labels[-1]}"]
    for one, start in zip(named, starts, strict=True):
        exact = start >= 0 and (str(labels[start]) == str(one) or place_of(labels[start]) == place_of(one) is not None)
        if start == -1:
            notes.append(f"{cohort} = {one} counts as never treated within these periods")
        elif start == 0:
            before = "in the first period" if exact else "before the first period"
            notes.append(f"{cohort} = {one} was treated {before}: these persons are not compared")
        elif not exact:
            notes.append(
                f"{cohort} = {one} lies between two periods: treated from {labels[start]}, the first period after it"
            )
    return tuple(notes)


def never_levels(never: Iterable[Label], cohort: str, groups: Levels) -> tuple[Label, ...]:
    """Return the levels that a list names, in declared order."""
    if isinstance(never, (str, bytes)) or not isinstance(never, Iterable):
        raise ParameterError("never must be a list of levels")
    codes = [groups.code_named(one) for one in never]
    if None in codes:
        raise ParameterError(f"never must list levels of {cohort!r}: {', '.join(map(str, groups.labels))}")
    return tuple(label for code, label in enumerate(groups.labels) if code in codes)


def _strip_traceback(label: Label) -> str:
    return re.sub(r"\W|_", "", str(label)).casefold()
