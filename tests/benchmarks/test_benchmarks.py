"""Benchmarks: designs can be drawn, studies name what exists, records say what was measured and when it is stale."""

import json
import re
import shlex
import tomllib
from datetime import date
from importlib import import_module
from itertools import product
from pathlib import Path
from statistics import NormalDist, stdev
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from benchmarks import __main__ as command
from benchmarks import effects, record
from benchmarks.data import DataAbsentError
from benchmarks.designs import Study
from benchmarks.designs.independence import shapes
from benchmarks.independence_level import block_level, critical, jackknifed
from benchmarks.peers import causal_aim
from benchmarks.run import chosen, mean, ratio, summarised
from dpcausal.independence.null_distributions import block_pvalue, block_term

PLACES = {"effects": effects.DESIGNS, "independence_level": shapes.DESIGNS}
ROWS = {name: one for name, one in effects.DESIGNS.items() if isinstance(one.make, Study)} | shapes.DESIGNS


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_a_design_fit_their_schema(name: str) -> None:
    make = ROWS[name].make
    if isinstance(make, Study):
        columns, named = make.rows(ROWS[name].rng(60, 0), 60), set(make.schema)
    else:
        data = make(60, np.random.default_rng(0), 0.0)
        columns, named = data.columns, {"x", "y", *data.given, *data.schema}
    assert named <= set(columns) and len({len(column) for column in columns.values()}) == 1


def test_a_frozen_design_has_the_day_of_its_freeze() -> None:
    for designs in PLACES.values():
        for one in designs.values():
            assert not one.frozen_at or date.fromisoformat(one.frozen_at)
            assert one.frozen_at or not one.family.endswith(("later", "unseen"))


EVIDENCE = tomllib.loads((command.HERE / "evidence.toml").read_text(encoding="utf-8"))
NAMED: dict[str, tuple[str, list[str], list[str]]] = {
    name: (study["module"], study.get("designs", []), study.get("families", []))
    for name, study in command.STUDIES.items()
}
"""By study or record: its module, and the designs and families that it names."""
for record_name, one in EVIDENCE.items():
    _, *given = re.split(r"(--\w+)", one["options"])
    words = {option: shlex.split(text) for option, text in zip(given[::2], given[1::2], strict=True)}
    module = command.STUDIES.get(one["study"], {"module": one["study"]})["module"]
    NAMED[record_name] = module, words.get("--designs", []), words.get("--families", [])


@pytest.mark.parametrize("name", NAMED)
def test_a_study_and_a_record_name_a_module_designs_and_families_that_exist(name: str) -> None:
    module, designs, families = NAMED[name]
    assert module in command.modules()
    known = PLACES.get(module, {})
    assert not known or set(families) <= {one.family for one in known.values()}
    assert not known or not designs or chosen(designs, known)


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


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_the_level_of_a_sum_of_blocks_is_that_of_drawn_sums(shift: float) -> None:
    terms = [block_term(NormalDist(shift).inv_cdf((place + 0.5) / 4_000)) for place in range(4_000)]
    rng, ratio = np.random.default_rng(1), np.exp(-2.0 / 150)
    sums = rng.choice(terms, (20_000, 16)).sum(axis=1) + rng.geometric(1 - ratio, 20_000)
    drawn = np.abs(sums - rng.geometric(1 - ratio, 20_000)) >= critical(block_pvalue, 16, 2.0, True)
    # Five standard errors of the draws: a false alarm of 1e-6.
    assert abs(block_level(terms, 16, 2.0, True) - drawn.mean()) < 5 * drawn.std() / 20_000**0.5
    assert shift > 0 or abs(block_level(terms, 16, 2.0, True) - 0.05) < 1e-3


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    tables = [[1], [2], [4], [9]]
    level, error = jackknifed(lambda terms: float(np.mean(terms)), tables)
    assert level == pytest.approx(4.0) and error == pytest.approx(np.std([1, 2, 4, 9], ddof=1) / 2)
