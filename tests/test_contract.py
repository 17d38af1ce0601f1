"""The contract: what every way to ask a table must do, whatever its method.

``EXAMPLES`` holds a call for each way.  Methods are read off the lists of their tasks, so that a new one is met here by
being in its list; what it needs besides stands in ``option`` and in the function of its task, and a new task adds a
call.  No room tests again what is tested here: that a budget which is too small is refused before a row is read; that
the answer goes to JSON, to a pickle and to a line, names its claims and comes back from the ledger free; that it is
exact without privacy; and that a whole person, all of whose rows are replaced by any number, under private ids with
another id too, moves nothing past its bound, while guarantee, ledger and summary say person.

Of persons, one pair is of usual rows, one of a table in which everybody else has missing values alone, one of a
subgroup that is empty but for that person: nothing but the answers may differ.
"""

import json
import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.audit import compare
from dpcausal.direction.methods import METHODS as DIRECTION
from dpcausal.discovery.methods import METHODS as DISCOVERY
from dpcausal.effects.estimators import METHODS as EFFECTS
from dpcausal.errors import BudgetExceededError, ParameterError
from dpcausal.independence.methods import METHODS as TESTS
from dpcausal.privacy.sensitivity import Unit
from dpcausal.result import Result
from dpcausal.statistics.neighbour_pairs import untied_sensitivity
from tests.effects.tables import adjusted_by
from tests.factories import refused_unpaid, told
from tests.registry.persons import keyed, over_persons, records, rows_of_persons
from tests.registry.rows import SensitivityRow

PERSONS = 300
SCHEMA = dpc.Schema(dict.fromkeys("xyz", dpc.Bounded(-1, 1)) | dict.fromkeys("ab", dpc.Levels([0, 1])))
PURE, APPROXIMATE, BUDGET = dpc.PureDP(4), dpc.ApproxDP(20, 1e-6), dpc.ApproxDP(20, 1e-5)
OPTIONS = {
    "blocks": 5, "rows_per_block": 48, "resamples": 19, "model_x": {"mean": {"intercept": 0.0, "z": 0.5}, "sd": 0.5},
}  # fmt: skip
METHODS = dpc.methods


def option(kind: Any) -> dict[str, Any]:
    """Return what keeps a method small, of the options that it has."""
    return {name: value for name, value in OPTIONS.items() if name in kind.__dataclass_fields__}


def of_test(kind: Any) -> partial[Any]:
    of_levels = kind.name in ("counts", "strata-covariance")
    x, y = ("a", "b") if of_levels else ("x", "y")
    given = [] if of_levels or kind.name == "hsic" else ["z"]
    return partial(dpc.ci_test, x=x, y=y, given=given, method=kind(**option(kind)), loss=PURE)


def of_direction(kind: Any) -> partial[Any]:
    return partial(dpc.direction, first="x", second="y", score=kind.scores[0], method=kind(**option(kind)), loss=PURE)


def of_graph(kind: Any) -> partial[Any]:
    names = ["x", "y", "z"] if kind.name in ("moments", "ci-test") else ["a", "b", "x"]
    loss = PURE if kind.name in ("table", "ci-test") else APPROXIMATE
    return partial(dpc.discover, columns=names, method=kind(), loss=loss)


def of_effect(method: Any, *adjust: str, loss: Any = PURE) -> partial[Any]:
    return partial(dpc.effect, treatment="a", outcome="y", adjust=list(adjust), method=method, loss=loss)


def by_list(kind: Any) -> partial[Any]:
    gaussian = dpc.PureDP not in kind.losses
    loss, first = (APPROXIMATE, "x") if gaussian else (PURE, "b")
    return of_effect(kind(), *adjusted_by(kind(), table_of(frame(0)), loss, ([first], ["b"], ["x"], [])), loss=loss)


BY_PLACE = {"ci_test hsic", "ci_test crt-decision"}
"""Refused where ids are private: random numbers, or sums whose rounding may differ, go by a person's place."""
NO_EXACT_FORM = {"ci_test hsic", "ci_test crt-decision"}
OF_ALL_ROWS = {"effect trial, sizes"}
"""Refused for a subgroup: the sizes of the arms were fixed for all rows."""


CLAIMS = rows_of_persons()


