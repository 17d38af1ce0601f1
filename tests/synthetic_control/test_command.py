"""The command ``synthetic-control``: plan, answer, refusals and exit codes."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

import dpcausal as dpc
from tests.commands import command


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A long CSV of 1,001 units and a ledger of ε = 1."""
    made = dpc.simulate.factor_panel(1000, effect=0.3, seed=1)
    rows = np.vstack([made.target, made.donors])
    lines = [f"u{k},{1980 + t},{value!r}" for k, row in enumerate(rows.tolist()) for t, value in enumerate(row)]
    (tmp_path / "long.csv").write_text("state,year,sales\n" + "\n".join(lines) + "\n")
    dpc.Ledger.create(tmp_path / "study.ledger", budget=dpc.PureDP(1), unit="state").close()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*extra: str, target: str = "u0", start: str = "1990") -> Result:
    base = [
        "synthetic-control", "long.csv", "--unit", "state", "--time", "year", "--outcome", "sales", "--target", target,
        "--start", start, "--lower", "-1", "--upper", "1", "--ledger", "study.ledger",
    ]  # fmt: skip
    return command(*base, *extra)


def test_the_answer_is_paid_once(study: Path) -> None:
    answered = run("--epsilon", "1", "--json")
    assert answered.exit_code == 0, answered.output
    found = json.loads(answered.stdout)
    assert found["times"] == [1990, 1991, 1992] and len(found["effect"]) == 3
    assert found["remaining"]["epsilon"] == 0
    refused = run("--epsilon", "1")
    assert refused.exit_code == 3


def test_bad_input_ends_with_2_and_spends_nothing(study: Path) -> None:
    for outcome, words in ((run("--epsilon", "1", start="1880"), "one of the periods"),
                           (run("--epsilon", "1", target="u99999"), "as its unit"), (run(), "--epsilon"),
                           (run("--epsilon", "0.003"), "Too small")):  # fmt: skip
        assert outcome.exit_code == 2 and words in outcome.output
    with dpc.Ledger.open("study.ledger") as ledger:
        assert not ledger.entries()


def test_a_rule_of_treated_units_and_a_placebo_in_time_are_asked_for_by_flags(study: Path) -> None:
    words = ("--epsilon", "1", "--treated", "unit in ['u0', 'u1', 'u2']")
    for extra in ((*words, "--placebo", "1990"), ("--epsilon", "1", "--treated", "u0"), ("--epsilon", "1")):
        assert run(*extra).exit_code == 2
    answered = run(*words, "--placebo", "1987", "--details")
    assert answered.exit_code == 0 and "a placebo in time" in answered.output, answered.output
    with dpc.Ledger.open("study.ledger") as ledger:
        assert ledger.entries()[0].to_dict()["once"]["targets of panels"] == "unit in ['u0', 'u1', 'u2']"
