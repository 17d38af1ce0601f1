"""Dask frames: each partition is summed where it is, and only whole numbers come back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dpcausal.data.source import (
    FAILED,
    Collected,
    Dealing,
    Declared,
    Gathering,
    StreamedRows,
    Streaming,
    Sums,
    added,
    nothing,
    withheld,
)
from dpcausal.data.sources.frame import frame_source
from dpcausal.errors import ParameterError, SchemaError
from dpcausal.privacy.sandbox import isolated_or_default, isolated_process_wide

_UNREAD = "the dask frame cannot be read"


class DaskSource(Streaming):
    """A Dask frame, its partitions in their order."""

    backend = "dask"
    lazy = has_workers = True

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
        return int(withheld(lambda: isolated_process_wide(lambda: len(self._frame)), _UNREAD))

    def evaluate(self, names: Sequence[str]) -> None:
        """Compute every value of some columns once, and keep none."""
        if withheld(lambda: any(type(one).__name__.startswith("Sample") for one in self._frame.expr.walk()), _UNREAD):
            raise SchemaError(
                "the dask query samples, so its rows would not be the same each time they are read: make the table "
                "from a copy that was written"
            )
        if self.summed(names, nothing) == FAILED:
            raise SchemaError(
                "the dask frame cannot compute its columns for every row, or not all partitions have the types declared"
            )

    def collect(self, names: Sequence[str]) -> Collected:
        frame = withheld(lambda: isolated_process_wide(self._frame[list(names)].compute), _UNREAD)
        return frame_source(frame).collect(names)

    def stream(self, names: Sequence[str]) -> Iterator[Collected]:
        for part in self._frame[list(names)].to_delayed():
            yield frame_source(part.compute()).collect(names)

    def summed(self, names: Sequence[str], function: StreamedRows) -> Sums:
        """Return how many rows there were, and the sum of a function of their batches: each where its rows are."""
        from dask.delayed import delayed

        def parts() -> Any:
            kernel = delayed(Partition(tuple(names), function, tuple(map(self.declared, names))), pure=False)
            return delayed([kernel(part) for part in self._frame[list(names)].to_delayed()]).compute()

        return added(withheld(lambda: isolated_process_wide(parts), _UNREAD))

    def grouped(self, names: Sequence[str], deal: Dealing, gather: Gathering, groups: int) -> Sums:
        """Return the sums of what is made of each group's pieces together: a task a partition, then one a group."""
        from dask.delayed import delayed

        def computed() -> Any:
            kernel = Partition(tuple(names), nothing, tuple(map(self.declared, names)))
            pieces = [delayed(kernel.dealt, pure=False)(part, deal) for part in self._frame[list(names)].to_delayed()]
            gathered = delayed(_gathered, pure=False)
            return delayed([gathered([piece[one] for piece in pieces], gather) for one in range(groups)]).compute()

        return added(withheld(lambda: isolated_process_wide(computed), _UNREAD))


def _ordered(frame: Any) -> bool:
    from dask.dataframe import dask_expr

    steady = (dask_expr._expr.Blockwise, dask_expr.io.io.IO)
    names = ("Repartition", "Concat", "Partitions", "Head", "Delayeds")
    return all(isinstance(one, steady) or type(one).__name__.startswith(names) for one in frame.expr.walk())


@dataclass(frozen=True)
class Partition:
    """What a worker does with a partition: the number of its rows, −1 for a failure, and its sums.  It never raises."""

    names: tuple[str, ...]
    function: StreamedRows
    types: tuple[Declared, ...]

    def __call__(self, frame: Any) -> Sums:
        def summed() -> Sums:
            source = frame_source(frame)
            # One null makes floats of a partition's integers, if nobody holds it to its declaration: others change.
            same = tuple(map(source.declared, self.names)) == self.types
            return source.summed(self.names, self.function) if same else FAILED

        return isolated_or_default(summed, FAILED)

    def dealt(self, frame: Any, assigner: Dealing) -> Any:
        """Return a partition's piece for each group, or a failure in all of them."""

        def pieces() -> Any:
            source = frame_source(frame)
            same = tuple(map(source.declared, self.names)) == self.types
            return assigner(source.collect(self.names)) if same else _Failed()

        return isolated_or_default(pieces, _Failed())


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
