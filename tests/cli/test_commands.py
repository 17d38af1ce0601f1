"""The command: a stranger's story from a file to a refused budget, and exit codes."""

import json
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import Result

import dpcausal as dpc
from dpcausal.cli.options import methods_of
from dpcausal.cli.shared import Call
from tests.commands import command
from tests.direction.neighbours import ask as answer_to
from tests.refusals import rule_of_command

N = 300
FILLED = ("--missing", "impute")
"""A method that cannot leave out rows takes a table in which nothing is missing."""
BOUNDS = {"x": (-1, 1), "y": (-1, 3), "Age": (-1, 1), "occup": (-1, 1)}
SCHEMA = "".join(f"[{name}]\nlower = {low}\nupper = {high}\n" for name, (low, high) in BOUNDS.items())
TESTS = methods_of("independence")
MODEL = "mean = { intercept = 0.1, Age = 0.5 }, sd = 0.6"
MODELLED = {name for name, kind in TESTS.items() if "model_x" in {field.name for field in fields(kind)}}


def fill(folder: Path) -> None:
    """Write one table as CSV and Parquet, a schema, and ledgers of ε = 1, of much, and of persons."""
    rng = np.random.default_rng(6)
    x, age, occup = rng.uniform(-1, 1, (3, N))
    y = 1 + np.tanh(3 * x) + 0.1 * rng.standard_normal(N)
    columns = {"x": x, "y": y, "Age": age, "occup": occup, "group": ["a", "b"] * (N // 2),
               "id": [f"p{k // 2}" for k in range(N)], "weight": [1.0] * N}  # fmt: skip
    pd.DataFrame(columns).to_csv(folder / "data.csv", index=False)
    pd.DataFrame(columns).to_parquet(folder / "data.parquet")
    (folder / "schema.toml").write_text(SCHEMA + '[group]\nlevels = ["a", "b"]\n')
    assert command("ledger", "create", folder / "study.ledger", "--epsilon", "1").exit_code == 0
    dpc.Ledger.create(folder / "much.ledger", budget=dpc.ApproxDP(100, 1e-3), accept_large_epsilon=True).close()
    dpc.Ledger.create(folder / "persons.ledger", budget=dpc.PureDP(9), person="id", ids="public").close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fill(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def unspent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for calls that spend nothing."""
    fill(folder := tmp_path_factory.mktemp("unspent"))
    return folder


def ask(*more: str, data: str = "data.csv", columns: tuple[str, str] = ("x", "y"), ledger: str = "study.ledger",
        schema: str = "schema.toml", task: str = "direction") -> Result:  # fmt: skip
    return command(task, data, *columns, "--schema", schema, "--ledger", ledger, *more)


def dependence(*more: str, x: str = "x", ledger: str = "much.ledger") -> Result:
    return ask("--epsilon", "1", *more, columns=(x, "y"), ledger=ledger, task="ci-test")


def run_many(*more: str, ledger: str = "study.ledger") -> Result:
    return command("direction-all", "data.csv", "--schema", "schema.toml", "--ledger", ledger, *more)


def spends(ledger: str) -> list[dict]:
    with dpc.Ledger.open(ledger) as opened:
        return [json.loads(entry.detail) for entry in opened.entries()]


def test_five_questions_are_answered_and_the_sixth_is_refused(folder: Path) -> None:
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
    installed = [Path(sys.executable).parent / "dpcausal", "direction", "data.csv", "x", "y", "--schema", "schema.toml",
                 "--epsilon", "0.2", "--ledger", "study.ledger", "--json"]  # fmt: skip
    refused = subprocess.run(installed, capture_output=True, text=True, cwd=folder)
    assert refused.returncode == 3 and refused.stdout == ""
    assert "ε = 0.2" in refused.stderr and "left ε = 0" in refused.stderr
    verified = command("ledger", "verify", "study.ledger", "--fingerprint", answers[-1]["ledger_head"])
    assert verified.exit_code == 0 and "5 entries verified" in verified.stdout


@pytest.mark.usefixtures("folder")
def test_plain_output_says_verdict_counts_cost_and_what_remains() -> None:
    answered = ask("--epsilon", "0.25").stdout
    assert all(part in answered for part in ("x and y", "subsets", "ε = 0.25", "ε = 0.75"))
    weak = ask("--epsilon", "0.001", "--alpha", "0.001")
    assert weak.exit_code == 0 and "x and y: inconclusive" in weak.stdout
    details = ask("--epsilon", "0.001", "--alpha", "0.001", "--details").stdout
    assert len(details.splitlines()) > len(weak.stdout.splitlines())
    plain = command("ledger", "show", "study.ledger").stdout
    assert "ε = 1" in plain and "ε = 0.748" in plain and "direction" in plain
    shown = json.loads(command("ledger", "show", "study.ledger", "--json").stdout)
    assert shown["remaining"]["epsilon"] == 0.748 and [one["task"] for one in shown["entries"]] == ["direction"] * 3
    lines = command("ledger", "show", "study.ledger", "--jsonl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == shown["entries"]


@pytest.mark.usefixtures("folder")
def test_the_half_that_is_protected_is_named_first_and_takes_a_ledger_of_its_own() -> None:
    half = ("--method", "papers.Holdout", *FILLED, "--score", "kendall")
    assert ask("--epsilon", "0.5", *half).exit_code == 2
    assert command("ledger", "create", "half.ledger", "--epsilon", "1.25", "--protect", "test").exit_code == 0
    answered = ask("--epsilon", "0.5", *half, ledger="half.ledger")
    assert "TEST HALF ONLY" in answered.stdout.splitlines()[0]
    both = ("--method", "papers.Holdout", "--release-scores", "--json")
    assert len(json.loads(ask("--epsilon", "0.5", *FILLED, *both, ledger="half.ledger").stdout)["scores"]) == 2
    pair = ("--epsilon", "0.25", "--alpha", "0.01", "--scores", "kendall", "--pair", "x,y")
    many = run_many(*pair, "--method", "papers.Holdout", *FILLED, ledger="half.ledger")
    assert many.exit_code == 0 and "TEST HALF ONLY" in many.stdout.splitlines()[0] and "ε = 0" in many.stdout
    assert command("ledger", "create", "rest.ledger", "--epsilon", "1", "--protect", "training").exit_code == 0
    training = (*FILLED, "--method", "papers.TrainingPrivacy", "--penalty", "0.5", "--width", "0.4", "--details")
    answered = ask("--epsilon", "0.5", *training, ledger="rest.ledger")
    assert answered.output.startswith("PROTECTS THE TRAINING HALF ONLY")
    assert "training-difference, laplace" in answered.output


@pytest.mark.usefixtures("folder")
def test_many_pairs_are_asked_by_one_command_and_paid_at_once() -> None:
    answered = run_many("--epsilon", "0.5", "--scores", "hsic,lsnm", "--pair", "y,x", "--json")
    assert answered.exit_code == 0 and answered.stderr == ""  # no terminal, no progress
    answer = json.loads(answered.stdout)
    assert [one["score"] for one in answer["directions"]] == ["hsic", "lsnm"]
    assert answer["pairs"] == [["y", "x"]] and answer["remaining"]["epsilon"] == 0.5
    both = ("--scores", " hsic", "--scores", "lsnm", "--pair", "x, y", "--shares", "lsnm = 4", "--shares", "x, y=2")
    shares = run_many("--epsilon", "0.25", *both, "--json")
    assert [one["spent"]["epsilon"] for one in json.loads(shares.stdout)["directions"]] == [0.05, 0.2]
    assert run_many("--epsilon", "0.3").exit_code == 3
    shown = command("ledger", "show", "study.ledger").stdout
    assert "ε = 0.75" in shown and "direction all" in shown


OF = "--schema schema.toml --ledger study.ledger"
BASES = {"pair": f"direction data.csv x y {OF}", "paid": f"direction data.csv x y {OF} --epsilon 0.1",
         "many": f"direction-all data.csv {OF} --epsilon 0.1",
         "test": f"ci-test data.csv x y {OF} --epsilon 1"}  # fmt: skip
REFUSED = {
    "many --pair x": "two column names", "many --pair x,y --pair y,x": "named once",
    "many --scores hsic,tau": "rule: choice", "many --scores hsic,": "rule: missing-name",
    "many --shares =2": "rule: share", "many --shares x,y": "rule: share", "many --shares hsic=2": "shares",
    "paid --alpha 1": "rule: range", "paid --score pearson": "rule: choice", "paid --rho 0.1": "rule: two-amounts",
    "paid --penalty 0.7": "rule: misplaced-option", "paid --method majority-vote --blocks 4": "odd number",
    "pair": "rule: no-amount", "pair --delta 1e-6": "rule: no-amount", "pair --rho 0.005": "rule: pure",
    "pair --epsilon nan": "epsilon", "pair --epsilon inf": "epsilon", "pair --epsilon 0": "epsilon",
    "pair --epsilon -1": "epsilon", "pair --epsilon abc": "--epsilon", "pair --epsilon 21": "--accept-large-epsilon",
    f"direction data.csv x q {OF} --epsilon 0.1": "'q'", f"direction data.csv x group {OF} --epsilon 0.1": "'group'",
    f"direction nothing.csv x y {OF} --epsilon 0.1": "nothing.csv",
    f"direction schema.toml x y {OF} --epsilon 0.1": "schema.toml",
    "direction data.csv x y --schema no.toml --ledger study.ledger --epsilon 0.1": "no.toml",
    "direction data.csv x y --schema schema.toml --ledger no.ledger --epsilon 0.1": "dpcausal ledger create",
    "ledger create study.ledger --epsilon 1": "Ledger.open, or open_or_create",
    "ledger create other.ledger": "rule: no-amount", "ledger verify study.ledger --fingerprint abc": "64 hexadecimal",
    "explain everything": "'dpcausal explain' lists all", "explain geometrc": "did you mean 'geometric'?",
    "explain gcm": "block-sum, geometric",
    "test --given Age,": "rule: missing-name", "test --given ''": "rule: missing-name",
    "test --given age": "did you mean 'Age'?", "test --method Kendal": "did you mean 'kendall'?",
    "test --strata 4": "rule: misplaced-option", "test --method kendall --given Age --strata 0": "strata",
    "test --resamples 3": "resamples", "test --workers 0": "workers",
    "test --method papers.PrivGcm --constants own": "constants",
    f"effect data.csv --treatment group --outcome x --trial {OF} --epsilon 0.1 --weight Age": "rule: weight",
    f"effect data.csv --treatment group --outcome x --trial {OF} --epsilon 0.1 --plot effect.doc": "rule: picture",
    "plan discontinuity --n 9000 --epsilon 1": "rule: choice", "plan did --n 9000 --epsilon 1": "--epsilon 1 --delta",
}  # fmt: skip
"""What is refused, its first word one of ``BASES`` or a command, and the rule, or a part of what is printed."""
REFUSED |= {f"test --given Age --method crt --model-x {shlex.quote(text)}": "" for text in (
    "mean = 1, sd", "men = 1", "sd = 1", "mean = { age = 1 }, sd = 1", "table = [[1]]", 'mean = { Age = "a" }, sd = 1',
    "ft", "mean = 1, sd = -1",
)}  # fmt: skip
REFUSED |= {f"test {words}": "" for words in (
    "--where 'x > 30'", """--where "__import__('os')" """, "--where 'height >= 1'", """--where "x >= 'x'" """,
    """--where "group == 'q'" """, "--where ''", "--person who", "--ids public", "--missing skip",
    "--max-rows-per-person 2", "--weight who=8", "--weight Age=0", "--weight Age=70",
)}  # fmt: skip


@pytest.mark.parametrize("words", REFUSED)
def test_bad_input_ends_with_2_names_the_rule_and_spends_nothing(
    words: str, unspent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(unspent)
    first, _, rest = words.partition(" ")
    refused, part = command(*shlex.split(f"{BASES.get(first, first)} {rest}")), REFUSED[words]
    assert refused.exit_code == 2 and refused.stdout == "", refused.output
    if part.startswith("rule: "):
        assert rule_of_command(refused) == part.removeprefix("rule: ")
    assert "=True" not in refused.stderr
    assert part.startswith("rule: ") or (part in refused.stderr and len(refused.stderr) < 500), refused.stderr
    assert "0 entries verified" in command("ledger", "verify", "study.ledger").stdout


@pytest.mark.parametrize("damage", [b"SQLite format 3\0", b"", b"\xff"])
def test_a_damaged_ledger_ends_with_4(damage: bytes, folder: Path) -> None:
    path = folder / "study.ledger"
    whole = path.read_bytes()
    path.write_bytes(damage + whole[len(damage) : len(whole) // 2] if damage else whole[:100])
    for call in (lambda: ask("--epsilon", "0.1"), lambda: command("ledger", "verify", "study.ledger")):
        failed = call()
        assert failed.exit_code == 4 and "study.ledger" in failed.stderr and failed.stdout == "", failed.output


def test_claims_and_the_version_are_printed() -> None:
    explained = command("explain", "block-votes")
    assert explained.stdout.startswith("## block-votes") and "**Proof.**" in explained.stdout
    assert {"block-votes", "geometric"} <= set(command("explain").stdout.split())
    assert command("--version").stdout == f"dpcausal {dpc.__version__}\n"


def test_the_demonstration_answers_from_real_data(tmp_path: Path) -> None:
    answered = command("demo", "--json", "--folder", str(tmp_path))
    assert answered.exit_code == 0, answered.output
    questions = json.loads(answered.stdout)["questions"]
    assert [one["state"] for one in questions] == ["answered"] * 2
    assert {one["answer"][0]["guarantee"]["unit"] for one in questions} == {"person"}
    assert {one["answer"][0]["n"] for one in questions} == {5912} and (tmp_path / "report.html").exists()
    cached = command("demo", "--folder", str(tmp_path))
    assert cached.stdout.rstrip().endswith(str(tmp_path / "report.html")) and "0.74" in cached.stdout


def test_a_terminal_gets_a_frame(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    Call(dpc.Ledger.in_memory(dpc.PureDP(1)), False).show(answer_to(np.zeros((40, 2))))
    shown = capsys.readouterr().out
    assert "direction" in shown and "ε = 1" in shown and "─" in shown


@pytest.mark.usefixtures("folder")
def test_each_spend_is_shown_with_its_question_and_a_ledger_says_which_noise_it_takes() -> None:
    pure = command("ledger", "create", "pure.ledger", "--epsilon", "3")
    both = command("ledger", "create", "both.ledger", "--epsilon", "1", "--delta", "1e-6")
    assert "--delta 1e-6" in pure.stdout and "--delta" not in both.stdout
    with dpc.Ledger.open("pure.ledger") as ledger:
        columns = {name: np.arange(400) % step % 2 for name, step in zip("abc", (2, 3, 5), strict=True)}
        table = dpc.Table(columns, dpc.Schema(dict.fromkeys("abc", dpc.Levels([0, 1]))), ledger, name="wave 1")
        dpc.ci_test(table.where("c", among=[1]), "a", "b", given=["c"], loss=dpc.PureDP(1), method="counts")
        dpc.effect(table, treatment="a", outcome="b", adjust=["c"], loss=dpc.PureDP(1))
    shown = command("ledger", "show", "pure.ledger").stdout.splitlines()
    (test,), (effect,) = ([line for line in shown if line.startswith(f"{number:>3}  ")] for number in (1, 2))
    assert all("ε = 1.00" in line and line.endswith("saved") for line in (test, effect))
    assert "association" in test and "effect" in effect and any("wave 1" in line for line in shown)


@pytest.mark.usefixtures("folder")
def test_all_given_columns_are_asked_about_however_they_are_written() -> None:
    for written in (["--given", "Age", "--given", "occup"], ["--given", "Age,occup"], ["--given", " Age , occup "]):
        assert json.loads(dependence("--json", *written).stdout)["given"] == ["Age", "occup"]
    assert [spend["given"] for spend in spends("much.ledger")] == [["Age", "occup"]] * 3
    assert json.loads(dependence("--json", x="x, occup").stdout)["x"] == ["x", "occup"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("method", TESTS)
def test_every_method_that_is_listed_runs(method: str) -> None:
    given = [] if method in ("hsic", "strata-covariance") else ["--given", "Age"]
    given += [] if method == "auto" or TESTS[method].supports_missing else [*FILLED]
    answered = dependence(*given, *(["--model-x", MODEL] if method in MODELLED else []), "--method", method, "--json")
    if method == "counts":
        assert answered.exit_code == 2 and "levels only" in answered.stderr
        return
    assert answered.exit_code == 0, answered.stderr
    assert json.loads(answered.stdout)["method"] == ("neighbours" if method == "auto" else TESTS[method].name)


@pytest.mark.usefixtures("folder")
def test_a_model_of_x_on_the_command_is_that_of_python_and_of_a_study() -> None:
    Path("study.toml").write_text(
        'title = "t"\ndata = "data.csv"\nledger = "much.ledger"\nbudget = { epsilon = 100.0, delta = 0.001, '
        "accept_large_epsilon = true }\n"
        + "".join(f"[columns.{name}]\nlower = {low}\nupper = {high}\n" for name, (low, high) in BOUNDS.items())
        + '[[question]]\nname = "q"\ntask = "ci_test"\nx = "x"\ny = "y"\ngiven = ["Age"]\nepsilon = 1.0\n'
        "method = { name = \"crt\", model_x = { mean = { intercept = 0.1, Age = 0.5 }, sd = 0.6 } }\n"
    )
    told = dependence("--given", "Age", "--method", "crt", "--model-x", MODEL, "--name", "data.csv", "--json")
    assert told.exit_code == 0, told.stderr
    (question,) = dpc.Study.open("study.toml").run().questions
    assert question.answer.statistic == json.loads(told.stdout)["statistic"]  # one question: the cached answer
    ledger, model = dpc.Ledger.open("much.ledger"), {"mean": {"intercept": 0.1, "Age": 0.5}, "sd": 0.6}
    schema = dpc.Schema({name: dpc.Bounded(*ends) for name, ends in BOUNDS.items()})
    table = dpc.Table("data.csv", schema, ledger, name="data.csv")
    for changed, cached in (({}, True), ({"sd": 0.7}, False)):
        way = dpc.methods.Crt(model_x=model | changed)
        answer = dpc.ci_test(table, "x", "y", given=["Age"], loss=dpc.PureDP(1), method=way)
        assert bool(answer.guarantee.cached) == cached


@pytest.mark.usefixtures("folder")
def test_options_reach_the_test_and_its_entry_in_the_ledger() -> None:
    assert dependence("--method", "gcm", "--resamples", "39", "--workers", "1", "--blocks", "4").exit_code == 0
    assert dependence("--method", "kendall", "--given", "Age", "--strata", "4").exit_code == 0
    published = "--method", "papers.PrivGcm", "--given", "Age", "--constants", "corrected"
    assert dependence(*published).exit_code == 2  # it leaves out no row
    assert dependence(*published, *FILLED).exit_code == 0
    names = "method", "resamples", "blocks", "strata", "constants"
    assert [{key: spend[key] for key in names if spend.get(key) is not None} for spend in spends("much.ledger")] == [
        {"method": "gcm", "resamples": 39, "blocks": 4}, {"method": "kendall", "strata": 4},
        {"method": "PrivGCM", "constants": "corrected"},
    ]  # fmt: skip


@pytest.mark.usefixtures("folder")
def test_a_subgroup_of_persons_is_asked() -> None:
    persons = ("--person", "id", "--ids", "public", "--json")
    some = dependence("--where", "x >= -0.5 and group in ['a', 'b']", *persons, ledger="persons.ledger")
    answer = json.loads(some.stdout)
    assert answer["n"] == N // 2 and answer["guarantee"]["unit"].startswith("person")
    assert {"the subgroup: x >= -0.5", "the subgroup: group in ['a', 'b']"} <= set(answer["guarantee"]["public"])
    one = ("--max-rows-per-person", "1", "--weight", "occup=70", "--ledger", "persons.ledger")
    effect = command("effect", "data.csv", "--treatment", "group", "--outcome", "x", "--trial", "--schema",
                     "schema.toml", "--epsilon", "1", *persons, *one)  # fmt: skip
    assert {"the most rows of a person", "the largest weight"} <= set(json.loads(effect.stdout)["guarantee"]["public"])
    assert dependence(ledger="persons.ledger").exit_code != 0  # a ledger of persons pays for no rows


@pytest.mark.usefixtures("folder")
def test_the_same_question_of_a_named_file_is_paid_once_unless_refreshed() -> None:
    left = [json.loads(dependence("--name", "wave 1", "--json", *more).stdout)["remaining"]["epsilon"]
            for more in ((), (), ("--refresh",))]  # fmt: skip
    assert left == [99, 99, 98] and "nothing was spent" in dependence("--name", "wave 1").output
