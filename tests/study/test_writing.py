"""A report replaces its own study's older report and nothing else, whole or not at all; a study holds its rows back."""

import copy
import errno
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import HiddenAnswerError, LedgerError, ParameterError
from dpcausal.study.report.write_report import mark_of
from dpcausal.study.writing import replace_files, write_new
from tests.commands import command
from tests.study.made import write

LINKED = '[[question]]\nname="linked"\ntask="ci_test"\nx="a"\ny="b"\ngiven=[]\nepsilon=0.5\n'


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


@pytest.fixture
def study(tmp_path: Path) -> dpc.Study:
    found = dpc.Study.open(write(tmp_path, LINKED, n=600))
    found.run(new_ledger=True)
    return found


def test_a_report_replaces_its_own_study_s_and_no_other_file(study: dpc.Study) -> None:
    folder = study.path.parent
    study.report()
    study.report()
    other = folder / "other.toml"
    other.write_text(study.path.read_text().replace("s.ledger", "other.ledger"))
    second = dpc.Study.open(other)
    second.run(new_ledger=True)
    (folder / "notes.md").write_text("mine")
    (folder / "link.html").symlink_to(folder / "notes.md")
    (folder / "taken.html").mkdir()
    (folder / "half.md").mkdir()
    (folder / "device.html").symlink_to("/dev/full")
    before = contents(folder)
    for name in ("report.html", "notes.html", "link.html", "taken.html", "half.html", "device.html"):
        with pytest.raises(ParameterError):
            second.report(name)
        assert contents(folder) == before
    assert command("report", str(other), "--out", str(folder / "report.html")).exit_code == 2
    assert second.report("second.html").exists()
    for wrong in ("nowhere/report.html", "report.pdf"):
        with pytest.raises(ParameterError):
            study.report(wrong)


def test_a_report_of_fewer_spends_replaces_none_of_more(study: dpc.Study) -> None:
    old = study.ledger_path.read_bytes()
    study.run(new_ledger=True, refresh=["linked"])
    study.report()
    before = contents(study.path.parent)
    study.ledger_path.write_bytes(old)
    with pytest.raises(LedgerError):
        study.report()
    assert {**before, "s.ledger": old} == contents(study.path.parent)


def test_a_lost_ledger_is_told_by_plan_and_refused_by_report(study: dpc.Study) -> None:
    study.report()
    assert study.plan(accuracy=False).missing_ledger == ""
    study.ledger_path.rename(study.path.parent / "elsewhere")
    before = contents(study.path.parent)
    with pytest.raises(LedgerError):
        study.report()
    assert contents(study.path.parent) == before
    assert study.plan(accuracy=False).missing_ledger == "s.ledger"
    assert command("report", str(study.path)).exit_code == 2


def test_on_a_full_disk_a_report_stays_whole(study: dpc.Study, monkeypatch: pytest.MonkeyPatch) -> None:
    study.report()
    before, calls = contents(study.path.parent), []

    def full(_: int) -> None:
        calls.append(1)
        if len(calls) % 3 == 0:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ParameterError):
        study.report()
    assert contents(study.path.parent) == before and len(calls) == 3
    calls[:] = [1, 1]
    with pytest.raises(ParameterError):
        write_new(study.path.parent / "new.toml", "x")
    assert contents(study.path.parent) == before


