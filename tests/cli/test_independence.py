"""``dpcausal ci-test``: the columns it is told are the columns it asks about, and it lists what it can run."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import dpcausal as dpc
from dpcausal.cli import app
from dpcausal.cli.options import methods_of

WAYS = methods_of("independence")
LAW = "mean = { intercept = 0.1, Age = 0.5 }, sd = 0.6"
LAWS = {name for name, kind in WAYS.items() if "model_x" in {field.name for field in fields(kind)}}

NAMES = "x", "y", "Age", "occup"


@pytest.fixture(autouse=True)
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory with four independent columns, a schema, and a ledger of ε = 100, δ = 0.001."""
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(2).uniform(-1, 1, (300, 4))
    Path("data.csv").write_text("\n".join([",".join(NAMES), *(",".join(map(repr, row)) for row in rows.tolist())]))
    Path("schema.toml").write_text("".join(f"[{name}]\nlower = -1\nupper = 1\n" for name in NAMES))
    dpc.Ledger.create("study.ledger", budget=dpc.ApproxDP(100, 1e-3), accept_large_epsilon=True).close()


def ask(*arguments: str, x: str = "x", epsilon: str = "1") -> Result:
    shared = ["--schema", "schema.toml", "--ledger", "study.ledger", "--epsilon", epsilon]
    return CliRunner().invoke(app, ["ci-test", "data.csv", x, "y", *shared, *arguments])


def spends() -> list[dict]:
    with dpc.Ledger.open("study.ledger") as ledger:
        return [json.loads(entry.detail) for entry in ledger.entries()]


@pytest.mark.parametrize(
    "written", [["--given", "Age", "--given", "occup"], ["--given", "Age,occup"], ["--given", " Age , occup "]]
)
def test_all_given_columns_are_asked_about_however_they_are_written(written: list[str]) -> None:
    answered = ask("--json", *written)
    assert answered.exit_code == 0, answered.stderr
    assert json.loads(answered.stdout)["given"] == ["Age", "occup"]
    assert [spend["given"] for spend in spends()] == [["Age", "occup"]]


def test_several_columns_on_a_side_may_have_blanks_around_their_names() -> None:
    assert json.loads(ask("--json", x="x, occup").stdout)["x"] == ["x", "occup"]


@pytest.mark.parametrize("method", WAYS)
def test_every_method_that_is_listed_runs(method: str) -> None:
    given = [] if method in ("hsic", "strata-covariance") else ["--given", "Age"]
    given += [] if method == "auto" or WAYS[method].supports_missing else ["--missing", "impute"]
    given += ["--model-x", LAW] if method in LAWS else []
    answered = ask(*given, "--method", method, "--json")
    if method == "counts":
        assert answered.exit_code == 2 and "levels only" in answered.stderr
        return
    assert answered.exit_code == 0, answered.stderr
    assert json.loads(answered.stdout)["method"] == ("neighbours" if method == "auto" else WAYS[method].name)


def test_a_law_of_x_on_the_command_is_that_of_python_and_of_a_study() -> None:
    """Seen to fail: a model of x was for Python alone."""
    words = {"mean": {"intercept": 0.1, "Age": 0.5}, "sd": 0.6}
    Path("study.toml").write_text(
        'title = "t"\ndata = "data.csv"\nledger = "study.ledger"\nbudget = { epsilon = 100.0, delta = 0.001, '
        'accept_large_epsilon = true }\n'
        + "".join(f"[columns.{name}]\nlower = -1\nupper = 1\n" for name in NAMES)
        + '[[question]]\nname = "q"\ntask = "ci_test"\nx = "x"\ny = "y"\ngiven = ["Age"]\nepsilon = 1.0\n'
        'method = { name = "crt", model_x = { mean = { intercept = 0.1, Age = 0.5 }, sd = 0.6 } }\n'
    )
    told = ask("--given", "Age", "--method", "crt", "--model-x", LAW, "--name", "data.csv", "--json")
    assert told.exit_code == 0, told.stderr
    (of_study,) = dpc.Study.open("study.toml").run(new_ledger=True).standings
    assert of_study.answer.statistic == json.loads(told.stdout)["statistic"]  # one question: the kept answer
    ledger = dpc.Ledger.open("study.ledger")
    table = dpc.Table("data.csv", dpc.Schema.from_toml("schema.toml"), ledger, name="data.csv")
    way = dpc.methods.Crt(model_x=words)
    kept = dpc.ci_test(table, "x", "y", given=["Age"], loss=dpc.PureDP(1), method=way)
    assert kept.guarantee.cached and len(ledger.entries()) == 1
    way = dpc.methods.Crt(model_x=words | {"sd": 0.7})
    assert not dpc.ci_test(table, "x", "y", given=["Age"], loss=dpc.PureDP(1), method=way).guarantee.cached


@pytest.mark.parametrize(
    ("law", "rule"),
    [("mean = 1, sd", "--model-x is written as 'mean ="), ("men = 1", "did you mean 'mean'"), ("sd = 1", "has mean"),
     ("mean = { age = 1 }, sd = 1", "'age' is not given; did you mean 'Age'"), ("table = [[1]]", "Levels"),
     ('mean = { Age = "a" }, sd = 1', "Age must be a finite number"), ("ft", "must be a ModelX, or 'fit'"),
     ("mean = 1, sd = -1", "sd must be")],
)  # fmt: skip
def test_a_law_that_cannot_be_is_refused_before_a_spend(law: str, rule: str) -> None:
    refused = ask("--given", "Age", "--method", "crt", "--model-x", law)
    assert refused.exit_code == 2 and rule in refused.stderr, refused.stderr
    assert not spends()


def test_options_reach_the_test_and_its_entry_in_the_ledger() -> None:
    assert ask("--method", "gcm", "--resamples", "39", "--workers", "1", "--blocks", "4").exit_code == 0
    assert ask("--method", "kendall", "--given", "Age", "--strata", "4").exit_code == 0
    published = "--method", "papers.PrivGcm", "--given", "Age", "--constants", "corrected"
    assert ask(*published).exit_code == 2  # it leaves out no row
    assert ask(*published, "--missing", "impute").exit_code == 0
    names = "method", "resamples", "blocks", "strata", "constants"
    assert [{key: spend[key] for key in names if spend.get(key) is not None} for spend in spends()] == [
        {"method": "gcm", "resamples": 39, "blocks": 4}, {"method": "kendall", "strata": 4},
        {"method": "PrivGCM", "constants": "corrected"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["--given", "Age,"], "--given: a name is missing in 'Age,'"),
        (["--given", ""], "--given: a name is missing in ''"),
        (["--given", "age"], "which has x, y, Age, occup; did you mean 'Age'?"),
        (["--method", "gmc"], f"error: --method must be one of {', '.join(WAYS)}; did you mean 'gcm'?\n"),
        (["--strata", "4"], "--strata goes with --method kendall or papers.PrivSpearman"),
        (["--method", "kendall", "--given", "Age", "--strata", "0"], "strata"),
        (["--resamples", "3"], "resamples"),
        (["--workers", "0"], "workers"),
        (["--method", "papers.PrivGcm", "--constants", "own"], "constants must be"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_spent(arguments: list[str], rule: str) -> None:
    refused = ask(*arguments)
    assert refused.exit_code == 2 and rule in refused.stderr, refused.output
    assert not spends()
