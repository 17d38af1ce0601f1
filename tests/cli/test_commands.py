"""The command: a stranger's story from a file to a refused budget, exit codes, and what is never printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

import dpcausal as dpc
from dpcausal.cli import app
from dpcausal.cli.shared import show
from tests.direction.neighbours import ask as answer_to

CANARY = "0.6180339887"
PERSON = "Ada-Lovelace"

FILLED = ("--missing", "impute")
"""A method that cannot leave out rows takes a table in which nothing is missing."""

SCHEMA = """
[x]
lower = -1
upper = 1

[y]
lower = -1
upper = 3

[group]
levels = ["a", "b"]
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with one table as CSV and Parquet, a schema, and a ledger of ε = 1."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(6)
    x = rng.uniform(-1, 1, 200)
    y = 1 + np.tanh(3 * x) + 0.1 * rng.standard_normal(200)
    x[17], y[17] = float(CANARY), float(CANARY)
    table = pa.table({"x": x, "y": y, "group": ["a"] * 200, "name": [PERSON] * 200})
    lines = ["x,y,group,name", *(f"{a!r},{b!r},a,{PERSON}" for a, b in zip(x.tolist(), y.tolist(), strict=True))]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    pq.write_table(table, tmp_path / "data.parquet")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    assert run("ledger", "create", "study.ledger", "--epsilon", "1").exit_code == 0
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def ask(
    *arguments: str,
    data: str = "data.csv",
    columns: tuple[str, str] = ("x", "y"),
    schema: str = "schema.toml",
    ledger: str = "study.ledger",
) -> Result:
    return run("direction", data, *columns, "--schema", schema, "--ledger", ledger, *arguments)


def test_five_questions_are_answered_and_the_sixth_is_refused(study: Path) -> None:
    answers = []
    for turn, data in enumerate(["data.csv", "data.parquet", "data.csv", "data.parquet", "data.csv"]):
        answered = ask("--epsilon", "0.2", "--json", data=data)
        assert answered.exit_code == 0, answered.stderr
        answer = json.loads(answered.stdout)
        assert answer["favoured"] in ("x", "y") and answer["verdict"] and len(answer["counts"]) == 4
        assert answer["guarantee"]["loss"] == {"kind": "PureDP", "epsilon": 0.2} and answer["guarantee"]["private"]
        assert answer["remaining"]["epsilon"] == pytest.approx(0.8 - 0.2 * turn, abs=1e-12)
        answers.append(answer)
    assert len({answer["ledger_head"] for answer in answers}) == 5

    # Once as a stranger would: another process, its exit code, its standard error.
    command = Path(sys.executable).parent / "dpcausal"
    refused = subprocess.run(
        [command, "direction", "data.csv", "x", "y", "--schema", "schema.toml", "--epsilon", "0.2", "--ledger",
         "study.ledger", "--json"],
        capture_output=True, text=True, cwd=study,
    )  # fmt: skip
    assert refused.returncode == 3 and refused.stdout == ""
    assert "ε = 0.2" in refused.stderr and "left ε = 0" in refused.stderr

    verified = run("ledger", "verify", "study.ledger", "--fingerprint", answers[-1]["ledger_head"])
    assert verified.exit_code == 0 and "5 entries verified" in verified.stdout


def test_plain_output_says_verdict_counts_lean_cost_and_what_remains(study: Path) -> None:
    answered = ask("--epsilon", "0.25")
    assert answered.exit_code == 0
    for part in ("x and y", "subsets", "ε = 0.25", "ε = 0.75"):
        assert part in answered.stdout


def test_the_test_half_is_named_first(study: Path) -> None:
    assert ask("--epsilon", "0.5", "--method", "papers.Holdout", *FILLED, "--score", "kendall").exit_code == 2
    assert run("ledger", "create", "half.ledger", "--epsilon", "1", "--protect", "test").exit_code == 0
    half = ("--method", "papers.Holdout", *FILLED, "--score", "kendall")
    answered = ask("--epsilon", "0.5", *half, ledger="half.ledger")
    assert "TEST HALF ONLY" in answered.stdout.splitlines()[0]
    both = ("--method", "papers.Holdout", "--release-scores", "--json")
    with_scores = ask("--epsilon", "0.5", *FILLED, *both, ledger="half.ledger")
    assert len(json.loads(with_scores.stdout)["scores"]) == 2


