"""Declarations: what is accepted, what is refused, and by which words."""

import copy
import pickle
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from dpcausal.data.schema import Bounded, Levels, Schema
from dpcausal.data.table import Table
from dpcausal.errors import SchemaError
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import PureDP


def test_bounds_are_kept_as_floats_with_the_midpoint_between() -> None:
    bounded = Bounded(np.int32(0), np.float32(110), cuts=(18, 65))
    assert (bounded.lower, bounded.upper, bounded.cuts) == (0.0, 110.0, (18.0, 65.0))
    assert type(bounded.lower) is type(bounded.upper) is float
    assert bounded.midpoint == 55.0
    assert bounded.width == 110.0
    assert repr(Bounded(-0.0, 1).lower) == "0.0"


@pytest.mark.parametrize(
    ("lower", "upper"), [(0, 8e307), (-8e307, 8e307), (1e308, 1.7e308), (1e16, 1e16 + 2), (-3e-308, 0)]
)
def test_the_midpoint_lies_within_the_bounds_at_the_ends_of_float64(lower: float, upper: float) -> None:
    assert lower <= Bounded(lower, upper).midpoint <= upper


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ((1, 0), "lower must be below upper"),
        ((1, 1), "lower must be below upper"),
        ((float("nan"), 1), "lower must be finite"),
        ((0, float("nan")), "upper must be finite"),
        ((0, float("inf")), "upper must be finite"),
        ((float("-inf"), 0), "lower must be finite"),
        ((0, 10**400), "upper must be finite"),
        ((False, 1), "lower must be a number"),
        ((0, np.True_), "upper must be a number"),
        (("0", 1), "lower must be a number"),
        ((0, None), "upper must be a number"),
        ((None, None), "lower must be a number; upper must be a number"),
        ((0, 1j), "upper must be a number"),
        ((0, Decimal(1)), "upper must be a number"),
        ((0, [1]), "upper must be a number"),
        ((-1.7e308, 1.7e308), "upper - lower must be finite"),
        ((0, 5e-324), "upper - lower must be at least"),
        ((0, 1, []), "cuts must hold at least one number"),
        ((0, 1, [0.5, 0.5]), "cuts must increase"),
        ((0, 1, [0.0, 0.5]), "strictly between"),
        ((0, 1, [0.5, 1]), "strictly between"),
        ((0, 1, [float("nan")]), "cuts must be finite"),
        ((0, 1, "0.5"), "cuts must be a list"),
        ((0, 1, 3), "cuts must be a list"),
    ],
)
def test_bounds_that_break_a_rule_are_refused_by_that_rule(arguments: tuple, rule: str) -> None:
    with pytest.raises(SchemaError, match=rule) as caught:
        Bounded(*arguments)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_there_are_no_default_bounds() -> None:
    with pytest.raises(TypeError):
        Bounded()  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("values", "other", "labels", "substitute"),
    [
        (["no", "yes"], None, ("no", "yes"), 0),
        (["no", "yes"], "yes", ("no", "yes"), 1),
        (["no", "yes"], "unknown", ("no", "yes", "unknown"), 2),
        ([0, 1, 2], None, (0, 1, 2), 0),
        ([0, 1, 2], "rest", (0, 1, 2, "rest"), 3),
        (np.array([3, 5]), -1, (3, 5, -1), 2),
        ([False, True], None, (False, True), 0),
        ([False], True, (False, True), 1),
        ((np.str_("a"),), None, ("a",), 0),
    ],
)
def test_levels_and_their_other_make_the_labels(values, other, labels, substitute) -> None:
    levels = Levels(values, other)
    assert levels.labels == labels
    assert [type(label) for label in levels.labels] == [type(label) for label in labels]
    assert levels.substitute == substitute
    assert len(levels) == len(labels)


