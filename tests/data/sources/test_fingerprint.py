"""A frame that was changed after the table was made is refused before a question spends, by public facts alone."""

import ast
import os
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import dpcausal as dpc
from dpcausal.errors import SchemaError
from tests.data.conftest import DATABASE
from tests.sources import SOURCE, those, tree

ROWS = 40
SCHEMA = dpc.Schema({"x": dpc.Bounded(-3, 3), "y": dpc.Bounded(-3, 3), "s": dpc.Levels(["no", "yes"])})
CANARY = "7.7712345"


def columns() -> dict[str, np.ndarray]:
    x = np.linspace(-1, 1, ROWS)
    return {"x": x, "y": x**3 - x, "s": np.array(["no", "yes"] * (ROWS // 2)), "spare": x}


def pandas() -> pd.DataFrame:
    return pd.DataFrame(columns())


def refused(frame: Any, change: Callable[[Any], object], words: str) -> None:
    """Assert that a direction is refused after a change, with nothing spent, and would have been answered before."""
    ledger = dpc.Ledger.in_memory(dpc.PureDP(2))
    with dpc.simulated_noise(0):
        table = dpc.Table(frame, SCHEMA, ledger)
        dpc.direction(table, "x", "y", score="lsnm", loss=dpc.PureDP(1))
        change(frame)
        with pytest.raises(SchemaError, match=words) as caught:
            dpc.direction(table, "x", "y", score="lsnm", loss=dpc.PureDP(1))
    assert len(ledger.entries()) == 1 and ledger.remaining.epsilon == 1
    assert "nothing was spent" in str(caught.value) and CANARY not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def people() -> Any:
    DATABASE.from_arrow(pa.table(columns())).create("people")
    return DATABASE.table("people")


Change = Callable[[Any], object]
def retype(array: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy 2.5
        array.dtype = np.dtype("datetime64[s]")


CHANGES: dict[str, tuple[Callable[[], Any], Change, str]] = {
    "a column becomes text": (pandas, lambda frame: frame.__setitem__("x", [CANARY] * ROWS), "column 'x'"),
    "one entry becomes text": (
        pandas, lambda frame: frame.__setitem__("x", frame["x"].astype(object).where(frame.index != 3, CANARY)),
        "column 'x'"),
    "a column becomes dates": (pandas, lambda frame: frame.__setitem__("y", pd.Timestamp("2020-01-01")), "column 'y'"),
    "levels become numbers": (pandas, lambda frame: frame.__setitem__("s", 7.5), "column 's'"),
    "a column goes": (pandas, lambda frame: frame.pop("y"), "column 'y'"),
    "a column is renamed": (pandas, lambda frame: frame.insert(0, "z", frame.pop("x")), "column 'x'"),
    "a row comes": (pandas, lambda frame: frame.loc.__setitem__(ROWS, [0.0, 0.0, "no", 0.0]), "rows"),
    "a column of polars becomes text": (
        lambda: pl.DataFrame(columns()), lambda frame: frame.replace_column(0, pl.Series("x", [CANARY] * ROWS)),
        "column 'x'.*numeric"),
    "a column of polars goes": (
        lambda: pl.DataFrame(columns()), lambda frame: frame.drop_in_place("y"), "column 'y' is no longer"),
    "rows of polars come": (
        lambda: pl.DataFrame(columns()), lambda frame: frame.extend(frame), "no longer has the rows"),
    "an array is read anew as another type": (
        columns, lambda frame: retype(frame["x"]), "column 'x'.*numeric"),
    "a table of DuckDB goes": (people, lambda frame: DATABASE.sql("drop table people"), "."),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.usefixtures("without_waits")
def test_a_frame_changed_behind_its_table_is_refused_before_the_spend(name: str) -> None:
    frame, change, words = CHANGES[name]
    refused(frame(), change, words)


def test_values_may_change_and_other_columns_may_come_and_go() -> None:
    frame = pandas()
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    table = dpc.Table(frame, SCHEMA, ledger)
    frame["x"] = frame["x"] * 2
    frame["more"] = CANARY
    del frame["spare"]
    assert table.ledger is ledger
    assert table.columns(["x"])["x"][0] == -2


def csv(path: Path) -> Path:
    pandas().to_csv(path / "table.csv", index=False)
    return path / "table.csv"


def parquet(path: Path) -> Path:
    pyarrow.parquet.write_table(pa.table(columns()), path / "table.parquet")
    return path / "table.parquet"


def rewritten(path: Path) -> None:
    if path.suffix == ".csv":
        path.write_text("x,y,s\n" + f"{CANARY},1,no\n" * ROWS)
    else:
        pyarrow.parquet.write_table(pa.table({"x": [CANARY] * ROWS}), path)


def replaced(path: Path) -> None:
    other = path.with_name(f"other{path.suffix}")
    rewritten(other)
    os.replace(other, path)


def folder(path: Path) -> Path:
    (path / "parts").mkdir()
    parquet(path / "parts")
    return path / "parts"


def added(path: Path) -> None:
    pyarrow.parquet.write_table(pa.table(columns()), path / "another.parquet")


@pytest.mark.parametrize(("kind", "change"), [
    *product((csv, parquet), (rewritten, replaced, Path.unlink)), (folder, added),
])  # fmt: skip
def test_a_file_that_was_written_to_replaced_or_added_is_refused(kind: Any, change: Any, tmp_path: Path) -> None:
    refused(kind(tmp_path), change, "was changed after it was declared")


def panel_frame() -> pd.DataFrame:
    units = np.repeat(["A", "B", "C"], 4)
    return pd.DataFrame({"state": units, "year": list(range(4)) * 3, "sales": np.arange(12.0), "spare": 0.0})


def panel_of(frame: Any) -> dpc.Panel:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1), unit="state")
    panel = dpc.Panel(frame, unit="state", time="year", outcome="sales", target="A", start=2, bounds=dpc.Bounded(0, 12),
                  ledger=ledger)  # fmt: skip
    assert panel.ledger is ledger
    return panel


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame.__setitem__("sales", pd.Timestamp("2020-01-01")), "column 'sales'"),
        (lambda frame: frame.pop("state"), "column 'state'"), (lambda frame: frame.pop("sales"), "column 'sales'"),
        (lambda frame: frame.__setitem__("more", CANARY) or frame.pop("spare"), ""),
        (lambda path: panel_frame()[::-1].to_csv(path, index=False), "was changed"),
    ],
)  # fmt: skip
def test_a_panel_that_changed_gives_its_ledger_to_no_question(change: Any, words: str, tmp_path: Path) -> None:
    frame: Any = panel_frame()
    if words == "was changed":
        frame.to_csv(tmp_path / "panel.csv", index=False)
        frame = tmp_path / "panel.csv"
    panel = panel_of(frame)
    change(frame)
    if words:
        with pytest.raises(SchemaError, match=f"{words}.*nothing was spent"):
            panel.ledger  # noqa: B018
    else:
        assert panel.ledger is not None


