"""The command, called as a shell calls it, but in this process."""

import os

from typer.testing import CliRunner, Result

from dpcausal.cli import app


def command(*words: object, typed: str | None = None) -> Result:
    """Run ``dpcausal``; return its exit code and what it printed."""
    return CliRunner().invoke(app, [str(word) for word in words], typed, dict(os.environ))
