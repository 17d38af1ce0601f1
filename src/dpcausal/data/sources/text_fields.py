"""Columns of fields, as files of text have them: bytes, read as the schema declares each column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.source import Distinct
from dpcausal.data.sources.frame import distinct

_NUMBER = r"^[ \t]*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:inf(inity)?))[ \t]*$"


class FieldColumns:
    """Collected columns of bytes."""

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

