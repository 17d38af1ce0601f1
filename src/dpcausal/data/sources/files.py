"""Tables in files: CSV, TSV (both also gzipped) and Parquet, read by pyarrow, only the asked columns; Stata and SAS.

A folder, or a pattern such as ``data/2024-*.parquet``, is the Parquet files in it, by name; names that begin with a dot
or an underscore do not count.  ``duckdb:///file.db?table=t`` is a table of a DuckDB file, which counts it itself;
``spark://host:7077?table=t``, or ``?path=`` of Parquet files, is read by that cluster, ``spark:local[2]?path=`` here.

CSV: UTF-8, commas (TSV: tabs) and decimal points, or as ``TextFile`` says; the first line is the header.  Types are
never guessed, since a guess depends on every record: each field is text, and is read as the schema declares its column.

* A number is a decimal as in ``-1.5e3``, ``.5`` or ``7``, ``inf`` or ``infinity`` with or without a sign; blanks
  around it do not count.  Any other text is a null.
* A level: see ``Levels``.  An empty field is the text "", a level only if declared.
* A blank line is no record, except in a file of one column, where it is an empty field.

A file whose records do not all have as many fields as the header is no table: it is refused when the table is made,
before any budget is spent, by an error for the curator that quotes neither a record nor its place.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.source import BATCH, Collected, Declared, Distinct, Kind, Source, Streaming, withheld
from dpcausal.data.sources.arrays import ACCEPTED
from dpcausal.data.sources.fingerprint import CLUSTER, DATABASE, absolute, files_of
from dpcausal.data.sources.frame import frame_source
from dpcausal.data.sources.stat_packages import READERS, PackageSource
from dpcausal.data.sources.text_fields import FieldColumns
from dpcausal.data.sources.text_file import TextFile, usual_format
from dpcausal.errors import MissingDependencyError, ParameterError, SchemaError
from dpcausal.privacy.sandbox import isolated_or_default

_BLOCKS = (1 << 24, 1 << 27, 1 << 30, (1 << 31) - 1)
"""Bytes parsed at a time: the first that every record of the file fits in; a longer record is none of a table."""

LONGEST_PATH = 4096
"""More characters are no path, and are not quoted: they may be records."""

TEXTS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
"""How the names of files of text end."""


def file_source(path: str | PathLike[str]) -> Source:
    """Return the source behind the path of a CSV or Parquet file, a folder or pattern, or a DuckDB table."""
    written = fspath(path)
    if not isinstance(written, str) or len(written) > LONGEST_PATH or "\n" in written:
        raise ParameterError(f"{ACCEPTED}; this is no path, but perhaps the text of a file")
    written = absolute(written)
    if (cluster := CLUSTER.fullmatch(written)) is not None:
        return _cluster(cluster["master"], cluster["what"], cluster["name"])
    name, url = Path(written), DATABASE.fullmatch(written)
    try:
        files = files_of(written)
    except (OSError, ValueError):  # a part of it is too long
        files = [name]
    several = files != [name]
    if not several and not name.name.lower().endswith((*TEXTS, *READERS, ".parquet")):
        raise ParameterError(f"{ACCEPTED}; {written!r} ends otherwise")
    try:
        is_there = bool(files) and all(file.is_file() for file in files)
    except OSError:  # a part of it is too long
        is_there = False
    if not is_there:
        raise ParameterError(f"there is no file {'of Parquet in ' if several and url is None else ''}{written!r}")
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingDependencyError("pyarrow", "files")
    if url is not None:
        return _database(url["path"], url["table"])
    if several:
        return FolderSource(written, files)
    if name.suffix.lower() in READERS:
        return PackageSource(name)
    if name.suffix.lower() == ".parquet":
        return ParquetSource(name)
    return CsvSource(name, usual_format(replace(path, path=written) if isinstance(path, TextFile) else written))


def _database(path: str, table: str) -> Source:
    if importlib.util.find_spec("duckdb") is None:
        raise MissingDependencyError("duckdb", "duckdb")
    import duckdb

    from dpcausal.data.sources.duckdb import reads_elsewhere

    def opened() -> tuple[Any, bool]:
        relation = duckdb.connect(path, read_only=True).table(table)
        return relation, reads_elsewhere(relation)

    named = f"table {table!r} of the DuckDB file {path!r}"
    relation, elsewhere = withheld(opened, f"{named} cannot be opened to be read")
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
    from dpcausal.data.sources.spark import opened, source

    rule = f"Spark cannot read the {what} {name!r} by {master!r} (it needs a Java, by JAVA_HOME)"
    return source(withheld(lambda: opened(master, what, name), rule))


class ParquetSource(Streaming):
    """A Parquet file; its row count comes from the footer."""

    backend = "parquet"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._unread = f"file {str(path)!r} cannot be read as Parquet"
        empty = withheld(lambda: self._read(lambda file: file.schema_arrow.empty_table()), self._unread)
        self._typed = frame_source(empty)
        self.names = self._typed.names

    def _read(self, part: Callable[[Any], Any]) -> Any:
        from pyarrow.parquet import ParquetFile

        with ParquetFile(self._path) as file:
            return part(file)

    def declared(self, name: str) -> Declared:
        return self._typed.declared(name)

    def count(self) -> int:
        return int(withheld(lambda: self._read(lambda file: file.metadata.num_rows), self._unread))

    def table(self, names: Sequence[str]) -> Any:
        """Return the columns as an Arrow table."""
        # Asking for "a.b" also brings a field b nested under a; the second selection drops it.
        read = self._read
        return withheld(lambda: read(lambda file: file.read(columns=list(names)).select(list(names))), self._unread)

    def evaluate(self, names: Sequence[str]) -> None:
        """Read every page of some columns once, and keep none: a footer may be sound where a page is damaged."""
        withheld(lambda: deque(self.stream(names), maxlen=0), self._unread)

    def collect(self, names: Sequence[str]) -> Collected:
        return frame_source(self.table(names)).collect(names)

    def stream(self, names: Sequence[str]) -> Iterator[Collected]:
        from pyarrow import Table
        from pyarrow.parquet import ParquetFile

        with ParquetFile(self._path) as file:
            for batch in file.iter_batches(BATCH, columns=list(names)):
                yield frame_source(Table.from_batches([batch]).select(list(names))).collect(names)


class FolderSource(Streaming):
    """Parquet files of one schema, one after the other in the order of their names."""

    backend = "parquet"

    def __init__(self, path: str, files: Sequence[Path]) -> None:
        self._files = [ParquetSource(file) for file in files]
        first = self._files[0]
        self.names = first.names
        if any(file.names != first.names for file in self._files) or any(
            file.declared(name) != first.declared(name) for name in self.names for file in self._files[1:]
        ):
            raise SchemaError(f"the Parquet files of {path!r} must have the same columns, of the same types")

    def declared(self, name: str) -> Declared:
        return self._files[0].declared(name)

    def count(self) -> int:
        return sum(file.count() for file in self._files)

    def evaluate(self, names: Sequence[str]) -> None:
        for file in self._files:
            file.evaluate(names)

    def collect(self, names: Sequence[str]) -> Collected:
        return Joined([file.collect(names) for file in self._files])

    def stream(self, names: Sequence[str]) -> Iterator[Collected]:
        for file in self._files:
            yield from file.stream(names)


@dataclass(frozen=True)
class Joined:
    """Collected columns of several files, which may keep the same values in types of other widths."""

    parts: Sequence[Collected]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def numbers(self, name: str) -> NDArray[np.float64]:
        return np.concatenate([part.numbers(name) for part in self.parts])

    def integers(self, name: str) -> NDArray[np.int64] | None:
        columns = [values for part in self.parts if (values := part.integers(name)) is not None]
        return np.concatenate(columns) if len(columns) == len(self.parts) else None

    def distinct(self, name: str) -> Distinct | None:
        """Return the distinct values of each file, one after the other."""
        places: list[NDArray[np.int64]] = []
        values: list[object] = []
        for part in self.parts:
            if (own := part.distinct(name)) is None:
                return None
            places.append(np.where(own[0] < 0, -1, own[0] + len(values)))
            values += own[1]
        return np.concatenate(places), values

    def objects(self, name: str) -> Iterator[Sequence[object]]:
        for part in self.parts:
            yield from part.objects(name)


class CsvSource(Streaming):
    """A CSV file with a header."""

    backend = "csv"

    def __init__(self, path: Path, form: TextFile) -> None:
        self._path, self._block, self._form = path, _BLOCKS[0], form
        self._unread = (
            f"file {str(path)!r} cannot be read as CSV: it needs a header line and records of as many fields"
        )
        self.names = withheld(self._header, self._unread)
        if len(set(self.names)) < len(self.names):
            raise SchemaError(f"file {str(path)!r}: its first line must be a header, whose names differ")

    def _header(self) -> tuple[str, ...]:
        opened = gzip.open if self._path.suffix.lower() == ".gz" else open
        encoding = "utf-8-sig" if self._form.encoding.lower() in ("utf-8", "utf8") else self._form.encoding
        with opened(self._path, "rt", encoding=encoding, errors="surrogateescape", newline="") as file:
            return tuple(next(csv.reader(file, delimiter=self._form.separator)))

    def declared(self, name: str) -> Declared:
        return Declared(Kind.FIELD, "csv")

    def _batches(self, names: Sequence[str]) -> Any:
        import pyarrow
        from pyarrow import csv as reader

        places = [str(place) for place in range(len(self.names))]
        columns = [str(self.names.index(name)) for name in names]
        return reader.open_csv(
            self._path,
            read_options=reader.ReadOptions(
                column_names=places, skip_rows_after_names=1, block_size=self._block, encoding=self._form.encoding
            ),
            parse_options=reader.ParseOptions(
                delimiter=self._form.separator, newlines_in_values=True, ignore_empty_lines=len(self.names) > 1
            ),
            convert_options=reader.ConvertOptions(
                include_columns=columns,
                column_types={place: pyarrow.binary() for place in columns},  # text that is not UTF-8 is no error
                null_values=[],
                strings_can_be_null=False,
            ),
        )

    def count(self) -> int:
        def rows() -> int:
            with self._batches(self.names[:1]) as batches:
                return sum(batch.num_rows for batch in batches)

        size = withheld(lambda: self._path.stat().st_size, self._unread)
        whole = self._path.suffix.lower() != ".gz"
        for block in _BLOCKS:
            self._block = block
            if (number := isolated_or_default(rows, -1)) >= 0:
                return number
            if whole and size <= block:
                break
        return withheld(rows, self._unread)

    def collect(self, names: Sequence[str]) -> Collected:
        def table() -> Any:
            with self._batches(names) as batches:
                return batches.read_all().rename_columns(list(names))

        return FieldColumns(withheld(table, self._unread), self._form.decimal)

    def stream(self, names: Sequence[str]) -> Iterator[Collected]:
        from pyarrow import Table

        with self._batches(names) as batches:
            for batch in batches:
                yield FieldColumns(Table.from_batches([batch]).rename_columns(list(names)), self._form.decimal)
