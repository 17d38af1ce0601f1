"""Persons of many rows: one record each, in an order and from a row that hashes choose; or parts that sum to one.

A person's record of a question is the kept row of least hash among the person's own, or none.  So replacing all rows of
a person, however many, replaces one record of N.  Sums take all kept rows instead, each as a part of its person.  A
hash is of the id alone, tagged by its use, and the same whoever holds the frame; persons are distinguished by their
ids, never by hashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcausal.arrays import Integers, Mask, Reals
from dpcausal.data.coding import check_declared, check_name, scalar
from dpcausal.data.columns import Bounded
from dpcausal.data.source import Collected, Declared, Kind, Source, guarded_read
from dpcausal.errors import ParameterError, RowLimitError, SchemaError, Setting
from dpcausal.privacy.unpicklable import hash_of_text, scrambled

IDS = ("private", "public")
"""What ``ids=`` takes."""

GROUPS = 1024
"""So many groups have the clusters of rows: by a public hash."""

MOST_ROWS = 2**20
"""Rows of one person that count in a sum, those of least hash: a float sum of that many stays exact enough."""

MOST_HELD = 2**27
"""Persons of one table: sums over more, in units of 2^-26, would not be exact as floats."""

_FITS = {Kind.TEXT, Kind.INTEGER, Kind.OBJECT, Kind.FIELD}


def check_id(name: str, declared: Declared, ids: str, named: str = "person") -> None:
    if ids not in IDS:
        raise ParameterError(f"ids must be one of {', '.join(IDS)}")
    if declared.kind not in _FITS:
        raise SchemaError(
            f"column {name!r}: a {named} is named by a text or a whole number, but its declared type is "
            f"{declared.dtype} ({declared.kind.value}); convert it, in pandas to 'Int64'"
        )


def check_max_rows_per_person(limit: object) -> None:
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_ROWS):
        raise ParameterError(f"max_rows_per_person must be a whole number of rows of a person, 1 to {MOST_ROWS}")


def checked_weight(weight: object, source: Source) -> tuple[str, Bounded]:
    if not isinstance(weight, (tuple, list)) or len(weight) != 2 or not isinstance(weight[0], str):
        raise ParameterError('weight must be the name of a column and the largest weight, as ("w", 8.0)')
    name, largest = weight
    if name not in source.names:
        raise SchemaError("weight must name a column of the frame")
    check_name(name)
    if isinstance(largest, bool) or not isinstance(largest, (int, float)) or not 1e-9 <= largest <= 1e9:
        raise ParameterError("the largest weight must be a number between 1e-9 and 1e9")
    column = Bounded(0, largest)
    check_declared(name, column, source.declared(name))
    return name, column


def checked_cluster(name: object, source: Source) -> str:
    if not isinstance(name, str) or name not in source.names:
        raise ParameterError("cluster must be the name of a column of the frame", argument="cluster", rule="column")
    check_id(check_name(name), source.declared(name), "private", "cluster")
    return name


def check_number(n: int, most: int | None) -> None:
    if n < 1:
        raise SchemaError("a table needs at least one row, of at least one person if persons are protected")
    if most is not None and n > most:
        raise RowLimitError(f"the table has n = {n} records, more than max_rows = {most}: raise it if memory allows")


def check_order(source: Source, person: str | None) -> None:
    """Refuse rows without an order: they are assigned to blocks by place, and one record could move all others."""
    if not source.ordered and person is None:
        raise ParameterError(
            f"this question needs its rows in one order that no record changes, and this {source.backend} query gives "
            "them none", argument="table", rule="row-order",
            hint=("name a column that identifies them with ", Setting("person"), "; or make the table from a file; or "
                  "use moments, cells or contrasts"),
        )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Persons:
    """Whose the rows are: ``codes`` counts persons by the order of their hashes, −1 for a row without an id."""

    codes: Integers
    keys: Integers
    """Of each person, by which blocks are assigned."""

    @property
    def n(self) -> int:
        return len(self.keys)

    @classmethod
    def of(cls, collected: Collected, name: str, fields: bool) -> Persons:
        places, texts = names_of(collected, name, fields)
        known = cls.named(texts)
        return cls(known.codes[places], known.keys)

    @classmethod
    def named(cls, texts: Sequence[str | None]) -> Persons:
        known = sorted(
            {text for text in texts if text is not None}, key=lambda text: (hash_of_text(text, "order"), text)
        )
        places = {text: place for place, text in enumerate(known)}
        codes = np.fromiter((-1 if text is None else places[text] for text in texts), np.int64, len(texts))
        return cls(codes, np.array([hash_of_text(text, "block") for text in known], dtype=np.int64))

    def chosen(self, complete: Mask) -> tuple[Integers, Mask]:
        """Return the row of least hash that represents each person, a kept one if any is, and whether it is kept."""
        rows, _, starts = self._by_hash(complete)
        return rows[starts], complete[rows[starts]]

    def parts(self, complete: Mask, most: int | None) -> tuple[Integers, Integers, Reals]:
        """Return the rows that count, whose each is, and what part of the person, 1/r of r rows. With ``most`` they are
        the first so many by hash.  The parts of a person sum to at most 1."""
        rows, codes, starts = self._by_hash(complete)
        counts = complete[rows] & (np.arange(len(rows)) - starts[codes] < (most or MOST_ROWS))
        return rows[counts], codes[counts], 1.0 / np.bincount(codes[counts], minlength=self.n)[codes[counts]]

    def _by_hash(self, complete: Mask) -> tuple[Integers, Integers, Integers]:
        """Return the rows of persons, kept ones first, by hash; whose they are; where each person begins. The hash is
        of the person's key and the row's place among the person's own rows: no other person's rows matter."""
        rows = np.flatnonzero(self.codes >= 0)
        codes = self.codes[rows]
        by_person = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[by_person], np.arange(self.n))
        places = np.empty_like(codes)
        places[by_person] = np.arange(len(codes)) - starts[codes[by_person]]
        least = scrambled(self.keys[codes] ^ (places << 1), 1)
        order = np.lexsort((places, least, ~complete[rows], codes))
        return rows[order], codes[order], starts


def many(source: Source, name: str) -> int:
    fields = source.declared(name).kind is Kind.FIELD

    def known() -> set[str | None]:
        return {text for part in source.stream([name]) for text in names_of(part, name, fields)[1]}

    return len(guarded_read(lambda: source.in_turn(known), f"the {source.backend} ids cannot be read") - {None})


def names_of(collected: Collected, name: str, fields: bool) -> tuple[Integers, list[str | None]]:
    """Return the place of each row's id among the ids that occur, and these, ``None`` for what names nobody."""
    if (integers := collected.integers(name)) is not None:
        numbers, places = np.unique(integers, return_inverse=True)
        return places, [*map(str, numbers.tolist())]
    if (coded := collected.distinct(name)) is not None:
        used, places = np.unique(coded[0], return_inverse=True)
        return places, [None if place < 0 else _id_text(coded[1][place], fields) for place in used.tolist()]
    known: dict[str | None, int] = {}
    texts = (_id_text(value, fields) for chunk in collected.objects(name) for value in chunk)
    return np.fromiter((known.setdefault(text, len(known)) for text in texts), np.int64, len(collected)), [*known]


def cluster_groups(collected: Collected, name: str, fields: bool) -> Integers:
    """Return the group of each row by a public hash of its cluster's name; rows without a name are one cluster."""
    places, texts = names_of(collected, name, fields)
    return np.array([hash_of_text(text or "", "cluster") % GROUPS for text in texts], dtype=np.int64)[places]


def _id_text(value: object, fields: bool) -> str | None:
    plain = scalar(value)
    if type(plain) is str:
        return plain if plain or not fields else None
    if type(plain) is not int:
        return None
    return str(plain) if plain.bit_length() <= 4096 else hex(plain)  # Python writes so long a number in no other way
