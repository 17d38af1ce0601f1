"""Benchmarks: designs can be drawn, studies name what exists, records say what was measured and when it is stale."""

import json
import shlex
import tomllib
from datetime import date
from importlib import import_module
from itertools import product
from pathlib import Path
from statistics import stdev
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from benchmarks import __main__ as command
from benchmarks import effects, record, study_plans
from benchmarks.data import DataAbsentError
from benchmarks.designs import Study
from benchmarks.designs.independence import shapes
from benchmarks.peers import causal_aim
from benchmarks.run import chosen, mean, ratio, summarised

STUDIES = {name: study for name, study in command.STUDIES.items() if study["module"] == "effects"}
PLACES = {"effects": effects.DESIGNS, "independence_level": shapes.DESIGNS}


@pytest.mark.parametrize("name", [name for name, one in effects.DESIGNS.items() if isinstance(one.make, Study)])
def test_rows_of_an_effect_fit_their_schema(name: str) -> None:
    design = effects.DESIGNS[name]
    rows = design.make.rows(design.rng(60, 0), 60)
    assert set(design.make.schema) <= set(rows)
    assert len({len(column) for column in rows.values()}) == 1


@pytest.mark.parametrize("name", study_plans.CASES)
def test_the_plan_of_a_study_predicts_each_question_within_its_seconds(name: str, tmp_path: Path) -> None:
    study = study_plans.written(study_plans.CASES[name], tmp_path, 1)
    forecasts = [one.forecast for one in study.plan().questions]
    assert all(any(mark in text for mark in ("±", "probability")) for text in forecasts), forecasts


@pytest.mark.parametrize("name", shapes.DESIGNS)
def test_rows_of_a_test_fit_their_schema(name: str) -> None:
    data = shapes.DESIGNS[name].make(60, np.random.default_rng(0), 0.0)
    assert {"x", "y", *data.given} <= set(data.columns)
    assert set(data.schema) <= set(data.columns)


def test_a_frozen_design_has_the_day_of_its_freeze() -> None:
    for designs in PLACES.values():
        for one in designs.values():
            assert not one.frozen_at or date.fromisoformat(one.frozen_at)
            assert one.frozen_at or not one.family.endswith(("later", "unseen"))


@pytest.mark.parametrize("name", command.STUDIES)
def test_a_study_names_a_module_and_families_that_exist(name: str) -> None:
    study = command.STUDIES[name]
    assert study["module"] in command.modules()
    known = {one.family for one in PLACES.get(study["module"], {}).values()}
    assert not known or set(study.get("families", [])) <= known


