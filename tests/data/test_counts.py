"""Codes and counts are the same for every back end, and those of the cleaned columns."""

from itertools import permutations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.data.coding import cuts_of
from dpcausal.data.counts import JointCounts, codes_of, counts_of, margins_of, sizes_of
from dpcausal.data.sources.frame import FrameSource
from dpcausal.errors import SchemaError
from tests.data.conftest import BACKENDS, DATABASE
from tests.factories import table

SCHEMA = dpc.Schema({
    "text": dpc.Levels(["u", "v"], other="w"), "number": dpc.Levels([5, -3, 2**40]), "plain": dpc.Levels([0, 1, 2]),
    "flag": dpc.Levels([True, False]), "cut": dpc.Bounded(-1, 1, cuts=[0, 0.5]), "wide": dpc.Bounded(0, 8),
})  # fmt: skip
NAMES, RULES = SCHEMA.names, ("drop", "impute", "level")


def arrow() -> pa.Table:
    rng, n = np.random.default_rng(7), 400
    numbers = rng.choice([5, -3, 2**40, 7, 0], n)
    return pa.table({
        "text": pa.array([None if k == 3 else "uvzx"[k] for k in rng.integers(0, 4, n)], pa.string()),
        "number": pa.array([None if k == 0 else int(k) for k in numbers], pa.int64()),
        "plain": pa.array(rng.integers(-1, 4, n), pa.int64()),
        "flag": pa.array([None if k == 2 else bool(k) for k in rng.integers(0, 3, n)], pa.bool_()),
        "cut": pa.array(rng.choice([np.nan, np.inf, -np.inf, -1.0, 0.0, 0.25, 0.5, 0.75, 9.0], n), pa.float64()),
        "wide": pa.array([None if k == 9 else float(k) for k in rng.integers(-1, 10, n)], pa.float64()),
    })  # fmt: skip


def included_by_hand(whole: dpc.Table) -> np.ndarray:
    """Return which records lack nothing, read off the Arrow table in Python."""
    kept = []
    for row in arrow().to_pylist():
        lacks = {
            "text": False,  # it has another level for whatever is none
            "number": row["number"] not in (5, -3, 2**40),
            "plain": row["plain"] not in (0, 1, 2),
            "flag": row["flag"] is None,
            "cut": row["cut"] is None or row["cut"] != row["cut"],
            "wide": row["wide"] is None,
        }
        named = {"number": False, "plain": False, "flag": False}
        told = lacks | {"drop": {}, "level": named, "impute": dict.fromkeys(lacks, False)}[whole.missing]
        kept.append(not any(told.values()))
    return np.array(kept)


def from_columns(whole: dpc.Table) -> np.ndarray:
    """Return the table of counts from the cleaned columns, record by record."""
    counts = np.zeros(sizes_of(whole, NAMES), dtype=np.int64)
    places = [np.searchsorted(cuts_of(column), values, side="right") if isinstance(column, dpc.Bounded) else values
              for values, column in zip(whole.columns(NAMES).values(), SCHEMA.values(), strict=True)]  # fmt: skip
    np.add.at(counts, tuple(places), included_by_hand(whole).astype(np.int64))
    return counts


@pytest.mark.parametrize("missing", RULES)
@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_counts_are_those_of_the_cleaned_columns_in_every_back_end(backend: str, missing: str, tmp_path: Path) -> None:
    whole = table(BACKENDS[backend](arrow(), tmp_path), SCHEMA, missing=missing)
    counts, rows = counts_of(whole, NAMES), codes_of(whole, NAMES)
    assert counts.dtype == np.int64 and (counts == from_columns(whole)).all()
    assert all((one.included == included_by_hand(whole)).all() for one in (rows, whole.rows(NAMES)))
    assert rows.n == whole.n == 400 and 0 < rows.included.sum() < 400 + (missing == "impute") and counts.sum() > 0
    again = np.zeros_like(counts)
    np.add.at(again, tuple(rows.values[name][rows.included] for name in NAMES), 1)
    assert (again == counts).all()


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_a_record_is_kept_by_the_columns_that_are_asked_for_alone(backend: str, tmp_path: Path) -> None:
    whole = table(BACKENDS[backend](arrow(), tmp_path), SCHEMA)
    assert whole.rows(["text"]).included.all() and whole.rows([]).included.tolist() == [True] * 400
    each = [whole.rows([name]).included for name in NAMES]
    assert (np.logical_and.reduce(each) == whole.rows(NAMES).included).all()
    for name, kept in zip(NAMES, each, strict=True):
        assert counts_of(whole, [name]).sum() == kept.sum()