@pytest.mark.parametrize("columns", [["state", "year", "sales", "spare"], ["sales"]])
def test_a_panel_reads_units_and_values_together(columns: list[str]) -> None:
    """Rows that came in another order would else give each donor the values of others."""
    frame = panel_frame()
    panel = panel_of(frame)
    before, order = panel.donors(), np.random.default_rng(5).permutation(len(frame))
    for name in columns:
        frame[name] = frame[name].to_numpy()[order]
    assert (panel.donors() == before).all() == (len(columns) > 1)


def test_a_panel_with_units_that_it_did_not_have_is_refused_without_naming_them() -> None:
    frame = panel_frame()
    panel = panel_of(frame)
    frame.loc[5, "state"] = CANARY
    with pytest.raises(SchemaError) as caught:
        panel.donors()
    assert CANARY not in str(caught.value)


def test_every_task_asks_the_table_or_panel_for_its_ledger() -> None:
    """The check stands in ``Table.ledger`` and ``Panel.ledger``: nobody outside this room takes a ledger past it."""
    assert those(lambda path: path.relative_to(SOURCE).parts[0] not in ("data", "privacy") and any(
        isinstance(node, ast.Attribute) and node.attr == "_ledger" for node in ast.walk(tree(path)))) == []  # fmt: skip
