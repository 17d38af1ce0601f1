"""From collected columns to records, and sums over records that are never all in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.coding import cleaned
from dpcausal.data.records import Rows
from dpcausal.data.schema import Bounded, Column, Schema
from dpcausal.data.source import Collected, Kind, Source, withheld
from dpcausal.data.sources.fingerprint import Stamp, was_modified
from dpcausal.data.subgroups.predicate import Predicate
from dpcausal.errors import SchemaError
from dpcausal.privacy.process_local import Uncopyable
from dpcausal.privacy.sensitivity import Unit

Integers = NDArray[np.int64]
Kernel = Callable[[Rows], Integers]
"""Whole numbers, an array of one shape whatever the records, each record's share of it from that record alone."""

CHANGED = (
    "the frame no longer has the number of rows counted when the table was made, or a file of it was written to; what "
    "a call was charged stays spent"
)

WRITTEN = "a row was written to between two passes over the frame; what a call was charged stays spent"

HELD = 1 << 20
"""So many records are held between passes; more are read again, a batch at a time."""


@dataclass(frozen=True)
class TableSpec(Uncopyable):
    """What a table reads its rows by: its source, which is private, and the public rules that make records of rows."""

    confined = "what reads private records cannot be pickled"

    source: Source = field(repr=False)
    schema: Schema
    missing: str
    person: str | None
    weight: tuple[str, Bounded] | None
    inside: tuple[Predicate, ...]
    unit: Unit
    n: int
    rows: int
    stamp: Stamp | None

    @property
    def changed(self) -> bool:
        """Whether a file of the source was written to."""
        return was_modified(self.stamp)

    @property
    def held(self) -> bool:
        """Whether a sum keeps all records in memory: of persons, or of few rows."""
        return self.unit is not Unit.ROW or (self.n <= HELD and not self.source.afar)


@dataclass(frozen=True)
class Reading:
    """What makes records of collected columns: public, so an engine's workers may have it."""

    names: tuple[str, ...]
    columns: dict[str, Column]
    fields: frozenset[str]
    """Columns that are fields of a text file."""
    inside: tuple[Predicate, ...]
    missing: str
    weight: tuple[str, Bounded] | None

    @classmethod
    def of(cls, table: TableSpec, names: tuple[str, ...]) -> Reading:
        """Return the reading of some columns of a table."""
        both = dict.fromkeys([*names, *(one.name for one in table.inside)])
        read = both if table.weight is None else [*both, table.weight[0]]
        fields = frozenset(name for name in read if table.source.declared(name).kind is Kind.FIELD)
        columns = {name: table.schema[name] for name in both}
        return cls(names, columns, fields, table.inside, table.missing, table.weight)

    def none(self) -> Rows:
        """Return no records of these columns."""
        values = {
            name: np.empty(0, np.float64 if isinstance(self.columns[name], Bounded) else np.int64)
            for name in self.names
        }
        nowhere = np.empty(0, dtype=np.bool_)
        return Rows(values, nowhere, dict.fromkeys(values, nowhere), np.empty(0, dtype=np.int64))

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(dict.fromkeys([*self.columns, *([] if self.weight is None else [self.weight[0]])]))

    def rows(self, collected: Collected) -> Rows:
        """Return the records of the rows collected, each from its own row alone."""
        both = {
            name: cleaned(collected, name, column, fields=name in self.fields) for name, column in self.columns.items()
        }
        inside = np.ones(len(collected), dtype=np.bool_)
        for one in self.inside:
            inside &= one.holds(*both[one.name])
        rows = Rows.of({name: both[name] for name in self.names}, inside, self.missing)
        if self.weight is None:
            return rows
        name, column = self.weight
        weights, known = cleaned(collected, name, column, fields=name in self.fields)
        return rows.weighed(np.where(known, weights / column.upper, 0.0))


@dataclass(frozen=True)
class RowSum:
    """What an engine sums: collected columns in, whole numbers out, and a last one that identifies the rows."""

    reading: Reading
    kernel: Kernel

    def __call__(self, collected: Collected) -> Integers:
        rows = self.reading.rows(collected)
        mark = rows.mark
        return np.append(self.kernel(rows), mark)


class Records:
    """The records of a question, summed over as often as it asks; each sum is exact, so no order or batch shows."""

    def __init__(self, table: TableSpec, names: tuple[str, ...], rows: Rows | None) -> None:
        self._table, self._names, self._rows = table, names, rows
        self._mark: int | None = None

    def sum(self, kernel: Kernel) -> Integers:
        """Return Σ kernel; a SchemaError if the rows were not those that were counted, or of the pass before."""
        if self._rows is not None:
            return kernel(self._rows)
        table, reading = self._table, Reading.of(self._table, self._names)
        source = table.source
        rows, total = withheld(
            lambda: source.summed(reading.needed, RowSum(reading, kernel)),
            f"the {source.backend} columns cannot be read",
        )
        if rows < 0:
            raise SchemaError(f"the {source.backend} columns cannot be read")
        if rows != table.rows or total is None or table.changed:
            raise SchemaError(CHANGED)
        mark = int(total[-1])
        if self._mark not in (None, mark):
            raise SchemaError(WRITTEN)
        self._mark = mark
        return total[:-1].reshape(kernel(reading.none()).shape)
