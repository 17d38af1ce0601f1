"""Discrete codes of a table's columns, and tables of their counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.coding import column_codes, size_of
from dpcausal.data.records import CHANGED, Reading, Rows
from dpcausal.data.schema import Column, Levels
from dpcausal.data.source import guarded_read
from dpcausal.data.sources.frame import FrameSource
from dpcausal.data.table import Table
from dpcausal.errors import SchemaError
from dpcausal.privacy.sensitivity import Unit

Codes = list[NDArray[np.int64]]


def sizes_of(table: Table, names: Sequence[str]) -> tuple[int, ...]:
    return tuple(size_of(table.schema.column(name)) for name in names)


def codes_of(table: Table, names: Sequence[str]) -> Rows:
    rows = table.rows(names)
    for name, values in rows.values.items():
        rows.values[name] = column_codes(values, table.schema.column(name))
    return rows


def counts_of(table: Table, names: Sequence[str]) -> NDArray[np.int64]:
    """Return how many kept records each cell has, one axis a column.  *Private*: after the ledger allotted. A lazy
    frame counts its different rows in its own engine, where all columns have levels."""
    source, reading = table.spec.source, Reading.of(table.spec, tuple(names))
    plain = table.unit is Unit.ROW and not table.weighed
    levels = all(isinstance(column, Levels) for column in reading.columns.values())
    if plain and levels and isinstance(source, FrameSource) and source.groupable(reading.needed):
        return _counts_of_repeated(table, source, reading)
    return JointCounts(table, names)([tuple(range(len(names)))])[0].reshape(sizes_of(table, names))


def _counts_of_repeated(table: Table, source: FrameSource, reading: Reading) -> NDArray[np.int64]:
    sizes = sizes_of(table, reading.names)

    def counted() -> tuple[int, NDArray[np.int64]]:
        total, counts = 0, np.zeros(sizes, dtype=np.int64)
        for distinct, repeats in source.repeated(reading.needed):
            rows = reading.rows(distinct)
            np.add.at(counts, tuple(codes[rows.included] for codes in rows.values.values()), repeats[rows.included])
            total += int(repeats.sum())
        return total, counts

    total, counts = guarded_read(lambda: source.in_turn(counted), table.spec.unread)
    if total != table.n or table.spec.modified:
        raise SchemaError(CHANGED)
    return counts


class JointCounts:
    """The joint counts of sets of columns, by their places among the names.  *Private*: after the ledger allotted."""

    def __init__(self, table: Table, names: Sequence[str]) -> None:
        self._columns = [(name, table.schema.column(name)) for name in names]
        self._records = table.records(names)
        self._cuts: Mapping[str, NDArray[np.float64]] = {}

    def recut(self, cuts: Mapping[str, NDArray[np.float64]]) -> JointCounts:
        view = copy(self)
        view._cuts = cuts
        return view

    def __call__(self, sets: Sequence[Sequence[int]]) -> list[NDArray[np.int64]]:
        """Return the counts of each set's cells: those records that have all columns."""
        cuts = self._cuts
        sizes = [len(cuts[name]) + 1 if name in cuts else size_of(column) for name, column in self._columns]
        lengths = [math.prod(sizes[place] for place in members) for members in sets]
        narrow = np.min_scalar_type(-max(lengths) - 1)  # holds a size too; a joint place in an eighth of the time

        def counted(codes: Codes) -> NDArray[np.int64]:
            small = [column.astype(narrow) for column in codes]
            return np.concatenate(
                [_joint_counts(small, sizes, members, size) for members, size in zip(sets, lengths, strict=True)]
            )

        return np.split(self.over(counted), np.cumsum(lengths)[:-1])

    def over(self, kernel: Callable[[Codes], NDArray[np.int64]]) -> NDArray[np.int64]:
        columns, cuts = self._columns, self._cuts

        def codes(values: NDArray[Any], name: str, column: Column) -> NDArray[np.int64]:
            own = cuts.get(name)
            return column_codes(values, column) if own is None else np.searchsorted(own, values, side="right")

        return self._records.sum(
            lambda rows: kernel([codes(rows.values[name], name, column)[rows.included] for name, column in columns])
        )


def margins_of(joint: NDArray[np.int64], sets: Sequence[Sequence[int]]) -> list[NDArray[np.int64]]:
    """Return the counts of sets of columns, out of the joint table of all."""
    return [
        joint.sum(axis=tuple(set(range(joint.ndim)) - set(members))).transpose(np.argsort(np.argsort(members))).ravel()
        for members in sets
    ]


def _joint_counts(
    codes: Sequence[NDArray[Any]], sizes: Sequence[int], members: Sequence[int], size: int
) -> NDArray[np.int64]:
    place = np.zeros_like(codes[0])
    for member in members:
        place *= sizes[member]
        place += codes[member]
    return np.bincount(place, minlength=size).astype(np.int64, copy=False)
