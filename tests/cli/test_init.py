"""``init``: a study file from answers about each column; no value of the data is shown, and nothing typed is lost."""

import csv
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import Result

import dpcausal as dpc
from dpcausal.data.files.opening import file_source
from dpcausal.data.toml_text import CONTROL
from tests.commands import command
from tests.refusals import rule_of_command

PEOPLE, BUDGET = "id,age,sick\n1,30,no\n", ("1", "1e-6")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def init(*words: str, typed: tuple[str, ...] | list[str] = ()) -> Result:
    return command("init", *words, typed="".join(f"{one}\n" for one in typed))


def of_file(text: str, *typed: str, options: tuple[str, ...] = ()) -> Result:
    """Answer the questions about a file of this text; the study is ``s.toml``."""
    Path("d.csv").write_text(text)
    return init("d.csv", "--out", "s.toml", *options, typed=typed)


def written(done: Result) -> Any:
    assert done.exit_code == 0, done.output
    return dpc.Study.open("s.toml").file


def test_what_was_mistyped_is_asked_again_and_what_was_answered_is_kept() -> None:
    told = of_file(PEOPLE, "Title", "idd", "id", "0,5..99,5", "0..99")
    assert told.exit_code != 0 and "'idd'; did you mean 'id'?" in told.output
    file = dpc.Study.open("s.toml").file
    assert (file.title, file.person, list(file.columns)) == ("Title", "id", ["age"])
    assert file.columns["age"] == {"lower": 0, "upper": 99}


def test_init_goes_back_and_leaves_no_file_without_an_answer() -> None:
    assert of_file(PEOPLE).exit_code != 0 and not Path("s.toml").exists()
    columns = ("0..99", "years", "back", "0-110; cuts 18, 65", "age; years; form", "no/yes", "")
    file = written(of_file(PEOPLE, "Title", "id", *columns, *BUDGET, "1", "age", "back", "4", "no", "2", "age", "sick",
                           "", "", "yes"))  # fmt: skip
    assert file.columns["age"] == {"lower": 0, "upper": 110, "cuts": [18, 65], "label": "age", "unit": "years",
                                   "source": "form"}  # fmt: skip
    assert [one.task for one in file.question] == ["ci_test"] and file.columns["sick"] == {"levels": ["no", "yes"]}


def test_init_puts_no_before_yes_and_takes_only_yes_or_no_for_an_answer() -> None:
    effect = ("1", "drug", "bp", "maybe", "yes", "", "", "", "yes")
    file = written(of_file("drug,bp\nyes,120\n", "Title", "", "yes/no", "", "70..250", "", *BUDGET, *effect))
    assert file.columns["drug"]["levels"] == ["no", "yes"]
    assert file.design is not None and file.design.type == "randomised"


def understood(done: Result) -> dict[str, str]:
    """Return what init repeats at its end, by its first word."""
    lines = done.output.partition("\nWrote s.toml")[2].splitlines()
    return {line.split()[0]: line[14:] for line in lines if line[:1].isupper()}


def test_init_repeats_the_question_whom_it_protects_and_the_budget_as_the_file_has_them() -> None:
    asked = ("1", "drug", "bp", "yes", "site", "age", "0.5", "")
    columns = ("0..99", "age; years; form", "yes/no", "", "70 to 250", "", "a,b,c,d,e,f,g,h", "")
    done = of_file("id,age,drug,bp,site\n77341,61.5,yes,133.7,q\n", "Title", "id", *columns, "2", "1e-6", *asked)
    file, told = written(done), understood(done)
    (one,) = file.question
    assert told["Task"] == one.task == "effect"
    assert told["Treatment"].startswith("drug: yes is treated") and told["Outcome"] == "bp: 70 to 250"
    assert told["Adjusted"].startswith("site: a, b") and "h" not in told["Adjusted"].split("more")[0]
    assert told["By"] == "age: 0 to 99" and told["Design"] == "randomised within site"
    assert "(column id)" in told["Protected"]
    assert "ε = 2, δ = 1e-06" in told["Budget"] and f"ε = {one.epsilon:g}" in told["Budget"]
    assert "drug, bp, site" in told["To"] and "age" not in told["To"]
    assert not any(value in done.output for value in ("77341", "61.5", "133.7"))  # what the file holds