def run_many(*arguments: str, ledger: str = "study.ledger") -> Result:
    return run("direction-all", "data.csv", "--schema", "schema.toml", "--ledger", ledger, *arguments)


def test_the_training_half_is_named_first_and_its_penalty_may_be_given(study: Path) -> None:
    options = "--penalty", "0.5", "--width", "0.4"
    assert run("ledger", "create", "half.ledger", "--epsilon", "1", "--protect", "training").exit_code == 0
    way = (*FILLED, "--method", "papers.TrainingPrivacy", *options, "--details")
    answered = ask("--epsilon", "0.5", *way, ledger="half.ledger")
    assert answered.output.startswith("PROTECTS THE TRAINING HALF ONLY")
    assert "training-difference, laplace" in answered.output
    assert ask("--epsilon", "0.1", "--penalty", "0.7").exit_code == 2  # blocks have no protected regressions


def test_many_pairs_are_asked_by_one_command_and_paid_at_once(study: Path) -> None:
    answered = run_many("--epsilon", "0.5", "--scores", "hsic,igci", "--pair", "y,x", "--json")
    assert answered.exit_code == 0, answered.stderr
    assert answered.stderr == ""  # no terminal, no progress
    answer = json.loads(answered.stdout)
    assert [one["score"] for one in answer["directions"]] == ["hsic", "igci"]
    assert answer["pairs"] == [["y", "x"]] and answer["remaining"]["epsilon"] == 0.5
    both = ("--scores", " hsic", "--scores", "igci", "--pair", "x, y")
    uneven = (*both, "--shares", "igci = 4", "--shares", "x, y=2")
    shares = run_many("--epsilon", "0.25", *uneven, "--json")
    assert [one["spent"]["epsilon"] for one in json.loads(shares.stdout)["directions"]] == [0.05, 0.2]
    half = ("--method", "papers.Holdout", *FILLED, "--scores", "kendall")
    assert run("ledger", "create", "half.ledger", "--epsilon", "1/4", "--protect", "test").exit_code == 0
    plain = run_many("--epsilon", "0.25", "--alpha", "0.01", *half, ledger="half.ledger")
    assert plain.exit_code == 0 and "TEST HALF ONLY" in plain.stdout.splitlines()[0]
    assert "1 pair, 1 score, 200 rows" in plain.stdout and "ε = 0" in plain.stdout
    assert run_many("--epsilon", "0.3").exit_code == 3
    shown = run("ledger", "show", "study.ledger").stdout
    assert "ε = 0.50" in shown and "direction all" in shown


def test_a_verdict_that_the_noise_drowns_is_undecided(study: Path) -> None:
    answered = ask("--epsilon", "0.001", "--alpha", "0.001")
    assert answered.exit_code == 0 and "x and y: inconclusive" in answered.stdout
    details = ask("--epsilon", "0.001", "--alpha", "0.001", "--details").stdout
    assert len(details.splitlines()) > len(answered.stdout.splitlines())


