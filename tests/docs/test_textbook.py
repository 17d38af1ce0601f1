"""The comparisons on textbook data: those whose packages and data are installed, and the record of all."""

import pytest

from benchmarks import record
from benchmarks.data import DataAbsentError
from benchmarks.peers.published import PUBLISHED
from benchmarks.peers.textbook import COMPARISONS, DIGITS
from benchmarks.peers.textbook_private import PRIVATE

SHIPPED = ("Card, schooling", "Mroz, hours", "Mroz, wages", "Engel, food", "stack loss")


@pytest.mark.filterwarnings("default")  # other packages warn of what others deprecate, and of small groups
@pytest.mark.parametrize("one", COMPARISONS, ids=lambda one: f"{one.what}, {one.book}, {one.package}")
def test_answers_without_privacy_agree_with_other_packages_to_four_digits(one: object) -> None:
    try:
        assert one.digits() >= DIGITS  # type: ignore[attr-defined]
    except (ImportError, DataAbsentError) as error:
        if one.book in SHIPPED and one.package in ("statsmodels", "linearmodels"):  # type: ignore[attr-defined]
            raise
        pytest.skip(str(error))


def test_the_record_has_every_comparison_and_every_task_and_none_disagrees() -> None:
    rows = record.read("peers", "textbook")["rows"]
    lines = [row for row in rows if "digits" in row["metrics"]]
    assert [(row["reading"], row["design"], row["method"]) for row in lines] == [
        (one.what, one.book, one.package) for one in COMPARISONS
    ]
    assert len(lines) >= 20 and all(row["metrics"]["digits"]["value"] >= DIGITS for row in lines)
    private = [(row["reading"], row["design"]) for row in rows if "shown" in row["metrics"]]
    assert private == [(task, book) for task, book, _ in PRIVATE]


def test_the_record_of_published_estimates_has_each_of_them() -> None:
    rows = record.read("peers", "published")["rows"]
    assert [(row["design"], row["reading"]) for row in rows] == [(one.book, one.what) for one in PUBLISHED]
