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
        if guarded_read(lambda: isolated_process_wide(lambda: _changes(self._frame)), _UNREAD):
            raise SchemaError(
                "the dask query samples, or computes from rows that it shuffles what depends on their order, as a sum "
                "of floats does, so its rows would not be the same each time they are read: make the table from a "
                "copy that was written"
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
            yield frame_source(isolated_process_wide(part.compute)).collect(names)

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
    return all(_by_row(one) or _steady_leaf(one) or _name(one) in _IN_PLACE for one in frame.expr.walk())


def _by_row(step: Any) -> bool:
    """Return whether a step makes each row of that row: of no place of rows, which an index of them would give."""
    from dask.dataframe.dask_expr._expr import Elemwise

    name = _name(step)
    if name == "ResetIndex":
        return bool(step.operand("drop"))
    return (isinstance(step, Elemwise) and "Index" not in name) or name in _BY_ROW


def _steady_leaf(step: Any) -> bool:
    """Return whether rows come from a file, an array, a function of a partition's number, or pandas as they lie there:
    by default Dask sorts a pandas frame by its index."""
    from pandas import RangeIndex

    name = _name(step)
    if name == "FromPandas":
        index = step.operand("frame")._data.index
        return not step.operand("sort") or type(index) is RangeIndex
    return name.startswith(("ReadParquet", "ReadCSV")) or name in ("FromArray", "FromMap", "FromMapProjectable")


def _changes(frame: Any) -> bool:
    steps = list(frame.expr.walk())
    if any(_name(one).startswith("Sample") for one in steps):
        return True
    lowered = map(_name, frame.optimize(fuse=False).expr.walk())
    shuffles = any(re.search("Shuffle|HashJoin|BroadcastJoin|JoinRecursive", name) for name in lowered)
    return shuffles and not all((_by_row(one) or _without_order(one)) and not _reads_places(one) for one in steps)


def _reads_places(step: Any) -> bool:
    name = _name(step)
    if name == "Merge":
        sides = ("left", "right")
        return any(step.operand(f"{side}_index") and not _has_index_of_values(step.operand(side)) for side in sides)
    if name == "Concat":
        return step.operand("axis") not in (0, "index")
    if name in ("Partitions", "PartitionsFiltered"):  # a partition is divided by place
        return any(_name(one).startswith("Repartition") for one in step.walk())
    names = ("index", "level_", *(str(one) for one in step._meta.index.names if one)) if name == "Query" else ()
    named = any(one in step.operand("_expr") for one in names)
    read = name.startswith("Loc") or (name == "ResetIndex" and not step.operand("drop"))
    return (named or read) and not _has_index_of_values(step.operand("frame"))


def _has_index_of_values(frame: Any) -> bool:
    while _name(frame) not in ("ResetIndex", "Merge") and (_by_row(frame) or _name(frame) == "Projection"):
        frame = next(iter(frame.dependencies()), None)
    return _steady_leaf(frame) or _name(frame) in _INDEXED


def _without_order(step: Any) -> bool:
    from dask.dataframe.dask_expr.io.io import IO
    from pandas.api.types import is_integer_dtype

    name = _name(step)
    if name == "Sum":
        return all(map(is_integer_dtype, step._meta.dtypes if step.ndim == 2 else [step._meta.dtype]))
    if name == "DropDuplicates":
        return step.operand("subset") is None
    if name == "GroupbyAggregation":
        functions = step.operand("arg")
        listed = functions.values() if isinstance(functions, dict) else [functions]
        return all(one in _AGGREGATED for part in listed for one in (part if isinstance(part, list) else [part]))
    return isinstance(step, IO) or _steady_leaf(step) or name in _STEADY


def _name(step: Any) -> str:
    return type(step).__name__


_BY_ROW = {"Filter", "Loc", "Query", "DropnaFrame", "DropnaSeries", "FillnaCheck", "Literal"}
"""Steps that keep rows by what they hold, in place."""

_PARTS = {"Partitions", "PartitionsFiltered", "Repartition", "RepartitionToFewer", "RepartitionToMore",
          "RepartitionSize"}  # fmt: skip
_IN_PLACE = {*_PARTS, "MapPartitions"}
"""Steps that keep the order of rows; a function of your own is not looked into."""

_STEADY = {*_PARTS, "FromPandas", "FromDelayed", "DelayedsExpr", "_DelayedExpr", "Projection", "ResetIndex", "Merge",
           "SemiMerge", "Shuffle", "RearrangeByColumn", "SetIndex", "SortValues", "Concat", "Count", "Size", "Min",
           "Max", "NUnique", "ValueCounts", "Any", "All", "Len"}  # fmt: skip
"""Steps that give the same rows whatever order they come in."""

_INDEXED = {"SetIndex", "GroupbyAggregation", "ValueCounts", "Sum", "Count", "Size", "Min", "Max", "NUnique",
            "Any", "All"}  # fmt: skip
"""Steps whose index holds values, or names of columns."""

_AGGREGATED = ("count", "size", "min", "max", "nunique")


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
