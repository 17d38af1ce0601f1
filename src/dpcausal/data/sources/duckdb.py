"""DuckDB relations: coded and counted in the database, text compared as bytes and numbers in the column's own type."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar

import numpy as np
from duckdb import CaseExpression, ColumnExpression, ConstantExpression, FunctionExpression
from numpy.typing import NDArray

from dpcausal.data.coding import Cuts, Grid, Key, Matches, Rule
from dpcausal.data.source import BATCH

Expression = Any
Result = TypeVar("Result")

PATIENCE = 60.0
"""Seconds for which a connection may be busy with a query of the curator's own."""

_turns = threading.RLock()


def in_turn(action: Callable[[], Result]) -> Result:
    """Return ``action()``, which asks a connection: one thread at a time, again where others use the connection.

    A relation does not show its connection, so all share one lock; DuckDB refuses, or breaks off, what meets a query
    that the curator runs on the same connection from another thread.
    """
    end, tries = time.monotonic() + PATIENCE, 0
    while True:
        try:
            with _turns:
                return action()
        except Exception as error:
            tries += 1
            causes = (error, error.__cause__, error.__context__)
            is_busy = any("ResourceInUse" in type(one).__name__ for one in causes)
            if time.monotonic() > end or not (is_busy or tries < 6):
                raise
        time.sleep(min(0.002 * 3**tries, 0.2))

MOST_BRANCHES = 24
"""With more levels a list of them is joined: a branch costs a comparison a row."""

_CHANGES = re.compile(
    r"\b(random|(gen_random_)?uuid(v[47])?|nextval|now|today|get_current_time(stamp)?|transaction_timestamp)\s*\("
    r"|\b(tablesample|using\s+sample|current_timestamp|current_date|current_time)\b",
    re.IGNORECASE,
)
_WIDTHS = {"tinyint": 8, "smallint": 16, "integer": 32, "bigint": 64, "hugeint": 128}
_WIDTHS |= {f"u{name}": width for name, width in _WIDTHS.items()}
_NARROW = {"tinyint", "utinyint", "smallint", "usmallint", "integer", "boolean", "varchar", "enum", "float", "double"}
"""Types no whole number of which is too large for 32 bits, or none of which is ever made a number."""

_FEW = {"tinyint", "utinyint", "boolean"}
"""Types of at most 256 values."""


def grid_of(relation: Any, name: str) -> Grid | None:
    """Return what a column of integers or decimals can hold; ``None`` for another."""
    dtype = dict(zip(relation.columns, relation.types, strict=True))[name]
    if dtype.id == "decimal":
        digits = dict(dtype.children)
        most = 10 ** digits["precision"] - 1
        return Grid(-most, most, digits["scale"])
    if dtype.id not in _WIDTHS:
        return None
    width = _WIDTHS[dtype.id]
    return Grid(0, 2**width - 1) if dtype.id.startswith("u") else Grid(-(2 ** (width - 1)), 2 ** (width - 1) - 1)


_DEFINED = (
    "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal UNION ALL "
    "SELECT table_name, sql FROM duckdb_tables() WHERE NOT internal UNION ALL "
    "SELECT function_name, macro_definition FROM duckdb_functions() WHERE NOT internal"
)
_STEADY = {"PROJECTION", "FILTER", "UNION", "UNNEST", "RANGE", "STREAMING_LIMIT", "STREAMING_WINDOW", "EMPTY_RESULT"}
"""Steps, beside scans, that leave the rows in the order in which they find them."""


def changes(relation: Any) -> bool:
    """Whether its query, as it is written, may give other rows each time: it draws, samples, or asks the clock.

    So may a view, a macro or a computed column that it names.
    """
    definitions = f"(SELECT list([name, text]) FROM ({_DEFINED}) AS defined(name, text) WHERE text IS NOT NULL)"
    defined = dict(relation.limit(0).aggregate(f"any_value(1), {definitions}").fetchall()[0][1] or ())
    text, before = relation.sql_query().lower(), ""
    while text != before:
        before = text
        text = " ".join([text, *(defined.pop(name) for name in list(defined) if name.lower() in text)]).lower()
    return _CHANGES.search(text) is not None


def ordered(relation: Any) -> bool:
    """Whether its rows come in the order in which they are kept: no step of the plan may move them."""
    return all(
        name in _STEADY or name.endswith("SCAN") or name.startswith("READ_") for name, _ in _steps(relation)
    )


_INSIDE = {"SEQ_SCAN", "TABLE_SCAN", "INDEX_SCAN", "DUMMY_SCAN", "COLUMN_DATA_SCAN", "CTE_SCAN", "REC_CTE_SCAN",
           "DELIM_SCAN", "EXPRESSION_SCAN", "EMPTY_RESULT", "RANGE", "GENERATE_SERIES"}  # fmt: skip
"""First steps that read the database itself, or nothing."""


def reads_elsewhere(relation: Any) -> bool:
    """Whether it is a view of other files or frames, whose changes leave the file of the database as it is."""
    return not {name for name, is_first in _steps(relation) if is_first} <= _INSIDE


def _steps(relation: Any) -> set[tuple[str, bool]]:
    ((_, plan),) = relation.query("dpcausal_plan", "EXPLAIN (FORMAT json) SELECT * FROM dpcausal_plan").fetchall()
    steps, names = json.loads(plan), set()
    while steps:
        step = steps.pop()
        names.add((step["name"].strip(), not step["children"]))
        steps += step["children"]
    return names


def evaluate(relation: Any, names: Sequence[str]) -> None:
    """Compute every value of some columns, whatever is known of them without: a hash needs each."""
    hashes = (FunctionExpression("bit_xor", FunctionExpression("hash", ColumnExpression(name))) for name in names)
    relation.aggregate(list(hashes)).fetchall()


