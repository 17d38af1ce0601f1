"""Polars lazy frames: whether a query gives the same rows each time, and its rows in batches."""

import re
from collections.abc import Iterator, Sequence

import polars as pl

from dpcausal.data.source import BATCH

_CHANGES = re.compile(r"\.(sample|sample_n|sample_frac|shuffle|rank)\(|^\s*UNIQUE\[[^\]]*Any\] BY Some", re.MULTILINE)
"""It draws; ``rank`` may, and the plan does not say; or it keeps any row of several."""

_MOVES = re.compile(
    r"^\s*(AGGREGATE|UNIQUE|SORT BY|MERGE SORTED|[A-Z]+( [A-Z]+)? JOIN|UNION|OPAQUE_PYTHON)"
    r"|\.(sort|sort_by|arg_sort|unique|arg_unique|gather|top_k|top_k_by|bottom_k|value_counts|reverse|over|mode)\(",
    re.MULTILINE,
)
"""A union is among them, since filters may stand below it; so are code on whole frames, and windows, of which the plan
does not say how they map their rows."""


def changes(frame: pl.LazyFrame) -> bool:
    """Whether its query may give other rows each time."""
    return _CHANGES.search(frame.explain(optimized=False)) is not None


def ordered(frame: pl.LazyFrame) -> bool:
    return _MOVES.search(frame.explain(optimized=False)) is None


def evaluate(frame: pl.LazyFrame, names: Sequence[str]) -> None:
    schema = frame.collect_schema()
    frame.select(
        (pl.col(name).is_null() if schema[name] == pl.Object else pl.col(name).hash()).max().alias(f"c{place}")
        for place, name in enumerate(names)
    ).collect()


def bytewise(frame: pl.LazyFrame) -> pl.LazyFrame:
    return frame


def batches(frame: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    yield from frame.collect_batches(chunk_size=BATCH, maintain_order=False)
