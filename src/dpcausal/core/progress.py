"""A line of progress for a person at a terminal; nothing is written anywhere else."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_within: ContextVar[Callable[[float], None] | None] = ContextVar("within", default=None)


def report_share(share: float) -> None:
    within = _within.get()
    if within is not None:
        within(share)


def while_it_works(callback: Callable[..., object]) -> Callable[..., None]:
    """Return a function that is silent from its first failure on: an answer that is paid for is not lost for a word."""
    works = True

    def telling(*arguments: Any, **named: Any) -> None:
        nonlocal works
        try:
            if works:
                callback(*arguments, **named)
        except Exception:
            works = False

    return telling


@contextmanager
def progress(total: int, title: str) -> Iterator[Callable[[str], None]]:
    """Give a function that is called at each step by a public name, and show the steps where standard error is a
    terminal."""
    bar: list[Any] = []
    if is_terminal():
        while_it_works(lambda: bar.append(_started()))()
    if not bar:
        yield lambda name: None
        return
    progress_bar, done = bar[0], 0
    update = while_it_works(progress_bar.update)
    from rich.markup import escape

    task = progress_bar.add_task(escape(title), total=total)

    def step(name: str) -> None:
        nonlocal done
        done += 1
        update(task, description=escape(name), completed=done)

    token = _within.set(lambda share: update(task, completed=done + share))
    try:
        yield step
    finally:
        _within.reset(token)
        while_it_works(progress_bar.stop)()


def _started() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=Console(stderr=True), transient=True,
    )  # fmt: skip
    bar.start()
    return bar


def is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()
