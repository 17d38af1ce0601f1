"""Declarations: what is accepted, and what is refused by a schema, its columns and its file."""

import copy
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpcausal as dpc
from dpcausal import Bounded, Levels, Schema
from dpcausal.errors import SchemaError

NAN, INF = float("nan"), float("inf")


def test_bounds_are_kept_as_floats_with_the_midpoint_between() -> None:
    bounded = Bounded(np.int32(0), np.float32(110), cuts=(18, 65))
    assert (bounded.lower, bounded.upper, bounded.cuts) == (0.0, 110.0, (18.0, 65.0))
    assert type(bounded.lower) is type(bounded.upper) is float
    assert (bounded.midpoint, bounded.width, repr(Bounded(-0.0, 1).lower)) == (55.0, 110.0, "0.0")
    for lower, upper in [(0, 8e307), (-8e307, 8e307), (1e308, 1.7e308), (1e16, 1e16 + 2), (-3e-308, 0)]:
        assert lower <= Bounded(lower, upper).midpoint <= upper


BOUNDS: list[tuple[Any, ...]] = [
    (1, 0), (1, 1), (NAN, 1), (0, NAN), (0, INF), (-INF, 0), (0, 10**400), (False, 1), (0, np.True_), ("0", 1),
    (0, None), (0, 1j), (0, Decimal(1)), (0, [1]), (-1.7e308, 1.7e308), (0, 5e-324), (0, 1, []), (0, 1, [0.5, 0.5]),
    (0, 1, [0.0, 0.5]), (0, 1, [0.5, 1]), (0, 1, [NAN]), (0, 1, "0.5"), (0, 1, 3), (0, 1, None, 9),
    (0, 1, None, [None]),
]  # fmt: skip
LEVELS: list[tuple[Any, ...]] = [
    ([],), (["a", "a"],), ([1, 1],), (["a", 1],), ([0, True],), ([0, "1"],), ([1.5],), ([None],), ([b"a"],), ([2**64],),
    (["\ud800"],), ("ab",), ({"a"},), ({"a": 1},), (3,), (["a"], 1), ([0, 1], True), ([0, 1], "1"), ([0, 1], 1.5),
    (["f", "9"], None, [9]), ([0, 1, 9], None, ["9"]),
]  # fmt: skip
COLUMNS: list[Any] = [
    {}, [("a", Bounded(0, 1))], {1: Bounded(0, 1)}, {"": Bounded(0, 1)}, {"age": (0, 1)}, {"age": None}, {"age": {}},
    {"age": {"lower": 3, "upper": 1}}, {"age": {"lower": 3}}, {"age": {"lower": 0, "upper": 1, "levels": ["a"]}},
    {"age": {"lower": 0, "upper": 1, "other": "a"}}, {"age": {"levels": ["a", "a"]}}, {"age": {"lower": 0, "uper": 2}},
    {"age": np.array([0, 80])}, {"age": 3}, *({name: Bounded(0, 1)} for name in (
        "gr\udcf6\udcdfe", "a\nb", "a\rb", "a\tb", "a\0b", "a\x1b[31m", "a\u2028b")),
]  # fmt: skip
FILES = [
    b"[age\nlower = 0", b"\xff", b"", b"age = 3", b"[age]\nlower = nan\nupper = 1", b"[age.b]\nlower = 0\nupper = 1",
    b"[age]\nlower = 2020-01-01\nupper = 1", b"[age]\nlower = true\nupper = 2", b"[age]\nlower = '0'\nupper = 2",
    b"[age]\nlower = 0\nuper = 2", b"[age]\nlevels = ['a', 1]",
]  # fmt: skip
REFUSALS = [(declare, one) for declare, several in ((Bounded, BOUNDS), (Levels, LEVELS)) for one in several]
REFUSALS += [(Schema, (one,)) for one in COLUMNS]


