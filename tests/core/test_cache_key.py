"""The key by which cached results are found: the same through versions, and never shared by two questions."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, make_dataclass
from inspect import isabstract
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.codec import decode, encode
from dpcausal.core.cache import ARGUMENTS, DryRunStop, cache_key_text, dry_run
from dpcausal.core.method import Method, PlannedCall, Question
from dpcausal.data.records import Reading
from dpcausal.independence.question import IndependenceQuestion
from tests.core import golden

LEDGER = dpc.Ledger.in_memory(dpc.ApproxDP(20, 1e-4))
LEDGER_OF_DONORS = dpc.Ledger.in_memory(dpc.ApproxDP(20, 1e-4), unit="unit")


def stopped(call: Callable[[], Any]) -> DryRunStop:
    """Return what a call would cost, which is not made."""
    with dry_run(), pytest.raises(DryRunStop) as found:
        call()
    return found.value


def form(call: Callable[[], Any], loss: dpc.PureDP = golden.PURE) -> str:
    found = stopped(call)
    return cache_key_text(found.task, found.plans, loss)


@pytest.mark.parametrize("name", list(golden.CALLS))
def test_answers_that_an_earlier_version_kept_are_found_and_read(name: str, tmp_path: Path) -> None:
    """Rows are all alike here: an answer can come from the ledger alone.  The record is for good: see CONTRIBUTING."""
    source = golden.ledger_of(name)
    shutil.copy(source, tmp_path / "l")
    spends = sum('"kind":"spend"' in line for line in source.read_text().splitlines())
    with dpc.Ledger.open(tmp_path / "l") as ledger:
        answer = golden.CALLS[name](ledger)
        assert answer.guarantee.cached
        assert len(ledger.entries()) == spends and answer.summary()


def test_a_form_reads_as_it_is_written_down_here() -> None:
    expected = {
        "form": 2, "task": "ci_test", "loss": "PureDP(0.5)", "calls": [{
            "task": "ci_test", "question": {"x": ["a"], "y": ["u"], "given": ["v", "b"], "alpha": 0.1},
            "loss": "PureDP(0.5)", "method": {
                "name": "gcm", "options": {"blocks": 8, "regression": "additive", "resamples": 19, "workers": 1}},
            "table": {
                "name": "golden", "n": 2500, "unit": "row", "ids": "private", "missing": "drop", "share": 0.9,
                "where": [{"among": ["no", "yes"], "column": "b"}, {"at_least": -3.0, "column": "v"}],
                "schema": {
                    "a": {"levels": [0, 1]}, "b": {"levels": ["no", "yes"], "other": "no"},
                    "u": {"lower": -4.0, "upper": 4.0},
                    "v": {"lower": -4.0, "upper": 4.0, "cuts": [-1.0, 1.0]}}}}]}  # fmt: skip
    assert json.loads(form(lambda: golden.CALLS["ci_test"](LEDGER))) == expected


@pytest.mark.parametrize("one, other", [
    (lambda t: dpc.ci_test(t, ["a"], "u", given=["b", "v"], loss=golden.PURE),
     lambda t: dpc.ci_test(t, "a", "u", given=("b", "v"), loss=golden.PURE)),
    (lambda t: dpc.ci_test(t.where("b", among=["no", "yes"]).where("u", at_most=2), "a", "v", given=[],
                           loss=golden.PURE),
     lambda t: dpc.ci_test(t.where("u", at_most=2.0).where("b", among=["yes", "no"]), "a", "v", given=[],
                           loss=golden.PURE)),
    (lambda t: dpc.discover(t, loss=golden.PURE, knowledge=dpc.Knowledge(forbidden=[("a", "u"), ("a", "b")])),
     lambda t: dpc.discover(t, loss=golden.PURE, knowledge=dpc.Knowledge(forbidden=[("a", "b"), ("a", "u")]))),
])  # fmt: skip
def test_an_order_that_means_nothing_makes_no_other_question(one: Any, other: Any) -> None:
    table = golden.table(LEDGER)
    assert form(lambda: one(table)) == form(lambda: other(table))


SPELLINGS: dict[str, list[Callable[[dpc.Table], Any]]] = {  # each list is one question
    "an arm": [
        lambda t, pair=pair: dpc.effect(
            t, treatment="a", outcome="u", adjust=["b"], treated=pair[0], control=pair[1], loss=golden.PURE)
        for pair in ((1, 0), (True, False), (1.0, 0.0), ("1", "0"), (np.int8(1), np.bool_(False)))
    ],
    "a bound of zero": [
        lambda t, zero=zero: dpc.ci_test(t.where("u", at_least=zero), "a", "b", given=[], loss=golden.PURE)
        for zero in (0, 0.0, -0.0, np.float32(-0.0))
    ],
    "a range": [
        lambda t: dpc.ci_test(t.where("u", at_least=0, at_most=2), "a", "b", given=[], loss=golden.PURE),
        lambda t: dpc.ci_test(t.where("u", at_least=0).where("u", at_most=2), "a", "b", given=[], loss=golden.PURE),
        lambda t: dpc.ci_test(
            t.where("u", at_most=3).where("u", at_least=0, at_most=2).where("u", at_least=-1), "a", "b", given=[],
            loss=golden.PURE),
    ],
    "levels": [
        lambda t: dpc.ci_test(t.where("b", among=["no"]), "a", "u", given=[], loss=golden.PURE),
        lambda t: dpc.ci_test(
            t.where("b", among=["yes", "no"]).where("b", among=["no"]).where("b", among=["no", "no"]), "a", "u",
            given=[], loss=golden.PURE),
    ],
    "a cutoff": [
        lambda t, cutoff=cutoff: dpc.discontinuity(t, running="u", outcome="v", cutoff=cutoff, bins=6, loss=golden.PURE)
        for cutoff in (0, 0.0, -0.0)
    ],
}  # fmt: skip


@pytest.mark.parametrize("calls", SPELLINGS.values(), ids=list(SPELLINGS))
def test_one_question_is_paid_for_once_however_it_is_written(calls: list[Callable[[dpc.Table], Any]]) -> None:
    """Seen to fail: 1 and True, 0.0 and -0.0, one range in two clauses were paid for as other questions."""
    table = golden.table(LEDGER)
    assert len({form(lambda c=call: c(table)) for call in calls}) == 1  # type: ignore[misc]


SIZES = [[[100, 200], [300, 400]], [[500, 300], [400, 300]]]
ORDERS: dict[str, Callable[..., Any]] = {
    "given": lambda t, names: dpc.ci_test(t, "a", "u", given=names(["b", "v"]), loss=golden.PURE),
    "x": lambda t, names: dpc.ci_test(t, names(["a", "v"]), "u", given=[], loss=golden.PURE, method=dpc.methods.Gcm()),
    "y": lambda t, names: dpc.ci_test(t, "u", names(["a", "v"]), given=[], loss=golden.PURE, method=dpc.methods.Gcm()),
    "x and y": lambda t, names: dpc.ci_test(t, *names(["a", "u"]), given=[], loss=golden.PURE),
    "a law of given": lambda t, names: dpc.ci_test(
        t, "u", "a", given=names(["b", "v"]), loss=golden.PURE,
        method=dpc.methods.Crt(model_x={"mean": {"intercept": 0.0, "v": 0.5}, "sd": 1.0})),
    "hypotheses": lambda t, names: dpc.ci_tests(t, names([("a", "b", []), ("a", "u", [])]), loss=golden.PURE),
    "first, second": lambda t, names: dpc.direction(t, *names(["u", "v"]), loss=golden.PURE),
    "columns of a graph": lambda t, names: dpc.discover(t, columns=names(["a", "b", "u"]), loss=golden.PURE),
    "tiers": lambda t, names: dpc.discover(
        t, loss=golden.PURE, knowledge=dpc.Knowledge(tiers=names([["a", "b"], ["u"]]))),
    "sizes": lambda t, names: dpc.effect(
        t, treatment="a", outcome="u", adjust=names(["b", "c"]), loss=golden.PURE,
        method=dpc.methods.RandomizedTrial(sizes=SIZES)),
    "probabilities": lambda t, names: dpc.effect(
        t, treatment="a", outcome="u", adjust=names(["b", "c"]), loss=golden.PURE,
        method=dpc.methods.RandomizedTrial(probabilities=[[[.5, .15], [.85, .5]], [[.5, .85], [.15, .5]]])),
    "adjust": lambda t, names: dpc.effect(t, treatment="a", outcome="u", adjust=names(["b", "v"]), loss=golden.PURE),
    "by": lambda t, names: dpc.cells(t, by=names(["a", "b"]), loss=golden.PURE),
    "values": lambda t, names: dpc.cells(t, by=["a"], values=names(["u", "v"]), loss=golden.PURE),
    "columns of moments": lambda t, names: dpc.moments(t, names(["u", "v"]), loss=golden.GAUSSIAN),
    "regressors": lambda t, names: dpc.moments(
        t, ["u", "v", "a"], robust_for=("u", names(["v", "a"])), loss=golden.GAUSSIAN),
}  # fmt: skip


@pytest.mark.parametrize("ask", ORDERS.values(), ids=list(ORDERS))
def test_an_order_that_an_option_or_an_answer_follows_makes_another_question(ask: Callable[..., Any]) -> None:
    """Seen to fail: an effect whose sizes stood in the other order was given the first one's cached result."""
    columns = {name: np.zeros(2500) for name in "uv"} | {name: np.zeros(2500, dtype=int) for name in "abc"}
    schema = dpc.Schema({name: dpc.Bounded(-4, 4) for name in "uv"} | {name: dpc.Levels([0, 1]) for name in "abc"})
    t = dpc.Table(columns, schema, LEDGER, name="orders")
    assert form(lambda: ask(t, lambda names: names)) != form(lambda: ask(t, lambda names: names[::-1]))


