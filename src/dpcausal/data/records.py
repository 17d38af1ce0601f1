"""The records of a table: which of them count, read whole or summed over in batches that are never all in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcausal.arrays import Integers
from dpcausal.data.coding import cleaned_column
from dpcausal.data.persons import Persons, cluster_groups
from dpcausal.data.schema import Bounded, Column, Levels, Schema
from dpcausal.data.source import Collected, Kind, Source, Sums, guarded_read
from dpcausal.data.sources.fingerprint import was_modified
from dpcausal.data.sources.origin import Origin
from dpcausal.data.subgroups.predicate import Predicate
from dpcausal.errors import ParameterError, SchemaError
from dpcausal.privacy.sensitivity import Unit
from dpcausal.privacy.unpicklable import Uncopyable

LONGEST_NAME = 200

MISSING_LEVEL = "missing"
"""The level that ``missing="level"`` adds."""

HELD, PIECE = 1 << 20, 1 << 14
"""So many records are held between passes; more are read again, a batch at a time.  What is held is summed over so many
at once: their temporary columns fit a processor's cache."""

FEW_LEVELS = 127
"""The largest number of levels whose codes have 8 bits in memory."""

CHANGED = (
    "the frame no longer has the number of rows counted when the table was made, or a file of it was written to; what "
    "a call was charged stays spent"
)
WRITTEN = "a row was written to between two passes over the frame; what a call was charged stays spent"

_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """All n records, cleaned, in the order of the table; each decides by itself whether it is included.

    A statistic assigns positions and random numbers over all n, and leaves records out inside its own block, cell or
    pair only.  ``values``: numbers in [lower, upper] or codes of levels, the substitute where one is missing;
    ``present``: where it is not; ``included``: whether the record has all of the columns; ``keys``: of persons whose
    ids are private, by which blocks are assigned and not by position; ``weights``: what part of its unit a record is,
    those of a unit at most 1 in all, ``None`` where each is one; ``owners``: whose each is, counted from 0; ``groups``:
    those of clusters, where clusters were named.
    """

    values: dict[str, NDArray[Any]]
    included: NDArray[np.bool_]
    present: dict[str, NDArray[np.bool_]]
    keys: NDArray[np.int64] | None = None
    weights: NDArray[np.float64] | None = None
    owners: NDArray[np.int64] | None = None
    groups: NDArray[np.int64] | None = None

    @property
    def n(self) -> int:
        return len(self.included)

    @property
    def mark(self) -> int:
        """A sum of hashes of the records, to 64 bits, whatever their order: of other records it is another."""
        digest = np.zeros(self.n, dtype=np.uint64)
        weights = [] if self.weights is None else [self.weights]
        for column in (*self.values.values(), *weights):
            digest *= _ODD
            digest += column.view(np.uint64)
        for place, mask in enumerate(self.present.values()):
            if not mask.all():
                digest[~mask] += _ODD << np.uint64(place % 64)
        for shift in (32, 29):
            digest ^= digest >> np.uint64(shift)
            digest *= _ODD
        digest ^= digest >> np.uint64(32)
        return int(digest.sum(dtype=np.uint64).view(np.int64))

    def masses(self, whole: int) -> NDArray[np.int64]:
        """Return each record's part of a whole, cut to whole numbers: those of a unit sum to at most the whole."""
        parts = np.ones(self.n) if self.weights is None else self.weights
        return np.floor(whole * parts * self.included).astype(np.int64)

    def by_value(self, persons: Persons) -> tuple[Rows, Persons]:
        """Return rows that come in no order, and whose they are, by their values: nobody moves another's own rows."""
        more = [one for one in (self.weights, self.groups) if one is not None]
        order = np.lexsort([self.included, *self.values.values(), *self.present.values(), *more])
        return self.at(order), replace(persons, codes=persons.codes[order])

    def at(self, places: NDArray[np.int64] | slice) -> Rows:
        values = {name: column[places] for name, column in self.values.items()}
        present = {name: mask[places] for name, mask in self.present.items()}
        weights = None if self.weights is None else self.weights[places]
        groups = None if self.groups is None else self.groups[places]
        return Rows(values, self.included[places], present, weights=weights, groups=groups)

    def summed(self, kernel: Kernel) -> Integers:
        """Return the kernel's sum, piece by piece; all at once where rows have owners or keys."""
        if self.owners is not None or self.keys is not None or self.n <= PIECE:
            return kernel(self.wide)
        pieces = (kernel(self.at(slice(start, start + PIECE)).wide) for start in range(0, self.n, PIECE))
        total = next(pieces)
        for piece in pieces:
            total = total + piece
        return total

    @property
    def wide(self) -> Rows:
        """The same rows, with all codes as 64-bit integers."""
        if all(column.dtype.itemsize == 8 for column in self.values.values()):
            return self
        return replace(self, values={name: column.astype(np.int64) if column.dtype == np.int8 else column
                                     for name, column in self.values.items()})  # fmt: skip

    @classmethod
    def joined(cls, several: Sequence[Rows]) -> Rows:
        values, present = (
            {name: np.concatenate([getattr(one, what)[name] for one in several]) for name in getattr(several[0], what)}
            for what in ("values", "present")
        )
        weights = [one.weights for one in several if one.weights is not None]
        groups = [one.groups for one in several if one.groups is not None]
        mask = np.concatenate([one.included for one in several])
        return cls(values, mask, present, weights=np.concatenate(weights) if weights else None,
                   groups=np.concatenate(groups) if groups else None)  # fmt: skip

    @classmethod
    def of(
        cls, columns: Mapping[str, tuple[NDArray[Any], NDArray[np.bool_]]], inside: NDArray[np.bool_], missing: str
    ) -> Rows:
        impute, n = missing == "impute", len(inside)
        present = {name: inside if impute or mask.all() else mask & inside for name, (_, mask) in columns.items()}
        values = {name: column for name, (column, _) in columns.items()}
        return cls(values, _all_masks((inside, *present.values()), n), present)

    def one_each(self, persons: Persons, by_key: bool) -> Rows:
        places, _ = persons.chosen(self.included)
        return replace(self.at(places), keys=persons.keys if by_key else None, weights=None)

    def parts_of(self, persons: Persons, most: int | None) -> Rows:
        places, owners, parts = persons.parts(self.included, most)
        chosen = self.at(places)
        return replace(chosen, weights=parts if chosen.weights is None else parts * chosen.weights, owners=owners)