@pytest.mark.parametrize(
    ("values", "other", "rule"),
    [
        ([], None, "at least one level"),
        (["a", "a"], None, "levels must differ"),
        ([1, 1], None, "levels must differ"),
        (["a", 1], None, "of one type"),
        ([0, True], None, "of one type"),
        ([0, "1"], None, "of one type"),
        ([1.5], None, "a level must be text, an integer or a boolean"),
        ([None], None, "a level must be text"),
        ([b"a"], None, "a level must be text"),
        ([2**64], None, "64 bits"),
        (["\ud800"], None, "valid Unicode"),
        ("ab", None, "levels must be a list"),
        ({"a", "b"}, None, "levels must be a list"),
        ({"a": 1}, None, "levels must be a list"),
        (3, None, "levels must be a list"),
        (["a"], 1, "other must be a name"),
        ([0, 1], True, "other must be a name"),
        ([0, 1], "1", "other must not be the text of a level"),
        ([0, 1], 1.5, "other a level must be text"),
    ],
)
def test_levels_that_break_a_rule_are_refused_by_that_rule(values, other, rule: str) -> None:
    with pytest.raises(SchemaError, match=rule):
        Levels(values, other)


def test_integer_levels_are_not_boolean_levels() -> None:
    assert Levels([0, 1]) != Levels([False, True])
    assert Levels([0, 1]) == Levels([0, 1]) == Levels([0.0, np.float32(1)])


@pytest.mark.parametrize("levels", [Levels([0, 1]), Levels([0.0, 1.0]), Levels([False, True])])
@pytest.mark.parametrize("dtype", ["int64", "float64", "bool", "uint8", object])
def test_numbers_and_booleans_match_levels_by_number_in_every_type_of_column(levels: Levels, dtype: str) -> None:
    """Seen to fail: Levels([0.0, 1.0]) was refused, Levels([0, 1]) of a boolean column, and of floats the others."""
    pandas = pytest.importorskip("pandas")
    values = np.array([1, 0, 1, 1], dtype=dtype)
    ledger = Ledger.in_memory(PureDP(1))
    for frame in ({"a": values}, pandas.DataFrame({"a": values})):
        assert Table(frame, Schema({"a": levels}), ledger).columns(["a"])["a"].tolist() == [1, 0, 1, 1]
    for code, alike in enumerate([(0, 0.0, False, np.float32(0)), (1, 1.0, True, np.bool_(True), np.int8(1))]):
        assert {levels.code_of(one) for one in alike} == {code}
    assert [levels.code_of(one) for one in (0.5, 2, "1", None, float("nan"), float("inf"), 2**70)] == [None] * 7


def test_a_schema_is_a_frozen_mapping_in_the_declared_order() -> None:
    schema = Schema({"b": Bounded(0, 1), "a": Levels(["x"])})
    assert schema.names == ("b", "a")
    assert list(schema) == ["b", "a"]
    assert schema["b"] == schema.column("b") == Bounded(0, 1)
    assert "c" not in schema
    assert len(schema) == 2
    assert hash(schema) == hash(Schema({"a": Levels(["x"]), "b": Bounded(0, 1)}))
    assert repr(schema) == "Schema({'b': Bounded(0, 1), 'a': Levels(['x'])})"
    for attempt in (
        lambda: setattr(schema, "names", ()),
        lambda: setattr(schema, "_columns", {}),
        lambda: delattr(schema, "_columns"),
        lambda: setattr(schema["b"], "lower", -1.0),
        lambda: setattr(schema["a"], "other", "y"),
    ):
        with pytest.raises(AttributeError):
            attempt()
    with pytest.raises(SchemaError, match="column 'c' is not in the schema"):
        schema.column("c")


@pytest.mark.parametrize(
    ("asked", "told"),
    [("income", "; did you mean 'Income'?"), ("INCOME", "; did you mean 'Income'?"),
     ("pressur", "; did you mean 'pressure'?"), ("pulse", ""), ("", ""), ("\ud800", "")],
)  # fmt: skip
def test_an_unknown_column_is_answered_by_the_nearest_declared_name(asked: str, told: str) -> None:
    schema = Schema(dict.fromkeys(["Income", "incoming", "pressure", "pressures"], Bounded(0, 1)))
    with pytest.raises(SchemaError) as caught:
        schema.column(asked)
    names = "Income, incoming, pressure, pressures"
    assert str(caught.value) == f"column {asked!r} is not in the schema, which has {names}{told}"