class Changing:
    """A question whose fields can be changed one at a time."""

    def __init__(self, question: Any, **changed: Any) -> None:
        self._question, self._changed = question, changed

    def __getattr__(self, name: str) -> Any:
        return self._changed[name] if name in self._changed else getattr(self._question, name)


def methods_of_the_library() -> list[Any]:
    kinds = {one for one in _below(Method) if hasattr(one, "name") and not isabstract(one)}
    own = [one for one in kinds if one.__module__.startswith("dpcausal.") and one.__module__ != "dpcausal.elsewhere"]
    return sorted(own, key=lambda one: (one.__module__, one.__qualname__))


VALUES: list[Any] = [
    True, False, 0, 1, 1.0, 1.0000000000000002, -0.0, "1", (1, 2), (2, 1), ((1, 2), (3,)), ((1, 2, 3),), ("a", "b"),
    ("b", "a"), {"a": 1, "b": 2}, {"a": 2, "b": 1}, dpc.methods.Gcm(), dpc.methods.Gcm(blocks=8), float("inf"),
]  # fmt: skip


def test_each_option_of_each_method_is_in_the_form_with_its_exact_value_and_order() -> None:
    plan = stopped(lambda: golden.CALLS["ci_test"](LEDGER)).plans[0]
    kinds = methods_of_the_library()
    named = {(kind.__module__.split(".")[1], kind.name) for kind in kinds}
    assert len(named) == len(kinds) > 40  # no two of one task share a name
    for kind in kinds:
        for option in fields(kind):
            forms = set()
            for value in VALUES:
                method = object.__new__(kind)
                for one in fields(kind):
                    object.__setattr__(method, one.name, value if one.name == option.name else None)
                forms.add(cache_key_text("t", [PlannedCall(plan.question, method, golden.PURE)], golden.PURE))
            assert len(forms) == len(VALUES), (kind, option.name)


