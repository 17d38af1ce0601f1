"""Files whose fields are texts, whatever their records hold: CSV and its like, and JSON lines.

Types are never guessed, since a guess depends on every record: each field is text, and is read as the schema declares
its column.

* A number is a decimal as in ``-1.5e3`` or ``7``, ``inf`` or ``infinity`` with or without a sign; blanks
  around it do not count.  Any other text is a null.
* A level: see ``Levels``.  An empty field is the text "", a level only if declared.

CSV: UTF-8, commas (TSV: tabs) and decimal points, or as ``DataFile`` says; the first line is the header.  A blank line
is no record, except in a file of one column, where it is an empty field.  A file whose records do not all have as many
fields as the header is no table: it is refused when the table is made, before any budget is spent, by an error for the
curator that quotes neither a record nor its place.

JSON lines: an object a line.  Missing is a name that a line has not, a nested value, or a line that is no object.
Every name that is asked for is a column, since a line is a record: none may decide which columns there are.
"""

import csv
import io
import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.files.formats import PACKED, DataFile, Utf8Bytes, bytes_of
from dpcausal.data.source import BATCH, Collected, Declared, Distinct, Kind, Source, guarded_read
from dpcausal.data.sources.frame import distinct
from dpcausal.errors import SchemaError
from dpcausal.privacy.sandbox import isolated_or_default

_BLOCKS = (1 << 24, 1 << 27, 1 << 30, (1 << 31) - 1)
"""Bytes parsed at a time: the first that every record of the file fits in; a table has no longer record."""

_EXPONENT = r"([eE][+-]?[0-9]+)?"
_NUMBER = rf"^[ \t]*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+){_EXPONENT}|(?i:inf(inity)?))[ \t]*$"
_MARKS = {",": (",",), ".": (".",), " ": (" ", "\u00a0", "\u202f"), "'": ("'", "\u2019")}
"""How a mark between thousands is written."""


Labels = Mapping[str, Mapping[str, str]]


class FieldSource(Source):
    labels: Labels = MappingProxyType({})

    def __init__(self, path: Path, form: DataFile, unread: str) -> None:
        self._path, self._form = path, form
        self._unread = f"file {str(path)!r} cannot be read {unread}"
        self.names = tuple(guarded_read(self.header, self._unread))
        if len(set(self.names)) < len(self.names):
            raise SchemaError(f"file {str(path)!r}: its first line must be a header, whose names differ")

    @abstractmethod
    def header(self) -> Sequence[str]: ...

    @abstractmethod
    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield Arrow tables of bytes, of at most about ``BATCH`` rows."""

    def declared(self, name: str) -> Declared:
        return Declared(Kind.FIELD, self.backend)

    def count(self) -> int:
        return guarded_read(lambda: sum(int(table.num_rows) for table in self.tables(self.names[:1])), self._unread)

    def collect(self, names: Sequence[str]) -> Collected:
        from pyarrow import concat_tables

        whole = guarded_read(lambda: concat_tables(list(self.tables(names))), self._unread)
        return FieldColumns(whole, self._form, self.labels)

    def stream(self, names: Sequence[str]) -> Iterator[Collected]:
        for table in self.tables(names):
            yield FieldColumns(table, self._form, self.labels)


class CsvSource(FieldSource):
    backend = "csv"

    def __init__(self, path: Path, form: DataFile) -> None:
        self._block = _BLOCKS[0]
        super().__init__(path, form, "as CSV: it needs a header line and records of as many fields")

    def header(self) -> Sequence[str]:
        raw = bytes_of(self._path)
        if not self._form.is_utf8:  # as the records: the first ones are decoded along with the header
            raw = io.BufferedReader(Utf8Bytes(raw, self._form.encoding))
        with io.TextIOWrapper(raw, "utf-8-sig", "surrogateescape", newline="") as file:
            return next(csv.reader(file, **self._form.dialect))

    @contextmanager
    def _batches(self, names: Sequence[str]) -> Iterator[Any]:
        import pyarrow
        from pyarrow import csv as reader

        places = [str(place) for place in range(len(self.names))]
        columns = [str(self.names.index(name)) for name in names]
        whole: Any = nullcontext(self._path)
        if not self._form.is_utf8 or self._path.suffix.lower() == ".zip":
            whole = io.BufferedReader(Utf8Bytes(bytes_of(self._path), self._form.encoding))
        with whole as file, reader.open_csv(
            file,
            read_options=reader.ReadOptions(column_names=places, skip_rows_after_names=1, block_size=self._block),
            parse_options=reader.ParseOptions(
                delimiter=self._form.separator, newlines_in_values=True, ignore_empty_lines=len(self.names) > 1,
                quote_char=self._form.quote or False,
            ),
            convert_options=reader.ConvertOptions(
                include_columns=columns,
                column_types={place: pyarrow.binary() for place in columns},  # text that is not UTF-8 is no error
                null_values=[],
                strings_can_be_null=False,
            ),
        ) as batches:  # fmt: skip
            yield batches

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        from pyarrow import Table

        with self._batches(names) as batches:
            for batch in batches:
                yield Table.from_batches([batch]).rename_columns(list(names))

    def count(self) -> int:
        def rows() -> int:
            with self._batches(self.names[:1]) as batches:
                return sum(batch.num_rows for batch in batches)

        size = guarded_read(lambda: self._path.stat().st_size, self._unread)
        whole = self._path.suffix.lower() not in PACKED
        for block in _BLOCKS:
            self._block = block
            if (number := isolated_or_default(rows, -1)) >= 0:
                return number
            if whole and size <= block:
                break
        return guarded_read(rows, self._unread)


class EveryName(tuple[str, ...]):
    """Names that the curator sees in the first record, while any text is the name of a column."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)


