"""How much of a frame a schema changes: for the curator alone, before anything is spent.  NOT PRIVATE.

The shares are exact: they are not protected, cost nothing, and touch no ledger.  A record far outside shows in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any, NoReturn

import numpy as np

from dpcausal.data.cleaning import check_declared, check_named
from dpcausal.data.coding import MISSING, level_codes
from dpcausal.data.frame import source_of
from dpcausal.data.schema import Bounded, Column, Schema
from dpcausal.data.source import Kind, Source, withheld
from dpcausal.errors import HiddenAnswerError, SchemaError

STAMP = "NOT PRIVATE, NOT FOR PUBLICATION: exact shares of the data, for the curator alone"

USE = (
    "Use it to find slips: a wrong unit, a level spelled otherwise, a file read wrongly. Bounds that are fitted to "
    "these shares are a release that nobody paid for."
)


@dataclass(frozen=True)
class ColumnCheck:
    """What the schema does to one column.

    Attributes
    ----------
    name : str
    declared : Bounded or Levels
    below, above : float
        Share of the rows below ``lower`` and above ``upper``, ±inf included, which count as the bound; 0 for levels.
    substituted : float
        Share that is null, NaN or no number, or equals no declared level: missing, or ``other`` where one is declared.
    """

    name: str
    declared: Column
    below: float
    above: float
    substituted: float

    @property
    def changed(self) -> float:
        """Share of the rows whose value is not taken as it is."""
        return self.below + self.above + self.substituted


@dataclass(frozen=True, repr=False)
class SchemaCheck:
    """What a schema does to a frame, column by column.  NOT PRIVATE: see ``Schema.check``.

    Attributes
    ----------
    rows : int
    columns : tuple of ColumnCheck
        In the order of the schema.
    """

    rows: int
    columns: tuple[ColumnCheck, ...]

    def summary(self) -> str:
        """Return the shares as text, stamped in its first line."""
        width = max(len("column"), *(len(one.name) for one in self.columns))
        head = f"{'column':<{width}}  {'below':>8}  {'above':>8}  {'substituted':>11}  declared"
        lines = [
            f"{one.name:<{width}}  {_percent(one.below):>8}  {_percent(one.above):>8}  "
            f"{_percent(one.substituted):>11}  {one.declared!r}"
            for one in self.columns
        ]
        return "\n".join([f"{STAMP}.", USE, f"{self.rows} rows.", head, *lines])

    def to_dict(self) -> dict[str, Any]:
        """Return the shares as plain numbers, stamped in the first entry."""
        return {
            "private": False,
            "notice": f"{STAMP}. {USE}",
            "rows": self.rows,
            "columns": {
                one.name: {"below": one.below, "above": one.above, "substituted": one.substituted}
                for one in self.columns
            },
        }

    def __repr__(self) -> str:
        return f"SchemaCheck({len(self.columns)} columns: {STAMP})"

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise HiddenAnswerError("the check of a schema holds exact shares of private records: it cannot be pickled")


def check(frame: Any, schema: Schema) -> SchemaCheck:
    """Return what a schema does to a frame; see ``Schema.check``."""
    if isinstance(frame, (str, PathLike)):
        from dpcausal.data.files import file_source

        source: Source = file_source(frame)
    else:
        source = source_of(frame)
    check_named(schema, source.names)
    for name, column in schema.items():
        check_declared(name, column, source.declared(name))
    rows = source.count()
    if rows < 1:
        raise SchemaError("a table needs at least one row")
    return SchemaCheck(rows, tuple(_checked(source, name, column, rows) for name, column in schema.items()))


def _checked(source: Source, name: str, column: Column, rows: int) -> ColumnCheck:
    collected = source.collect([name])  # one at a time: all together may not fit in memory
    if len(collected) != rows:
        raise SchemaError("the frame no longer has the rows that were counted")
    if isinstance(column, Bounded):
        raw = withheld(lambda: collected.numbers(name), f"the {source.backend} columns cannot be read")
        return ColumnCheck(
            name,
            column,
            below=float((raw < column.lower).mean()),
            above=float((raw > column.upper).mean()),
            substituted=float(np.isnan(raw).mean()),
        )
    fields = source.declared(name).kind is Kind.FIELD
    codes = withheld(
        lambda: level_codes(collected, name, column, fields=fields),
        f"the {source.backend} columns cannot be read",
    )
    return ColumnCheck(name, column, 0.0, 0.0, substituted=float((codes == MISSING).mean()))


def _percent(share: float) -> str:
    return "0" if share == 0 else "< 0.01 %" if share < 1e-4 else f"{100 * share:.2f} %"
