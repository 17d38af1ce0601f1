"""What a back end says, or code of the caller's that it runs on rows, is not heard; what it raises is our own error."""

import logging
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pytest

import dpcausal as dpc
from dpcausal.data.source import guarded_read
from dpcausal.errors import SchemaError
from tests.voices import Heard, Steps, state, together

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


def test_two_threads_that_read_at_once_are_unheard_and_leave_the_filters(heard: Heard) -> None:
    turn = Steps("one in", "two in", "one out", "two warns", "two out")
    before = state()

    def region(action: Callable[[], Any]) -> None:
        guarded_read(action, "the rule")

    def warn() -> None:
        warnings.warn(f"{SECRET}", stacklevel=1)

    together(lambda: turn.held(region, "one"), lambda: turn.held(region, "two", ("two warns", warn)))
    assert str(SECRET) not in heard()
    assert state() == before


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError, Warning, Panic])
def test_no_failure_while_rows_are_read_ends_the_call_in_its_own_way(kind: type[BaseException]) -> None:
    def fail(value: Any) -> Any:
        raise kind(f"{SECRET}")

    with pytest.raises(SchemaError, match="the rule; the cause is withheld") as caught:
        guarded_read(lambda: fail(1), "the rule")
    assert caught.value.__context__ is caught.value.__cause__ is None


def test_a_real_interrupt_while_rows_are_read_goes_on() -> None:
    with pytest.raises(KeyboardInterrupt):
        guarded_read(lambda: [os.kill(os.getpid(), signal.SIGINT), time.sleep(5)], "the rule")
