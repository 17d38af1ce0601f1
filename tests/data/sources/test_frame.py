"""The border: every kind of frame gives the same arrays, and only what was asked for is read."""

import math
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

from dpcausal.data.schema import Bounded, Levels, Schema
from dpcausal.data.table import Table
from dpcausal.errors import ParameterError, SchemaError
from dpcausal.privacy.ledger import Ledger

NUMBERS = [0.1, -0.0, None, math.nan, math.inf, -math.inf, 1e308, -5e-324, 7.3, 1 / 3]
INTEGERS = [2**53 + 1, -(2**63), 2**63 - 1, None, 0, 3, 1, 2**53 + 3, 2, 1]
TEXT = ["no", "yes", None, " yes", "YES", "naïve", "no", "1", "yes", "true"]
TRUTH = [True, None, False, False, True, True, None, True, False, True]

FRAME = pa.table(
    {
        "unused": pa.array([f"canary{row}" for row in range(10)]),
        "x": pa.array(NUMBERS, pa.float64()),
        "i": pa.array(INTEGERS, pa.int64()),
        "t": pa.array(TEXT, pa.string()),
        "b": pa.array(TRUTH, pa.bool_()),
    }
)
SCHEMA = Schema(
    {
        "x": Bounded(-2, 5),
        "i": Bounded(-1e18, 1e18),
        "t": Levels(["yes", "no", "naïve"]),
        "b": Levels([False, True], other="unknown"),
    }
)


def bounded_by_hand(values: list[float | None], lower: float, upper: float) -> np.ndarray:
    middle = (lower + upper) / 2
    return np.array(
        [
            middle if value is None or math.isnan(value) else min(max(float(value), lower), upper) + 0.0
            for value in values
        ]
    )


def levels_by_hand(values: list[object], levels: list[object], substitute: int) -> np.ndarray:
    return np.array([levels.index(value) if value in levels else substitute for value in values])


EXPECTED = {
    "x": bounded_by_hand(NUMBERS, -2, 5),
    "i": bounded_by_hand(INTEGERS, -1e18, 1e18),
    "t": levels_by_hand(TEXT, ["yes", "no", "naïve"], 0),
    "b": levels_by_hand(TRUTH, [False, True], 2),
}


def test_every_kind_of_frame_gives_bit_identical_arrays(as_frame: Callable, ledger: Ledger) -> None:
    table = Table(as_frame(FRAME), SCHEMA, ledger)
    columns = table.columns(["t", "x", "b", "i"])
    assert list(columns) == ["t", "x", "b", "i"]
    for name, expected in EXPECTED.items():
        assert columns[name].dtype == expected.dtype
        assert columns[name].tobytes() == expected.tobytes(), name
        assert columns[name].flags.writeable
        assert columns[name].flags.owndata or columns[name].base is not None


def test_the_arrays_are_the_callers_own(as_frame: Callable, ledger: Ledger) -> None:
    whole = pa.table({"x": pa.array([0.5, 1.5]), "k": pa.array([1, 2])})
    table = Table(as_frame(whole), Schema({"x": Bounded(0, 2), "k": Levels([1, 2])}), ledger)
    first = table.columns(["x", "k"])
    first["x"][:] = 9
    first["k"][:] = 9
    again = table.columns(["x", "k"])
    assert again["x"].tolist() == [0.5, 1.5]
    assert again["k"].tolist() == [0, 1]


@pytest.mark.parametrize(
    "frame",
    [
        pa.table({"x": pa.nulls(2)}),
        pl.DataFrame({"x": [None, None]}),
        pl.LazyFrame({"x": [None, None]}),
        pa.table({"x": pa.nulls(2)}).to_pandas(types_mapper=pd.ArrowDtype),
        duckdb.connect().from_arrow(pa.table({"x": pa.nulls(2)})),
    ],
    ids=["pyarrow", "polars", "lazy", "pandas", "duckdb"],
)
def test_a_column_of_the_null_type_fits_every_declaration(frame: Any, ledger: Ledger) -> None:
    for column, expected in ((Bounded(0, 3), 1.5), (Levels(["a", "b"], other="b"), 1), (Levels([1]), 0)):
        assert Table(frame, Schema({"x": column}), ledger).columns(["x"])["x"].tolist() == [expected] * 2


def test_nan_inside_a_nullable_pandas_column_is_the_midpoint(ledger: Ledger) -> None:
    values = pd.array([0.0, 1.0, None], dtype="Float64") / 0  # NaN, inf, NA
    table = Table(pd.DataFrame({"x": values}), Schema({"x": Bounded(0, 3)}), ledger)
    assert table.columns(["x"])["x"].tolist() == [1.5, 3.0, 1.5]


