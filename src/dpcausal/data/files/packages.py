"""Files of Stata, SAS and SPSS by pyreadstat, and workbooks by calamine: as a file of text with the same fields.

What is missing, as user-missing codes are, is an empty field, and a whole number is written without a point.  A level
is the code, or the value label of the code.  A date is an ISO date, of a time too: a column whose format says so has
dates alone.
"""

import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from dpcausal.data.files.fields import FieldColumns, FieldSource, field_of, table_of
from dpcausal.data.files.formats import DataFile
from dpcausal.data.source import BATCH, Collected, Declared, Kind, guarded_read
from dpcausal.errors import MissingDependencyError, ParameterError

READERS = {
    ".dta": "read_dta", ".sas7bdat": "read_sas7bdat", ".xpt": "read_xport", ".sav": "read_sav", ".por": "read_por",
}  # fmt: skip
LABELLED = (".dta", ".sav", ".por")
BROKEN = "as a workbook, which needs a header and no password: save it as .xlsx, .ods or CSV"


class PackageSource(FieldSource):
    """A file of a statistics package; it is read whole once, to be counted and to be sure that it can be read."""

    def __init__(self, path: Path, form: DataFile) -> None:
        if importlib.util.find_spec("pyreadstat") is None:
            raise MissingDependencyError("pyreadstat", "packages")
        self.backend = path.suffix.lower().removeprefix(".")
        super().__init__(path, form, f"as one of {', '.join(READERS)}")

    def header(self) -> Sequence[str]:
        _, meta = _read(self._path, metadataonly=True)
        self.labels = {name: {field_of(code).decode("utf-8", "replace"): label for code, label in labels.items()}
                       for name, labels in meta.variable_value_labels.items()}  # fmt: skip
        self._dates = {name: scale for name, form in meta.original_variable_types.items()
                       if (scale := _scale_of(self.backend, form or ""))}  # fmt: skip
        return tuple(meta.column_names)

    def declared(self, name: str) -> Declared:
        return Declared(Kind.DATE, self.backend) if name in self._dates else super().declared(name)

    def count(self) -> int:
        def rows() -> int:
            columns, _ = _read(self._path)
            return len(next(iter(columns.values()))) if columns else 0

        return guarded_read(rows, self._unread)

    def collect(self, names: Sequence[str]) -> Collected:
        return FieldColumns(guarded_read(lambda: self._table(names), self._unread), self._form, self.labels)

    def _table(self, names: Sequence[str], **rows: int) -> Any:
        columns, _ = _read(self._path, usecols=list(dict.fromkeys(names)), **rows)
        dated = {name: [_date(value, *self._dates[name]) for value in columns[name]] for name in names
                 if name in self._dates}  # fmt: skip
        return table_of({name: dated.get(name, columns[name]) for name in names})

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        start, rows = 0, BATCH
        while rows == BATCH:
            batch = self._table(names, row_offset=start, row_limit=BATCH)
            start, rows = start + len(batch), len(batch)
            yield batch


DAY = 86_400
_SPSS, _SAS = date(1582, 10, 14), date(1960, 1, 1)
_SPSS_DATES = {r"[AEJS]?DATE(TIME)?[\d.]*|YMDHMS[\d.]*": (_SPSS, DAY)}
_SAS_DATES = {
    r"(E8601DT|B8601DT|DATETIME|DTDATE|MDYAMPM|DATEAMPM)[\d.]*": (_SAS, DAY),
    r"(DATE|(DDMMYY|MMDDYY|YYMMDD)[BCDNPS]?|E8601DA|B8601DA|WEEKDAT[EX]|WORDDAT[EX]|JULIAN)[\d.]*": (_SAS, 1),
}
SCALES = {
    "dta": {r"%-?t?d.*": (_SAS, 1), r"%-?t[cC].*": (_SAS, DAY * 1000)}, "sav": _SPSS_DATES, "por": _SPSS_DATES,
    "sas7bdat": _SAS_DATES, "xpt": _SAS_DATES,
}  # fmt: skip
"""By the ending of a file's name and the format of a column: the day from which it counts, and its units in a day."""


def _scale_of(ending: str, form: str) -> tuple[date, int] | None:
    return next((scale for pattern, scale in SCALES[ending].items() if re.fullmatch(pattern, form)), None)


def _date(value: Any, first: date, units: int) -> date | None:
    try:
        return first + timedelta(days=value // units)
    except (TypeError, ValueError, OverflowError):  # a null, or a day that no calendar holds
        return None


def _read(path: Path, **options: Any) -> Any:
    import pyreadstat

    reader = getattr(pyreadstat, READERS[path.suffix.lower()])
    return reader(path, output_format="dict", disable_datetime_conversion=True, **options)


def columns_from_labels(path: Path) -> dict[str, dict[str, Any]]:
    """Return the declarations that the value labels of a file imply: documentation, of which no record is read. A scale
    is bounded by its least and largest labelled value, another column has the labels as levels.  Codes that the file
    declares missing are left out, and so are columns with fewer than two labels."""
    if path.suffix.lower() not in LABELLED:
        text = f"only files of Stata and SPSS ({', '.join(LABELLED)}) have value labels"
        raise ParameterError(text, argument="schema_from", rule="choice")
    _, meta = guarded_read(
        lambda: _read(path, metadataonly=True, user_missing=True), f"file {str(path)!r} cannot be read"
    )
    columns = dict[str, dict[str, Any]]()
    for name, labels in meta.variable_value_labels.items():
        ranges = meta.missing_ranges.get(name, ())
        codes = sorted(code for code in labels if not _is_missing(code, ranges, meta.readstat_variable_types[name]))
        levels = [labels[code] for code in codes]
        if len(levels) < 2:
            continue
        if meta.variable_measure.get(name) == "scale" and not isinstance(codes[0], str):
            columns[name] = {"lower": float(codes[0]), "upper": float(codes[-1])}
        else:
            columns[name] = {"levels": levels if len(set(levels)) == len(levels) else [*map(_plain, codes)]}
        label = meta.column_names_to_labels.get(name)
        columns[name] |= ({"label": label} if label else {}) | {"source": f"value labels of {path.name}"}
    return columns


def _plain(code: Any) -> Any:
    return int(code) if isinstance(code, float) and code.is_integer() else code


def _is_missing(code: Any, ranges: Sequence[Mapping[str, Any]], kind: str) -> bool:
    if isinstance(code, str) and kind != "string":  # .a to .z of Stata
        return True
    return any(one["lo"] <= code <= one["hi"] for one in ranges if isinstance(one["lo"], str) == isinstance(code, str))


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

    return guarded_read(names, f"file {str(path)!r} cannot be read {BROKEN}")


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    from python_calamine import CalamineWorkbook

    with path.open("rb") as file:  # the kind of workbook is seen from its content, not from its name
        yield CalamineWorkbook.from_filelike(file)
