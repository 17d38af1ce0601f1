"""The table: limits, secrecy, and faults of the caller."""

import copy
import io
import math
import pickle
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpcausal import Bounded, Ledger, Levels, PureDP, Schema, Table
from dpcausal.data.counts import counts_of
from dpcausal.data.source import guarded_read
from dpcausal.errors import DpCausalError, HiddenAnswerError, ParameterError, RowLimitError, SchemaError

X = Schema({"x": Bounded(0, 10)})
CANARY = 7.777123
ZEROS = {"x": np.zeros(2), "y": np.zeros(2)}


def canary_table(ledger: Ledger) -> Table:
    return Table(pd.DataFrame({"x": [CANARY, 1.0]}), X, ledger)


def test_rows_are_counted_and_limited_when_the_table_is_made(as_frame: Callable, ledger: Ledger) -> None:
    table = Table(as_frame(pa.table({"x": pa.array([1.0, None, math.nan])})), X, ledger, max_rows=3)
    assert table.n == 3 and table.schema is X and table.ledger is ledger
    with pytest.raises(RowLimitError):
        Table(as_frame(pa.table({"x": pa.array([1.0, None, math.nan])})), X, ledger, max_rows=2)
    with pytest.raises(SchemaError):
        Table(as_frame(pa.table({"x": pa.array([], pa.float64())})), X, ledger)
    with pytest.raises(SchemaError) as caught:
        Table(as_frame(pa.table({"canary": pa.array([1.0])})), X, ledger)
    assert "'x'" in str(caught.value) and "canary" not in str(caught.value)


def test_the_limit_is_checked_before_a_lazy_frame_computes_its_columns(ledger: Ledger) -> None:
    relation = duckdb.connect().sql("select error('canary')::double x from range(100)")
    with pytest.raises(RowLimitError):
        Table(relation, X, ledger, max_rows=99)


REFUSALS: list[tuple[type[DpCausalError], dict[str, Any]]] = [
    *((ParameterError, {"max_rows": limit}) for limit in (0, -1, True, 1.5, "3")),
    *((ParameterError, {"missing": rule}) for rule in ("dropped", None, True, 1, ["drop"])),
    (ParameterError, {"schema": {"x": Bounded(0, 1)}}), (ParameterError, {"ledger": None}),
    *((SchemaError, {"weight": weight}) for weight in (("w", 1.0), ("a\nb", 2.0), ("text", 8.0))),
    *((ParameterError, {"weight": weight}) for weight in ("w", ("x", 0), ("x", True), ("x", 1e10), ("x", np.inf))),
    *((SchemaError, {"person": person}) for person in ("nobody", 7, "x", "none", "a\nb")),
    (ParameterError, {"person": "id", "ids": "known"}), (ParameterError, {"ids": "public"}),
    (ParameterError, {"max_rows_per_person": 3}),
    *((ParameterError, {"person": "id", "max_rows_per_person": most}) for most in (0, 2.5, True)),
    *((ParameterError, {"name": name}) for name in (3, "a\nb", "x" * 201)),
]  # fmt: skip


@pytest.mark.parametrize(("error", "wrong"), REFUSALS, ids=str)
def test_an_argument_that_is_wrong_is_refused(error: Any, wrong: dict[str, Any], ledger: Ledger) -> None:
    nobody = np.array([None, None, 0.5], dtype=object)
    frame = {"x": np.arange(3) / 2, "id": np.arange(3), "none": nobody, "a\nb": np.arange(3), "text": np.full(3, "1")}
    with pytest.raises(error):
        Table(**({"frame": frame, "schema": X, "ledger": ledger} | wrong))


def test_only_columns_of_the_schema_can_be_asked_for(ledger: Ledger) -> None:
    table = Table(ZEROS, X, ledger)
    with pytest.raises(SchemaError):
        table.columns(["x", "y"])
    with pytest.raises(ParameterError):
        table.columns("x")
    assert table.columns([]) == {} and list(table.columns(["x", "x"])) == ["x"]


def test_a_frame_that_changed_its_length_is_refused(ledger: Ledger) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0]})
    table = Table(frame, X, ledger)
    frame.loc[2] = [CANARY]
    with pytest.raises(SchemaError) as caught:
        table.columns(["x"])
    assert "3" not in str(caught.value)


def test_a_table_shows_no_value_and_cannot_be_changed_or_copied(ledger: Ledger) -> None:
    table = canary_table(ledger)
    assert repr(table) == str(table) == "Table(n=2, columns=('x',), backend='pandas')"
    assert "7.77" not in repr(table.spec) + repr(table.spec.source) and not hasattr(table, "__dict__")
    for name in ("n", "schema", "ledger", "_spec", "other"):
        with pytest.raises(AttributeError):
            setattr(table, name, 1)
    with pytest.raises(AttributeError):
        del table._spec
    assert copy.copy(table) is copy.deepcopy({"t": [table]})["t"][0] is table


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_table_and_its_spec_refuse_to_be_pickled(ledger: Ledger, protocol: int) -> None:
    table, file = canary_table(ledger), io.BytesIO()
    for private in (table, table.spec):
        with pytest.raises(HiddenAnswerError) as caught:
            pickle.dump([private], file, protocol=protocol)
        assert "7.77" not in str(caught.value)
    assert np.float64(CANARY).tobytes() not in file.getvalue()
    assert np.float64(CANARY).tobytes()[::-1] not in file.getvalue()
    with pytest.raises(HiddenAnswerError):
        table.__getstate__()


