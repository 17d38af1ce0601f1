"""A ledger file that is only read: for an auditor who may not write it, or must leave it as it is.

The main file is read without locks and without its log (SQLite's ``immutable``), so nothing is written anywhere.
That shows all spends only if there is no log: one that lies beside the file may hold spends that the file does not,
and is refused.  So is a file that changed while it was read.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

from dpcausal.errors import LedgerDamagedError, LedgerError
from dpcausal.privacy.ledger_check import Verification, examine
from dpcausal.privacy.ledger_entry import Header, Row
from dpcausal.privacy.ledger_file import NO_FILE, check_pages, connect_immutable, damaged, read_header, translated
from dpcausal.privacy.ledger_store import SELECT, Store, is_open_here

_State = tuple[int, int, int, int]


class SnapshotStore(Store):
    """The rows of a ledger file as they were when it was opened; nothing can be added."""

    def __init__(self, path: Path, expected_head: str | None = None) -> None:
        self.path = path
        # SQLite follows links to the file, and looks for its log there.
        actual = Path(os.path.realpath(path))
        before = _state(path, actual)
        try:
            self.header, self._rows = _read(path, actual)
        except (sqlite3.Error, UnicodeError, OSError, LedgerDamagedError) as error:
            _unchanged(path, actual, before)  # a writer between two reads looks like damage
            if isinstance(error, LedgerDamagedError):
                raise
            raise translated(path, error) from error
        _unchanged(path, actual, before)
        found = examine(self.header, self._rows, recount=False, expected_head=expected_head)
        if not found.ok:
            raise damaged(path, found.problems[0])

    def append(self, following: Callable[[Row | None], Row]) -> Row:
        raise LedgerError(f"ledger {self.path}: it was opened to be read only; nothing can be spent from it")

    def last(self) -> Row | None:
        return self._rows[-1] if self._rows else None

    def rows(self) -> list[Row]:
        return list(self._rows)

    def verify(self) -> Verification:
        return examine(self.header, self._rows, recount=True)

    def close(self) -> None:
        """Nothing is held open."""


def _read(path: Path, actual: Path) -> tuple[Header, list[Row]]:
    connection = connect_immutable(actual)
    try:
        header = read_header(path, connection, immutable=True)
        check_pages(path, connection)
        return header, connection.execute(SELECT).fetchall()
    finally:
        connection.close()


def _state(path: Path, actual: Path) -> _State:
    """Return what changes with every write, having checked that the file stands for the whole ledger."""
    try:
        found = actual.stat()
        beside = [f"{actual}{ending}" for ending in ("-wal", "-journal")]
        logs = [name for name in beside if os.path.lexists(name) and os.stat(name).st_size]
    except OSError:
        raise LedgerError(f"ledger {path}: {NO_FILE}") from None
    if not stat.S_ISREG(found.st_mode):
        raise LedgerError(f"ledger {path}: not a file")
    if not os.access(actual, os.R_OK):
        raise LedgerError(f"ledger {path}: the file cannot be read")
    if is_open_here((found.st_dev, found.st_ino)):
        # Closing a second handle would drop the locks of the first: they belong to the process.
        raise LedgerError(f"ledger {path}: it is open in this process: ask that ledger, or close it")
    if logs:
        raise LedgerError(
            f"ledger {path}: {os.path.basename(logs[0])} lies beside it and may hold spends that the file does not: it "
            "is in use, or a crash left it; read it when its processes have ended, or open it where it can be written"
        )
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _unchanged(path: Path, actual: Path, before: _State) -> None:
    if _state(path, actual) != before:
        raise LedgerError(f"ledger {path}: it was written to while it was read; nothing was concluded, read it again")
