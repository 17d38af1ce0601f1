"""What a call needs is at hand before it is paid for: its packages and its rows."""

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import dpcausal as dpc
from dpcausal.core import run
from dpcausal.data.source import Source
from dpcausal.errors import MissingDependencyError, SchemaError
from tests.data.every_task import TASKS, outcome

LATE = """
import sys
from unittest.mock import patch
from dpcausal.privacy.ledger import Ledger
from tests.data.every_task import TASKS, _asked, ledger_for
charge, spent = Ledger.charge, []
def noted(self, *given, **named):
    found = charge(self, *given, **named)
    spent.append(set(sys.modules))
    return found
late = {}
with patch.object(Ledger, "charge", noted):
    for task in TASKS:
        spent.clear()
        _asked(task, lambda table: table, ledger_for(task))
        new = sorted(set(sys.modules) - spent[-1])
        if new:
            late[task] = new
print(len(TASKS), late)
"""


def test_nothing_is_imported_between_the_spend_and_the_answer() -> None:
    run = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert run.stdout.strip() == f"{len(TASKS)} {{}}", run.stdout + run.stderr


@pytest.mark.parametrize("broken", [ImportError, RuntimeError])
def test_a_package_that_cannot_be_imported_refuses_the_call_unpaid(
    broken: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(name: str) -> Any:
        raise broken(name)

    ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    table = dpc.Table({"x": np.arange(9.0)}, dpc.Schema({"x": dpc.Bounded(0, 9)}), ledger)
    run._load.cache_clear()
    monkeypatch.setattr(run, "import_module", failing)
    with pytest.raises(MissingDependencyError):
        dpc.cells(table, by=["x"], loss=dpc.PureDP(1))
    assert not ledger.entries()
    monkeypatch.undo()
    dpc.cells(table, by=["x"], loss=dpc.PureDP(1))


def parquet(table: pa.Table, path: Path) -> Any:
    pyarrow.parquet.write_table(table, path / "t.parquet")
    return path / "t.parquet"


def relation(table: pa.Table, path: Path) -> Any:
    return duckdb.connect().read_parquet(str(parquet(table, path)))


HOMES: dict[str, Callable[[pa.Table, Path], Any]] = {
    "parquet": parquet, "memory": lambda table, path: table.to_pandas(types_mapper=pd.ArrowDtype),
    "relation": relation, "lazy": lambda table, path: pl.scan_parquet(parquet(table, path)),
}  # fmt: skip


@cache
def as_it_stays(task: str) -> Any:
    return outcome(task, lambda table: HOMES["memory"](table, Path()))


@pytest.mark.parametrize(
    ("task", "kind"), [(task, [*HOMES][(place + more) % 4]) for place, task in enumerate(TASKS) for more in (0, 1)]
)
def test_a_source_that_goes_at_the_spend_is_not_missed(
    task: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each task from two kinds of sources: the answer is the one that rows in memory give; or the question is refused
    in the same words."""
    stays = as_it_stays(task)
    charge = dpc.Ledger.charge

    def gone(self: Any, *_: Any) -> Any:
        raise OSError("canary")

    def then_gone(self: dpc.Ledger, *given: Any, **named: Any) -> Any:
        allotment = charge(self, *given, **named)
        for file in tmp_path.glob("*"):
            file.unlink()
        for source in (*Source.__subclasses__(), Source):
            if source.__name__ != "HeldSource":
                for word in ("collect", "stream", "summed", "count", "repeated"):
                    if word in vars(source):
                        monkeypatch.setattr(source, word, gone)
        return allotment

    monkeypatch.setattr(dpc.Ledger, "charge", then_gone)
    assert outcome(task, lambda table: HOMES[kind](table, tmp_path)) == stays


def test_other_rows_than_were_counted_are_refused_unpaid(tmp_path: Path) -> None:
    ids = pa.table({"id": [1, 2, 3, 3], "x": [1.0, 2.0, 3.0, 4.0]})
    for person in (None, "id"):
        for changed in (ids.slice(0, 3), ids.set_column(0, "id", pa.array([1, 2, 3, 4])), pa.concat_tables([ids, ids])):
            if person is None and len(changed) == 4:
                continue  # the same number of rows
            ledger = dpc.Ledger.in_memory(dpc.PureDP(1), person=person)
            schema = dpc.Schema({"x": dpc.Bounded(0, 9)})
            table = dpc.Table(relation(ids, tmp_path), schema, ledger, person=person)
            parquet(changed, tmp_path)
            with pytest.raises(SchemaError):
                dpc.cells(table, by=["x"], loss=dpc.PureDP(1))
            assert not ledger.entries()
            parquet(ids, tmp_path)
            dpc.cells(table, by=["x"], loss=dpc.PureDP(1))
