"""Records that stay with the workers of an engine: assigned to blocks there by hashes of ids; whole numbers come back.

A group of blocks is simulated where one worker has all its rows, as it would be in memory.  Whoever deals or gathers
fails as a whole, without a figure; what fails inside a block is that block's own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcausal.arrays import Integers
from dpcausal.data.persons import Persons, names_of
from dpcausal.data.records import CHANGED, HELD, Reading, Rows, TableSpec
from dpcausal.data.schema import Schema
from dpcausal.data.source import Collected, Gathering, Kind, Sums
from dpcausal.errors import SchemaError
from dpcausal.privacy.sensitivity import Unit
from dpcausal.privacy.unpicklable import hash_of_text, scrambled

Parts = list[tuple[int, Integers]]
"""Blocks by their numbers, and the places of their rows."""

Each = Callable[[Any, Parts], Sequence[Sequence[int]]]
"""What blocks of some records say, the same number of whole numbers each: picklable, total."""

GROUP = 1 << 18
"""About as many rows come to one worker at a time, if no block has more."""


@dataclass(frozen=True)
class PublicTableInfo:
    schema: Schema


Piece = tuple[Rows, list[str | None]]
"""Some records, and who each is of."""


@dataclass(frozen=True)
class BlockAssigner:
    """What a worker makes of a batch: a piece for each group, ``None`` of no rows; rows of nobody are in the first."""

    reading: Reading
    person: str
    fields: bool  # of a text file
    blocks: int
    salt: int
    groups: int

    def __call__(self, collected: Collected) -> list[Piece | None]:
        (places, ids), rows = names_of(collected, self.person, self.fields), self.reading.rows(collected)
        keys = np.array([0 if text is None else hash_of_text(text, "block") for text in ids], dtype=np.int64)
        of_ids = np.where([text is None for text in ids], 0, blocks_of(keys, self.salt, self.blocks) % self.groups)
        group = of_ids[places]
        group_rows = [np.flatnonzero(group == one) for one in range(self.groups)]
        return [(rows.at(part), [ids[place] for place in places[part]]) if len(part) else None for part in group_rows]


@dataclass(frozen=True)
class BlockReducer:
    """What a worker makes of all pieces of a group: how many persons, and for each block 1 and what it says."""

    assigner: BlockAssigner
    by_value: bool
    width: int
    made: Callable[[Rows], Any]
    each: Each

    def __call__(self, pieces: Sequence[Piece]) -> Sums:
        texts = [text for _, some in pieces for text in some]
        persons, rows = Persons.named(texts), Rows.joined([rows for rows, _ in pieces])
        if self.by_value:
            rows, persons = rows.by_value(persons)
        table = np.zeros((self.assigner.blocks, 1 + self.width), dtype=np.int64)
        if persons.n:
            group_rows = blocks_of(persons.keys, self.assigner.salt, self.assigner.blocks)
            order = np.argsort(group_rows, kind="stable")
            numbers, starts = np.unique(group_rows[order], return_index=True)
            parts = list(zip(numbers.tolist(), np.split(order, starts[1:]), strict=True))
            private = self.made(rows.one_each(persons, by_key=True))
            table[numbers] = np.column_stack([np.ones_like(numbers), np.asarray(self.each(private, parts))])
        return len(texts), np.concatenate([[persons.n], table.ravel()])


def blocks_of(keys: Integers, salt: int, blocks: int) -> Integers:
    return (scrambled(keys, salt) % np.uint64(blocks)).astype(np.int64)


class WorkerBlocks:
    """The records of persons in blocks, where they are."""

    def __init__(self, table: TableSpec, names: tuple[str, ...], made: Callable[[Rows], Any]) -> None:
        self._table, self._names, self._made = table, names, made

    @staticmethod
    def of(table: TableSpec) -> bool:
        """Whether blocks of a table are simulated by workers: from public facts."""
        source = table.source
        many = table.rows > HELD and (source.has_workers or not source.ordered)
        return table.unit is Unit.PERSON and (source.afar or many)

    def each(self, blocks: int, salt: int, width: int, each: Each) -> Integers:
        """Return what each block says, shape (blocks, width)."""
        table, reading = self._table, Reading.of(self._table, self._names)
        assigner = _assigner(table, reading, blocks, salt)
        total = _gathered(table, assigner, BlockReducer(assigner, not table.source.ordered, width, self._made, each))
        sums = total[1:].reshape(blocks, 1 + width)
        if total[0] != table.n or (sums[:, 0] > 1).any():
            raise SchemaError(CHANGED)
        empty = np.flatnonzero(sums[:, 0] == 0)
        if len(empty):  # nobody is there, so no worker answered for them
            nobody = self._made(reading.none())
            parts = [(block, np.empty(0, dtype=np.int64)) for block in empty.tolist()]
            sums[empty, 1:] = np.asarray(each(nobody, parts))
        return sums[:, 1:]


def persons_in(table: TableSpec) -> int:
    reading = Reading((), {}, frozenset(), (), "drop", None)
    return int(_gathered(table, _assigner(table, reading, table.rows, 0), _count)[0])


def _assigner(table: TableSpec, reading: Reading, blocks: int, salt: int) -> BlockAssigner:
    person, groups = str(table.person), max(1, min(blocks, -(-table.rows // GROUP)))
    return BlockAssigner(reading, person, table.source.declared(person).kind is Kind.FIELD, blocks, salt, groups)


def _gathered(table: TableSpec, assigner: BlockAssigner, gather: Gathering) -> Integers:
    names = tuple(dict.fromkeys((*assigner.reading.needed, assigner.person)))
    return table.whole(lambda: table.source.grouped(names, assigner, gather, assigner.groups))


def _count(pieces: Sequence[Piece]) -> Sums:
    texts = [text for _, some in pieces for text in some]
    return len(texts), np.array([len(set(texts) - {None})], dtype=np.int64)
