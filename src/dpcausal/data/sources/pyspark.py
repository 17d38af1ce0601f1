"""Spark frames: the rows stay with the workers, who send back how many there were and whole numbers.

A worker needs this package, of the same version.  What it does never raises, since Spark writes the words of what
fails to its logs, its event log and its pages.
"""

import importlib.util
import os
import pickle
import re
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcausal.data import source as border
from dpcausal.data.coding import check_texts
from dpcausal.data.source import (
    FAILED,
    Assigning,
    Collected,
    Declared,
    Gathering,
    Kind,
    Source,
    StreamedRows,
    Sums,
    added_sums,
    guarded_read,
    nothing,
)
from dpcausal.data.sources.frame import frame_source
from dpcausal.errors import MissingDependencyError, ParameterError, SchemaError
from dpcausal.privacy.sandbox import isolated_or_default

_KINDS = dict.fromkeys(("ByteType", "ShortType", "IntegerType", "LongType"), Kind.INTEGER)
_KINDS |= dict.fromkeys(("FloatType", "DoubleType"), Kind.FLOAT) | {"DecimalType": Kind.DECIMAL}
_KINDS |= {"BooleanType": Kind.BOOLEAN, "StringType": Kind.TEXT, "NullType": Kind.EMPTY}
_KINDS |= dict.fromkeys(("DateType", "TimestampType", "TimestampNTZType"), Kind.DATE)

_CHANGES = {
    "Sample", "GlobalLimit", "LocalLimit", "Offset", "Tail", "Deduplicate", "CurrentTimestamp", "CurrentDate", "Now",
    "LocalTimestamp", "CurrentBatchTimestamp", "RowNumber", "NTile", "NthValue", "Lag", "Lead", "AesEncrypt",
}  # fmt: skip
"""Parts of a query whose result the order of rows or the clock decides, although Spark takes them for deterministic."""

_STEADY = {
    "Count", "CountIf", "Max", "Min", "BitAndAgg", "BitOrAgg", "BitXorAgg", "BoolAnd", "BoolOr", "Percentile", "Median",
    "PivotFirst", "HyperLogLogPlusPlus",
}  # fmt: skip
"""Aggregates that no order of rows shows in; nor does it in a sum of what are no floats."""

_EXACT_MEAN = {"tinyint", "smallint"}
"""Spark adds whole numbers for a mean as doubles: those of so few bits are exact, as decimals are."""

_SURE_DIGITS = 28
"""The sum of decimals of at most this precision has ten more digits and does not overflow."""

_CLOCK = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
"""Texts that Spark casts to the current date or time."""

_RANKS = {"Rank", "DenseRank", "PercentRank"}
"""Functions of windows whose frame Spark writes as rows, but which are the same for rows that are tied."""

_UNREAD = "the spark frame cannot be read"
_NO_WORKERS = (
    "Spark's Python workers must be able to import this version of dpcausal: install it where they run, and set "
    "PYSPARK_PYTHON to that Python before the session starts"
)
_SUMS = "rows bigint, total binary"
_one_pass = threading.Lock()


