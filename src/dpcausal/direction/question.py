"""The question of a direction: which of two columns is the cause; and what every way to answer it has in common."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from dpcausal.asking import public
from dpcausal.asking.method import Method, Question, Settled
from dpcausal.data.rows import Rows
from dpcausal.data.schema import Bounded
from dpcausal.data.table import Table
from dpcausal.direction.anm import LEAST_ROWS, Column, Interval
from dpcausal.direction.result import Direction
from dpcausal.direction.scores import NAMES
from dpcausal.errors import LossError, ParameterError, SchemaError
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.call import pure_part
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import ApproxDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.neighbours import Unit
from dpcausal.report import Guarantee

PUBLIC = ("the number of rows", "column names and bounds", "the order of the rows", "all arguments", "the seed")

UNITS = {"everyone": Unit.ROW, "test": Unit.TEST_ROW, "training": Unit.TRAINING_ROW}
"""Whose row the loss speaks of, by ``protect``."""

UNPROTECTED = {
    "test": "the rows of the training half are NOT protected: only the test half is",
    "training": "the rows of the test half are NOT protected: only the training half is",
}
"""The first caveat, by ``protect``."""

NO_PROBABILITY = "no probability can be given for this release; a margin near 0 is no finding"

LEAST_EPSILON = Fraction(1, 10**9)
"""The ledger's unit; noise for less would pass the largest scale that is drawn."""

Spent = TypeVar("Spent", bound=PureDP | ApproxDP)


class Columns(NamedTuple):
    """Both columns, and which rows have both: the others hold what stands in for a missing value."""

    x: Column
    y: Column
    kept: npt.NDArray[np.bool_]

    def complete(self) -> Columns:
        """Return both columns of the rows that have both."""
        return Columns(self.x[self.kept], self.y[self.kept], self.kept[self.kept])


@dataclass(frozen=True)
class Released:
    """What left: the margin in its unit, how sure the noise lets one be, and the scores where they were released.

    ``penalty`` and ``width`` are those of protected regressions, as given or as privately chosen.
    """

    margin: float | None
    unit: Literal["score", "records", "votes"]
    probability: float | None
    scores: tuple[float, float] | None = None
    penalty: float | None = None
    width: float | None = None


