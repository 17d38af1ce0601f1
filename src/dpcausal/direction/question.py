"""The question of a direction: which of two columns is the cause; and what every way to answer it has in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt

from dpcausal.core import validate as public
from dpcausal.core.method import Method, PlannedCall, TableQuestion
from dpcausal.core.progress import progress
from dpcausal.data.records import Rows
from dpcausal.data.remote_blocks import Parts, WorkerBlocks
from dpcausal.data.schema import Bounded
from dpcausal.data.subgroups.predicate import check_varies
from dpcausal.data.table import Table
from dpcausal.direction.result import Direction
from dpcausal.direction.scores import NAMES
from dpcausal.direction.scores.anm import LEAST_ROWS, Column, Interval
from dpcausal.errors import ParameterError, SchemaError
from dpcausal.mechanisms.blocks import assign_blocks, blocks_moved, equal_blocks, salt_of
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import Loss, PureDP
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Unit

FORCED = "a forced choice: pairs without association favour one side too, and a margin near 0 is no finding"


class Columns(NamedTuple):
    """Both columns, and which rows have both: the others hold the substitute of a missing value."""

    x: Column
    y: Column
    is_complete: npt.NDArray[np.bool_]
    keys: npt.NDArray[np.int64] | None = None
    """Of persons whose ids are private: blocks are assigned by it."""

    def of(self, places: npt.NDArray[np.int64]) -> tuple[Column, Column]:
        whole = places[self.is_complete[places]]
        return self.x[whole], self.y[whole]

    def complete(self) -> tuple[Column, Column]:
        return self.x[self.is_complete], self.y[self.is_complete]


@dataclass(frozen=True)
class Released:
    """What left: the margin in its unit, and what else a method released or makes of it."""

    margin: float | None
    unit: Literal["score", "records", "votes"]
    scores: tuple[float, float] | None = None
    p_sign: float | None = None
    named: bool = True
    verdict: str | None = None
    counts: tuple[int, int, int, int] | None = None
    pvalues: dict[str, float] | None = None
    arrow: float | None = None


@dataclass(frozen=True)
class Pair(TableQuestion[Direction]):
    task: ClassVar[str] = "direction"
    public: ClassVar[tuple[str, ...]] = (
        "the number of rows", "column names and bounds", "the order of the rows", "all arguments", "the seed",
    )  # fmt: skip

    first: str
    second: str
    score: str
    alpha: float
    half: Unit | None = None
    """The unit that the method protects, where that is not the table's."""
    besides: tuple[str, ...] = ()
    """Caveats of the call that it is part of."""

    @classmethod
    def of(
        cls, table: Table, first: str, second: str, score: str | None, alpha: float,
        method: DirectionMethod | None = None,
    ) -> Pair:  # fmt: skip
        public.check_table(table, persons=True)
        for name in (first, second):
            if not isinstance(public.column(table, name, "a direction"), Bounded):
                raise SchemaError(
                    f"column {name!r} has levels: a direction needs two columns declared Bounded; columns of few "
                    "values do not fit the additive noise model, so do not declare such a column again"
                )
        if first == second:
            raise ParameterError("first and second must be two different columns")
        for name in (first, second):
            check_varies(table.inside, name, table.schema.column(name))
        scores, half = (NAMES, None) if method is None else (method.scores, method.half)
        score = scores[0] if score is None else score
        if method is None:
            public.check_choice("score", score, NAMES)
        if half is not None and method is not None and table.unit is not Unit.ROW:
            raise ParameterError(f"method {method.name!r} protects each {half.value}, this table's unit is persons")
        if table.n < LEAST_ROWS:
            raise ParameterError(f"a direction needs at least {LEAST_ROWS} rows, the table has {table.n}")
        return cls(table, first, second, score, public.level(alpha), half)

    @property
    def unit(self) -> Unit:
        return self.half or self.table.unit

    @property
    def related(self) -> tuple[str, str]:
        return self.first, self.second

    @property
    def blocks_moved(self) -> int:
        return blocks_moved(self.unit)

    @property
    def expected(self) -> int:
        return self.table.expected

    @property
    def ranges(self) -> tuple[Interval, Interval]:
        first, second = (cast(Bounded, self.column(name)) for name in self.related)
        return (first.lower, first.upper), (second.lower, second.upper)

    def detail(self) -> dict[str, Any]:
        return {"columns": [self.first, self.second], "score": self.score, "alpha": self.alpha, **self.table.declared}

    def read(self) -> Columns:
        return self.columns_of(self.table.rows([self.first, self.second]))

    def columns_of(self, rows: Rows) -> Columns:
        complete = rows.present[self.first] & rows.present[self.second]
        return Columns(rows.values[self.first], rows.values[self.second], complete, rows.keys)

    def read_blocks(self) -> Columns | WorkerBlocks:
        if not WorkerBlocks.of(self.table.spec):
            return self.read()
        return WorkerBlocks(self.table.spec, (self.first, self.second), self.without_table.columns_of)

    def progress_context(self) -> AbstractContextManager[Any]:
        return progress(1, f"{self.first}, {self.second}")

    def report(
        self, planned: PlannedCall[Pair], released: Released, allotment: CallBudget, seed: int | None
    ) -> Direction:
        caveats = (*planned.caveats, *self.besides)
        # At a margin of exactly 0 the first named column is the cause, a fixed rule.
        is_first = released.margin is not None and released.margin >= 0
        ordered = (self.first, self.second) if is_first else (self.second, self.first)
        cause, effect = ordered if released.named and released.margin is not None else (None, None)
        return Direction(
            verdict=released.verdict, cause=cause, effect=effect,
            favoured=None if released.margin is None else ordered[0], p_sign=released.p_sign,
            margin=released.margin, margin_unit=released.unit, counts=released.counts, p_values=released.pvalues,
            p_arrow=released.arrow, scores=released.scores, score=self.score, method=planned.method.name,
            settings=planned.method.options(), columns=(self.first, self.second), n=self.n, seed=seed,
            alpha=self.alpha, spent=planned.spent, guarantee=self.guarantee(planned, allotment, caveats),
        )  # fmt: skip


