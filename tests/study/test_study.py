"""Studies: read with errors that name the line, planned without a row, run without paying twice, reported."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import dpcausal as dpc
from dpcausal.errors import BudgetExceededError, DpCausalError, ParameterError
from dpcausal.planning.plan import TASK_PLANS
from dpcausal.study.file import json_schema
from dpcausal.study.status import ANSWERED, BEYOND, CANNOT, SPENT, TO_ASK, Forecaster
from dpcausal.study.wording import Wording
from tests.commands import command
from tests.study.kills import run_under_fire
from tests.study.made import question

HEAD = """title = "Does smoking matter once age is known?"
data = "study.csv"
person = "id"
ledger = "study.ledger"
budget = { epsilon = 2.0, delta = 1e-6 }
[columns.age]
lower = 18
upper = 100
[columns.smoker]
levels = ["no", "yes"]
[columns.sick]
levels = ["no", "yes"]
"""
LINKED = question("linked", "ci_test", x="smoker", y="sick", given=["age"], epsilon=0.5)
SIZE = question("size", "effect", treatment="smoker", outcome="sick", adjust=["age"], where="age >= 30", epsilon=0.5)
MORE = SIZE + question("graph", "discover", epsilon=0.5, method='{ name = "table", max_order = 1 }',
                       knowledge='{ tiers = [["age"], ["smoker"], ["sick"]] }')  # fmt: skip
N = 900


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study of persons with several rows and nulls."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    age, smokes = rng.integers(18, 95, N), rng.random(N) < 0.4
    sick = rng.random(N) < 0.1 + 0.004 * (age - 18) + 0.3 * smokes
    rows = [f"p{k},{'' if k % 40 == 0 else age[k]},{'ny'[int(smokes[k])]},{'ny'[int(sick[k])]}" for k in range(N)]
    text = "\n".join(["id,age,smoker,sick", *rows, *rows[:200]]).replace(",n", ",no").replace(",y", ",yes")
    Path("study.csv").write_text(text)
    return written(LINKED + MORE)


def written(questions: str, head: str = HEAD) -> Path:
    Path("study.toml").write_text(head + questions)
    return Path("study.toml")


def test_a_study_is_planned_run_once_and_told_again_free(study: Path) -> None:
    opened = dpc.Study.open(study)
    plan = opened.plan(accuracy=False)
    assert [one.state for one in plan.questions] == [TO_ASK] * 3 and plan.n == N
    assert not Path("study.ledger").exists()
    told: list[str] = []
    found = opened.run(new_ledger=True, progress=lambda done, many, words: told.append(f"{done}/{many} {words}"))
    assert found.done and [line[:3] for line in told] == ["1/3", "2/3", "3/3"]
    with dpc.Ledger.open("study.ledger", read_only=True) as ledger:
        head, left = ledger.head, ledger.remaining
        assert [entry.loss for entry in ledger.entries()] == ["PureDP(0.5)"] * 3
        assert {entry.unit for entry in ledger.entries()} == {"person"}
        assert json.loads(ledger.entries()[1].detail)["where"] == ["age >= 30"]
    again = dpc.Study.open(study).run(new_ledger=True)
    assert again.done and again.questions[1].answer.estimate == found.questions[1].answer.estimate
    assert dpc.Study.open(study).plan(accuracy=False).done
    with dpc.Ledger.open("study.ledger", read_only=True) as ledger:
        assert (ledger.head, ledger.remaining) == (head, left)
    anew = dpc.Study.open(study).run(new_ledger=True, refresh=["linked"])
    assert anew.remaining != found.remaining and anew.questions[0].answer.guarantee.cached == ""


def test_the_plan_reads_no_row_where_the_study_says_how_many_there_are(study: Path) -> None:
    text = study.read_text().replace("person =", f"n = {N}\nperson =")
    rows = Path("study.csv").read_text()
    Path("study.csv").unlink()
    study.write_text(text)
    plan = dpc.Study.open(study).plan()
    assert [one.state for one in plan.questions] == [TO_ASK] * 3
    assert all(re.search(r"\d", one.forecast) for one in plan.questions[:2])
    with pytest.raises(ParameterError, match=r"study.toml, line 2, data: there is no file 'study.csv'"):
        dpc.Study.open(study).run(new_ledger=True)
    Path("study.csv").write_text(rows)
    study.write_text(text.replace(f"n = {N}", "n = 7"))
    with pytest.raises(ParameterError, match=r"line 3, n: the data have 900 records"):
        dpc.Study.open(study).run(new_ledger=True)
    assert not Path("study.ledger").exists()


def test_a_plan_that_would_take_long_names_the_command_for_what_it_leaves_out(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Forecaster, "seconds", 1.5)
    written(LINKED + LINKED.replace('"linked"', '"again"') + MORE)
    forecasts = [one.forecast for one in dpc.Study.open(study).plan().questions]
    assert forecasts[0] == forecasts[1] and "probability" in forecasts[0]  # what is alike is predicted once
    assert forecasts[2] == f"see: dpcausal plan effect --n {N}"


def test_a_study_on_parts_of_a_budget_plans_and_runs_within_the_analysts_part(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dpc.Ledger.create("study.ledger", budget=dpc.ApproxDP(2, 1e-6), person="id") as ledger:
        ledger.divide({"anna": 0.6, "ben": 1.4})
    for name, states in {"anna": [TO_ASK, BEYOND, BEYOND], "ben": [TO_ASK] * 2 + [BEYOND], "eve": [CANNOT] * 3}.items():
        monkeypatch.setenv("DPCAUSAL_ANALYST", name)
        assert [one.state for one in dpc.Study.open(study).plan(accuracy=False).questions] == states, name
    monkeypatch.setenv("DPCAUSAL_ANALYST", "anna")
    ran = dpc.Study.open(study).run(partial=True)
    assert [one.state for one in ran.questions] == [ANSWERED, BEYOND, BEYOND]


def test_a_budget_that_is_not_the_ledgers_is_refused_and_a_report_states_that_of_the_whole_life(study: Path) -> None:
    written(LINKED)
    dpc.Study.open(study).run(new_ledger=True)
    with dpc.Ledger.open("study.ledger") as ledger:
        ledger.renew(dpc.ApproxDP(1, 0), reason="records of 2027")
    stale = dpc.Study.open(study)
    for call in (lambda: stale.plan(accuracy=False), stale.run, stale.report):
        with pytest.raises(DpCausalError, match="budget is ε = 3, δ = 1e-06"):
            call()
    study.write_text(study.read_text().replace("epsilon = 2.0, delta", "epsilon = 3.0, delta"))
    assert "whole life of the ledger; it was raised to ε = 3" in dpc.Study.open(study).report().read_text()
    assert "records of 2027" in Path("report.registry.yaml").read_text()


def test_a_question_that_is_not_predicted_says_why(study: Path) -> None:
    two = LINKED.replace('"smoker"', '["smoker", "sick"]').replace('"sick"\ngiven = ["age"]', '"age"\ngiven = []')
    written(two)
    found = dpc.Study.open(study).plan().questions[0]
    assert (found.state, found.forecast) == (TO_ASK, "no prediction: a plan takes one column x and one y")


def test_a_task_without_a_plan_names_no_command(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Forecaster, "seconds", -1.0)
    assert "discontinuity" not in TASK_PLANS
    jump = question("jump", "discontinuity", running="age", outcome="sick", cutoff=50, epsilon=0.5)
    plan = dpc.Study.open(written(jump + LINKED, "n = 9000\n" + HEAD)).plan()
    planned = {one.question.task: one for one in plan.questions}
    assert (planned["discontinuity"].state, planned["discontinuity"].forecast) == (TO_ASK, "")
    assert planned["ci_test"].forecast


def test_an_effect_on_the_other_level_is_planned_at_one_less_the_rate(study: Path) -> None:
    one = SIZE.replace('["age"]', "[]")
    added = ("assumed = { share = 0.5, rate = 0.1 }\n", 'event = "no"\nassumed = { share = 0.5, rate = 0.9 }\n',
             'event = "no"\n')  # fmt: skip
    written("".join(one.replace('"size"', f'"size {k}"') + more for k, more in enumerate(added)))
    forecasts = [found.forecast for found in dpc.Study.open(study).plan().questions]
    assert forecasts[0] == forecasts[1] and all(re.search(r"±0\.\d", text) for text in forecasts)


BIG = MORE.replace("epsilon = 0.5\n[[", "epsilon = 1.8\n[[")
ODD = LINKED.replace("linked", "odd").replace('x = "smoker"', 'x = "smokers"')
STOPPED: dict[str, tuple[str, list[str], int, str]] = {
    "beyond the budget": (BIG, [TO_ASK, BEYOND, TO_ASK], 3, r"ε = 1.8.*line 20, question: question 'size'"),
    "impossible": (ODD, [TO_ASK, CANNOT], 2, r"study\.toml, line 20, question: question 'odd' cannot be asked: .*did "
                                             r"you mean 'smoker'\?\nnothing was"),
}  # fmt: skip


@pytest.mark.usefixtures("study")
@pytest.mark.parametrize("case", STOPPED)
def test_a_study_with_a_question_that_cannot_be_answered_pays_for_none_unless_partly(case: str) -> None:
    more, states, code, rule = STOPPED[case]
    study = dpc.Study.open(written(LINKED + more))
    plan = study.plan(accuracy=False)
    assert [one.state for one in plan.questions] == states and "--partial" in plan.summary()
    error = BudgetExceededError if code == 3 else ParameterError
    with pytest.raises(error, match=rule):
        study.run(new_ledger=True)
    for words in (["plan", "--no-accuracy"], ["plan", "--no-accuracy", "--json"], ["run", "--new-ledger"]):
        told = command(*words, "study.toml")
        assert told.exit_code == code and "partial=True" not in told.output
    assert "--partial" in told.output and not Path("study.ledger").exists()
    found = study.run(new_ledger=True, partial=True)
    assert [one.state for one in found.questions] == [ANSWERED if one == TO_ASK else one for one in states]


@pytest.mark.usefixtures("study")
def test_what_is_paid_anew_counts_before_the_first_is_paid() -> None:
    last = LINKED.replace("linked", "last").replace("0.5", "1.2").replace('["age"]', "[]")
    dpc.Study.open(written(LINKED)).run(new_ledger=True)
    with pytest.raises(BudgetExceededError, match="question 'last'"):
        dpc.Study.open(written(LINKED + last)).run(new_ledger=True, refresh=["linked"])
    assert len(dpc.Ledger.open("study.ledger").entries()) == 1


@pytest.mark.parametrize("change, rule", [
    (("epsilon = 0.5", "epsilon = 25.0"), "accept_large_epsilon = true"),
    (('given = ["age"]', 'given = ["age"]\nmethod = { name = "kendall", blocks = 3 }'), "has no option 'blocks'"),
    (('given = ["age"]', 'given = ["age"]\nmethod = "gmc"'), "did you mean 'gcm'?"),
    (('task = "ci_test"\nx = "smoker"\ny = "sick"\ngiven = ["age"]', 'task = "moments"\ncolumns = ["age", "sick"]'),
     "epsilon = 0.5, delta = 1e-06"),
])  # fmt: skip
@pytest.mark.usefixtures("study")
def test_errors_of_a_study_speak_as_its_file_does(change: tuple[str, str], rule: str) -> None:
    head = HEAD.replace("epsilon = 2.0", "epsilon = 20.0")
    (one,) = dpc.Study.open(written(LINKED.replace(*change), head)).plan(accuracy=False).questions
    assert one.state == CANNOT
    assert rule in one.reason, one.reason
    assert not set("=").intersection(one.reason.replace(" = ", "")) and "DP" not in one.reason


WRONG = {
    "unknown key": (HEAD.replace("person =", "persons ="), LINKED, r"line 3, persons: is not a key"),
    "bounds": (HEAD.replace("upper = 100", "upper = 10"), LINKED, r"line 6, columns\.age: .*lower must be below upper"),
    "amount": (HEAD, LINKED.replace("0.5", "-0.5"), r"line 19, question\.epsilon: .*above 0"),
    "two amounts": (HEAD, LINKED + "rho = 1.0\n", r"line 13, question: say epsilon"),
    "no amount": (HEAD, LINKED.replace("epsilon = 0.5", ""), r"line 13, question: say epsilon"),
    "task": (HEAD, LINKED.replace("ci_test", "ci_tset"), r"line 13, question: linked: task .*did you mean 'ci_test'"),
    "argument": (HEAD, LINKED.replace("given", "gven"), r"ci_test has no argument 'gven'; did you mean 'given'"),
    "far": (HEAD, LINKED.replace("given", "period"), r"ci_test has no argument 'period'; it takes x, y, given"),
    "lacking": (HEAD, LINKED.replace('y = "sick"', ""), r"line 13, question: linked: ci_test needs y"),
    "format": (HEAD.replace('data = "study.csv"\n', "") + '[data]\nfile = "study.csv"\nseparator = "x"\n', LINKED,
               r"line 12, data: separator must be one of"),
    "quoted": (HEAD, '[columns."a b"] # c\nlevels = [\n 1,\n 1,\n]\n' + LINKED, r"line 13, columns\.a b: "),
    "dotted": (HEAD.replace("budget = { epsilon = 2.0, delta = 1e-6 }", "budget . epsilon = -1"), LINKED,
               r"line 5, budget\.epsilon: .*above 0"),
    "twice": (HEAD, LINKED + LINKED, r"line 21, question\.name: 'linked' names another question"),
    "toml": (HEAD + "=", LINKED, r"study\.toml is not TOML"),
    "no title": (HEAD.replace("title", "titel"), LINKED, r"title: is missing\n.*line 1, titel"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=list(WRONG))
def test_an_error_names_the_file_the_line_and_the_rule(case: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    head, questions, rule = case
    with pytest.raises(ParameterError, match=rule):
        dpc.Study.open(written(questions, head))


def test_killed_at_random_moments_no_kept_answer_is_paid_again(study: Path) -> None:
    """Twenty kills: ``python -m benchmarks audit_study``."""
    outcome = run_under_fire(study, kills=3, seed=7)
    assert outcome.problems == [] and outcome.kills == 3


@pytest.mark.usefixtures("study")
def test_a_spend_without_an_answer_is_shown_and_the_rest_goes_on() -> None:
    with mock.patch("dpcausal.core.run.store", side_effect=KeyboardInterrupt):
        assert command("run", "study.toml", "--new-ledger").exit_code != 0
    found = dpc.Study.open("study.toml").run(new_ledger=True)
    assert [one.state for one in found.questions] == [SPENT, ANSWERED, ANSWERED]
    assert len(dpc.Ledger.open("study.ledger").entries()) == 3
    report = dpc.Study.open("study.toml").report().with_suffix(".md").read_text()
    assert "spend 1" in report and "| 1: linked |" in report and "| not saved |" in report
    shown = command("run", "study.toml", "--new-ledger", "--quiet")
    assert shown.exit_code == 2 and "size" in shown.output
    refreshed = command("run", "study.toml", "--new-ledger", "--refresh", "linked", "--quiet")
    assert refreshed.exit_code == 0


@pytest.mark.usefixtures("study")
def test_the_commands_go_from_a_raw_file_to_a_report() -> None:
    """``init`` reads the columns' names and nothing else; what is typed makes the file."""
    Path("study.toml").unlink()
    columns = ("not a range", "18-100", "", "no/yes", "", "no, yes", "")
    effect = ("", "smokr", "smoker", "sick", "", "none", "", "1", "", "")
    made = command("init", "study.csv", typed="\n".join(["T", "id", *columns, "2", "1e-6", *effect]))
    assert made.exit_code == 0, made.output
    (one,) = dpc.Study.open("study.toml").file.question
    assert (one.task, one.arguments["treatment"], one.epsilon) == ("effect", "smoker", 1.0)
    text = Path("study.toml").read_text()
    Path("study.toml").write_text(text + LINKED)
    planned = command("plan", "study.toml").output
    assert "linked" in planned and "ε = 0.50" in planned and "ε = 2.00" in planned
    ran = command("run", "study.toml", "--new-ledger")
    assert ran.exit_code == 0 and "[2/2] linked" in ran.output
    reported = command("report", "study.toml")
    assert reported.exit_code == 0 and Path("report.html").exists() and "report.html" in reported.stdout
    assert command("check", "study.toml").output.startswith("NOT PRIVATE")


