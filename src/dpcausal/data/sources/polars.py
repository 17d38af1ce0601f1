"""Polars lazy frames: whether a query gives the same rows each time, and its rows in batches."""

import re
from collections.abc import Iterator, Sequence
from datetime import date

import polars as pl

from dpcausal.data.source import BATCH

_CHANGES = re.compile(
    r"\.(sample|sample_n|sample_frac|shuffle|rank)\(|^\s*(UNIQUE\[[^\]]*Any\] BY Some|HCONCAT)", re.MULTILINE
)
"""It draws; ``rank`` may, and the plan does not say; it keeps any row of several; or it joins rows by their place."""

_FIRST_DAY, _LAST_DAY = (one.toordinal() - date(1970, 1, 1).toordinal() for one in (date.min, date.max))
_OF_DAY = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}

_STEADY = re.compile(
    r"\s*(DF \[|SELECT \[|WITH_COLUMNS:|\[|FILTER |FROM$|[A-Za-z]+ SCAN |PROJECT |ESTIMATED ROWS|UNNEST |EXPLODE "
    r"|ROW INDEX |CACHE\[|hint\.|$)"
)
"""How lines of a plan begin whose steps leave the rows in the order in which they find them."""

_FUNCTIONS = re.compile(r"\.((?:(?:str|dt|list|arr|struct|cat|bin)\.)?[a-z_0-9]+)\(")
_BY_ROW = re.compile(
    r"alias|python_udf|cast|strict_cast|to_physical|reinterpret|is_(not_)?(null|nan)|is_(in)?finite|is_in|is_between|not|when|then"
    r"|otherwise|fill_(null|nan)|replace(_strict)?|cut|coalesce|(sum|mean|min|max|any|all)_horizontal|as_struct|hash|abs"
    r"|sign|sqrt|cbrt|exp|expm1|log|log10|log1p|pow|round(_sig_figs)?|floor|ceil|clip|(arc)?(sin|cos|tan)h?|arctan2"
    r"|degrees|radians|dt\.\w+|(list|arr|struct|cat|bin|str)\.(?!\w*(explode|join|vertical|categories))\w+"
)
"""Functions of one row's values alone, and the curator's own: any other may move values from row to row."""


def changes(frame: pl.LazyFrame) -> bool:
    """Whether its query may give other rows each time, or other rows together."""
    return _CHANGES.search(frame.explain(optimized=False)) is not None


def ordered(frame: pl.LazyFrame) -> bool:
    """Whether no record decides the place of another."""
    plan = frame.explain(optimized=False)
    functions = (one.group(1) for one in _FUNCTIONS.finditer(plan))
    return all(map(_STEADY.match, plan.split("\n"))) and all(map(_BY_ROW.fullmatch, functions))


def evaluate(frame: pl.LazyFrame, names: Sequence[str]) -> None:
    schema = frame.collect_schema()
    frame.select(
        (pl.col(name).is_null() if schema[name] == pl.Object else pl.col(name).hash()).max().alias(f"c{place}")
        for place, name in enumerate(names)
    ).collect()


def datable(series: pl.Series) -> pl.Series:
    """Return a series in which dates that Python does not have are null, and times are in UTC: polars would write to
    standard error when it meets one of them."""
    dtype = series.dtype
    if not isinstance(dtype, pl.Datetime) and dtype != pl.Date:
        return series
    unit = _OF_DAY[dtype.time_unit] if isinstance(dtype, pl.Datetime) else 1
    first, last = max(_FIRST_DAY * unit, -(2**63)), min((_LAST_DAY + 1) * unit, 2**63) - 1
    has_date = series.to_physical().cast(pl.Int64).is_between(first, last)
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is not None:
        series = series.dt.convert_time_zone("UTC")
    return pl.select(pl.when(has_date).then(series)).to_series()


def bytewise(frame: pl.LazyFrame) -> pl.LazyFrame:
    return frame


def batches(frame: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    yield from frame.collect_batches(chunk_size=BATCH, maintain_order=False)
