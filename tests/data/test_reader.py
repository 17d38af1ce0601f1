"""Passes over rows that are not held: all see the same rows, or the question is refused without a figure."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import dpcausal as dpc
from dpcausal.data import records as reading
from dpcausal.data import remote_blocks as apart
from dpcausal.data.records import Records, Rows
from dpcausal.data.remote_blocks import WorkerBlocks
from dpcausal.data.sources.origin import source_of
from dpcausal.errors import SchemaError
from tests.data.every_task import SUMS, outcome
from tests.data.every_task import rows as people

N = 500
SCHEMA = dpc.Schema({"x": dpc.Bounded(0, 1), "y": dpc.Bounded(0, 1), "g": dpc.Levels(["a", "b"])})


def written(path: Path, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    rows = {"x": rng.random(N), "y": rng.random(N), "g": ["a", "b"] * (N // 2), "id": np.arange(N)}
    pyarrow.parquet.write_table(pa.table(rows), path)
    return path


def view(path: Path) -> Any:
    connection = duckdb.connect()
    connection.sql(f"CREATE VIEW told AS SELECT * FROM read_parquet('{path}')")
    return connection.table("told")


FRAMES: dict[str, Callable[[Path], Any]] = {"a DuckDB view": view, "a polars scan": pl.scan_parquet, "a path": Path}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_file_that_is_written_to_between_two_passes_gives_no_figure(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of rows stays.  Of a view or a scan nobody saw it."""
    monkeypatch.setattr(reading, "HELD", 0)
    path, passes, added = written(tmp_path / "t.parquet", 1), [0], Records.sum
    table = dpc.Table(FRAMES[kind](path), SCHEMA, dpc.Ledger.in_memory(dpc.ApproxDP(9, 1e-5)))
    dpc.moments(table, ["x", "y"], loss=dpc.ApproxDP(1, 1e-6))

    def meanwhile(records: Records, kernel: Any) -> Any:
        passes[0] += 1
        if passes[0] == 2:
            written(path, 2)
        return added(records, kernel)

    monkeypatch.setattr(Records, "sum", meanwhile)
    with pytest.raises(SchemaError, match="written to"):
        dpc.moments(table, ["x", "y"], loss=dpc.ApproxDP(1, 1e-6))
    assert passes[0] == 2 and len(table.ledger.entries() if kind != "a path" else table._ledger.entries()) == 2


@pytest.mark.parametrize("how", ["in blocks", "counted"])
def test_a_file_that_is_written_to_after_the_spend_gives_no_figure(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "HELD", 0)
    path, whose = written(tmp_path / "t.parquet", 1), {"person": "id"} if how == "in blocks" else {}
    ledger = dpc.Ledger.in_memory(dpc.PureDP(9), **whose)
    if how == "in blocks":
        table = dpc.Table(path, SCHEMA, ledger, person="id")
        monkeypatch.setattr(type(table.spec.source), "ordered", False)
        read: Any = WorkerBlocks, "each"
    else:
        table = dpc.Table(path, SCHEMA, ledger)
        read = Records, "sum"
        monkeypatch.setattr(reading, "HELD", 0)
    action = getattr(*read)
    monkeypatch.setattr(*read, lambda *given: written(path, 2) and action(*given))
    with pytest.raises(SchemaError, match="or a file of it was written to; what a call was charged stays spent"):
        if how == "counted":
            dpc.cells(table, by=["g"], loss=dpc.PureDP(1))
        else:
            dpc.ci_test(table, "x", "y", given=[], loss=dpc.PureDP(1), method=dpc.methods.Gcm(blocks=5))
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("task", SUMS)
def test_what_is_summed_where_the_rows_are_can_be_sent_there(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a trial's scores were made by had hold of the table, which no worker may have: refused after the spend."""
    cloudpickle = pytest.importorskip("cloudpickle")
    monkeypatch.setattr(reading, "HELD", 0)
    summed = type(source_of(people())).summed

    def sent(source: Any, names: Any, function: Any) -> Any:
        return summed(source, names, cloudpickle.loads(cloudpickle.dumps(function)))

    monkeypatch.setattr(type(source_of(people())), "summed", sent)
    assert not isinstance(outcome(task, lambda table: table), str)


def rows(x: list[float], g: list[int], present: list[bool], weights: list[float] | None = None) -> Rows:
    values = {"x": np.array(x), "g": np.array(g, dtype=np.int64)}
    masks = {"x": np.array(present), "g": np.ones(len(x), dtype=np.bool_)}
    return Rows(values, masks["x"], masks, weights=None if weights is None else np.array(weights))


def test_a_mark_is_that_of_the_records_whatever_their_order_and_batches_and_of_no_others() -> None:
    x, g, present = [0.1, 0.2, 0.3], [0, 1, 1], [True, True, False]
    mark = rows(x, g, present).mark
    assert mark == rows(x[::-1], g[::-1], present[::-1]).mark
    parts = np.array([rows(x[:1], g[:1], present[:1]).mark, rows(x[1:], g[1:], present[1:]).mark])
    assert parts.sum() == mark  # as int64, which wraps
    others = [
        rows([0.1, 0.3, 0.2], g, present), rows(x, [1, 0, 1], present), rows(x, g, [False, True, True]),
        rows(x, g, [True] * 3), rows([0.1, 0.2, np.nextafter(0.3, 1)], g, present), rows(x[:2], g[:2], present[:2]),
        rows(x, g, present, [1.0, 1.0, 0.5]), rows(x, g, present, [1.0, 0.5, 1.0]),
    ]  # fmt: skip
    assert len({mark, *(other.mark for other in others)}) == 1 + len(others)
    assert rows([], [], []).mark == 0