@pytest.mark.parametrize("missing", RULES)
def test_counts_of_sets_of_columns_are_the_margins_of_the_table_of_all(missing: str) -> None:
    whole = table(arrow(), SCHEMA, missing=missing)
    sets = [members for size in range(4) for members in permutations(range(len(NAMES)), size)]
    direct, margins = JointCounts(whole, NAMES)(sets), margins_of(counts_of(whole, NAMES), sets)
    assert len(sets) > 20 and all(np.array_equal(*both) for both in zip(direct, margins, strict=True))


def test_a_missing_level_is_one_more_level_where_it_is_asked_to_be() -> None:
    schema = table(arrow(), SCHEMA, missing="level").schema
    assert schema["number"] == dpc.Levels([5, -3, 2**40], other="missing")
    assert schema["text"] == SCHEMA["text"] and schema["cut"] == SCHEMA["cut"]
    frame = {"t": np.array(["1", None, "missing"], dtype=object)}
    declared = table(frame, {"t": dpc.Levels(["missing", "1"])}, missing="level")
    assert len(declared.schema["t"]) == 2 and declared.columns(["t"])["t"].tolist() == [1, 0, 0]


LAZY: dict[str, Any] = {"duckdb": DATABASE.from_arrow, "lazy": lambda whole: polars.from_arrow(whole).lazy()}


@pytest.mark.parametrize("kind", LAZY)
def test_many_columns_with_missing_cells_need_no_more_cells(kind: str) -> None:
    """A cell of its own for each pattern of what is missing would be 3^20 cells; single levels 2^40 more."""
    held = {f"c{place}": pa.array([0, None, 1, 0], pa.int64()) for place in range(20)}
    held |= {f"one{place}": pa.array([7, 7, 7, None], pa.int64()) for place in range(40)}
    schema = {name: dpc.Levels([0, 1]) if name[0] == "c" else dpc.Levels([7]) for name in held}
    counts = counts_of(table(LAZY[kind](pa.table(held)), schema), list(held))
    assert counts.sum() == 2 and counts.ravel()[0] == counts.ravel()[-1] == 1


def test_four_equal_widths_are_the_default() -> None:
    assert cuts_of(dpc.Bounded(0, 8)).tolist() == [2, 4, 6]
    assert cuts_of(dpc.Bounded(0, 8, cuts=[1])).tolist() == [1]
    assert len(cuts_of(dpc.Bounded(0, np.nextafter(1e-300, 1)))) >= 1


@pytest.mark.parametrize("kind", LAZY)
def test_a_lazy_frame_is_counted_where_it_is(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No row comes into memory: collecting columns would fail here."""
    levels = [name for name in NAMES if isinstance(SCHEMA[name], dpc.Levels)]
    whole = table(LAZY[kind](arrow()), SCHEMA)
    expected = JointCounts(whole, levels)([range(len(levels))])[0]
    monkeypatch.delattr(FrameSource, "collect")
    assert (counts_of(whole, levels).ravel() == expected).all()


def test_a_frame_that_lost_rows_is_refused_without_a_number() -> None:
    connection = duckdb.connect()
    connection.execute("create table t as select range % 2 as a, range % 2 as b from range(10)")
    whole = table(connection.table("t"), dict.fromkeys("ab", dpc.Levels([0, 1])))
    connection.execute("delete from t where a = 1")
    with pytest.raises(SchemaError) as caught:
        counts_of(whole, ["a", "b"])
    assert "5" not in str(caught.value) and "10" not in str(caught.value)


@pytest.mark.parametrize("levels", [127, 128, 129, 2**15])
def test_a_column_of_as_many_levels_as_a_narrow_number_has_is_counted(levels: int) -> None:
    """Seen to fail: of 128 levels the largest code fits eight bits and the size does not, and a paid graph ended."""
    codes = np.arange(levels)
    held = table({"a": codes, "b": codes % 2}, {"a": dpc.Levels(range(levels)), "b": dpc.Levels([0, 1])})
    of_a, of_b = JointCounts(held, ["a", "b"])([(0,), (1,)])
    assert of_a.tolist() == [1] * levels and of_b.sum() == levels