@pytest.mark.parametrize("row", CLAIMS, ids=[f"{row.claim}, {row.sensitivity(40).unit.value}" for row in CLAIMS])
def test_the_worst_person_that_a_search_finds_is_within_the_bound_of_a_record(row: SensitivityRow) -> None:
    for unit in (Unit.LISTED_PERSON, Unit.PERSON):
        if row.sensitivity(max(row.sizes)).covers(unit):
            found = over_persons(row, unit is Unit.PERSON, evaluations=40)
            assert not found.violated and found.ratio > 0.1, found.summary()


def frame(seed: int) -> dict[str, np.ndarray]:
    """Return 1 to 4 rows a person, some of which have no x."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(PERSONS), rng.integers(1, 5, PERSONS))
    n = len(ids)
    x, y, z = np.clip(0.4 * rng.standard_normal((3, n)), -1, 1)
    x[rng.random(n) < 0.1] = np.nan
    return {"id": ids, "x": x, "y": y, "z": np.minimum(z, 0.9), "a": rng.integers(0, 2, n), "b": rng.integers(0, 2, n)}


CORNERS = ({"x": 1.0, "y": -1.0, "z": 0.0, "a": 1, "b": 0}, {"x": -1.0, "y": -1.0, "z": 1.0, "a": 0, "b": 1},
           {"x": 1.0, "y": 1.0, "z": 1.0, "a": 1, "b": 1})  # fmt: skip


def replaced(before: dict[str, np.ndarray], seed: int, ids: str) -> dict[str, np.ndarray]:
    """Return the rows with all of one person's replaced by 1, 9 or 200 at a corner."""
    rng = np.random.default_rng(seed)
    person, number, corner = int(rng.integers(PERSONS)), (1, 9, 200)[seed % 3], CORNERS[seed % 3]
    fresh = {"id": person if ids == "public" else 10_000 + seed, **corner}
    left = before["id"] != person
    return {name: np.concatenate([own[left], np.full(number, fresh[name], own.dtype)]) for name, own in before.items()}


