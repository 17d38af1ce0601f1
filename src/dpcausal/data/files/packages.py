"""Files of Stata, SAS and SPSS by pyreadstat, and workbooks by calamine: as a file of text with the same fields.

What is missing is an empty field, a whole number is written without a point, a level is the code and not its label,
and a date of a workbook is an ISO date, of the others the number that the file holds.
"""

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpcausal.data.files.fields import FieldColumns, FieldSource, table_of
from dpcausal.data.files.formats import DataFile
from dpcausal.data.source import BATCH, Collected, guarded
from dpcausal.errors import MissingDependencyError, ParameterError

READERS = {
    ".dta": "read_dta", ".sas7bdat": "read_sas7bdat", ".xpt": "read_xport", ".sav": "read_sav", ".por": "read_por",
}  # fmt: skip
BROKEN = "as a workbook, which needs a header and no password: save it as .xlsx, .ods or CSV"


class PackageSource(FieldSource):
    """A file of a statistics package; it is read whole once, to be counted and to be sure that it can be read."""

    def __init__(self, path: Path, form: DataFile) -> None:
        if importlib.util.find_spec("pyreadstat") is None:
            raise MissingDependencyError("pyreadstat", "packages")
        self.backend = path.suffix.lower().removeprefix(".")
        super().__init__(path, form, f"as one of {', '.join(READERS)}")

    def _read(self, **options: Any) -> Any:
        import pyreadstat

        reader = getattr(pyreadstat, READERS[self._path.suffix.lower()])
        return reader(self._path, output_format="dict", disable_datetime_conversion=True, **options)

    def header(self) -> Sequence[str]:
        return tuple(self._read(metadataonly=True)[1].column_names)

    def count(self) -> int:
        def rows() -> int:
            columns, _ = self._read()
            return len(next(iter(columns.values()))) if columns else 0

        return guarded(rows, self._unread)

    def collect(self, names: Sequence[str]) -> Collected:
        return FieldColumns(guarded(lambda: self._table(names), self._unread), self._form)

    def _table(self, names: Sequence[str], **rows: int) -> Any:
        columns, _ = self._read(usecols=list(dict.fromkeys(names)), **rows)
        return table_of({name: columns[name] for name in names})

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        start, rows = 0, BATCH
        while rows == BATCH:
            batch = self._table(names, row_offset=start, row_limit=BATCH)
            start, rows = start + len(batch), len(batch)
            yield batch


class WorkbookSource(FieldSource):
    """A sheet of a workbook; its first row is the header, and a column without a name there does not count."""

    def __init__(self, path: Path, form: DataFile) -> None:
        self.backend = path.suffix.lower().removeprefix(".")
        sheets = sheets_of(path)
        if form.sheet not in sheets and (form.sheet or len(sheets) != 1):
            text = f"{str(path)!r} has {len(sheets)} sheets: name one of them by sheet"
            raise ParameterError(text, argument="sheet", rule="choice")
        super().__init__(path, replace(form, sheet=form.sheet or sheets[0]), BROKEN)

    def header(self) -> Sequence[str]:
        with _opened(self._path) as book:
            first, *records = book.get_sheet_by_name(self._form.sheet).to_python(skip_empty_area=True)
        named = {place: str(name).strip() for place, name in enumerate(first) if str(name).strip()}
        self._whole = table_of({name: [record[place] for record in records] for place, name in named.items()})
        return tuple(named.values())

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        chosen = self._whole.select(list(names))
        for start in range(0, max(1, chosen.num_rows), BATCH):
            yield chosen.slice(start, BATCH)


def sheets_of(path: Path) -> list[str]:
    if importlib.util.find_spec("python_calamine") is None:
        raise MissingDependencyError("python-calamine", "excel")

    def names() -> list[str]:
        with _opened(path) as book:
            return list(book.sheet_names)

    return guarded(names, f"file {str(path)!r} cannot be read {BROKEN}")


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    from python_calamine import CalamineWorkbook

    with path.open("rb") as file:  # the kind of workbook is seen from its content, not from its name
        yield CalamineWorkbook.from_filelike(file)
