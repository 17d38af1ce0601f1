"""Rows that are in memory before a call is paid for, so that no source can fail between the spend and the answer.

A file may be moved, a relation dropped, a connection be busy, between the spend and the reading: the call would be
paid for and have no answer.  So what a call reads is read first, and looked at by nobody: no value decides whether the
spend is made.  What can fail here is the reading itself, by a fault of the disk, the engine or the network, or because
the source has other rows than were counted; a cell that a cast cannot read was refused when the table was made, where
every declared column was computed for every row.  The time of reading comes before the spend rather than after it.

Rows that are summed where they are, being too many for memory, are counted again instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dpcausal.data import records
from dpcausal.data.persons import many
from dpcausal.data.remote_blocks import WorkerBlocks
from dpcausal.data.source import Collected, Declared, Source
from dpcausal.data.sources.fingerprint import NOTHING_SPENT
from dpcausal.data.sources.origin import Origin
from dpcausal.errors import SchemaError
from dpcausal.privacy.sensitivity import Unit

if TYPE_CHECKING:
    from dpcausal.data.panels.panel import Panel
    from dpcausal.data.table import Table

OTHER_ROWS = f"the frame no longer has the rows that were counted: {NOTHING_SPENT}"


class HeldSource(Source):
    """Some columns of a source, in memory; any other column is still read from the source."""

    def __init__(self, source: Source, names: Sequence[str], collected: Collected) -> None:
        self.backend, self.names, self.ordered = source.backend, source.names, source.ordered
        self.computed = source.computed
        self._source, self._collected = source, collected
        self._declared = {name: source.declared(name) for name in names}

    def declared(self, name: str) -> Declared:
        return self._declared[name] if name in self._declared else self._source.declared(name)

    def count(self) -> int:
        return len(self._collected)

    def collect(self, names: Sequence[str]) -> Collected:
        return self._collected if set(names) <= set(self._declared) else self._source.collect(names)


def held_table(table: Table, names: Sequence[str], in_memory: bool) -> Table:
    """Return the table with the rows of some columns in memory, or as it is where they stay with their engine.
    ``in_memory``: the question needs all of them in memory."""
    spec, source = table.spec, table.spec.source
    many_rows = spec.unit is Unit.ROW and spec.n > records.HELD and not in_memory
    if source.afar or WorkerBlocks.of(spec) or many_rows:
        if source.lazy and source.count() != spec.rows:
            raise SchemaError(OTHER_ROWS)
        return table
    if not (needed := spec.needed(names)):
        return table
    collected = source.collect(needed)
    if len(collected) != spec.rows or spec.modified:
        raise SchemaError(OTHER_ROWS)
    rows = HeldSource(source, needed, collected)
    if spec.person is not None and many(rows, spec.person) != table.n:
        raise SchemaError(OTHER_ROWS)
    return table.with_spec(replace(spec, source=rows, origin=Origin()))


def held_panel(panel: Panel) -> Panel:
    rows = panel._cells.donor_rows()
    panel._cells.confirm()  # the file may have changed while it was read
    return panel.with_cells(replace(panel._cells, donor_rows=lambda: rows, confirm=lambda: None))
