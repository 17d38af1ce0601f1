"""One call over every engine: the same bits, whatever the order, the batches, the partitions and the settings."""

import os
import signal
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
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
from tests.voices import Heard

N = 900
TEXTS = ["no", "No", "no ", "e\u0301", "\u00e9", "\u00c9", None]
SCHEMA = dpc.Schema({
    "x": dpc.Bounded(-2, 2), "y": dpc.Bounded(0, 1, cuts=[0.1, 0.5]), "arm": dpc.Levels([0, 1]),
    "site": dpc.Levels(["no", "e\u0301", "\u00e9"]), "day": dpc.Levels([2**53 + 1, 2**53]),
    "yes": dpc.Levels([False, True]),
})  # fmt: skip


def hostile(seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=N)
    x[:9] = [np.nan, np.inf, -np.inf, -0.0, 5e-324, 0.5, -0.5, 1e308, 2.0]
    y = rng.random(N).astype(np.float32)
    y[:4] = [np.nan, 0.1, 0.5, np.inf]
    return pa.table({
        "x": pa.array(x, mask=rng.random(N) < 0.05), "y": y, "arm": rng.integers(0, 2, N),
        "site": [TEXTS[place] for place in rng.integers(0, len(TEXTS), N)],
        "day": rng.choice([2**53 + 1, 2**53, 2**53 - 1], N), "yes": rng.random(N) < 0.5,
    })  # fmt: skip


def collated(table: pa.Table, path: Path) -> Any:
    connection = duckdb.connect()
    connection.sql("SET default_collation = 'nocase'; SET integer_division = true; SET threads = 1")
    connection.sql("SET TimeZone = 'Asia/Kathmandu'")
    return connection.from_arrow(table)


def parquet(table: pa.Table, path: Path) -> Path:
    pyarrow.parquet.write_table(table, path / "t.parquet", row_group_size=50)
    return path / "t.parquet"


