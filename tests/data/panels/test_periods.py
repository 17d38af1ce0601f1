"""Times of a panel: every way to write a time becomes one label that sorts."""

import datetime as dt
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpcausal as dpc
from dpcausal.data.panels.periods import coded_labels, labels_in_order, period_label, unit_name
from dpcausal.errors import DpCausalError, ParameterError, SchemaError
from tests.data.conftest import panel_of
from tests.synthetic_control.neighbours import plan_of


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
    [None, float("nan"), float("inf"), True, "", pd.NaT, pd.NA, np.datetime64("NaT", "s"), object(), [1], b"1989",
     Decimal("sNaN"), "0001-01-01T00:00:00+14:00", dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=5)))],
)  # fmt: skip
def test_what_is_no_time_has_none(value: Any) -> None:
    assert period_label(value) is None


def test_dates_sort_as_time_runs() -> None:
    days = [dt.datetime(2019, 12, 31, 23), dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 5), dt.date(2020, 11, 3)]
    labels = [period_label(day) for day in days]
    assert labels == sorted(labels)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("values", "codes", "names"),
    [
        (["a", 3, 3.0, np.int8(3), None, float("nan"), pd.NA], [0, 1, 1, 1, -1, -1, -1], ["a", 3]),
        (["b", "a", None, "b", [1]], [0, 1, -1, 0, 2], ["b", "a", "[1]"]),
        ([1, True, 1.0, "1", Decimal("1.00"), np.bool_(True), Decimal("0.5"), np.float32(1)], [0, 1, 0, 2, 0, 1, 3, 0],
         [1, "True", "1", "0.5"]),
    ],
)  # fmt: skip
def test_units_keep_their_names_by_first_appearance_and_nulls_have_none(
    values: list[Any], codes: list[int], names: list[Any]
) -> None:
    """True is not the unit one, a decimal is its number, and what has no hash has a name."""
    coded, known = coded_labels([values], len(values), unit_name)
    assert (coded.tolist(), known) == (codes, names)


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
        assert coded_labels([values], 2, name)[1] == names and coded_labels([values[::-1]], 2, name)[1] == names[::-1]


def test_units_and_times_of_any_kind_are_coded() -> None:
    class Raising:
        def __str__(self) -> str:
            raise RuntimeError("no text")

        __hash__ = __str__  # type: ignore[assignment]

    codes, _ = coded_labels([["a", Raising(), "a"]], 3, unit_name)
    assert codes.tolist() == [0, -1, 0]
    assert coded_labels([[1, Raising()]], 2, period_label)[0].tolist() == [0, -1]
    assert str(unit_name(10**5000)).startswith("0x") and unit_name(10**300) == 10**300


MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December"]  # fmt: skip


@pytest.mark.parametrize(
    "made",
    [
        [f"p{k}" for k in range(1, 13)], [f"wave {k}" for k in range(8, 20)], [f"{k}/1/2019" for k in range(1, 13)],
        [f"2019-W{k}" for k in range(1, 53)], [f"{year}Q{k}" for year in (2019, 2020) for k in range(1, 5)],
        [f"{year}-{k}" for year in (1999, 2000) for k in range(1, 13)], [*range(-3, 12)], [1.5, 2.25, 10.0],
        ["2019-03-01", "2019-12-31", "2020-01-01T10:00:00"], [f"{k}h" for k in range(0, 2000, 250)],
    ],
)  # fmt: skip
def test_numbers_dates_and_texts_of_one_form_are_ordered_by_meaning(made: list[Any]) -> None:
    shuffled = [made[place] for place in np.random.default_rng(1).permutation(len(made))]
    assert labels_in_order(shuffled) == tuple(made)


@pytest.mark.parametrize(
    "made",
    [
        MONTHS, ["before", "after"], [f"{k}/{d}/2019" for k in range(1, 4) for d in (1, 2)],
        [f"Q{k} {year}" for year in (2019, 2020) for k in (1, 2)], ["t-1", "t0", "t+1"], ["1.5", "1.25"],
        ["p1", "p01", "p2"], ["p1", "q2"], [f"2019.{k}" for k in range(1, 13)], ["1 Jan", "2 Jan", "1 Feb"],
    ],
)  # fmt: skip
def test_texts_whose_order_is_not_plain_have_none(made: list[str]) -> None:
    with pytest.raises(SchemaError):
        labels_in_order(made)
    assert labels_in_order(made[::-1], made) == tuple(made)


def fresh() -> dpc.Ledger:
    return dpc.Ledger.in_memory(dpc.PureDP(1), unit="unit")


