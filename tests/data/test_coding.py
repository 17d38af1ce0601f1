"""One coder: each record gets the code of its own bytes or number, whatever engine holds or groups it."""

import itertools
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcausal as dpc
from dpcausal.data.coding import size_of
from dpcausal.data.counts import codes_of, counts_of
from dpcausal.errors import SchemaError
from tests.data.conftest import BACKENDS, DATABASE
from tests.factories import table

SPELLINGS = [
    "yes", "YES", "Yes", "yes ", " yes", "yes\t", "yes\n", "", " ", "no", "NO", "nö", "no\u0308", "N\u00d6", "é",
    "e\u0301", "e", "E", "É", "ß", "ss", "SS", "i", "I", "İ", "ı", "a", "a\x00", "a\x00b", "\x00", "œ", "oe",
    "\u200byes", "ｙｅｓ", "0", "00", "1", "1.0", "true", "x" * 12, "x" * 13, "x" * 70_000, "x" * 70_000 + "y",
    "\U0001f44d", "\U0001f44d\U0001f3fd", "o'clock", '"', "\\x41", "A", "%", "_",
]  # fmt: skip
"""Texts that one collation or another takes for each other, and texts that end or escape a string somewhere."""

LEVELS = dpc.Levels(["no", "yes", "é", "", "a", "x" * 70_000, "ß", "i", "\\x41"], other="rest")
COLLATIONS = ["", "nocase", "noaccent", "nocase.noaccent", "nfc", "icu_noaccent", "de", "en_us", "tr", "nocase.de"]


NUMBERS = itertools.count()


@cache
def with_default(collation: str) -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def collated(texts: Sequence[str | None], collation: str, default: str = "") -> Any:
    """Return a DuckDB table of one text column ``t`` with a collation, or with a default collation set around it."""
    connection, name = with_default(default) if default else DATABASE, f"kept{next(NUMBERS)}"
    connection.execute("set default_collation = ''")  # a reused one has it set
    words = " collate ".join(["varchar", *([collation] if collation else [])])
    connection.execute(f"create table {name} (t {words})")
    connection.register("given", pa.table({"t": pa.array(texts, pa.string())}))
    connection.execute(f"insert into {name} select t from given")
    if default:
        connection.execute(f"set default_collation = '{default}'")
    return connection.table(name)


def available(collation: str) -> bool:
    try:
        collated(["a"], collation)
    except duckdb.Error:
        return False
    return True


def table_of(frame: Any, **columns: Any) -> dpc.Table:
    return table(frame, columns, missing="impute")


def by_hand(values: Sequence[Any], column: dpc.Bounded | dpc.Levels) -> list[int]:
    """Code values one by one in Python, from the words of the documentation."""
    if isinstance(column, dpc.Levels):
        labels = list(column.labels)
        whole = [
            int(value) if isinstance(value, float) and column.kind == "integer" and value.is_integer() else value
            for value in values
        ]
        held = [[k for k, label in enumerate(labels) if type(label) is type(one) and label == one] for one in whole]
        return [found[0] if found else column.substitute for found in held]
    cuts = column.cuts or tuple(column.lower + column.width * share for share in (0.25, 0.5, 0.75))
    read = [column.midpoint if value is None or value != value else float(value) for value in values]
    return [sum(cut <= value for cut in cuts) for value in read]


def assert_coded(frame: Any, values: Sequence[Any], column: dpc.Bounded | dpc.Levels, name: str = "t") -> None:
    """Check counts in the engine and codes row by row, where Python codes, against those by hand."""
    coded, expected = table_of(frame, **{name: column}), by_hand(values, column)
    assert counts_of(coded, [name]).tolist() == np.bincount(expected, minlength=size_of(column)).tolist()
    assert codes_of(coded, [name]).values[name].tolist() == expected