ENGINES: dict[str, Callable[[pa.Table, Path], Any]] = {
    "pandas": lambda table, path: table.to_pandas(types_mapper=pd.ArrowDtype),
    "numpy objects": lambda table, path: table.to_pandas(),
    "polars": lambda table, path: pl.from_arrow(table),
    "polars streaming": lambda table, path: pl.from_arrow(table).lazy(),
    "arrow": lambda table, path: table,
    "duckdb": lambda table, path: duckdb.connect().from_arrow(table),
    "duckdb, nocase": collated,
    "parquet": parquet,
}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is held between passes, and a batch is small."""
    monkeypatch.setattr(reading, "HELD", 0)
    for module in (arrays, frames, arrow, fields, packages, in_duckdb, in_polars):
        monkeypatch.setattr(module, "BATCH", 91)
    yield


def released(frame: Any, seed: int = 5) -> list[Any]:
    """Return every number that the tasks which sum release of one frame, under one noise."""
    with dpc.simulated_noise(seed):
        table = dpc.Table(frame, SCHEMA, dpc.Ledger.in_memory(dpc.ApproxDP(100, 1e-4), accept_large_epsilon=True))
        loss = dpc.ApproxDP(8, 1e-6)
        estimates: list[Any] = []
        about: Any = {"table": table, "treatment": "arm", "outcome": "y"}
        found = [
            dpc.moments(table, ["x", "y", "arm"], loss=loss, robust_for=("y", ["x"])),
            dpc.cells(table, by=["arm", "site"], values=["y"], loss=dpc.PureDP(4)),
            dpc.effect(**about, adjust=["x"], method="aipw", loss=loss).release,
            dpc.effect(**about, adjust=["yes"], method="stratified", loss=dpc.PureDP(4), groups="day").release,
            dpc.discover(table, columns=["x", "y", "arm"], method="moments", loss=loss).release,
        ]
        for arms in ({"probabilities": [0.5, 0.5]}, {"sizes": [N // 2, N // 2]}):
            trial = dpc.methods.RandomizedTrial(**arms)
            drawn = dpc.effect(**about, adjust=[], method=trial, loss=dpc.PureDP(4))
            found.append(drawn.release)
            estimates.append(drawn.estimate)
        for method, paid in (("table", dpc.PureDP(4)), ("parities", loss), ("whitened", loss), ("triples", loss)):
            columns = ["y", "arm", "site", "day", "yes"]
            found.append(dpc.discover(table, columns=columns, method=method, loss=paid).release)
        told = dpc.ci_test(table, "yes", "arm", given=["site", "day"], loss=dpc.PureDP(4), method="strata-covariance")
        counted = dpc.ci_test(table, "yes", "arm", given=["site"], loss=dpc.PureDP(4), method="counts")
    tests = (told.statistic, told.pvalue, counted.statistic, counted.pvalue)
    return [*(one.numbers() for one in found), *estimates, *tests]


@pytest.fixture(scope="module")
def expected() -> list[Any]:
    """What plain rows in memory give."""
    return released(hostile())


@pytest.mark.parametrize("engine", ENGINES)
def test_every_task_that_sums_releases_the_same_bits(engine: str, expected: list[Any], tmp_path: Path) -> None:
    table = hostile()
    shuffled = table.take(np.random.default_rng(3).permutation(N))
    assert released(ENGINES[engine](shuffled, tmp_path)) == expected


def test_rows_that_are_held_are_summed_in_pieces_to_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, expected: list[Any]
) -> None:
    monkeypatch.setattr(reading, "HELD", N)
    for piece in (37, 2 * N):
        monkeypatch.setattr(reading, "PIECE", piece)
        assert released(hostile()) == expected


def test_a_folder_a_pattern_and_a_database_are_one_table(tmp_path: Path, expected: list[Any]) -> None:
    home = tmp_path / "parts"
    home.mkdir()
    rows = hostile()
    for place, start in enumerate(range(0, N, 400)):
        pyarrow.parquet.write_table(rows.slice(start, 400), home / f"part-{place}.parquet", row_group_size=90)
    (home / "_SUCCESS").touch()
    with duckdb.connect(str(tmp_path / "t.db")) as connection:
        connection.from_arrow(rows).create("people")
    for path in (home, f"{home}/part-*.parquet", f"duckdb:///{tmp_path}/t.db?table=people"):
        assert released(path) == expected


def test_a_folder_to_which_a_file_is_added_is_refused_before_the_spend(tmp_path: Path) -> None:
    for place in range(2):
        pyarrow.parquet.write_table(hostile(), tmp_path / f"{place}.parquet")
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    table = dpc.Table(tmp_path, SCHEMA, ledger)
    assert table.n == 2 * N
    pyarrow.parquet.write_table(hostile().slice(0, 1), tmp_path / "2.parquet")
    with pytest.raises(SchemaError, match="was changed after it was declared: nothing was spent"):
        dpc.cells(table, by=["arm"], loss=dpc.PureDP(1))
    assert not ledger.entries()
    pyarrow.parquet.write_table(hostile().drop(["y"]), tmp_path / "2.parquet")
    with pytest.raises(SchemaError, match="must have the same columns, of the same types"):
        dpc.Table(tmp_path, SCHEMA, ledger)


X = pl.LazyFrame({"x": [0.1, 0.2, 0.2], "y": [1, 2, 3]})
CHANGING = [
    "SELECT Random ( ) AS x FROM range(9)", "SELECT 1.0 AS x FROM range(9) USING SAMPLE 3",
    "SELECT epoch(now()) AS x FROM range(9)", *(f"FROM {name}" for name in ("one", "two", "made", "part")),
    X.select(pl.col("x").shuffle()), X.select(pl.col("x").sample(2)), X.unique("x"),
    X.select(x=pl.col("x").rank(method="random") / 9),
]  # fmt: skip


@pytest.mark.parametrize("query", CHANGING, ids=lambda query: query if isinstance(query, str) else "polars")
def test_a_query_whose_rows_may_change_by_itself_a_view_a_macro_or_a_computed_column_is_refused(query: Any) -> None:
    connection, schema = duckdb.connect(), dpc.Schema({"x": dpc.Bounded(0, 1)})
    connection.sql("CREATE MACRO drawn() AS random(); CREATE VIEW still AS SELECT range / 9 AS x FROM range(9)")
    connection.sql("CREATE VIEW one AS SELECT drawn() AS x FROM range(9); CREATE VIEW two AS SELECT x FROM One")
    connection.sql("CREATE TABLE made (y INT, x DOUBLE AS (random())); INSERT INTO made VALUES (1), (2)")
    connection.sql("CREATE VIEW part AS SELECT x FROM still USING SAMPLE 5")
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    for steady in (connection.table("still"), X):
        assert dpc.Table(steady, schema, ledger).n in (3, 9)
    with pytest.raises(SchemaError):
        dpc.Table(connection.sql(query) if isinstance(query, str) else query, schema, ledger)


GROUPED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "duckdb group": lambda rows: duckdb.connect().from_arrow(pa.table(rows)).aggregate(
        "id, max(x) AS x, max(y) AS y", "id"
    ),
    "duckdb distinct": lambda rows: duckdb.connect().from_arrow(pa.table(rows)).distinct(),
    "duckdb sort": lambda rows: duckdb.connect().from_arrow(pa.table(rows)).order("id"),
    "polars group": lambda rows: pl.LazyFrame(rows).group_by("id").agg(pl.col("x").max(), pl.col("y").max()),
    "polars join": lambda rows: pl.LazyFrame(rows).join(pl.LazyFrame({"id": rows["id"]}), on="id"),
    "polars sort": lambda rows: pl.LazyFrame(rows).sort("id"),
}


@pytest.mark.parametrize("engine", GROUPED)
def test_rows_in_an_order_that_one_record_may_change_are_not_dealt_by_place(engine: str) -> None:
    """Seen: one of 3,000 groups replaced, DuckDB moved 1,485, and a sum of blocks by 1,500 where 150 was declared."""
    rng, n = np.random.default_rng(4), 400
    rows = {"id": rng.permutation(n), "x": rng.normal(size=n), "y": rng.normal(size=n)}
    other = rows | {"id": np.where(np.arange(n) == 200, n + 7, rows["id"])}
    schema = dpc.Schema(dict.fromkeys("xy", dpc.Bounded(-3, 3)))
    loss, asked = dpc.PureDP(8), dpc.methods.Gcm(blocks=5)

    def table(of: dict[str, Any], **how: Any) -> dpc.Table:
        ledger = dpc.Ledger.in_memory(dpc.ApproxDP(20, 1e-6), **how)
        return dpc.Table(GROUPED[engine](of), schema, ledger, **how)

    def compared(call: Callable[[dict[str, Any]], Any]) -> greybox.GreyBoxAudit:
        return greybox.compare(lambda: call(rows), lambda: call(other), answers="high")

    def tested(of: dpc.Table) -> float:
        return dpc.ci_test(of, "x", "y", given=[], loss=loss, method=asked).statistic

    calls: list[Callable[[dpc.Table], Any]] = [tested, lambda of: dpc.direction(of, "x", "y", loss=loss).to_dict()]
    for call in calls:
        unkeyed = table(rows)
        with pytest.raises(ParameterError, match="person="):
            call(unkeyed)
        assert not unkeyed.ledger.entries()
    assert not compared(lambda of: tested(table(of, person="id"))).violated
    assert not compared(lambda of: dpc.moments(table(of), ["x", "y"], loss=dpc.ApproxDP(8, 1e-6)).numbers()).violated


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
    frame: Any = connection.from_arrow(hostile()) if engine == "duckdb" else pl.from_arrow(hostile()).lazy()
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
def test_a_batch_that_fails_is_refused_without_a_word_of_the_rows(engine: str, heard: Heard) -> None:
    """The table was fit when it was made; then a record comes that the engine's own cast refuses, and quotes."""
    canary, schema = "canary-7177", dpc.Schema({"x": dpc.Bounded(0, 1), "y": dpc.Bounded(0, 1)})
    texts, ledger, connection = ["0.5"] * 300, dpc.Ledger.in_memory(dpc.ApproxDP(20, 1e-4)), duckdb.connect()
    if engine == "duckdb":
        connection.from_arrow(pa.table({"t": texts})).create("people")
        frame: Any = connection.sql("SELECT t::DOUBLE AS x, 1 - t::DOUBLE AS y FROM people")
    else:
        frame = pl.LazyFrame({"t": texts}).map_batches(lambda rows: rows.with_columns(t=pl.Series(texts)))
        frame = frame.select(x=pl.col("t").cast(pl.Float64), y=1 - pl.col("t").cast(pl.Float64))
    table = dpc.Table(frame, schema, ledger)
    texts[-1] = canary
    if engine == "duckdb":
        connection.sql(f"UPDATE people SET t = '{canary}' WHERE rowid = 299")
    with pytest.raises(SchemaError) as caught:
        dpc.moments(table, ["x", "y"], loss=dpc.ApproxDP(8, 1e-6))
    assert canary not in "".join(traceback.format_exception(caught.value)) + heard()
    assert caught.value.__cause__ is caught.value.__context__ is None and len(ledger.entries()) == 1
