"""The comparisons on textbook data: those whose packages and data are installed, and the record of all."""

from __future__ import annotations

import json

import pytest

from benchmarks.pairs import DataAbsentError
from benchmarks.textbook import COMPARISONS, DIGITS, RECORD
from benchmarks.textbook_private import PRIVATE

SHIPPED = ("Card, schooling", "Mroz, hours", "Mroz, wages", "Engel, food", "stack loss")


@pytest.mark.parametrize("one", COMPARISONS, ids=lambda one: f"{one.what}, {one.book}, {one.package}")
def test_answers_without_privacy_agree_with_other_packages_to_four_digits(one: object) -> None:
    try:
        assert one.digits() >= DIGITS  # type: ignore[attr-defined]
    except (ImportError, DataAbsentError) as error:
        if one.book in SHIPPED and one.package in ("statsmodels", "linearmodels"):  # type: ignore[attr-defined]
            raise
        pytest.skip(str(error))


def test_the_record_has_every_comparison_and_every_task_and_none_disagrees() -> None:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    lines, private = record["agreement without privacy"], record["intervals at epsilon 1 that hold it"]
    told = [(line["what"], line["data"], line["package"]) for line in lines]
    assert told == [(one.what, one.book, one.package) for one in COMPARISONS]
    assert len(lines) >= 20 and all(line["digits"] >= DIGITS for line in lines)
    assert [(line["task"], line["data"]) for line in private] == [(task, book) for task, book, _ in PRIVATE]