@pytest.mark.parametrize("collation", COLLATIONS)
def test_no_collation_of_a_database_makes_two_spellings_one(collation: str) -> None:
    """Seen to fail: a group of a thousand took the spelling of its first member."""
    if not available(collation):
        pytest.skip("this DuckDB has no such collation without a download")
    for texts in ([*SPELLINGS, None], *(["yes"] * place + ["YES"] + ["yes"] * (999 - place) for place in (0, 999))):
        for default in ("", "nocase", "noaccent", "nocase.noaccent"):
            assert_coded(collated(texts, collation, default), texts, LEVELS)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.lists(st.one_of(st.sampled_from(SPELLINGS), st.text(max_size=3)), min_size=1, max_size=30),
    st.sampled_from(SPELLINGS),
    st.sampled_from(COLLATIONS[:4]),
    st.data(),
)
def test_engine_codes_are_row_codes_on_both_of_two_neighbours(
    texts: list[str], new: str, collation: str, data: st.DataObject
) -> None:
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    place = data.draw(st.integers(0, len(texts) - 1))
    neighbours = [
        (rows, [collated(rows, collation), pl.LazyFrame({"t": rows})])
        for rows in (texts, [*texts[:place], new, *texts[place + 1 :]])
    ]
    for column in (LEVELS, dpc.Levels(list(dict.fromkeys([*texts[:3], "yes"])), other="\ufffe")):
        for rows, frames in neighbours:
            for frame in frames:
                assert_coded(frame, rows, column)
        counts = [counts_of(table_of(frames[1], t=column), ["t"]) for _, frames in neighbours]
        assert np.abs(counts[0] - counts[1]).sum() <= 2


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_texts_are_distinguished_in_every_back_end(backend: str, tmp_path: Path) -> None:
    texts = [text for text in SPELLINGS if backend != "csv" or "\x00" not in text]
    frame = BACKENDS[backend](pa.table({"t": pa.array(texts), "n": pa.array([1] * len(texts))}), tmp_path)
    assert_coded(frame, texts, LEVELS)


def test_categories_and_enums_are_distinguished_by_their_text() -> None:
    values = [*SPELLINGS, None, *SPELLINGS[:7]]
    backwards = sorted(SPELLINGS, reverse=True)
    arrow = pa.table({"t": pa.array(values, pa.string()).dictionary_encode()})
    other = pl.Series(SPELLINGS[::-1], dtype=pl.Categorical)  # a pool of categories that is not in this order
    enum = "enum(" + ", ".join("'" + text.replace("'", "''") + "'" for text in backwards if "\x00" not in text) + ")"
    storable = [text for text in values if text is None or "\x00" not in text]
    connection = duckdb.connect()
    connection.execute("set default_collation = 'nocase.noaccent'")
    connection.register("given", pa.table({"t": pa.array(storable, pa.string())}))
    for frame, held in (
        (pl.LazyFrame({"t": pl.Series(values, dtype=pl.Categorical)}), values),
        (pl.LazyFrame({"t": pl.concat([other, pl.Series(values, dtype=pl.Categorical)])}), [*SPELLINGS[::-1], *values]),
        (pl.LazyFrame({"t": pl.Series(values, dtype=pl.Enum(backwards))}), values),
        (pl.DataFrame({"t": pl.Series(values, dtype=pl.Enum(backwards))}), values),
        (pd.DataFrame({"t": pd.Categorical(values)}), values),
        (pd.DataFrame({"t": pd.Categorical(values, categories=backwards, ordered=True)}), values),
        (arrow, values),
        (pl.from_arrow(arrow).lazy(), values),
        (DATABASE.from_arrow(arrow), values),
        (connection.sql(f"select t::{enum} t from given"), storable),
    ):
        assert_coded(frame, held, LEVELS)


WHOLE = [0, 1, 2, -1, 3, 127, -128, 255, 2**31, 2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1, -(2**63), 2**63, 2**64 - 1,
         2**100, -(2**127), 2**127 - 1]  # fmt: skip
INTEGER_TYPES = {
    "tinyint": (pl.Int8, 8, True), "utinyint": (pl.UInt8, 8, False), "smallint": (pl.Int16, 16, True),
    "integer": (pl.Int32, 32, True), "uinteger": (pl.UInt32, 32, False), "bigint": (pl.Int64, 64, True),
    "ubigint": (pl.UInt64, 64, False), "hugeint": (pl.Int128, 128, True), "uhugeint": (None, 128, False),
}  # fmt: skip
COUNTED = (
    dpc.Levels([0, 1, 2]), dpc.Levels([2, 1, 0], other=9), dpc.Levels([2**53, 2**53 + 1, -1, 255, 300], other="no"),
    dpc.Levels([5, 6, 7]), dpc.Levels([2**64 - 1, -(2**63), 2**63], other=0),
    dpc.Levels([2**63 - 2, 2**63 - 1], other="z"), dpc.Levels([-(2**63), 1 - 2**63], other="z"),
    dpc.Levels([*range(-90, 91, 2), 2**53 + 1], other="x"), dpc.Levels(range(-40, 40)),
)  # fmt: skip
CUT = dpc.Bounded(-1e40, 1e40, cuts=[-(2**127), 0, 0.5, 2**53 + 2, 2**63, math.nextafter(2.0**100, math.inf), 2**127])


def duckdb_column(kind: str, texts: Sequence[str | None]) -> Any:
    listed = ", ".join("null" if text is None else f"'{text}'" for text in texts)
    return DATABASE.sql(f"select unnest([{listed}])::{kind} t")


