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

Files of Stata, SAS and SPSS are read by pyreadstat as a file of text is: what is missing is an empty field, a whole
number is written without a point, a level is the code and not its label, a date the number that the file holds.

A file whose records do not all have as many fields as the header is no table: it is refused when the table is made,
before any budget is spent, by an error for the curator that quotes neither a record nor its place.
"""

from __future__ import annotations

import codecs
import csv
import importlib.util
import io
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.source import BATCH, Collected, Declared, Distinct, Kind, Source, guarded
from dpcausal.data.sources.arrays import ACCEPTED
from dpcausal.data.sources.fingerprint import CLUSTER, DATABASE, absolute, files_of
from dpcausal.data.sources.frame import distinct, frame_source
from dpcausal.data.sources.text_file import TextFile, Utf8Bytes, bytes_of, usual_format
from dpcausal.errors import MissingDependencyError, ParameterError, SchemaError
from dpcausal.privacy.sandbox import isolated_or_default

_BLOCKS = (1 << 24, 1 << 27, 1 << 30, (1 << 31) - 1)
"""Bytes parsed at a time: the first that every record of the file fits in; a longer record is none of a table."""

LONGEST_PATH = 4096
"""More characters are no path, and are not quoted: they may be records."""

TEXTS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
"""How the names of files of text end."""

READERS = {".dta": "read_dta", ".sas7bdat": "read_sas7bdat", ".xpt": "read_xport", ".sav": "read_sav"}

_NUMBER = r"^[ \t]*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:inf(inity)?))[ \t]*$"


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
    if several or name.suffix.lower() == ".parquet":
        return ParquetSource(written, files)
    if name.suffix.lower() in READERS:
        return PackageSource(name)
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
    relation, elsewhere = guarded(opened, f"{named} cannot be opened to be read")
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
    return source(guarded(lambda: opened(master, what, name), rule))


class ParquetSource(Source):
    """Parquet files of one schema, one after the other; their row counts come from the footers."""

    backend = "parquet"

    def __init__(self, path: str, files: Sequence[Path]) -> None:
        from pyarrow import ArrowInvalid, ArrowTypeError, unify_schemas

        self._files, self._unread = files, f"file {path!r} cannot be read as Parquet"
        schemas = guarded(lambda: list(self._each(lambda file: file.schema_arrow)), self._unread)
        typed = [frame_source(schema.empty_table()) for schema in schemas]
        self._typed, self.names = typed[0], typed[0].names
        try:  # files may keep the same values in types of other widths
            unify_schemas(schemas, promote_options="permissive")
            same = all(one.names == self.names for one in typed)
        except (ArrowInvalid, ArrowTypeError):
            same = False
        if not same or any(one.declared(name) != self.declared(name) for one in typed[1:] for name in self.names):
            raise SchemaError(f"the Parquet files of {path!r} must have the same columns, of the same types")

    def _each(self, part: Callable[[Any], Any]) -> Iterator[Any]:
        from pyarrow.parquet import ParquetFile

        for path in self._files:
            with ParquetFile(path) as file:
                yield part(file)

    def declared(self, name: str) -> Declared:
        return self._typed.declared(name)

    def count(self) -> int:
        return int(guarded(lambda: sum(self._each(lambda file: file.metadata.num_rows)), self._unread))

    def evaluate(self, names: Sequence[str]) -> None:
        guarded(lambda: deque(self.stream(names), maxlen=0), self._unread)

    def collect(self, names: Sequence[str]) -> Collected:
        from pyarrow import concat_tables

        def table() -> Any:
            # Asking for "a.b" also brings a field b nested under a; the second selection drops it.
            tables = self._each(lambda file: file.read(columns=list(names)).select(list(names)))
            return concat_tables(tables, promote_options="permissive")

        return frame_source(guarded(table, self._unread)).collect(names)

    def stream(self, names: Sequence[str]) -> Iterator[Collected]:
        from pyarrow import Table

        for batches in self._each(lambda file: file.iter_batches(BATCH, columns=list(names))):
            for batch in batches:
                yield frame_source(Table.from_batches([batch]).select(list(names))).collect(names)


class CsvSource(Source):

    backend = "csv"

    def __init__(self, path: Path, form: TextFile) -> None:
        self._path, self._block, self._form = path, _BLOCKS[0], form
        self._unread = f"file {str(path)!r} cannot be read as CSV: it needs a header line and records of as many fields"
        self.names = guarded(self._header, self._unread)
        if len(set(self.names)) < len(self.names):
            raise SchemaError(f"file {str(path)!r}: its first line must be a header, whose names differ")

    def _header(self) -> tuple[str, ...]:
        is_utf8 = codecs.lookup(self._form.encoding).name == "utf-8"
        encoding = "utf-8-sig" if is_utf8 else self._form.encoding
        with io.TextIOWrapper(bytes_of(self._path), encoding, "surrogateescape", newline="") as file:
            return tuple(next(csv.reader(file, delimiter=self._form.separator)))

    def declared(self, name: str) -> Declared:
        return Declared(Kind.FIELD, "csv")

    @contextmanager
    def _batches(self, names: Sequence[str]) -> Iterator[Any]:
        import pyarrow
        from pyarrow import csv as reader

        places = [str(place) for place in range(len(self.names))]
        columns = [str(self.names.index(name)) for name in names]
        whole: Any = nullcontext(self._path)
        if codecs.lookup(self._form.encoding).name != "utf-8":
            whole = io.BufferedReader(Utf8Bytes(bytes_of(self._path), self._form.encoding))
        with whole as file, reader.open_csv(
            file,
            read_options=reader.ReadOptions(column_names=places, skip_rows_after_names=1, block_size=self._block),
            parse_options=reader.ParseOptions(
                delimiter=self._form.separator, newlines_in_values=True, ignore_empty_lines=len(self.names) > 1
            ),
            convert_options=reader.ConvertOptions(
                include_columns=columns,
                column_types={place: pyarrow.binary() for place in columns},  # text that is not UTF-8 is no error
                null_values=[],
                strings_can_be_null=False,
            ),
        ) as batches:
            yield batches

    def count(self) -> int:
        def rows() -> int:
            with self._batches(self.names[:1]) as batches:
                return sum(batch.num_rows for batch in batches)

        size = guarded(lambda: self._path.stat().st_size, self._unread)
        whole = self._path.suffix.lower() != ".gz"
        for block in _BLOCKS:
            self._block = block
            if (number := isolated_or_default(rows, -1)) >= 0:
                return number
            if whole and size <= block:
                break
        return guarded(rows, self._unread)

    def collect(self, names: Sequence[str]) -> Collected:
        def table() -> Any:
            with self._batches(names) as batches:
                return batches.read_all().rename_columns(list(names))

        return FieldColumns(guarded(table, self._unread), self._form.decimal)

    def stream(self, names: Sequence[str]) -> Iterator[Collected]:
        from pyarrow import Table

        with self._batches(names) as batches:
            for batch in batches:
                yield FieldColumns(Table.from_batches([batch]).rename_columns(list(names)), self._form.decimal)


class PackageSource(Source):
    """A file of a statistics package; it is read whole once, to be counted and to be sure that it can be read."""

    def __init__(self, path: Path) -> None:
        if importlib.util.find_spec("pyreadstat") is None:
            raise MissingDependencyError("pyreadstat", "packages")
        self._path, self.backend = path, path.suffix.lower().removeprefix(".")
        self._unread = f"file {str(path)!r} cannot be read as one of {', '.join(READERS)}"
        self.names = tuple(guarded(lambda: self._read(metadataonly=True)[1].column_names, self._unread))
        if len(set(self.names)) < len(self.names):
            raise SchemaError(f"file {str(path)!r}: the names of the columns must differ from each other")

    def _read(self, **how: Any) -> Any:
        import pyreadstat

        reader = getattr(pyreadstat, READERS[self._path.suffix.lower()])
        return reader(self._path, output_format="dict", disable_datetime_conversion=True, **how)

    def declared(self, name: str) -> Declared:
        return Declared(Kind.FIELD, self.backend)

    def count(self) -> int:
        def rows() -> int:
            columns, _ = self._read()
            return len(next(iter(columns.values()))) if columns else 0

        return guarded(rows, self._unread)

    def collect(self, names: Sequence[str]) -> Collected:
        return guarded(lambda: self._columns(names), self._unread)

    def _columns(self, names: Sequence[str], **how: int) -> FieldColumns:
        import pyarrow

        columns, _ = self._read(usecols=list(dict.fromkeys(names)), **how)
        arrays = {name: pyarrow.array([_field(value) for value in columns[name]], pyarrow.binary()) for name in names}
        return FieldColumns(pyarrow.table(arrays))

    def stream(self, names: Sequence[str]) -> Iterator[Collected]:
        start, rows = 0, BATCH
        while rows == BATCH:
            batch = self._columns(names, row_offset=start, row_limit=BATCH)
            start, rows = start + len(batch), len(batch)
            yield batch


def _field(value: Any) -> bytes:
    if value is None or value != value:
        return b""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).encode("utf-8", "surrogateescape")


class FieldColumns:

    def __init__(self, table: Any, decimal: str = ".") -> None:
        self._table, self._decimal = table, decimal

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def numbers(self, name: str) -> NDArray[np.float64]:
        import pyarrow
        from pyarrow import compute

        fields = self._table[name]
        if self._decimal == ",":  # a point is then no decimal point: the field is no number
            pointless = compute.if_else(compute.match_substring(fields, "."), None, fields)
            fields = compute.replace_substring(pointless, ",", ".")
        plain = compute.if_else(compute.match_substring_regex(fields, _NUMBER), fields, None)
        text = compute.utf8_trim_whitespace(plain.cast(pyarrow.string()))
        numbers: NDArray[np.float64] = text.cast(pyarrow.float64()).fill_null(np.nan).to_numpy()
        return numbers

    def integers(self, name: str) -> None:
        """Return ``None``: each field is text."""

    def distinct(self, name: str) -> Distinct | None:
        return distinct(self._table[name])

    def objects(self, name: str) -> Iterator[Sequence[object]]:
        for chunk in self._table[name].chunks:
            yield [field.decode("utf-8", "surrogateescape") for field in chunk.to_pylist()]
