"""A file of text with its format, and what the first lines of a file show of its format."""

import codecs
import csv
import gzip
import io
import os
import re
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dpcausal.errors import ParameterError

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
DECIMALS = {".": "decimal point", ",": "decimal comma"}
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
FIRST_BYTES = 1 << 16


@dataclass(frozen=True)
class TextFile(os.PathLike[str]):
    """The path of a CSV file with its format, which is never guessed when data are read.

    Parameters
    ----------
    path : str
    separator : {",", ";", "\\t", "|"}
        Between fields.
    decimal : {".", ","}
        In numbers.
    encoding : str
        Of the text, as Python names it: ``"utf-8"``, ``"cp1252"``.

    Examples
    --------
    >>> TextFile("hospital.csv", separator=";", decimal=",").form
    'semicolon, decimal comma, utf-8'
    """

    path: str
    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        for name, known in (("separator", SEPARATORS), ("decimal", DECIMALS)):
            if getattr(self, name) not in known:
                text = f"{name} must be one of {', '.join(map(repr, known))}"
                raise ParameterError(text, argument=name, rule="choice", value=getattr(self, name))
        if self.separator == self.decimal:
            raise ParameterError("separator and decimal must differ", argument="decimal", rule="choice")
        try:
            codecs.lookup(self.encoding)
        except (LookupError, TypeError, ValueError):
            text = "encoding must be one that Python knows, as utf-8 or cp1252"
            raise ParameterError(text, argument="encoding", rule="choice", value=self.encoding) from None

    def __fspath__(self) -> str:
        return self.path

    @property
    def form(self) -> str:
        return f"{SEPARATORS[self.separator]}, {DECIMALS[self.decimal]}, {self.encoding}"

    @property
    def options(self) -> dict[str, str]:
        """What differs from commas (of a TSV file tabs), decimal points and UTF-8."""
        usual = usual_format(self.path)
        return {name: getattr(self, name) for name in ("separator", "decimal", "encoding")
                if getattr(self, name) != getattr(usual, name)}  # fmt: skip


class Utf8Bytes(io.RawIOBase):
    """The bytes of a text as UTF-8: what is no text in its encoding is a replacement character, and refuses nothing."""

    def __init__(self, file: Any, encoding: str) -> None:
        self._file, self._decoder, self._rest = file, codecs.getincrementaldecoder(encoding)("replace"), b""

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
    """Return a file of text opened to read its bytes, unpacked if its name ends in .gz."""
    return (gzip.open if os.fspath(path).lower().endswith(".gz") else open)(path, "rb")


def usual_format(path: str | os.PathLike[str]) -> TextFile:
    """Return a file with the format that its name alone says."""
    if isinstance(path, TextFile):
        return path
    name = os.fspath(path)
    return TextFile(name, "\t" if name.lower().endswith((".tsv", ".tsv.gz")) else ",")


def likely_format(path: str) -> TextFile:
    """Return a file with the format that its first lines suggest, for a person to confirm."""
    with bytes_of(path) as file:
        start = file.read(FIRST_BYTES)
    encoding = "utf-8"
    try:
        start.rpartition(b"\n")[0].decode("utf-8")
    except UnicodeDecodeError:
        encoding = "cp1252"
    lines = start.decode(encoding, errors="replace").splitlines()
    usual = usual_format(path).separator
    counts = {mark: len(next(csv.reader(lines[:1], delimiter=mark), [])) for mark in (usual, *SEPARATORS)}
    separator = max(counts, key=lambda mark: counts[mark])
    records = islice(csv.reader(lines, delimiter=separator), 1, 200)
    comma = separator != "," and any(DECIMAL_COMMA.fullmatch(field) for record in records for field in record)
    return TextFile(path, separator, "," if comma else ".", encoding)
