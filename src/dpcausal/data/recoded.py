"""A table in which one column is declared otherwise: which level of two is counted, or 0 and 1 as levels.

Nothing is read, and no row changes: a declaration is public, and the frame's type must fit the new one.
"""

from dataclasses import replace

from dpcausal.data.coding import check_declared
from dpcausal.data.columns import Bounded, Column, Levels
from dpcausal.data.records import MISSING_LEVEL
from dpcausal.data.schema import Schema
from dpcausal.data.subgroups.predicate import Predicate, check_some, predicate
from dpcausal.data.table import Table
from dpcausal.errors import ParameterError, Setting


def with_column(table: Table, name: str, column: Column) -> Table:
    check_declared(name, column, table.spec.source.declared(name))
    schema = Schema({**table.schema, name: column})
    inside = tuple(_predicate_of_levels(one, column) if one.name == name else one for one in table.inside)
    check_some(inside)
    return table.with_spec(replace(table.spec, schema=schema, inside=inside))


def without_missing_level(table: Table, name: str, *named: object) -> Table:
    """Return the table in which what is missing from a column is no level of its own, unless that level is named."""
    column = table.schema.column(name)
    is_level = table.missing == "level" and isinstance(column, Levels) and column.other == MISSING_LEVEL
    if isinstance(column, Bounded) or not is_level or MISSING_LEVEL in named:
        return table
    spellings = None if column.spellings is None else dict(column.spellings)
    return with_column(table, name, Levels(column.values, None, column.missing, column.period, spellings))


def counting_event(table: Table, name: str, event: object) -> Table:
    """Return the table in which a column of two levels counts ``event``, by default its last level."""
    column = table.schema.column(name)
    if event is None:
        return table
    if level_of_event(name, column, event) == 1 or isinstance(column, Bounded):
        return table
    if table.missing == "impute":
        raise ParameterError(
            f"what is missing of {name!r} counts as its first level, so that level is no event", argument="event",
            rule="missing", value=name,
            hint=("take the last level, or make the table with ", Setting("missing", "drop")),
        )  # fmt: skip
    first, last = column.labels
    if column.other is not None and type(first) is not type(last):
        text = f"event must be the last level of {name!r}: its level for other values is of another type"
        raise ParameterError(text, argument="event", rule="type", value=name)
    spellings = None if column.spellings is None else dict(column.spellings)
    return with_column(table, name, Levels([last, first], column.other, column.missing, column.period, spellings))


def level_of_event(name: str, column: Column, event: object) -> int:
    """Return the place of the level that is counted, of a column of two levels."""
    code = column.code_named(event) if isinstance(column, Levels) and len(column) == 2 else None
    if code is None:
        raise ParameterError(f"event must be a level of {name!r}, an outcome declared with two levels")
    return code


def as_levels(table: Table, name: str) -> Table:
    """Return the table in which a column declared ``Bounded(0, 1)`` without cuts has the levels 0 and 1."""
    column = table.schema.column(name)
    if isinstance(column, Levels) or (column.lower, column.upper, column.cuts) != (0.0, 1.0, None):
        return table
    return with_column(table, name, Levels([0, 1], missing=column.missing))


def _predicate_of_levels(one: Predicate, column: Column) -> Predicate:
    if one.among is not None or isinstance(column, Bounded):
        return predicate(one.name, column, one.at_least, one.at_most, one.among)
    low, high = one.at_least, one.at_most
    held = [label for label in column.labels
            if (low is None or float(label) >= low) and (high is None or float(label) <= high)]  # fmt: skip
    return predicate(one.name, column, None, None, held)
