"""A source of rows: what its columns are declared to hold, how many rows there are, and the columns on request.

Nothing that a back end says about the values leaves through here: its errors and warnings may quote records, so
``guarded_read`` replaces them by a rule and drops the chain of exceptions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcausal.errors import SchemaError
from dpcausal.privacy.sandbox import isolated_or_default

Result = TypeVar("Result")

_FAILED: Any = object()

CHUNK = 1 << 18
"""Rows turned into Python objects at a time, so that a long column of text does not exist twice."""

BATCH = 1 << 15
"""Rows summed over at a time: their columns stay in a processor's cache."""


class Kind(Enum):
    INTEGER = "integers"
    FLOAT = "floats"
    DECIMAL = "decimals"
    BOOLEAN = "booleans"
    TEXT = "text"
    OBJECT = "Python objects"
    DATE = "dates"
    EMPTY = "nothing but nulls"
    FIELD = "the fields of a text file"
    UNFIT = "neither numbers, text, booleans nor dates"


@dataclass(frozen=True)
class Declared:
    """A column's declared type: of a categorical the kind of its categories. ``dtype`` is the bare name of the type,
    without its parameters: the categories of an enum may be values."""

    kind: Kind
    dtype: str


Distinct = tuple[NDArray[np.int64], Sequence[object]]


class Collected(Protocol):
    labels: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    """What codes of a column mean, by their texts, where a file says so."""

    date_order: str = "year-month-day"
    """In which order a text gives a date."""

    def __len__(self) -> int: ...

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column as float64, each value rounded to nearest once; what is no number is NaN."""

    def integers(self, name: str) -> NDArray[np.int64] | None:
        """Return a column of integers without nulls as int64, ``None`` for any other."""

    def distinct(self, name: str) -> Distinct | None:
        """Return the place of each value among the distinct ones, −1 for a null, and these; ``None`` if not known."""

    def objects(self, name: str) -> Iterator[Sequence[object]]:
        """Yield a column as Python objects, ``CHUNK`` rows at a time; a null is None, NaN or pandas.NA."""


StreamedRows = Callable[[Collected], NDArray[np.int64]]

Sums = tuple[int, NDArray[np.int64] | None]
"""How many rows there were, −1 if they cannot be read, and the sum of a function of them, None of no rows."""

FAILED: Sums = (-1, None)


def added_sums(parts: Iterable[Sums]) -> Sums:
    """Return the sums of parts, ``FAILED`` if one is."""
    rows, total = 0, None
    for many, part in parts:
        if many < 0:
            return FAILED
        rows += many
        if part is not None:
            total = part if total is None else total + part
    return rows, total


def nothing(collected: Collected) -> NDArray[np.int64]:
    """Return a sum that needs every value and shows none."""
    return np.zeros(1, dtype=np.int64)


Assigning = Callable[[Collected], Sequence[Any]]
"""Makes a piece for each group, ``None`` of no rows, of a batch."""

Gathering = Callable[[Sequence[Any]], Sums]
"""Sums over all pieces of one group."""

WAVE = 64
"""Groups that one process holds at a time."""


class Source(ABC):
    """Where the rows are: they can be collected, or summed over, as they come, a batch at a time."""

    backend: str
    names: tuple[str, ...]

    lazy = False
    """Whether the rows are elsewhere, in an engine that counts them when it reads them."""

    computed = False
    """Whether values are computed or decoded as they are read, which one row can make fail."""

    afar = False
    """Whether the rows stay where they are, however few."""

    has_workers = False
    """Whether several workers of an engine share the rows."""

    ordered = True
    """Whether the rows come in one order each time, which no record decides."""

    @abstractmethod
    def declared(self, name: str) -> Declared: ...

    @abstractmethod
    def count(self) -> int: ...

    @abstractmethod
    def collect(self, names: Sequence[str]) -> Collected:
        """Bring these columns, and no others, into memory."""

    def stream(self, names: Sequence[str]) -> Iterator[Collected]:
        """Yield these columns in batches of at most about ``BATCH`` rows, in any order, each row once."""
        yield self.collect(names)

    def categories(self, name: str) -> Sequence[object]:
        """Return the categories of a column that is declared an ordered categorical, in its order; else none."""
        del name
        return ()

    def in_turn(self, action: Callable[[], Result]) -> Result:
        """Return ``action()``, which reads all rows once; a connection that is busy is waited for."""
        return action()

    def evaluate(self, names: Sequence[str]) -> None:
        """Compute every value of some columns once, and keep none: a cast that fails, or a damaged page, fails here."""
        del names  # what is in memory is there

    def summed(self, names: Sequence[str], function: StreamedRows) -> Sums:
        """Return how many rows there were, and the sum of a function of their batches."""
        return self.in_turn(lambda: added_sums((len(one), function(one)) for one in self.stream(names)))

    def grouped(self, names: Sequence[str], assign: Assigning, gather: Gathering, groups: int) -> Sums:
        """Return the sums of what is made of each group's pieces together: some groups a pass, in bounded memory."""

        def gathered(first: int) -> list[Sums]:
            wave: list[list[Any]] = [[] for _ in range(min(WAVE, groups - first))]
            for collected in self.stream(names):
                for pieces, piece in zip(wave, assign(collected)[first : first + WAVE], strict=True):
                    pieces += [] if piece is None else [piece]
            return [gather(pieces) for pieces in wave if pieces]

        waves = (self.in_turn(partial(gathered, first)) for first in range(0, groups, WAVE))
        return added_sums(part for wave in waves for part in wave)


def guarded_read(action: Callable[[], Result], rule: str) -> Result:
    """Return ``action()``, with output suppressed; whatever it raises becomes a SchemaError stating ``rule``.

    *Guarantee*: the error carries neither the text nor the chain nor the traceback of the first one.
    """
    result: Result = isolated_or_default(action, _FAILED)
    if result is _FAILED:
        raise SchemaError(f"{rule}; the cause is withheld, since it may quote values")
    return result
