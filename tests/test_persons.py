"""Persons as the unit, for every way to ask a table: all rows of one person are replaced, by any number, under private
ids with another id too; nothing passes its bound, and the guarantee, the ledger and the summary say person.

One pair is of usual rows, one of a table in which everybody else lacks everything, one of a subgroup that is empty but
for that person: nothing but the answers may differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.audit import compare
from dpcausal.direction.methods import METHODS as DIRECTION
from dpcausal.discovery.methods import METHODS as DISCOVERY
from dpcausal.effects.estimators import METHODS as EFFECTS
from dpcausal.errors import ParameterError, UnprovenError
from dpcausal.independence.methods import METHODS as TESTS
from dpcausal.privacy.sensitivity import Unit
from dpcausal.statistics.neighbour_pairs import untied_sensitivity
from tests.registry.persons import keyed, over_persons, records, rows_of_persons
from tests.registry.rows import SensitivityRow

PERSONS = 300
SCHEMA = dpc.Schema(
    {"x": dpc.Bounded(-1, 1), "y": dpc.Bounded(-1, 1), "z": dpc.Bounded(-1, 1), "a": dpc.Levels([0, 1]),
     "b": dpc.Levels([0, 1])}
)  # fmt: skip
PURE, APPROXIMATE = dpc.PureDP(4), dpc.ApproxDP(20, 1e-6)
LAW = dpc.ModelX(mean=lambda z: 0.5 * z[:, 0], sd=0.5)
SMALL = {"blocks": 5, "rows_per_block": 48, "resamples": 19}
Ask = Callable[[dpc.Table], Any]


def option(kind: Any) -> dict[str, Any]:
    """Return what keeps a method small, of the options that it has."""
    fields = kind.__dataclass_fields__
    return {name: value for name, value in {**SMALL, "model_x": LAW}.items() if name in fields}


def of_test(kind: Any) -> Ask:
    of_levels = kind.name in ("counts", "strata-covariance")
    names = ("a", "b") if of_levels else ("x", "y")
    given = [] if of_levels or kind.name == "hsic" else ["z"]
    return lambda table: dpc.ci_test(table, *names, given=given, method=kind(**option(kind)), loss=PURE)


def directed(kind: Any) -> Ask:
    score = kind.scores[0]
    return lambda table: dpc.direction(
        table, "x", "y", score=score, method=kind(**option(kind)), loss=PURE
    )


def found(kind: Any) -> Ask:
    names = ["x", "y", "z"] if kind.name in ("moments", "ci-test") else ["a", "b", "x"]
    loss = PURE if kind.name in ("table", "ci-test") else APPROXIMATE
    return lambda table: dpc.discover(table, columns=names, method=kind(), loss=loss)


def estimated(kind: Any) -> Ask:
    gaussian = kind.name in ("aipw", "boosted-aipw", "partially-linear")
    loss, adjust = (APPROXIMATE, ["x"]) if gaussian else (PURE, ["b"])
    return lambda table: dpc.effect(table, treatment="a", outcome="y", adjust=adjust, method=kind(), loss=loss)


WAYS: dict[str, Ask] = {
    **{f"ci_test {name}": of_test(kind) for name, kind in TESTS.items()},
    **{f"direction {name}": directed(kind) for name, kind in DIRECTION.items()},
    **{f"discover {name}": found(kind) for name, kind in DISCOVERY.items()},
    **{f"effect {name}": estimated(kind) for name, kind in EFFECTS.items() if name != "trial"},
    "effect trial, sizes": lambda table: dpc.effect(
        table, treatment="a", outcome="y", adjust=["b"], loss=PURE,
        method=dpc.methods.RandomizedTrial(sizes=[[PERSONS // 4] * 2] * 2)),
    "effect sample-aggregate": lambda table: dpc.effect(
        table, treatment="a", outcome="y", adjust=["x"], loss=PURE,
        method=dpc.methods.SampleAggregate(blocks=20, terms="lines")),
    "effect trial, probabilities": lambda table: dpc.effect(
        table, treatment="a", outcome="y", adjust=["b"], loss=PURE,
        method=dpc.methods.RandomizedTrial(probabilities=[0.5, 0.5])),
    "effect papers.FoldSplit": estimated(dpc.papers.FoldSplit),
    "cells": lambda table: dpc.cells(table, by=["a", "b"], values=["y", "x"], loss=PURE),
    "moments": lambda table: dpc.moments(table, ["x", "y"], loss=APPROXIMATE),
    "ci_tests": lambda table: dpc.ci_tests(table, [("x", "y", ["z"]), ("a", "b", [])], loss=PURE),
    "direction_all": lambda table: dpc.direction_all(table, [("x", "y")], scores=["igci", "lsnm"], loss=PURE),
}  # fmt: skip

BY_PLACE = {"ci_test hsic", "ci_test crt-decision"}
"""Refused where ids are private: coins, or sums whose rounding may differ, go by a person's place."""
NEVER = {f"direction {name}" for name in DIRECTION if name not in ("majority-vote", "verdict")}
"""Refused for every table that leaves rows out, or for persons: halves and published forms."""
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
    """Return 1 to 4 rows a person, some of which lack x."""
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


def table_of(columns: dict[str, np.ndarray], ids: str, budget: dpc.Loss = dpc.ApproxDP(20, 1e-5)) -> dpc.Table:  # noqa: B008
    return dpc.Table(columns, SCHEMA, dpc.Ledger.in_memory(budget, person="id", ids=ids), person="id", ids=ids)


@pytest.mark.parametrize("ids", ["private", "public"])
@pytest.mark.parametrize("way", WAYS)
def test_a_whole_person_moves_no_answer_past_its_bound_or_the_question_is_refused(way: str, ids: str) -> None:
    table = table_of(frame(0), ids)
    if way in NEVER or (ids == "private" and way in BY_PLACE):
        with pytest.raises((ParameterError, UnprovenError)):
            WAYS[way](table)
        assert not table.ledger.entries()
        return
    result = WAYS[way](table)
    unit = table.unit.value
    assert result.guarantee.unit.value == unit == table.ledger.entries()[0].unit and unit.startswith("person")
    told = result.details() if hasattr(result, "details") else "\n".join(result.guarantee.lines())
    assert f"unit: {unit}." in told and "the number of persons" in told and result.n == PERSONS
    for seed in range(3):
        before = lacking(frame(seed)) if seed == 1 else frame(seed)
        after = replaced(before, seed, ids)

        def asked(columns: dict[str, np.ndarray]) -> Any:
            found = table_of(columns, ids)
            WAYS[way](found.where("z", at_least=0.99) if seed == 2 else found)  # noqa: B023

        if seed == 2 and way in OF_ALL_ROWS:
            for columns in (before, after):
                with pytest.raises(ParameterError, match="of a subgroup"):
                    asked(columns)
            continue
        audit = compare(lambda: asked(before), lambda: asked(after), answers="high" if seed == 1 else "low", seed=seed)  # noqa: B023
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
