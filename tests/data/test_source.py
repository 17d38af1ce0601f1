"""What a back end says, or code of the caller's that it runs on rows, is not heard; what it raises is our own error."""

import logging
import sys
import warnings
from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pytest

import dpcausal as dpc
from dpcausal.data.source import guarded_read
from dpcausal.errors import SchemaError
from tests.voices import Heard, state

SECRET = 0.7319024658
SCHEMA = dpc.Schema({"x": dpc.Bounded(0, 1)})


class Panic(BaseException):
    """As libraries in other languages raise."""


def tell(value: Any) -> Any:
    print("the value is", value)
    print("the value is", value, file=sys.stderr)
    logging.getLogger("guest").critical("the value is %r", value)
    warnings.warn(f"the value is {value}", UserWarning, stacklevel=1)
    return value


def tell_scalar(value: float) -> float:
    return float(tell(value))


def duck() -> Any:
    connection = duckdb.connect()
    connection.create_function("tell", tell_scalar)
    return connection.sql(f"select tell({SECRET}::double + 0 * range) x from range(3)")


FRAMES: dict[str, Callable[[], Any]] = {
    "lazy": lambda: pl.LazyFrame({"x": [SECRET] * 3}).with_columns(pl.col("x").map_batches(tell)),
    "lazy, row by row": lambda: pl.LazyFrame({"x": [SECRET] * 3}).with_columns(
        pl.col("x").map_elements(tell, return_dtype=pl.Float64)
    ),
    "duckdb": duck,
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_function_that_an_engine_runs_on_rows_is_not_heard(name: str, heard: Heard) -> None:
    before = state()
    table = dpc.Table(FRAMES[name](), SCHEMA, dpc.Ledger.in_memory(dpc.PureDP(1)))
    assert table.columns(["x"])["x"].tolist() == [SECRET] * 3
    assert str(SECRET) not in heard()
    assert state() == before


@pytest.mark.parametrize("kind", [KeyboardInterrupt, Warning, Panic])
def test_a_failure_while_rows_are_read_is_our_own_error(kind: type[BaseException]) -> None:
    def fail() -> Any:
        raise kind(f"{SECRET}")

    with pytest.raises(SchemaError, match="the rule; the cause is withheld") as caught:
        guarded_read(fail, "the rule")
    assert caught.value.__context__ is caught.value.__cause__ is None
