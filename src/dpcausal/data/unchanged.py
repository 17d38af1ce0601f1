"""Whether a frame still is what a table or a panel was made of: asked before each spend, by public facts alone.

| frame | asked again |
|---|---|
| pandas, polars, pyarrow, numpy arrays | column names, declared types, number of rows |
| polars LazyFrame, DuckDB relation | column names, declared types; the rows are counted when they are read |
| CSV, Parquet | that the file was not written to or replaced |
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import narwhals.stable.v2 as nw

from dpcausal.data.cleaning import check_declared
from dpcausal.data.frame import FrameSource
from dpcausal.data.schema import Column
from dpcausal.data.source import Source, withheld
from dpcausal.errors import SchemaError

NOTHING_SPENT = "nothing was spent; declare it anew"


@dataclass(frozen=True)
class Stamp:
    """What a write to a file, or its replacement, changes."""

    path: Path
    state: tuple[int, int, int, int] | None

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Stamp:
        name = Path(path)
        try:
            found = name.stat()
        except (OSError, ValueError):  # gone, or no path that a file can have
            return cls(name, None)
        return cls(name, (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns))


def confirm(
    source: Source, schema: Mapping[str, Column], rows: int, stamp: Stamp | None, besides: Sequence[str] = ()
) -> None:
    """Raise a SchemaError unless the source still has the columns, types and, where it knows them, rows."""
    if stamp is not None:
        if stamp.state is None or Stamp.of(stamp.path) != stamp:
            raise SchemaError(f"file {str(stamp.path)!r} was changed after it was declared: {NOTHING_SPENT}")
        return
    now = _without_rows(source)
    for name in (*schema, *besides):
        if name not in now.names:
            raise SchemaError(f"column {name!r} is no longer among the columns of the frame: {NOTHING_SPENT}")
    for name, column in schema.items():
        rule = ""
        try:
            check_declared(name, column, now.declared(name))
        except SchemaError as error:
            rule = str(error)
        if rule:
            raise SchemaError(f"the frame was changed after it was declared: {rule}; {NOTHING_SPENT}")
    lazy = isinstance(source, FrameSource) and isinstance(source.frame, nw.LazyFrame)
    if not lazy and source.count() != rows:
        raise SchemaError(f"the frame no longer has the rows that were counted: {NOTHING_SPENT}")


def _without_rows(source: Source) -> Source:
    """Return the frame as it is now, without its rows where it has them: to ask for a type may copy a column."""
    if not isinstance(source, FrameSource):
        return source
    frame = source.frame
    return withheld(
        lambda: FrameSource(frame if isinstance(frame, nw.LazyFrame) else frame.head(0)),
        f"the {source.backend} frame cannot be read: {NOTHING_SPENT}",
    )
