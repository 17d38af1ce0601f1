"""A data file with its format, and what its name and its header show of its format."""

import codecs
import csv
import gzip
import io
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import PurePath
from typing import Any
from zipfile import ZipFile, ZipInfo

from dpcausal.data.panels.dates import ORDERS
from dpcausal.errors import ParameterError

TEXTS = (".csv", ".tsv", ".txt", ".tab")
JSON_LINES = (".jsonl", ".ndjson")
PACKED = (".gz", ".zip")
WORKBOOKS = (".xlsx", ".ods")
"""How the names of files end."""

OF_TEXTS = {"separator", "decimal", "thousands", "quote", "dates", "encoding"}

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
DECIMALS = {".": "decimal point", ",": "decimal comma"}
THOUSANDS = {"": "", ",": "comma", ".": "point", " ": "blank", "'": "apostrophe"}
QUOTES = {'"': "double", "'": "single", "": "none"}
FIRST_BYTES = 1 << 16
_BY_CHARACTER = re.compile(
    r"(utf-(8|16|32)|ascii|iso8859-|cp\d|koi8|mac-|gb|big5|shift_jis|euc_|johab|kz1048|ptcp154|hp-roman8|tis-620)"
)
"""Encodings in which no field changes how later ones are decoded."""

_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


def ending_of(path: str | os.PathLike[str]) -> str:
    """Return how a file's name ends; of a packed file the ending before, ``.csv`` if there is none.

    >>> ending_of("visits.CSV.gz"), ending_of("visits.zip"), ending_of("visits.dta")
    ('.csv', '.csv', '.dta')
    """
    name = PurePath(os.fspath(path).lower())
    return (name.with_suffix("").suffix or ".csv") if name.suffix in PACKED else name.suffix


def is_text(path: str | os.PathLike[str]) -> bool:
    return ending_of(path) in TEXTS


@dataclass(frozen=True)
class DataFile(os.PathLike[str]):
    """The path of a data file with its format, which is never guessed when data are read.

    Parameters
    ----------
    path : str
    separator : {",", ";", "\\t", "|"}, optional
        Between fields; by default a tab in ``.tsv`` and ``.tab``, else a comma.
    decimal : {".", ","}
        In numbers.
    thousands : {"", ",", ".", " ", "'"}
        Between groups of three digits.
    quote : {'"', "'", ""}
        Around fields.
    dates : {"year-month-day", "day-month-year", "month-day-year"}
        Order in which texts give a date.
    encoding : str
        Of the text, as Python names it: ``"utf-8"``, ``"cp1252"``.  None with shift states, as ISO-2022 has.
    sheet : str
        Of a workbook; by default its only one.

    Examples
    --------
    >>> DataFile("hospital.csv", separator=";", decimal=",").form
    'semicolon, decimal comma, utf-8'
    """

    path: str
    separator: str = ""
    decimal: str = "."
    thousands: str = ""
    quote: str = '"'
    dates: str = "year-month-day"
    encoding: str = "utf-8"
    sheet: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "separator", self.separator or self._separator)
        choices: tuple[tuple[str, Mapping[str, Any]], ...] = (
            ("separator", SEPARATORS), ("decimal", DECIMALS), ("thousands", THOUSANDS), ("quote", QUOTES),
            ("dates", ORDERS),
        )  # fmt: skip
        for name, known in choices:
            if getattr(self, name) not in known:
                text = f"{name} must be one of {', '.join(map(repr, known))}"
                raise ParameterError(text, argument=name, rule="choice", value=getattr(self, name))
        ending = ending_of(self.path)
        known_options = {"sheet", "dates"} if ending in WORKBOOKS else OF_TEXTS if ending in TEXTS else {"dates"}
        if unknown := sorted(self.options.keys() - known_options):
            text = f"{unknown[0]} is no option of a file whose name ends in {ending!r}"
            raise ParameterError(text, argument=unknown[0], rule="option")
        if self.decimal == self.thousands:
            raise ParameterError("decimal and thousands must differ", argument="decimal", rule="choice")
        try:
            is_known = _BY_CHARACTER.match(codecs.lookup(self.encoding).name) is not None
        except (LookupError, TypeError, ValueError):
            is_known = False
        if not is_known:
            text = "encoding must be one that Python knows, as utf-8 or cp1252, and that has no shift states"
            raise ParameterError(text, argument="encoding", rule="choice", value=self.encoding)
        if self._ends_characters(self.separator):
            # A field that is cut inside a character would take the separator after it, and one record refuse the file.
            text = f"separator {self.separator!r} is part of characters in {self.encoding}: save the file as UTF-8"
            raise ParameterError(text, argument="separator", rule="choice", value=self.separator)

    def _ends_characters(self, mark: str) -> bool:
        if codecs.lookup(self.encoding).name.startswith("utf"):
            return False
        texts = (bytes([first]) + mark.encode() + b"aaa" for first in range(0x80, 0x100))
        return any(mark not in text.decode(self.encoding, "replace") for text in texts)

    def __fspath__(self) -> str:
        return self.path

    @property
    def is_utf8(self) -> bool:
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig")

    @property
    def form(self) -> str:
        """The format of a text in words."""
        thousands = self.thousands and f"thousands {THOUSANDS[self.thousands]}"
        quote = "" if self.quote == '"' else f"quote {QUOTES[self.quote]}"
        dates = "" if self.dates == "year-month-day" else self.dates
        parts = (SEPARATORS[self.separator], DECIMALS[self.decimal], thousands, quote, dates, self.encoding)
        return ", ".join(part for part in parts if part)

    @property
    def options(self) -> dict[str, str]:
        """What differs from the usual format of a file of its name."""
        usual = {one.name: one.default for one in fields(self)} | {"path": self.path, "separator": self._separator}
        return {name: getattr(self, name) for name, value in usual.items() if getattr(self, name) != value}

    @property
    def _separator(self) -> str:
        return "\t" if ending_of(self.path) in (".tsv", ".tab") else ","

    @property
    def dialect(self) -> dict[str, Any]:
        """The format as the module csv takes it."""
        quoting = csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE
        return {"delimiter": self.separator, "quotechar": self.quote or None, "quoting": quoting}