class SparkSource(Source):
    """A Spark frame, whose rows come in no order."""

    backend = "spark"
    lazy = computed = afar = has_workers = True
    ordered = False

    def __init__(self, frame: Any) -> None:
        for package in ("pyarrow", "pandas"):
            if importlib.util.find_spec(package) is None:
                raise MissingDependencyError(package, "spark")
        if not hasattr(frame, "mapInArrow") or not hasattr(frame, "_jdf"):
            raise ParameterError(
                "of Spark a frame must be a pyspark.sql.DataFrame of a classic session: of pandas on Spark hand over "
                "frame.to_spark(); a session of Spark Connect does not show whether a query draws"
            )
        self._frame = frame
        fields = guarded_read(lambda: frame.schema.fields, _UNREAD)
        self.names = check_texts([field.name for field in fields])
        if len(set(self.names)) < len(self.names):
            raise SchemaError("the names of a frame's columns must differ from each other")
        self._types = {field.name: field.dataType for field in fields}

    def declared(self, name: str) -> Declared:
        dtype = self._types[name]
        return Declared(_KINDS.get(type(dtype).__name__, Kind.UNFIT), dtype.typeName())

    def count(self) -> int:
        return int(guarded_read(lambda: self._quietly(self._frame.count), _UNREAD))

    def evaluate(self, names: Sequence[str]) -> None:
        if guarded_read(lambda: self._frame.isStreaming or _changes(self._frame), _UNREAD):
            raise SchemaError(
                "the spark query draws, samples, limits, drops duplicates, asks the clock or depends on the order of "
                "rows, as a sum of floats does, so its rows would not be the same each time they are read: make the "
                "table from a copy that was written"
            )
        if not guarded_read(lambda: self._quietly(lambda: _workers_have_this(self._frame.sparkSession)), _NO_WORKERS):
            raise SchemaError(_NO_WORKERS)
        if self.summed(names, nothing) == FAILED:
            raise SchemaError("the spark frame cannot compute its columns for every row")

    def collect(self, names: Sequence[str]) -> Collected:
        from pyarrow import Table

        def table() -> Any:
            chosen = self._chosen(names)
            if hasattr(chosen, "toArrow"):
                batches = chosen.toArrow()
            else:
                from pyspark.sql.pandas.types import to_arrow_schema

                batches = Table.from_batches(chosen._collect_as_arrow(), to_arrow_schema(chosen.schema))
            return batches.rename_columns(list(names))

        return frame_source(guarded_read(lambda: self._quietly(table), _UNREAD)).collect(names)

    def summed(self, names: Sequence[str], function: StreamedRows) -> Sums:
        part = Partition(tuple(names), function)
        return self._sums(lambda: self._chosen(names).mapInArrow(part, _SUMS).collect())

    def grouped(self, names: Sequence[str], assign: Assigning, gather: Gathering, groups: int) -> Sums:
        assigner, gatherer = Assigner(tuple(names), assign), Gatherer(gather)

        def collected() -> list[Any]:
            assigned = self._chosen(names).mapInArrow(assigner, "part int, piece binary").repartition(groups, "part")
            return list(assigned.mapInArrow(gatherer, _SUMS).collect())

        return self._sums(collected)

    def _sums(self, collected: Callable[[], list[Any]]) -> Sums:
        rows = guarded_read(lambda: self._quietly(collected), _UNREAD)
        return added_sums((one.rows, _unpacked(one.total)) for one in rows)

    def _chosen(self, names: Sequence[str]) -> Any:
        from pyspark.sql import functions

        quoted = ("`" + name.replace("`", "``") + "`" for name in names)
        return self._frame.select(*(functions.col(one).alias(f"c{place}") for place, one in enumerate(quoted)))

    def _quietly(self, action: Any) -> Any:
        with _logs_off(self._frame.sparkSession):
            return action()


