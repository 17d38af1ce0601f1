"""The command: the same names as the library's functions."""

from __future__ import annotations

import io
import sys

from dpcausal.cli import direction as direction
from dpcausal.cli import discovery as discovery
from dpcausal.cli import independence as independence
from dpcausal.cli import ledger as ledger
from dpcausal.cli import start as start
from dpcausal.cli import synthetic_control as synthetic_control
from dpcausal.cli.shared import app as app


def main() -> None:
    """Run the command; a name that the terminal cannot write must not fail after the spend."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app()