EVIDENCE = tomllib.loads((command.HERE / "evidence.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", EVIDENCE)
def test_evidence_names_a_study_and_designs_that_exist(name: str) -> None:
    study, words = EVIDENCE[name]["study"], shlex.split(EVIDENCE[name]["options"])
    module = command.STUDIES.get(study, {"module": study})["module"]
    assert module in command.modules()
    known, place = PLACES.get(module), None
    for word in words if known else []:
        if word.startswith("--"):
            place = word
        elif place == "--designs":
            assert chosen([word], known)
        elif place == "--families":
            assert word in {one.family for one in known.values()}


@pytest.mark.parametrize("name", [name for name in command.modules() if not name.startswith("audit_")])
def test_a_benchmark_can_be_imported_and_says_what_it_measures(name: str) -> None:
    path = command.modules()[name]
    place = path.relative_to(command.HERE).with_suffix("").parts
    assert callable(import_module(".".join(("benchmarks", *place))).main) and command.about(name)


def test_the_error_of_a_mean_is_its_standard_error() -> None:
    rows = [{"hit": float(one), "other": 2.0 * one} for one in (3, 1, 4, 1, 5)]
    summary = summarised(rows, {"mean": mean("hit"), "ratio": ratio(mean("other"), mean("hit")), "none": mean("gone")})
    assert summary["mean"] == pytest.approx((2.8, stdev((3, 1, 4, 1, 5)) / 5**0.5))
    assert summary["ratio"] == pytest.approx((2.0, 0.0), abs=1e-12)
    assert np.isnan(summary["none"]).all()


def test_names_are_chosen_whole_by_a_part_or_from_a_list() -> None:
    known = ["line", "line, t3", "slope", "trial"]
    assert chosen(["line, t3"], known) == ["line, t3"]
    assert chosen(["trial;slope"], known) == ["trial", "slope"]
    assert chosen(["lin"], known) == ["line", "line, t3"]
    with pytest.raises(SystemExit):
        chosen(["nothing"], known)


CHEAP = [
    ("effects", ["--designs", "slope", "--rows", "500", "--runs", "2"]),
    ("effects_rare", ["--designs", "risk 0.03 x 3, 0.1 treated", "--rows", "300", "--epsilons", "1", "--runs", "2"]),
    ("independence_level", ["--designs", "2 levels, nothing given", "--rows", "200", "--runs", "4"]),
]


@pytest.mark.parametrize(("name", "arguments"), CHEAP, ids=[name for name, _ in CHEAP])
def test_a_record_says_what_was_measured_and_is_stale_once_code_changes(
    name: str, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    assert command.run(name, [*arguments, "--record"]) == 0
    (path,) = tmp_path.rglob("*.json")
    written: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    assert {"benchmark", "command", "commit", "version", "date", "cpu", "seed_rule", "code", "rows"} <= set(written)
    for row in written["rows"]:
        assert {"design", "n", "epsilon", "delta", "method", "runs", "metrics"} <= set(row)
        assert all(set(metric) == {"value", "mc_error"} for metric in row["metrics"].values())
    assert not record.stale(written)
    next(iter(written["code"].values()))["hash"] = "0" * 16
    assert record.stale(written)


def test_the_code_hash_is_of_what_a_method_imports_and_not_of_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "dpcausal"
    package.mkdir()
    monkeypatch.setattr(record, "SOURCE", tmp_path)

    def digest(method: str, helper: str) -> str:
        (package / "method.py").write_text(method)
        (package / "helper.py").write_text(helper)
        record._code_of.cache_clear()
        return record.code_hash(["dpcausal.method"])

    first = digest("from dpcausal.helper import one\n", "one = 1\n")
    assert digest('"""Words."""\nfrom dpcausal.helper import one  # a note\n', '"""More."""\none = 1\n') == first
    assert digest("from dpcausal.helper import one\n", "one = 2\n") != first
    record._code_of.cache_clear()


@pytest.mark.parametrize("path", sorted(record.RESULTS.rglob("*.json")), ids=lambda path: path.stem)
def test_a_kept_record_can_be_read(path: Path) -> None:
    written = json.loads(path.read_text(encoding="utf-8"))
    assert {"benchmark", "date", "code", "rows"} <= set(written) and isinstance(record.stale(written), bool)


@pytest.mark.parametrize("name", causal_aim.CASES)
def test_values_of_a_protocol_lie_within_what_is_declared_of_them(name: str) -> None:
    case = causal_aim.CASES[name]
    try:
        data = case.load(0)
    except DataAbsentError as absent:
        pytest.skip(str(absent))
    schema = case.schema(data)
    assert set(case.columns) | set(case.three.split()) <= set(schema)
    for column, declared in schema.items():
        values = data.x[column]
        if isinstance(declared, dpc.Bounded):
            assert declared.lower <= values.min() <= values.max() <= declared.upper, column
        else:
            assert set(values) <= set(declared.values), column
    assert set(data.arm) == {0, 1} and len(data.arm) == len(data.y) == len(data.x)


def test_the_record_beside_other_private_estimators_has_each_cell_of_the_protocol() -> None:
    rows = record.read("peers", "causal_aim")["rows"]
    cells = [(row["design"], row["epsilon"], row["reading"]) for row in rows]
    readings = ("unadjusted", "adjusted for three", "adjusted for all")
    assert sorted(cells) == sorted(product(causal_aim.CASES, (0.5, 1.0, 2.0, 5.0), readings))
    for row in rows:
        assert row["delta"] == pytest.approx(row["n"] ** -2, rel=1e-5)
        assert {"CAUSAL-AIM RMSE", "CAUSAL-AIM coverage", "RMSE of 0", "shown"} <= set(row["metrics"])
