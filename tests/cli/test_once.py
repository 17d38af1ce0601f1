"""Options given twice: a list grows, a single value is refused before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from dpcausal.cli import app

COLLECTED = {
    "ci-test": {"--given"},
    "discover": {"--columns", "--forbid", "--require"},
    "effect": {"--adjust"},
    "ask": {"--adjust", "--given", "--regressors"},
    "run": {"--refresh"}, "did": {"--never"},
    "direction-all": {"--pair", "--scores", "--shares"},
}
"""The options that hold a list; every other holds one value."""


def walk(group: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Walk over all commands, with the words that call them."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from walk(command, (*above, name))
        else:
            yield (*above, name), command.made([]) if hasattr(command, "made") else command  # it comes late


PROGRAM = typer.main.get_command(app)
COMMANDS = dict(walk(PROGRAM))
OPTIONS = {
    f"{' '.join(words)} {option.opts[0]}": (words, option)
    for words, command in COMMANDS.items()
    for option in command.params
    if option.param_type_name == "option"
}


def typed(parameter: Any, flag: str) -> list[str]:
    """Return a parameter as it is typed; a 3 can be a number, a name and a path."""
    if parameter.param_type_name == "argument":
        return ["3"]
    return [flag] if parameter.is_flag else [flag, "3"]


@pytest.mark.parametrize("called", OPTIONS)
def test_an_option_given_twice_is_a_list_or_is_refused(
    called: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words, option = OPTIONS[called]
    others = [one for one in COMMANDS[words].params if one.required and one is not option]
    needed = [word for one in others for word in typed(one, one.opts[0])]
    for last in (*option.opts, *option.secondary_opts):
        twice = [*typed(option, option.opts[0]), *typed(option, last)]
        refused = CliRunner().invoke(app, [*words, *needed, *twice])
        assert refused.exit_code == 2 and refused.stdout == ""  # a list: since there is no file called 3
        told = option.opts[0] in refused.stderr and "2 times" in refused.stderr
        assert told != (option.opts[0] in COLLECTED.get(words[-1], set())), refused.stderr
    assert not list(tmp_path.iterdir())


def test_the_walk_meets_every_command_and_no_other_option_lies_above_them() -> None:
    assert {" ".join(words) for words in COMMANDS} == {
        "direction", "direction-all", "ci-test", "discontinuity", "discover", "effect", "did", "synthetic-control",
        "demo", "check", "explain",
        "ask", "init", "plan", "run", "report", "schema", "ledger create", "ledger show", "ledger verify",
    }  # fmt: skip
    assert {"ci-test --epsilon", "ledger create --rho", "demo --json", "synthetic-control --lower"} <= set(OPTIONS)
    assert [option.name for option in PROGRAM.params] == ["version", "witness"]
    for name, command in PROGRAM.commands.items():  # type: ignore[attr-defined]
        assert not hasattr(command, "commands") or not command.params, name


def test_help_and_version_may_be_asked_twice() -> None:
    for words in (["--version", "--version"], ["direction", "--help", "--help"]):
        assert CliRunner().invoke(app, words).exit_code == 0