def test_the_index_of_a_pandas_frame_plays_no_part(ledger: Ledger) -> None:
    frame = pd.DataFrame({"x": [1.0, None, 2.0], "t": ["b", "a", "b"]}, index=[1, 1, 0])
    columns = Table(frame, Schema({"x": Bounded(0, 3), "t": Levels(["a", "b"])}), ledger).columns(["x", "t"])
    assert columns["x"].tolist() == [1.0, 1.5, 2.0]
    assert columns["t"].tolist() == [1, 0, 1]


def test_more_rows_than_a_chunk_are_coded_in_order(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpcausal.data.sources.frame.CHUNK", 7)
    codes = np.random.default_rng(1).integers(0, 3, 100)
    names = np.array(["a", "b", "c"])[codes]
    schema = Schema({"t": Levels(["a", "b", "c"])})
    for frame in ({"t": names}, pd.DataFrame({"t": names}), pl.DataFrame({"t": names}), pa.table({"t": names})):
        assert (Table(frame, schema, ledger).columns(["t"])["t"] == codes).all()


EXTREME = [0, 1, 2**53 + 1, 2**64 - 1, None, 2**63]


@pytest.mark.parametrize(
    "frame",
    [
        pa.table({"x": pa.array(EXTREME, pa.uint64())}),
        pl.DataFrame({"x": pl.Series(EXTREME, dtype=pl.UInt64)}),
        pl.LazyFrame({"x": pl.Series(EXTREME, dtype=pl.Int128)}),
        pl.DataFrame({"x": pl.Series(EXTREME, dtype=pl.Int128)}),
        pd.DataFrame({"x": pd.array(EXTREME, dtype="UInt64")}),
        pd.DataFrame({"x": pd.array(EXTREME, dtype="uint64[pyarrow]")}),
        {"x": np.ma.masked_array(np.array([value or 0 for value in EXTREME], dtype=np.uint64), [0, 0, 0, 0, 1, 0])},
    ],
    ids=lambda frame: type(frame).__module__,
)
def test_wide_integers_are_rounded_once(frame: Any, ledger: Ledger) -> None:
    expected = bounded_by_hand(EXTREME, 0, 1e30)
    assert Table(frame, Schema({"x": Bounded(0, 1e30)}), ledger).columns(["x"])["x"].tobytes() == expected.tobytes()


def test_decimals_are_rounded_once(ledger: Ledger) -> None:
    digits = ["0.1", "0.30000000000000004441", "12345678901234567.89012345678901234567", None]
    values = [None if text is None else Decimal(text) for text in digits]
    expected = bounded_by_hand([None if text is None else float(text) for text in digits], 0, 1e20).tobytes()
    narrow, wide = (pa.array(values, kind) for kind in (pa.decimal128(38, 20), pa.decimal256(60, 20)))
    for frame in (
        pa.table({"x": narrow}),
        pa.table({"x": wide}),
        pl.from_arrow(pa.table({"x": narrow})),
        pa.table({"x": narrow}).to_pandas(types_mapper=pd.ArrowDtype),
        duckdb.connect().from_arrow(pa.table({"x": narrow})),
    ):
        assert Table(frame, Schema({"x": Bounded(0, 1e20)}), ledger).columns(["x"])["x"].tobytes() == expected


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble", ">f8", "int8", "uint16", ">i4"])
def test_numpy_numbers_of_every_width_are_taken(dtype: str, ledger: Ledger) -> None:
    columns = Table({"x": np.array([1, 2, 100], dtype=dtype)}, Schema({"x": Bounded(0, 10)}), ledger).columns(["x"])
    assert columns["x"].tolist() == [1.0, 2.0, 10.0]


def test_a_long_double_beyond_float64_is_clipped_in_silence(ledger: Ledger) -> None:
    huge = np.array([np.finfo(np.longdouble).max, -np.finfo(np.longdouble).max])
    assert Table({"x": huge}, Schema({"x": Bounded(0, 10)}), ledger).columns(["x"])["x"].tolist() == [10.0, 0.0]


def test_objects_match_by_value_numbers_and_booleans_alike_and_text_apart(ledger: Ledger) -> None:
    ones = {0, 1, 3, 7, 8}
    values = np.array([1, True, "1", 1.0, None, [1], {1: 2}, np.int8(1), np.True_, 2**70, math.nan, 1.5], dtype=object)
    for frame in ({"o": values}, pd.DataFrame({"o": values}), pl.DataFrame({"o": pl.Series(values, dtype=pl.Object)})):
        for levels, members in (([0, 1], ones), ([False, True], ones), (["0", "1"], {2})):
            codes = Table(frame, Schema({"o": Levels(levels)}), ledger).columns(["o"])["o"]
            assert set(np.flatnonzero(codes)) == members


STAMPS = np.array(["2020-01-01"], dtype="datetime64[ns]")
UNFIT_FOR_BOUNDED = {
    "text": pa.array(["3"]),
    "bool": pa.array([True]),
    "datetime": pa.array(STAMPS),
    "duration": pa.array(np.array([3], dtype="timedelta64[ns]")),
    "category": pa.array(["3"]).dictionary_encode(),
    "binary": pa.array([b"3"]),
    "list": pa.array([[3.0]]),
    "struct": pa.array([{"v": 3.0}]),
}
BY_TYPE = [
    lambda table: table,
    lambda table: table.to_pandas(),
    lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    lambda table: pl.from_arrow(table),
    lambda table: pl.from_arrow(table).lazy(),
    lambda table: duckdb.connect().from_arrow(table),
]


@pytest.mark.parametrize("convert", BY_TYPE, ids=["pyarrow", "pandas", "pandas-pyarrow", "polars", "lazy", "duckdb"])
@pytest.mark.parametrize("kind", UNFIT_FOR_BOUNDED)
def test_a_bounded_column_refuses_every_type_that_is_no_number(kind: str, convert: Callable, ledger: Ledger) -> None:
    frame = convert(pa.table({"v": UNFIT_FOR_BOUNDED[kind]}))
    with pytest.raises(SchemaError, match="column 'v': Bounded needs a numeric column") as caught:
        Table(frame, Schema({"v": Bounded(0, 5)}), ledger)
    assert "3" not in str(caught.value)


@pytest.mark.parametrize(
    "array",
    [np.array([1j]), np.array(["3"]), np.array([3], dtype=object), np.array([True]), STAMPS, np.array([b"3"])],
    ids=lambda array: array.dtype.name,
)
def test_a_bounded_column_refuses_numpy_types_that_are_no_number(array: np.ndarray, ledger: Ledger) -> None:
    for frame in ({"v": array}, pd.DataFrame({"v": array})):
        with pytest.raises(SchemaError, match="column 'v': Bounded needs a numeric column") as caught:
            Table(frame, Schema({"v": Bounded(0, 5)}), ledger)
        is_text = array.dtype.kind in "OU" or (array.dtype.kind == "S" and isinstance(frame, pd.DataFrame))
        assert ("pandas.to_numeric" in str(caught.value)) == is_text


@pytest.mark.parametrize(
    ("levels", "values"),
    [
        (["a"], pa.array([1])),
        (["a"], pa.array([1.0])),
        (["a"], pa.array([True])),
        (["a"], pa.array([b"a"])),
        (["a"], pa.array(STAMPS)),
        (["a"], pa.array([1, 2]).dictionary_encode()),
        ([1], pa.array(["1"])),
        ([1], pa.array(STAMPS)),
        ([1], pa.array(["1"]).dictionary_encode()),
        ([1], pa.array([Decimal(1)])),
        ([True], pa.array(["True"])),
    ],
)
def test_levels_refuse_a_declared_type_that_is_not_theirs(levels: list, values: pa.Array, ledger: Ledger) -> None:
    frame = pa.table({"v": values})
    for kind in (frame, frame.to_pandas(types_mapper=pd.ArrowDtype), pl.from_arrow(frame)):
        if isinstance(kind, pl.DataFrame) and isinstance(values, pa.DictionaryArray):
            continue  # polars has categories of text only
        with pytest.raises(SchemaError, match=f"column 'v': Levels of {Levels(levels).kind} values needs"):
            Table(kind, Schema({"v": Levels(levels)}), ledger)


def test_the_words_of_a_type_error_quote_no_category(ledger: Ledger) -> None:
    for frame in (
        pl.DataFrame({"v": pl.Series(["canary"], dtype=pl.Enum(["canary"]))}),
        pd.DataFrame({"v": pd.Categorical(["canary"])}),
        duckdb.connect().sql("select 'canary'::enum('canary') v"),
        duckdb.connect().sql("select {'canary': 3} v"),
    ):
        with pytest.raises(SchemaError, match="column 'v'") as caught:
            Table(frame, Schema({"v": Bounded(0, 1)}), ledger)
        assert "canary" not in str(caught.value)


def test_a_lazy_frame_computes_declared_columns_once_and_then_those_asked_for(ledger: Ledger) -> None:
    computed: list[str] = []

    def watch(name: str) -> pl.Expr:
        def record(values: pl.Series) -> pl.Series:
            computed.append(name)
            return values

        return pl.col("x").map_batches(record, return_dtype=pl.Float64).alias(name)

    frame = pl.LazyFrame({"x": [1.0, 2.0]}).with_columns(watch("a"), watch("b"), watch("c"))
    table = Table(frame, Schema({"a": Bounded(0, 1), "b": Bounded(0, 1)}), ledger)
    assert sorted(computed) == ["a", "b"]
    computed.clear()
    table.columns(["b"])
    assert computed == ["b"]


def test_a_relation_computes_no_column_that_is_not_declared(ledger: Ledger) -> None:
    relation = duckdb.connect().sql("select range::double x, error('canary')::double y from range(5)")
    assert Table(relation, Schema({"x": Bounded(0, 9)}), ledger).columns(["x"])["x"].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(SchemaError, match="the duckdb frame cannot compute its columns"):
        Table(relation, Schema({"x": Bounded(0, 9), "y": Bounded(0, 9)}), ledger)


def test_a_relation_keeps_the_order_of_its_rows_or_is_refused(ledger: Ledger) -> None:
    connection = duckdb.connect()
    connection.execute("create table t as select range::double x from range(300000)")
    schema = Schema({"x": Bounded(0, 1e9)})
    relation = connection.sql("select x from t where x != 5")
    assert (np.diff(Table(relation, schema, ledger).columns(["x"])["x"]) > 0).all()
    connection.execute("set preserve_insertion_order = false")
    with pytest.raises(SchemaError, match="preserve_insertion_order"):
        Table(relation, schema, ledger)


def test_a_narwhals_frame_is_taken_for_what_it_wraps(ledger: Ledger) -> None:
    for native in (pd.DataFrame({"x": [1.0]}), pl.LazyFrame({"x": [1.0]})):
        table = Table(nw.from_native(native), Schema({"x": Bounded(0, 3)}), ledger)
        assert table.columns(["x"])["x"].tolist() == [1.0]


@pytest.mark.parametrize(
    "frame",
    [None, 3, [1.0], {"x": [1.0]}, {"x": np.zeros((2, 2))}, np.zeros(3), pd.Series([1.0]), pl.Series([1.0]), b"a.csv"],
    ids=lambda frame: type(frame).__name__,
)
def test_what_is_no_frame_is_refused_by_its_type(frame: object, ledger: Ledger) -> None:
    with pytest.raises(ParameterError, match="a frame must be a pandas, polars or pyarrow table"):
        Table(frame, Schema({"x": Bounded(0, 1)}), ledger)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1.0, 2.0]], columns=["x", "x"]),
        pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["x", "x"]),
    ],
    ids=["pandas", "pyarrow"],
)
def test_two_columns_of_one_name_are_refused(frame: object, ledger: Ledger) -> None:
    with pytest.raises(SchemaError, match="must differ from each other"):
        Table(frame, Schema({"x": Bounded(0, 1)}), ledger)


