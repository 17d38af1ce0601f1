"""The table of exit codes in the documentation is that of the command: each code of it, and no other."""

import re
from collections.abc import Callable
from pathlib import Path
from shutil import copy
from unittest import mock

import pytest

import dpcausal as dpc
from dpcausal.cli import shared
from dpcausal.errors import LedgerError
from dpcausal.privacy.ledger import Ledger
from tests.commands import command
from tests.study.made import write

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "troubleshooting.md"
CALL = ("ci-test", "d.csv", "a", "b", "--schema", "schema.toml", "--ledger", "l")
LINKED = '[[question]]\nname="q"\ntask="ci_test"\nx="a"\ny="b"\ngiven=[]\nepsilon={}\n'
IMPOSSIBLE = LINKED.format(0.5).replace('"q"', '"odd"').replace('x="a"', 'x="z"')


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, LINKED.format(0.5), n=600)
    Path("schema.toml").write_text("[a]\nlevels = [0, 1]\n[b]\nlevels = [0, 1]\n")
    dpc.Ledger.create("l", budget=dpc.PureDP(1)).close()


def documented() -> set[int]:
    section = PAGE.read_text().partition("## Exit codes")[2].partition("\n## ")[0]
    return {int(code) for code in re.findall(r"(?m)^\| (\d+) \|", section)}


def partly(question: str) -> int:
    write(Path(), LINKED.format(0.5) + question, n=600)
    code = command("run", "s.toml", "--new-ledger", "--partial").exit_code
    assert len(Ledger.open("s.ledger").entries()) == 1
    return code


def check_of(rows: str) -> int:
    Path("c.csv").write_text(f"a,b\n{rows}")
    return command("check", "c.csv", "--schema", "schema.toml").exit_code


def other_data() -> int:
    assert command("run", "s.toml", "--new-ledger").exit_code == 0
    Path("d.csv").write_text(Path("d.csv").read_text().replace("\n0,", "\n1,", 1))
    return command("run", "s.toml").exit_code


def ledger_after(change: Callable[[], object]) -> int:
    assert command(*CALL, "--epsilon", "0.1").exit_code == 0
    change()
    return command("ledger", "show", "l").exit_code


def restored() -> int:
    copy("l", "before")
    return ledger_after(lambda: copy("before", "l"))


def unsaved(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(Ledger, "store", mock.Mock(side_effect=LedgerError("the disk is full")))
    return command(*CALL, "--epsilon", "0.1", "--name", "t").exit_code


def interrupted(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(dpc.Study, "open", mock.Mock(side_effect=KeyboardInterrupt))
    return command("plan", "s.toml").exit_code


CASES: dict[str, tuple[int, Callable[..., int]]] = {
    "an answer": (0, lambda _: command(*CALL, "--epsilon", "0.1").exit_code),
    "a run": (0, lambda _: command("run", "s.toml", "--new-ledger").exit_code),
    "data without a fault": (0, lambda _: check_of("0,1\n1,0\n" * 50)),
    "suspicious data": (1, lambda _: check_of("0,1\n7,0\n" * 50)),
    "init is stopped": (1, lambda _: command("init", "d.csv", "--out", "n.toml", typed="T\n").exit_code),
    "no such command": (2, lambda _: command("effects").exit_code),
    "no such column": (2, lambda _: command(*CALL[:3], "z", *CALL[4:], "--epsilon", "0.1").exit_code),
    "no such file": (2, lambda _: command("plan", "none.toml").exit_code),
    "a ledger that never was": (2, lambda _: command("ledger", "show", "none").exit_code),
    "a question that is impossible": (2, lambda _: partly(IMPOSSIBLE)),
    "results of other data": (2, lambda _: other_data()),
    "a call beyond the budget": (3, lambda _: command(*CALL, "--epsilon", "1.1").exit_code),
    "a question beyond the budget": (3, lambda _: partly(LINKED.format(15).replace('"q"', '"big"'))),
    "a damaged ledger": (4, lambda _: ledger_after(lambda: Path("l").write_text(Path("l").read_text()[1:]))),
    "an older ledger": (4, lambda _: restored()),
    "a ledger that is gone": (4, lambda _: ledger_after(lambda: Path("l").unlink())),
    "a result that is not saved": (4, unsaved),
    "Ctrl-C": (130, interrupted),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_command_ends_with_the_code_of_the_table(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    code, call = CASES[case]
    assert call(monkeypatch) == code


def test_the_table_has_every_code_and_no_other() -> None:
    named = {value for name, value in vars(shared).items() if name.isupper() and type(value) is int}
    assert documented() == {code for code, _ in CASES.values()} >= named == {2, 3, 4}
