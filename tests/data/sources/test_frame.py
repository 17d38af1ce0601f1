"""The border: each type of each kind of frame is read right or refused with what to do, and only what was asked for."""

import math
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpcausal import Bounded, Levels, Schema
from dpcausal.errors import DpCausalError, ParameterError, SchemaError
from tests.data.conftest import DATABASE, cells_of
from tests.factories import table

NUMBERS = [0.1, -0.0, None, math.nan, math.inf, -math.inf, 1e308, -5e-324, 7.3, 1 / 3]
INTEGERS = [2**53 + 1, -(2**63), 2**63 - 1, None, 0, 3, 1, 2**53 + 3, 2, 1]
TEXT = ["no", "yes", None, " yes", "YES", "naïve", "no", "1", "yes", "true"]
TRUTH = [True, None, False, False, True, True, None, True, False, True]
FRAME = pa.table({
    "unused": [f"canary{row}" for row in range(10)], "x": pa.array(NUMBERS, pa.float64()),
    "i": pa.array(INTEGERS, pa.int64()), "t": TEXT, "b": TRUTH,
})  # fmt: skip
SCHEMA = Schema({
    "x": Bounded(-2, 5), "i": Bounded(-1e18, 1e18), "t": Levels(["yes", "no", "naïve"]),
    "b": Levels([False, True], other="unknown"),
})  # fmt: skip


def bounded_by_hand(values: list[Any], lower: float, upper: float) -> np.ndarray:
    middle = (lower + upper) / 2
    return np.array([middle if value is None or math.isnan(value) else min(max(float(value), lower), upper) + 0.0
                     for value in values])  # fmt: skip


def levels_by_hand(values: list[Any], levels: list[Any], substitute: int) -> np.ndarray:
    return np.array([levels.index(value) if value in levels else substitute for value in values])


EXPECTED = {
    "t": levels_by_hand(TEXT, ["yes", "no", "naïve"], 0), "x": bounded_by_hand(NUMBERS, -2, 5),
    "b": levels_by_hand(TRUTH, [False, True], 2), "i": bounded_by_hand(INTEGERS, -1e18, 1e18),
}  # fmt: skip


def test_every_kind_of_frame_gives_bit_identical_arrays_of_the_callers_own(as_frame: Callable) -> None:
    whole = table(as_frame(FRAME), SCHEMA)
    for columns in (whole.columns(list(EXPECTED)), whole.columns(list(EXPECTED))):
        assert list(columns) == list(EXPECTED)
        for name, expected in EXPECTED.items():
            assert columns[name].dtype == expected.dtype and columns[name].tobytes() == expected.tobytes(), name
            columns[name][:] = 9


def arrow(values: Any, dtype: Any = None) -> pa.Table:
    return pa.table({"v": pa.array(values, dtype)})


def pandas(values: Any, dtype: Any) -> Any:
    return pd.DataFrame({"v": pd.array(values, dtype=dtype)})


def polars(values: Any, dtype: Any) -> Any:
    return pl.DataFrame({"v": pl.Series(values, dtype=dtype)})


def duck(values: str, dtype: str) -> Any:
    return DATABASE.sql(f"SELECT v::{dtype} AS v FROM (VALUES {values}) AS t(v)")


