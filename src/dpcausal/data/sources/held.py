"""Rows that are in memory before a call is paid for, so that no source can fail between the spend and the answer.

A file may be moved, a relation dropped, a connection be busy, between the spend and the reading: the call would be
paid for and have no answer.  So what a call reads is read first, and looked at by nobody: no value decides whether the
spend is made.  What can fail here is the reading itself, by a fault of the disk, the engine or the network, or because
the source has other rows than were counted; a cell that a cast cannot read was refused when the table was made, where
every declared column was computed for every row.  The time of reading comes before the spend rather than after it.

Rows that are summed where they are, being too many for memory, are counted again instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from dpcausal.data import reader as reading
from dpcausal.data.persons import many
from dpcausal.data.remote_blocks import WorkerBlocks
from dpcausal.data.source import Collected, Declared, Source, Streaming
from dpcausal.data.sources.fingerprint import NOTHING_SPENT, was_modified
from dpcausal.data.sources.origin import Origin
from dpcausal.errors import SchemaError
from dpcausal.privacy.sensitivity import Unit

if TYPE_CHECKING:
    from dpcausal.data.panels.panel import Panel
    from dpcausal.data.table import Table

One = TypeVar("One", bound="Table | Panel")

OTHER_ROWS = f"the frame no longer has the rows that were counted: {NOTHING_SPENT}"


class HeldSource(Streaming):
    """Some columns of a source, in memory; any other column is still read from the source."""

    def __init__(self, source: Source, names: Sequence[str], collected: Collected) -> None:
        self.backend, self.names, self.ordered = source.backend, source.names, source.ordered
        self._source, self._collected = source, collected
        self._declared = {name: source.declared(name) for name in names}

    def declared(self, name: str) -> Declared:
        return self._declared[name] if name in self._declared else self._source.declared(name)

    def count(self) -> int:
        return len(self._collected)

    def collect(self, names: Sequence[str]) -> Collected:
        return self._collected if set(names) <= set(self._declared) else self._source.collect(names)

    def stream(self, names: Sequence[str]) -> Iterator[Collected]:
        yield self.collect(names)


def held_table(table: Table, names: Sequence[str], in_memory: bool) -> Table:
    """Return the table with the rows of some columns in memory, or as it is where they stay with their engine.

    ``in_memory``: the question needs all of them in memory.  A SchemaError where they are no longer those that were
    counted.
    """
    source, spec = table._source, table.spec
    stays = (
        source.afar or WorkerBlocks.of(spec) or (table.unit is Unit.ROW and table.n > reading.HELD and not in_memory)
    )
    if stays:
        if source.lazy and source.count() != table._rows:
            raise SchemaError(OTHER_ROWS)
        return table
    person = [] if table._person is None else [table._person]
    needed = tuple(dict.fromkeys([*reading.Reading.of(spec, tuple(names)).needed, *person]))
    if not needed:
        return table
    collected = source.collect(needed)
    if len(collected) != table._rows or was_modified(table.origin.stamp):
        raise SchemaError(OTHER_ROWS)
    rows = HeldSource(source, needed, collected)
    if person and many(rows, *person) != table.n:
        raise SchemaError(OTHER_ROWS)
    return _with(table, _source=rows, _origin=Origin())


def held_panel(panel: Panel) -> Panel:
    """Return the panel with its donors' columns in memory."""
    columns = [panel._cells.donor_rows(place) for place in range(1 + len(panel.covariates))]
    panel._cells.confirm()  # the file may have changed while it was read
    return _with(panel, _cells=replace(panel._cells, donor_rows=columns.__getitem__, confirm=_nothing))


def _with(single: One, **fields: object) -> One:
    copy: One = object.__new__(type(single))
    for slot in type(single).__slots__:
        object.__setattr__(copy, slot, fields.get(slot, getattr(single, slot)))
    return copy


def _nothing() -> None:
    """Confirm nothing: the rows are in memory."""
