"""Dates as a kind of column: days between two dates, or the months, quarters and years that they lie in."""

import math
from datetime import UTC, date, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyreadstat
import pytest

import dpcausal as dpc
from dpcausal.data.panels.dates import day_of
from dpcausal.data.subgroups.predicate import parse_predicates
from dpcausal.errors import ParameterError, SchemaError
from tests.data.conftest import cells_of
from tests.factories import table
from tests.refusals import rule_of

DAYS = [date(2019, 1, 31), None, date(2019, 5, 1), date(1950, 7, 4), date(2019, 12, 31), date(2031, 1, 1)]
FRAME = pd.DataFrame({"day": pd.to_datetime(pd.Series(DAYS)), "g": [0, 1, 0, 1, 0, 1]})
LOWER, UPPER = date(2019, 1, 1), date(2019, 12, 31)
INSIDE = [30.0, None, 120.0, 0.0, 364.0, 364.0]
"""Days since the lower bound, clipped."""


def text_file(path: Path, form: str, **options: Any) -> dpc.DataFile:
    fields = ["" if day is None else day.strftime(form) for day in DAYS]
    (path / "d.csv").write_text("day,g\n" + "".join(f"{field},{k % 2}\n" for k, field in enumerate(fields)))
    return dpc.DataFile(str(path / "d.csv"), **options)


def times_of_spss(path: Path) -> Path:
    pyreadstat.write_sav(FRAME.astype({"day": "datetime64[ns]"}), path / "d.sav")
    return path / "d.sav"


ARROW = pa.table({"day": pa.array(DAYS, pa.date32()), "g": [0, 1] * 3})
SOURCES: dict[str, Any] = {
    "csv with times": lambda path: text_file(path, "%Y-%m-%d 13:05:00"), "spss time": times_of_spss,
    "csv day first": lambda path: text_file(path, "%d.%m.%Y", dates="day-month-year"),
    "arrow": lambda path: ARROW,
    "arrow times": lambda path: ARROW.set_column(0, "day", ARROW["day"].cast(pa.timestamp("s"))),
    "pandas": lambda path: FRAME, "pandas objects": lambda path: FRAME.assign(day=pd.Series(DAYS, dtype=object)),
    "pandas arrow": lambda path: FRAME.assign(day=pd.Series(DAYS, dtype="date32[pyarrow]")),
    "polars": lambda path: pl.DataFrame({"day": DAYS}), "polars lazy": lambda path: pl.DataFrame({"day": DAYS}).lazy(),
    "polars times": lambda path: pl.DataFrame({"day": DAYS}).cast(pl.Datetime("ms", "UTC")),
    "polars texts": lambda path: pl.DataFrame({"day": DAYS}).cast(pl.String),
    "numpy": lambda path: {"day": np.array(DAYS, dtype="datetime64[D]")},
    "numpy nanoseconds": lambda path: {"day": np.array(DAYS, dtype="datetime64[ns]")},
    "duckdb": lambda path: duckdb.from_arrow(ARROW), "duckdb times": lambda path: duckdb.from_df(FRAME),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_dates_of_every_source_are_the_same_days_and_quarters(name: str, tmp_path: Path) -> None:
    frame, first = SOURCES[name](tmp_path), (LOWER - date(1970, 1, 1)).days
    days = cells_of(frame, dpc.Bounded(LOWER, UPPER), "day")
    assert [day if day is None else day - first for day in days] == INSIDE
    quarters = dpc.Schema({"day": {"lower": LOWER, "upper": "2019-12-31", "period": "quarter"}})
    assert cells_of(frame, quarters["day"], "day") == [0, None, 1, None, 3, None]


HOSTILE = [
    pd.NaT, np.datetime64("NaT", "s"), None, 5, 20190131, 1e300, "", "2019-02-30", "2019-1-1x", "31.12.2019",
    "0000-01-01", "99999-01-01", np.datetime64(2**62, "s"), float("nan"), [date(2019, 1, 1)], b"2019-01-01",
    object(), timedelta(3), np.array([1, 2]), "٢٠١٩-٠١-٠١x",
]  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: repr(value)[:20])
def test_what_is_no_date_is_missing_and_fails_nothing(value: Any) -> None:
    assert math.isnan(day_of(value))