ENGINES: dict[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda whole: whole, "pandas": lambda whole: whole.to_pandas(),
    "pandas arrow": lambda whole: whole.to_pandas(types_mapper=pd.ArrowDtype), "polars": pl.from_arrow,
    "polars lazy": lambda whole: pl.from_arrow(whole).lazy(), "duckdb": lambda whole: DATABASE.from_arrow(whole),
}  # fmt: skip
NUMBER, TEXTS, CODE, BOOLEAN = Bounded(0, 10), Levels(["b", "a"]), Levels([3, 1]), Levels([False, True])
ONES, WORDS, TRUTHS = [1, None, 3], ["a", None, "b"], [True, None, False]
CODED = [1, None, 0]
ENUM, CENTS = pl.Enum(["a", "b"]), [Decimal("1.00"), None, Decimal("3.00")]
WIDE, HUGE = [0, 1, 2**53 + 1, 2**64 - 1, None, 2**63], Bounded(0, 1e30)
DIGITS = ["0.1", "0.30000000000000004441", "12345678901234567.89012345678901234567", None]
LONG = [None if text is None else Decimal(text) for text in DIGITS]
MASKED = np.ma.masked_array(np.array([value or 0 for value in WIDE], dtype=np.uint64), [0, 0, 0, 0, 1, 0])
LONGEST = np.finfo(np.longdouble).max
NARROW = [engine for engine in ENGINES if engine not in ("pandas", "polars lazy")]
READ: dict[str, tuple[Any, Any, list[Any]]] = {
    **{f"pandas {dtype}": (pandas(ONES, dtype), NUMBER, ONES)
       for dtype in ("Int64", "UInt8", "Float64", "int64[pyarrow]", pd.ArrowDtype(pa.decimal128(9, 2)))},
    **{f"pandas {dtype}": (pandas(WORDS, dtype), TEXTS, CODED)
       for dtype in ("string", "str", "string[pyarrow]", "category", "object")},
    "pandas Int64 code": (pandas(ONES, "Int64"), CODE, CODED),
    "pandas boolean": (pandas(TRUTHS, "boolean"), BOOLEAN, CODED),
    "pandas category of numbers": (pandas(ONES, "category"), CODE, CODED),
    "pandas category as a number": (pandas(ONES, "category"), NUMBER, ONES),
    "pandas NaN beside nulls": (pd.DataFrame({"v": pd.array([0.0, 1.0, None], dtype="Float64") / 0}), NUMBER,
                                [None, 10, None]),
    "pandas with an index": (pd.DataFrame({"v": [1.0, None, 3.0]}, index=[1, 1, 0]), NUMBER, ONES),
    "polars Int8": (polars(ONES, pl.Int8), NUMBER, ONES),
    "polars Decimal": (polars(CENTS, pl.Decimal(9, 2)), NUMBER, ONES),
    "polars Categorical": (polars(WORDS, pl.Categorical), TEXTS, CODED),
    "polars Enum": (polars(WORDS, ENUM), TEXTS, CODED),
    "polars lazy Enum": (polars(WORDS, ENUM).lazy(), TEXTS, CODED),
    "polars Boolean": (polars(TRUTHS, pl.Boolean), BOOLEAN, CODED),
    "arrow decimal128": (arrow(CENTS, pa.decimal128(9, 2)), NUMBER, ONES),
    "arrow decimal256": (arrow(CENTS, pa.decimal256(50, 2)), NUMBER, ONES),
    "arrow dictionary": (arrow(WORDS, pa.dictionary(pa.int8(), pa.string())), TEXTS, CODED),
    "arrow dictionary of numbers": (arrow(ONES, pa.dictionary(pa.int8(), pa.int64())), CODE, CODED),
    "arrow string view": (arrow(WORDS, pa.string_view()), TEXTS, CODED),
    "arrow bool": (arrow(TRUTHS, pa.bool_()), BOOLEAN, CODED),
    "duckdb decimal": (duck("(1), (NULL), (3)", "DECIMAL(9, 2)"), NUMBER, ONES),
    "duckdb hugeint": (duck("(1), (NULL), (3)", "HUGEINT"), NUMBER, ONES),
    "duckdb enum": (duck("('a'), (NULL), ('b')", "ENUM ('a', 'b')"), TEXTS, CODED),
    **{f"numpy {dtype}": ({"v": np.array([1, 2, 100], dtype=dtype)}, NUMBER, [1, 2, 10])
       for dtype in ("float16", "float32", "float64", "longdouble", ">f8", "int8", "uint16", ">i4")},
    "numpy beyond float64": ({"v": np.array([LONGEST, -LONGEST])}, NUMBER, [10, 0]),
    "narwhals of pandas": (nw.from_native(pd.DataFrame({"v": [1.0]})), NUMBER, [1]),
    "narwhals of polars": (nw.from_native(pl.LazyFrame({"v": [1.0]})), NUMBER, [1]),
    **{f"{engine} null type as {column}": (convert(arrow([None] * 2, pa.null())), column, [expected] * 2)
       for engine, convert in ENGINES.items() if engine != "pandas"
       for column, expected in ((NUMBER, None), (Levels(["a", "b"], other="b"), 1), (Levels([1]), None))},
    **{f"{name} of 64 bits and more": (frame, HUGE, [None if value is None else float(value) for value in WIDE])
       for name, frame in {
           "arrow": arrow(WIDE, pa.uint64()), "polars": polars(WIDE, pl.UInt64), "pandas": pandas(WIDE, "UInt64"),
           "polars Int128": polars(WIDE, pl.Int128), "polars lazy Int128": polars(WIDE, pl.Int128).lazy(),
           "pandas arrow": pandas(WIDE, "uint64[pyarrow]"), "numpy": {"v": MASKED}}.items()},
    **{f"{engine} long decimals": (ENGINES[engine](arrow(LONG, pa.decimal128(38, 20))), HUGE,
                                   [None if text is None else float(text) for text in DIGITS]) for engine in NARROW},
    "arrow longer decimals": (arrow(LONG, pa.decimal256(60, 20)), HUGE,
                              [None if text is None else float(text) for text in DIGITS]),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_a_column_of_this_type_is_read_right_and_rounded_once(name: str) -> None:
    frame, column, expected = READ[name]
    assert cells_of(frame, column, "v") == expected


STAMPS = np.array(["2020-01-01"], dtype="datetime64[ns]")
UNFIT: dict[str, Any] = {
    "text": pa.array(["3"]), "bool": pa.array([True]), "datetime": pa.array(STAMPS), "binary": pa.array([b"3"]),
    "duration": pa.array(np.array([3], dtype="timedelta64[ns]")), "category": pa.array(["3"]).dictionary_encode(),
    "list": pa.array([[3.0]]), "struct": pa.array([{"v": 3.0}]),
}  # fmt: skip
OTHER: list[tuple[Any, Any]] = [
    *((TEXTS, pa.array(one)) for one in ([1], [1.0], [True], [b"a"], STAMPS)), (CODE, pa.array(["1"])),
    (CODE, pa.array(STAMPS)), (CODE, pa.array([Decimal(1)])), (BOOLEAN, pa.array(["True"])),
]  # fmt: skip
CATEGORIES = [(TEXTS, pa.array([1, 2]).dictionary_encode()), (CODE, pa.array(["1"]).dictionary_encode())]
NUMERIC, NO_FRAME = "column 'v': Bounded needs a numeric column", "a frame must be a pandas, polars or pyarrow table"
NAMES: list[tuple[list[Any], int]] = [
    (["v", 1], 2), ([0, 1], 1), ([("canary", 1), ("canary", 2)], 1), (["v", None], 2), (["v", math.nan], 2),
    ([b"canary", "v"], 1), (["y", 7.777123], 2),
]  # fmt: skip
Refused = tuple[Any, Any, type[DpCausalError], str]
REFUSED: list[Refused] = [
    *((convert(pa.table({"v": values})), NUMBER, SchemaError, NUMERIC) for values in UNFIT.values()
      for convert in ENGINES.values()),
    *((frame, NUMBER, SchemaError, f"{NUMERIC}.*{words}") for array, words in (
        (np.array([1j]), "convert it"), (np.array(["3"]), "to_numeric"), (np.array([3], dtype=object), "to_numeric"),
        (np.array([True]), r"Levels\(\[False, True\]\)"), (STAMPS, "declare dates"))
      for frame in ({"v": array}, pd.DataFrame({"v": array}))),
    ({"v": np.array([b"3"])}, NUMBER, SchemaError, f"{NUMERIC}.*convert it"),
    (pd.DataFrame({"v": np.array([b"3"])}), NUMBER, SchemaError, f"{NUMERIC}.*to_numeric"),
    *((convert(pa.table({"v": values})), column, SchemaError, f"column 'v': Levels of {column.kind} values needs")
      for engine in ("arrow", "pandas arrow", "polars") for convert in [ENGINES[engine]]
      for column, values in (OTHER if engine == "polars" else OTHER + CATEGORIES)),
    (pd.DataFrame({"v": pd.arrays.SparseArray([1.0, np.nan])}), NUMBER, SchemaError, "convert it"),
    (polars(["1", "3"], pl.Categorical), NUMBER, SchemaError, "to_numeric"),
    (polars(ONES, pl.Object), NUMBER, SchemaError, "to_numeric"),
    (duck("(uuid())", "UUID"), TEXTS, SchemaError, "convert it"),
    *((frame, NUMBER, SchemaError, "column 'v'") for frame in (
        polars(["canary"], pl.Enum(["canary"])), pd.DataFrame({"v": pd.Categorical(["canary"])}),
        duck("('canary')", "enum('canary')"), duckdb.sql("select {'canary': 3} v"))),
    *((frame, NUMBER, ParameterError, NO_FRAME) for frame in (
        None, 7, [1.0], np.zeros(3), pd.Series([1.0]), pl.Series([1.0]), b"a.csv")),
    *((frame, NUMBER, ParameterError, "column 'v' of a mapping") for frame in (
        {"v": [1.0]}, {"v": np.zeros((2, 2))})),
    *((frame, NUMBER, SchemaError, "must differ from each other") for frame in (
        pd.DataFrame([[1.0, 2.0]], columns=["v", "v"]), pa.Table.from_arrays([pa.array([1.0])] * 2, names=["v", "v"]))),
    *((frame, NUMBER, SchemaError, f"are named by texts: that of column {place} is none") for names, place in NAMES
      for frame in (
          pd.DataFrame([[1.0, 2.0]], columns=pd.Index(names, dtype=object, tupleize_cols=False)),
          pd.DataFrame([[1.0, 2.0]], columns=names), {name: np.zeros(1) for name in names})),
    ({"v": np.zeros(3), "y": np.zeros(2)}, NUMBER, SchemaError, "same length"),
    ({"v": np.zeros(0)}, NUMBER, SchemaError, "at least one row"),
    ({"canary": np.zeros(2)}, NUMBER, SchemaError, "column 'v'.*not in the frame"),
    ("absent.csv", NUMBER, ParameterError, "there is no file"),
]  # fmt: skip


@pytest.mark.parametrize(("frame", "column", "error", "words"), REFUSED, ids=lambda one: type(one).__name__)
def test_what_does_not_fit_is_refused_by_a_table_and_by_the_check_and_no_value_is_quoted(
    frame: Any, column: Any, error: type[DpCausalError], words: str
) -> None:
    """A file read without a header is named by its first record."""
    for call in (lambda: table(frame, {"v": column}), lambda: Schema({"v": column}).check(frame)):
        with pytest.raises(error, match=words) as caught:
            call()
        assert not any(text in str(caught.value) for text in ("canary", "7.77", "'3'"))


def test_more_rows_than_a_chunk_are_coded_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpcausal.data.sources.frame.CHUNK", 7)
    codes = np.random.default_rng(1).integers(0, 3, 100)
    names = np.array(["a", "b", "c"])[codes]
    for frame in ({"t": names}, pd.DataFrame({"t": names}), pl.DataFrame({"t": names}), pa.table({"t": names})):
        assert cells_of(frame, Levels(["a", "b", "c"]), "t") == codes.tolist()


def test_a_lazy_frame_computes_declared_columns_once_and_then_those_asked_for() -> None:
    computed: list[str] = []

    def watch(name: str) -> pl.Expr:
        column = pl.col("x").map_batches(lambda values: computed.append(name) or values, return_dtype=pl.Float64)
        return column.alias(name)

    frame = pl.LazyFrame({"x": [1.0, 2.0]}).with_columns(watch("a"), watch("b"), watch("c"))
    whole = table(frame, {"a": Bounded(0, 1), "b": Bounded(0, 1)})
    assert sorted(computed) == ["a", "b"]
    computed.clear()
    whole.columns(["b"])
    assert computed == ["b"]


@pytest.mark.usefixtures("without_waits")
def test_a_relation_computes_no_column_that_is_not_declared() -> None:
    relation = DATABASE.sql("select range::double x, error('canary')::double y from range(5)")
    assert cells_of(relation, Bounded(0, 9)) == [0, 1, 2, 3, 4]
    with pytest.raises(SchemaError, match="the duckdb frame cannot compute its columns"):
        table(relation, {"x": Bounded(0, 9), "y": Bounded(0, 9)})


def test_a_relation_keeps_the_order_of_its_rows_or_is_refused() -> None:
    connection = duckdb.connect()
    connection.execute("create table t as select range::double x from range(300000)")
    relation = connection.sql("select x from t where x != 5")
    assert (np.diff(cells_of(relation, Bounded(0, 1e9))) > 0).all()
    connection.execute("set preserve_insertion_order = false")
    with pytest.raises(SchemaError, match="preserve_insertion_order"):
        table(relation, {"x": Bounded(0, 1e9)})


def test_a_frame_without_the_heavy_packages_loads_none_of_them() -> None:
    program = (
        "import sys, numpy as np, dpcausal as dpc\n"
        "ledger = dpc.Ledger.in_memory(dpc.PureDP(1))\n"
        "dpc.Table({'x': np.zeros(3)}, dpc.Schema({'x': dpc.Bounded(0, 1)}), ledger).columns(['x'])\n"
        "print([m for m in ('pandas', 'polars', 'duckdb', 'pyarrow') if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize("query", [
    lambda frame: frame.select(pl.col("g", "x").over("g", mapping_strategy="explode")),
    lambda frame: frame.map_batches(lambda part: part.sort("g")),
    lambda frame: pl.concat([frame.filter(pl.col("g") == "a"), frame.filter(pl.col("g") != "a")]),
    lambda frame: DATABASE.sql("select range x from range(9) where range < 4 union all select 1 from range(9)"),
])  # fmt: skip
def test_a_query_that_may_move_rows_by_what_they_hold_has_no_order(query: Any) -> None:
    assert not table(query(pl.LazyFrame({"g": ["a", "b"], "x": [0.0, 1.0]})), {"x": Bounded(0, 1)}).spec.source.ordered


