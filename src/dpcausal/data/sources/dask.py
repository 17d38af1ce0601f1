"""Dask frames: each partition is summed where it is, and only whole numbers come back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dpcausal.data.source import (
    FAILED,
    Assigning,
    Collected,
    Declared,
    Gathering,
    Source,
    StreamedRows,
    Sums,
    added_sums,
    guarded_read,
    nothing,
)
from dpcausal.data.sources.frame import frame_source
from dpcausal.errors import ParameterError, SchemaError
from dpcausal.privacy.sandbox import isolated_or_default, isolated_process_wide

_UNREAD = "the dask frame cannot be read"


class DaskSource(Source):
    backend = "dask"
    lazy = computed = has_workers = True

    def __init__(self, frame: Any) -> None:
        if not hasattr(frame, "map_partitions") or not hasattr(frame, "columns"):
            raise ParameterError("of Dask a frame must be a dask.dataframe.DataFrame")
        self._frame = frame
        self._typed = frame_source(frame._meta)
        self.names = self._typed.names
        self.ordered = isolated_or_default(lambda: _ordered(frame), False)

    def declared(self, name: str) -> Declared:
        return self._typed.declared(name)

    def count(self) -> int:
        return int(guarded_read(lambda: isolated_process_wide(lambda: len(self._frame)), _UNREAD))

    def evaluate(self, names: Sequence[str]) -> None:
        if guarded_read(
            lambda: any(type(one).__name__.startswith("Sample") for one in self._frame.expr.walk()), _UNREAD
        ):
            raise SchemaError(
                "the dask query samples, so its rows would not be the same each time they are read: make the table "
                "from a copy that was written"
            )
        if self.summed(names, nothing) == FAILED:
            raise SchemaError(
                "the dask frame cannot compute its columns for every row, or not all partitions have the types declared"
            )

    def collect(self, names: Sequence[str]) -> Collected:
        frame = guarded_read(lambda: isolated_process_wide(self._frame[list(names)].compute), _UNREAD)
        return frame_source(frame).collect(names)

    def stream(self, names: Sequence[str]) -> Iterator[Collected]:
        for part in self._frame[list(names)].to_delayed():
            yield frame_source(part.compute()).collect(names)

    def summed(self, names: Sequence[str], function: StreamedRows) -> Sums:
        from dask.delayed import delayed

        def parts() -> Any:
            kernel = delayed(Partition(tuple(names), tuple(map(self.declared, names))).summed, pure=False)
            return delayed([kernel(part, function) for part in self._frame[list(names)].to_delayed()]).compute()

        return added_sums(guarded_read(lambda: isolated_process_wide(parts), _UNREAD))

    def grouped(self, names: Sequence[str], assign: Assigning, gather: Gathering, groups: int) -> Sums:
        from dask.delayed import delayed

        def computed() -> Any:
            kernel = delayed(Partition(tuple(names), tuple(map(self.declared, names))).assigned, pure=False)
            pieces = [kernel(part, assign) for part in self._frame[list(names)].to_delayed()]
            gathered = delayed(_gathered, pure=False)
            return delayed([gathered([piece[one] for piece in pieces], gather) for one in range(groups)]).compute()

        return added_sums(guarded_read(lambda: isolated_process_wide(computed), _UNREAD))


def _ordered(frame: Any) -> bool:
    from dask.dataframe import dask_expr

    steady = (dask_expr._expr.Blockwise, dask_expr.io.io.IO)
    names = ("Repartition", "Partitions", "Delayeds")
    steps = [(isinstance(one, steady), type(one).__name__) for one in frame.expr.walk()]
    return all((known or name.startswith(names)) and not re.search("Head|Tail|Concat", name) for known, name in steps)


@dataclass(frozen=True)
class Partition:
    """What a worker does with a partition of the types declared; it never raises."""

    names: tuple[str, ...]
    types: tuple[Declared, ...]

    def summed(self, frame: Any, function: StreamedRows) -> Sums:
        sums: Sums = self._result(frame, lambda source: source.summed(self.names, function), FAILED)
        return sums

    def assigned(self, frame: Any, assign: Assigning) -> Any:
        return self._result(frame, lambda source: assign(source.collect(self.names)), _Failed())

    def _result(self, frame: Any, action: Callable[[Source], Any], failed: Any) -> Any:
        def acted() -> Any:
            source = frame_source(frame)
            # One null makes floats of a partition's integers, if nobody holds it to its declaration: others change.
            return action(source) if tuple(map(source.declared, self.names)) == self.types else failed

        return isolated_or_default(acted, failed)


class _Failed:
    """A partition that could not be assigned, in every group."""

    def __getitem__(self, group: int) -> _Failed:
        return self


def _gathered(pieces: Sequence[Any], gather: Gathering) -> Sums:
    if any(isinstance(piece, _Failed) for piece in pieces):
        return FAILED
    some = [piece for piece in pieces if piece is not None]
    return isolated_or_default(lambda: gather(some), FAILED) if some else (0, None)


source = DaskSource