BAD: dict[str, tuple[Callable[[], Result], str]] = {
    "a pair of one column": (lambda: run_many("--epsilon", "0.1", "--pair", "x"), "two column names"),
    "a pair twice": (lambda: run_many("--epsilon", "0.1", "--pair", "x,y", "--pair", "y,x"), "named once"),
    "an unknown second score": (lambda: run_many("--epsilon", "0.1", "--scores", "hsic,tau"), "score must be one"),
    "a missing score": (lambda: run_many("--epsilon", "0.1", "--scores", "hsic,"), "name is missing in 'hsic,'"),
    "a share of nobody": (lambda: run_many("--epsilon", "0.1", "--shares", "=2"), "a share is written"),
    "no such level": (lambda: ask("--epsilon", "0.1", "--alpha", "1"), "alpha must"),
    "a missing column": (lambda: ask("--epsilon", "0.1", columns=("x", "q")), "'q' is not in the schema"),
    "a column with levels": (lambda: ask("--epsilon", "0.1", columns=("x", "group")), "'group' has levels"),
    "zCDP": (lambda: ask("--rho", "0.005"), "--epsilon 0.1"),
    "an unknown score": (lambda: ask("--epsilon", "0.1", "--score", "pearson"), "score must be one of lsnm"),
    "epsilon nan": (lambda: ask("--epsilon", "nan"), "epsilon must be finite"),
    "epsilon inf": (lambda: ask("--epsilon", "inf"), "epsilon must be finite"),
    "epsilon 0": (lambda: ask("--epsilon", "0"), "epsilon must be above 0"),
    "epsilon -1": (lambda: ask("--epsilon", "-1"), "epsilon must be above 0"),
    "epsilon abc": (lambda: ask("--epsilon", "abc"), "--epsilon"),
    "epsilon 21": (lambda: ask("--epsilon", "21"), "--accept-large-epsilon"),
    "epsilon and rho": (lambda: ask("--epsilon", "0.1", "--rho", "0.1"), "not both"),
    "no amount": (lambda: ask(), "--epsilon"),
    "delta alone": (lambda: ask("--delta", "1e-6"), "--epsilon"),
    "an even number of blocks": (
        lambda: ask("--epsilon", "0.1", "--method", "majority-vote", "--blocks", "4"), "odd number"
    ),
    "no such data": (lambda: ask("--epsilon", "0.1", data="nothing.csv"), "nothing.csv"),
    "data of another kind": (lambda: ask("--epsilon", "0.1", data="schema.toml"), "schema.toml"),
    "no such schema": (lambda: ask("--epsilon", "0.1", schema="no.toml"), "there is no file 'no.toml'"),
    "no such ledger": (lambda: ask("--epsilon", "0.1", ledger="no.ledger"), "dpcausal ledger create"),
    "a ledger that is there": (lambda: run("ledger", "create", "study.ledger", "--epsilon", "1"), "study.ledger"),
    "a ledger without an amount": (lambda: run("ledger", "create", "other.ledger"), "--epsilon"),
    "a share without a number": (lambda: run_many("--epsilon", "0.1", "--shares", "x,y"), "a share is written"),
    "a share of nothing asked": (lambda: run_many("--epsilon", "0.1", "--shares", "igci=2"), "was not asked for"),
    "a head that is none": (lambda: run("ledger", "verify", "study.ledger", "--fingerprint", "abc"), "64 hexadecimal"),
    "an unknown claim": (lambda: run("explain", "everything"), "no claim of that name"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_ends_with_2_names_the_rule_and_spends_nothing(name: str, study: Path) -> None:
    call, rule = BAD[name]
    refused = call()
    assert refused.exit_code == 2, refused.output
    assert rule in refused.stderr and refused.stdout == ""
    assert "0 entries verified" in run("ledger", "verify", "study.ledger").stdout


@pytest.mark.parametrize("damage", [b"SQLite format 3\0", b"", b"\xff"])
def test_a_damaged_ledger_ends_with_4(damage: bytes, study: Path) -> None:
    path = study / "study.ledger"
    whole = path.read_bytes()
    path.write_bytes(damage + whole[len(damage) : len(whole) // 2] if damage else whole[:100])
    for call in (lambda: ask("--epsilon", "0.1"), lambda: run("ledger", "verify", "study.ledger")):
        failed = call()
        assert failed.exit_code == 4, failed.output
        assert "study.ledger" in failed.stderr and failed.stdout == ""


def test_a_ledger_that_was_rolled_back_ends_with_4_where_its_head_was_noted(study: Path) -> None:
    old = (study / "study.ledger").read_bytes()
    head = json.loads(ask("--epsilon", "0.1", "--json").stdout)["ledger_head"]
    for path in study.glob("study.ledger*"):
        path.unlink()
    (study / "study.ledger").write_bytes(old)
    for call in (("verify",), ("show",), ("verify", "--fingerprint", head)):
        assert run("ledger", call[0], "study.ledger", *call[1:]).exit_code == 4
    assert ask("--epsilon", "0.1").exit_code == 4
    for witness in Path(os.environ["DPCAUSAL_WITNESS"]).iterdir():
        if "study.ledger" in witness.read_text() and str(study) in witness.read_text():
            witness.unlink()
    assert run("ledger", "verify", "study.ledger").exit_code == 0
    assert run("ledger", "verify", "study.ledger", "--fingerprint", head).exit_code == 4


def test_a_ledger_shows_budget_rest_and_every_spend(study: Path) -> None:
    ask("--epsilon", "0.25", "--score", "igci")
    plain = run("ledger", "show", "study.ledger").stdout
    assert "ε = 1" in plain and "ε = 0.75" in plain and "direction" in plain
    shown = json.loads(run("ledger", "show", "study.ledger", "--json").stdout)
    assert shown["remaining"]["epsilon"] == 0.75 and shown["entries"][0]["detail"]["score"] == "igci"
    lines = run("ledger", "show", "study.ledger", "--jsonl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == shown["entries"]


def test_no_output_holds_a_value_or_a_name_of_the_data(study: Path) -> None:
    spoilt = (study / "data.csv").read_text().replace(f"{CANARY},", f"{PERSON},", 1)
    (study / "spoilt.csv").write_text(spoilt)
    broken = (study / "data.csv").read_text().replace(",a,", ",a,,,", 3)
    (study / "broken.csv").write_text(broken)
    (study / "torn.parquet").write_bytes((study / "data.parquet").read_bytes()[:-40])
    outputs = [
        ask("--epsilon", "0.1", *more, data=data, columns=columns)
        for data in ("data.csv", "data.parquet", "spoilt.csv", "broken.csv", "torn.parquet")
        for more in ((), ("--json",))
        for columns in (("x", "y"), ("y", "x"), ("x", "name"))
    ]
    outputs += [run("ledger", "show", "study.ledger", "--json"), run("ledger", "verify", "study.ledger")]
    for output in outputs:
        assert output.exit_code in (0, 2, 3)
        assert CANARY not in output.output and PERSON not in output.output


def test_a_claim_is_explained(study: Path) -> None:
    explained = run("explain", "block-votes")
    assert explained.exit_code == 0
    assert explained.stdout.startswith("## block-votes") and "**Proof.**" in explained.stdout


def test_without_a_claim_all_claims_are_listed() -> None:
    listed = run("explain")
    assert listed.exit_code == 0 and {"block-votes", "geometric"} <= set(listed.stdout.split())


def test_the_version_is_told() -> None:
    told = run("--version")
    assert (told.exit_code, told.stdout) == (0, f"dpcausal {dpc.__version__}\n")


def test_the_demonstration_answers_from_real_data(tmp_path: Path) -> None:
    answered = run("demo", "--json", "--folder", str(tmp_path))
    assert answered.exit_code == 0, answered.output
    questions = json.loads(answered.stdout)["questions"]
    assert [one["state"] for one in questions] == ["answered"] * 2
    assert {one["answer"][0]["guarantee"]["unit"] for one in questions} == {"person"}
    assert {one["answer"][0]["n"] for one in questions} == {5912} and (tmp_path / "report.html").exists()
    told = run("demo", "--folder", str(tmp_path))  # again, from what was kept
    assert told.stdout.rstrip().endswith(str(tmp_path / "report.html")) and "0.74" in told.stdout


def test_a_terminal_gets_a_frame(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    show(answer_to(np.zeros((40, 2))), dpc.Ledger.in_memory(dpc.PureDP(1)), False)
    shown = capsys.readouterr().out
    assert "direction" in shown and "ε = 1" in shown and "─" in shown


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["explain", "gcm"], "block-sum, geometric"),
        (["explain", "geometrc"], "did you mean 'geometric'?"),
        (["explain", "zzzz"], "no claim of that name; 'dpcausal explain' lists all"),
    ],
)  # fmt: skip
def test_a_claim_that_is_none_is_met_with_those_near_it(words: list[str], told: str) -> None:
    refused = run(*words)
    assert refused.exit_code == 2 and told in refused.stderr and len(refused.stderr) < 400


def test_a_word_that_is_none_is_met_with_the_nearest(study: Path) -> None:
    refused = run("ci-test", "data.csv", "x", "y", "--schema", "schema.toml", "--ledger", "study.ledger", "--method",
                  "Kendal", "--epsilon", "1")  # fmt: skip
    assert refused.exit_code == 2 and "did you mean 'kendall'?" in refused.stderr


def test_what_a_spend_was_for_is_shown(study: Path) -> None:
    with dpc.Ledger.create(study / "shown.ledger", budget=dpc.PureDP(3)) as ledger:
        columns = {"a": np.arange(400) % 2, "b": np.arange(400) % 3 % 2, "c": np.arange(400) % 5 % 2}
        table = dpc.Table(columns, dpc.Schema({name: dpc.Levels([0, 1]) for name in "abc"}), ledger, name="wave 1")
        dpc.ci_test(table.where("c", among=[1]), "a", "b", given=["c"], loss=dpc.PureDP(1), method="counts")
        dpc.effect(table, treatment="a", outcome="b", adjust=["c"], loss=dpc.PureDP(1))
    shown = run("ledger", "show", str(study / "shown.ledger")).stdout.splitlines()
    (test,), (effect,) = ([line for line in shown if line.startswith(f"{number:>3}  ")] for number in (1, 2))
    assert all("ε = 1.00" in line and line.endswith("saved") for line in (test, effect))
    assert "association" in test and "effect" in effect and any("wave 1" in line for line in shown)


def test_a_ledger_that_is_there_is_met_with_how_to_open_it(study: Path) -> None:
    (study / "there.ledger").touch()
    refused = run("ledger", "create", str(study / "there.ledger"), "--epsilon", "1")
    assert refused.exit_code == 2 and "Ledger.open, or open_or_create" in refused.stderr


def test_a_ledger_that_pays_for_no_gaussian_noise_says_so(study: Path) -> None:
    pure = run("ledger", "create", str(study / "pure.ledger"), "--epsilon", "1")
    both = run("ledger", "create", str(study / "both.ledger"), "--epsilon", "1", "--delta", "1e-6")
    assert "--delta 1e-6" in pure.stdout and "--delta" not in both.stdout


def test_a_pattern_and_a_database_are_data_of_one_line(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, 3000)
    rows = pa.table({"a": a, "b": np.where(rng.random(3000) < 0.85, a, 1 - a)})
    (tmp_path / "visits").mkdir()
    for part in range(3):
        pyarrow.parquet.write_table(rows.slice(1000 * part, 1000), tmp_path / f"visits/{part}.parquet")
    with duckdb.connect(str(tmp_path / "t.db")) as connection:
        connection.from_arrow(rows).create("visits")
    (tmp_path / "s.toml").write_text("[a]\nlevels = [0, 1]\n[b]\nlevels = [0, 1]\n")
    for name in ("visits/*.parquet", "duckdb"):
        data = f"duckdb:///{tmp_path}/t.db?table=visits" if name == "duckdb" else str(tmp_path / name)
        ledger = tmp_path / f"{name[0]}.ledger"
        dpc.Ledger.create(ledger, budget=dpc.PureDP(1)).close()
        asked = ("discover", data, "--schema", str(tmp_path / "s.toml"), "--ledger", str(ledger), "--epsilon", "1")
        found = run(*asked, "--json")
        assert found.exit_code == 0, found.output
        assert json.loads(found.output)["graph"]["undirected"] == [["a", "b"]]
