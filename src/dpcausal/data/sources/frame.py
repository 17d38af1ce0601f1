"""The border: frames of other libraries, seen through narwhals, and mappings of numpy arrays.

| kind of frame | rows are brought into memory |
|---|---|
| pandas (numpy, nullable and pyarrow dtypes), polars, pyarrow Table | already there; columns selected first |
| polars LazyFrame, DuckDB relation | ``select`` first, so that only the asked columns are computed |
| mapping from name to one-dimensional numpy array | already there |

The order of rows is taken as given: it decides which rows a public split puts together, so it must not itself
be computed from private values in a way the analyst does not mean to declare.
"""

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from dpcausal.data.coding import check_texts, number_of
from dpcausal.data.source import BATCH, CHUNK, Collected, Declared, Distinct, Kind, Result, Source, guarded_read
from dpcausal.data.sources.arrays import ACCEPTED, ArraySource
from dpcausal.errors import MissingDependencyError, ParameterError, SchemaError
from dpcausal.privacy.sandbox import isolated_or_default

_BACKENDS = {
    nw.Implementation.PANDAS: "pandas",
    nw.Implementation.POLARS: "polars",
    nw.Implementation.PYARROW: "pyarrow",
    nw.Implementation.DUCKDB: "duckdb",
}
_HELPERS = {"polars": "dpcausal.data.sources.polars", "duckdb": "dpcausal.data.sources.duckdb"}
"""What lazy frames of an engine need beside narwhals."""

_WIDE = {"Int128", "UInt128"}
"""Integers that numpy has no type for."""


def frame_source(frame: object) -> Source:
    if isinstance(frame, Mapping):
        return ArraySource(frame)
    reason = ""
    try:
        return FrameSource(nw.from_native(nw.to_native(frame, pass_through=True)))
    except TypeError:
        reason = f"{ACCEPTED}, got {type(frame).__name__}"
    except nw.exceptions.DuplicateError:
        pass
    if reason:
        raise ParameterError(reason)
    raise SchemaError("the names of a frame's columns must differ from each other")


