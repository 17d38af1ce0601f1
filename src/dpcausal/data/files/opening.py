"""Data by a path: texts, Arrow files, workbooks, files of statistics packages, databases and clusters.

A folder, or a pattern such as ``data/2024-*.parquet``, is the Parquet files in it, by name; names that begin with a dot
or an underscore do not count.  ``duckdb:///file.db?table=t`` is a table of a DuckDB file, which counts it itself;
``spark://host:7077?table=t``, or ``?path=`` of Parquet files, is read by that cluster, ``spark:local[2]?path=`` here.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from dpcausal.data.files.arrow import ArrowSource, IpcFile, opened_parquet
from dpcausal.data.files.fields import CsvSource, JsonLinesSource
from dpcausal.data.files.formats import (
    JSON_LINES,
    PACKED,
    TEXTS,
    WORKBOOKS,
    DataFile,
    check_text,
    ending_of,
    first_bytes,
    members_of,
)
from dpcausal.data.files.packages import READERS, PackageSource, WorkbookSource
from dpcausal.data.source import Source, guarded_read
from dpcausal.data.sources.arrays import ACCEPTED
from dpcausal.data.sources.fingerprint import CLUSTER, DATABASE, absolute, files_of
from dpcausal.data.sources.frame import frame_source
from dpcausal.errors import MissingDependencyError, ParameterError, SchemaError

LONGEST_PATH = 4096
"""More characters are no path, and are not quoted: they may be records."""

ARROW = (".arrow", ".feather", ".ipc")

FIELDS: dict[str, Callable[[Path, DataFile], Source]] = {
    **dict.fromkeys(TEXTS, CsvSource), **dict.fromkeys(JSON_LINES, JsonLinesSource),
    **dict.fromkeys(READERS, PackageSource), **dict.fromkeys(WORKBOOKS, WorkbookSource),
}  # fmt: skip
"""Files whose fields are texts, by the ending of their names; texts may be packed."""


def file_source(path: str | PathLike[str]) -> Source:
    written = fspath(path)
    if not isinstance(written, str) or len(written) > LONGEST_PATH or "\n" in written:
        raise ParameterError(f"{ACCEPTED}; this is no path, but perhaps the text of a file")
    written = absolute(written)
    if (cluster := CLUSTER.fullmatch(written)) is not None:
        return _cluster(cluster["master"], cluster["what"], cluster["name"])
    name, url = Path(written), DATABASE.fullmatch(written)
    try:
        files = files_of(written)
        is_there = bool(files) and all(file.is_file() for file in files)
    except (OSError, ValueError):  # a part of it is too long
        files, is_there = [name], False
    several, ending = files != [name], ending_of(written)
    known = ending in (TEXTS + JSON_LINES if name.suffix.lower() in PACKED else (*FIELDS, *ARROW, ".parquet"))
    if not several and not known:
        raise ParameterError(f"{ACCEPTED}; {written!r} ends otherwise")
    if not is_there:
        raise ParameterError(f"there is no file {'of Parquet in ' if several and url is None else ''}{written!r}")
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingDependencyError("pyarrow", "files")
    if url is not None:
        return _database(url["path"], url["table"])
    if several or ending == ".parquet":
        return ArrowSource(written, files, opened_parquet, "Parquet")
    if ending in ARROW:
        return ArrowSource(written, files, IpcFile, "an Arrow file (IPC)")
    if name.suffix.lower() == ".zip":
        _check_zip(name)
    elif name.suffix.lower() in TEXTS:
        check_text(name, guarded_read(lambda: first_bytes(name), f"file {written!r} cannot be read"))
    return FIELDS[ending](name, replace(path, path=written) if isinstance(path, DataFile) else DataFile(written))


def _check_zip(path: Path) -> None:
    def number() -> int:
        with ZipFile(path) as archive:
            return len(members_of(archive))

    if (files := guarded_read(number, f"file {str(path)!r} cannot be read as a zip archive")) != 1:
        text = f"{str(path)!r} must hold one file of text without a password, and holds {files}: unpack it"
        raise ParameterError(text, argument="data", rule="zip")


def _database(path: str, table: str) -> Source:
    if importlib.util.find_spec("duckdb") is None:
        raise MissingDependencyError("duckdb", "duckdb")
    import duckdb

    from dpcausal.data.sources.duckdb import reads_elsewhere

    def opened() -> tuple[Any, bool]:
        relation = duckdb.connect(path, read_only=True).table(table)
        return relation, reads_elsewhere(relation)

    named = f"table {table!r} of the DuckDB file {path!r}"
    relation, elsewhere = guarded_read(opened, f"{named} cannot be opened to be read")
    if elsewhere:
        raise SchemaError(
            f"{named} is a view that reads other files, of which a change would not be seen: give the path of those "
            "files, or make it a table by CREATE TABLE ... AS"
        )
    return frame_source(relation)


def _cluster(master: str, what: str, name: str) -> Source:
    if master.startswith("sc:"):
        raise ParameterError(
            f"{master!r} is a session of Spark Connect, which does not show whether a table draws its rows again: name "
            "the master itself, as spark://host:7077, spark:yarn or spark:local[2]"
        )
    if importlib.util.find_spec("pyspark") is None:
        raise MissingDependencyError("pyspark", "spark")
    from dpcausal.data.sources.pyspark import opened, source

    rule = f"Spark cannot read the {what} {name!r} by {master!r} (it needs a Java, by JAVA_HOME)"
    return source(guarded_read(lambda: opened(master, what, name), rule))
