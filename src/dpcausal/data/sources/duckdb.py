"""DuckDB relations: whether a query gives the same rows each time, and its rows in batches."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from duckdb import ColumnExpression, FunctionExpression

from dpcausal.data.source import BATCH

Result = TypeVar("Result")

PATIENCE = 60.0
"""Seconds for which a connection may be busy with a query of the curator's own."""

_turns = threading.RLock()


def in_turn(action: Callable[[], Result]) -> Result:
    """Return ``action()``, which asks a connection: one thread at a time, again where others use the connection. A
    relation does not show its connection, so all share one lock; DuckDB refuses, or breaks off, what meets a query that
    the curator runs on the same connection from another thread."""
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


_CHANGES = re.compile(
    r"\b(random|(gen_random_)?uuid(v[47])?|nextval|now|today|get_current_time(stamp)?|transaction_timestamp"
    r"|txid_current|getvariable|reservoir_quantile)\s*\(|\bage\s*\([^,()]*\)"
    r"|\b(tablesample|using\s+sample|current_timestamp|current_date|(current_)?local(time|timestamp)|current_time)\b",
    re.IGNORECASE,
)
_PIECES = re.compile(r"('(?:[^']|'')*')|\"((?:[^\"]|\"\")*)\"|/\*.*?\*/|--[^\n]*", re.DOTALL)
"""Texts and quoted names, which stay, and comments, which may not hide what follows a name."""
_DEFINED = (
    "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal UNION ALL "
    "SELECT table_name, sql FROM duckdb_tables() WHERE NOT internal UNION ALL "
    "SELECT function_name, macro_definition FROM duckdb_functions() WHERE NOT internal"
)
_STEADY = {"PROJECTION", "FILTER", "UNNEST", "RANGE", "EMPTY_RESULT", "SEQ_SCAN", "TABLE_SCAN", "DUMMY_SCAN",
           "COLUMN_DATA_SCAN", "PANDAS_SCAN", "PYTHON_ARROW_SCAN", "PARQUET_SCAN"}  # fmt: skip
"""Steps that leave the rows in the order in which they find them.  A limit is none: filters may stand below it."""


def changes(relation: Any) -> bool:
    """Whether its query, as it is written, may give other rows each time: it draws, samples, asks the clock, or
    joins rows by their place. So may a view, a macro or a computed column that it names."""
    definitions = f"(SELECT list([name, text]) FROM ({_DEFINED}) AS defined(name, text) WHERE text IS NOT NULL)"
    defined = dict(relation.limit(0).aggregate(f"any_value(1), {definitions}").fetchall()[0][1] or ())
    text, before = relation.sql_query().lower(), ""
    while text != before:
        before = text
        text = " ".join([text, *(defined.pop(name) for name in list(defined) if name.lower() in text)]).lower()
    positional = any(name.startswith("POSITIONAL") for name, _ in _steps(relation))
    return positional or any(_CHANGES.search(one) for one in (text, _PIECES.sub(r"\1\2", text)))


def ordered(relation: Any) -> bool:
    """Whether its rows come in the order in which they are kept: no step of the plan may move them."""
    return all(name in _STEADY or name.startswith("READ_") for name, _ in _steps(relation))


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
    hashes = (FunctionExpression("bit_xor", FunctionExpression("hash", ColumnExpression(name))) for name in names)
    relation.aggregate(list(hashes)).fetchall()


def bytewise(relation: Any) -> Any:
    """Return it with text and enums as bytes, which no collation holds equal."""
    types = zip(relation.columns, relation.types, strict=True)
    return relation.select(*(
        FunctionExpression("encode", ColumnExpression(name).cast("VARCHAR")).alias(name)
        if dtype.id in {"varchar", "enum"} else ColumnExpression(name)
        for name, dtype in types
    ))  # fmt: skip


def batches(relation: Any) -> Iterator[Any]:
    import pyarrow

    for batch in relation.to_arrow_reader(BATCH):
        yield pyarrow.Table.from_batches([batch])
