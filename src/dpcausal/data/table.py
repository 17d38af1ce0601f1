"""A table of private records under a public schema, tied to the ledger that pays for answers about it."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike, fspath
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.cleaning import check_declared, check_named
from dpcausal.data.coding import cleaned
from dpcausal.data.frame import FrameSource, source_of
from dpcausal.data.rows import Rows, checked_rule, levelled
from dpcausal.data.schema import Schema
from dpcausal.data.source import Kind, Source, withheld
from dpcausal.data.unchanged import Stamp, confirm
from dpcausal.errors import ParameterError, RowLimitError, SchemaError
from dpcausal.privacy.confined import Single
from dpcausal.privacy.ledger import Ledger

DEFAULT_MAX_ROWS = 20_000_000
"""Most rows a table brings into memory unless told otherwise: 160 MB a column."""

CHANGED = (
    "the frame no longer has the number of rows counted when the table was made; what a call was charged stays spent"
)


class Table(Single):
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
    missing : str
        What becomes of a record that lacks a column of a question: a null, a NaN, what cannot be read, a level that is
        not declared (without ``other``).  ``"drop"``: it contributes nothing, inside its own block, cell or term, so
        that ``n`` stays public and nobody is told how many are left.  ``"level"``: so too, but what is missing from a
        column of levels is the level ``"missing"``.  ``"impute"``: it counts as the midpoint of the bounds or the
        first level, which can make independent columns look dependent.

    Raises
    ------
    SchemaError
        A declared column is missing, its declared type does not fit, or there is no row; or a lazy frame cannot compute
        a declared column for every row.  For the curator: nothing was spent.
    RowLimitError
        There are more than ``max_rows`` rows.

    Notes
    -----
    *Guarantee*: each record is cleaned, and kept or left out, by itself by a total rule (see ``Bounded`` and
    ``Levels``); no error or warning depends on a value.  The unit is a row, the relation is replace-one, the number of
    rows ``n`` is public, left-out ones included.

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

    confined = "a table holds private records: it cannot be pickled"

    __slots__ = ("_ledger", "_missing", "_n", "_schema", "_source", "_stamp")

    _source: Source
    _schema: Schema
    _ledger: Ledger
    _missing: str
    _n: int
    _stamp: Stamp | None

    def __init__(
        self, frame: Any, schema: Schema, ledger: Ledger, *, max_rows: int = DEFAULT_MAX_ROWS, missing: str = "drop"
    ) -> None:
        if not isinstance(schema, Schema):
            raise ParameterError(f"schema must be a Schema, got {type(schema).__name__}")
        if not isinstance(ledger, Ledger):
            raise ParameterError(f"ledger must be a Ledger, got {type(ledger).__name__}")
        if isinstance(max_rows, bool) or not isinstance(max_rows, (int, np.integer)) or max_rows < 1:
            raise ParameterError("max_rows must be an integer of at least 1")
        if checked_rule(missing) == "level":
            schema = levelled(schema)
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
        found = (source, schema, ledger, missing, rows, stamp)
        for field, value in zip(("_source", "_schema", "_ledger", "_missing", "_n", "_stamp"), found, strict=True):
            object.__setattr__(self, field, value)

    @property
    def n(self) -> int:
        """The number of rows: public under replace-one."""
        return self._n

    @property
    def missing(self) -> str:
        """What becomes of records that lack a column of a question: ``"drop"``, ``"level"`` or ``"impute"``."""
        return self._missing

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
        """Bring columns into memory, cleaned and filled: the ``values`` of ``rows``.  *Private.*"""
        return self.rows(names).values

    def rows(self, names: Iterable[str]) -> Rows:
        """Bring records into memory, cleaned.  *Private*: for mechanisms and statistics, after the ledger allotted.

        Parameters
        ----------
        names : iterable of str
            Columns of the schema; only these are collected.

        Returns
        -------
        Rows
            Its ``values`` in the order of ``names``: float64 in [lower, upper] for a ``Bounded`` column, int64 codes
            in 0, ..., len(levels) − 1 for a ``Levels`` column, and which records count.

        Raises
        ------
        SchemaError
            A name is not in the schema; the frame no longer has ``n`` rows; or the back end failed, whose own
            words are withheld.
        """
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise ParameterError("names must be a list of column names, not one text")
        asked = tuple(dict.fromkeys(names))
        for name in asked:
            self._schema.column(name)
        found = self._read(asked) if asked else Rows.of({}, self._n, self._missing)
        if found is None:
            raise SchemaError(CHANGED)
        return found

    def _read(self, names: tuple[str, ...]) -> Rows | None:
        collected = self._source.collect(names)
        if len(collected) != self._n:
            return None

        def read() -> Rows:
            fields = {name: self._source.declared(name).kind is Kind.FIELD for name in names}
            both = {name: cleaned(collected, name, self._schema[name], fields=fields[name]) for name in names}
            return Rows.of(both, self._n, self._missing)

        return withheld(read, f"the {self._source.backend} columns cannot be read")

    def __repr__(self) -> str:
        return f"Table(n={self._n}, columns={self._schema.names!r}, backend={self._source.backend!r})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a table is frozen")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a table is frozen")

