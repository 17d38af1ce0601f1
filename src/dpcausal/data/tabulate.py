"""Discrete codes of cleaned columns, and tables of their counts; a lazy frame counts where its rows are.

A column of levels has the codes of ``Levels``; a bounded column is cut at its public points, or at three points that
make four equal widths.  Each record is coded by itself by the rules of ``cleaning``, whatever the back end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.cleaning import clean_levels, clean_numbers
from dpcausal.data.frame import ArrayColumns, FrameColumns, FrameSource
from dpcausal.data.schema import Bounded, Column, Levels
from dpcausal.data.source import Collected, Kind, withheld
from dpcausal.data.table import Table
from dpcausal.errors import SchemaError

CHANGED = (
    "the frame no longer has the number of rows counted when the table was made; what a call was charged stays spent"
)


def cuts_of(column: Bounded) -> NDArray[np.float64]:
    """Return the public points at which a bounded column is cut."""
    if column.cuts is not None:
        return np.asarray(column.cuts)
    points = [column.lower + column.width * share for share in (0.25, 0.5, 0.75)]
    return np.unique([point for point in points if column.lower < point < column.upper])


def sizes_of(table: Table, names: Sequence[str]) -> tuple[int, ...]:
    """Return how many codes each column has: public."""
    columns = [table.schema.column(name) for name in names]
    return tuple(len(one) if isinstance(one, Levels) else len(cuts_of(one)) + 1 for one in columns)


def codes_of(table: Table, names: Sequence[str]) -> list[NDArray[np.int64]]:
    """Return each column's codes, in the order of the rows.  *Private*: after the ledger allotted.

    Raises
    ------
    SchemaError
        The frame changed its number of rows, or the back end failed, whose own words are withheld.
    """
    collected = table._source.collect(tuple(names))
    if len(collected) != table.n:
        raise SchemaError(CHANGED)
    unread = f"the {table._source.backend} columns cannot be read"
    return withheld(lambda: [_codes(table, name, collected) for name in names], unread)


def _codes(table: Table, name: str, collected: Collected) -> NDArray[np.int64]:
    column = table.schema.column(name)
    if isinstance(column, Bounded):
        return _binned(clean_numbers(collected.numbers(name), column), column)
    if column.kind == "integer" and isinstance(collected, (FrameColumns, ArrayColumns)):
        integers = collected.integers(name)
        if integers is not None:
            return _integer_codes(integers, column)
    fields = table._source.declared(name).kind is Kind.FIELD
    return clean_levels(collected.objects(name), column, len(collected), fields=fields)


def _binned(values: NDArray[np.float64], column: Bounded) -> NDArray[np.int64]:
    return np.searchsorted(cuts_of(column), values, side="right").astype(np.int64)


def _integer_codes(values: NDArray[np.int64], column: Levels) -> NDArray[np.int64]:
    """Return ``clean_levels`` of integers without nulls, in array arithmetic."""
    labels = list(column.values)
    if labels == list(range(len(labels))):
        inside = (values >= 0) & (values < len(labels))
        return np.where(inside, values, column.substitute)
    known = [int(label) for label in labels if -(2**63) <= int(label) < 2**63]
    order = np.argsort(np.array(known, dtype=np.int64))
    ascending = np.array(known, dtype=np.int64)[order]
    if not len(ascending):
        return np.full(len(values), column.substitute)
    place = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    codes = np.array([labels.index(known[k]) for k in order], dtype=np.int64)
    return np.where(ascending[place] == values, codes[place], column.substitute)


def counts_of(table: Table, names: Sequence[str]) -> NDArray[np.int64]:
    """Return the table of counts over all declared codes, one axis a column.  *Private*: after the ledger allotted.

    A lazy polars frame or a DuckDB relation groups and counts in its own engine; only the groups come here.
    """
    sizes = sizes_of(table, names)
    source = table._source
    if isinstance(source, FrameSource) and source.lazy:
        return _counted_by_engine(table, source, names, sizes)
    codes = codes_of(table, names)
    place = np.zeros(table.n, dtype=np.int64)
    for column, size in zip(codes, sizes, strict=True):
        place *= size
        place += column
    return np.bincount(place, minlength=math.prod(sizes)).astype(np.int64, copy=False).reshape(sizes)


def _counted_by_engine(
    table: Table, source: FrameSource, names: Sequence[str], sizes: tuple[int, ...]
) -> NDArray[np.int64]:
    declared: dict[str, Column] = {name: table.schema.column(name) for name in names}
    bounded = {
        name: (column, cuts_of(column).tolist()) for name, column in declared.items() if isinstance(column, Bounded)
    }
    groups, tally = source.tally(names, bounded)

    def counted() -> NDArray[np.int64]:
        columns = []
        for name, column in declared.items():
            if isinstance(column, Bounded):
                columns.append(groups.numbers(name).astype(np.int64))
            else:
                columns.append(clean_levels(groups.objects(name), column, len(groups), fields=False))
        counts = np.zeros(sizes, dtype=np.int64)
        np.add.at(counts, tuple(columns), tally)
        return counts

    counts = withheld(counted, f"the {source.backend} columns cannot be read")
    if int(counts.sum()) != table.n:
        raise SchemaError(CHANGED)
    return counts
