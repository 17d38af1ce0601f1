"""Dates as days since 1970-01-01, and the months, quarters and years that they lie in."""

import math
import re
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

_FIRST = date(1970, 1, 1).toordinal()
_YEAR, _MONTH, _DAY, _TIME = r"(?P<year>\d{4})", r"(?P<month>\d{1,2})", r"(?P<day>\d{1,2})", r"([T ].*)?"
_BETWEEN = "[-/. ]"

ORDERS = {
    "year-month-day": re.compile(rf"{_YEAR}(?:(?P<between>[-/.])|(?=\d{{4}})){_MONTH}(?(between)[-/.]){_DAY}{_TIME}"),
    "day-month-year": re.compile(_DAY + _BETWEEN + _MONTH + _BETWEEN + _YEAR + _TIME),
    "month-day-year": re.compile(_MONTH + _BETWEEN + _DAY + _BETWEEN + _YEAR + _TIME),
}
"""In which order a text gives a date; the first is also read without marks, as 20190131."""

PERIODS = {
    "month": lambda one: f"{one.year:04}-{one.month:02}",
    "quarter": lambda one: f"{one.year:04}-Q{(one.month + 2) // 3}",
    "year": lambda one: f"{one.year:04}",
}


def day_of(value: Any, order: str = "year-month-day") -> float:
    """Return a date, a time, or the text of one, as days; NaN for anything else, so that no value makes it fail.

    A time with a zone counts by its date in UTC.

    >>> day_of("1970-01-31"), day_of("20.02.1970", "day-month-year"), day_of(30)
    (30.0, 50.0, nan)
    """
    try:
        if isinstance(value, str):
            match: Any = ORDERS[order].fullmatch(value.strip())
            value = date(int(match["year"]), int(match["month"]), int(match["day"]))
        elif isinstance(value, np.datetime64):
            value = value.astype("datetime64[D]").item()
        elif isinstance(value, datetime) and value.tzinfo is not None:
            value = value.astimezone(UTC)
        return float(date.toordinal(value) - _FIRST) if value == value else math.nan  # NaT differs from itself
    except BaseException:  # no date, one that there is not, or a method that raises: a cell must not fail all
        return math.nan


def date_of(day: float) -> date:
    return date.fromordinal(math.floor(day) + _FIRST)


def date_text(day: float) -> str:
    return date_of(day).isoformat()


def period_of(day: float, period: str) -> str:
    """Return the month, quarter or year of a day.

    >>> period_of(100, "month"), period_of(100, "quarter"), period_of(100, "year")
    ('1970-04', '1970-Q2', '1970')
    """
    return PERIODS[period](date_of(day))


def periods_between(first: float, last: float, period: str) -> list[str]:
    return list(dict.fromkeys(period_of(day, period) for day in range(int(first), int(last) + 1)))
