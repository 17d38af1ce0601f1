"""The two halves of every call: a question, which is public, and a method, which is an object with its own options.

A method is a frozen dataclass.  Its fields are its options, and the ledger's entry, the result's settings, the
command's options and the tests' registry are read off them.  Planned, it is the plan: nothing about how the call runs
stands anywhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Generic, Self, TypeVar

from dpcausal.data.remote_blocks import PublicTableInfo
from dpcausal.data.schema import Bounded, Column
from dpcausal.data.table import Table
from dpcausal.errors import CallError, ParameterError, nearest
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.checks import charged_loss
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import ZCDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Unit
from dpcausal.result import IMPUTED, Guarantee

Answer = TypeVar("Answer")
QuestionType = TypeVar("QuestionType", bound="Question[Any]")


class Question(ABC, Generic[Answer]):
    task: ClassVar[str]
    """The word for it in the ledger."""

    @property
    @abstractmethod
    def ledger(self) -> Ledger:
        """Who pays; asked for just before the spend."""

    @property
    def unit(self) -> Unit:
        return Unit.ROW

    @property
    def unit_column(self) -> str:
        return ""

    @property
    def drops_missing(self) -> bool:
        return False

    @abstractmethod
    def detail(self) -> dict[str, Any]:
        """Return what the ledger's entry says of it: public arguments."""

    @property
    def caveats(self) -> tuple[str, ...]:
        return ()

    @property
    def once_per_ledger(self) -> dict[str, Any]:
        return {}

    @abstractmethod
    def read(self) -> Any:
        """Bring the private rows, after the spend."""

    @abstractmethod
    def report(self, planned: PlannedCall[Any], released: Any, allotment: CallBudget, seed: int | None) -> Answer:
        """Return the result of what was released."""

    def progress_context(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def finalize(self, answer: Any) -> Answer:
        return answer  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Run(Generic[QuestionType]):
    """One run of a method, after the charge: the one object through which it sees private rows. ``loss`` is what was
    charged, ``NoPrivacy`` for the exact answer; ``rng`` draws public randomness, ``None`` for a method that uses none;
    ``data`` is *private*.  A run does not leave its process, as its budget does not."""

    question: QuestionType
    loss: Any
    budget: CallBudget
    rng: Any
    data: Any = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Method(ABC, Generic[QuestionType]):
    """One way to answer a question, with its options as fields; ``None`` means a public rule.

    ``release`` is total: nothing in it may fail or warn for a reason that lies in a value.
    """

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        known = [field.name for field in fields(cls)]
        unknown = next((name for name in options if name not in known), None)
        if arguments or unknown is not None:
            meant = f"{unknown!r}{nearest(unknown, known)}"
            problem = "takes its options by name" if arguments else f"has no option {meant}"
            raise CallError(f"{cls.__name__} {problem}: {', '.join(f'{name}=...' for name in known) or 'it has none'}")
        return super().__new__(cls)

    name: ClassVar[str]
    """Its short name, as ``method=`` takes it and the result shows it."""

    about: ClassVar[str]
    """What it does, in a few words."""

    supports_missing: ClassVar[bool] = False
    """Whether a record that has a missing value contributes nothing to its answer.

    Proved, and tested, for each method.
    """

    allows_private_ids: ClassVar[bool] = False
    """Whether it is proved where a replaced person may have another id: symmetric, or assigned to blocks by hash."""

    needs_rows_in_memory: ClassVar[bool] = True
    """Whether it needs all rows in memory; otherwise it sums over them, wherever they are."""

    uses_public_randomness: ClassVar[bool] = True
    """Whether it draws public random numbers, for blocks, splits, features or copies.

    Their seed is public and in the result.
    """

    supports_no_privacy: ClassVar[bool] = False
    """Whether ``release`` gives the exact answer where ``NoPrivacy`` was charged."""

    losses: ClassVar[tuple[type[Loss], ...]] = ()
    """The kinds of loss that it spends, besides ``NoPrivacy``; see ``charged_loss``."""

    least_epsilon: ClassVar[Fraction] = Fraction(0)
    """The smallest ε at which an answer is more than noise."""

    proofs: ClassVar[tuple[str, ...]] = ()
    """The claims that every release relies on; ``proofs_of`` adds those that depend on the question or the loss."""

    def charge(self, loss: Loss, question: QuestionType) -> tuple[Any, str]:
        """Return what is spent of a loss and a note; refuse a kind that it cannot spend."""
        if isinstance(loss, NoPrivacy) and not self.supports_no_privacy:
            raise ParameterError(f"method {self.name} has no form without privacy")
        return charged_loss(loss, self.losses, f"method {self.name!r}", self.least_epsilon)

    def plan(self, question: QuestionType, loss: Any) -> Self:
        """Return the method with its options checked and filled, from public numbers."""
        return self

    def needs_all_rows(self, question: QuestionType) -> bool:
        """Return whether it needs all rows in memory at once, in one order."""
        return self.needs_rows_in_memory

    def proofs_of(self, question: QuestionType, loss: Any) -> tuple[str, ...]:
        """Return the claims that a release relies on; noise on integers is geometric for ε, Gaussian for ρ."""
        if self.losses != (PureDP, ZCDP):
            return self.proofs
        return (*self.proofs, "gaussian" if isinstance(loss, ZCDP) else "geometric")

    def caveats(self, question: QuestionType, loss: Any) -> tuple[str, ...]:
        """Return what public numbers say against an answer, in words."""
        return ()

    @property
    def unproven(self) -> str:
        """What in it has no valid proof, in words; empty otherwise."""
        return ""

    def load(self) -> None:
        """Import or compile, before the spend, what a release needs beside what all calls need."""

    def read(self, question: QuestionType) -> Any:
        """Bring the private rows that a release needs, after the spend."""
        return question.read()

    @abstractmethod
    def release(self, run: Run[QuestionType]) -> Any:
        """Release the answer; the exact one where ``NoPrivacy`` was charged."""

    def options(self) -> dict[str, Any]:
        """Return its options as plain values: a method inside by its name and options, another object by its kind."""
        return {field.name: _plain_option(getattr(self, field.name)) for field in fields(self)}


class SumsOverRows:
    """What holds of a method that releases sums over rows alone: no row's place counts, and no public coin is drawn."""

    supports_missing: ClassVar[bool] = True
    allows_private_ids: ClassVar[bool] = True
    needs_rows_in_memory: ClassVar[bool] = False
    uses_public_randomness: ClassVar[bool] = False
    supports_no_privacy: ClassVar[bool] = True


@dataclass(frozen=True)
class PlannedCall(Generic[QuestionType]):
    question: QuestionType
    method: Method[QuestionType]
    spent: Any
    note: str = ""
    """What was not spent of the loss, in words."""

    def about(self, subject: Any) -> Self:
        name = "panel" if hasattr(self.question, "panel") else "table"
        question: Any = self.question
        return replace(self, question=replace(question, **{name: subject}))

    @property
    def exactly(self) -> bool:
        return bool(self.spent.exact)

    @property
    def proofs(self) -> tuple[str, ...]:
        return () if self.exactly or self.method.unproven else self.method.proofs_of(self.question, self.spent)

    @property
    def caveats(self) -> tuple[str, ...]:
        texts = (self.note, *self.method.caveats(self.question, self.spent), *self.question.caveats)
        return tuple(caveat for caveat in texts if caveat)

    def detail(self) -> dict[str, Any]:
        return {**self.question.detail(), "method": self.method.name, **self.method.options()}

    def read(self) -> Any:
        return self.question.read() if self.exactly else self.method.read(self.question)

    def released(self, data: Any, rng: Any, budget: CallBudget) -> Callable[[], Any]:
        return partial(self.method.release, Run(self.question, self.spent, budget, rng, data))


def _plain_option(value: Any) -> Any:
    if isinstance(value, Method):
        return {"method": value.name, **value.options()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return [_plain_option(part) for part in value] if isinstance(value, (list, tuple)) else type(value).__name__


@dataclass(frozen=True)
class TableQuestion(Question[Answer]):
    public: ClassVar[tuple[str, ...]] = ("the number of rows", "column names, levels, bounds and cuts", "all arguments")
    """What an answer takes as public, in words."""
    left_out: ClassVar[str] = "records with a missing value of a column that is used are left out"
    """Who has no part where values are missing, in words."""

    table: Table

    @property
    def ledger(self) -> Ledger:
        return self.table.ledger

    @property
    def unit(self) -> Unit:
        return self.table.unit

    @property
    def unit_column(self) -> str:
        return str(self.table.declared.get("person", ""))

    @property
    def drops_missing(self) -> bool:
        return self.table.missing != "impute"

    @property
    def n(self) -> int:
        return self.table.n

    @property
    def without_table(self) -> Self:
        """The same with the schema alone, for an engine's workers."""
        return replace(self, table=PublicTableInfo(self.table.schema))  # type: ignore[arg-type]

    def column(self, name: str) -> Column:
        return self.table.schema.column(name)

    @property
    def outcomes(self) -> tuple[str, ...]:
        return ()

    @property
    def related(self) -> tuple[str, ...]:
        return self.outcomes

    @property
    def caveats(self) -> tuple[str, ...]:
        table, numbers = self.table, ((name, self.column(name)) for name in self.outcomes)
        weight = table.declared.get("weight")
        return (
            self.left_out if self.drops_missing else IMPUTED,
            *(f"{name!r} counts within its bounds: what lies outside {one.ends[0]} to {one.ends[1]} counts as the "
              "bound, and the answer misses how far outside it lies"
              for name, one in numbers if isinstance(one, Bounded)),
            *([] if weight is None else [f"a weight above the largest, {weight[1]:g}, counts as {weight[1]:g}"]),
            *self.selection_caveats,
        )  # fmt: skip

    @property
    def selection_caveats(self) -> tuple[str, ...]:
        """What a subgroup means that is chosen by a column which the answer is about."""
        chosen = {one.name for one in self.table.inside}
        return tuple(f"the rows are chosen by {name!r}, which the answer is about: what holds in them can differ from "
                     "what holds without that choice" for name in self.related if name in chosen)  # fmt: skip

    def read(self) -> Any:
        return self.table

    def report(self, planned: PlannedCall[Any], released: Any, allotment: CallBudget, seed: int | None) -> Any:
        return released.under(self.guarantee(planned, allotment))

    def guarantee(
        self,
        planned: PlannedCall[Any],
        allotment: CallBudget,
        caveats: tuple[str, ...] = (),
        more: tuple[str, ...] = (),
    ) -> Guarantee:
        public = self.table.public_facts(self.public + more)
        return Guarantee.of(allotment, proofs=planned.proofs, caveats=caveats or planned.caveats, public=public)
