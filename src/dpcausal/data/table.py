"""A table of private records under a public schema, tied to the ledger that pays for answers about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.cleaning import check_declared, check_named, clean_numbers
from dpcausal.data.coding import level_codes
from dpcausal.data.frame import FrameSource, source_of
from dpcausal.data.schema import Bounded, Schema
from dpcausal.data.source import Collected, Kind, Source, withheld
from dpcausal.data.unchanged import Stamp, confirm
from dpcausal.errors import HiddenAnswerError, ParameterError, RowLimitError, SchemaError
from dpcausal.privacy.ledger import Ledger

DEFAULT_MAX_ROWS = 20_000_000
"""Most rows a table brings into memory unless told otherwise: 160 MB a column."""


class Table:
    """Rows of people: a frame, its public schema, and the ledger.

    Making a table reads the frame's column names, declared types and number of rows, and keeps nothing else.  It costs
    no budget: all three are public under the replace-one relation.

    Parameters
    ----------
    frame : frame, mapping or path
        A pandas, polars (eager or lazy) or pyarrow table, a DuckDB relation, a mapping of one-dimensional numpy
        arrays, or the path of a ``.csv`` or ``.parquet`` file.  *Private.*  It must not change afterwards: each
        question reads it again.  A question about a frame whose columns, types or rows have changed is refused before
        it spends.  The order of its rows is kept.
    schema : Schema
        The columns that may be used, each with its bounds or levels.  *Public.*
    ledger : Ledger
        Where each question about this table is paid.
    max_rows : int
        The most rows that may be brought into memory; checked against the count before any are.

    Raises
    ------
    SchemaError
        A declared column is missing, its declared type does not fit, or there is no row; or a lazy frame cannot compute
        a declared column for every row.  For the curator: nothing was spent.
    RowLimitError
        There are more than ``max_rows`` rows.

    Notes
    -----
    *Guarantee*: each record is cleaned by itself by a total rule (see ``Bounded`` and ``Levels``); no row is
    dropped, and no error or warning depends on a value.  The unit is a row, the relation is replace-one, the number
    of rows ``n`` is public.

    *Lazy frames and relations*: every declared column is computed once for every row when the table is made, and
    nothing of it is kept; one record that a cast or a function refuses refuses the table, before any answer.  Each
    question computes its columns again.  So the same records must come each time, which the curator sees to and no
    later look could make good without telling of the data: no ``random()``, ``now()`` or sampling in the query, no
    write to what it reads, no cast that fails or not by the order in which an engine filters (write ``TRY_CAST``, in
    polars ``strict=False``).  Where that cannot be promised, make the table from a copy: ``frame.collect()``, or
    ``CREATE TABLE ... AS``.  No copy is made here, since a relation may hold more rows than memory.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcausal.data.schema import Bounded, Levels, Schema
    >>> from dpcausal.privacy.ledger import Ledger
    >>> from dpcausal.privacy.loss import PureDP
    >>> schema = Schema({"age": Bounded(0, 110), "smoker": Levels(["no", "yes"])})
    >>> frame = {"age": np.array([31.0, np.nan, 200.0]), "smoker": np.array(["yes", "no", "?"])}
    >>> table = Table(frame, schema, Ledger.in_memory(PureDP(1.0)))
    >>> table
    Table(n=3, columns=('age', 'smoker'), backend='numpy')
    >>> table.n
    3
    """

    __slots__ = ("_ledger", "_n", "_schema", "_source", "_stamp")

    _source: Source
    _schema: Schema
    _ledger: Ledger
    _n: int
    _stamp: Stamp | None

    def __init__(self, frame: Any, schema: Schema, ledger: Ledger, *, max_rows: int = DEFAULT_MAX_ROWS) -> None:
        if not isinstance(schema, Schema):
            raise ParameterError(f"schema must be a Schema, got {type(schema).__name__}")
        if not isinstance(ledger, Ledger):
            raise ParameterError(f"ledger must be a Ledger, got {type(ledger).__name__}")
        if isinstance(max_rows, bool) or not isinstance(max_rows, (int, np.integer)) or max_rows < 1:
            raise ParameterError("max_rows must be an integer of at least 1")
        stamp: Stamp | None = None
        if isinstance(frame, (str, PathLike)):
            from dpcausal.data.files import file_source

            source: Source = file_source(frame)
            stamp = Stamp.of(fspath(frame))
        else:
            source = source_of(frame)
        check_named(schema, source.names)
        for name, column in schema.items():
            check_declared(name, column, source.declared(name))
        rows = source.count()
        if rows < 1:
            raise SchemaError("a table needs at least one row")
        if rows > max_rows:
            raise RowLimitError(f"the table has more rows than max_rows = {max_rows}: raise it if memory allows")
        if isinstance(source, FrameSource):
            source.evaluate(schema.names)
        fields = {"_source": source, "_schema": schema, "_ledger": ledger, "_n": rows, "_stamp": stamp}
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    @property
    def n(self) -> int:
        """The number of rows: public under replace-one."""
        return self._n

    @property
    def schema(self) -> Schema:
        """The public schema."""
        return self._schema

    @property
    def ledger(self) -> Ledger:
        """The ledger that pays for answers about this table.

        A question asks for it just before it spends, so it is given only while the frame is what was declared: a
        SchemaError otherwise, before anything is spent.
        """
        confirm(self._source, self._schema, self._n, self._stamp)
        return self._ledger

    def columns(self, names: Iterable[str]) -> dict[str, NDArray[Any]]:
        """Bring columns into memory, cleaned.  *Private*: for mechanisms and statistics, after the ledger allotted.

        Parameters
        ----------
        names : iterable of str
            Columns of the schema; only these are collected.

        Returns
        -------
        dict
            In the order of ``names``, new arrays of length ``n``: float64 in [lower, upper] for a ``Bounded``
            column, int64 codes in 0, ..., len(levels) − 1 for a ``Levels`` column.

        Raises
        ------
        SchemaError
            A name is not in the schema; the frame no longer has ``n`` rows; or the back end failed, whose own
            words are withheld.
        """
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise ParameterError("names must be a list of column names, not one text")
        listed = list(names)
        for name in listed:
            self._schema.column(name)
        asked = tuple(dict.fromkeys(listed))
        if not asked:
            return {}
        cleaned = self._cleaned(asked)
        if cleaned is None:
            raise SchemaError(
                "the frame no longer has the number of rows counted when the table was made; what a call was charged "
                "stays spent"
            )
        return cleaned

    def _cleaned(self, names: tuple[str, ...]) -> dict[str, NDArray[Any]] | None:
        collected = self._source.collect(names)
        if len(collected) != self._n:
            return None
        return withheld(
            lambda: {name: self._clean(name, collected) for name in names},
            f"the {self._source.backend} columns cannot be read",
        )

    def _clean(self, name: str, collected: Collected) -> NDArray[Any]:
        column = self._schema.column(name)
        if isinstance(column, Bounded):
            return clean_numbers(collected.numbers(name), column)
        return level_codes(collected, name, column, fields=self._source.declared(name).kind is Kind.FIELD)

    def __repr__(self) -> str:
        return f"Table(n={self._n}, columns={self._schema.names!r}, backend={self._source.backend!r})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a table is frozen")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a table is frozen")

    def __copy__(self) -> Table:
        return self

    def __deepcopy__(self, memo: Mapping[int, object]) -> Table:
        return self

    def __getstate__(self) -> NoReturn:
        raise HiddenAnswerError("a table holds private records: it cannot be pickled")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise HiddenAnswerError("a table holds private records: it cannot be pickled")