def _all_masks(masks: Iterable[NDArray[np.bool_]], n: int) -> NDArray[np.bool_]:
    every = np.ones(n, dtype=np.bool_)
    for mask in masks:
        every &= mask
    return every


Kernel = Callable[[Rows], Integers]
"""Whole numbers, an array of one shape whatever the records, each record's share of it from that record alone."""


@dataclass(frozen=True)
class TableSpec(Uncopyable):
    """What a table reads its rows by: its source, which is private, and the public rules that make records of rows."""

    confined = "what reads private records cannot be pickled"

    source: Source = field(repr=False)
    origin: Origin
    rows: int
    n: int
    max_rows: int
    schema: Schema
    name: str
    missing: str
    person: str | None
    ids: str
    max_rows_per_person: int | None
    weight: tuple[str, Bounded] | None
    inside: tuple[Predicate, ...] = ()
    share: float = 1.0
    clusters: tuple[str, ...] = ()
    cluster: str | None = None

    @property
    def unit(self) -> Unit:
        if self.person is None:
            return Unit.ROW
        return Unit.PERSON if self.ids == "private" else Unit.LISTED_PERSON

    @property
    def modified(self) -> bool:
        return was_modified(self.origin.stamp)

    @property
    def held(self) -> bool:
        """Whether a sum keeps all records in memory: of persons, or of few rows."""
        return self.unit is not Unit.ROW or (self.n <= HELD and not self.source.afar)

    @property
    def unread(self) -> str:
        return f"the {self.source.backend} columns cannot be read"

    def whole(self, summed: Callable[[], Sums]) -> Integers:
        """Return a sum over all rows; a SchemaError if they cannot be read, or are not those that were counted."""
        rows, total = guarded_read(summed, self.unread)
        if rows < 0:
            raise SchemaError(self.unread)
        if rows != self.rows or total is None or self.modified:
            raise SchemaError(CHANGED)
        return total

    def needed(self, names: Iterable[str]) -> tuple[str, ...]:
        weight = () if self.weight is None else (self.weight[0],)
        others = (one for one in (self.person, self.cluster) if one is not None)
        return tuple(dict.fromkeys((*names, *(one.name for one in self.inside), *weight, *others)))

    def read(self, names: tuple[str, ...], parts: bool, narrow: bool = False) -> Rows | None:
        """Bring records into memory, with ``parts`` all rows of persons; ``None`` if others than those counted."""
        if not (needed := self.needed(names)):
            return Rows.of({}, np.ones(self.n, dtype=np.bool_), self.missing)
        collected = self.source.collect(needed)
        if len(collected) != self.rows or self.modified:
            return None

        def records() -> Rows | None:
            rows = replace(Reading.of(self, names), narrow=narrow and self.person is None).rows(collected)
            if self.person is None:
                return rows
            persons = Persons.of(collected, self.person, self.source.declared(self.person).kind is Kind.FIELD)
            if persons.n != self.n:
                return None
            if not self.source.ordered:
                rows, persons = rows.by_value(persons)
            limit = self.max_rows_per_person
            return rows.parts_of(persons, limit) if parts else rows.one_each(persons, self.ids == "private")

        return guarded_read(records, self.unread)


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
    cluster: str | None = None
    narrow: bool = False
    """Whether codes of few levels have 8 bits."""

    @classmethod
    def of(cls, table: TableSpec, names: tuple[str, ...]) -> Reading:
        both = dict.fromkeys([*names, *(one.name for one in table.inside)])
        weight = () if table.weight is None else (table.weight[0],)
        read = (*both, *weight, *(() if table.cluster is None else (table.cluster,)))
        fields = frozenset(name for name in read if table.source.declared(name).kind is Kind.FIELD)
        columns = {name: table.schema[name] for name in both}
        return cls(names, columns, fields, table.inside, table.missing, table.weight, table.cluster)

    def none(self) -> Rows:
        values = {
            name: np.empty(0, np.float64 if isinstance(self.columns[name], Bounded) else np.int64)
            for name in self.names
        }
        nowhere = np.empty(0, dtype=np.bool_)
        none = np.empty(0, dtype=np.int64)
        return Rows(values, nowhere, dict.fromkeys(values, nowhere), none, groups=none)

    @property
    def needed(self) -> tuple[str, ...]:
        weight = None if self.weight is None else self.weight[0]
        return tuple(dict.fromkeys([*self.columns, *(one for one in (weight, self.cluster) if one is not None)]))

    def rows(self, collected: Collected) -> Rows:
        """Return the records of the rows collected, each from its own row alone."""
        both = {}
        for name, column in self.columns.items():
            values, known = cleaned_column(collected, name, column, fields=name in self.fields)
            narrow = self.narrow and isinstance(column, Levels) and len(column) <= FEW_LEVELS
            both[name] = values.astype(np.int8) if narrow else values, known
        inside = np.ones(len(collected), dtype=np.bool_)
        for one in self.inside:
            inside &= one.holds(*both[one.name])
        rows = Rows.of({name: both[name] for name in self.names}, inside, self.missing)
        if self.cluster is not None:
            rows = replace(rows, groups=cluster_groups(collected, self.cluster, self.cluster in self.fields))
        if self.weight is None:
            return rows
        name, column = self.weight
        weights, known = cleaned_column(collected, name, column, fields=name in self.fields)
        return replace(rows, weights=np.where(known, weights / column.upper, 0.0))