def block_answers(
    rows: Columns | WorkerBlocks, blocks: int, width: int, rng: PublicGenerator,
    answers_of: Callable[[tuple[int, ...]], Callable[[Any, Parts], Sequence[Sequence[int]]]], size: int | None = None,
) -> npt.NDArray[np.int64]:  # fmt: skip
    """Return the whole numbers that blocks answer, shape (blocks, width), in memory or where workers hold the rows.
    ``answers_of`` makes of the blocks' public seeds what answers for some of them; ``size`` is that of equal blocks."""
    if isinstance(rows, WorkerBlocks):
        salt = salt_of(rng)
        return rows.each(blocks, salt, width, answers_of(tuple(rng.integers(2**63, size=blocks).tolist())))
    n = len(rows.x)
    parts = assign_blocks(n, blocks, rng, rows.keys) if size is None else equal_blocks(n, blocks, size, rng, rows.keys)
    answers = answers_of(tuple(rng.integers(2**63, size=blocks).tolist()))(rows, list(enumerate(parts)))
    return np.asarray(answers, dtype=np.int64)


class DirectionMethod(Method[Pair]):
    losses: ClassVar[tuple[type[Loss], ...]] = (PureDP,)
    least_epsilon: ClassVar[Fraction] = Fraction(1, 10**9)
    """The ledger's unit; noise for less would pass the largest scale that is drawn."""

    half: ClassVar[Unit | None] = None
    """The unit that it protects, where that is not the table's."""

    scores: ClassVar[tuple[str, ...]]
    """The scores it serves."""

    def caveats(self, question: Pair, loss: Any) -> tuple[str, ...]:
        return (FORCED,)

    def plan(self, question: Pair, loss: Any) -> Self:
        if question.score not in self.scores:
            raise ParameterError(
                f"score {question.score!r} does not go with method {self.name!r}: it takes {', '.join(self.scores)}"
            )
        return self