def lacking(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the rows with every number gone."""
    return {name: np.full(len(own), np.nan) if name in "xyz" else own for name, own in columns.items()}


def table_of(columns: dict[str, np.ndarray], ids: str = "public", budget: Any = BUDGET, name: str = "") -> dpc.Table:
    ledger = dpc.Ledger.in_memory(budget, person="id", ids=ids)
    return dpc.Table(columns, SCHEMA, ledger, name=name, person="id", ids=ids)


EXAMPLES: dict[str, partial[Any]] = {
    **{f"ci_test {name}": of_test(kind) for name, kind in TESTS.items()},
    **{f"direction {name}": of_direction(kind) for name, kind in DIRECTION.items()},
    **{f"discover {name}": of_graph(kind) for name, kind in DISCOVERY.items()},
    **{f"effect {name}": by_list(kind) for name, kind in EFFECTS.items() if name != "trial"},
    "effect trial, sizes": of_effect(METHODS.RandomizedTrial(sizes=[[PERSONS // 4] * 2] * 2), "b"),
    "effect trial, probabilities": of_effect(METHODS.RandomizedTrial(probabilities=[0.5, 0.5]), "b"),
    "effect sample-aggregate": of_effect(METHODS.SampleAggregate(blocks=20, terms="lines"), "x"),
    "effect papers.FoldSplit": of_effect(dpc.papers.FoldSplit(), "b"),
    "cells": partial(dpc.cells, by=["a", "b"], values=["y", "x"], loss=PURE),
    "moments": partial(dpc.moments, columns=["x", "y"], loss=APPROXIMATE),
    "ci_tests": partial(dpc.ci_tests, hypotheses=[("x", "y", ["z"]), ("a", "b", [])], loss=PURE),
    "direction_all": partial(dpc.direction_all, pairs=[("x", "y")], scores=["lsnm", "hsic"], loss=PURE),
}


@pytest.mark.parametrize("way", EXAMPLES)
def test_a_budget_that_is_too_small_is_refused_before_a_row_is_read(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(frame(0), budget=dpc.PureDP(0.5))
    for owner, reads in ((dpc.Table, "rows"), (type(table.spec.source), "collect")):
        monkeypatch.setattr(owner, reads, lambda *_: pytest.fail("a row was read"))
    refused_unpaid(table, BudgetExceededError, EXAMPLES[way])


@pytest.mark.parametrize("way", EXAMPLES)
def test_what_is_paid_for_is_told_in_every_form_and_comes_back_free(way: str) -> None:
    table = table_of(frame(0), name="contract")
    answer = EXAMPLES[way](table)
    (entry,) = table.ledger.entries()
    text = answer.to_json()
    assert json.loads(text)["guarantee"]["ledger_head"] == answer.guarantee.ledger_head == entry.hash
    assert pickle.loads(pickle.dumps(answer)).to_json() == text
    assert answer.guarantee.private and all(dpc.explain(claim) for claim in answer.guarantee.proofs)
    if isinstance(answer, Result):
        assert "\n" not in repr(answer) and set(answer.summary().splitlines()[:1]) <= set(answer.details().splitlines())
        assert len(answer.to_frame()) == len(answer.rows())
    again = EXAMPLES[way](table)
    assert again.guarantee.cached and again.guarantee == answer.guarantee and type(again) is type(answer)
    assert told(again) == told(answer)
    assert len(table.ledger.entries()) == 1


@pytest.mark.parametrize("way", EXAMPLES)
def test_without_privacy_the_answer_is_exact_and_says_so(way: str) -> None:
    table = dpc.Table(frame(0), SCHEMA, dpc.Ledger.without_privacy(), person="id", ids="public")
    if way in NO_EXACT_FORM:
        with pytest.raises(ParameterError):
            EXAMPLES[way](table, loss=dpc.NoPrivacy())
        return
    answer = EXAMPLES[way](table, loss=dpc.NoPrivacy())
    assert answer.guarantee.loss.exact and not answer.guarantee.private
    assert ("NOT PRIVATE" if isinstance(answer, Result) else "Guarantee: NONE") in str(answer)


@pytest.mark.parametrize("ids", ["private", "public"])
@pytest.mark.parametrize("way", EXAMPLES)
def test_a_whole_person_moves_no_answer_past_its_bound_or_the_question_is_refused(way: str, ids: str) -> None:
    table = table_of(frame(0), ids)
    if ids == "private" and way in BY_PLACE:
        refused_unpaid(table, ParameterError, EXAMPLES[way])
        return
    result = EXAMPLES[way](table)
    unit = table.unit.value
    assert result.guarantee.unit.value == unit == table.ledger.entries()[0].unit and unit.startswith("person")
    text = result.details() if hasattr(result, "details") else "\n".join(result.guarantee.lines())
    assert f"unit: {unit}." in text and "the number of persons" in text and result.n == PERSONS
    for seed in range(3):
        before = lacking(frame(seed)) if seed == 1 else frame(seed)
        after = replaced(before, seed, ids)

        def ask(columns: dict[str, np.ndarray]) -> Any:
            found = table_of(columns, ids)
            return EXAMPLES[way](found.where("z", at_least=0.99) if seed == 2 else found)  # noqa: B023

        if seed == 2 and way in OF_ALL_ROWS:
            for columns in (before, after):
                with pytest.raises(ParameterError, match="of a subgroup"):
                    ask(columns)
            continue
        audit = compare(lambda: ask(before), lambda: ask(after), answers="high" if seed == 1 else "low", seed=seed)  # noqa: B023
        assert not audit.violated, audit.summary()


def test_ties_that_are_broken_by_place_would_let_a_person_pass_the_bound_and_by_id_they_do_not() -> None:
    """All z are tied, so that a person who comes under another id shifts the places of the persons between."""
    by_place = next(row for row in CLAIMS if row.claim == "untied-pairs" and row.sensitivity(61).unit is Unit.ROW)
    moved: dict[str, list[int]] = {"place": [], "id": []}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        before = np.hstack([np.tile(rng.integers(0, 2, (61, 5)) * [1, 1, 0, 0, 0] + [0, 0, 0, 0, 1], 2),
                            rng.random((61, 1))])  # fmt: skip
        after = before.copy()
        after[0, -1] = rng.random()
        (rows, keys), (others, new) = records(before, private=True), records(after, private=True)
        moved["place"].append(abs(by_place.statistic(rows) - by_place.statistic(others)))
        moved["id"].append(abs(keyed(rows, keys).untied - keyed(others, new).untied))
    bound = untied_sensitivity((61 - 3) // 29, Unit.PERSON).bound
    assert max(moved["id"]) <= bound < max(moved["place"])
