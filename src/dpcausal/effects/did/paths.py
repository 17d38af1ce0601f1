"""The question of ``did``: persons, each a whole path through the periods, and when each was first treated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpcausal.core import validate as public
from dpcausal.core.method import PlannedCall, TableQuestion
from dpcausal.data.coding import size_of
from dpcausal.data.records import Rows
from dpcausal.data.schema import Bounded, Column, Levels
from dpcausal.data.subgroups.predicate import codes_within
from dpcausal.effects.did.cohorts import Cohorts, Label, cohorts_of, never_levels
from dpcausal.effects.did.release import GroupTimeEffects, NoisyPaths
from dpcausal.errors import ParameterError, SchemaError, Setting
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.sensitivity import Unit

Reals = npt.NDArray[np.float64]

MOST_PERIODS = 40

WHOLE_PATHS = (
    "persons without an outcome in every period are left out, and persons with two cohorts; several rows of a person "
    "in one period count as their mean"
)

@dataclass(frozen=True)
class DidQuestion(TableQuestion[GroupTimeEffects]):
    """The outcome of persons through periods, by the period in which each was first treated."""

    task: ClassVar[str] = "did"

    time: str
    outcome: str
    cohort: str
    control: str
    coverage: float
    never: tuple[Label, ...] | None
    design: Cohorts
    bounds: Bounded

    @classmethod
    def of(
        cls, table: Any, time: Any, outcome: Any, cohort: Any, control: Any, coverage: Any, never: Any = None
    ) -> DidQuestion:
        """Return the question of checked arguments."""
        public.check_table(table, persons=True, weights=True)
        if table.unit is Unit.ROW:
            hint = "make the table with ", Setting("person"), ", the column of person IDs"
            raise ParameterError("did follows persons over time", argument="table", rule="persons", hint=hint)
        if table.missing != "drop":
            whole = "make the table with ", Setting("missing", "drop")
            raise ParameterError("did uses persons with complete paths", argument="table", rule="missing", hint=whole)
        periods, sums, starts = (public.column(table, name, "did") for name in (time, outcome, cohort))
        if len({time, outcome, cohort}) < 3:
            raise ParameterError("time, outcome and cohort must be different columns")
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
                hint=("name it with ", Setting("never"), "; or declare a level for other values, so that "
                      "a missing value counts as never; or, where several cohorts are treated, use ",
                      Setting("control", "not-yet")),
            )  # fmt: skip
        within = public.number("coverage", coverage, 0.5, 0.999)
        named = None if never is None else never_levels(never, cohort, starts)
        return cls(table, time, outcome, cohort, chosen, within, named, design, sums)

    @property
    def names(self) -> tuple[str, ...]:
        return self.time, self.outcome, self.cohort

    @property
    def times(self) -> tuple[str, ...]:
        """The periods in order."""
        return self.design.times

    @property
    def cohorts(self) -> tuple[str, ...]:
        return self.design.cohorts

    @property
    def caveats(self) -> tuple[str, ...]:
        return (*super().caveats, *self.design.notes, WHOLE_PATHS)

    @property
    def outcomes(self) -> tuple[str, ...]:
        return (self.outcome,)

    def detail(self) -> dict[str, Any]:
        return {"time": self.time, "outcome": self.outcome, "cohort": self.cohort, **self.table.declared}

    def steps(self) -> tuple[Reals, npt.NDArray[np.int64], Rows]:
        """Return each person's steps from period to period on [−1, 1], cohort, and whether the path is whole.

        A person counts who has an outcome in every period and one cohort; of several rows in a period, their mean.  A
        weight is the mean of the person's own.
        """
        n, T = self.table.n, len(self.times)
        rows = self.table.parts(self.names)
        owners = np.arange(rows.n) if rows.owners is None else rows.owners
        of_time, of_cohort = (
            _places(self.column(name), codes)
            for name, codes in ((self.time, self.design.time_codes), (self.cohort, self.design.cohort_codes))
        )
        at = (owners * T + of_time[rows.values[self.time]])[rows.kept]
        counts = np.bincount(at, minlength=n * T).reshape(n, T)
        levels = np.bincount(at, rows.values[self.outcome][rows.kept], n * T).reshape(n, T) / np.maximum(counts, 1)
        codes = of_cohort[rows.values[self.cohort]][rows.kept]
        own, squares = (np.bincount(owners[rows.kept], codes**power, n) for power in (1, 2))
        number = np.maximum(counts.sum(axis=1), 1)
        # All codes of a person are one: (Σ g)² = m Σ g² in whole numbers, and only then.
        complete = (counts > 0).all(axis=1) & (own**2 == number * squares)
        steps = np.clip(np.diff(levels, axis=1) / self.bounds.width, -1.0, 1.0)
        cohorts = np.where(complete, own // number, 0).astype(np.int64)
        weights = None
        if self.table.weighed and rows.weights is not None:
            part = self.table.declared.get("max_rows_per_person", number) / number
            weights = np.minimum(np.bincount(owners[rows.kept], rows.weights[rows.kept], n) * part, 1.0)
        return np.where(complete[:, None], steps, 0.0), cohorts, Rows({}, complete, {}, weights=weights)

    def report(
        self, planned: PlannedCall[Any], released: NoisyPaths, allotment: CallBudget, seed: int | None
    ) -> GroupTimeEffects:
        return released.under(self.guarantee(planned, allotment)).did(control=self.control, coverage=self.coverage)


def _places(column: Column, codes: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Return the place of each code of a column of levels; no row of the subgroup has a code that has none."""
    places = np.zeros(size_of(column), dtype=np.int64)
    places[list(codes)] = range(len(codes))
    return places
