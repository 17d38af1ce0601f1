"""One table in every kind of frame that the border accepts."""

import csv
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from dpcausal import Bounded, Ledger, Panel, PureDP
from tests.factories import table

# Doctests are looked for in every file; this one has an environment and a command of its own.
collect_ignore = [] if find_spec("dask") and find_spec("pyspark") else ["spark_and_dask.py", "warm_workers.py"]

NULLABLE = {
    pa.int64(): pd.Int64Dtype(),
    pa.float64(): pd.Float64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
    pa.string(): pd.StringDtype(),
}


def to_numpy(table: pa.Table, path: Path) -> dict[str, np.ndarray]:
    arrays = {}
    for name in table.column_names:
        values = table[name].to_pylist()
        plain = table.schema.field(name).type in (pa.int64(), pa.float64())
        nulls = [value is None for value in values]
        filled = np.array([0 if null else value for null, value in zip(nulls, values, strict=True)])
        arrays[name] = np.ma.masked_array(filled, nulls) if plain else np.array(values, dtype=object)
    return arrays


def to_csv(table: pa.Table, path: Path) -> Path:
    path = path / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        for row in table.to_pylist():
            writer.writerow("" if value is None else str(value) for value in row.values())
    return path


def to_parquet(table: pa.Table, path: Path) -> Path:
    pyarrow.parquet.write_table(table, path / "table.parquet", row_group_size=3)
    return path / "table.parquet"


DATABASE = duckdb.connect()  # one for all: to open another takes longer than most tests of a frame
BACKENDS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "pandas": lambda table, path: table.to_pandas(),
    "pandas nullable": lambda table, path: table.to_pandas(types_mapper=NULLABLE.get),
    "pandas pyarrow": lambda table, path: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda table, path: pl.from_arrow(table),
    "polars lazy": lambda table, path: pl.from_arrow(table).lazy(),
    "pyarrow": lambda table, path: table,
    "duckdb": lambda table, path: DATABASE.cursor().from_arrow(table),
    "numpy": to_numpy,
    "csv": to_csv,
    "parquet": to_parquet,
}


@pytest.fixture(params=list(BACKENDS))
def as_frame(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[pa.Table], Any]:
    """Turn an Arrow table into one kind of frame; a test that asks for it runs over all kinds."""
    return lambda table: BACKENDS[request.param](table, tmp_path)


def cells_of(frame: Any, column: Any, name: str = "x") -> list[Any]:
    """Return the cells of a column as a table cleans them, None for what is missing."""
    rows = table(frame, {name: column}).rows([name])
    return [value if known else None for value, known in zip(rows.values[name], rows.present[name], strict=True)]


def panel_of(frame: Any, **given: Any) -> Panel:
    """Return a panel of twelve at most on a ledger of its own; what is not given is as most frames here have it."""
    usual = {"unit": "unit", "time": "time", "outcome": "y", "target": "a", "bounds": Bounded(0, 12)}
    arguments = {**usual, **given}
    return Panel(frame, **{"ledger": Ledger.in_memory(PureDP(1), unit=arguments["unit"]), **arguments})


@pytest.fixture
def without_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query of DuckDB that fails is tried as often as ever, without the waits between."""
    monkeypatch.setattr("dpcausal.data.sources.duckdb.time.sleep", lambda seconds: None)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger.in_memory(PureDP(1.0))
