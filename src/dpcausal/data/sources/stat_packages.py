"""Files of Stata, SAS and SPSS, read by pyreadstat as a file of text is read.

A number of such a file is a number where one record does not have it and where none does, a whole one is written
without a point, and what is missing is an empty field, as in CSV: so nothing that a column is taken for depends on a
record. Labels of values are left out: a level is the code.  Dates are the numbers that the file holds.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dpcausal.data.source import BATCH, Collected, Declared, Kind, Streaming, withheld
from dpcausal.data.sources.text_fields import FieldColumns
from dpcausal.errors import MissingDependencyError, SchemaError

READERS = {".dta": "read_dta", ".sas7bdat": "read_sas7bdat", ".xpt": "read_xport", ".sav": "read_sav"}


class PackageSource(Streaming):
    """A file of a statistics package; it is read whole once, to be counted and to be sure that it can be read."""

    def __init__(self, path: Path) -> None:
        if importlib.util.find_spec("pyreadstat") is None:
            raise MissingDependencyError("pyreadstat", "packages")
        self._path, self.backend = path, path.suffix.lower().removeprefix(".")
        self._unread = f"file {str(path)!r} cannot be read as one of {', '.join(READERS)}"
        self.names = tuple(withheld(lambda: self._read(metadataonly=True)[1].column_names, self._unread))
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

        return withheld(rows, self._unread)

    def collect(self, names: Sequence[str]) -> Collected:
        return withheld(lambda: self._columns(names), self._unread)

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
