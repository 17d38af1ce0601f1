"""Times of a panel: every way to write a time becomes one label that sorts."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from dpcausal.data.panels.periods import coded, period_label, unit_name


@pytest.mark.parametrize(
    "value, label",
    [
        (1989, 1989), (1989.0, 1989), (np.int16(1989), 1989), ("1989", 1989), (" 1989 ", 1989), (Decimal(7), 7),
        (1989.5, 1989.5), ("2020Q1", "2020Q1"), (dt.date(2020, 3, 1), "2020-03-01"),
        (dt.datetime(2020, 3, 1), "2020-03-01"), (dt.datetime(2020, 3, 1, 6), "2020-03-01T06:00:00"),
        (pd.Timestamp("2020-03-01"), "2020-03-01"), (np.datetime64("2020-03-01", "ns"), "2020-03-01"),
        ("2020-03-01 00:00:00", "2020-03-01"), (pd.Period("2020Q2", "Q"), "2020-04-01"),
        (dt.datetime(2020, 3, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))), "2020-03-01"),
    ],
)  # fmt: skip
def test_a_time_has_one_label(value: Any, label: Any) -> None:
    assert period_label(value) == label


@pytest.mark.parametrize(
    "value",
    [None, float("nan"), float("inf"), True, "", pd.NaT, pd.NA, np.datetime64("NaT"), object(), [1], b"1989",
     Decimal("sNaN"), "0001-01-01T00:00:00+14:00", dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=5)))],
)  # fmt: skip
def test_what_is_no_time_has_none(value: Any) -> None:
    assert period_label(value) is None


def test_dates_sort_as_time_runs() -> None:
    days = [dt.datetime(2019, 12, 31, 23), dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 5), dt.date(2020, 11, 3)]
    labels = [period_label(day) for day in days]
    assert labels == sorted(labels)  # type: ignore[type-var]


def test_units_keep_their_names_and_nulls_have_none() -> None:
    assert [unit_name(v) for v in ("a", 3, 3.0, np.int8(3), None, float("nan"), pd.NA)] == ["a", 3, 3, 3, *[None] * 3]


def test_codes_follow_first_appearance_and_take_what_has_no_hash() -> None:
    codes, names = coded([["b", "a", None], ["b", [1]]], 5, unit_name)
    assert codes.tolist() == [0, 1, -1, 0, 2] and names == ["b", "a", "[1]"]


def test_true_is_not_the_unit_one_and_a_decimal_is_its_number() -> None:
    values = [1, True, 1.0, "1", Decimal("1.00"), np.bool_(True), Decimal("0.5"), np.float32(1)]
    codes, names = coded([values], 8, unit_name)
    assert codes.tolist() == [0, 1, 0, 2, 0, 1, 3, 0] and names == [1, "True", "1", "0.5"]


def test_a_name_is_that_of_its_own_value_and_not_of_an_equal_one_before() -> None:
    class Alike:
        def __init__(self, text: str) -> None:
            self.text = text

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 0

        def __str__(self) -> str:
            return self.text

    berlin = ZoneInfo("Europe/Berlin")
    first, second = (dt.datetime(2024, 10, 27, 2, 30, tzinfo=berlin, fold=fold) for fold in (0, 1))
    assert first == second and hash(first) == hash(second)
    here, there = (first.astimezone(zone) for zone in (dt.UTC, berlin))
    for values, name in (
        ([here, there], unit_name), ([Alike("a"), Alike("b")], unit_name), ([(1,), (True,)], unit_name),
        ([first, second], period_label), ([first, second], unit_name), ([1, True], unit_name),
    ):  # fmt: skip
        names = [name(value) for value in values]
        assert names[0] != names[1]
        assert coded([values], 2, name)[1] == names and coded([values[::-1]], 2, name)[1] == names[::-1]


def test_a_unit_without_a_text_is_nobody() -> None:
    class Silent:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    assert unit_name(Silent()) is None


def test_units_and_times_of_any_kind_are_coded() -> None:
    class Unhashed:
        def __hash__(self) -> int:
            raise RuntimeError("no hash")

    codes, _ = coded([["a", Unhashed(), "a"]], 3, unit_name)
    assert codes.tolist() == [0, 1, 0]
    assert coded([[1, Unhashed()]], 2, period_label)[0].tolist() == [0, -1]
    assert str(unit_name(10**5000)).startswith("0x") and unit_name(10**300) == 10**300
