"""The question of a test, is x independent of y given z, and the base classes of its methods."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpcausal.arrays import Integers, Reals
from dpcausal.core import validate as public
from dpcausal.core.method import Method, PlannedCall, TableQuestion
from dpcausal.data.records import Rows
from dpcausal.data.schema import Bounded, Column, Levels, Schema
from dpcausal.data.subgroups.predicate import check_varies
from dpcausal.data.table import Table
from dpcausal.errors import Advice, ParameterError, Setting
from dpcausal.independence.result import Independence
from dpcausal.mechanisms.blocks import blocks_moved
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import Loss, PureDP
from dpcausal.privacy.sensitivity import Unit
from dpcausal.regression.smoother import Given


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """The rows of a question: in x and y a number is one column, levels are one indicator each but the first."""

    x: Reals
    y: Reals
    given: Given
    raw: Reals
    """The given columns in the order they were named: numbers in their own unit, levels as codes."""
    is_complete: npt.NDArray[np.bool_]
    """Which rows have all columns; the others hold the substitute of a missing value."""
    keys: Integers | None = None
    """Of persons whose ids are private: blocks are assigned by it, not by position."""

    @property
    def n(self) -> int:
        return len(self.x)

    @property
    def varying(self) -> int:
        """How many rows lie off the most frequent value of a column: the most of those of x and those of y."""
        columns = np.hstack([self.x, self.y]).T
        return self.n - min(int(np.unique(column, return_counts=True)[1].max()) for column in columns)

    @property
    def pair(self) -> tuple[Reals, Reals]:
        """x and y as one number a row each: itself, or the code of its level."""
        x, y = (columns @ np.arange(1.0, columns.shape[1] + 1) for columns in (self.x, self.y))
        return x, y

    @property
    def cells(self) -> Integers:
        cells = np.zeros(self.n, dtype=np.int64)
        for codes, size in zip(self.given.levels.T, self.given.sizes, strict=True):
            cells = cells * size + codes
        return cells

    def at(self, rows: Integers) -> Sample:
        return Sample(self.x[rows], self.y[rows], self.given.at(rows), self.raw[rows], self.is_complete[rows])

    def complete(self) -> Sample:
        return self if self.is_complete.all() else self.at(np.flatnonzero(self.is_complete))


def rows_of(
    columns: Mapping[str, npt.NDArray[Any]], schema: Schema, x: tuple[str, ...], y: tuple[str, ...],
    given: tuple[str, ...], is_complete: npt.NDArray[np.bool_] | None = None,
    keys: Integers | None = None,
) -> Sample:  # fmt: skip
    """Return cleaned columns as the rows of a question; each row by itself."""
    n = len(columns[x[0]])
    levels = {name: len(column) for name in given if isinstance(column := schema[name], Levels)}
    raw = np.stack([columns[name].astype(np.float64) for name in given], axis=1) if given else np.empty((n, 0))
    is_number = np.array([name not in levels for name in given], dtype=np.bool_)
    codes = raw.compress(~is_number, 1).astype(np.int64)
    conditioned = Given(raw.compress(is_number, 1), codes, tuple(levels.values()))
    complete = np.ones(n, dtype=np.bool_) if is_complete is None else is_complete
    sides = [np.hstack([_numeric_column(columns[name], schema[name]) for name in side]) for side in (x, y)]
    return Sample(sides[0], sides[1], conditioned, raw, complete, keys)


def _numeric_column(values: npt.NDArray[Any], declared: Column) -> Reals:
    if isinstance(declared, Bounded):
        return values.astype(np.float64)[:, None]
    others = np.arange(1, max(2, len(declared)))  # of one level: a column of zeros
    return np.asarray(values[:, None] == others, dtype=np.float64)


def width_of(schema: Schema, names: tuple[str, ...]) -> int:
    return sum(max(1, len(column) - 1) if isinstance(column := schema[name], Levels) else 1 for name in names)


ALONE = Advice(
    "rows count as independent: copies of rows, several of one person without ", Setting("person"), ", or people of "
    "one clinic or household who are alike can make a true null look dependent",
)  # fmt: skip

MOST_GIVEN, MOST_ROWS = 200, 10**8

SIGNED = Advice(
    "this test detects a trend: it can miss a U shape, or opposite trends that cancel. Test groups separately (",
    Setting("where"), "), or take gcm-weighted, or hsic if given is empty",
)
"""Said by tests that add up signs."""


@dataclass(frozen=True)
class Released:
    statistic: float
    pvalue: float | None
    rejected: bool | None = None


@dataclass(frozen=True)
class IndependenceQuestion(TableQuestion[Independence]):
    task: ClassVar[str] = "ci_test"
    public: ClassVar[tuple[str, ...]] = (
        "the number of rows", "column names, bounds and levels", "the order of the rows", "all arguments", "the seed",
    )  # fmt: skip

    x: tuple[str, ...]
    y: tuple[str, ...]
    given: tuple[str, ...]
    alpha: float
    besides: tuple[str, ...] = ()
    """Caveats of the call that it is part of."""

    @classmethod
    def of(cls, table: Table, x: object, y: object, given: object, alpha: object) -> IndependenceQuestion:
        public.check_table(table, persons=True)
        named = _checked_names("x", x), _checked_names("y", y), _checked_names("given", given, some=False)
        everything = [name for part in named for name in part]
        if len(set(everything)) < len(everything):
            raise ParameterError("x, y and given must name different columns, each once")
        if len(named[2]) > MOST_GIVEN:
            raise ParameterError(f"given may name at most {MOST_GIVEN} columns")
        for name in everything:
            public.column(table, name, "a test")
        for name in (*named[0], *named[1]):
            check_varies(table.inside, name, table.schema.column(name))
        return cls(table, *named, public.level(alpha))

    @property
    def related(self) -> tuple[str, ...]:
        return (*self.x, *self.y)

    @property
    def blocks_moved(self) -> int:
        return blocks_moved(self.unit)

    @property
    def schema(self) -> Schema:
        return self.table.schema

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.x, *self.y, *self.given)

    @property
    def pairs(self) -> int:
        return width_of(self.schema, self.x) * width_of(self.schema, self.y)

    @property
    def cells(self) -> int:
        return math.prod(len(column) for column in self.declared(self.given) if isinstance(column, Levels))

    @property
    def numbers(self) -> int:
        return sum(isinstance(column, Bounded) for column in self.declared(self.given))

    def declared(self, names: tuple[str, ...]) -> list[Column]:
        return [self.schema[name] for name in names]

    @property
    def tied(self) -> str | None:
        """The first of x and y that has at most two values, by the schema."""
        levels = (name for name in self.related if isinstance(self.schema[name], Levels))
        return next((name for name in levels if width_of(self.schema, (name,)) == 1), None)

    def check_single(self, method: str, least_rows: int, any_levels: bool = False) -> None:
        """Refuse too few rows, and all but one x and one y, each of numbers or of at most two levels."""
        if len(self.x) != 1 or len(self.y) != 1 or (self.pairs != 1 and not any_levels):
            kinds = "" if any_levels else ", of numbers or of two levels"
            raise ParameterError(f"method {method!r} takes one column x and one y{kinds}")
        public.whole("the number of rows", self.n, least_rows, MOST_ROWS)

    def detail(self) -> dict[str, Any]:
        named = {"x": list(self.x), "y": list(self.y), "given": list(self.given)}
        return {"columns": list(self.names), **named, "alpha": self.alpha, **self.table.declared}

    def read(self) -> Sample:
        return self.sample(self.table.rows(self.names))

    def sample(self, rows: Rows) -> Sample:
        return rows_of(rows.values, self.schema, self.x, self.y, self.given, rows.included, rows.keys)

    def report(
        self, planned: PlannedCall[IndependenceQuestion], released: Released, allotment: CallBudget, seed: int | None
    ) -> Independence:
        rejected = released.rejected if released.pvalue is None else released.pvalue <= self.alpha
        caveats = (*planned.caveats, *self.besides, *((ALONE,) if self.unit is Unit.ROW else ()))
        return Independence(
            statistic=released.statistic, pvalue=released.pvalue,
            decision="dependent" if rejected else "not detected", alpha=self.alpha, x=self.x, y=self.y,
            given=self.given, method=planned.method.name, n=self.n, settings=planned.method.options(), seed=seed,
            guarantee=self.guarantee(planned, allotment, caveats),
        )  # fmt: skip


class IndependenceTest(Method[IndependenceQuestion]):
    """One way to test a hypothesis, for a pure ε."""

    losses: ClassVar[tuple[type[Loss], ...]] = (PureDP,)
    least_epsilon: ClassVar[Fraction] = Fraction(1, 10**6)
    releases_pvalue: ClassVar[bool] = True
    """Otherwise a decision only."""

    def approximate_power(self, question: IndependenceQuestion, loss: Any, correlation: float) -> float | None:
        """Return the chance to find a partial correlation of normal columns, or a V of even levels, where it is known.

        For a planned method, from public numbers; ``None`` where it takes simulation.
        """
        return None


def _checked_names(role: str, names: object, some: bool = True) -> tuple[str, ...]:
    listed: Any = (names,) if isinstance(names, str) else names
    if not isinstance(listed, (list, tuple)) or not all(isinstance(name, str) for name in listed):
        raise ParameterError(f"{role} must be a column's name or a list of names")
    if some and not listed:
        raise ParameterError(f"{role} must name at least one column")
    return tuple(listed)
