"""The table: limits, secrecy, and faults of the caller."""

import copy
import math
import pickle
import traceback
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpcausal import Bounded, Ledger, PureDP, Schema, Table
from dpcausal.data.counts import counts_of
from dpcausal.errors import DpCausalError, HiddenAnswerError, ParameterError, RowLimitError, SchemaError

X = Schema({"x": Bounded(0, 10)})
CANARY = 7.777123


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
    (ParameterError, {"person": "id", "max_rows": 2**27 + 1}),
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
    table = Table({"x": np.zeros(2), "y": np.zeros(2)}, X, ledger)
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
    table = Table(pd.DataFrame({"x": [CANARY, 1.0]}), X, ledger)
    assert repr(table) == str(table) == "Table(n=2, columns=('x',), backend='pandas')"
    assert "7.77" not in repr(table.spec) + repr(table.spec.source) and not hasattr(table, "__dict__")
    for name in ("n", "schema", "ledger", "_spec", "other"):
        with pytest.raises(AttributeError):
            setattr(table, name, 1)
    with pytest.raises(AttributeError):
        del table._spec
    assert copy.copy(table) is copy.deepcopy({"t": [table]})["t"][0] is table
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(HiddenAnswerError):
            pickle.dumps([table.spec], protocol)
    with pytest.raises(HiddenAnswerError):
        table.__getstate__()


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
        "polars mapped": polars.select(
            x=pl.col("s").map_batches(lambda texts: pl.Series([*map(float, texts)]), return_dtype=pl.Float64)
        ),
        "duckdb view": connection.table("seen"),
        "duckdb overflow": connection.sql("select length(s)::tinyint x from people"),
        "duckdb error": connection.sql("select case s when 'canary' then error(s) else 1 end::double x from people"),
        "duckdb joined": connection.sql("select s::double x from people join (select 1 as k) using (k)"),
    }


@pytest.mark.parametrize("kind", list(lazily(["1"])))
@pytest.mark.usefixtures("without_waits")
def test_one_record_that_cannot_be_computed_refuses_the_table_unpaid_and_unquoted(kind: str, ledger: Ledger) -> None:
    texts, shown = ["1"] * 5000, set()
    for last in ("1", "2e0", "-inf", "0"):
        table = Table(lazily(["1"] * 99 + [last])[kind], X, ledger)
        assert counts_of(table, ["x"]).sum() == 100
        shown.add(repr(table))
    assert len(shown) == 1
    for place in (0, 4999):
        texts[place] = "canary" * (1 if "overflow" not in kind else 40)
        with pytest.raises(SchemaError) as caught:
            Table(lazily(texts)[kind], X, ledger)
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert "canary" not in "".join(traceback.format_exception(caught.value))
        texts[place] = "1"
    assert len(ledger.entries()) == 0


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
