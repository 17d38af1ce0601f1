"""A line of progress for a person at a terminal; nothing is written anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_within: ContextVar[Callable[[float], None] | None] = ContextVar("within", default=None)


def told(share: float) -> None:
    """Say what share of the step that runs is done: of blocks, by their public number."""
    within = _within.get()
    if within is not None:
        within(share)


@contextmanager
def progress(total: int, title: str) -> Iterator[Callable[[str], None]]:
    """Give a function that is told each step by a public name, and show the steps where standard error is a terminal.
    """
    if not is_terminal():
        yield _silent
        return
    try:
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        yield _silent
        return
    shown = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=Console(stderr=True), transient=True,
    )  # fmt: skip
    with shown:
        task, done = shown.add_task(escape(title), total=total), 0

        def step(name: str) -> None:
            nonlocal done
            done += 1
            shown.update(task, description=escape(name), completed=done)

        token = _within.set(lambda share: shown.update(task, completed=done + share))
        try:
            yield step
        finally:
            _within.reset(token)


def is_terminal() -> bool:
    """Return whether somebody may be looking at standard error."""
    return sys.stderr is not None and sys.stderr.isatty()


def _silent(name: str) -> None:
    pass
