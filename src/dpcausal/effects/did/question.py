"""The question of ``did``: persons, each a whole path through the periods, and when each was first treated."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpcausal.arrays import Integers, Reals
from dpcausal.core import validate as public
from dpcausal.core.method import PlannedCall, TableQuestion
from dpcausal.data.coding import size_of
from dpcausal.data.panels.periods import levels_in_order, scale_of
from dpcausal.data.records import Rows
from dpcausal.data.schema import Bounded, Column, Levels
from dpcausal.data.subgroups.predicate import check_varies, codes_within
from dpcausal.effects.did.release import NEVER_AS_OTHER, NoisyPaths
from dpcausal.effects.did.result import GroupTimeEffects
from dpcausal.errors import ParameterError, SchemaError, Setting
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.sensitivity import Unit

Label = str | int | bool

MOST_PERIODS, MOST_COVARIATES = 40, 20

WHOLE_PATHS = (
    "persons without an outcome in every period are left out, and persons with two cohorts; several rows of a person "
    "in one period count as their mean"
)
FIRST_VALUES = (
    "covariates count by their value in the first period, which treatment cannot have changed; persons without one in "
    "any period are left out"
)


@dataclass(frozen=True)
class Cohorts:
    """Periods in order of time, cohorts in declared order, those that the subgroup leaves, and their codes.

    ``starts`` has the place of each cohort's first treated period: 0 if there is no period before it, −1 for never.
    ``notes`` say how the periods are ordered, and how cohorts count that are no period.
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
    labels = [periods.labels[code] for code in time_codes]
    order, scale = levels_in_order(time, labels)
    labels = [labels[place] for place in order]
    untreated = None if never is None else never_levels(never, cohort, groups)
    named = [groups.labels[code] for code in cohort_codes]
    start_of = {one: _start(one, labels, scale, one in (untreated or ())) for one in named}
    strange = [one for one in named if start_of[one] is None]
    spelled = [one for one in strange if scale_of(one) is not None or _spelling(one) in map(_spelling, labels)]
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
    own, places = scale_of(one), [scale_of(label) for label in labels]
    if own is None or own[0] != scale:
        return None
    return next((place for place, other in enumerate(places) if other is not None and other >= own), -1)


def _notes(
    cohort: str, labels: list[Label], scale: str, named: list[Label], starts: tuple[int, ...]
) -> tuple[str, ...]:
    by = f"in order of their {scale}s" if scale else "in the declared order of their names"
    notes = [f"periods {by}: {labels[0]} to {labels[-1]}"]
    for one, start in zip(named, starts, strict=True):
        exact = start >= 0 and (str(labels[start]) == str(one) or scale_of(labels[start]) == scale_of(one) is not None)
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
    if isinstance(never, (str, bytes)) or not isinstance(never, Iterable):
        raise ParameterError("never must be a list of levels")
    codes = [groups.code_named(one) for one in never]
    if None in codes:
        raise ParameterError(f"never must list levels of {cohort!r}: {', '.join(map(str, groups.labels))}")
    return tuple(label for code, label in enumerate(groups.labels) if code in codes)


def _spelling(label: Label) -> str:
    return re.sub(r"\W|_", "", str(label)).casefold()