EFFECT = ("1", "drug", "sick", "", "age", "", "0.5")


@pytest.mark.parametrize(
    ("question", "delta"),
    [(("2", "age", "sick", "age", "0.5"), None), ((*EFFECT, "0"), None), ((*EFFECT, ""), 5e-7)],
)
def test_init_says_where_a_number_without_cuts_is_cut_unless_a_model_adjusts_for_it(
    question: tuple[str, ...], delta: float | None
) -> None:
    columns = ("0..100", "", "0, 1", "", "0, 1", "")
    done = of_file("age,drug,sick\n" + "1,0,0\n" * 900, "T", "", *columns, *BUDGET, *question, "")
    assert written(done) and ("25, 50, 75" in " ".join(done.output.split())) == (delta is None)
    (one,) = dpc.Study.open("s.toml").plan(accuracy=False).questions
    assert one.question.delta == delta
    assert one.question.task == "ci_test" or (one.method == "stratified") == (delta is None)


def test_init_without_a_question_says_so_and_what_it_leaves_to_fill_in_is_accepted_without_its_marks() -> None:
    done = of_file("age,drug\n1,0\n", "T", "", "0..100", "", "0, 1", "", *BUDGET, "4", "")
    told = understood(done)
    assert written(done).question == [] and "[[" not in told["Task"]
    assert told["Protected"] == "each row" and ";" not in told["Budget"]
    assert "No question yet" in command("plan", "s.toml").output
    head, marked, rest = Path("s.toml").read_text().partition("# [[question]]")
    filled = re.sub(r"(?m)^# (\[.*\]|\w+ = .*)$", lambda line: line[1].replace('""', '"a"'), marked + rest)
    Path("s.toml").write_text(head + filled)
    file = dpc.Study.open("s.toml").file
    assert len(file.question) == 1 and file.unfilled() == ["design.type"]


def test_a_column_without_a_name_is_left_out() -> None:
    file = written(of_file(",a\n" + "1,0\n" * 20, "T", "", "0..300", "0, 1", "", *BUDGET, "", ""))
    assert file.columns == {"a": {"levels": [0, 1]}}


def test_a_name_of_the_data_moves_no_terminal() -> None:
    done = of_file("a\x1b[31m,b\u202e\n0,1\n", "T", "", "", "", *BUDGET)
    assert done.exit_code == 2 and not CONTROL.search(done.output) and not Path("s.toml").exists()


@pytest.mark.parametrize(("words", "rule"), [
    (["d.csv"], "exists"), (["d.csv", "--out", "nowhere/new.toml"], "folder"),
    (["d.csv", "--out", "study.toml/x"], "folder"), (["--resume", "study.toml"], "resume"),
    (["d.csv", "--resume", "study.toml"], "choice"), ([], "choice"),
])  # fmt: skip
def test_init_replaces_no_file_and_resumes_only_what_was_stopped(words: list[str], rule: str) -> None:
    Path("d.csv").write_text(PEOPLE)
    Path("study.toml").write_text('title = "t"\n')
    refused = init(*words)
    assert refused.exit_code == 2 and rule_of_command(refused) == rule


HEADERS = {  # the first line of a CSV, and whether it is taken for a header
    "a,b,c": True, ",a,b": True, "a, b": True, "2nd,x1": True, "May,day 1": True, "Größe,µg": True,
    "Smith,47.5,HIV": False, "Smith,2020-01-01,HIV": False, "Smith,01.03.2024": False, "Smith,12 Mar 2020": False,
    "Smith,2020-01-01T10:00:00": False, "Smith,,HIV": False, "Smith,NA": False, "Smith,-1e5": False, "Smith,yes": False,
    "Smith,HIV,HIV": False, ",,": False,
    '"Smith, J.",HIV': True, '"Smith, J.","1,5"': False, "Smith,12 %": False, "Smith,+49 30": False,
}  # fmt: skip