def opened(master: str, what: str, name: str) -> Any:
    from pyspark.sql import SparkSession

    place = master if master.startswith("spark://") else master.removeprefix("spark:")
    if place.startswith("local"):  # its workers run here, and by default would be another Python
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(place)
    for unwanted in ("spark.ui.enabled", "spark.eventLog.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(unwanted, "false")
    session = builder.getOrCreate()
    return session.table(name) if what == "table" else session.read.parquet(name)


@dataclass(frozen=True)
class Partition:
    names: tuple[str, ...]
    function: StreamedRows

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        yield _row(isolated_or_default(lambda: added_sums(map(self._summed, _joined(batches))), FAILED))

    def _summed(self, table: Any) -> Sums:
        collected = frame_source(table.rename_columns(list(self.names))).collect(self.names)
        return table.num_rows, self.function(collected)


@dataclass(frozen=True)
class Assigner:
    """What a worker does with a partition: the pieces of each batch by their groups, or −1 for a failure."""

    names: tuple[str, ...]
    assign: Assigning

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        from pyarrow import RecordBatch, array, binary, int32

        tables, broken = _joined(batches), [(_BROKEN, b"")]
        while assigned := isolated_or_default(lambda: self._next(tables), broken):
            groups, pieces = zip(*assigned, strict=True)
            yield RecordBatch.from_arrays([array(groups, int32()), array(pieces, binary())], ["part", "piece"])
            if assigned == broken:
                return

    def _next(self, tables: Iterator[Any]) -> list[tuple[int, bytes]]:
        if (table := next(tables, None)) is None:
            return []
        collected = frame_source(table.rename_columns(list(self.names))).collect(self.names)
        return [
            (group, pickle.dumps(piece, protocol=5))
            for group, piece in enumerate(self.assign(collected)) if piece is not None
        ]  # fmt: skip


@dataclass(frozen=True)
class Gatherer:
    gather: Gathering

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        def sums() -> Sums:
            groups: dict[int, list[bytes]] = {}
            for batch in batches:
                for group, piece in zip(*batch.to_pydict().values(), strict=True):
                    groups.setdefault(group, []).append(piece)
            return FAILED if _BROKEN in groups else added_sums(self._of(groups.pop(group)) for group in sorted(groups))

        yield _row(isolated_or_default(sums, FAILED))

    def _of(self, pieces: list[bytes]) -> Sums:
        return self.gather([pickle.loads(piece) for piece in pieces])  # of ``Assigner``, out of Spark's own files


_BROKEN = -1
"""In place of a group: a batch could not be assigned."""


def _row(sums: Sums) -> Any:
    from pyarrow import RecordBatch, array, binary, int64

    rows, total = sums
    return RecordBatch.from_arrays([array([rows], int64()), array([_packed(total)], binary())], ["rows", "total"])


def _packed(total: NDArray[np.int64] | None) -> bytes | None:
    # Most cells of a large table are empty.
    return None if total is None else zlib.compress(total.astype("<i8").tobytes(), 1)


def _unpacked(packed: bytes | None) -> NDArray[np.int64] | None:
    return None if packed is None else np.frombuffer(zlib.decompress(packed), dtype="<i8").astype(np.int64)


def _joined(batches: Iterator[Any]) -> Iterator[Any]:
    from pyarrow import Table

    held, rows = [], 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= border.BATCH:
            yield Table.from_batches(held)
            held, rows = [], 0
    if rows:
        yield Table.from_batches(held)


def _changes(frame: Any) -> bool:
    plans = [frame._jdf.queryExecution().analyzed()]
    while plans:
        plan = plans.pop()
        parts = [plan.expressions()]
        if not plan.deterministic() or plan.getClass().getSimpleName() in _CHANGES:
            return True
        while parts:
            expressions = parts.pop()
            for place in range(expressions.size()):
                one = expressions.apply(place)
                changes = _aggregates_in_order(one) or _frames_in_order(one) or _casts_the_clock(one)
                if one.getClass().getSimpleName() in _CHANGES or changes:
                    return True
                parts.append(one.children())
        for below in (plan.children(), plan.subqueries()):
            plans += [below.apply(place) for place in range(below.size())]
    return False


def _aggregates_in_order(expression: Any) -> bool:
    if expression.getClass().getSimpleName() != "AggregateExpression":
        return False
    function = expression.aggregateFunction()
    name = function.getClass().getSimpleName()
    if name not in ("Sum", "Average"):
        return name not in _STEADY
    kind = function.child().dataType()
    text = kind.simpleString()
    if text.startswith("decimal"):
        return bool(kind.precision() > _SURE_DIGITS)
    if name == "Sum":  # with TRY a sum that overflows is null, which depends on the order of rows
        return text in ("float", "double") or "TRY" in str(function.productElement(1))
    return text not in _EXACT_MEAN


def _casts_the_clock(expression: Any) -> bool:
    if expression.getClass().getSimpleName() != "Cast" or not expression.child().foldable():
        return False
    text, kind = expression.child(), expression.dataType().simpleString()
    if text.dataType().simpleString() != "string" or not kind.startswith(("date", "timestamp")):
        return False
    literal = text.getClass().getSimpleName() == "Literal"
    return not literal or bool(_CLOCK.match(str(text.value())))


def _frames_in_order(expression: Any) -> bool:
    if expression.getClass().getSimpleName() != "WindowExpression":
        return False
    # Rows before or after a row are others where rows are tied.
    frame = expression.windowSpec().frameSpecification()
    parts = [frame.frameType(), frame.lower(), frame.upper()] if hasattr(frame, "frameType") else [frame]
    names = [one.getClass().getSimpleName() for one in parts]
    ranks = expression.windowFunction().getClass().getSimpleName() in _RANKS
    return not ranks and names[0] != "RangeFrame$" and names[1:] != ["UnboundedPreceding$", "UnboundedFollowing$"]


def _workers_have_this(session: Any) -> bool:
    def versions(batches: Iterator[Any]) -> Iterator[Any]:  # within a function, it goes to them as it is
        from pyarrow import RecordBatch

        import dpcausal.data.sources.frame

        for _ in batches:
            yield RecordBatch.from_pydict({"version": [dpcausal.__version__]})

    rows = session.range(0, 1, 1, 1).mapInArrow(versions, "version string").collect()
    return [row.version for row in rows] == [version("dpcausal")]


@contextmanager
def _logs_off(session: Any) -> Iterator[None]:
    log4j = session._jvm.org.apache.logging.log4j
    with _one_pass:
        context = log4j.LogManager.getContext(False)
        loggers = list(context.getConfiguration().getLoggers().values())  # the root and all with their own level
        before = [logger.getLevel() for logger in loggers]
        try:
            for logger in loggers:
                logger.setLevel(log4j.Level.OFF)
            context.updateLoggers()
            yield
        finally:
            for logger, level in zip(loggers, before, strict=True):
                logger.setLevel(level)
            context.updateLoggers()


source = SparkSource
