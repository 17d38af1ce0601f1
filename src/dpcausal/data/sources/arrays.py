"""Mappings of numpy arrays as a source of rows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.coding import check_texts
from dpcausal.data.source import BATCH, CHUNK, Collected, Declared, Kind, Source
from dpcausal.errors import ParameterError, SchemaError

ACCEPTED = (
    "a frame must be a pandas, polars or pyarrow table, a DuckDB relation, a Spark or Dask frame, a mapping of "
    "numpy arrays, or the path of a .csv, .tsv, .txt or .jsonl (also .gz, .zip), .parquet, .arrow, .feather, .xlsx, "
    ".ods, .dta, .sas7bdat, .xpt, .sav or .por file, a folder of .parquet, duckdb:///file.db?table=t, or "
    "spark://host:7077?table=t"
)


class ArraySource(Source):
    """A mapping from names to one-dimensional numpy arrays of one length; a masked entry is a null."""

    backend = "numpy"

    def __init__(self, arrays: Mapping[Any, Any]) -> None:
        self.names = check_texts(list(arrays))
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray) or array.ndim != 1:
                text = f"column {name!r} of a mapping must be a one-dimensional numpy array, got {type(array).__name__}"
                raise ParameterError(text, argument="frame", rule="type", hint="make one by numpy.array(...)")
        if len({len(array) for array in arrays.values()}) > 1:
            raise SchemaError("the arrays of a table must have the same length")
        self._arrays = dict(arrays)

    def declared(self, name: str) -> Declared:
        dtype = self._arrays[name].dtype
        kinds = {"i": Kind.INTEGER, "u": Kind.INTEGER, "f": Kind.FLOAT, "b": Kind.BOOLEAN}
        kinds |= {"U": Kind.TEXT, "T": Kind.TEXT, "O": Kind.OBJECT, "M": Kind.DATE}
        # numpy's name of a text type ends in the width of the longest value.
        label = dtype.name.rstrip("0123456789") if dtype.kind in "USV" else dtype.name
        return Declared(kinds.get(dtype.kind, Kind.UNFIT), label)

    def count(self) -> int:
        return max((len(array) for array in self._arrays.values()), default=0)

    def collect(self, names: Sequence[str]) -> Collected:
        return ArrayColumns({name: self._arrays[name] for name in names}, self.count())

    def stream(self, names: Sequence[str]) -> Iterator[Collected]:
        rows = self.count()
        for start in range(0, rows, BATCH):
            part = {name: self._arrays[name][start : start + BATCH] for name in names}
            yield ArrayColumns(part, min(BATCH, rows - start))


class ArrayColumns(Collected):
    def __init__(self, arrays: Mapping[str, NDArray[Any]], rows: int) -> None:
        self._arrays, self._rows = arrays, rows

    def __len__(self) -> int:
        return self._rows

    def numbers(self, name: str) -> NDArray[np.float64]:
        array = self._arrays[name]
        with np.errstate(all="ignore"):
            if not np.ma.isMaskedArray(array):
                return np.asarray(array, dtype=np.float64)
            numbers = np.array(np.ma.getdata(array), dtype=np.float64)
        numbers[np.ma.getmaskarray(array)] = np.nan
        return numbers

    def integers(self, name: str) -> NDArray[np.int64] | None:
        array = self._arrays[name]
        if array.dtype.kind not in "iu" or array.dtype == np.uint64 or np.ma.isMaskedArray(array):
            return None
        return array.astype(np.int64)

    def distinct(self, name: str) -> None:
        """Return ``None``: what they hold is read one by one."""

    def objects(self, name: str) -> Iterator[Sequence[object]]:
        array = self._arrays[name]
        if array.dtype.kind == "M":  # numpy makes bare numbers of nanoseconds
            array = array.astype("datetime64[us]")
        for start in range(0, self._rows, CHUNK):
            yield array[start : start + CHUNK].tolist()  # a masked entry comes out as None