@pytest.mark.parametrize("drawn", ["random/**/()", '"random"()', "epoch(localtimestamp)", "random -- x\n()",
                                   "length('--') + random/**/()", "length('it''s /*') + \"random\"()"])  # fmt: skip
def test_a_relation_that_draws_or_asks_the_clock_is_refused_however_it_is_written(drawn: str) -> None:
    with pytest.raises(SchemaError):
        table(DATABASE.sql(f"select {drawn}::double x from range(5)"), {"x": Bounded(0, 1)})


FAR = {"date": (pl.Date, 2**31 - 1), "early date": (pl.Date, -(2**31)), "ms": (pl.Datetime("ms"), 2**62),
       "us": (pl.Datetime("us"), 2**63 - 1), "early us": (pl.Datetime("us"), -(2**62)),
       "zoned": (pl.Datetime("ms", "America/New_York"), 2**62), "ns": (pl.Datetime("ns"), 2**62)}  # fmt: skip


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize("kind", FAR)
def test_a_date_that_python_does_not_have_is_missing_and_nothing_is_written(
    kind: str, lazily: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    dtype, far = FAR[kind]
    day = 1 if dtype == pl.Date else 86_400 * {"ms": 10**3, "us": 10**6, "ns": 10**9}[dtype.time_unit]
    series = pl.Series([18_000 * day, far, None, 18_001 * day], dtype=pl.Int64)
    frame = pl.DataFrame({"d": series.cast(dtype)})
    schema = {"d": Bounded("2019-01-01", "2020-01-01")}
    whole = table(frame.lazy() if lazily else frame, schema)
    rows = whole.rows(["d"])
    assert rows.included.tolist() == [True, kind == "ns", False, True]  # those of ns end in 2262
    days = rows.values["d"]
    assert days[3] - days[0] == 1
    assert capfd.readouterr() == ("", "")