def test_a_file_that_is_there_is_never_made_anew(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    for place in ("a", "nowhere/a", "a/b", "b" * 300, "a\0b"):
        with pytest.raises(ParameterError):
            write_new(tmp_path / place, "x")
    with pytest.raises(ParameterError):
        replace_files({tmp_path / "c": "1", tmp_path / "nowhere" / "d": "2"})
    assert contents(tmp_path) == {"a": b"mine"}


def test_what_stands_in_a_title_is_no_mark_of_a_report(study: dpc.Study) -> None:
    mark = mark_of(study._report_inputs())
    other = study.path.parent / "other.toml"
    other.write_text(study.path.read_text().replace("A study", mark).replace("s.ledger", "other.ledger"))
    second = dpc.Study.open(other)
    second.run(new_ledger=True)
    second.report("second.html")
    with pytest.raises(ParameterError):
        study.report("second.html")


def test_a_study_of_a_frame_cannot_be_pickled_and_prints_no_row(tmp_path: Path) -> None:
    secret = 4711.25
    path = tmp_path / "s.toml"
    path.write_text('title="t"\ndata="d.csv"\nledger="s.ledger"\nbudget={epsilon=1.0}\ncolumns={x={lower=0,upper=9}}\n')
    study = dpc.Study.open(path, data={"x": np.full(50, secret)})
    for way in (pickle.dumps, lambda one: pickle.dumps({"deep": [one]}), lambda one: one.__reduce__()):
        with pytest.raises(HiddenAnswerError):
            way(study)
    assert copy.deepcopy(study) is study and "4711" not in repr(study) + str(study) + repr(study.plan())


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_byte_order_mark_before_study_schema_or_data_is_no_part_of_them(tmp_path: Path, mark: str) -> None:
    path = write(tmp_path, LINKED, n=600)
    for file in (path, tmp_path / "d.csv"):
        file.write_text(mark + file.read_text(), encoding="utf-8")
    assert dpc.Study.open(path).run(new_ledger=True).done
    schema = tmp_path / "schema.toml"
    schema.write_text(mark + "[a]\nlevels = [0, 1]\n", encoding="utf-8")
    assert dpc.Schema.from_toml(schema).names == ("a",)


DEEP = {
    "lists": "deep = " + "[" * 20000 + "]" * 20000, "keys": ".".join(["a"] * 20000) + " = 1",
    "tables": "[" + ".".join(["disclosure"] + ["a"] * 5000) + "]", "inline": "x = " + "{a=" * 3000 + "1" + "}" * 3000,
    "control characters": "x = '\\u001b'".replace("'", '"'), "in a key": '"\\u009b31m" = 1', "date": "x = 2020-99-99",
    "number": "n = " + "9" * 5000, "quoted keys": "x.y = " + "[" * 21 + "]" * 21,
}  # fmt: skip


@pytest.mark.parametrize("more", DEEP.values(), ids=DEEP)
def test_what_no_study_needs_is_refused_in_words(tmp_path: Path, more: str) -> None:
    head = write(tmp_path, "", n=10).read_text().partition("[columns.a]")[0]
    path = tmp_path / "s.toml"
    path.write_text(f"{head}{more}\n")
    with pytest.raises(ParameterError) as refused:
        dpc.Study.open(path)
    assert str(refused.value).isprintable()
    with pytest.raises(dpc.errors.SchemaError):
        dpc.Schema.from_toml(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [("ledger =", "n = 99999999999999999999999\nledger ="), ("given=[]", 'given=[]\nmethod={name=[1]}'),
     ("given=[]", "given={a=1}"), ("epsilon=0.5", "epsilon=1" + "0" * 400), ('x="a"', "x=2020-01-01"),
     ('x="a"', 'x=[["a"]]'), ('"s.ledger"', '"s.toml"'), ('"s.ledger"', '"d.csv"'), ('"s.ledger"', '"."'),
     ('"s.ledger"', '"s\\u0000.ledger"'), ('"d.csv"', '"."'), ("epsilon=0.5", "epsilon=1e400")],
)  # fmt: skip
def test_a_hostile_word_of_a_study_is_refused_in_words(tmp_path: Path, old: str, new: str) -> None:
    path = write(tmp_path, LINKED, n=300)
    path.write_text(path.read_text().replace(old, new))
    before = contents(tmp_path)
    for words in (["plan", str(path), "--no-accuracy"], ["run", str(path)], ["report", str(path)]):
        found = command(*words)
        assert found.exit_code in (2, 3, 4) or words[0] != "run", found.output
        assert found.exception is None or isinstance(found.exception, SystemExit)
    after = contents(tmp_path)
    assert all(after[name] == text for name, text in before.items())


@pytest.mark.parametrize(
    ("costs", "spent"),
    [(("epsilon=0.5", "epsilon=1\ndelta=1e-7"), "ε = 1.5, δ = 1e-07"), (("rho=0.01", "rho=0.02"), "ρ = 0.03"),
     ((), "ε = 0")],
)  # fmt: skip
def test_a_study_states_the_sum_of_its_costs_with_delta_or_in_rho(
    costs: tuple[str, ...], spent: str, tmp_path: Path
) -> None:
    tasks = 'task="effect"\ntreatment="a"\noutcome="b"\nadjust=[]', 'task="moments"\ncolumns=["u","v"]'
    asked = "".join(f'[[question]]\nname="q{cost[:3]}{k}"\n{tasks[k]}\n{cost}\n' for k, cost in enumerate(costs))
    study = dpc.Study.open(write(tmp_path, asked, n=2000))
    assert study.run(new_ledger=True).spent == spent == study.plan(accuracy=False).spent
