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

from dpcausal.data.counts import counts_of
from dpcausal.data.schema import Bounded, Levels, Schema
from dpcausal.data.source import withheld
from dpcausal.data.table import Table
from dpcausal.errors import HiddenAnswerError, ParameterError, RowLimitError, SchemaError
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import PureDP

X = Schema({"x": Bounded(0, 10)})
CANARY = 7.777123


def canary_table(ledger: Ledger) -> Table:
    return Table(pd.DataFrame({"x": [CANARY, 1.0]}), X, ledger)


def test_the_number_of_rows_is_counted_when_the_table_is_made(as_frame: Callable, ledger: Ledger) -> None:
    table = Table(as_frame(pa.table({"x": pa.array([1.0, None, math.nan])})), X, ledger)
    assert table.n == 3
    assert table.schema is X
    assert table.ledger is ledger


def test_an_empty_table_is_refused(as_frame: Callable, ledger: Ledger) -> None:
    with pytest.raises(SchemaError):
        Table(as_frame(pa.table({"x": pa.array([], pa.float64())})), X, ledger)


def test_a_missing_column_is_named_and_the_present_ones_are_not(as_frame: Callable, ledger: Ledger) -> None:
    with pytest.raises(SchemaError, match="column 'x' of the schema") as caught:
        Table(as_frame(pa.table({"canary": pa.array([1.0])})), X, ledger)
    assert "canary" not in str(caught.value)


def test_more_rows_than_the_limit_are_refused_before_any_is_read(as_frame: Callable, ledger: Ledger) -> None:
    frame = as_frame(pa.table({"x": pa.array([1.0, 2.0, 3.0])}))
    with pytest.raises(RowLimitError):
        Table(frame, X, ledger, max_rows=2)
    assert Table(frame, X, ledger, max_rows=3).n == 3


def test_the_limit_is_checked_before_a_lazy_frame_computes_its_columns(ledger: Ledger) -> None:
    relation = duckdb.connect().sql("select error('canary')::double x from range(100)")
    with pytest.raises(RowLimitError):
        Table(relation, X, ledger, max_rows=99)


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "3"])
def test_a_row_limit_is_a_positive_integer(limit: object, ledger: Ledger) -> None:
    with pytest.raises(ParameterError, match="max_rows"):
        Table({"x": np.zeros(1)}, X, ledger, max_rows=limit)  # type: ignore[arg-type]


def test_a_table_needs_a_schema_and_a_ledger(ledger: Ledger) -> None:
    with pytest.raises(ParameterError, match="schema must be a Schema, got dict"):
        Table({"x": np.zeros(1)}, {"x": Bounded(0, 1)}, ledger)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="ledger must be a Ledger, got NoneType"):
        Table({"x": np.zeros(1)}, X, None)  # type: ignore[arg-type]


def test_only_columns_of_the_schema_can_be_asked_for(ledger: Ledger) -> None:
    table = Table({"x": np.zeros(2), "y": np.zeros(2)}, X, ledger)
    with pytest.raises(SchemaError, match="column 'y' is not in the schema"):
        table.columns(["x", "y"])
    with pytest.raises(ParameterError, match="a list of column names"):
        table.columns("x")
    assert table.columns([]) == {}
    assert list(table.columns(["x", "x"])) == ["x"]


def test_a_frame_that_changed_its_length_is_refused(ledger: Ledger) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0]})
    table = Table(frame, X, ledger)
    frame.loc[2] = [CANARY]
    with pytest.raises(SchemaError, match="no longer has the number of rows") as caught:
        table.columns(["x"])
    assert "3" not in str(caught.value)


def test_a_table_shows_names_and_count_and_no_value(ledger: Ledger) -> None:
    table = canary_table(ledger)
    assert repr(table) == str(table) == "Table(n=2, columns=('x',), backend='pandas')"
    assert "7.77" not in repr(table._source)
    assert not hasattr(table, "__dict__")


def test_a_table_cannot_be_changed(ledger: Ledger) -> None:
    table = canary_table(ledger)
    for name in ("n", "schema", "ledger", "_n", "_source", "other"):
        with pytest.raises(AttributeError):
            setattr(table, name, 1)
    with pytest.raises(AttributeError):
        del table._source
    assert table.n == 2


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_table_refuses_to_be_pickled(ledger: Ledger, protocol: int) -> None:
    file = io.BytesIO()
    with pytest.raises(HiddenAnswerError) as caught:
        pickle.dump([canary_table(ledger)], file, protocol=protocol)
    assert "7.77" not in str(caught.value)
    assert np.float64(CANARY).tobytes() not in file.getvalue()
    assert np.float64(CANARY).tobytes()[::-1] not in file.getvalue()
    with pytest.raises(HiddenAnswerError):
        canary_table(ledger).__getstate__()


def test_a_copy_of_a_table_is_the_same_table(ledger: Ledger) -> None:
    table = canary_table(ledger)
    assert copy.copy(table) is table
    assert copy.deepcopy(table) is table
    assert copy.deepcopy({"t": [table]})["t"][0] is table


def quoting(values: pl.Series) -> pl.Series:
    raise ValueError(f"cannot use {values.to_list()}")


