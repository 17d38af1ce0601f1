"""Discrete codes of a table's columns, and tables of their counts; a lazy frame counts where its rows are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.coding import bin_codes, size_of
from dpcausal.data.frame import FrameSource
from dpcausal.data.rows import Rows
from dpcausal.data.schema import Bounded
from dpcausal.data.table import CHANGED, Table
from dpcausal.errors import SchemaError


def sizes_of(table: Table, names: Sequence[str]) -> tuple[int, ...]:
    """Return how many codes each column has: public."""
    return tuple(size_of(table.schema.column(name)) for name in names)


def codes_of(table: Table, names: Sequence[str]) -> Rows:
    """Return the records with codes for values.  *Private*: after the ledger allotted."""
    rows = table.rows(names)
    for name, values in rows.values.items():
        column = table.schema.column(name)
        if isinstance(column, Bounded):
            rows.values[name] = bin_codes(values, column)
    return rows


def counts_of(table: Table, names: Sequence[str]) -> NDArray[np.int64]:
    """Return how many kept records each cell has, one axis a column.  *Private*: after the ledger allotted.

    A lazy polars frame or a DuckDB relation codes and counts in its own engine; only the cells come here.  What they
    lack of ``table.n`` is left out.
    """
    sizes, source = sizes_of(table, names), table._source
    if isinstance(source, FrameSource) and source.lazy and not table.declared:
        columns = [table.schema.column(name) for name in names]
        found = source.tally(names, columns, sizes, apart=table.missing != "impute")
        if found is not None:
            if int(found[1].sum()) != table.n:
                raise SchemaError(CHANGED)
            counts = np.zeros(math.prod(sizes), dtype=np.int64)
            inside = found[0] >= 0
            np.add.at(counts, found[0][inside], found[1][inside])
            return counts.reshape(sizes)
    rows = codes_of(table, names)
    place = np.zeros(table.n, dtype=np.int64)
    for codes, size in zip((rows.values[name] for name in names), sizes, strict=True):
        place *= size
        place += codes
    return np.bincount(place[rows.kept], minlength=math.prod(sizes)).astype(np.int64, copy=False).reshape(sizes)
