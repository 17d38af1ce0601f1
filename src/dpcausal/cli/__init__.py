"""The command: the same names as the library's functions.

Importing this needs no optional package, so that the command can say by itself which one is missing.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from dpcausal.errors import MissingDependencyError

if TYPE_CHECKING:
    from typer import Typer

    from dpcausal.cli.program import app as app


def main() -> None:
    """Run the command; a name that the terminal cannot write must not fail after the spend."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        program = _program()
    except MissingDependencyError as error:
        print(f"dpcausal: {error}", file=sys.stderr)
        sys.exit(2)
    code: int | str | None = 0
    try:
        program()
    except SystemExit as ended:
        code = ended.code
    sys.exit(code if flushed() else 2)


def flushed() -> bool:
    """Return whether all that was printed left; if not, say so, and print nothing more."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
        return True
    except OSError as error:
        with suppress(OSError):  # what lies in the buffer would fail once more when Python ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        with suppress(OSError):
            print(f"dpcausal: standard output could not be written ({error.strerror})", file=sys.stderr, flush=True)
        return False


def _program() -> Typer:
    try:
        import rich as rich  # needed after a spend, to show the result: too late to miss it
        import typer as typer
    except ImportError as error:
        raise MissingDependencyError(error.name or "typer", "cli") from None
    from dpcausal.cli import ask as ask
    from dpcausal.cli import init as init  # each registers its commands
    from dpcausal.cli import ledger as ledger
    from dpcausal.cli import study as study
    from dpcausal.cli import tasks as tasks
    from dpcausal.cli.program import app

    return app


def __getattr__(name: str) -> object:
    if name == "app":
        return _program()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
