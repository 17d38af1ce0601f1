"""Small files of one table in many formats, by the packages that write them; ``python -m tests.data.formats`` makes the
table of the page ``docs/howto/file-formats.md``."""

import csv
import io
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pyreadstat

import dpcausal as dpc
from dpcausal.errors import DpCausalError

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "file-formats.md"
TOWN = ["Köln", "Bonn", None, "Köln", "Bonn", "Köln"]
X = [1234567.5, -0.25, 1234.0, None, 0.0, 12.0]
K = [0, 1, 1, 0, None, 1]
DAY = [date(2019, 1, 31), date(1950, 7, 4), None, date(2024, 2, 29), date(2019, 12, 1), date(2000, 1, 1)]
ROWS = list(zip(TOWN, X, K, DAY, strict=True))
NAMES = ("town", "x", "k", "day")
SCHEMA = {
    "town": dpc.Levels(["Bonn", "Köln"]), "x": dpc.Bounded(-1, 2e6), "k": dpc.Levels([0, 1]),
    "day": dpc.Bounded("1950-01-01", "2024-12-31"),
}  # fmt: skip
FIRST = (date(1950, 1, 1) - date(1970, 1, 1)).days
EXPECTED: dict[str, list[Any]] = {
    "town": [1, 0, None, 1, 0, 1], "x": X, "k": K,
    "day": [None if day is None else (day - date(1970, 1, 1)).days for day in DAY],
}  # fmt: skip
WORDS = {"town": "categories", "x": "numbers", "k": "codes", "day": "dates"}
ARROW = pa.table({"town": TOWN, "x": X, "k": K, "day": DAY})
PANDAS = pd.DataFrame({"town": TOWN, "x": X, "k": pd.array(K, dtype="Int64"), "day": pd.to_datetime(pd.Series(DAY))})
PLAIN = PANDAS.assign(k=np.array(K, dtype=float), day=DAY)
POLARS = pl.from_arrow(ARROW)
FLOAT = {"k": "float64", "day": "datetime64[ns]"}

Make = Callable[[str], Any]