def test_a_check_of_persons_does_not_ask_for_them_again(study: Path) -> None:
    assert not [note for note in dpc.Study.open(study).check().notes if "person=" in note]
    study.write_text(study.read_text().replace('person = "id"\n', ""))
    assert [note for note in dpc.Study.open(study).check().notes if "person=" in note]


def test_a_level_that_looks_like_a_code_is_no_problem_once_the_study_says_what_it_means(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("visits\n" + "0\n1\n2\n9\n" * 30)
    path, found = tmp_path / "s.toml", {}
    for meaning in ("", 'level_labels = { 9 = "nine or more" }', 'level_labels = { 9 = "refused" }'):
        path.write_text('title = "t"\ndata = "d.csv"\nledger = "l"\nbudget = { epsilon = 1 }\n[columns.visits]\n'
                        f"levels = [0, 1, 2, 9]\n{meaning}\n")  # fmt: skip
        found[meaning] = command("check", str(path)).exit_code
    assert list(found.values()) == [1, 0, 1]


def test_the_schema_for_editors_is_that_of_the_file() -> None:
    assert json.loads(command("schema").stdout) == json_schema()
    assert json_schema()["required"] == ["title", "data", "ledger", "budget"]


def test_clusters_are_planned_for_and_named_in_the_answer_and_its_entry(study: Path) -> None:
    cluster = SIZE.replace('where = "age >= 30"', 'cluster = "village"')
    head = HEAD.replace('person = "id"', "n = 10000")
    (planned,) = dpc.Study.open(written(cluster.replace('["age"]', "[]"), head)).plan().questions
    assert planned.state == TO_ASK and "40 clusters" in planned.forecast
    rng, named = np.random.default_rng(1), np.array(["no", "yes"])
    village, sick = rng.permutation(np.arange(10_000) % 50), rng.random(10_000) < 0.3
    smokes = (rng.random(50) < 0.5)[village]
    columns = {"village": village, "age": 40, "smoker": named[smokes.astype(int)], "sick": named[sick.astype(int)]}
    pd.DataFrame(columns).to_csv("study.csv", index=False)
    (one,) = dpc.Study.open(study).run(new_ledger=True).questions
    assert any("village" in line and f"{one.answer.clusters:.0f}" in line for line in one.conclusions)
    with dpc.Ledger.open("study.ledger", read_only=True) as ledger:
        assert json.loads(ledger.entries()[0].detail)["cluster"] == "village"


def test_a_study_with_weights_and_few_rows_a_person_answers_as_python_does(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    rng, named = np.random.default_rng(1), np.array(["no", "yes"])
    smokes, weight = rng.random(6_000) < 0.5, rng.choice([0.5, 4.0], 6_000)
    sick = named[(rng.random(6_000) < 0.2 + 0.3 * smokes * (weight > 1)).astype(int)]
    columns = {"id": np.arange(6_000) // 3, "w": weight, "age": 40, "smoker": named[smokes.astype(int)], "sick": sick}
    pd.DataFrame(columns).to_csv("study.csv", index=False)
    more = 'person = "id"\nmax_rows_per_person = 2\nweight = { column = "w", largest = 4 }'
    size = SIZE.replace('where = "age >= 30"\n', "")
    head = HEAD.replace('person = "id"', more)
    for planned in (head, head.replace("[columns.age]", "n = 2000\n[columns.age]", 1)):
        assert dpc.Study.open(written(size.replace('["age"]', "[]"), planned)).plan().questions[0].state == TO_ASK
    study = dpc.Study.open(written(size.replace('["age"]', "[]"), head))
    (one,) = study.run(new_ledger=True).questions
    assert abs(one.answer.estimate - 0.3 * 8 / 9) < 5 * one.answer.standard_error < 0.25
    with dpc.Ledger.open("study.ledger", read_only=True) as ledger:
        detail = json.loads(ledger.entries()[0].detail)
    assert (detail["weight"], detail["max_rows_per_person"], detail["person"]) == (["w", 4.0], 2, "id")
    assert study.report().is_file() and "the largest weight" in one.answer.guarantee.public


def test_a_study_of_a_panel_names_its_treated_units_by_a_rule_and_asks_a_placebo_in_time(tmp_path: Path) -> None:
    made = dpc.simulate.factor_panel(300, seed=1)
    rows = [f"{unit},{time},{value}" for unit, one in enumerate(np.vstack([made.target, made.donors]))
            for time, value in enumerate(one)]  # fmt: skip
    (tmp_path / "p.csv").write_text("\n".join(["place,time,outcome", *rows]))
    head = (
        'title = "Places"\ndata = "p.csv"\nledger = "p.ledger"\nbudget = { epsilon = 4.0 }\n[panel]\nunit = "place"\n'
        'time = "time"\noutcome = "outcome"\ntarget = 0\nstart = 10\nbounds = { lower = -1.0, upper = 1.0 }\n'
        'treated = "place <= 9"\n'
    )
    (tmp_path / "p.toml").write_text(head + question("early", "synthetic_control", epsilon=4.0, start=8))
    study = dpc.Study.open(tmp_path / "p.toml")
    dpc.Ledger.create(tmp_path / "p.ledger", budget=dpc.PureDP(4), unit="place").close()
    assert study.plan().questions[0].state == TO_ASK
    answer = study.run().questions[0].answer
    assert (answer.n, answer.times) == (291, (8, 9)) and "a placebo in time" in answer.details()


def test_only_the_treatment_that_was_randomised_is_called_a_cause(study: Path) -> None:
    both = "".join(question(f"of {one}", "effect", treatment=one, outcome="age", adjust=[], epsilon=0.5)
                   for one in ("smoker", "sick"))  # fmt: skip
    design = '[design]\ntype = "randomised"\n'
    with pytest.raises(ParameterError):
        dpc.Study.open(written(design + both))
    file = dpc.Study.open(written(design + 'treatment = "smoker"\n' + both)).file
    wording = Wording.of(file, None)
    assert [wording.is_causal(SimpleNamespace(treatment=one)) for one in ("smoker", "sick")] == [True, False]
    assert wording.question(file.question[0]) != wording.question(file.question[1]).replace("sick", "smoker")
