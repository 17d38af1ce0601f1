"""The columns of noisy cells: their levels, and the numbers whose sums are released."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from dpcausal.codec import storable
from dpcausal.data.coding import cuts_of
from dpcausal.data.schema import Bounded, Column
from dpcausal.errors import ParameterError
from dpcausal.releases.saved import Form


@storable("Value")
@dataclass(frozen=True)
class Value:
    """A number whose sums were released: its name, range and degree of its corners; of two levels, the last counted."""

    name: str
    lower: float
    width: float
    degree: int
    levels: tuple[str, ...] = ()

    @property
    def event(self) -> str | None:
        """The level whose frequency is the mean; ``None`` of a number."""
        return self.levels[1] if self.levels else None

    def payload(self) -> dict[str, Any]:
        """Return it as JSON's types."""
        return vars(self) | {"levels": list(self.levels)}

    @classmethod
    def from_payload(cls, form: Form, least: int) -> Value:
        """Return the value that its text describes, of at least such a degree."""
        degree = min(form.whole("degree", least), 2)
        levels = form.words("levels") if form.has("levels") else ()
        if levels and (degree != 1 or len(set(levels)) != 2 or len(levels) != 2):
            raise form.refuse("levels")
        return cls(form.word("name"), float(form.array("lower")), form.size("width"), degree, levels)


COUNTS_ONLY = Value("records", 0.0, 1.0, 0)
"""In place of the values where only records are counted."""


def levels_of(column: Column) -> tuple[str, ...]:
    """Return the names of a column's levels, or of the parts that it is cut into: public."""
    if not isinstance(column, Bounded):
        return tuple(map(str, column.labels))
    cuts = [cut_text(cut) for cut in cuts_of(column)]
    if not cuts:
        return ("all",)
    return (f"below {cuts[0]}", *(f"{low} to {high}" for low, high in pairwise(cuts)),
            f"{cuts[-1]} or more")  # fmt: skip


def cut_text(cut: float) -> str:
    """Return a cut in words: 15 digits, so that 0.1 + 0.2 is 0.3 and whole numbers are whole."""
    return f"{cut:.15g}"


def value_of(name: str, column: Column) -> Value:
    """Return how a column's sums are released: numbers at three corners, two levels at two."""
    if isinstance(column, Bounded):
        return Value(name, column.lower, column.width, 2)
    if len(column) == 2:
        first, last = map(str, column.labels)
        return Value(name, 0.0, 1.0, 1, (first, last))
    raise ParameterError(f"{name!r} is neither Bounded nor of two levels: it has no mean")
