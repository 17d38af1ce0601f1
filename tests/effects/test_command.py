"""The command ``dpcausal effect``: from raw file to forest plot."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import Result

import dpcausal as dpc
from tests.commands import command

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
    command("ledger", "create", "study.ledger", "--epsilon", "2")
    return tmp_path


def ask(*arguments: str) -> Result:
    question = ("--treatment", "arm", "--outcome", "score", "--schema", "schema.toml", "--ledger", "study.ledger")
    return command("effect", "trial.csv", *question, *arguments)


def test_from_a_file_to_a_forest_plot_and_a_release_to_ask_again() -> None:
    answered = ask("--epsilon", "1", "--trial", "--groups", "site", "--plot", "forest.png", "--release", "trial.json")
    assert answered.exit_code == 0, answered.stderr
    for part in ("arm (drug vs control) on score", "95 % CI", "site = south", "ε = 1"):
        assert part in answered.stdout
    assert Path("forest.png").stat().st_size > 1_000
    again = dpc.Release.from_json(Path("trial.json").read_text())
    found = again.effect(treatment="arm", outcome="score", adjust=[], treated="control")  # type: ignore[attr-defined]
    assert found.estimate == pytest.approx(-1.5, abs=0.3)


@pytest.mark.parametrize("wrong", [
    ["--trial", "--treated", "placebo"], ["--adjust", "nowhere"], ["--trial", "--plot", "no/such/folder.png"],
    ["--trial", "--epsilon", "0"], [], ["--trial", "--adjust", "site"],
])  # fmt: skip
def test_a_wrong_question_is_refused_unpaid(wrong: list[str]) -> None:
    refused = ask(*(["--epsilon", "1"] if "--epsilon" not in wrong else []), *wrong)
    assert refused.exit_code == 2 and refused.stderr.startswith("error: ")
    assert "ε = 2" in command("ledger", "show", "study.ledger").stdout


def test_persons_followed_through_periods_from_a_file_to_an_event_study_and_asked_again() -> None:
    rng = np.random.default_rng(1)
    who, year = np.divmod(np.arange(6_000 * 4), 4)
    start = np.array(["2", ""])[rng.integers(0, 2, 6_000)][who]
    wage = rng.normal(size=24_000) + (start == "2") * (year >= 2)
    pd.DataFrame({"who": who, "year": year, "start": start, "wage": wage}).to_csv("workers.csv", index=False)
    Path("workers.toml").write_text(
        '[year]\nlevels = [0, 1, 2, 3]\n[start]\nlevels = [2]\nother = "never"\n[wage]\nlower = -6\nupper = 8\n'
    )
    command("ledger", "create", "did.ledger", "--epsilon", "1", "--delta", "1e-6", "--person", "who")
    question = "did workers.csv --person who --time year --outcome wage --cohort start --schema workers.toml"
    paid = "--ledger did.ledger --epsilon 1 --delta 1e-6 --plot events.png --release paths.json"
    found = command(*f"{question} {paid}".split())
    assert found.exit_code == 0, found.stderr
    # The noise is drawn afresh, and in some draws no interval is shown: only what every draw has.
    assert "wage" in found.stdout and "all periods" in found.stdout
    assert Path("events.png").stat().st_size > 1_000
    again = command("ask", "paths.json", "did", "--control", "not-yet")
    assert again.exit_code == 0 and "not yet treated" in again.stdout


def test_a_jump_at_a_cutoff_is_asked_of_a_file_and_again_of_its_release() -> None:
    question = ("--running", "score", "--outcome", "arm", "--cutoff", "5", "--schema", "schema.toml", "--epsilon", "1")
    found = command("discontinuity", "trial.csv", *question, "--ledger", "study.ledger", "--release", "r.json")
    assert found.exit_code == 0, found.stderr
    assert "Jump of arm = drug at score = 5" in found.stdout and "unching" in found.stdout
    again = command("ask", "r.json", "discontinuity", "--bandwidth", "2.5", "--curvature", "0.1")
    assert again.exit_code == 0 and "2.5" in again.stdout
    assert "ε = 1" in command("ledger", "show", "study.ledger").stdout
