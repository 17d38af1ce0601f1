"""A table of private records under a public schema, tied to the ledger that pays for answers about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.coding import check_declared, check_name, check_named
from dpcausal.data.persons import (
    MOST_HELD,
    check_id,
    check_max_rows_per_person,
    check_number,
    check_order,
    checked_cluster,
    checked_weight,
    many,
)  # fmt: skip
from dpcausal.data.records import CHANGED, Records, Rows, TableSpec, checked_name, with_missing_level
from dpcausal.data.remote_blocks import WorkerBlocks, persons_in
from dpcausal.data.schema import Schema
from dpcausal.data.sources.fingerprint import confirm
from dpcausal.data.sources.origin import Origin, opened
from dpcausal.data.subgroups.predicate import Predicate, check_some, predicate
from dpcausal.errors import ParameterError, RowLimitError, SchemaError, Setting, nearest, with_signature_errors
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.sensitivity import Unit
from dpcausal.privacy.unpicklable import Frozen

MISSING_RULES = ("drop", "impute", "level")

DEFAULT_MAX_ROWS = 20_000_000
"""Most rows a table brings into memory by default: 160 MB a column."""


class Table(Frozen):
    """Rows of people: a frame, its public schema, and the ledger.

    Making a table reads the frame's column names, declared types and number of rows, and keeps nothing else.  It costs
    no budget: all three are public under the replace-one relation.

    Parameters
    ----------
    frame : frame, mapping or path
        A pandas, polars (eager or lazy) or pyarrow table, a DuckDB relation, a mapping of one-dimensional numpy
        arrays, or the path of a file, a ``DataFile`` if its format is not the usual one of its name.  *Private.*  It
        must not change afterwards: each question reads it again.  A question about a frame whose columns, types or
        rows have changed is refused before it spends.  The order of its rows is kept.
    schema : Schema
        The columns that may be used, each with its bounds or levels.  *Public.*
    ledger : Ledger
        Where each question about this table is paid.
    name : str, optional
        Of the data, for good: exactly the same question is then answered once, and again from the ledger, free
        (``refresh=True`` runs it again at a new privacy cost).  Public.  Files or frames that changed get no cached
        result; a frame of another process is known by its name alone.  New data need a new name.
    max_rows : int, optional
        The most rows, or with ``person`` persons, that may be brought into memory: a table of more is refused.  By
        default only a question that needs all rows at once is, above 20 million rows, before it spends; others sum
        where the rows are.  How many rows a person has is private, and refuses nothing.  With ``person`` at most 2^27.
    person : str, optional
        Column with the person ID, a text or a whole number; it need not be in the schema.  Then a person
        is one record: the row of least hash counts, rows without an id do not.  ``n`` is the number of persons.
    ids : str
        Whether who is in the data is ``"private"``, so that a replaced person may have another id, or ``"public"``:
        then blocks cost half the noise, and methods that deal persons by place can be asked.
    max_rows_per_person : int, optional
        Of ``cells``, ``moments``, ``effect`` and ``did``: the most rows of a person that count, by default all.  Those
        that count are equal parts of the person.
    weight : (str, float), optional
        A column of survey weights, which need not be in the schema, and their public maximum, for the same three;
        others refuse.  A row counts as w/maximum of one; above the maximum as one; not at all if w is missing or
        negative.  What is estimated is about the population that the weights represent.
    clusters : list of str, optional
        Columns that questions may name by ``cluster=``, texts or whole numbers.  Of a lazy frame or a file of Arrow
        they must be named here, unless they are in the schema, so that every value is computed before any question.
    missing : str
        What becomes of a record that has a missing value of a question: a null, a NaN, what cannot be read, a level
        that is not declared (without ``other``).  ``"drop"``: it contributes nothing, inside its own block, cell or
        term, so that ``n`` stays public and nobody learns how many are left.  ``"level"``: so too, but what is missing
        from a column of levels is the level ``"missing"``, but of the treatment and outcome of an effect.
        ``"impute"``: it counts as the midpoint of the bounds or the first level, which can make independent columns
        look dependent.

    Raises
    ------
    SchemaError
        A declared column is missing, its declared type does not fit, or there is no row; or a lazy frame cannot compute
        a declared column for every row.  For the curator: nothing was spent.
    RowLimitError
        There are more than ``max_rows`` rows, or persons; of persons, more than 20 million by default.

    Notes
    -----
    *Guarantee*: each record is cleaned, and kept or left out, by itself by a total rule (see ``Bounded`` and
    ``Levels``); no error or warning depends on a value.  The unit is a row, or with ``person`` a person with all rows,
    the relation is replace-one, the number ``n`` of them is public, left-out ones included.

    *Lazy frames and relations*: every declared column is computed once for every row when the table is made, and
    nothing of it is kept; one record that a cast or a function refuses refuses the table, before any answer.  Each
    question computes its columns again.  So the same records must come each time, which the curator sees to: no
    ``random()``, ``now()`` or sampling in the query, no write to what it reads, no cast that fails or not by the order
    in which an engine filters (write ``TRY_CAST``, in polars ``strict=False``).  Otherwise make the table from a copy:
    ``frame.collect()``, or ``CREATE TABLE ... AS``.  A query that groups, joins, unites or sorts has no order that
    one record could not change: what deals rows by place is refused of it, unless ``person`` distinguishes its rows.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcausal as dpc
    >>> schema = dpc.Schema({"age": dpc.Bounded(0, 110), "smoker": dpc.Levels(["no", "yes"])})
    >>> frame = {"age": np.array([31.0, np.nan, 200.0]), "smoker": np.array(["yes", "no", "?"])}
    >>> table = dpc.Table(frame, schema, dpc.Ledger.in_memory(dpc.PureDP(1)))
    >>> table
    Table(n=3, columns=('age', 'smoker'), backend='numpy')
    """

    confined = "a table holds private records: it cannot be pickled"

    __slots__ = ("_ledger", "_spec")
    _ledger: Ledger
    _spec: TableSpec

    @with_signature_errors
    def __init__(
        self, frame: Any, schema: Schema, ledger: Ledger, *, name: str = "", person: str | None = None,
        ids: str = "private", max_rows_per_person: int | None = None, weight: tuple[str, float] | None = None,
        missing: str = "drop", max_rows: int | None = None, clusters: Iterable[str] = (),
    ) -> None:  # fmt: skip
        if not isinstance(schema, Schema):
            raise ParameterError(f"schema must be a Schema, got {type(schema).__name__}")
        if not isinstance(ledger, Ledger):
            raise ParameterError(f"ledger must be a Ledger, got {type(ledger).__name__}")
        limit = DEFAULT_MAX_ROWS if max_rows is None else max_rows
        if isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 1:
            raise ParameterError("max_rows must be an integer of at least 1")
        known_as = checked_name(name)
        if not isinstance(missing, str) or missing not in MISSING_RULES:
            raise ParameterError(f"missing must be one of {', '.join(MISSING_RULES)}")
        if missing == "level":
            schema = with_missing_level(schema)
        source, origin = opened(frame)
        check_named(schema, source.names)
        for column, declared in schema.items():
            check_declared(column, declared, source.declared(column))
        if person is not None:
            if not isinstance(person, str) or person not in source.names:
                near = nearest(person, source.names)
                text = f"person must be the name of a column of the frame that has the ids{near}"
                raise SchemaError(text, argument="person", rule="column", value=person)
            check_id(check_name(person), source.declared(person), ids)
            check_max_rows_per_person(max_rows_per_person)
            if limit > MOST_HELD:
                raise ParameterError(f"max_rows must be at most {MOST_HELD} where person is given", rule="max_rows")
        elif ids != "private" or max_rows_per_person is not None:
            raise ParameterError("ids and max_rows_per_person need persons", rule="persons", hint=Setting("person"))
        weighed = None if weight is None else checked_weight(weight, source)
        rows = source.count()
        check_number(rows, max_rows if person is None else None)
        if isinstance(clusters, str) or not isinstance(clusters, Iterable):
            raise ParameterError("clusters must be a list of names of columns")
        named = tuple(checked_cluster(one, source) for one in clusters)
        spec = TableSpec(
            source, origin, rows, rows, int(limit), schema, known_as, missing, person, ids, max_rows_per_person,
            weighed, clusters=named,
        )  # fmt: skip
        source.evaluate(spec.needed((*schema.names, *named)))
        if person is not None:
            spec = replace(spec, n=persons_in(spec) if WorkerBlocks.of(spec) else many(source, person))
            check_number(spec.n, int(limit))
        self._set(_ledger=ledger, _spec=spec)

    def with_spec(self, spec: TableSpec) -> Table:
        """Return the table that reads its rows otherwise."""
        view = object.__new__(Table)
        view._set(_ledger=self._ledger, _spec=spec)
        return view

    @property
    def n(self) -> int:
        """The number of rows, or of persons: public under replace-one, those that are left out included."""
        return self._spec.n

    @property
    def name(self) -> str:
        """The name under which answers are kept; empty: none are."""
        return self._spec.name

    @property
    def origin(self) -> Origin:
        """Which data it was made of."""
        return self._spec.origin

    @property
    def identity(self) -> dict[str, Any]:
        """All that is public of it: what distinguishes it from another table, and never a row."""
        hidden = ("source", "origin", "rows", "max_rows", "clusters")
        return {one.name: getattr(self._spec, one.name) for one in fields(TableSpec) if one.name not in hidden}

    @property
    def expected(self) -> int:
        """A public guess of how many records are in the subgroup: n, unless ``where`` was given a share."""
        return max(1, int(self.n * self._spec.share))

    @property
    def unit(self) -> Unit:
        """Whose record one is."""
        return self._spec.unit

    @property
    def declared(self) -> dict[str, Any]:
        """What is public about whose the records are and which of them are asked: empty for all rows."""
        spec = self._spec
        declared: dict[str, Any] = {"table": spec.name} if spec.name else {}
        declared |= {} if spec.person is None else {"person": spec.person, "ids": spec.ids}
        declared |= {} if spec.max_rows_per_person is None else {"max_rows_per_person": spec.max_rows_per_person}
        declared |= {} if spec.cluster is None else {"cluster": spec.cluster}
        declared |= {} if spec.weight is None else {"weight": [spec.weight[0], spec.weight[1].upper]}
        return declared | ({"where": [str(one) for one in spec.inside]} if spec.inside else {})

    def public_facts(self, public: tuple[str, ...]) -> tuple[str, ...]:
        """Return what is public in an answer, in words: whose the records are and which are asked, too."""
        if self._spec.person is not None:
            listed = () if self._spec.ids == "private" else ("who is in the data",)
            left = (text for text in public if text not in ("the number of rows", "the order of the rows"))
            most = () if self._spec.max_rows_per_person is None else ("the most rows of a person",)
            public = ("the number of persons", *listed, *left, *most)
        if self._spec.weight is not None:
            public = (*public, "the largest weight")
        return (*public, *(f"the subgroup: {one}" for one in self._spec.inside))

    @with_signature_errors
    def where(
        self, name: str, *, at_least: float | date | str | None = None, at_most: float | date | str | None = None,
        among: Iterable[str | int | bool] | None = None, share: float | None = None,
    ) -> Table:  # fmt: skip
        """Return the subgroup of which a public predicate is true, others left out: nothing is read or paid.

        Parameters
        ----------
        name : str
            A column of the schema.  *Public*, as all that follows.
        at_least, at_most : float, or a date or its text, optional
            Of a ``Bounded`` column, both ends inside, of the value as it counts within the bounds.
        among : list of levels, optional
            Of a ``Levels`` column.
        share : float, optional
            A public guess of the share of all records that is in the subgroup so far: it sets the number of blocks.
            Not one that was looked up in the data.

        Notes
        -----
        *Guarantee*: a record is inside or outside by itself, and one without a value is outside; so every
        bound for n records stays.  How many are inside is private.  Two subgroups, disjoint ones too, pay twice.
        """
        if self.missing == "impute":
            raise ParameterError("a subgroup leaves records out", rule="missing", hint=Setting("missing", "drop"))
        if share is not None and (isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 1):
            raise ParameterError("share must be a number above 0 and at most 1")
        added = predicate(name, self.schema.column(name), at_least, at_most, among)
        check_some((*self._spec.inside, added))
        share = self._spec.share if share is None else float(share)
        return self.with_spec(replace(self._spec, inside=(*self._spec.inside, added), share=share))

    def clustered_by(self, name: object) -> Table:
        """Return the table whose rows also have the group of their cluster: nothing is read or paid.

        ``name`` is a column of texts or whole numbers, which need not be in the schema.
        """
        spec = self._spec
        cluster = checked_cluster(name, spec.source)
        if spec.source.computed and cluster not in spec.needed((*spec.schema.names, *spec.clusters)):
            raise ParameterError(
                f"the values of {cluster!r} were not computed when the table was made", argument="cluster",
                rule="computed", hint=("make the table with ", Setting("clusters", [cluster])),
            )  # fmt: skip
        return self.with_spec(replace(spec, cluster=cluster))

    @property
    def inside(self) -> tuple[Predicate, ...]:
        """The predicates of the subgroup."""
        return self._spec.inside

    @property
    def weighed(self) -> bool:
        """Whether rows have survey weights."""
        return self._spec.weight is not None

    @property
    def missing(self) -> str:
        """What becomes of records that have a missing value of a question: ``"drop"``, ``"level"`` or ``"impute"``."""
        return self._spec.missing

    @property
    def schema(self) -> Schema:
        """The public schema."""
        return self._spec.schema

    @property
    def ledger(self) -> Ledger:
        """The ledger that pays for answers about this table.

        A question asks for it just before it spends, so it is given only while the frame is what was declared: a
        SchemaError otherwise, before anything is spent.
        """
        spec = self._spec
        confirm(spec.source, spec.schema, spec.rows, spec.origin.stamp, spec.needed(()))
        return self._ledger

    @property
    def spec(self) -> TableSpec:
        """What its rows are read by.  *Private*, as it has the source."""
        return self._spec

    def columns(self, names: Iterable[str]) -> dict[str, NDArray[Any]]:
        """Bring columns into memory, cleaned and filled: the ``values`` of ``rows``.  *Private.*"""
        return self.rows(names).values

    def rows(self, names: Iterable[str]) -> Rows:
        """Bring records into memory, cleaned: only these columns of the schema are collected, in this order.

        *Private*: for mechanisms and statistics, after the ledger allotted.
        """
        check_order(self._spec.source, self._spec.person)
        return self.to_sum(names, parts=False)

    def parts(self, names: Iterable[str]) -> Rows:
        """Bring rows into memory as ``rows`` does, but all kept ones of a person, each with its part.  *Private.*

        How many rows come is private too.  Without persons they are the records, with their weights.
        """
        check_order(self._spec.source, self._spec.person)
        return self.to_sum(names, parts=True)

    def to_sum(self, names: Iterable[str], parts: bool, narrow: bool = False) -> Rows:
        """Bring ``rows``, or ``parts``, in any order; ``narrow``: codes of few levels have 8 bits.  *Private.*"""
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise ParameterError("names must be a list of column names, not one text")
        listed = tuple(names)
        for name in listed:
            self.schema.column(name)
        if (rows := self._spec.read(tuple(dict.fromkeys(listed)), parts, narrow)) is None:
            raise SchemaError(CHANGED)
        return rows

    def records(self, names: Iterable[str], *, parts: bool = False) -> Records:
        """Return the ``rows``, or ``parts``, to be summed over: many are read a batch at a time.  *Private.*"""
        listed = tuple(dict.fromkeys(names))
        return Records(self._spec, listed, self.to_sum(listed, parts, narrow=True) if self._spec.held else None)

    def check_memory(self) -> None:
        """Refuse, before a spend, a question that needs all rows at once of a table that cannot bring them."""
        check_order(self._spec.source, self._spec.person)
        if self.n > self._spec.max_rows:
            raise RowLimitError(
                f"this question needs all rows in memory at once, at most max_rows = {self._spec.max_rows}: raise "
                "it if memory allows, or ask for moments, cells or contrasts, which are summed where the rows are"
            )

    def __repr__(self) -> str:
        declared = "".join(f", {name}={value!r}" for name, value in self.declared.items())
        backend = self._spec.source.backend
        return f"Table(n={self.n}{declared}, columns={self.schema.names!r}, backend={backend!r})"