def long(column: Any) -> pd.DataFrame:
    return pd.DataFrame({"unit": np.repeat([0, 1, 2], 12), "time": column, "y": np.tile(np.arange(12.0), 3)})


def make(frame: Any, start: Any, **more: Any) -> dpc.Panel:
    return panel_of(frame, target=0, start=start, **more)


def test_a_declared_order_is_that_of_an_ordered_categorical_or_of_the_list() -> None:
    text = long(np.tile(MONTHS, 3))
    category = text.assign(time=pd.Categorical(text.time, categories=MONTHS, ordered=True))
    enum = pl.DataFrame(text.to_dict("list")).with_columns(pl.col("time").cast(pl.Enum(MONTHS)))
    listed = make(text, "July", times=MONTHS)
    for panel in (make(category, "July"), make(enum, "July"), make(enum.lazy(), "July"), listed):
        assert panel.times == tuple(MONTHS) and panel.start(0) == 6
        assert panel.series(0).tolist() == list(range(12)) and panel.donors()[0].tolist() == list(range(12))


def test_times_without_an_order_are_refused_and_nothing_is_spent() -> None:
    ledger, text = fresh(), long(np.tile(MONTHS, 3))
    unordered = text.assign(time=pd.Categorical(text.time, categories=MONTHS))
    for frame in (text, unordered, text.assign(time=np.tile([*range(1, 12), "x"], 3))):
        with pytest.raises(DpCausalError):
            make(frame, "July", ledger=ledger)
    assert ledger.remaining.epsilon == 1


@pytest.mark.parametrize("times", [MONTHS[:11], [*MONTHS, "May"], "January", 3, [*MONTHS, None], []])
def test_a_list_of_periods_that_lacks_one_or_repeats_one_is_refused(times: Any) -> None:
    with pytest.raises(ParameterError):
        make(long(np.tile(MONTHS, 3)), "July", times=times)


def test_numbers_and_dates_that_are_listed_must_increase() -> None:
    for times in (list(range(12))[::-1], [f"2019-{12 - k:02}-01" for k in range(12)]):
        with pytest.raises(ParameterError):
            make(long(np.tile(times, 3)), times[6], times=times)
    donors, target = np.zeros((2, 3)), np.arange(3.0)
    panel = dpc.Panel.from_arrays(donors, target, start="March", times=["January", "February", "March"],
                                  bounds=dpc.Bounded(0, 3), ledger=fresh())  # fmt: skip
    assert panel.times == ("January", "February", "March")


def test_a_listed_period_that_the_target_lacks_is_lacking_and_one_that_donors_alone_have_does_not_count() -> None:
    frame = long(np.tile(MONTHS, 3))
    gap = frame[~((frame.unit == 0) & (frame.time == "March"))]
    panel = make(gap, "July", times=MONTHS)
    assert panel.lacking == {0: ("March",)} and panel.times == (*MONTHS[:2], *MONTHS[3:]) and panel.start(0) == 5
    assert panel.before(0) == tuple(MONTHS[:6])
    assert panel.donors().shape == (2, 11) and panel.donors()[0].tolist() == [0, 1, *range(3, 12)]


def test_a_trend_counts_the_periods_that_a_target_lacks() -> None:
    series = np.arange(20.0)
    series[[4, 5, 12, 13]] = np.nan
    panel = dpc.Panel.from_arrays(np.zeros((400, 20)), series, start=14, bounds=dpc.Bounded(0, 30),
                                  ledger=fresh())  # fmt: skip
    free = plan_of(panel, loss=dpc.PureDP(1)).free
    assert free.rule == "trend"
    np.testing.assert_allclose(15 + 15 * free.path, np.arange(14.0, 20))


def test_a_period_that_one_target_lacks_and_in_which_another_is_treated_is_refused() -> None:
    first, second = np.arange(10.0), np.arange(10.0)
    first[6] = np.nan
    arguments: dict[str, Any] = {"bounds": dpc.Bounded(0, 30), "ledger": fresh()}
    with pytest.raises(ParameterError):
        dpc.Panel.from_arrays(np.zeros((4, 10)), {"a": first, "b": second}, start={"a": 8, "b": 5}, **arguments)
    panel = dpc.Panel.from_arrays(np.zeros((4, 10)), {"a": first, "b": second}, start={"a": 8, "b": 7}, **arguments)
    assert len(panel.times) == 9 and panel.lacking == {"a": (6,), "b": ()} and panel.start("b") == 6