@pytest.mark.parametrize("kind", INTEGER_TYPES)
def test_integers_of_every_width_are_compared_as_integers(kind: str) -> None:
    dtype, width, signed = INTEGER_TYPES[kind]
    least, most = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)
    values = [*(value for value in [*WHOLE, most, least] if least <= value <= most), None]
    frames = [duckdb_column(kind, [None if value is None else str(value) for value in values])]
    if dtype is not None:
        frames.append(pl.LazyFrame({"t": pl.Series(values, dtype=dtype)}))
    for column in (*COUNTED, CUT):
        for frame in frames:
            assert_coded(frame, values, column)


FLOATS = [
    0.0, -0.0, 1.0, -1.0, 2.0, 0.1, 0.5, math.nextafter(0.1, 0), math.nextafter(0.5, 1), 5e-324, -5e-324, 1e308, -1e308,
    math.inf, -math.inf, math.nan, None, 2.0**53, 2.0**53 + 2, 2.0**63, -(2.0**63), 2.0**64, 255.0, 300.0, 1.5,
]  # fmt: skip


@pytest.mark.parametrize("width", [32, 64])
def test_floats_are_cut_and_matched_alike(width: int) -> None:
    with np.errstate(over="ignore"):
        values = [None if value is None else float(np.dtype(f"f{width // 8}").type(value)) for value in FLOATS]
    arrow = pa.table({"t": pa.array(values, pa.float32() if width == 32 else pa.float64(), from_pandas=False)})
    for column in (*COUNTED, CUT):
        for frame in (DATABASE.from_arrow(arrow), pl.from_arrow(arrow).lazy(), pl.from_arrow(arrow), arrow):
            assert_coded(frame, values, column)


def test_objects_in_a_lazy_frame_are_coded_row_by_row() -> None:
    values = ["yes", 1, None, "no", True]
    assert_coded(pl.LazyFrame({"t": pl.Series(values, dtype=pl.Object)}), values, dpc.Levels(["no", "yes"]))


def test_names_that_sql_would_read_otherwise_are_names() -> None:
    names = ["a.b", 'say "x"', "rows", "cell", "c0", "count(*)", "select", "é", "^a", "b$", "r*"]
    codes = [[(place + row) % 3 for row in range(4)] for place in range(len(names))]
    arrow = pa.table(dict(zip(names, codes, strict=True)))
    column = dpc.Levels([0, 1, 2])
    for frame in (DATABASE.from_arrow(arrow), pl.from_arrow(arrow).lazy()):
        counts = counts_of(table_of(frame, **dict.fromkeys(names, column)), names)
        expected = np.zeros([3] * len(names), dtype=np.int64)
        np.add.at(expected, tuple(np.array(codes)), 1)
        assert (counts == expected).all()


@pytest.mark.parametrize("name", ["*", "^a$", "^.*$"])
def test_a_name_that_an_engine_reads_as_a_pattern_is_refused(name: str) -> None:
    """Polars would bring the column ``a`` in place of one named ``^a$``."""
    arrow = pa.table({name: [0, 1], "a": [1, 1]})
    for frame in (DATABASE.from_arrow(arrow), pl.from_arrow(arrow).lazy(), pl.from_arrow(arrow)):
        with pytest.raises(SchemaError, match="as a pattern of names"):
            table_of(frame, **{name: dpc.Levels([0, 1])})
    for frame in (arrow, arrow.to_pandas(), {name: np.array([0, 1])}):
        assert_coded(frame, [0, 1], dpc.Levels([0, 1]), name)


def test_settings_of_a_database_change_no_count() -> None:
    texts, numbers = [*SPELLINGS, None], [row % 4 for row in range(len(SPELLINGS) + 1)]
    column, cut = LEVELS, dpc.Levels([0, 1, 2, 3])
    expected = np.zeros((len(column), 4), dtype=np.int64)
    np.add.at(expected, (by_hand(texts, column), by_hand(numbers, cut)), 1)
    for setting in (
        "default_collation = 'nocase.noaccent'", "integer_division = true", "ieee_floating_point_ops = false",
        "default_null_order = 'nulls_first'", "default_order = 'desc'", "threads = 1", "TimeZone = 'America/New_York'",
    ):  # fmt: skip
        connection = duckdb.connect()
        connection.execute(f"set {setting}")
        connection.register("given", pa.table({"t": pa.array(texts), "x": pa.array(numbers)}))
        counts = counts_of(table_of(connection.table("given"), t=column, x=cut), ["t", "x"])
        assert (counts == expected).all()