@dataclass(frozen=True)
class RowSum:
    """What an engine sums: collected columns in, whole numbers out, and a last one that identifies the rows."""

    reading: Reading
    kernel: Kernel

    def __call__(self, collected: Collected) -> Integers:
        rows = self.reading.rows(collected)
        return np.append(self.kernel(rows), rows.mark)


class Records:
    """The records of a question, summed over as often as it asks; each sum is exact, so no order or batch shows."""

    def __init__(self, table: TableSpec, names: tuple[str, ...], rows: Rows | None) -> None:
        self._table, self._names, self._rows = table, names, rows
        self._mark: int | None = None

    def sum(self, kernel: Kernel) -> Integers:
        if self._rows is not None:
            return self._rows.summed(kernel)
        table, reading = self._table, Reading.of(self._table, self._names)
        total = table.whole(lambda: table.source.summed(reading.needed, RowSum(reading, kernel)))
        mark = int(total[-1])
        if self._mark not in (None, mark):
            raise SchemaError(WRITTEN)
        self._mark = mark
        return total[:-1].reshape(kernel(reading.none()).shape)


def checked_name(name: object) -> str:
    """Return the name of a table or panel, under which answers are kept; empty: none are."""
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not name.isprintable():
        raise ParameterError(f"name must be a text of at most {LONGEST_NAME} printable characters")
    return name


def with_missing_level(schema: Schema) -> Schema:
    """Return the schema in which what is missing from a column of levels is a level of its own."""
    columns = dict(schema)
    for name, column in schema.items():
        if isinstance(column, Levels) and column.other is None:
            spellings = None if column.spellings is None else dict(column.spellings)
            columns[name] = Levels(column.values, MISSING_LEVEL, column.missing, column.period, spellings)
    return Schema(columns)