def test_a_time_with_a_zone_counts_by_its_date_in_utc() -> None:
    late = datetime(2019, 1, 1, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    assert day_of(late) == day_of(datetime(2019, 1, 2, tzinfo=UTC)) == day_of("2019-01-02") == day_of("2019/01/02")


def test_a_schema_of_dates_reads_back_from_toml_and_from_its_words(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        '[entry]\nlower = 2019-01-01\nupper = "2020-12-31"\ncuts = [2020-01-01]\nmissing = [9999-12-31]\n'
        '[month]\nlower = 2019-11-01\nupper = 2020-01-31\nperiod = "month"\nother = "never"\n'
    )
    schema = dpc.Schema.from_toml(tmp_path / "s.toml")
    assert schema["entry"] == dpc.Bounded("2019-01-01", date(2020, 12, 31), ["2020-01-01"], ["9999-12-31"])
    assert schema["month"] == dpc.Levels(["2019-11", "2019-12", "2020-01"], "never", period="month")
    assert dpc.Schema(schema.to_dict()) == schema
    assert eval(repr(schema["entry"]), {"Bounded": dpc.Bounded}) == schema["entry"]
    assert schema["entry"] != dpc.Bounded(schema["entry"].lower, schema["entry"].upper)
    frame = {"entry": np.array(["9999-12-31", "2019-06-01"]), "month": np.array(["", "2019-12-05"])}
    rows = table(frame, schema).rows(["entry", "month"])
    assert rows.present["entry"].tolist() == [False, True] and rows.values["month"].tolist() == [3, 1]
    for wrong in ({"lower": LOWER, "upper": 5}, {"lower": UPPER, "upper": LOWER}, {"lower": LOWER, "upper": "soon"},
                  {"lower": LOWER, "upper": UPPER, "period": "week"}, {"lower": 0, "upper": 5, "period": "month"},
                  {"levels": [1, 2], "period": "year"}):  # fmt: skip
        with pytest.raises(SchemaError):
            dpc.Schema({"day": wrong})


@pytest.mark.parametrize(
    ("frame", "column", "words"),
    [
        (FRAME, dpc.Bounded(0, 9), "declare dates as bounds"),
        (FRAME, dpc.Levels(["a", "b"]), "declare dates as bounds"),
        (FRAME.assign(day=20190131), dpc.Bounded(LOWER, UPPER), "needs a column of dates"),
        (FRAME.assign(day=1.5), dpc.Levels(["2019"], period="year"), "needs a column of dates"),
    ],
)  # fmt: skip
def test_dates_declared_as_numbers_and_numbers_as_dates_are_refused_with_what_to_set(
    frame: Any, column: Any, words: str
) -> None:
    with pytest.raises(SchemaError, match=words):
        table(frame, {"day": column})


def test_a_subgroup_is_given_by_dates() -> None:
    days = np.datetime64("2019-01-01") + np.arange(365)
    whole = table({"day": days, "x": np.arange(365.0)}, {"day": dpc.Bounded(LOWER, UPPER), "x": dpc.Bounded(0, 364)})
    part = whole.where("day", at_least=date(2019, 2, 1), at_most="2019-02-28")
    assert part.rows(["x"]).values["x"][part.rows(["x"]).included].tolist() == list(range(31, 59))
    ends = [("day", {"at_least": "2019-02-01"}), ("day", {"at_most": "2019-02-28"})]
    assert parse_predicates(str(part.inside[0])) == ends
    with pytest.raises(ParameterError, match="2019-01-01 to 2019-12-31"):
        whole.where("day", at_least="2020-02-01")


def test_the_cutoff_of_a_date_is_shown_as_a_date_and_read_back_from_a_release(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    day = rng.integers(0, 1_400, 6_000)
    y = np.clip((day >= 700) + 0.3 * rng.normal(size=6_000), -2, 3)
    frame = {"born": np.datetime64("1990-01-01") + day, "y": y}
    schema = dpc.Schema({"born": dpc.Bounded("1990-01-01", "1993-10-31"), "y": dpc.Bounded(-2, 3)})
    roles, loss = {"running": "born", "outcome": "y", "cutoff": "1991-12-02"}, dpc.PureDP(4)
    for side in ("right", "left"):
        table = dpc.Table(frame, schema, dpc.Ledger.in_memory(loss))
        found = dpc.discontinuity(table, **roles, at_cutoff=side, loss=loss)
        again = dpc.Release.from_json(found.release.to_json()).discontinuity(bandwidth=300)
        for one in (found, again):
            assert "born = 1991-12-02:" in one.headline()[0] and "days" in one.headline()[1]
        assert "1991-12-02" in [label.get_text() for label in found.plot().get_xticklabels()]


def test_did_and_effect_take_dates_and_synthetic_control_their_months(tmp_path: Path) -> None:
    rng, people = np.random.default_rng(0), np.repeat(np.arange(1000), 6)
    months = np.tile(np.arange(6), 1000)
    days = (np.datetime64("2019-01") + months).astype("datetime64[D]") + rng.integers(0, 28, len(months))
    treated = people % 2 == 1
    y = 2.0 * ((months >= 3) & treated) + rng.normal(size=len(months))
    by_month = {"lower": "2019-01-01", "upper": "2019-06-30", "period": "month"}
    schema = dpc.Schema({"t": by_month, "g": {**by_month, "other": "never"}, "y": dpc.Bounded(-8, 8),
                         "late": dpc.Bounded("2019-01-01", "2019-06-30"), "a": dpc.Levels([0, 1])})  # fmt: skip
    frame = {"id": people, "t": days, "g": np.where(treated, "2019-04-15", ""), "y": y, "a": treated.astype(int),
             "late": np.where(treated, np.datetime64("2019-03-11"), np.datetime64("2019-03-01"))}  # fmt: skip
    whole = dpc.Table(frame, schema, dpc.Ledger.without_privacy(), person="id")
    answer = dpc.did(whole, time="t", cohort="g", outcome="y", loss=dpc.NoPrivacy())
    assert abs(answer.att.estimate - 2) < 0.2
    later = dpc.effect(whole, treatment="a", outcome="late", adjust=[], method="stratified", loss=dpc.NoPrivacy())
    assert abs(later.estimate - 10) < 1e-4
    days = np.tile(np.datetime64("2019-01-01") + np.arange(180), 4)
    frame = {"unit": np.repeat(["a", "b", "c", "d"], 180), "day": days, "y": rng.normal(size=720)}
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1), unit="unit")
    layout = {"unit": "unit", "time": "day", "outcome": "y", "target": "a", "start": "2019-04"}
    panel = dpc.Panel(frame, **layout, bounds=dpc.Bounded(-5, 5), ledger=ledger, period="month")
    assert panel.times == ("2019-01", "2019-02", "2019-03", "2019-04", "2019-05", "2019-06")
    assert np.isclose(panel.series("a")[0], frame["y"][:31].mean())
    wrong = partial(dpc.Panel, frame, **layout, bounds=dpc.Bounded(-5, 5), ledger=ledger, period="week")
    assert rule_of(wrong) == "choice"
