"""What was paid for is printed, or stands in a file that the command names: never lost without a word."""

import json
import os
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess
from unittest import mock

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.data.toml_text import CONTROL
from tests import factories
from tests.commands import command
from tests.processes import called
from tests.study.made import question, write
from tests.voices import together

LINKED = "".join(question(f"q{k}", "ci_test", x="a", y="b", given=[], alpha=k / 100, epsilon=0.5) for k in (1, 2))
COMMAND = [sys.executable, "-m", "dpcausal.cli"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, LINKED, n=600)
    (tmp_path / "schema.toml").write_text("[a]\nlevels = [0, 1]\n[b]\nlevels = [0, 1]\n")
    dpc.Ledger.create(tmp_path / "l", budget=dpc.PureDP(9)).close()
    return tmp_path


PAID = ("--schema", "schema.toml", "--epsilon", "0.5", "--ledger", "l")
ASKED, GRAPH = ("ci-test", "d.csv", "a", "b", *PAID), ("discover", "d.csv", *PAID)


def to_full_disk(folder: Path, *words: str) -> CompletedProcess[str]:
    """Run a command whose standard output takes nothing."""
    done = called(folder, *words, stdout="/dev/full")
    assert done.returncode == 2 and "Traceback" not in done.stderr and "Exception" not in done.stderr, words
    return done


def test_an_answer_that_cannot_be_printed_stands_in_a_file(folder: Path) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    unread = subprocess.run([*COMMAND, *ASKED], stdout=theirs, stderr=subprocess.PIPE, text=True)
    os.close(theirs)
    for done in (unread, to_full_disk(folder, *GRAPH, "--format", "dot")):
        assert done.returncode == 2 and "Traceback" not in done.stderr and "Exception" not in done.stderr
        (path,) = (path for path in folder.glob("l.answer-*.json") if path.name in done.stderr)
        assert json.loads(path.read_text())["guarantee"]["loss"]["epsilon"] == 0.5
    for words in (("ledger", "show", "l"), ("schema",)):  # short, and longer than what is held back until the end
        to_full_disk(folder, *words)
    assert len(dpc.Ledger.open("l").entries()) == len(list(folder.glob("l.answer-*.json"))) == 2


@pytest.mark.parametrize("words", [ASKED, (*GRAPH, "--format", "dot")], ids=["ci-test", "discover"])
def test_an_answer_that_the_ledger_stores_is_said_to_be_there_and_makes_no_file(
    words: tuple[str, ...], folder: Path
) -> None:
    """Seen to fail: "paid for and lost" for the second of two such calls, and not a word from discover."""
    said = [to_full_disk(folder, *words, "--name", "t").stderr for _ in range(2)]
    assert said[0] == said[1] and str(folder / "l") in said[0] and not list(folder.glob("l.answer-*"))
    assert command(*words, "--name", "t").stdout
    assert len(dpc.Ledger.open("l").entries()) == 1


def test_a_graph_whose_support_is_interrupted_stands_in_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dpc.Discovery, "with_support", mock.Mock(side_effect=KeyboardInterrupt))
    done = command(*GRAPH, "--redraws", "9")
    (path,) = folder.glob("l.answer-*.json")
    assert done.exit_code != 0 and path.name in done.stderr


def test_a_method_that_releases_no_numbers_is_shown_before_its_file_is_refused(folder: Path) -> None:
    method = ("--method", "papers.SvtPc", "--constants", "corrected", "--missing", "impute")
    done = command(*GRAPH, *method, "--save-release", "r.json")
    assert done.exit_code == 2 and done.stdout and not (folder / "r.json").exists()


def test_a_report_that_is_written_is_said_to_be_there(folder: Path) -> None:
    dpc.Study.open("s.toml").run(new_ledger=True)
    done = to_full_disk(folder, "report", "s.toml")
    assert str(folder / "report.html") in done.stderr and (folder / "report.html").exists()