class FrameSource(Source):
    def __init__(self, frame: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> None:
        if frame.implementation not in _BACKENDS:
            # Rows are assigned to blocks by place: of an engine without an order one record could move the others.
            fix = "; an engine's rows have no order of their own: hand over an Arrow table made from it"
            hint = fix if isinstance(frame, nw.LazyFrame) else ""
            raise ParameterError(f"{ACCEPTED}, got one of {frame.implementation.value}{hint}")
        self.frame = frame
        self.backend, self.lazy = _BACKENDS[frame.implementation], isinstance(frame, nw.LazyFrame)
        self.computed = self.lazy
        if self.backend == "duckdb":
            if importlib.util.find_spec("pyarrow") is None:
                raise MissingDependencyError("pyarrow", "duckdb")
            _require_order(self._guarded, nw.to_native(frame))
        names = self._guarded(self._column_names, self._unread)
        self.names = check_texts(names)
        self.ordered = not self.lazy or self._guarded(lambda: self._engine.ordered(nw.to_native(frame)), self._unread)

    def _column_names(self) -> list[str]:
        lazy = isinstance(self.frame, nw.LazyFrame)  # the schema of an eager pandas frame would look at values
        return self.frame.collect_schema().names() if lazy else self.frame.columns

    def in_turn(self, action: Callable[[], Result]) -> Result:
        if self.backend != "duckdb":
            return action()
        result: Result = self._engine.in_turn(action)
        return result

    def _guarded(self, action: Callable[[], Result], rule: str) -> Result:
        return guarded_read(lambda: self.in_turn(action), rule)

    @property
    def _unread(self) -> str:
        return f"the {self.backend} frame cannot be read"

    @property
    def _engine(self) -> Any:
        return importlib.import_module(_HELPERS[self.backend])

    def declared(self, name: str) -> Declared:
        if self.backend in {"polars", "duckdb"} and (name == "*" or (name.startswith("^") and name.endswith("$"))):
            raise SchemaError(f"column {name!r}: {self.backend} reads this name as a pattern of names; rename it")
        return self._guarded(lambda: _declared(self.frame, name), f"column {name!r}: its declared type cannot be read")

    def categories(self, name: str) -> Sequence[object]:
        def listed() -> Sequence[object]:
            dtype = self.frame.select(name).collect_schema()[name]  # an ordered pandas categorical is an Enum here
            return dtype.categories if isinstance(dtype, nw.Enum) else ()

        return self._guarded(listed, f"column {name!r}: its categories cannot be read")

    def count(self) -> int:
        def rows() -> int:
            if isinstance(self.frame, nw.DataFrame):
                return len(self.frame)
            return int(self.frame.select(nw.len()).collect().item())

        return self._guarded(rows, self._unread)

    def _chosen(self, names: Sequence[str]) -> tuple[nw.DataFrame[Any] | nw.LazyFrame[Any], set[str]]:
        # DuckDB hands 128-bit integers to Arrow as decimals of 38 digits, too few for the largest.
        wide = {name for name in names if self.backend == "duckdb" and self.declared(name).dtype in _WIDE}
        cast = (nw.col(name).cast(nw.String()) if name in wide else nw.col(name) for name in names)
        return self._guarded(lambda: self.frame.select(*cast), self._unread), wide

    def collect(self, names: Sequence[str]) -> Collected:
        chosen, wide = self._chosen(names)
        return FrameColumns(
            self._guarded(lambda: chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen, self._unread), wide
        )

    def stream(self, names: Sequence[str]) -> Iterator[Collected]:
        chosen, wide = self._chosen(names)
        native: Any = nw.to_native(chosen)
        if isinstance(chosen, nw.LazyFrame):
            for batch in self._engine.batches(native):
                yield FrameColumns(nw.from_native(batch, eager_only=True), wide)
            return
        for start in range(0, len(chosen), BATCH):
            yield FrameColumns(chosen[start : start + BATCH], wide)

    def groupable(self, names: Sequence[str]) -> bool:
        """Whether the engine can count different rows of these columns: it holds them, as no Python objects."""
        declared = [self.declared(name) for name in names]
        return self.lazy and not any(one.kind is Kind.OBJECT or one.dtype in _WIDE for one in declared)

    def repeated(self, names: Sequence[str]) -> Iterator[tuple[Collected, NDArray[np.int64]]]:
        """Yield the different rows of a lazy frame in batches, text compared as bytes, and how often each occurs."""
        chosen = self._guarded(lambda: self.frame.select(*names), self._unread)
        rows = nw.from_native(self._engine.bytewise(nw.to_native(chosen)))
        counted = rows.rename({name: f"c{place}" for place, name in enumerate(names)})
        groups = counted.group_by(list(counted.collect_schema().names())).agg(nw.len().alias("rows"))
        for batch in self._engine.batches(nw.to_native(groups)):
            table = nw.from_native(batch, eager_only=True)
            distinct = table.drop("rows").rename({f"c{place}": name for place, name in enumerate(names)})
            yield FrameColumns(distinct, set()), table["rows"].to_numpy().astype(np.int64)

    def evaluate(self, names: Sequence[str]) -> None:
        failing = f"the {self.backend} frame cannot compute its columns for every row"
        if not self.lazy:
            return
        if self._guarded(lambda: self._engine.changes(nw.to_native(self.frame)), self._unread):
            raise SchemaError(
                f"the {self.backend} query draws, samples, asks the clock or joins rows by their place, so its rows "
                "would not be the same each time they are read: make the table from a copy"
            )
        if names:
            self._guarded(lambda: self._engine.evaluate(nw.to_native(self.frame), names), failing)


class FrameColumns(Collected):
    """Collected columns of an eager frame; those named in ``wide`` hold integers written out as text."""

    def __init__(self, frame: nw.DataFrame[Any], wide: set[str]) -> None:
        self._frame, self._wide = frame, wide

    def __len__(self) -> int:
        return len(self._frame)

    def numbers(self, name: str) -> NDArray[np.float64]:
        series = self._frame.get_column(name)
        dtype = series.dtype
        if name not in self._wide and (dtype.is_float() or (dtype.is_integer() and str(dtype) not in _WIDE)):
            if not series.null_count():
                with np.errstate(all="ignore"):
                    return np.asarray(series.to_numpy(), dtype=np.float64)
            # The null mask apart, integers stay integers: one rounding, by numpy, alike for every back end.
            raw = series.fill_null(0).to_numpy()
            with np.errstate(all="ignore"):
                numbers = np.array(raw, dtype=np.float64)
            numbers[series.is_null().to_numpy()] = np.nan
            return numbers
        values = (number_of(value) for chunk in self.objects(name) for value in chunk)
        return np.fromiter(values, dtype=np.float64, count=len(self))

    def integers(self, name: str) -> NDArray[np.int64] | None:
        series = self._frame.get_column(name)
        dtype = series.dtype
        if name in self._wide or not dtype.is_integer() or str(dtype) in {*_WIDE, "UInt64"} or series.null_count():
            return None
        return np.asarray(series.to_numpy(), dtype=np.int64)

    def distinct(self, name: str) -> Distinct | None:
        series = self._frame.get_column(name)
        native: Any = nw.to_native(series)
        if series.implementation is nw.Implementation.POLARS and str(native.dtype) in {"String", "Boolean"}:
            native = native.to_arrow()
        elif series.implementation is not nw.Implementation.PYARROW or name in self._wide:
            return None
        return distinct(native)

    def objects(self, name: str) -> Iterator[Sequence[object]]:
        series = self._frame.get_column(name)
        for start in range(0, len(self), CHUNK):
            chunk = _listed(series[start : start + CHUNK])
            yield [None if text is None else int(str(text)) for text in chunk] if name in self._wide else chunk


def distinct(native: Any) -> Distinct | None:
    from pyarrow import ChunkedArray, large_binary, types

    held = native.type
    if types.is_dictionary(held):
        held = held.value_type
        native = native.cast(held)
    texts = (types.is_string, types.is_large_string, types.is_string_view, types.is_binary, types.is_large_binary)
    if is_text := any(of(held) for of in texts):
        native = native.cast(large_binary())
    elif not any(of(held) for of in (types.is_boolean, types.is_integer, types.is_floating)):
        return None
    encoded = (native.combine_chunks() if isinstance(native, ChunkedArray) else native).dictionary_encode()
    values = encoded.dictionary.to_pylist()
    places = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return places, [value.decode("utf-8", "surrogateescape") for value in values] if is_text else values


def _listed(series: nw.Series[Any]) -> Sequence[object]:
    """Return a series as Python objects, bytes that are no UTF-8 kept as lone surrogates, which match no level. Arrow
    takes text from a Parquet file on trust, and would raise only when it meets the record."""
    if series.implementation is nw.Implementation.POLARS:
        dated = importlib.import_module(_HELPERS["polars"]).datable(nw.to_native(series))
        return _salvaged(nw.from_native(dated, series_only=True))
    if series.implementation is not nw.Implementation.PYARROW:
        return _salvaged(series)
    from pyarrow import large_binary, types

    native: Any = nw.to_native(series)
    held = native.type.value_type if types.is_dictionary(native.type) else native.type
    if not (types.is_string(held) or types.is_large_string(held) or types.is_string_view(held)):
        return _salvaged(series)
    raw = native.cast(large_binary()).to_pylist()
    return [None if text is None else text.decode("utf-8", "surrogateescape") for text in raw]


def _salvaged(series: nw.Series[Any]) -> Sequence[object]:
    """Return a series as Python objects, None where Python has none: one record must not refuse a column."""
    values: list[object] | None = isolated_or_default(series.to_list, None)
    if values is not None:
        return values
    middle = len(series) // 2
    return [*_salvaged(series[:middle]), *_salvaged(series[middle:])] if middle else [None] * len(series)


def _require_order(guarded: Callable[[Callable[[], Any], str], Any], relation: Any) -> None:
    setting = "any_value(current_setting('preserve_insertion_order'))"
    answer = guarded(lambda: relation.limit(1).aggregate(setting).fetchall()[0][0], "the duckdb frame cannot be read")
    if answer is False:
        raise SchemaError("a DuckDB relation needs SET preserve_insertion_order = true: rows must keep their order")


def _declared(frame: nw.DataFrame[Any] | nw.LazyFrame[Any], name: str) -> Declared:
    """Return a column's declared type: of objects and categories the back end's, as narwhals looks at values."""
    native: Any = nw.to_native(frame)
    if frame.implementation is nw.Implementation.PANDAS and native[name].dtype == object:
        return Declared(Kind.OBJECT, "object")
    dtype = frame.select(name).collect_schema()[name]
    label = type(dtype).__name__
    if dtype in (nw.Categorical, nw.Enum):
        return Declared(_categories(frame, name), label)
    if dtype == nw.Unknown:
        label = _native_label(frame, name)
        return Declared({"null": Kind.EMPTY, "decimal256": Kind.DECIMAL}.get(label, Kind.UNFIT), label)
    return Declared(_kind(dtype), label)


def _kind(dtype: nw.dtypes.DType) -> Kind:
    if dtype.is_integer():
        return Kind.INTEGER
    if dtype.is_float():
        return Kind.FLOAT
    if dtype.is_decimal():
        return Kind.DECIMAL
    known = {nw.Boolean: Kind.BOOLEAN, nw.String: Kind.TEXT, nw.Object: Kind.OBJECT, nw.Date: Kind.DATE,
             nw.Datetime: Kind.DATE}  # fmt: skip
    return next((kind for known_type, kind in known.items() if dtype == known_type), Kind.UNFIT)


def _native_type(frame: nw.DataFrame[Any] | nw.LazyFrame[Any], name: str) -> Any:
    native: Any = nw.to_native(frame)
    if frame.implementation is nw.Implementation.PANDAS:
        return native[name].dtype
    if frame.implementation is nw.Implementation.PYARROW:
        return native.schema.field(name).type
    if frame.implementation is nw.Implementation.POLARS:
        return native.collect_schema()[name]
    return dict(zip(native.columns, native.types, strict=True))[name]


def _native_label(frame: nw.DataFrame[Any] | nw.LazyFrame[Any], name: str) -> str:
    letters = "".join(letter if letter.isalnum() else " " for letter in str(_native_type(frame, name)).lower())
    return (letters.split() or ["unknown"])[0]


def _categories(frame: nw.DataFrame[Any] | nw.LazyFrame[Any], name: str) -> Kind:
    if frame.implementation not in (nw.Implementation.PANDAS, nw.Implementation.PYARROW):
        return Kind.TEXT  # polars and DuckDB have categories of text only
    dtype = _native_type(frame, name)
    if hasattr(dtype, "categories"):
        texts = dtype.categories.dtype == object
        return Kind.OBJECT if texts else _kind(nw.from_native(dtype.categories.to_series(), series_only=True).dtype)
    from pyarrow import chunked_array

    held = getattr(dtype, "pyarrow_dtype", dtype).value_type
    return _kind(nw.from_native(chunked_array([], type=held), series_only=True).dtype)
