"""Whose the records are and which of them are asked: options of every question about a table."""

from __future__ import annotations

import ast
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
MissingOption = Annotated[str, typer.Option("--missing", help="drop, level or impute.")]
WhereOption = Annotated[
    str | None, typer.Option("--where", help="""A subgroup, as "age >= 20 and sex == 'f'".""")
]

RULE = "--where is written as \"age >= 20 and sex == 'f' and site in ['a', 'b']\": names, >=, <=, ==, in, and"


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


def clauses_of(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the predicates of a text: it is read, never run.

    Examples
    --------
    >>> clauses_of("age >= 20 and sex == 'f'")
    [('age', {'at_least': 20}), ('sex', {'among': ['f']})]
    """
    try:
        read = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ParameterError(RULE) from None
    parts = read.values if isinstance(read, ast.BoolOp) and isinstance(read.op, ast.And) else [read]
    return [_clause(part) for part in parts]


def _clause(part: ast.expr) -> tuple[str, dict[str, Any]]:
    if not isinstance(part, ast.Compare) or len(part.ops) != 1 or not isinstance(part.left, ast.Name):
        raise ParameterError(RULE)
    try:
        value = ast.literal_eval(part.comparators[0])
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise ParameterError(RULE) from None
    words = {ast.GtE: "at_least", ast.LtE: "at_most", ast.Eq: "among", ast.In: "among"}
    word = words.get(type(part.ops[0]))
    if word is None:
        raise ParameterError(RULE)
    return part.left.id, {word: [value] if isinstance(part.ops[0], ast.Eq) else value}
