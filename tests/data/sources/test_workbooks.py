"""Workbooks: read as the CSV file of the same sheet is."""

from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest

import dpcausal as dpc
from dpcausal.data.files.formats import DataFile
from dpcausal.data.files.opening import file_source
from dpcausal.errors import MissingDependencyError, SchemaError
from tests.refusals import rule_of

SCHEMA = dpc.Schema({"x": dpc.Bounded(0, 10)})


def ledger() -> dpc.Ledger:
    return dpc.Ledger.in_memory(dpc.PureDP(1))


def workbook(path: Path, *sheets: list[list[Any]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for place, rows in enumerate(sheets):
        sheet = book.create_sheet(f"s{place}")
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


@pytest.mark.parametrize("name", ["d.xlsx", "d.ods"])
def test_a_sheet_reads_as_its_csv_does(name: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({
        "id": ["p1", "é", None, "1.0"], "age": [31, np.nan, -0.1, 2.0**40], "smoker": [0, 1, 1, 0],
        "day": pd.to_datetime(["2020-01-02", None, "1999-12-31", "2024-02-29"]),
    })  # fmt: skip
    frame.to_excel(str(tmp_path / name), index=False)
    frame.to_csv(tmp_path / "d.csv", index=False)
    ours, theirs = file_source(tmp_path / name), file_source(tmp_path / "d.csv")
    assert ours.names == theirs.names and ours.count() == theirs.count() == 4
    known = theirs.collect(["age", "day", "id", "smoker"])
    batch = next(iter(ours.stream(["age", "day", "id", "smoker"])))
    for columns in (ours.collect(["smoker", "age", "id", "day"]), batch):
        assert np.array_equal(columns.numbers("age"), known.numbers("age"), equal_nan=True)
        for column in ("id", "smoker", "day"):
            assert [list(part) for part in columns.objects(column)] == [list(part) for part in known.objects(column)]


def test_one_cell_of_another_type_changes_its_own_record_alone(tmp_path: Path) -> None:
    whole = [["x"], *([k % 10] for k in range(20))]
    for odd in ("text", None, True, date(2020, 1, 1), datetime(2020, 1, 1, 3), "=1/0", 1e300):
        rows = [list(row) for row in whole]
        rows[7] = [odd]
        values = dpc.Table(workbook(tmp_path / "d.xlsx", rows), SCHEMA, ledger()).columns(["x"])["x"]
        assert np.delete(values, 6).tolist() == [k % 10 for k in range(20) if k != 6]


def test_several_sheets_need_a_name_and_a_formatted_text_needs_none(tmp_path: Path) -> None:
    path = workbook(tmp_path / "d.xlsx", [["y"], [1]], [["x", None, "z"], [3, 4, 5], [4, 4, 4]])
    assert rule_of(partial(dpc.Table, path, SCHEMA, ledger())) == "choice"
    assert rule_of(partial(dpc.Table, DataFile(str(path), sheet="s2"), SCHEMA, ledger())) == "choice"
    table = dpc.Table(DataFile(str(path), sheet="s1"), SCHEMA, ledger())
    assert table.spec.source.names == ("x", "z") and table.columns(["x"])["x"].tolist() == [3, 4]
    assert rule_of(partial(DataFile, str(path), decimal=",")) == "option"
    assert rule_of(partial(DataFile, "d.csv", sheet="s1")) == "option"


def test_what_is_no_workbook_or_needs_the_extra_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("d.xlsx", "d.ods"):
        (tmp_path / name).write_bytes(b"canary" * 100)
        with pytest.raises(SchemaError, match=r"cannot be read as a workbook.*or CSV") as refused:
            dpc.Table(tmp_path / name, SCHEMA, ledger())
        assert "canary" not in str(refused.value) and refused.value.__cause__ is None
    with pytest.raises(SchemaError, match="whose names differ"):
        dpc.Table(workbook(tmp_path / "d.xlsx", [["x", "x"], [1, 2]]), SCHEMA, ledger())
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "python_calamine" else 1)
    with pytest.raises(MissingDependencyError, match=r"python-calamine is needed.*'dpcausal\[excel\]'"):
        dpc.Table(tmp_path / "d.xlsx", SCHEMA, ledger())