def quoting(values: pl.Series) -> pl.Series:
    raise ValueError(f"cannot use {values.to_list()}")


@pytest.mark.parametrize(
    "frame",
    [
        pl.LazyFrame({"x": [CANARY]}).with_columns(pl.col("x").map_batches(quoting, return_dtype=pl.Float64)),
        pl.LazyFrame({"s": [f"{CANARY}canary"]}).select(x=pl.col("s").cast(pl.Float64)),
        duckdb.connect().sql(f"select error('canary {CANARY}')::double x"),
        duckdb.connect().sql(f"select cast(s as double) x from (select '{CANARY}canary' s)"),
    ],
    ids=["polars function", "polars cast", "duckdb error", "duckdb cast"],
)
def test_the_words_of_a_failing_back_end_do_not_leave(frame: object, ledger: Ledger) -> None:
    with pytest.raises(SchemaError) as caught:
        Table(frame, X, ledger)
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert "7.77" not in "".join(traceback.format_exception(caught.value))


def to_floats(texts: pl.Series) -> pl.Series:
    return pl.Series([float(text) for text in texts])


def lazily(texts: list[str]) -> dict[str, object]:
    """Return lazy frames whose column x is a cast that fails on a text that is no number."""
    connection = duckdb.connect()
    connection.register("given", pa.table({"s": texts, "k": [1] * len(texts)}))
    connection.execute("create table people as select * from given")
    connection.execute("create view seen as select s::double x, k from people")
    polars = pl.LazyFrame({"s": texts, "k": [1] * len(texts)})
    return {
        "polars filtered": polars.filter(pl.col("k") == 1).select(x=pl.col("s").cast(pl.Float64)),
        "polars overflow": polars.select(x=pl.col("s").str.len_bytes().cast(pl.Int8)),
        "polars mapped": polars.select(x=pl.col("s").map_batches(to_floats, return_dtype=pl.Float64)),
        "duckdb view": connection.table("seen"),
        "duckdb overflow": connection.sql("select length(s)::tinyint x from people"),
        "duckdb error": connection.sql("select case s when 'bad' then error('bad') else 1 end::double x from people"),
        "duckdb joined": connection.sql("select s::double x from people join (select 1 as k) using (k)"),
    }


@pytest.mark.parametrize("kind", list(lazily(["1"])))
def test_one_record_that_cannot_be_computed_refuses_the_table_and_spends_nothing(kind: str, ledger: Ledger) -> None:
    texts, shown = ["1"] * 5000, set()
    for last in ("1", "2e0", "-inf", "0"):
        table = Table(lazily(["1"] * 99 + [last])[kind], X, ledger)
        assert counts_of(table, ["x"]).sum() == 100
        shown.add(repr(table))
    assert len(shown) == 1
    for place in (0, 4999):
        texts[place] = "bad" if "overflow" not in kind else "b" * 200
        with pytest.raises(SchemaError) as caught:
            Table(lazily(texts)[kind], X, ledger)
        assert caught.value.__cause__ is caught.value.__context__ is None
        texts[place] = "1"
    assert len(ledger.entries()) == 0


def test_what_a_back_end_warns_is_dropped() -> None:
    def noisy() -> int:
        warnings.warn("canary", stacklevel=1)
        return 3

    assert guarded_read(noisy, "the rule") == 3  # the suite turns a warning that leaves into an error


def test_tables_of_different_records_differ_in_no_word(as_frame: Callable, ledger: Ledger) -> None:
    words = set()
    for values in ([1.5, 2.5], [math.nan, math.inf], [1e308, 5e-324], [None, -0.0]):
        frame = as_frame(pa.table({"x": pa.array(values, pa.float64())}))
        try:
            words.add(repr(Table(frame, Schema({"x": Levels(["a"])}), ledger)))
        except SchemaError as error:
            words.add(str(error))
    assert len(words) == 1


def rows_of_last_person(rows: int, **options: Any) -> str:
    """Return what becomes of 100 persons of ten rows each, the last with so many."""
    ids = np.concatenate([np.repeat(np.arange(99), 10), np.full(rows, 99)])
    try:
        return repr(Table({"id": ids, "x": np.zeros(len(ids))}, X, Ledger.in_memory(PureDP(1)), person="id", **options))
    except RowLimitError as error:
        return str(error)


@pytest.mark.parametrize("limit", [99, 100, 1000])
def test_how_many_rows_a_person_has_refuses_nothing(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rows_of_last_person(10, max_rows=limit).startswith("Table(n=100") == (limit >= 100)
    assert len({rows_of_last_person(rows, max_rows=limit) for rows in (1, 10, 11, 5000)}) == 1
    monkeypatch.setattr("dpcausal.data.table.DEFAULT_MAX_ROWS", limit)
    assert len({rows_of_last_person(rows) for rows in (1, 10, 11, 5000)}) == 1
