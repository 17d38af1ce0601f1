"""The command ``dpcausal effect``: from raw file to forest plot."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import dpcausal as dpc
from dpcausal.cli import app

SCHEMA = """
[arm]
levels = ["control", "drug"]

[site]
levels = ["north", "south"]

[score]
lower = 0
upper = 10
"""


@pytest.fixture(autouse=True)
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    drug, south = rng.integers(0, 2, (2, 8_000))
    score = np.clip(4 + drug * (1 + south) + rng.normal(size=8_000), 0, 10)
    arms, sites = np.array(["control", "drug"])[drug], np.array(["north", "south"])[south]
    pd.DataFrame({"arm": arms, "site": sites, "score": score}).to_csv("trial.csv", index=False)
    Path("schema.toml").write_text(SCHEMA)
    run("ledger", "create", "study.ledger", "--epsilon", "2")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def ask(*arguments: str) -> Result:
    question = ("--treatment", "arm", "--outcome", "score", "--schema", "schema.toml", "--ledger", "study.ledger")
    return run("effect", "trial.csv", *question, *arguments)


def test_from_a_file_to_a_forest_plot_and_a_release_to_ask_again() -> None:
    answered = ask("--epsilon", "1", "--trial", "--groups", "site", "--plot", "forest.png", "--release", "trial.json")
    assert answered.exit_code == 0, answered.stderr
    for part in ("arm (drug against control) on score", "95% interval", "site = south", "remaining budget: epsilon 1"):
        assert part in answered.stdout
    assert Path("forest.png").stat().st_size > 1_000
    again = dpc.Release.from_json(Path("trial.json").read_text())
    found = again.effect(treatment="arm", outcome="score", treated="control")  # type: ignore[attr-defined]
    assert found.estimate == pytest.approx(-1.5, abs=0.3)


def test_json_has_all_that_the_answer_says() -> None:
    told = json.loads(ask("--epsilon", "1", "--adjust", "site", "--estimand", "att", "--json").stdout)
    assert told["estimand"] == "att" and told["adjusted_for"] == ["site"] and told["method"] == "cells"
    assert told["interval"][0] < told["estimate"] < told["interval"][1]
    assert [one["name"] for one in told["balance"]] == ["site = south"]


@pytest.mark.parametrize(
    "wrong",
    [["--trial", "--treated", "placebo"], ["--adjust", "nowhere"], ["--trial", "--plot", "no/such/folder.png"],
     ["--trial", "--epsilon", "0"], [], ["--trial", "--adjust", "site"]],
)
def test_a_wrong_question_is_refused_unpaid(wrong: list[str]) -> None:
    refused = ask(*(["--epsilon", "1"] if "--epsilon" not in wrong else []), *wrong)
    assert refused.exit_code == 2 and refused.stderr.startswith("dpcausal: ")
    assert "epsilon 2" in run("ledger", "show", "study.ledger").stdout


def test_a_subgroup_is_named_where_everybody_would_stand() -> None:
    """Seen to fail: the effect in a subgroup was headed "everybody"."""
    said = ask("--epsilon", "1", "--trial", "--where", "site == 'south'").stdout
    assert "everybody with site" in said and "'south'" in said and "8000 rows in all" in said
