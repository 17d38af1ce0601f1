"""Workbooks: sheets, and cells of other types."""

from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import openpyxl
import pytest

import dpcausal as dpc
from dpcausal.errors import SchemaError
from tests.data.conftest import cells_of
from tests.factories import table
from tests.refusals import rule_of

SCHEMA = {"x": dpc.Bounded(0, 10)}


def workbook(path: Path, *sheets: list[list[Any]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for place, rows in enumerate(sheets):
        sheet = book.create_sheet(f"s{place}")
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_one_cell_of_another_type_changes_its_own_record_alone(tmp_path: Path) -> None:
    whole = [["x"], *([k % 10] for k in range(20))]
    for odd in ("text", None, True, date(2020, 1, 1), datetime(2020, 1, 1, 3), "=1/0", 1e300):
        rows = [list(row) for row in whole]
        rows[7] = [odd]
        values = cells_of(workbook(tmp_path / "d.xlsx", rows), SCHEMA["x"])
        assert values[:6] + values[7:] == [k % 10 for k in range(20) if k != 6]


def test_several_sheets_need_a_name_and_a_formatted_text_needs_none(tmp_path: Path) -> None:
    path = workbook(tmp_path / "d.xlsx", [["y"], [1]], [["x", None, "z"], [3, 4, 5], [4, 4, 4]])
    assert rule_of(partial(table, path, SCHEMA)) == "choice"
    assert rule_of(partial(table, dpc.DataFile(str(path), sheet="s2"), SCHEMA)) == "choice"
    named = table(dpc.DataFile(str(path), sheet="s1"), SCHEMA)
    assert named.spec.source.names == ("x", "z") and named.columns(["x"])["x"].tolist() == [3, 4]
    with pytest.raises(SchemaError, match="whose names differ"):
        table(workbook(tmp_path / "d.xlsx", [["x", "x"], [1, 2]]), SCHEMA)
    assert rule_of(partial(dpc.DataFile, str(path), decimal=",")) == "option"
    assert rule_of(partial(dpc.DataFile, "d.csv", sheet="s1")) == "option"
