"""Codes and counts are the same for every back end, and those of the cleaned columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.data.coding import cuts_of
from dpcausal.data.tabulate import codes_of, counts_of, sizes_of
from dpcausal.errors import SchemaError
from tests.data.conftest import BACKENDS

SCHEMA = dpc.Schema(
    {
        "text": dpc.Levels(["u", "v"], other="w"),
        "number": dpc.Levels([5, -3, 2**40]),
        "plain": dpc.Levels([0, 1, 2]),
        "flag": dpc.Levels([True, False]),
        "cut": dpc.Bounded(-1, 1, cuts=[0, 0.5]),
        "wide": dpc.Bounded(0, 8),
    }
)
NAMES = SCHEMA.names


def arrow() -> pa.Table:
    rng = np.random.default_rng(7)
    n = 400
    numbers = rng.choice([5, -3, 2**40, 7, 0], n)
    return pa.table(
        {
            "text": pa.array([None if k == 3 else "uvzx"[k] for k in rng.integers(0, 4, n)], pa.string()),
            "number": pa.array([None if k == 0 else int(k) for k in numbers], pa.int64()),
            "plain": pa.array(rng.integers(-1, 4, n), pa.int64()),
            "flag": pa.array([None if k == 2 else bool(k) for k in rng.integers(0, 3, n)], pa.bool_()),
            "cut": pa.array(rng.choice([np.nan, np.inf, -np.inf, -1.0, 0.0, 0.25, 0.5, 0.75, 9.0], n), pa.float64()),
            "wide": pa.array([None if k == 9 else float(k) for k in rng.integers(-1, 10, n)], pa.float64()),
        }
    )


def from_columns(table: dpc.Table) -> np.ndarray:
    """Return the table of counts from the cleaned columns, record by record."""
    columns = table.columns(NAMES)
    counts = np.zeros(sizes_of(table, NAMES), dtype=np.int64)
    for row in zip(*(columns[name] for name in NAMES), strict=True):
        place = [
            sum(value >= cut for cut in cuts_of(column)) if isinstance(column, dpc.Bounded) else int(value)
            for value, column in zip(row, SCHEMA.values(), strict=True)
        ]
        counts[tuple(place)] += 1
    return counts


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_counts_are_those_of_the_cleaned_columns_in_every_back_end(backend: str, tmp_path: Path) -> None:
    frame = BACKENDS[backend](arrow(), tmp_path)
    table = dpc.Table(frame, SCHEMA, dpc.Ledger.in_memory(dpc.PureDP(1)))
    counts = counts_of(table, NAMES)
    assert counts.sum() == 400 and counts.dtype == np.int64
    assert (counts == from_columns(table)).all()
    codes = codes_of(table, NAMES)
    again = np.zeros_like(counts)
    np.add.at(again, tuple(codes), 1)
    assert (again == counts).all()


def test_four_equal_widths_are_the_default() -> None:
    assert cuts_of(dpc.Bounded(0, 8)).tolist() == [2, 4, 6]
    assert cuts_of(dpc.Bounded(0, 8, cuts=[1])).tolist() == [1]
    assert len(cuts_of(dpc.Bounded(0, np.nextafter(1e-300, 1)))) >= 1


@pytest.mark.parametrize("kind", ["duckdb", "lazy"])
def test_a_lazy_frame_is_counted_where_it_is(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No row comes into memory: collecting columns would fail here."""
    from dpcausal.data.frame import FrameSource

    frame: Any = duckdb.from_arrow(arrow()) if kind == "duckdb" else polars.from_arrow(arrow()).lazy()
    table = dpc.Table(frame, SCHEMA, dpc.Ledger.in_memory(dpc.PureDP(1)))
    expected = from_columns(table)

    def refuse(*_: Any) -> Any:
        raise AssertionError("rows were collected")

    monkeypatch.setattr(FrameSource, "collect", refuse)
    assert (counts_of(table, NAMES) == expected).all()


@pytest.mark.parametrize("names", [("rows", "rows_"), ("ROWS", "Rows_")])
def test_a_column_named_like_the_count_is_no_trouble(names: tuple[str, str]) -> None:
    frame = duckdb.from_arrow(pa.table({names[0]: [0, 1, 1], names[1]: [1, 1, 0]}))
    schema = dpc.Schema({name: dpc.Levels([0, 1]) for name in names})
    table = dpc.Table(frame, schema, dpc.Ledger.in_memory(dpc.PureDP(1)))
    assert counts_of(table, names).tolist() == [[0, 1], [1, 1]]


def test_a_frame_that_lost_rows_is_refused_without_a_number() -> None:
    connection = duckdb.connect()
    connection.execute("create table t as select range % 2 as a, range % 2 as b from range(10)")
    schema = dpc.Schema({"a": dpc.Levels([0, 1]), "b": dpc.Levels([0, 1])})
    table = dpc.Table(connection.table("t"), schema, dpc.Ledger.in_memory(dpc.PureDP(1)))
    connection.execute("delete from t where a = 1")
    with pytest.raises(SchemaError) as caught:
        counts_of(table, ["a", "b"])
    assert "5" not in str(caught.value) and "10" not in str(caught.value)
