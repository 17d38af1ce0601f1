"""Whose the records are and which of them are asked: options of every question about a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcausal.data.where import clauses_of

if TYPE_CHECKING:
    from dpcausal.data.table import Table
    from dpcausal.privacy.ledger import Ledger

PersonOption = Annotated[str | None, typer.Option("--person", help="The column that names whose a row is.")]
IdsOption = Annotated[str, typer.Option("--ids", help="Whether who is in the data is private or public.")]
MissingOption = Annotated[str, typer.Option("--missing", help="drop, level or impute.")]
WhereOption = Annotated[
    str | None, typer.Option("--where", help="""A subgroup, as "age >= 20 and sex == 'f'".""")
]

@dataclass(frozen=True)
class Records:
    """The options as they were given."""

    person: str | None = None
    ids: str = "private"
    missing: str = "drop"
    where: str | None = None

    def table(self, data: Path, schema: Path, ledger: Ledger, name: str = "") -> Table:
        """Return the table of a file, or the part of it that is asked."""
        from dpcausal.data.schema import Schema
        from dpcausal.data.table import Table

        clauses = [] if self.where is None else clauses_of(self.where)
        table = Table(
            data, Schema.from_toml(schema), ledger, name=name, person=self.person, ids=self.ids, missing=self.missing
        )
        for column, words in clauses:
            table = table.where(column, **words)
        return table


OPTIONS: tuple[tuple[str, Any, Any], ...] = (
    ("where", WhereOption, None), ("person", PersonOption, None), ("ids", IdsOption, "private"),
    ("missing", MissingOption, "drop"),
)  # fmt: skip
