"""The form by which kept answers are found: the same through versions, and never shared by two questions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, make_dataclass
from inspect import isabstract
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.asking.form import ARGUMENTS, form_of
from dpcausal.asking.kept import Foreseen, foreseeing
from dpcausal.asking.method import Method, Question
from dpcausal.codec import decode, encode
from dpcausal.independence.question import Hypothesis
from dpcausal.privacy.neighbours import Unit
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.report import Guarantee
from tests.asking import golden

LEDGER = dpc.Ledger.in_memory(dpc.ApproxDP(50, 1e-4))
PAID = tuple(f"paid for it on {when} UTC" for when in ("2026-11-22 22:31", "2026-11-23 15:49"))
"""When the answers were put on record."""


def form(call: Callable[[], Any], loss: dpc.PureDP = golden.PURE) -> str:
    """Return the form of a call, which is not made."""
    with foreseeing(), pytest.raises(Foreseen) as found:
        call()
    return form_of(found.value.task, found.value.plans, loss)


@pytest.mark.parametrize("name", list(golden.CALLS))
def test_answers_that_an_earlier_version_kept_are_found_and_read(name: str, tmp_path: Path) -> None:
    """Rows are all alike here: an answer can come from the ledger alone.  The record is for good: see CONTRIBUTING."""
    source = golden.ledger_of(name)
    shutil.copy(source, tmp_path / "l")
    spends = sum('"kind":"spend"' in line for line in source.read_text().splitlines())
    with dpc.Ledger.open(tmp_path / "l") as ledger:
        answer = golden.CALLS[name](ledger)
        assert answer.guarantee.kept.endswith(PAID)
        assert len(ledger.entries()) == spends and answer.summary()


def test_a_form_reads_as_it_was_written_in_the_first_version() -> None:
    expected = {
        "form": 1, "task": "ci_test", "loss": "PureDP(0.5)", "calls": [{
            "task": "ci_test", "asks": {"x": ["a"], "y": ["u"], "given": ["b", "v"], "alpha": 0.1},
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
    (lambda t: dpc.ci_test(t, ["a"], "u", given=["v", "b"], loss=golden.PURE),
     lambda t: dpc.ci_test(t, "a", "u", given=("b", "v"), loss=golden.PURE)),
    (lambda t: dpc.effect(t, treatment="a", outcome="u", adjust=["b", "v"], loss=golden.PURE),
     lambda t: dpc.effect(t, treatment="a", outcome="u", adjust=["v", "b"], loss=golden.PURE)),
    (lambda t: dpc.ci_test(t.where("b", among=["no", "yes"]).where("u", at_most=2), "a", "v", given=[],
                           loss=golden.PURE),
     lambda t: dpc.ci_test(t.where("u", at_most=2.0).where("b", among=["yes", "no"]), "a", "v", given=[],
                           loss=golden.PURE)),
    (lambda t: dpc.discover(t, loss=golden.PURE, knowledge=dpc.Knowledge(
        forbidden=[("a", "u"), ("a", "b")], tiers=[["b", "a"], ["u"]])),
     lambda t: dpc.discover(t, loss=golden.PURE, knowledge=dpc.Knowledge(
        forbidden=[("a", "b"), ("a", "u")], tiers=[["a", "b"], ["u"]]))),
])  # fmt: skip
def test_an_order_that_means_nothing_makes_no_other_question(one: Any, other: Any) -> None:
    """Seen to fail: the same test with its given columns turned round was paid for again."""
    table = golden.table(LEDGER)
    assert form(lambda: one(table)) == form(lambda: other(table))


def test_an_order_that_shapes_the_answer_makes_another_one() -> None:
    table = golden.table(LEDGER)
    for ask in (lambda names: dpc.cells(table, by=names, values=[], loss=golden.PURE),
                lambda names: dpc.moments(table, names, loss=golden.GAUSSIAN),
                lambda names: dpc.discover(table, columns=names, loss=golden.PURE)):  # fmt: skip
        assert form(lambda ask=ask: ask(["a", "b"])) != form(lambda ask=ask: ask(["b", "a"]))


def test_renamed_and_grown_classes_leave_the_form_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen to fail: the answer of a class that was given one more field, or another name, was paid for again."""
    before = form(lambda: golden.CALLS["ci_test"](LEDGER))
    grown = make_dataclass("Grown", [("ties", Any, None)], bases=(dpc.methods.Gcm,), frozen=True, kw_only=True)
    grown.__module__ = "dpcausal.elsewhere"
    monkeypatch.setattr(golden.methods, "Gcm", grown)
    Hypothesis.__name__ = "Null"
    try:
        assert form(lambda: golden.CALLS["ci_test"](LEDGER)) == before
    finally:
        Hypothesis.__name__ = "Hypothesis"