@pytest.mark.parametrize(
    "names, place",
    [(["x", 1], 2), ([0, 1], 1), ([("canary", 1), ("canary", 2)], 1), (["x", None], 2), (["x", math.nan], 2),
     ([b"canary", "x"], 1), (["y", 7.777123], 2)],
    ids=str,
)  # fmt: skip
def test_a_column_whose_name_is_no_text_is_told_by_its_place(names: list[Any], place: int, ledger: Ledger) -> None:
    """A file read without a header is named by numbers, and its first record may be a row of names of any type."""
    for frame in (
        pd.DataFrame([[1.0, 2.0]], columns=pd.Index(names, dtype=object, tupleize_cols=False)),
        pd.DataFrame([[1.0, 2.0]], columns=names),
        {name: np.zeros(1) for name in names},
    ):
        for call in (
            lambda frame=frame: Table(frame, Schema({"x": Bounded(0, 1)}), ledger),
            lambda frame=frame: Schema({"x": Bounded(0, 1)}).check(frame),
        ):
            with pytest.raises(SchemaError, match=f"are named by texts: that of column {place} is none") as caught:
                call()
            assert "canary" not in str(caught.value) and "7.77" not in str(caught.value)


def test_arrays_of_different_lengths_are_refused(ledger: Ledger) -> None:
    with pytest.raises(SchemaError, match="same length"):
        Table({"x": np.zeros(3), "y": np.zeros(2)}, Schema({"x": Bounded(0, 1)}), ledger)


def test_a_frame_without_the_heavy_packages_loads_none_of_them() -> None:
    import subprocess
    import sys

    program = (
        "import sys, numpy as np\n"
        "from dpcausal.data.table import Table\n"
        "from dpcausal.data.schema import Schema, Bounded\n"
        "from dpcausal.privacy.ledger import Ledger\n"
        "from dpcausal.privacy.loss import PureDP\n"
        "t = Table({'x': np.zeros(3)}, Schema({'x': Bounded(0, 1)}), Ledger.in_memory(PureDP(1)))\n"
        "t.columns(['x'])\n"
        "print([m for m in ('pandas', 'polars', 'duckdb', 'pyarrow') if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
