"""Whose the records are and which of them are asked: options of every question about a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcausal.errors import ParameterError

if TYPE_CHECKING:
    from dpcausal.data.table import Table
    from dpcausal.privacy.ledger import Ledger

PersonOption = Annotated[str | None, typer.Option("--person", help="The column that names whose a row is.")]
IdsOption = Annotated[str, typer.Option("--ids", help="Whether who is in the data is private or public.")]
MostOption = Annotated[int | None, typer.Option("--most", help="The most rows of a person, in cells and effects.")]
WeightOption = Annotated[
    str | None, typer.Option("--weight", help="Survey weights: a column and the largest, as w=8, in cells and effects.")
]
MissingOption = Annotated[str, typer.Option("--missing", help="drop, level or impute.")]
WhereOption = Annotated[
    str | None, typer.Option("--where", help="""A subgroup, as "age >= 20 and sex == 'f'".""")
]

@dataclass(frozen=True)
class Records:
    """The options as they were given."""

    person: str | None = None
    ids: str = "private"
    most: int | None = None
    weight: str | None = None
    missing: str = "drop"
    where: str | None = None

    def table(self, data: str, schema: Path, ledger: Ledger, name: str = "") -> Table:
        """Return the table of a file, or the part of it that is asked."""
        from dpcausal.data.predicate_text import clauses_of
        from dpcausal.data.schema import Schema
        from dpcausal.data.table import Table

        clauses = [] if self.where is None else clauses_of(self.where)
        table = Table(
            data, Schema.from_toml(schema), ledger, name=name, person=self.person, ids=self.ids, most=self.most,
            weight=None if self.weight is None else weight_of(self.weight), missing=self.missing,
        )  # fmt: skip
        for column, words in clauses:
            table = table.where(column, **words)
        return table


def weight_of(text: str) -> tuple[str, float]:
    """Return the column and the largest weight of a text as ``w=8``."""
    name, _, largest = text.rpartition("=")
    try:
        return name, float(largest)
    except ValueError:
        raise ParameterError("--weight is written as column=largest, for example w=8") from None


OPTIONS: tuple[tuple[str, Any, Any], ...] = (
    ("where", WhereOption, None), ("person", PersonOption, None), ("ids", IdsOption, "private"),
    ("most", MostOption, None), ("weight", WeightOption, None), ("missing", MissingOption, "drop"),
)  # fmt: skip
