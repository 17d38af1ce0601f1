"""The curator's check names why fields of a text file cannot be read: a comma for a point, dates, another encoding."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpcausal as dpc
from dpcausal.data.curator.suspects import FORMS, likely_forms

COMMA, DATE, ENCODING = FORMS
LIKE = {
    "1,5": COMMA, "-0,25": COMMA, "1.234,50": COMMA, "1 234,5": COMMA, ",5": COMMA, "2024-03-01": DATE,
    "01.03.2024": DATE,
    "2024-03-01T10:00:00": DATE, "3/1/24": DATE, "10:30": DATE, "M\udcfcnchen": ENCODING,
    "no": None, "": None, "1;5": None,
    "M\u00fcnchen": None, "1.2.3.4": None,
}  # fmt: skip


@pytest.mark.parametrize("field", LIKE)
def test_a_field_looks_like_one_form_or_none(field: str) -> None:
    assert [words for words in FORMS if f"some look like {words}" in likely_forms([field] * 3)] == (
        [] if LIKE[field] is None else [LIKE[field]])  # fmt: skip


@pytest.mark.parametrize(("cell", "form"), [('"1,5"', COMMA), ("2024-03-01", DATE), ("3", None), ("", None)])
def test_the_check_of_a_file_says_what_cannot_be_read(cell: str, form: str | None, tmp_path: Path) -> None:
    """Seen to fail: a column of dates, or of decimal commas, was paid for and nobody was told why it said nothing."""
    (tmp_path / "d.csv").write_text("v,y\n" + f"{cell},0\n7,1\n" * 50)
    found = dpc.Schema({"v": dpc.Bounded(0, 10)}).check(tmp_path / "d.csv")
    assert [words for words in FORMS if any(words in note for note in found.notes)] == ([form] if form else [])


def test_the_check_of_a_file_in_another_encoding_names_it(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("town\n" + "M\u00fcnchen\nBonn\n" * 50, encoding="cp1252")
    found = dpc.Schema({"town": dpc.Levels(["M\u00fcnchen", "Bonn"])}).check(tmp_path / "d.csv")
    assert any(ENCODING in note for note in found.notes)