class JsonLinesSource(FieldSource):
    backend = "json lines"

    def __init__(self, path: Path, form: DataFile) -> None:
        super().__init__(path, form, "as JSON lines")
        self.names = EveryName(self.names)

    def _objects(self) -> Iterator[Mapping[str, Any]]:
        with io.TextIOWrapper(io.BufferedReader(Utf8Bytes(bytes_of(self._path), "utf-8-sig")), "utf-8") as file:
            for line in file:
                if line.strip():
                    yield _object(line)

    def header(self) -> Sequence[str]:
        return tuple(next(self._objects(), {}))

    def count(self) -> int:
        return guarded_read(lambda: sum(1 for _ in self._objects()), self._unread)

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        records = self._objects()
        while batch := list(islice(records, BATCH)):
            yield table_of({name: [record.get(name) for record in batch] for name in names})


def _object(line: str) -> Mapping[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {}


def table_of(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Return an Arrow table of the bytes that a text file would hold for these values."""
    import pyarrow

    return pyarrow.table({
        name: pyarrow.array([field_of(value) for value in values], pyarrow.binary()) for name, values in columns.items()
    })  # fmt: skip


def field_of(value: Any) -> bytes:
    if value is None or value != value or isinstance(value, (dict, list)):
        return b""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, datetime):
        value = value.isoformat().removesuffix("T00:00:00")
    return str(value).encode("utf-8", "surrogatepass")


class FieldColumns(Collected):
    def __init__(self, table: Any, form: DataFile, labels: Labels) -> None:
        self._table, self._form, self.labels, self.date_order = table, form, labels, form.dates

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def numbers(self, name: str) -> NDArray[np.float64]:
        import pyarrow
        from pyarrow import compute

        fields = self._with_decimal_points_and_no_marks(self._table[name])
        plain = compute.if_else(compute.match_substring_regex(fields, _NUMBER), fields, None)
        text = compute.utf8_trim_whitespace(plain.cast(pyarrow.string()))
        return np.asarray(text.cast(pyarrow.float64()).fill_null(np.nan).to_numpy())

    def _with_decimal_points_and_no_marks(self, fields: Any) -> Any:
        from pyarrow import compute

        for mark in _MARKS.get(self._form.thousands, ()):
            group, point = rf"({mark.replace('.', '[.]')}[0-9]{{3}})+", f"[{self._form.decimal}]"
            grouped = compute.match_substring_regex(
                fields, rf"^[ \t]*[+-]?[0-9]{{1,3}}{group}({point}[0-9]*)?{_EXPONENT}[ \t]*$"
            )
            fields = compute.if_else(grouped, compute.replace_substring(fields, mark, ""), fields)
        if self._form.decimal == ",":  # a point is then no decimal point: the field is no number
            pointless = compute.if_else(compute.match_substring(fields, "."), None, fields)
            fields = compute.replace_substring(pointless, ",", ".")
        return fields

    def integers(self, name: str) -> None:
        """``None``: each field is text."""

    def distinct(self, name: str) -> Distinct | None:
        return distinct(self._table[name])

    def objects(self, name: str) -> Iterator[Sequence[object]]:
        for chunk in self._table[name].chunks:
            yield [field.decode("utf-8", "surrogateescape") for field in chunk.to_pylist()]