def test_an_answer_comes_back_to_a_class_that_has_grown_since(tmp_path: Path) -> None:
    """Seen to fail: one new field, whatever its default, and no kept answer could be read."""
    shutil.copy(golden.ledger_of("cells"), tmp_path / "l")
    answer = encode(golden.CALLS["cells"](dpc.Ledger.open(tmp_path / "l")).guarantee)
    del answer["fields"]["kept"]
    back = decode(answer)
    assert isinstance(back, Guarantee) and back.kept == "" and back.unit is Unit.ROW
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
        "ci_test": {"besides"}, "direction": {"besides"}, "cells": {"values", "finer"},
        "did": {"design", "bounds"},
    }  # fmt: skip
    kinds: set[Any] = {one for one in _below(Question) if is_dataclass(one) and not isabstract(one)}
    kinds = {one for one in kinds if one.__module__.startswith("dpcausal.")}
    assert {one.task for one in kinds} == set(ARGUMENTS)
    for kind in kinds:
        told = {name.partition(".")[0] for name in ARGUMENTS[kind.task]} - {"names" if kind.task == "cells" else ""}
        own = {field.name for field in fields(kind)} - {"table", "panel"}
        assert own == told | follows.get(kind.task, set()), kind.task


def test_no_two_methods_of_one_task_share_a_name() -> None:
    kinds: set[Any] = {one for one in _below(Method) if hasattr(one, "name") and not isabstract(one)}
    own = [one for one in kinds if one.__module__.startswith("dpcausal.") and one.__module__ != "dpcausal.elsewhere"]
    named = [(one.__module__.split(".")[1], one.name) for one in own]
    assert len(own) > 40
    assert {pair for pair in named if named.count(pair) > 1} <= {
        ("effects", "cells"), ("effects", "moments")  # of the tasks effect and cells, effect and moments
    }  # fmt: skip


COLUMNS = {name: np.zeros(1000) for name in "xyzw"}
CHOICES: dict[str, list[Any]] = {
    "name": ["s", "s2"], "n": [999, 1000], "upper": [1, 1.5], "missing": ["drop", "impute"], "turned": [False, True],
    "given": [[], ["z"], ["w"], ["z", "w"], ["w", "z"]], "alpha": [0.05, 0.1],
    "least": [None, 0.25, 0.25000000000000006], "method": ["gcm", "gcm-weighted", "kendall"], "blocks": [None, 6, 7],
    "loss": [dpc.PureDP(0.5), dpc.PureDP(1), dpc.ApproxDP(0.5, 1e-6)],
}  # fmt: skip
KINDS = {"gcm": dpc.methods.Gcm, "gcm-weighted": dpc.methods.WeightedGcm, "kendall": dpc.methods.Kendall}


def asked(d: dict[str, Any]) -> str:
    schema = dpc.Schema({name: dpc.Bounded(0, d["upper"]) for name in "xyzw"})
    frame = {name: values[: d["n"]] for name, values in COLUMNS.items()}
    table = dpc.Table(frame, schema, LEDGER, name=d["name"], missing=d["missing"])
    if d["least"] is not None and d["missing"] == "drop":
        table = table.where("w", at_least=d["least"])
    options = {} if d["method"] == "kendall" else {"blocks": d["blocks"]}
    names = ("y", "x") if d["turned"] else ("x", "y")
    return form(lambda: dpc.ci_test(table, *names, given=d["given"], alpha=d["alpha"], loss=d["loss"],
                                    method=KINDS[d["method"]](**options)), d["loss"])  # fmt: skip


def meaning(d: dict[str, Any]) -> tuple[Any, ...]:
    """Return what makes a question another one, by the words of the documentation."""
    least = d["least"] if d["missing"] == "drop" else None
    blocks = None if d["method"] == "kendall" else d["blocks"]
    same = (d["name"], d["n"], d["upper"], d["missing"], d["alpha"], least, d["turned"], d["method"], blocks)
    return (*same, frozenset(d["given"]), str(d["loss"]), type(d["loss"]).__name__)


def test_two_calls_share_a_form_just_if_they_mean_the_same() -> None:
    coins = generator_from_seed(3)
    forms: dict[str, Any] = {}
    meanings: dict[Any, str] = {}
    for _ in range(12):
        base = {name: some[coins.integers(len(some))] for name, some in CHOICES.items()}
        for changed in (base | {name: value} for name, some in CHOICES.items() for value in some):
            if _said(changed):
                made, meant = asked(changed), meaning(changed)
                assert forms.setdefault(made, meant) == meant, "one form, two meanings"
                assert meanings.setdefault(meant, made) == made, "one meaning, two forms"
    assert len(forms) > 60


def _said(d: dict[str, Any]) -> bool:
    """Return whether each option is said, as a settled rule may choose blocks that somebody else names, and can be."""
    return (d["method"] == "kendall") == (d["blocks"] is None) and (
        d["missing"] == "drop" or (d["least"] is None and d["method"] != "kendall")
    )