class Panic(BaseException):
    """What a panic of a compiled back end looks like: no Exception."""


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
    with pytest.raises(SchemaError, match=r"cannot compute its columns.*; the cause is withheld") as caught:
        Table(frame, X, ledger)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "7.77" not in "".join(traceback.format_exception(caught.value))


def to_floats(texts: pl.Series) -> pl.Series:
    return pl.Series([float(text) for text in texts])


def lazily(texts: list[str]) -> dict[str, object]:
    """Return lazy frames whose column x is a cast that fails on a text that is no number."""
    connection = duckdb.connect()
    connection.register("given", pa.table({"s": texts, "k": [1] * len(texts)}))
    connection.execute("create table kept as select * from given")
    connection.execute("create view seen as select s::double x, k from kept")
    polars = pl.LazyFrame({"s": texts, "k": [1] * len(texts)})
    return {
        "polars": polars.with_columns(x=pl.col("s").cast(pl.Float64)),
        "polars filtered": polars.filter(pl.col("k") == 1).select(x=pl.col("s").cast(pl.Float64)),
        "polars overflow": polars.select(x=pl.col("s").str.len_bytes().cast(pl.Int8)),
        "polars mapped": polars.select(x=pl.col("s").map_batches(to_floats, return_dtype=pl.Float64)),
        "duckdb": connection.sql("select cast(s as double) x from kept"),
        "duckdb view": connection.table("seen"),
        "duckdb overflow": connection.sql("select length(s)::tinyint x from kept"),
        "duckdb error": connection.sql("select case s when 'bad' then error('bad') else 1 end::double x from kept"),
        "duckdb joined": connection.sql("select s::double x from kept join (select 1 as k) using (k)"),
    }


@pytest.mark.parametrize("kind", list(lazily(["1"])))
@pytest.mark.parametrize("place", [0, 4999])
def test_one_record_that_cannot_be_computed_refuses_the_table_and_spends_nothing(
    kind: str, place: int, ledger: Ledger
) -> None:
    """Seen to be told after the spend, on one of two neighbours."""
    bad = "bad" if "overflow" not in kind else "b" * 200
    texts = ["1"] * 5000
    assert Table(lazily(texts)[kind], X, ledger).to_sum(["x"], False).values["x"].tolist() == [1.0] * 5000
    texts[place] = bad
    with pytest.raises(SchemaError, match=r"frame cannot (compute its columns|be read).*withheld") as caught:
        Table(lazily(texts)[kind], X, ledger)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert len(ledger.entries()) == 0


@pytest.mark.parametrize("kind", list(lazily(["1"])))
def test_neighbours_without_such_a_record_are_asked_alike(kind: str, ledger: Ledger) -> None:
    spent = []
    for last in ("1", "2e0", "-inf", "0"):
        table = Table(lazily(["1"] * 99 + [last])[kind], X, ledger)
        assert counts_of(table, ["x"]).sum() == 100 and len(table.to_sum(["x"], False).kept) == 100
        spent.append(repr(table))
    assert len(set(spent)) == 1


def test_whatever_a_back_end_raises_or_warns_is_replaced_by_the_rule() -> None:
    def panic() -> None:
        warnings.warn("canary", stacklevel=1)
        raise Panic("canary")

    with pytest.raises(SchemaError, match="the rule") as caught:
        withheld(panic, "the rule")
    assert caught.value.__context__ is None


def test_what_a_back_end_warns_is_dropped() -> None:
    def noisy() -> int:
        warnings.warn("canary", stacklevel=1)
        return 3

    assert withheld(noisy, "the rule") == 3  # the suite turns a warning that leaves into an error


def test_tables_of_different_records_differ_in_no_word(as_frame: Callable, ledger: Ledger) -> None:
    schema = Schema({"x": Levels(["a"])})
    words = set()
    for values in ([1.5, 2.5], [math.nan, math.inf], [1e308, 5e-324], [None, -0.0]):
        frame = as_frame(pa.table({"x": pa.array(values, pa.float64())}))
        try:
            words.add(repr(Table(frame, schema, ledger)))
        except SchemaError as error:
            words.add(str(error))
    assert len(words) == 1


def rows_of_last_person(rows: int, **options: Any) -> str:
    """Say what becomes of 100 persons of ten rows each, the last with so many."""
    ids = np.concatenate([np.repeat(np.arange(99), 10), np.full(rows, 99)])
    try:
        return repr(Table({"id": ids, "x": np.zeros(len(ids))}, X, Ledger.in_memory(PureDP(1)), person="id", **options))
    except RowLimitError as error:
        return str(error)


@pytest.mark.parametrize("limit", [99, 100, 1000])
def test_how_many_rows_a_person_has_refuses_nothing(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len({rows_of_last_person(rows, max_rows=limit) for rows in (1, 10, 11, 5000)}) == 1
    monkeypatch.setattr("dpcausal.data.table.DEFAULT_MAX_ROWS", limit)
    assert len({rows_of_last_person(rows) for rows in (1, 10, 11, 5000)}) == 1


def test_the_limit_counts_persons() -> None:
    assert rows_of_last_person(10, max_rows=100).startswith("Table(n=100")
    assert not rows_of_last_person(10, max_rows=99).startswith("Table")