@dataclass(frozen=True)
class Format:
    """A file: what it is, who writes it, who reads it, what [data] must say, and by which words it is refused."""

    what: str
    writer: str
    reader: str
    ending: str
    make: Make
    options: dict[str, str] = field(default_factory=dict)
    refused: str = ""
    schema: dict[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    """Columns that the format cannot hold."""

    def __str__(self) -> str:
        return f"{self.what} by {self.writer}"


def text(
    separator: str = ",", decimal: str = ".", thousands: str = "", form: str = "%Y-%m-%d", encoding: str = "utf-8",
    end: str = "\n", **options: Any,
) -> Make:  # fmt: skip
    """Return what writes a text by Python's module csv, with marks between thousands."""

    def number(value: float | None) -> str:
        written = "" if value is None else f"{value:,.2f}"
        return written.replace(",", "\0").replace(".", decimal).replace("\0", thousands)

    def make(path: str) -> None:
        made = io.StringIO()
        writer = csv.writer(made, delimiter=separator, lineterminator=end, **options)
        writer.writerow(NAMES)
        for town, x, k, day in ROWS:
            writer.writerow([town or "", number(x), "" if k is None else k, "" if day is None else day.strftime(form)])
        with open(path, "wb") as file:
            file.write(made.getvalue().encode(encoding))

    return make


def by_pandas(**options: Any) -> Make:
    return lambda path: PANDAS.to_csv(path, index=False, **options)


def by_duckdb(options: str) -> Make:
    def make(path: str) -> None:
        with duckdb.connect() as connection:
            connection.register("visits", ARROW)
            connection.execute(f"COPY (SELECT * FROM visits) TO '{path}' ({options})")

    return make


def zipped(inner: Make, *names: str) -> Make:
    def make(path: str) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                inner(f"{path}.part")
                archive.write(f"{path}.part", name)

    return make


def labelled(path: str) -> None:
    codes = pd.DataFrame({"town": [2.0, 1, 9, 2, 1, 2], "x": [*X[:3], -99, *X[4:]], "k": K, "day": DAY})
    labels = {"town": {1: "Bonn", 2: "Köln", 9: "refused"}, "k": {0: "no", 1: "yes"}}
    if path.endswith("dta"):
        codes = codes.assign(town=[2, 1, "a", 2, 1, 2], x=X, k=K)
        labels["town"] = {1: "Bonn", 2: "Köln", "a": "refused"}
        pyreadstat.write_dta(codes, path, variable_value_labels=labels, missing_user_values={"town": ["a"]})
    else:
        pyreadstat.write_sav(codes, path, variable_value_labels=labels, missing_ranges={"town": [9], "x": [-99]})


def by_sheets(path: str) -> None:
    with pd.ExcelWriter(path) as book:
        pd.DataFrame({"note": ["read me"]}).to_excel(book, sheet_name="Notes", index=False)
        PANDAS.to_excel(book, sheet_name="Patients", index=False)


def by_database(path: str) -> None:
    with duckdb.connect(path) as connection:
        connection.register("arrow", ARROW)
        connection.execute("CREATE TABLE visits AS SELECT * FROM arrow")


def by_r(call: str) -> Make:
    def make(path: str) -> None:
        PANDAS.to_csv(f"{path}.csv", index=False)
        code = f"d <- read.csv('{path}.csv', na.strings=''); d$day <- as.Date(d$day); {call.format(path=path)}"
        subprocess.run(["Rscript", "-e", code], check=True, capture_output=True)

    return make


def by_office(path: str) -> None:
    PANDAS.to_excel(path.replace(".ods", ".xlsx"), index=False)
    words = ["soffice", "--headless", "--convert-to", "ods", "--outdir", str(Path(path).parent)]
    subprocess.run([*words, path.replace(".ods", ".xlsx")], check=True, capture_output=True)


SEMICOLON = {"separator": ";", "decimal": ","}
GERMAN = SEMICOLON | {"encoding": "cp1252"}
LABELS, JSON = {"k": dpc.Levels(["no", "yes"])}, {"orient": "records", "date_format": "iso"}
FORMATS = [
    Format("CSV", "pandas", "pyarrow", ".csv", by_pandas()),
    Format("CSV", "polars", "pyarrow", ".csv", POLARS.write_csv),
    Format("CSV", "DuckDB", "pyarrow", ".csv", by_duckdb("HEADER")),
    Format("CSV", "pyarrow", "pyarrow", ".csv", partial(pa.csv.write_csv, ARROW)),
    Format("CSV, every field quoted", "Python", "pyarrow", ".csv", text(quoting=csv.QUOTE_ALL)),
    Format("CSV, Windows line ends", "Python", "pyarrow", ".csv", text(end="\r\n")),
    Format("CSV, old Mac line ends", "Python", "pyarrow", ".csv", text(end="\r")),
    Format("CSV, UTF-8 with a mark", "pandas", "pyarrow", ".csv", by_pandas(encoding="utf-8-sig")),
    Format("CSV, semicolons, decimal comma, cp1252", "pandas", "pyarrow", ".csv",
           by_pandas(sep=";", decimal=",", encoding="cp1252"), GERMAN),
    Format("CSV, semicolons, decimal comma, Latin-1", "Python", "pyarrow", ".csv",
           text(";", ",", encoding="latin-1"), SEMICOLON | {"encoding": "latin-1"}),
    Format("CSV, semicolons, decimal comma", "polars", "pyarrow", ".csv",
           partial(POLARS.write_csv, separator=";", decimal_comma=True), SEMICOLON),
    Format("CSV, quoted decimal commas", "Python", "pyarrow", ".csv", text(decimal=","), {"decimal": ","}),
    Format("CSV, single quotes", "pandas", "pyarrow", ".csv", by_pandas(quotechar="'", quoting=csv.QUOTE_ALL),
           {"quote": "'"}),
    Format("CSV, 1,234.50", "Python", "pyarrow", ".csv", text(thousands=","), {"thousands": ","}),
    Format("CSV, 1.234,50", "Python", "pyarrow", ".csv", text(";", ",", "."), SEMICOLON | {"thousands": "."}),
    Format("CSV, 1 234,50", "Python", "pyarrow", ".csv", text(";", ",", "\u202f"), SEMICOLON | {"thousands": " "}),
    Format("CSV, 1'234.50", "Python", "pyarrow", ".csv", text(";", thousands="'"),
           {"separator": ";", "thousands": "'"}),
    Format("CSV, dates 31.01.2019", "pandas", "pyarrow", ".csv", by_pandas(date_format="%d.%m.%Y"),
           {"dates": "day-month-year"}),
    Format("CSV, dates 01/31/2019", "pandas", "pyarrow", ".csv", by_pandas(date_format="%m/%d/%Y"),
           {"dates": "month-day-year"}),
    Format("CSV, dates 20190131", "pandas", "pyarrow", ".csv", by_pandas(date_format="%Y%m%d")),
    Format("TSV", "pandas", "pyarrow", ".tsv", by_pandas(sep="\t")),
    Format("TSV", "DuckDB", "pyarrow", ".tsv", by_duckdb("HEADER, DELIMITER '\t'")),
    Format("text with bars", "DuckDB", "pyarrow", ".txt", by_duckdb("HEADER, DELIMITER '|'"), {"separator": "|"}),
    Format("Unicode text of Excel (UTF-16, tabs)", "Python", "pyarrow", ".txt", text("\t", encoding="utf-16"),
           {"separator": "\t", "encoding": "utf-16"}),
    Format("CSV, gzip", "pandas", "pyarrow", ".csv.gz", by_pandas()),
    Format("CSV, gzip", "DuckDB", "pyarrow", ".csv.gz", by_duckdb("HEADER, COMPRESSION gzip")),
    Format("CSV, zip", "pandas", "pyarrow", ".csv.zip", by_pandas()),
    Format("zip of a semicolon text", "Python", "pyarrow", ".zip",
           zipped(text(";", ",", encoding="cp1252"), "export.txt"), GERMAN),
    Format("JSON lines", "pandas", "Python", ".jsonl", partial(PANDAS.to_json, **JSON, lines=True)),
    Format("JSON lines", "polars", "Python", ".ndjson", POLARS.write_ndjson),
    Format("JSON lines", "DuckDB", "Python", ".jsonl", by_duckdb("FORMAT json")),
    Format("JSON lines, gzip", "pandas", "Python", ".jsonl.gz", partial(PANDAS.to_json, **JSON, lines=True)),
    Format("Parquet", "pyarrow", "pyarrow", ".parquet", partial(pa.parquet.write_table, ARROW)),
    Format("Parquet", "pandas", "pyarrow", ".parquet", PANDAS.to_parquet),
    Format("Parquet", "polars", "pyarrow", ".parquet", POLARS.write_parquet),
    Format("Parquet", "DuckDB", "pyarrow", ".parquet", by_duckdb("FORMAT parquet")),
    Format("Feather", "pyarrow", "pyarrow", ".feather", partial(pa.feather.write_feather, ARROW)),
    Format("Arrow IPC", "polars", "pyarrow", ".arrow", POLARS.write_ipc),
    Format("Arrow IPC, compressed", "polars", "pyarrow", ".ipc", partial(POLARS.write_ipc, compression="zstd")),
    Format("Excel", "openpyxl", "calamine", ".xlsx", partial(PANDAS.to_excel, index=False)),
    Format("Excel, a sheet of several", "openpyxl", "calamine", ".xlsx", by_sheets, {"sheet": "Patients"}),
    Format("Excel", "polars", "calamine", ".xlsx", POLARS.write_excel),
    Format("OpenDocument", "odfpy", "calamine", ".ods", partial(PANDAS.to_excel, index=False)),
    Format("OpenDocument", "LibreOffice", "calamine", ".ods", by_office),
    Format("Stata", "pandas", "pyreadstat", ".dta",
           lambda path: PANDAS.astype(FLOAT).fillna({"town": ""}).to_stata(path, write_index=False, version=118)),
    Format("Stata", "pyreadstat", "pyreadstat", ".dta", partial(pyreadstat.write_dta, PLAIN)),
    Format("Stata, value labels, .a", "pyreadstat", "pyreadstat", ".dta", labelled, schema=LABELS),
    Format("Stata", "R haven", "pyreadstat", ".dta", by_r("haven::write_dta(d, '{path}')")),
    Format("SPSS", "pyreadstat", "pyreadstat", ".sav", partial(pyreadstat.write_sav, PLAIN)),
    Format("SPSS, compressed", "pyreadstat", "pyreadstat", ".sav", partial(pyreadstat.write_sav, PLAIN, compress=True)),
    Format("SPSS, value labels, user-missing", "pyreadstat", "pyreadstat", ".sav", labelled, schema=LABELS),
    Format("SPSS", "R haven", "pyreadstat", ".sav", by_r("haven::write_sav(d, '{path}')")),
    Format("SPSS portable", "pyreadstat", "pyreadstat", ".por",
           partial(pyreadstat.write_por, PLAIN.drop(columns="town").rename(columns=str.upper)),
           schema={name.upper(): SCHEMA[name] for name in NAMES[1:]}, without=("town",)),
    Format("SAS transport", "pyreadstat", "pyreadstat", ".xpt", partial(pyreadstat.write_xport, PLAIN)),
    Format("DuckDB table", "DuckDB", "DuckDB", ".db", by_database, {"table": "visits"}),
    Format("CSV, semicolons, not declared", "pandas", "", ".csv", by_pandas(sep=";"), refused="separator"),
    Format("CSV, UTF-16, not declared", "Python", "", ".csv", text(encoding="utf-16"), refused="encoding"),
    Format("CSV without a header", "pandas", "", ".csv", by_pandas(header=False), refused="needs a header"),
    Format("CSV, a record too short", "Python", "", ".csv",
           lambda path: Path(path).write_text("town,x,k,day\nBonn,1\n"), refused="records of as many fields"),
    Format("zip of two files", "Python", "", ".zip", zipped(text(), "a.csv", "b.csv"), refused="unpack it"),
    Format("Excel, several sheets, none named", "openpyxl", "", ".xlsx", by_sheets,
           refused="name one of them by sheet"),
    Format("Excel, named .csv", "openpyxl", "", ".csv",
           lambda path: (PANDAS.to_excel(f"{path}.xlsx", index=False), Path(f"{path}.xlsx").rename(path)),
           refused="name it .xlsx"),
    Format("JSON, one array", "pandas", "", ".json", partial(PANDAS.to_json, **JSON), refused=".jsonl"),
    Format("Python pickle", "pandas", "", ".pkl", PANDAS.to_pickle, refused="ends otherwise"),
    Format("Excel 97 (.xls)", "Python", "", ".xls", lambda path: Path(path).write_bytes(b"\xd0\xcf"), refused=".xlsx"),
    Format("Parquet, a column of lists", "pyarrow", "", ".parquet",
           partial(pa.parquet.write_table, ARROW.set_column(1, "x", pa.array([[1]] * 6))), refused="numeric column"),
    Format("Parquet, dates declared as numbers", "pyarrow", "", ".parquet",
           partial(pa.parquet.write_table, ARROW), refused="declare dates as bounds",
           schema={"day": dpc.Bounded(0, 3000)}),
]  # fmt: skip
NEEDS = {"R haven": ("Rscript", "-e", "haven::read_sav"), "LibreOffice": ("soffice", "--version")}


@cache
def _runs(command: tuple[str, ...]) -> bool:
    return shutil.which(command[0]) is not None and not subprocess.run(command, capture_output=True).returncode


def is_made(one: Format) -> bool:
    """Whether the program that writes it is on this machine."""
    return one.writer not in NEEDS or _runs(NEEDS[one.writer])


def written(one: Format, folder: Path) -> Any:
    path = str(folder / f"d{one.ending}")
    one.make(path)
    if one.reader == "DuckDB":
        return f"duckdb:///{path}?table={one.options['table']}"
    return dpc.DataFile(path, **one.options)


def read_right(one: Format, folder: Path) -> tuple[str, ...]:
    """Return the columns of a file that are read as they were written."""
    schema = dpc.Schema(one.schema if one.without else SCHEMA | one.schema)
    rows = dpc.Table(written(one, folder), schema, dpc.Ledger.without_privacy()).rows(schema)
    return tuple(
        name.lower() for name in schema
        if [float(value) if known else None for value, known in zip(rows.values[name], rows.present[name], strict=True)]
        == EXPECTED[name.lower()]
    )  # fmt: skip


def refusal(one: Format, folder: Path) -> str:
    """Return the words by which a file is refused, if nothing was spent; empty if it is not refused."""
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    try:
        dpc.Table(written(one, folder), dpc.Schema(SCHEMA | one.schema), ledger)
    except DpCausalError as error:
        return str(error) if not ledger.entries() else ""
    return ""


def rows_of_page() -> list[str]:
    lines = ["| format | written by | `[data]` | read | by |", "|---|---|---|---|---|"]
    for one in FORMATS:
        data = ", ".join(f"`{key} = {value!r}`" for key, value in one.options.items()) if one.reader != "DuckDB" else ""
        data = data.replace("'\\t'", '"\\t"').replace("|", "\\|")
        read = ", ".join(WORDS[name] for name in NAMES if name not in one.without) if one.without else "all"
        read = "refused" if one.refused else read
        lines.append(f"| {one.what} | {one.writer} | {data} | {read} | {one.reader} |")
    return lines


def page() -> str:
    before, _, rest = PAGE.read_text(encoding="utf-8").partition("| format | written by |")
    after = rest[rest.index("\n\n") :] if "\n\n" in rest else "\n"
    return before + "\n".join(rows_of_page()) + after


if __name__ == "__main__":
    for shown in FORMATS:
        with tempfile.TemporaryDirectory() as place:
            outcome = "not made here" if not is_made(shown) else (
                refusal(shown, Path(place)) if shown.refused else str(read_right(shown, Path(place))))
            print(f"{shown!s:60} {outcome[:200]}")
    if PAGE.exists():
        PAGE.write_text(page(), encoding="utf-8")
