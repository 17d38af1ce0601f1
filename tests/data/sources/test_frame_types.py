"""Nullable, categorical, decimal and enum columns of each frame library: read right, or refused with what to do."""

from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import SchemaError
from tests.factories import table

NUMBERS, TEXTS, TRUTHS = [1, None, 3], ["a", None, "b"], [True, None, False]
DECIMALS = [Decimal("1.00"), None, Decimal("3.00")]
COLUMNS = {"number": dpc.Bounded(0, 10), "text": dpc.Levels(["b", "a"]), "code": dpc.Levels([3, 1]),
           "truth": dpc.Levels([False, True])}  # fmt: skip
EXPECTED = {"number": [1, None, 3], "text": [1, None, 0], "code": [1, None, 0], "truth": [1, None, 0]}


def pandas(values: Any, dtype: Any) -> Any:
    return pd.DataFrame({"v": pd.array(values, dtype=dtype)})


def polars(values: Any, dtype: Any) -> Any:
    return pl.DataFrame({"v": values}, schema={"v": dtype})


def arrow(values: Any, dtype: Any) -> Any:
    return pa.table({"v": pa.array(values, dtype)})


def duck(values: str, dtype: str) -> Any:
    return duckdb.sql(f"SELECT v::{dtype} AS v FROM (VALUES {values}) AS t(v)")


ENUM = pl.Enum(["a", "b"])
READ = {
    **{f"pandas {dtype}": (pandas(NUMBERS, dtype), "number")
       for dtype in ("Int64", "UInt8", "Float64", "int64[pyarrow]", pd.ArrowDtype(pa.decimal128(9, 2)))},
    **{f"pandas {dtype}": (pandas(TEXTS, dtype), "text")
       for dtype in ("string", "str", "string[pyarrow]", "category", "object")},
    "pandas Int64 code": (pandas(NUMBERS, "Int64"), "code"), "pandas boolean": (pandas(TRUTHS, "boolean"), "truth"),
    "pandas category of numbers": (pandas(NUMBERS, "category"), "code"),
    "pandas category as a number": (pandas(NUMBERS, "category"), "number"),
    "polars Int8": (polars(NUMBERS, pl.Int8), "number"),
    "polars Decimal": (polars(DECIMALS, pl.Decimal(9, 2)), "number"),
    "polars Categorical": (polars(TEXTS, pl.Categorical), "text"), "polars Enum": (polars(TEXTS, ENUM), "text"),
    "polars lazy Enum": (polars(TEXTS, ENUM).lazy(), "text"), "polars Boolean": (polars(TRUTHS, pl.Boolean), "truth"),
    "arrow decimal128": (arrow(DECIMALS, pa.decimal128(9, 2)), "number"),
    "arrow decimal256": (arrow(DECIMALS, pa.decimal256(50, 2)), "number"),
    "arrow dictionary": (arrow(TEXTS, pa.dictionary(pa.int8(), pa.string())), "text"),
    "arrow dictionary of numbers": (arrow(NUMBERS, pa.dictionary(pa.int8(), pa.int64())), "code"),
    "arrow string view": (arrow(TEXTS, pa.string_view()), "text"), "arrow bool": (arrow(TRUTHS, pa.bool_()), "truth"),
    "duckdb decimal": (duck("(1), (NULL), (3)", "DECIMAL(9, 2)"), "number"),
    "duckdb hugeint": (duck("(1), (NULL), (3)", "HUGEINT"), "number"),
    "duckdb enum": (duck("('a'), (NULL), ('b')", "ENUM ('a', 'b')"), "text"),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_a_column_of_this_type_is_read_right(name: str) -> None:
    frame, kind = READ[name]
    rows = table(frame, {"v": COLUMNS[kind]}).rows(["v"])
    found = [value if known else None for value, known in zip(rows.values["v"], rows.present["v"], strict=True)]
    assert found == EXPECTED[kind]


REFUSED = {
    "pandas objects as numbers": (pd.DataFrame({"v": DECIMALS}), "number", "to_numeric"),
    "pandas sparse": (pd.DataFrame({"v": pd.arrays.SparseArray([1.0, np.nan])}), "number", "convert it"),
    "polars categories as numbers": (polars(["1", "3"], pl.Categorical), "number", "to_numeric"),
    "polars objects": (pl.DataFrame({"v": pl.Series(NUMBERS, dtype=pl.Object)}), "number", "to_numeric"),
    "polars durations": (polars(NUMBERS, pl.Duration), "number", "convert it"),
    "arrow lists": (arrow([[1], None], pa.list_(pa.int64())), "number", "convert it"),
    "arrow bytes": (arrow([b"a", b"b"], pa.binary()), "text", "convert it"),
    "duckdb uuid": (duck("(uuid())", "UUID"), "text", "convert it"),
    "booleans as numbers": (pandas(TRUTHS, "boolean"), "number", r"Levels\(\[False, True\]\)"),
    "texts as codes": (pandas(["1", "3"], "string"), "code", "convert it"),
    "numbers as texts": (pandas(NUMBERS, "Int64"), "text", "convert it"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_column_of_another_type_is_refused_with_what_to_do(name: str) -> None:
    frame, kind, words = REFUSED[name]
    with pytest.raises(SchemaError, match=words):
        table(frame, {"v": COLUMNS[kind]})