@pytest.mark.usefixtures("folder")
def test_where_nothing_can_be_printed_nothing_is_spent() -> None:
    words = " ".join([*COMMAND, *ASKED])
    done = subprocess.run(["sh", "-c", f"{words} >&-"], stderr=subprocess.PIPE)
    assert done.returncode == 2 and b"Traceback" not in done.stderr
    assert not dpc.Ledger.open("l").entries()


@pytest.mark.usefixtures("folder")
def test_a_run_whose_progress_nobody_reads_goes_on() -> None:
    with open("/dev/full", "w") as full:
        words = [*COMMAND, "run", "s.toml", "--partial", "--new-ledger"]
        done = subprocess.run(words, stdout=full, stderr=full)
    assert done.returncode == 2
    assert dpc.Study.open("s.toml").plan(accuracy=False).done


@pytest.mark.usefixtures("folder")
def test_two_runs_at_once_pay_once_and_both_end_well() -> None:
    done: list[bool] = []
    together(*[lambda: done.append(dpc.Study.open("s.toml").run(new_ledger=True).done)] * 3)
    assert done == [True] * 3 and len(dpc.Ledger.open("s.ledger").entries()) == 2


def test_a_second_study_of_a_folder_has_a_report_of_its_own(folder: Path) -> None:
    text = (folder / "s.toml").read_text()
    (folder / "second.toml").write_text(text.replace("s.ledger", "second.ledger"))
    for name in ("s.toml", "second.toml"):
        for words in (["run", name, "--new-ledger"], ["report", name], ["report", name]):
            done = command(*words)
            assert done.exit_code == 0, done.output
    assert (folder / "report.html").read_text() != (folder / "second.report.html").read_text()


HOSTILE = "a\x1b[31m\x9b2J\u202e"


def printed(*words: str) -> str:
    """Return what a command prints, which moves no terminal."""
    done = command(*words)
    assert done.output and not CONTROL.search(done.output), (words, done.output)
    return done.stdout


def test_what_others_wrote_in_a_ledger_moves_no_terminal_and_json_reads_it_back(tmp_path: Path) -> None:
    path = str(tmp_path / "l")
    with dpc.Ledger.create(path, budget=dpc.PureDP(1), unit="state") as ledger:
        unit = {"unit": dpc.Unit.DONOR, "unit_column": "state"}
        ledger.declare({"targets of panels": [HOSTILE], "values": {HOSTILE: 1.5}}, **unit)
        ledger.charge(dpc.PureDP(0.5), task="t", detail={"targets": [HOSTILE], "table": HOSTILE}, **unit)
    assert "targets of panels" in printed("ledger", "show", path)
    shown = json.loads(printed("ledger", "show", path, "--json"))
    assert shown["declared"] == {"targets of panels": [HOSTILE], "values": {HOSTILE: 1.5}}
    (line,) = printed("ledger", "show", path, "--jsonl").splitlines()
    assert json.loads(line) == shown["entries"][0] and shown["entries"][0]["detail"]["table"] == HOSTILE
    printed("ledger", "verify", path)


def test_names_in_data_releases_and_options_move_no_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text("[v]\nlower = 0\nupper = 110\n")
    Path("d.csv").write_text("v\n" + "\n".join(HOSTILE if k % 9 == 0 else str(k % 80) for k in range(900)))
    for form in ((), ("--json",)):
        printed("check", "d.csv", "--schema", "s.toml", *form)
        printed("check", HOSTILE, "--schema", "s.toml", *form)
    frame = {name: np.tile([0, 1, 1, 0], 200) for name in "xy"}
    table = factories.table(frame, dict.fromkeys("xy", dpc.Levels([0, 1])), dpc.PureDP(1))
    text = dpc.discover(table, loss=dpc.PureDP(1), method="table").release.to_json()
    Path("r.json").write_text(text.replace('"x"', json.dumps(HOSTILE)), encoding="utf-8")
    for form in ((), ("--json",)):
        printed("ask", "r.json", "discover", *form)
        printed("plan", "ci-test", "--n", "1000", "--epsilon", "1", "--method", HOSTILE, *form)
    printed("plan", "effect", "--n", "1000", "--epsilon", "1", "--method", "stratified")
