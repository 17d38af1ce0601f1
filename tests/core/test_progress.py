"""Progress is for a person at a terminal: shown on standard error, and not at all elsewhere."""

import io
import sys

import numpy as np
import pytest

from dpcausal.core.progress import is_terminal, progress
from tests.direction.neighbours import ask
from tests.direction.test_many import all_of, table


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_shown_each_step(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    r = all_of(table())
    text = shown.getvalue()
    assert f"{len(r.directions)}/{len(r.directions)}" in text and "c, d: lsnm" in text
    assert capsys.readouterr().out == ""


def test_a_terminal_is_told_how_far_the_blocks_are(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.progress import Progress

    shares: list[float] = []
    monkeypatch.setattr(Progress, "update", lambda self, task, **found: shares.append(found["completed"]))
    monkeypatch.setattr(sys, "stderr", Terminal())
    ask(np.random.default_rng(1).uniform(-1, 1, (200, 2)), method="verdict", blocks=4)
    assert shares == [0.25, 0.5, 0.75, 1.0]
    shares.clear()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    ask(np.random.default_rng(1).uniform(-1, 1, (200, 2)), method="verdict", blocks=4)
    assert not shares


def test_nothing_is_written_where_nobody_looks(capfd: pytest.CaptureFixture[str]) -> None:
    all_of(table())
    assert capfd.readouterr() == ("", "")


def test_a_name_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    with progress(1, "[red]x[/]") as step:
        step("[bold]y[/bold]")
    assert "[bold]y[/bold]" in shown.getvalue()


def test_without_rich_or_without_a_stream_it_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with progress(1, "x") as step:
        step("y")
    assert shown.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", None)
    assert not is_terminal()
