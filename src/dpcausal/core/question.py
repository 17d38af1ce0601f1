"""What questions about the columns of one table have in common: who pays, whose rows, what is public of an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dpcausal.core.method import Answer, PlannedCall, Question
from dpcausal.data.schema import Bounded, Column
from dpcausal.data.table import Table
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.sensitivity import Unit
from dpcausal.result import Guarantee


@dataclass(frozen=True)
class TableQuestion(Question[Answer]):
    """A question about columns of a table, whose ledger pays."""

    public: ClassVar[tuple[str, ...]] = (
        "the number of rows", "column names, levels, bounds and cuts", "all arguments",
    )  # fmt: skip
    """What an answer takes as public, in words."""

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
        """Number of rows, or persons, public."""
        return self.table.n

    def column(self, name: str) -> Column:
        """Return what is declared of a column."""
        return self.table.schema.column(name)

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The columns whose means the answer is about."""
        return ()

    @property
    def related(self) -> tuple[str, ...]:
        """The columns whose associations the answer is about: to choose rows by one of them changes it."""
        return self.outcomes

    @property
    def caveats(self) -> tuple[str, ...]:
        """What the declarations of the table mean for an answer: imputation, bounds, weights, chosen rows."""
        table, numbers = self.table, ((name, self.column(name)) for name in self.outcomes)
        imputed = "what is missing counts as the midpoint of its bounds or as the first level: missing='impute'"
        weight = table.declared.get("weight")
        return (
            *([imputed] if table.missing == "impute" else []),
            *(f"{name!r} counts within its bounds: what lies outside {one.lower:g} to {one.upper:g} counts as the bound"
              for name, one in numbers if isinstance(one, Bounded)),
            *([] if weight is None else [f"a weight above the largest, {weight[1]:g}, counts as {weight[1]:g}"]),
            *(f"the rows are chosen by {name!r}, which the answer is about: what holds in them can differ from what "
              "holds without that choice" for name in self.related if name in {one.name for one in table.inside}),
        )  # fmt: skip

    def read(self) -> Any:
        """Return the table, of which a method takes what it needs, where its rows are."""
        return self.table

    def guarantee(
        self,
        planned: PlannedCall[Any],
        allotment: CallBudget,
        caveats: tuple[str, ...] = (),
        more: tuple[str, ...] = (),
    ) -> Guarantee:
        """Return the guarantee of an answer; ``caveats`` replace those of the plan, ``more`` is public besides."""
        public = self.table.told(self.public + more)
        return Guarantee.of(allotment, proofs=planned.proofs, caveats=caveats or planned.caveats, public=public)
