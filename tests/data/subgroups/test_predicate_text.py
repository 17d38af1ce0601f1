"""The text of a subgroup names any column by its code points, is read by a grammar of its own, and never run."""

from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.data.subgroups.predicate import literal, parse_predicates
from dpcausal.errors import ParameterError
from dpcausal.privacy.noise import generator_from_seed

NAMES = (
    "age", "blood pressure", "blood.pressure", "\u00b5g", "\u03bcg", "\ufb01b", "fib", "class", "e\u0301", "\u00e9",
    "a-b", "x`y", "``", "2nd", "it's", 'say "x"', "[x]", "and", "in", "True", "a >= 1 and b", " ", "\n", "\u202e",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_any_name_can_be_quoted_in_two_ways_and_no_other_is_taken(name: str) -> None:
    for quote in "`", '"':
        written = quote + name.replace(quote, quote * 2) + quote
        assert parse_predicates(f"{written} >= 30") == [(name, {"at_least": 30})]
        assert parse_predicates(f"a == 1 and {written} in ['x']") == [("a", {"among": [1]}), (name, {"among": ["x"]})]


def test_a_micro_sign_is_no_greek_letter() -> None:
    """Python's own parser folds one name into the other: another column was taken, and paid for."""
    for name in ("\u00b5g", "\u03bcg", "\ufb01b"):
        assert parse_predicates(f"{name} >= 1")[0][0] == name
    folded = unicodedata.normalize("NFKC", "\u00b5g")
    assert parse_predicates("\u00b5g >= 1")[0][0] != folded
    frame = {"\u00b5g": np.array([0.0, 9.0]), "\u03bcg": np.array([9.0, 0.0])}
    schema = dpc.Schema({name: dpc.Bounded(0, 10) for name in frame})
    table = dpc.Table(frame, schema, dpc.Ledger.in_memory(dpc.PureDP(1)))
    ((name, words),) = parse_predicates("\u00b5g >= 5")
    assert table.where(name, **words).rows([]).included.tolist() == [False, True]


def test_two_texts_of_one_predicate_are_one() -> None:
    one = parse_predicates("age >= 20 and sex == 'f'")
    for text in ("`age`>=20 and \"sex\"==\"f\"", "  age  >=  +20\nand sex in ['f']", 'age >= 2e1 and sex in ("f")'):
        assert parse_predicates(text) == one


@pytest.mark.parametrize(
    "text",
    ["", "a", "a == b", "f(a) >= 1", "a >= 1 or b >= 1", "not a >= 1", "1 <= a <= 2", "a.b >= 1", "(" * 500, "a > 1",
     "a != 1", "'a' >= 1", "a >= `b`", "a >= 1 and", "a >= 1 b >= 1", "a in []", "a in 'abc'", "a in ['x'",
     "a in ['x')", "a in ['x' 'y']", "a >= 1e9999", "a >= 1.2.3", "a >= 1x", "a >= nan", "a >= inf", "a >= None",
     "a == 'x", "`a >= 1", "a >= --1", "a == [1]", "a in [[1]]", "e\u0301 >= 1", "a >= " + "9" * 5000,
     "a == __import__('os')", "\x00 >= 1"],
)  # fmt: skip
def test_what_is_no_predicate_is_refused(text: str) -> None:
    with pytest.raises(ParameterError) as refused:
        parse_predicates(text)
    assert "\x00" not in str(refused.value) and len(str(refused.value)) < 400


def test_a_number_beyond_floats_is_outside_the_bounds() -> None:
    """Seen to fail: an OverflowError of Python."""
    table = dpc.Table({"a": np.zeros(2)}, dpc.Schema({"a": dpc.Bounded(0, 1)}), dpc.Ledger.in_memory(dpc.PureDP(1)))
    for ends in ({"at_least": 10**400}, {"at_most": -(10**400)}):
        with pytest.raises(ParameterError):
            table.where("a", **ends)


def test_random_values_are_read_as_they_were_written() -> None:
    coins = generator_from_seed(41)
    letters = "ab'\"`\\ ,[]()=<>\u00b5\n"
    for _ in range(300):
        name = "".join(coins.choice(list(letters), coins.integers(1, 6)))
        text = "".join(coins.choice(list(letters), coins.integers(0, 6)))
        values: list[Any] = [text, int(coins.integers(-9, 9)), 2.5]
        listed = ", ".join(map(literal, values))
        quoted = "`" + name.replace("`", "``") + "`"
        assert parse_predicates(f"{quoted} in [{listed}] and {quoted} <= {values[1]}") == [
            (name, {"among": values}), (name, {"at_most": values[1]}),
        ]  # fmt: skip
