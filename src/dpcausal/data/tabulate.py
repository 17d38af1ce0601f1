"""Discrete codes of a table's columns, and tables of their counts; a lazy frame counts where its rows are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.cleaning import clean_numbers
from dpcausal.data.coding import bin_codes, level_codes, size_of
from dpcausal.data.frame import FrameSource
from dpcausal.data.schema import Bounded
from dpcausal.data.source import Collected, Kind, withheld
from dpcausal.data.table import Table
from dpcausal.errors import SchemaError

CHANGED = (
    "the frame no longer has the number of rows counted when the table was made; what a call was charged stays spent"
)


def sizes_of(table: Table, names: Sequence[str]) -> tuple[int, ...]:
    """Return how many codes each column has: public."""
    return tuple(size_of(table.schema.column(name)) for name in names)


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
        return bin_codes(clean_numbers(collected.numbers(name), column), column)
    return level_codes(collected, name, column, fields=table._source.declared(name).kind is Kind.FIELD)


def counts_of(table: Table, names: Sequence[str]) -> NDArray[np.int64]:
    """Return the table of counts over all declared codes, one axis a column.  *Private*: after the ledger allotted.

    A lazy polars frame or a DuckDB relation codes and counts in its own engine; only the cells come here.
    """
    sizes, source = sizes_of(table, names), table._source
    if isinstance(source, FrameSource) and source.lazy:
        found = source.tally({name: table.schema.column(name) for name in names})
        if found is not None:
            counts = np.zeros(math.prod(sizes), dtype=np.int64)
            np.add.at(counts, found[0], found[1])
            if int(counts.sum()) != table.n:
                raise SchemaError(CHANGED)
            return counts.reshape(sizes)
    place = np.zeros(table.n, dtype=np.int64)
    for codes, size in zip(codes_of(table, names), sizes, strict=True):
        place *= size
        place += codes
    return np.bincount(place, minlength=math.prod(sizes)).astype(np.int64, copy=False).reshape(sizes)