class Utf8Bytes(io.RawIOBase):
    """The bytes of a text as UTF-8: what is no text in its encoding is a replacement character, and refuses nothing."""

    def __init__(self, file: Any, encoding: str) -> None:
        # EUC-KR waits for eight bytes after a filler, and would take the last records for it; CP949 holds all its text.
        known_as = "cp949" if codecs.lookup(encoding).name == "euc_kr" else encoding
        self._file, self._decoder, self._rest = file, codecs.getincrementaldecoder(known_as)("replace"), b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            raw = self._file.read(FIRST_BYTES)
            self._rest = self._decoder.decode(raw, final=not raw).encode("utf-8", "replace")
            if not raw:
                break
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    def close(self) -> None:
        self._file.close()
        super().close()


def bytes_of(path: str | os.PathLike[str]) -> Any:
    """Return a file of text opened to read its bytes, unpacked if its name ends in .gz or .zip."""
    name = os.fspath(path)
    if not name.lower().endswith(".zip"):
        return (gzip.open if name.lower().endswith(".gz") else open)(name, "rb")
    with ZipFile(name) as archive:
        (member,) = members_of(archive)
        return archive.open(member)


def members_of(archive: ZipFile) -> list[ZipInfo]:
    """Return the files in an archive that can be read: not what a Mac adds, nor what has a password."""
    return [one for one in archive.infolist()
            if not (one.is_dir() or one.filename.startswith("__MACOSX/") or one.flag_bits & 1)]  # fmt: skip


def first_bytes(path: str | os.PathLike[str]) -> bytes:
    with bytes_of(path) as file:
        start: bytes = file.read(FIRST_BYTES)
    return start


def check_text(path: str | os.PathLike[str], start: bytes) -> None:
    """Refuse a workbook or an archive that is named like a text."""
    if start.startswith(b"PK\x03\x04"):
        text = f"{os.fspath(path)!r} is no text but a workbook or an archive"
        raise ParameterError(text, argument="data", rule="text", hint="name it .xlsx, .ods or .zip, or save it as CSV")


def likely_format(path: str) -> DataFile:
    """Return a file with the format that its name and its header suggest, for a person to confirm; no record is used.
    With semicolons between the names, numbers have commas in most countries that write them so."""
    start = first_bytes(path)
    check_text(path, start)
    encoding = next((name for mark, name in _MARKS.items() if start.startswith(mark)), "utf-8")
    header = start.decode("utf-16", "replace") if encoding == "utf-16" else start.decode("utf-8", "surrogateescape")
    header = header.partition("\n")[0].partition("\r")[0]
    if any("\udc80" <= letter <= "\udcff" for letter in header):
        encoding = "cp1252"
    usual = DataFile(path).separator
    names = {mark: len(next(csv.reader([header], delimiter=mark), [])) for mark in (usual, *SEPARATORS)}
    separator = max(names, key=lambda mark: names[mark])
    return DataFile(path, separator, "," if separator == ";" else ".", encoding=encoding)