@dataclass(frozen=True)
class DidQuestion(TableQuestion[GroupTimeEffects]):
    task: ClassVar[str] = "did"
    left_out: ClassVar[str] = WHOLE_PATHS

    time: str
    outcome: str
    cohort: str
    control: str
    coverage: float
    never: tuple[Label, ...] | None
    design: Cohorts
    bounds: Bounded
    adjust: tuple[str, ...] | None = None
    squares: bool | None = None

    @classmethod
    def of(
        cls, table: Any, time: Any, outcome: Any, cohort: Any, control: Any, coverage: Any, never: Any = None,
        adjust: Any = None, cluster: Any = None, squares: Any = None,
    ) -> DidQuestion:  # fmt: skip
        public.check_table(table, persons=True, weights=True)
        if table.unit is Unit.ROW:
            hint = "make the table with ", Setting("person"), ", the column of person IDs"
            raise ParameterError("did follows persons over time", argument="table", rule="persons", hint=hint)
        if table.missing != "drop":
            whole = "make the table with ", Setting("missing", "drop")
            raise ParameterError("did uses persons with complete paths", argument="table", rule="missing", hint=whole)
        periods, sums, starts = (public.column(table, name, "did") for name in (time, outcome, cohort))
        adjusted = public.names("adjust", () if adjust is None else adjust)
        if len({time, outcome, cohort, *adjusted}) < 3 + len(adjusted):
            raise ParameterError("time, outcome, cohort and adjust must be different columns")
        for name in adjusted:
            check_varies((), name, public.column(table, name, "did"))
        curved = None if squares is None else public.flag("squares", squares)
        if sum(_width(public.column(table, name, "did"), bool(curved)) for name in adjusted) > MOST_COVARIATES:
            text = f"did adjusts for at most {MOST_COVARIATES} numbers, squares and levels"
            raise ParameterError(text, argument="adjust", rule="columns")
        if not isinstance(periods, Levels) or not isinstance(starts, Levels) or not isinstance(sums, Bounded):
            raise SchemaError("did needs time and cohort declared with levels, and an outcome with bounds")
        left = (codes_within(table.inside, name, len(one)) for name, one in ((time, periods), (cohort, starts)))
        in_time, in_cohorts = left
        if not 2 <= len(in_time) <= MOST_PERIODS or len(in_cohorts) < 2:
            raise ParameterError(f"did needs 2 to {MOST_PERIODS} periods, the levels of time, and 2 cohorts")
        chosen = public.check_choice("control", control, ("never", "not-yet"))
        design = cohorts_of(time, periods, in_time, cohort, starts, in_cohorts, never)
        later = [start for start in design.starts if start > 0]
        if not later:
            raise ParameterError(
                f"no level of {cohort!r} is a period after the first: a cohort is named by its first treated period"
            )
        if -1 not in design.starts and (chosen == "never" or len(set(later)) < 2):
            raise ParameterError(
                "no level of the cohort means never treated", argument="cohort", rule="never-treated", value=cohort,
                hint=("name it with ", Setting("never"), "; or, if a missing value means never treated, declare ",
                      NEVER_AS_OTHER, "; or, where several cohorts are treated, use ",
                      Setting("control", "not-yet")),
            )  # fmt: skip
        if cluster is not None:
            if adjusted:
                text = "an interval by clusters is not offered with covariates"
                raise ParameterError(text, argument="cluster", rule="adjusted", value=cluster)
            table = table.clustered_by(cluster)
        within = public.number("coverage", coverage, 0.5, 0.999)
        named = None if never is None else never_levels(never, cohort, starts)
        return cls(table, time, outcome, cohort, chosen, within, named, design, sums, adjusted or None, curved)

    @property
    def names(self) -> tuple[str, ...]:
        return self.time, self.outcome, self.cohort, *(self.adjust or ())

    def covariates(self, squares: bool) -> int:
        """Return the number of columns: of a number, of its square, and of each level but the first."""
        return sum(_width(self.column(name), squares) for name in self.adjust or ())

    @property
    def caveats(self) -> tuple[str, ...]:
        return (*super().caveats, *self.design.notes, *((FIRST_VALUES,) if self.adjust else ()))

    @property
    def outcomes(self) -> tuple[str, ...]:
        return (self.outcome,)

    def detail(self) -> dict[str, Any]:
        adjusted: dict[str, Any] = {"adjust": list(self.adjust)} if self.adjust else {}
        adjusted |= {} if self.squares is None else {"squares": self.squares}
        return {"time": self.time, "outcome": self.outcome, "cohort": self.cohort, **adjusted, **self.table.declared}

    def steps(self, with_squares: bool) -> tuple[Reals, Reals, Integers, Rows]:
        """Return each person's steps from period to period and covariates on [−1, 1], cohort, and whether the path is
        whole.

        A person counts who has an outcome in every period and one cohort; of several rows in a period, their mean.
        Covariates are those of the first period.  A weight is the mean of the person's own.
        """
        n, T = self.table.n, len(self.design.times)
        rows = self.table.parts(self.names)
        owners = np.arange(rows.n) if rows.owners is None else rows.owners
        of_time, of_cohort = (
            _places(self.column(name), codes)
            for name, codes in ((self.time, self.design.time_codes), (self.cohort, self.design.cohort_codes))
        )
        at = (owners * T + of_time[rows.values[self.time]])[rows.included]
        counts = np.bincount(at, minlength=n * T).reshape(n, T)
        levels = np.bincount(at, rows.values[self.outcome][rows.included], n * T).reshape(n, T) / np.maximum(counts, 1)
        codes = of_cohort[rows.values[self.cohort]][rows.included]
        sums, squares = (np.bincount(owners[rows.included], codes**power, n) for power in (1, 2))
        number = np.maximum(counts.sum(axis=1), 1)
        # All codes of a person are one: (Σ g)² = m Σ g² in whole numbers, and only then.
        complete = (counts > 0).all(axis=1) & (sums**2 == number * squares)
        steps = np.diff(levels, axis=1) / self.bounds.width
        cohorts = np.where(complete, sums // number, 0).astype(np.int64)
        weights = None
        if self.table.weighed and rows.weights is not None:
            weights = np.minimum(np.bincount(owners[rows.included], rows.weights[rows.included], n), 1.0)
        groups = None
        if rows.groups is not None:  # of a person in several clusters the last group
            groups = np.zeros(n, dtype=np.int64)
            np.maximum.at(groups, owners[rows.included], rows.groups[rows.included])
        early = rows.included & (of_time[rows.values[self.time]] == 0)
        own = [
            np.bincount(owners[early], value[early], n) / np.maximum(counts[:, 0], 1)
            for name in self.adjust or ()
            for value in _on_range(rows.values[name], self.column(name), with_squares)
        ]  # fmt: skip
        covariates = np.stack(own, axis=1) if own else np.zeros((n, 0))
        steps, covariates = (np.where(complete[:, None], np.clip(one, -1.0, 1.0), 0.0) for one in (steps, covariates))
        return steps, covariates, cohorts, Rows({}, complete, {}, weights=weights, groups=groups)

    def report(
        self, planned: PlannedCall[Any], released: NoisyPaths, allotment: CallBudget, seed: int | None
    ) -> GroupTimeEffects:
        return released.under(self.guarantee(planned, allotment)).did(control=self.control, coverage=self.coverage)


def _width(column: Column, squares: bool) -> int:
    return 1 + squares if isinstance(column, Bounded) else size_of(column) - 1


def _on_range(values: npt.NDArray[Any], column: Column, squares: bool) -> list[Reals]:
    if isinstance(column, Bounded):
        number = (values - column.midpoint) / (column.width / 2)
        return [number, 2 * number * number - 1] if squares else [number]
    return [np.where(values == code, 1.0, -1.0) for code in range(1, size_of(column))]


def _places(column: Column, codes: tuple[int, ...]) -> Integers:
    places = np.zeros(size_of(column), dtype=np.int64)
    places[list(codes)] = range(len(codes))
    return places