def test_a_schema_survives_pickle_copy_and_its_own_dictionary() -> None:
    schema = Schema({"age": Bounded(0, 0.1, cuts=[0.05]), "s": Levels([1, 2], other="rest")})
    for again in (pickle.loads(pickle.dumps(schema)), copy.deepcopy(schema), Schema(schema.to_dict())):
        assert again == schema
        assert repr(again) == repr(schema)
    assert schema.to_dict() == {
        "age": {"lower": 0.0, "upper": 0.1, "cuts": [0.05]},
        "s": {"levels": [1, 2], "other": "rest"},
    }


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        ({}, "at least one column"),
        ([("a", Bounded(0, 1))], "a schema is a mapping"),
        ({1: Bounded(0, 1)}, "name must be a text"),
        ({"": Bounded(0, 1)}, "name must be a text"),
        ({"age": (0, 1)}, "column 'age': must be Bounded"),
        ({"age": None}, "column 'age': must be Bounded"),
        ({"age": {}}, "column 'age': needs lower and upper, or levels"),
        ({"age": {"lower": 3, "upper": 1}}, "column 'age': lower must be below upper, got 3.0 and 1.0"),
        ({"age": {"lower": 3}}, "column 'age': upper is missing"),
        ({"age": {"lower": 0, "upper": 1, "levels": ["a"]}}, "column 'age': lower is not a key"),
        ({"age": {"lower": 0, "upper": 1, "other": "a"}}, "column 'age': other is not a key"),
        ({"age": {"levels": ["a", "a"]}}, "column 'age': levels must differ"),
    ],
)
def test_a_schema_names_the_column_and_the_rule_it_breaks(columns, rule: str) -> None:
    with pytest.raises(SchemaError, match=rule) as caught:
        Schema(columns)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("given", "told"),
    [((0, 80), r"got tuple; Bounded\(0, 80\)\?$"), ([0.5, 2], r"got list; Bounded\(0.5, 2\)\?$"),
     ((80, 0), "got tuple$"), (["no", "yes"], "got list$"), (np.array([0, 80]), "got ndarray$"), (3, "got int$")],
)  # fmt: skip
def test_what_is_no_declaration_is_told_by_its_type_and_a_range_as_bounds(given: object, told: str) -> None:
    with pytest.raises(SchemaError, match=told):
        Schema({"age": given})


def test_a_toml_file_gives_the_same_schema_as_python(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(
        '[age]\nlower = 0\nupper = 110\ncuts = [18, 65.5]\n["blood pressure"]\nlower = 1e1\nupper = 300\n'
        '[smoker]\nlevels = ["no", "yes"]\nother = "unknown"\n[ward]\nlevels = [1, 2]\n'
        "[alive]\nlevels = [false, true]\n",
        encoding="utf-8",
    )
    written = Schema.from_toml(path)
    assert written.names == ("age", "blood pressure", "smoker", "ward", "alive")
    assert written == Schema(
        {
            "age": Bounded(0, 110, cuts=[18, 65.5]),
            "blood pressure": Bounded(10, 300),
            "smoker": Levels(["no", "yes"], other="unknown"),
            "ward": Levels([1, 2]),
            "alive": Levels([False, True]),
        }
    )
    assert Schema.from_toml(str(path)) == written


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (b"[age\nlower = 0", "is not TOML"),
        (b"\xff", "UTF-8"),
        (b"", "at least one column"),
        (b"age = 3", "column 'age': must be Bounded"),
        (b"[age]\nlower = nan\nupper = 1", "column 'age': lower must be finite"),
        (b"[age]\nlower = 2020-01-01\nupper = 1", "column 'age': lower must be a number"),
        (b"[age]\nlower = true\nupper = 2", "column 'age': lower must be a number"),
        (b"[age]\nlower = '0'\nupper = 2", "column 'age': lower must be a number"),
        (b"[age]\nlower = 0\nuper = 2", "upper is missing; uper is not a key"),
        (b"[age]\nlevels = ['a', 1]", "column 'age': levels must be of one type"),
        (b"[age.b]\nlower = 0\nupper = 1", "column 'age': needs lower and upper"),
    ],
)
def test_a_toml_file_that_breaks_a_rule_is_refused(tmp_path: Path, text: bytes, rule: str) -> None:
    path = tmp_path / "schema.toml"
    path.write_bytes(text)
    with pytest.raises(SchemaError, match=rule):
        Schema.from_toml(path)


def test_a_missing_toml_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"nowhere\.toml"):
        Schema.from_toml(tmp_path / "nowhere.toml")
