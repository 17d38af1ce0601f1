"""Polars lazy frames: coded and counted by polars, text compared as text and numbers in the column's own type."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpcausal.data.coding import Cuts, Grid, Matches, Rule
from dpcausal.data.source import BATCH

MOST_BRANCHES = 16
"""With more levels they are looked up in a table: a branch costs a comparison a row."""


def grid_of(frame: pl.LazyFrame, name: str) -> Grid | None:
    """Return what a column of integers or decimals can hold; ``None`` for another."""
    dtype: Any = frame.collect_schema()[name]
    if dtype.is_decimal():
        most = 10 ** (dtype.precision or 38) - 1
        return Grid(-most, most, dtype.scale)
    if not dtype.is_integer():
        return None
    width = int(str(dtype).removeprefix("U").removeprefix("Int"))
    return Grid(0, 2**width - 1) if dtype.is_unsigned_integer() else Grid(-(2 ** (width - 1)), 2 ** (width - 1) - 1)


_CHANGES = re.compile(r"\.(sample|shuffle|rank)\(|^\s*UNIQUE\[[^\]]*Any\] BY Some", re.MULTILINE)
"""It draws; ``rank`` may, and the plan does not say; or it keeps any row of several."""

_MOVES = re.compile(
    r"^\s*(AGGREGATE|UNIQUE|SORT BY|MERGE SORTED|[A-Z]+( [A-Z]+)? JOIN|UNION\[maintain_order: false)"
    r"|\.(sort|sort_by|arg_sort|unique|arg_unique|gather|top_k|top_k_by|bottom_k|value_counts|reverse)\(",
    re.MULTILINE,
)


def changes(frame: pl.LazyFrame) -> bool:
    """Whether its query may give other rows each time."""
    return _CHANGES.search(frame.explain(optimized=False)) is not None


def ordered(frame: pl.LazyFrame) -> bool:
    """Whether its rows come in the order in which they are kept: its query does not put them in another."""
    return _MOVES.search(frame.explain(optimized=False)) is None


def evaluate(frame: pl.LazyFrame, names: Sequence[str]) -> None:
    """Compute every value of some columns, whatever is known of them without: a hash needs each."""
    schema = frame.collect_schema()
    frame.select(
        (pl.col(name).is_null() if schema[name] == pl.Object else pl.col(name).hash()).max().alias(f"c{place}")
        for place, name in enumerate(names)
    ).collect()


def batches(frame: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Yield the rows as they come, in bounded memory."""
    yield from frame.collect_batches(chunk_size=BATCH, maintain_order=False)


def counted(
    frame: pl.LazyFrame, names: Sequence[str], rules: Sequence[Rule], sizes: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the cells that occur, numbered in the order of an array of these sizes, and how many rows each has."""
    schema = frame.collect_schema()
    cell, stride = _whole(0), 1
    for name, rule, size in reversed(list(zip(names, rules, sizes, strict=True))):
        cell = cell + _code(pl.col(name), schema[name], rule, stride)
        stride *= size
    groups = frame.select(cell.alias("cell")).group_by("cell").agg(pl.len().cast(pl.Int64).alias("rows")).collect()
    return groups["cell"].to_numpy(), groups["rows"].to_numpy()


def _code(column: pl.Expr, dtype: pl.DataType, rule: Rule, stride: int) -> pl.Expr:
    if dtype.is_float():
        dtype = pl.Float64()
        column = column.cast(dtype)
    elif dtype in (pl.Categorical, pl.Enum):
        dtype = pl.String()
        column = column.cast(dtype)
    keys = [pl.lit(key, dtype=dtype) for key in rule.keys]
    if isinstance(rule, Matches):
        if len(keys) > MOST_BRANCHES:
            old, new = pl.Series(rule.keys, dtype=dtype), pl.Series(rule.codes, dtype=pl.Int64)
            return column.replace_strict(old, new, default=rule.rest, return_dtype=pl.Int64) * stride
        coded = _whole(rule.rest * stride)
        for key, code in reversed(list(zip(keys, rule.codes, strict=True))):
            coded = pl.when(column == key).then(_whole(code * stride)).otherwise(coded)
    else:
        coded = _placed(column, keys, rule.first, stride)
    if isinstance(rule, Cuts) or not keys:  # NaN is above all numbers, and a constant alone would be one row
        absent = column.is_null() | column.is_nan() if dtype.is_float() else column.is_null()
        coded = pl.when(absent).then(_whole(rule.rest * stride)).otherwise(coded)
    return coded


def _placed(column: pl.Expr, cuts: Sequence[pl.Expr], first: int, stride: int) -> pl.Expr:
    """Return the number of cuts at or below each value, by halves: a chain of thousands takes the planner seconds."""
    if not cuts:
        return _whole(first * stride)
    half = len(cuts) // 2
    above = _placed(column, cuts[half + 1 :], first + half + 1, stride)
    return pl.when(column >= cuts[half]).then(above).otherwise(_placed(column, cuts[:half], first, stride))


def _whole(number: int) -> pl.Expr:
    return pl.lit(number, dtype=pl.Int64)
