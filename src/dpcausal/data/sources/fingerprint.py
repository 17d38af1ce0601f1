"""Whether a frame still is what a table or a panel was made of: asked before each spend, by public facts alone.

| frame | asked again |
|---|---|
| pandas, polars, pyarrow, numpy arrays | column names, declared types, number of rows |
| polars LazyFrame, DuckDB relation | column names, declared types; the rows are counted when they are read |
| CSV, Parquet, DuckDB files | that no file was written to, replaced or added |
| tables and files that Spark alone sees | column names, declared types; the rows are counted when they are read |
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path

import narwhals.stable.v2 as nw

from dpcausal.data.coding import check_declared
from dpcausal.data.columns import Column
from dpcausal.data.source import Source, guarded_read
from dpcausal.data.sources.frame import FrameSource
from dpcausal.errors import SchemaError

DATABASE = re.compile(r"duckdb:///(?P<path>[^?]+)\?table=(?P<table>[^&]+)")
"""Where a table of a DuckDB file is: three slashes and a path, four if it begins at the root."""

CLUSTER = re.compile(r"(?P<master>(spark|sc):[^?]+)\?(?P<what>table|path)=(?P<name>.+)")
"""What Spark is to read, and where it runs, as ``spark://host:7077`` or ``spark:local[2]`` say it."""

NOTHING_SPENT = "nothing was spent; declare it again"


@dataclass(frozen=True)
class Stamp:
    """What a write to a file, or its replacement, changes; of a folder or pattern, also one more file."""

    path: str
    state: tuple[tuple[str | int, ...], ...]

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Stamp:
        name = os.fspath(path)
        try:
            states_of = [(file, os.stat(file)) for file in files_of(name)]
        except (OSError, ValueError):  # gone, or no path that a file can have
            states_of = []
        states = ((str(file), one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns) for file, one in states_of)
        return cls(name, tuple(states))


def was_modified(stamp: Stamp | None) -> bool:
    return stamp is not None and Stamp.of(stamp.path) != stamp


def files_of(path: str) -> list[Path]:
    """Return the files that a path means: itself, the Parquet files of a folder or pattern, or a database."""
    if (url := DATABASE.fullmatch(path)) is not None:
        log = Path(url["path"] + ".wal")  # rows that were written and are not yet in the file itself
        return [Path(url["path"]), *([log] if log.exists() else [])]
    if (cluster := CLUSTER.fullmatch(path)) is not None:
        return files_of(cluster["name"]) if cluster["what"] == "path" and Path(cluster["name"]).exists() else []
    name = Path(path)
    if name.is_dir():
        return sorted(
            file for file in name.rglob("*.parquet")
            if not any(part.startswith((".", "_")) for part in file.relative_to(name).parts)
        )  # fmt: skip
    if not name.exists() and any(letter in path for letter in "*?["):
        return sorted(Path(file) for file in glob(path, recursive=True) if file.lower().endswith(".parquet"))
    return [name]


def _moved(data: str, path: Callable[[str], str]) -> str:
    if CLUSTER.fullmatch(data) is not None:
        return data
    if (url := DATABASE.fullmatch(data)) is not None:
        return f"duckdb:///{path(url['path'])}?table={url['table']}"
    return path(data)


def resolved(folder: Path, data: str) -> str:
    """Return what the words for data mean in a file of a folder: a relative path begins there, but of a cluster."""
    return _moved(data, lambda path: os.fspath(folder / path))


def absolute(data: str) -> str:
    try:
        return resolved(Path.cwd(), data)
    except OSError:  # the working directory is gone
        return data


def seen_from(folder: Path, data: str) -> str:
    """Return the words by which a file of a folder writes data that are named here: what ``resolved`` undoes."""
    return _moved(data, lambda path: path if os.path.isabs(path) else os.path.relpath(path, folder))


def place_from(folder: Path, data: str) -> str:
    """Return one name for data, whatever links lead to it: its place as seen from a folder."""
    return _moved(data, lambda path: os.path.relpath(os.path.realpath(path), os.path.realpath(folder)))


def confirm(
    source: Source, schema: Mapping[str, Column], rows: int, stamp: Stamp | None, besides: Sequence[str] = ()
) -> None:
    """Raise a SchemaError unless the source still has the columns, types and, where it knows them, rows."""
    if stamp is not None and (stamp.state or not CLUSTER.fullmatch(stamp.path)):
        if not stamp.state or was_modified(stamp):
            raise SchemaError(f"file {stamp.path!r} was changed after it was declared: {NOTHING_SPENT}")
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
    if not source.lazy and source.count() != rows:
        raise SchemaError(f"the frame no longer has the rows that were counted: {NOTHING_SPENT}")


def _without_rows(source: Source) -> Source:
    """Return the frame as it is now, without its rows where it has them: to ask for a type may copy a column."""
    if not isinstance(source, FrameSource):
        return source
    frame = source.frame
    return guarded_read(
        lambda: FrameSource(frame if isinstance(frame, nw.LazyFrame) else frame.head(0)),
        f"the {source.backend} frame cannot be read: {NOTHING_SPENT}",
    )