@dataclass(frozen=True)
class Pair(Question[Direction]):
    """Which of two columns is the cause, by a score, protecting some rows or all."""

    task: ClassVar[str] = "direction"

    table: Table
    first: str
    second: str
    score: str
    protect: str
    min_probability: float | None
    besides: tuple[str, ...] = ()
    """Caveats of the call that it is part of."""

    @classmethod
    def of(
        cls, table: Table, first: str, second: str, score: str, protect: str, min_probability: float | None
    ) -> Pair:
        """Return the question of checked arguments."""
        public.check_table(table, persons=True)
        for name in (first, second):
            if not isinstance(public.column(table, name, "a direction"), Bounded):
                raise SchemaError(
                    f"column {name!r} has levels: a direction needs two columns declared Bounded; columns of few "
                    "values do not fit the additive noise model, so do not declare such a column anew"
                )
        if first == second:
            raise ParameterError("first and second must be two different columns")
        public.one_of("score", score, NAMES)
        public.one_of("protect", protect, tuple(UNITS))
        if protect != "everyone" and table.unit is not Unit.ROW:
            raise ParameterError(f"protect={protect!r} protects rows of one half: persons need protect='everyone'")
        if min_probability is not None and not (isinstance(min_probability, float) and 0.5 < min_probability < 1):
            raise ParameterError("min_probability must be a float above 0.5 and below 1")
        if table.n < LEAST_ROWS:
            raise ParameterError(f"a direction needs at least {LEAST_ROWS} rows, the table has {table.n}")
        return cls(table, first, second, score, protect, min_probability)

    @property
    def ledger(self) -> Ledger:
        return self.table.ledger

    @property
    def leaves_out(self) -> bool:
        return self.table.missing != "impute"

    @property
    def unit(self) -> Unit:
        return self.table.unit if self.protect == "everyone" else UNITS[self.protect]

    @property
    def n(self) -> int:
        """Number of rows, public."""
        return self.table.n

    @property
    def ranges(self) -> tuple[Interval, Interval]:
        """The public ranges of both columns."""
        first, second = (self.table.schema.column(name) for name in (self.first, self.second))
        if not (isinstance(first, Bounded) and isinstance(second, Bounded)):
            raise SchemaError("a direction needs two columns declared Bounded")
        return (first.lower, first.upper), (second.lower, second.upper)

    def detail(self) -> dict[str, Any]:
        asked = {name: getattr(self, name) for name in ("score", "protect", "min_probability")}
        return {"columns": [self.first, self.second], **asked, **self.table.declared}

    def read(self) -> Columns:
        return self.columns_of(self.table.rows([self.first, self.second]))

    def columns_of(self, rows: Rows) -> Columns:
        """Return the pair's columns of rows that may have more."""
        return Columns(rows.values[self.first], rows.values[self.second], rows.kept_by([self.first, self.second]))

    def report(
        self, settled: Settled[Pair], released: Released, allotment: Allotment, seed: int | None
    ) -> Direction:
        caveats = (*settled.caveats, *self.besides)
        sure = released.probability
        if not settled.exactly:
            unsaid = () if settled.method.gives_probability(self) else (NO_PROBABILITY,)  # type: ignore[attr-defined]
            caveats = (*filter(None, (UNPROTECTED.get(self.protect),)), *caveats, *unsaid)
        least = None if settled.exactly else self.min_probability
        is_open = released.margin is None or (least is not None and (sure is None or sure < least))
        # At a margin of exactly 0 the first named column is the cause, a fixed rule.
        is_first = released.margin is not None and released.margin >= 0
        cause, effect = (self.first, self.second) if is_first else (self.second, self.first)
        return Direction(
            cause=None if is_open else cause,
            effect=None if is_open else effect,
            margin=released.margin,
            margin_unit=released.unit,
            probability_correct=sure,
            scores=released.scores,
            score=self.score,
            protect=self.protect,
            method=settled.method.name,
            settings=settled.method.options(),
            columns=(self.first, self.second),
            n=self.n,
            seed=seed,
            min_probability=self.min_probability,
            spent=settled.spent,
            guarantee=Guarantee.of(allotment, proofs=settled.claims, caveats=caveats, public=self.table.told(PUBLIC)),
            penalty=released.penalty,
            width=released.width,
        )


class DirectionMethod(Method[Pair, Spent]):
    """One way to release a direction."""

    protect: ClassVar[str]
    """Whose rows it protects."""

    scores: ClassVar[tuple[str, ...]]
    """The scores it serves."""

    def gives_probability(self, question: Pair) -> bool:
        """Return whether a release says how sure the noise lets one be."""
        return True

    def settle(self, question: Pair, spent: Spent | NoPrivacy) -> Self:
        """Refuse a question that it does not answer."""
        if question.protect != self.protect:
            raise ParameterError(f"method {self.name!r} goes with protect={self.protect!r}")
        if question.score not in self.scores:
            why = "" if question.score in ("iqr", "kendall", "spearman") else ", for want of a bounded sensitivity"
            raise ParameterError(
                f"score={question.score!r} does not go with method {self.name!r} and protect={self.protect!r}{why}: it "
                f"takes {', '.join(self.scores)}"
            )
        if question.min_probability is not None and not self.gives_probability(question):
            # Below any threshold for want of a number: the budget would go for an answer that cannot come.
            raise ParameterError("min_probability needs a probability: this release is made without one")
        return self


def pay_pure(loss: Loss, name: str) -> tuple[PureDP | NoPrivacy, str]:
    """Return what a method that is paid for in pure ε spends, and a note."""
    spent, note = pure_part(loss, f"method {name!r}")
    public.check_least(spent, "a direction", LEAST_EPSILON)
    return spent, note


def pay_with_delta(loss: Loss, name: str) -> tuple[ApproxDP, str]:
    """Return what a method that needs δ spends."""
    if not (isinstance(loss, ApproxDP) and loss.exact_delta > 0):
        raise LossError(f"method {name!r} is paid for in ApproxDP with delta above 0, one answer a call")
    public.check_least(loss, "a direction", LEAST_EPSILON)
    return loss, ""
