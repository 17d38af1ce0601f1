"""Subgroups: public predicates, frozen views on one ledger, the same in every back end; nothing read, nothing paid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.data.counts import counts_of
from dpcausal.errors import ParameterError, SchemaError
from tests.data.conftest import BACKENDS

SCHEMA = dpc.Schema({"age": dpc.Bounded(0, 110), "sex": dpc.Levels(["f", "m"]), "x": dpc.Bounded(0, 1)})
AGES = [None, 5.0, 20.0, 20.5, 64.0, 200.0, -3.0, 30.0]
SEXES = ["f", "f", "f", "m", None, "f", "m", "f"]


def arrow() -> pa.Table:
    x = pa.array([0.5] * 7 + [None], pa.float64())
    return pa.table({"age": pa.array(AGES, pa.float64()), "sex": SEXES, "x": x})


def table_of(frame: Any, **more: Any) -> dpc.Table:
    return dpc.Table(frame, SCHEMA, dpc.Ledger.in_memory(dpc.PureDP(10)), **more)


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_a_subgroup_is_the_same_in_every_back_end(backend: str, tmp_path: Path) -> None:
    table = table_of(BACKENDS[backend](arrow(), tmp_path))
    grown = table.where("age", at_least=20)
    women = grown.where("sex", among=["f"])
    assert table.rows(["x"]).included.tolist() == [True] * 7 + [False]
    assert grown.rows([]).included.tolist() == [False, False, True, True, True, True, False, True]
    assert women.rows(["x"]).included.tolist() == [False, False, True, False, False, True, False, False]
    assert table.where("age", at_least=20, at_most=30).rows([]).included.sum() == 3
    assert counts_of(women, ["sex"]).tolist() == [3, 0] and counts_of(table, ["sex"]).tolist() == [5, 2]
    assert women.n == table.n == 8 and women.ledger is table.ledger and not table.declared
    assert women.declared == {"where": ["age >= 20", "sex in ['f']"]} and "where=['age >= 20'" in repr(women)


def test_a_missing_value_is_outside_whatever_stands_in_for_it() -> None:
    """The first row's age counts as 55 elsewhere, the fifth row's sex as the first level."""
    table = table_of(arrow())
    assert not table.where("age", at_least=50, at_most=60).rows([]).included.any()
    assert table.where("sex", among=["f", "m"]).rows([]).included.tolist() == [sex is not None for sex in SEXES]
    named = table_of(arrow(), missing="level").where("sex", among=["missing"])
    assert named.rows([]).included.tolist() == [sex is None for sex in SEXES]


def test_a_subgroup_is_paid_for_from_the_same_ledger_and_told() -> None:
    rng = np.random.default_rng(1)
    frame = {"age": rng.uniform(0, 100, 600), "sex": rng.choice(["f", "m"], 600), "x": rng.random(600)}
    table = table_of(frame)
    women = table.where("sex", among=["f"], share=0.5)
    found = dpc.ci_test(women, "age", "x", given=[], method="gcm", loss=dpc.PureDP(1))
    assert found.n == 600 and found.settings["blocks"] == 5  # half of what n would set
    assert table.ledger.remaining.epsilon == 9
    assert "the subgroup: sex in ['f']" in found.guarantee.public
    assert "\"where\":[\"sex in ['f']\"]" in table.ledger.entries()[0].detail.replace(": ", ":")


@pytest.mark.parametrize(
    ("name", "words", "error", "told"),
    [
        ("nobody", {"at_least": 1}, SchemaError, "not in the schema"),
        ("age", {}, ParameterError, "give at_least= or at_most="),
        ("age", {"among": [1]}, ParameterError, "give at_least= or at_most="),
        ("age", {"at_least": "20"}, ParameterError, "must be a number"),
        ("age", {"at_least": True}, ParameterError, "must be a number"),
        ("age", {"at_least": float("nan")}, ParameterError, "within the bounds"),
        ("age", {"at_least": 111}, ParameterError, "within the bounds"),
        ("age", {"at_least": 30, "at_most": 20}, ParameterError, "nobody would be in"),
        ("age", {"at_least": 30, "share": 0}, ParameterError, "share must be"),
        ("sex", {"at_least": 1}, ParameterError, "say among"),
        ("sex", {"among": []}, ParameterError, "at least one"),
        ("sex", {"among": "f"}, ParameterError, "list of levels"),
        ("sex", {"among": ["woman"]}, ParameterError, "declared for column"),
    ],
)
def test_an_unfit_predicate_is_refused(name: str, words: dict[str, Any], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        table_of(arrow()).where(name, **words)
    with pytest.raises(ParameterError, match="missing='drop'"):
        table_of(arrow(), missing="impute").where("age", at_least=20)


def test_parts_that_no_value_meets_are_refused_before_anything_is_paid() -> None:
    """Seen to fail: "f" and "m" at once was paid for."""
    table = table_of(arrow())
    for one, other in ((("sex", {"among": ["f"]}), ("sex", {"among": ["m"]})),
                       (("age", {"at_least": 60}), ("age", {"at_most": 59.5}))):  # fmt: skip
        for first, second in ((one, other), (other, one)):
            with pytest.raises(ParameterError, match="nobody would be in the subgroup"):
                table.where(first[0], **first[1]).where(second[0], **second[1])
    assert table.where("age", at_least=60).where("age", at_most=60).where("sex", among=["f"]).n == table.n


def test_an_empty_subgroup_is_answered_as_one_that_says_nothing() -> None:
    rng = np.random.default_rng(2)
    frame = {"age": rng.uniform(0, 50, 600), "sex": rng.choice(["f", "m"], 600), "x": rng.random(600)}
    nobody = table_of(frame).where("age", at_least=100)
    found = dpc.ci_test(nobody, "age", "x", given=["sex"], loss=dpc.PureDP(1))
    assert found.pvalue is not None and found.n == 600
    assert dpc.discover(nobody, columns=["sex", "age"], loss=dpc.PureDP(1)).n == 600


def test_whether_a_person_is_in_a_subgroup_is_asked_of_each_row() -> None:
    frame = {"id": np.repeat(np.arange(4), 2), "age": np.array([10.0, 30, 10, 15, 40, 50, 30, 10])}
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1), person="id")
    table = dpc.Table(frame, dpc.Schema({"age": SCHEMA["age"]}), ledger, person="id")
    rows = table.where("age", at_least=20).rows(["age"])
    assert rows.n == 4 and rows.included.sum() == 3 and (rows.values["age"][rows.included] >= 20).all()


@pytest.mark.parametrize("low, high", [
    (1234567.0, 1234570.0), (0.1, np.nextafter(0.1, 1.0)), (1e300, 1.0000000000000002e300), (123456.1, 123456.2),
])  # fmt: skip
def test_two_subgroups_are_never_named_by_one_text(low: float, high: float) -> None:
    """Seen to fail: both ends were rounded to six digits in results, the ledger and reports."""
    schema = dpc.Schema({"income": dpc.Bounded(0, 2e300), "a": dpc.Levels([0, 1]), "b": dpc.Levels([0, 1])})
    frame = {"income": np.zeros(100), "a": np.zeros(100, int), "b": np.zeros(100, int)}
    table = dpc.Table(frame, schema, dpc.Ledger.in_memory(dpc.PureDP(2)))
    texts = [table.where("income", at_least=end).declared["where"][0] for end in (low, high)]
    assert [float(text.rpartition(" ")[2]) for text in texts] == [low, high]
    cut = dpc.cells(
        dpc.Table(frame, dpc.Schema({**schema, "income": dpc.Bounded(0, 1e9, cuts=[1234567, 1234570])}),
                  dpc.Ledger.in_memory(dpc.PureDP(2))), by=["income"], loss=dpc.PureDP(1))  # fmt: skip
    assert len(set(cut.levels[0])) == 3
