"""One call over every engine: the same bits, whatever the order, the batches, the partitions and the settings."""

import os
import signal
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import dpcausal as dpc
from dpcausal.audit import greybox
from dpcausal.data import records as reading
from dpcausal.data.files import arrow, fields, packages
from dpcausal.data.sources import arrays
from dpcausal.data.sources import duckdb as in_duckdb
from dpcausal.data.sources import frame as frames
from dpcausal.data.sources import polars as in_polars
from dpcausal.errors import ParameterError, SchemaError
from tests.data.conftest import BACKENDS, DATABASE
from tests.data.every_task import SCHEMA, N, released, rows
from tests.factories import refused_unpaid, table
from tests.voices import Heard


def collated(table: pa.Table, path: Path) -> Any:
    connection = duckdb.connect()
    connection.sql("SET default_collation = 'nocase'; SET integer_division = true; SET threads = 1")
    connection.sql("SET TimeZone = 'Asia/Kathmandu'")
    return connection.from_arrow(table)


ENGINES = {"duckdb, nocase": collated} | {name: BACKENDS[name] for name in (
    "pandas", "pandas pyarrow", "polars", "polars lazy", "pyarrow", "duckdb", "parquet")}  # fmt: skip


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is held between passes, and a batch is small."""
    monkeypatch.setattr(reading, "HELD", 0)
    for module in (arrays, frames, arrow, fields, packages, in_duckdb, in_polars):
        monkeypatch.setattr(module, "BATCH", 91)


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    """What plain rows in memory give."""
    return released(rows())


@pytest.mark.parametrize("engine", ENGINES)
def test_every_task_that_sums_releases_the_same_bits(engine: str, expected: dict[str, Any], tmp_path: Path) -> None:
    shuffled = rows().take(np.random.default_rng(3).permutation(N))
    assert released(ENGINES[engine](shuffled, tmp_path)) == expected


def test_rows_that_are_held_are_summed_in_pieces_to_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, expected: dict[str, Any]
) -> None:
    monkeypatch.setattr(reading, "HELD", N)
    for piece in (37, 2 * N):
        monkeypatch.setattr(reading, "PIECE", piece)
        assert released(rows()) == expected


@pytest.mark.parametrize("levels", [2, 127, 128, 300])
def test_codes_of_any_number_of_levels_are_summed_right_where_they_are_held(
    monkeypatch: pytest.MonkeyPatch, levels: int
) -> None:
    monkeypatch.setattr(reading, "HELD", N)
    monkeypatch.setattr(reading, "PIECE", 37)
    codes = np.random.default_rng(levels).integers(0, levels, N)
    schema = dpc.Schema({"g": dpc.Levels(range(levels))})
    table = dpc.Table({"g": codes}, schema, dpc.Ledger.in_memory(dpc.PureDP(1)))
    counts = table.records(["g"]).sum(lambda rows: np.bincount(1000 * rows.values["g"], minlength=1000 * levels))
    assert (counts[::1000] == np.bincount(codes, minlength=levels)).all() and counts.sum() == N


def test_a_folder_a_pattern_and_a_database_are_one_table(tmp_path: Path, expected: dict[str, Any]) -> None:
    (home := tmp_path / "parts").mkdir()
    for place, start in enumerate(range(0, N, 400)):
        pyarrow.parquet.write_table(rows().slice(start, 400), home / f"part-{place}.parquet", row_group_size=90)
    (home / "_SUCCESS").touch()
    with duckdb.connect(str(tmp_path / "t.db")) as connection:
        connection.from_arrow(rows()).create("people")
    for path in (home, f"{home}/part-*.parquet", f"duckdb:///{tmp_path}/t.db?table=people"):
        assert released(path) == expected


X = pl.LazyFrame({"x": [0.1, 0.2, 0.2], "y": [1, 2, 3]})
CHANGING = [
    "SELECT Random ( ) AS x FROM range(9)", "SELECT 1.0 AS x FROM range(9) USING SAMPLE 3",
    "SELECT epoch(now()) AS x FROM range(9)", "SELECT 1 / txid_current() AS x FROM range(9)",
    *(f"FROM {name}" for name in ("one", "two", "made", "part", "beside")),
    "SELECT a.x, b.x AS y FROM still a POSITIONAL/**/JOIN still b",
    X.select(pl.col("x").shuffle()), X.select(pl.col("x").sample(2)), X.unique("x"),
    X.select(x=pl.col("x").rank(method="random") / 9),
    pl.concat([X.filter(pl.col("x") > 0.1).select("x"), X.select("y")], how="horizontal"),
]  # fmt: skip


@pytest.mark.parametrize("query", CHANGING, ids=lambda query: query if isinstance(query, str) else "polars")
def test_a_query_that_changes_or_joins_rows_by_place_is_refused_by_itself_a_view_or_a_macro(query: Any) -> None:
    connection, schema = duckdb.connect(), dpc.Schema({"x": dpc.Bounded(0, 1)})
    connection.sql("CREATE MACRO drawn() AS random(); CREATE VIEW still AS SELECT range / 9 AS x FROM range(9)")
    connection.sql("CREATE VIEW one AS SELECT drawn() AS x FROM range(9); CREATE VIEW two AS SELECT x FROM One")
    connection.sql("CREATE TABLE made (y INT, x DOUBLE AS (random())); INSERT INTO made VALUES (1), (2)")
    connection.sql("CREATE VIEW part AS SELECT x FROM still USING SAMPLE 5")
    connection.sql("CREATE VIEW beside AS SELECT x FROM still POSITIONAL JOIN (SELECT x AS y FROM still WHERE x > 0.1)")
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    for steady in (connection.table("still"), X):
        assert dpc.Table(steady, schema, ledger).n in (3, 9)
    with pytest.raises(SchemaError):
        dpc.Table(connection.sql(query) if isinstance(query, str) else query, schema, ledger)


STEADY = [
    X, X.filter(pl.col("x") > 0.1), X.rename({"x": "z"}), X.drop_nulls(), X.with_row_index(),
    X.with_columns(z=pl.when(pl.col("y") > 1).then(1).otherwise(2)),
    X.select(pl.col("x").log1p().clip(0, 1), s=pl.col("y").cast(pl.String).str.zfill(3)),
    "SELECT x + 1 AS x, upper('a') FROM t WHERE x > 1", "FROM t",
]  # fmt: skip
MOVED = [
    X.filter(pl.col("x") > 0.1).head(2), X.tail(1), X.reverse(), X.sort("x"), X.top_k(2, by="x"), X.gather_every(2),
    X.select(pl.col("x").filter(pl.col("x") > 0.1).append(pl.col("x").filter(pl.col("x") <= 0.1))),
    X.select(pl.col("x").drop_nulls().head(2)),
    X.select(pl.col("x").sort_by("y")), X.select(pl.col("x") - pl.col("x").mean()), X.select(pl.col("x").shift(1)),
    X.select(pl.col("x").cum_sum()), pl.concat([X, X]), X.select(pl.col("x").fill_null(strategy="forward")),
    "SELECT x FROM t WHERE x > 1 LIMIT 2", "SELECT sum(x) OVER () AS x FROM t",
    "FROM t UNION ALL FROM t", "FROM t ORDER BY x", "SELECT DISTINCT x FROM t", "SELECT x FROM t LIMIT 2",
]  # fmt: skip


@pytest.mark.parametrize(("query", "is_steady"), [*((one, True) for one in STEADY), *((one, False) for one in MOVED)],
                         ids=lambda one: "" if isinstance(one, pl.LazyFrame) else str(one))  # fmt: skip
def test_rows_have_an_order_where_each_step_leaves_them_in_place(query: Any, is_steady: bool) -> None:
    connection = duckdb.connect()
    connection.sql("CREATE TABLE t AS SELECT range::DOUBLE AS x FROM range(9)")
    engine = in_duckdb if isinstance(query, str) else in_polars
    assert engine.ordered(connection.sql(query) if isinstance(query, str) else query) is is_steady


GROUPED: dict[str, Callable[[pa.Table], Any]] = {
    "duckdb group": lambda whole: DATABASE.from_arrow(whole).aggregate("id, max(x) AS x, max(y) AS y", "id"),
    "duckdb distinct": lambda whole: DATABASE.from_arrow(whole).distinct(),
    "duckdb sort": lambda whole: DATABASE.from_arrow(whole).order("id"),
    "polars group": lambda whole: pl.from_arrow(whole).lazy().group_by("id").agg(pl.col("x").max(), pl.col("y").max()),
    "polars join": lambda whole: pl.from_arrow(whole).lazy().join(pl.from_arrow(whole).lazy().select("id"), on="id"),
    "polars sort": lambda whole: pl.from_arrow(whole).lazy().sort("id"),
}


@pytest.mark.parametrize("engine", GROUPED)
def test_rows_in_an_order_that_one_record_may_change_are_not_dealt_by_place(engine: str) -> None:
    """Seen: one of 3,000 groups replaced, DuckDB moved 1,485, and a sum of blocks by 1,500 where 150 was declared."""
    rng, n, loss, gcm = np.random.default_rng(4), 400, dpc.PureDP(8), dpc.methods.Gcm(blocks=5)
    whole = pa.table({"id": rng.permutation(n), "x": rng.normal(size=n), "y": rng.normal(size=n)})
    other = whole.set_column(0, "id", pa.array(np.where(np.arange(n) == 200, n + 7, whole["id"].to_numpy())))

    def made(of: pa.Table, **how: Any) -> dpc.Table:
        return table(GROUPED[engine](of), dict.fromkeys("xy", dpc.Bounded(-3, 3)), dpc.ApproxDP(20, 1e-6), **how)

    def compared(call: Callable[[pa.Table], Any]) -> greybox.GreyBoxAudit:
        return greybox.compare(lambda: call(whole), lambda: call(other), answers="high")

    def tested(of: dpc.Table) -> float:
        return dpc.ci_test(of, "x", "y", given=[], loss=loss, method=gcm).statistic

    for call in (tested, lambda of: dpc.direction(of, "x", "y", loss=loss)):
        assert "person=" in refused_unpaid(made(whole), ParameterError, call)
    assert not compared(lambda of: tested(made(of, person="id"))).violated
    assert not compared(lambda of: dpc.moments(made(of), ["x", "y"], loss=dpc.ApproxDP(8, 1e-6)).numbers()).violated


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_ctrl_c_in_the_middle_of_a_pass_leaves_the_spend_and_no_file(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = in_duckdb if engine == "duckdb" else in_polars
    batches, seen = module.batches, []

    def interrupted(native: Any) -> Iterator[Any]:
        for batch in batches(native):
            yield batch
            seen.append(len(batch))
            if len(seen) == 3:
                os.kill(os.getpid(), signal.SIGINT)

    connection = duckdb.connect(config={"temp_directory": str(tmp_path / "spilled")})
    frame: Any = connection.from_arrow(rows()) if engine == "duckdb" else pl.from_arrow(rows()).lazy()
    ledger = dpc.Ledger.create(tmp_path / "study.ledger", budget=dpc.ApproxDP(100, 1e-4), accept_large_epsilon=True)
    table = dpc.Table(frame, SCHEMA, ledger)
    monkeypatch.setattr(module, "batches", interrupted)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeyboardInterrupt) as caught:
        dpc.moments(table, ["x", "y"], loss=dpc.ApproxDP(8, 1e-6))
    assert len(seen) == 3 and caught.value.__context__ is None
    assert len(ledger.entries()) == 1
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["study.ledger"]


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.usefixtures("without_waits")
def test_a_batch_that_fails_is_refused_without_a_word_of_the_rows(engine: str, heard: Heard) -> None:
    """The table was fit when it was made; then a record comes that the engine's own cast refuses, and quotes."""
    canary, schema = "canary-7177", dpc.Schema({"x": dpc.Bounded(0, 1), "y": dpc.Bounded(0, 1)})
    texts, ledger, connection = ["0.5"] * 300, dpc.Ledger.in_memory(dpc.ApproxDP(20, 1e-4)), duckdb.connect()
    if engine == "duckdb":
        connection.from_arrow(pa.table({"t": texts})).create("people")
        frame: Any = connection.sql("SELECT t::DOUBLE AS x, 1 - t::DOUBLE AS y FROM people")
    else:
        frame = pl.LazyFrame({"t": texts}).map_batches(lambda part: part.with_columns(t=pl.Series(texts)))
        frame = frame.select(x=pl.col("t").cast(pl.Float64), y=1 - pl.col("t").cast(pl.Float64))
    table = dpc.Table(frame, schema, ledger)
    texts[-1] = canary
    if engine == "duckdb":
        connection.sql(f"UPDATE people SET t = '{canary}' WHERE rowid = 299")
    with pytest.raises(SchemaError) as caught:
        dpc.moments(table, ["x", "y"], loss=dpc.ApproxDP(8, 1e-6))
    assert canary not in "".join(traceback.format_exception(caught.value)) + heard()
    assert caught.value.__cause__ is caught.value.__context__ is None and len(ledger.entries()) == 1