@pytest.mark.parametrize(("declare", "arguments"), REFUSALS, ids=lambda one: repr(one)[:40])
def test_a_declaration_that_breaks_a_rule_is_refused_without_a_chain(declare: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(SchemaError) as caught:
        declare(*arguments)
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize("text", FILES)
def test_a_toml_file_that_breaks_a_rule_is_refused(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "schema.toml"
    with pytest.raises(SchemaError, match=r"schema\.toml"):
        Schema.from_toml(path)
    path.write_bytes(text)
    with pytest.raises(SchemaError):
        Schema.from_toml(path)


def test_an_error_names_every_field_that_is_wrong() -> None:
    for columns, words in (
        ({"age": {"lower": None, "upper": None}}, ("age", "lower", "upper")),
        ({"age": {"lower": 0, "uper": 2}}, ("age", "upper", "uper")), ({"age": (0, 80)}, ("age", "Bounded(0, 80)?")),
    ):  # fmt: skip
        with pytest.raises(SchemaError) as caught:
            Schema(columns)  # type: ignore[arg-type]
        assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize(
    ("values", "other", "labels", "substitute"),
    [
        (["no", "yes"], None, ("no", "yes"), 0), (["no", "yes"], "yes", ("no", "yes"), 1),
        (["no", "yes"], "unknown", ("no", "yes", "unknown"), 2), ([0, 1, 2], None, (0, 1, 2), 0),
        ([0, 1, 2], "rest", (0, 1, 2, "rest"), 3), (np.array([3, 5]), -1, (3, 5, -1), 2),
        ([False, True], None, (False, True), 0), ([False], True, (False, True), 1), ((np.str_("a"),), None, ("a",), 0),
    ],
)  # fmt: skip
def test_levels_and_their_other_make_the_labels(values: Any, other: Any, labels: Any, substitute: int) -> None:
    levels = Levels(values, other)
    assert levels.labels == labels and len(levels) == len(labels) and levels.substitute == substitute
    assert [type(label) for label in levels.labels] == [type(label) for label in labels]


@pytest.mark.parametrize("levels", [Levels([0, 1]), Levels([0.0, 1.0]), Levels([False, True])])
@pytest.mark.parametrize("dtype", ["int64", "float64", "bool", "uint8", object])
def test_numbers_and_booleans_match_levels_by_number_in_every_type_of_column(levels: Levels, dtype: Any) -> None:
    values, ledger = np.array([1, 0, 1, 1], dtype=dtype), dpc.Ledger.in_memory(dpc.PureDP(1))
    for frame in ({"a": values}, pd.DataFrame({"a": values})):
        assert dpc.Table(frame, Schema({"a": levels}), ledger).columns(["a"])["a"].tolist() == [1, 0, 1, 1]
    for code, alike in enumerate([(0, 0.0, False, np.float32(0)), (1, 1.0, True, np.bool_(True), np.int8(1))]):
        assert {levels.code_of(one) for one in alike} == {code}
    assert [levels.code_of(one) for one in (0.5, 2, "1", None, NAN, INF, 2**70)] == [None] * 7
    assert Levels([0, 1]) != Levels([False, True]) and Levels([0, 1]) == Levels([0.0, np.float32(1)])


def test_a_schema_is_a_frozen_mapping_in_the_declared_order() -> None:
    schema = Schema({"b": Bounded(0, 1), "a": Levels(["x"])})
    assert schema.names == ("b", "a") == tuple(schema) and len(schema) == 2 and "c" not in schema
    assert schema["b"] == schema.column("b") == Bounded(0, 1)
    assert hash(schema) == hash(Schema({"a": Levels(["x"]), "b": Bounded(0, 1)}))
    assert repr(schema) == "Schema({'b': Bounded(0, 1), 'a': Levels(['x'])})"
    for owner, name in ((schema, "names"), (schema, "_columns"), (schema["b"], "lower"), (schema["a"], "other")):
        with pytest.raises(AttributeError):
            setattr(owner, name, 1)
    with pytest.raises(AttributeError):
        del schema._columns
    for name in ("größe", " ", "a,b", "<b>", "%s", "{x}", "名前", "क्‍ष"):
        assert Schema({name: Bounded(0, 1)}).names == (name,)


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [("income", "Income"), ("INCOME", "Income"), ("pressur", "pressure"), ("pulse", ""), ("", ""), ("\ud800", "")],
)
def test_an_unknown_column_is_answered_by_the_nearest_declared_name(asked: str, nearest: str) -> None:
    schema = Schema(dict.fromkeys(["Income", "incoming", "pressure", "pressures"], Bounded(0, 1)))
    with pytest.raises(SchemaError) as caught:
        schema.column(asked)
    assert str(caught.value).endswith(f"{nearest!r}?" if nearest else "pressures")


def test_a_schema_survives_pickle_copy_its_own_dictionary_and_a_toml_file(tmp_path: Path) -> None:
    schema = Schema({
        "age": Bounded(0, 0.1, cuts=[0.05], missing=[99, "-9", "."]), "blood pressure": Bounded(10, 300),
        "s": Levels([1, 2], other="rest"), "alive": Levels([False, True]), "g": Levels(["f", "m"], missing=["9", "NA"]),
    })  # fmt: skip
    path = tmp_path / "schema.toml"
    path.write_text(
        '[age]\nlower = 0\nupper = 0.1\ncuts = [0.05]\nmissing = [99, -9, "."]\n["blood pressure"]\nlower = 1e1\n'
        'upper = 300\n[s]\nlevels = [1, 2]\nother = "rest"\n[alive]\nlevels = [false, true]\n[g]\n'
        'levels = ["f", "m"]\nmissing = ["NA", 9]\n'
    )
    copies = pickle.loads(pickle.dumps(schema)), copy.deepcopy(schema), eval(repr(schema), vars(dpc))
    for again in (*copies, Schema(schema.to_dict()), Schema.from_toml(path), Schema.from_toml(str(path))):
        assert again == schema and repr(again) == repr(schema) and hash(again) == hash(schema)
    assert Schema({"a": Bounded(0, 1)}).to_dict() == {"a": {"lower": 0.0, "upper": 1.0}}
    assert schema != Schema({**schema, "g": Levels(["f", "m"])})