@pytest.mark.parametrize("line", HEADERS)
def test_a_first_line_that_looks_like_a_record_is_never_shown(line: str) -> None:
    typed = ("T", *[""] * (1 + len(next(csv.reader([line])))), *BUDGET, "", "")
    done = of_file(f"{line}\n" * 21, *typed)
    assert (done.exit_code == 0) == HEADERS[line] == Path("s.toml").exists(), done.output
    if not HEADERS[line]:
        assert done.exit_code == 2 and "Smith" not in done.output and "HIV" not in done.output
    if not HEADERS[line] and len({*line.split(",")}) == len(line.split(",")) > 1:
        assert init("d.csv", "--out", "s.toml", "--header", typed=typed).exit_code == 0 and Path("s.toml").exists()


@pytest.mark.parametrize(
    ("separator", "decimal", "encoding"), [(";", ",", "cp1252"), ("\t", ".", "utf-8"), ("|", ".", "utf-16")]
)
def test_the_format_of_a_file_is_asked_back_written_and_then_used(separator: str, decimal: str, encoding: str) -> None:
    rows = [["Größe", "krank"], *([f"{170 + k % 30}{decimal}5", ("nein", "ja")[k % 2]] for k in range(400))]
    Path("d.csv").write_bytes("\n".join(separator.join(row) for row in rows).encode(encoding))
    answers = ("T", "", "150..210", "", "nein, ja", "", *BUDGET, "2", "Größe", "krank", "", "0.5", "")
    for out, form in (("a.toml", ["yes"]), ("b.toml", ["no", separator, decimal, "", "", encoding, ""])):
        done = init("d.csv", "--out", out, typed=[*form, *answers])
        assert done.exit_code == 0, done.output
        study = dpc.Study.open(out)
        assert [getattr(study.file.data, name) for name in ("separator", "decimal", "encoding")] == [
            separator, decimal, encoding]  # fmt: skip
        assert study.run(new_ledger=True).done and study.check().columns[0].substituted == 0
        assert file_source(study._source_file()).collect(["Größe"]).numbers("Größe").min() == 170.5


def test_stopped_questions_go_on_where_they_were_and_end_in_the_same_file() -> None:
    Path("d.csv").write_text("age;day;site\n1;02.01.2019;a\n")
    days = ["2019-01-01 to 2019-12-31; by month", "day-month-year", ""]
    answers = ["T", "", "0..110; missing 999", "label; years", *days, "a, b", "", *BUDGET, "2", "age", "site", "",
               "0.5", ""]  # fmt: skip
    whole = init("d.csv", "--out", "whole.toml", typed=["yes", *answers])
    assert whole.exit_code == 0 and "# " in Path("whole.toml").read_text(), whole.output
    for number, place in enumerate((1, 2, 4, 7, 9, 11, 16)):  # where a step begins among the answers
        name = f"part{number}.toml"
        stopped = init("d.csv", "--out", name, typed=["yes", *answers[:place]])
        assert stopped.exit_code == 1 and "--resume" in stopped.output
        rest = init("--resume", name, typed=answers[place:])
        assert rest.exit_code == 0, (place, rest.output)
        assert tomllib.loads(Path(name).read_text()) == tomllib.loads(Path("whole.toml").read_text()) | {
            "ledger": f"part{number}.ledger"}  # fmt: skip
    study = dpc.Study.open("whole.toml")
    assert study.file.data.dates == "day-month-year" and study.schema["day"].period == "month"


@pytest.mark.parametrize("data", ["visits", "visits/2024-*.parquet", "duckdb:///visits.db?table=people"])
def test_a_study_of_many_files_or_of_a_database_begins_in_another_folder_and_runs(data: str) -> None:
    rows = pa.table({"a": [0, 1] * 150, "b": ["no", "yes"] * 150})
    for name in ("visits", "studies"):
        Path(name).mkdir()
    for month in (1, 2):
        pyarrow.parquet.write_table(rows, f"visits/2024-{month}.parquet")
    with duckdb.connect("visits.db") as connection:
        connection.from_arrow(pa.concat_tables([rows, rows])).create("people")
    graph = ("3", "a, b", "0.5", "0", "")
    made = init(data, "--out", "studies/s.toml", typed=("Title", "", "0, 1", "", "no, yes", "", *BUDGET, *graph))
    assert made.exit_code == 0, made.output
    ran = command("run", "studies/s.toml", "--new-ledger", "--json")
    assert ran.exit_code == 0 and json.loads(ran.stdout)["n"] == 600, ran.output
    assert "NOT PRIVATE" in command("check", "studies/s.toml").output