def batches(relation: Any) -> Iterator[Any]:
    """Yield the rows as Arrow tables, in bounded memory."""
    import pyarrow

    for batch in relation.to_arrow_reader(BATCH):
        yield pyarrow.Table.from_batches([batch])


def counted(
    relation: Any, names: Sequence[str], rules: Sequence[Rule], sizes: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the cells that occur, numbered in the order of an array of these sizes, and how many rows each has."""
    types = dict(zip(relation.columns, relation.types, strict=True))
    places = [f"c{place}" for place in range(len(names))]
    records = relation.select(*(ColumnExpression(name).alias(place) for name, place in zip(names, places, strict=True)))
    # Rows of columns of one byte are counted before they are coded: a code of each costs as much again.
    first = all(types[name].id in _FEW and isinstance(rule, Matches) for name, rule in zip(names, rules, strict=True))
    if first:
        records = records.aggregate(", ".join([*places, "count(*) AS many"]), ", ".join(places))
    many = [ColumnExpression("many")] * first
    typed = (_typed(place, types[name]).alias(place) for name, place in zip(names, places, strict=True))
    records = records.select(*typed, *many)
    # Whole numbers of half the width, where no value and no sum can be larger.
    ends = [key for rule in rules for key in rule.keys if isinstance(rule, Matches) and type(key) is int]
    small = max([len(names) * math.prod(sizes), *(2 * abs(end) for end in ends)]) < 2**31
    narrow = small and all(types[name].id in _NARROW for name in names)
    whole = partial(_whole, dtype="INTEGER" if narrow else "BIGINT")
    cell, stride = whole(0), 1
    for place in reversed(range(len(names))):
        rule, dtype, value = rules[place], types[names[place]], ColumnExpression(f"c{place}")
        if isinstance(rule, Matches) and len(rule.keys) > MOST_BRANCHES and _offset(rule, dtype) is None:
            keyed = _listed(relation, rule, dtype, place).set_alias(f"keys{place}")
            records = records.set_alias("records").join(keyed, f"c{place} = key{place}", "left")
            codes = ColumnExpression(f"code{place}")
            code = CaseExpression(codes.isnull(), whole(rule.rest)).otherwise(codes)
        else:
            code = _code(value, rule, dtype, whole)
        cell += code * whole(stride)
        stride *= sizes[place]
    total = "sum(many)::BIGINT" if first else "count(*)"
    groups = records.select(cell.alias("cell"), *many).aggregate(f"cell, {total} AS rows").fetchnumpy()
    return groups["cell"].astype(np.int64), groups["rows"].astype(np.int64)


def _typed(name: str, dtype: Any) -> Expression:
    """Return a column as it is compared: text and enums as bytes, which no collation touches, floats as DOUBLE."""
    column = ColumnExpression(name)
    if dtype.id == "float":
        return column.cast("DOUBLE")
    return FunctionExpression("encode", column.cast("VARCHAR")) if dtype.id in {"varchar", "enum"} else column


def _code(value: Expression, rule: Rule, dtype: Any, whole: Callable[[Any], Expression]) -> Expression:
    keys = [_constant(key, dtype) for key in rule.keys]
    if isinstance(rule, Cuts):
        branches = [(value >= key, rule.first + place) for place, key in reversed(list(enumerate(keys, 1)))]
        last = rule.first
    elif (offset := _offset(rule, dtype)) is not None:
        inside = (value >= keys[0]) & (value <= keys[-1])  # the sum comes last: of a value outside it could overflow
        return CaseExpression(inside, whole(value)).otherwise(whole(rule.rest - offset)) + whole(offset)
    else:
        branches = [(value == key, code) for key, code in zip(keys, rule.codes, strict=True)]
        last = rule.rest
    absent = value.isnull()
    if dtype.id in {"float", "double"}:  # NaN is above all numbers
        absent |= FunctionExpression("isnan", value)
    chosen = CaseExpression(absent, whole(rule.rest))
    for condition, code in branches:
        chosen = chosen.when(condition, whole(code))
    return chosen.otherwise(whole(last))


def _offset(rule: Matches, dtype: Any) -> int | None:
    """Return the offset of a rule, if no value of the type fails to be a BIGINT and no sum comes near its ends."""
    narrow = dtype.id not in {"hugeint", "uhugeint", "ubigint"}
    return rule.offset if narrow and rule.offset is not None and abs(rule.offset) < 2**62 else None


def _listed(relation: Any, rule: Matches, dtype: Any, place: int) -> Any:
    """Return the keys and codes of a rule as a relation of the same connection: to look up is one comparison a row."""
    keys: Any = [key.encode() if isinstance(key, str) else key for key in rule.keys]
    listed = ConstantExpression(keys)
    if dtype.id in _WIDTHS:
        listed = ConstantExpression([str(key) for key in keys]).cast(f"{dtype}[]")
    unnest = [FunctionExpression("unnest", one) for one in (listed, ConstantExpression(list(rule.codes)))]
    one_row = relation.limit(0).aggregate("count(*) as nothing")
    return one_row.select(unnest[0].alias(f"key{place}"), unnest[1].cast("BIGINT").alias(f"code{place}"))


def _constant(key: Key, dtype: Any) -> Expression:
    if isinstance(key, str):
        return ConstantExpression(key.encode())
    if isinstance(key, (bool, float)):
        return ConstantExpression(key)
    return ConstantExpression(format(Decimal(key), "f")).cast(dtype)


def _whole(value: Any, dtype: str) -> Expression:
    return (ConstantExpression(value) if isinstance(value, int) else value).cast(dtype)