@pytest.mark.parametrize("name", list(golden.CALLS))
def test_each_argument_of_each_question_is_in_the_form_with_its_exact_value_and_order(name: str) -> None:
    ledger = dpc.Ledger.in_memory(golden.BUDGET, **golden.unit_of(name))
    plan = stopped(lambda: golden.CALLS[name](ledger)).plans[0]
    for argument in ARGUMENTS[plan.question.task]:
        whole, _, part = argument.partition(".")
        forms = set()
        for value in [one for one in VALUES if not isinstance(one, Method)]:
            held = Changing(getattr(plan.question, whole), **{part: value}) if part else value
            question: Any = Changing(plan.question, **{whole: held})
            forms.add(cache_key_text("t", [PlannedCall(question, plan.method, golden.PURE)], golden.PURE))
        assert len(forms) == len(VALUES) - 2, argument


WIDER = dpc.Schema({"unused": dpc.Levels(["a", "u"]), **dict(reversed(list(golden.SCHEMA.items())))})


@pytest.mark.parametrize("name", [one for one in golden.CALLS if one not in ("did", "synthetic_control")])
def test_calls_of_one_form_read_the_same_columns_and_release_the_same(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: a column more in a study's schema, and each of its questions was paid for again."""
    read, forms, answers = list[set[str]](), list[str](), list[Any]()
    plain = Reading.of.__func__  # type: ignore[attr-defined]

    def recording(cls: Any, table: Any, names: tuple[str, ...]) -> Reading:
        found: Reading = plain(cls, table, names)
        read.append(set(found.needed))
        return found

    monkeypatch.setattr(Reading, "of", classmethod(recording))
    for schema in (golden.SCHEMA, WIDER):
        monkeypatch.setattr(golden, "SCHEMA", schema)
        forms.append(form(lambda: golden.CALLS[name](LEDGER)))
        with dpc.simulated_noise(11):
            answer = golden.CALLS[name](dpc.Ledger.in_memory(golden.BUDGET), 5)
        parts = answer if isinstance(answer, tuple) else (answer,)
        answers.append([re.sub(r'"ledger_head": "\w+"', "", one.to_json()) for one in parts])
    assert forms[0] == forms[1]
    assert answers[0] == answers[1]
    used = {one for call in json.loads(forms[0])["calls"] for one in call["table"]["schema"]}
    assert read and all(names <= used for names in read)


@pytest.mark.parametrize("column", [
    dpc.Bounded(-4, 5, cuts=[-1, 1]), dpc.Bounded(-4, 4, cuts=[-1, 2]), dpc.Bounded(-4, 4),
    dpc.Bounded(-4, 4, cuts=[-1, 1.0000000000000002]),
])  # fmt: skip
def test_another_declaration_of_a_used_column_is_another_question(
    column: dpc.Bounded, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = form(lambda: golden.CALLS["ci_test"](LEDGER))
    monkeypatch.setattr(golden, "SCHEMA", dpc.Schema({**golden.SCHEMA, "v": column}))
    assert form(lambda: golden.CALLS["ci_test"](LEDGER)) != before


@pytest.mark.parametrize("change", [
    {"target": 0}, {"period": 3, "value": float("nan")}, {"value": 1e-300}, {"outcome": "z"}, {"time": "when"},
])  # fmt: skip
def test_a_target_whose_own_series_was_put_right_is_asked_about_anew(change: dict[str, Any]) -> None:
    """Seen to fail: the cached result for the old series, which is public, was given for the corrected one."""

    def ask(place: int | None, value: float, outcome: str, time: str) -> Any:
        series = np.zeros((101, 12))
        if place is not None:
            series[0, place] = value
        frame = {"unit": np.repeat(np.arange(101), 12), time: np.tile(np.arange(12), 101), outcome: series.ravel()}
        panel = dpc.Panel(frame, unit="unit", time=time, outcome=outcome, target=0, start=9, bounds=dpc.Bounded(-1, 1),
                          ledger=LEDGER_OF_DONORS, name="golden")  # fmt: skip
        return dpc.synthetic_control(panel, loss=dpc.PureDP(1), force=True, method=dpc.methods.Matched())

    base = form(lambda: ask(None, 0.0, "y", "year"))
    changed = form(lambda: ask(
        change.get("period", 11) if "value" in change else None, change.get("value", 0.0), change.get("outcome", "y"),
        change.get("time", "year")))  # fmt: skip
    assert (base == changed) == ("target" in change)


def test_renamed_and_grown_classes_leave_the_form_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen to fail: the answer of a class that was given one more field, or another name, was paid for again."""
    before = form(lambda: golden.CALLS["ci_test"](LEDGER))
    grown = make_dataclass("Grown", [("ties", Any, None)], bases=(dpc.methods.Gcm,), frozen=True, kw_only=True)
    grown.__module__ = "dpcausal.elsewhere"
    monkeypatch.setattr(golden.methods, "Gcm", grown)
    IndependenceQuestion.__name__ = "Null"
    try:
        assert form(lambda: golden.CALLS["ci_test"](LEDGER)) == before
    finally:
        IndependenceQuestion.__name__ = "IndependenceQuestion"


def test_an_answer_comes_back_to_a_class_that_has_grown_since(tmp_path: Path) -> None:
    """Seen to fail: one new field, whatever its default, and no cached result could be read."""
    shutil.copy(golden.ledger_of("cells"), tmp_path / "l")
    answer = encode(golden.CALLS["cells"](dpc.Ledger.open(tmp_path / "l")).guarantee)
    del answer["fields"]["cached"]
    back = decode(answer)
    assert isinstance(back, dpc.Guarantee) and back.cached == "" and back.unit is dpc.Unit.ROW
    del answer["fields"]["loss"]  # without a default: not guessed at
    with pytest.raises(ValueError):
        decode(answer)


def _below(kind: type) -> Iterator[type]:
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)


def test_each_field_of_a_question_is_in_the_form_or_follows_from_what_is() -> None:
    """A new field must be placed by hand: left out of the form, it would mix two questions up."""
    follows = {
        "ci_test": {"besides"}, "direction": {"besides", "half"}, "cells": {"values", "finer"},
        "did": {"design", "bounds"},
    }  # fmt: skip
    kinds: set[Any] = {one for one in _below(Question) if is_dataclass(one) and not isabstract(one)}
    kinds = {one for one in kinds if one.__module__.startswith("dpcausal.")}
    assert {one.task for one in kinds} == set(ARGUMENTS)
    for kind in kinds:
        told = {name.partition(".")[0] for name in ARGUMENTS[kind.task]} - {"names" if kind.task == "cells" else ""}
        own = {field.name for field in fields(kind)} - {"table", "panel"}
        assert own == told | follows.get(kind.task, set()), kind.task
