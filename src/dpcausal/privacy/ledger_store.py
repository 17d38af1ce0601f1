"""Where a ledger's rows are kept: an SQLite file, or the memory of one process.

A store does one thing that matters: ``append`` reads the last row, asks for the next one, and commits it, as one
step that no thread or process can come between.

The file is in WAL mode with synchronous=FULL, so a commit is on the disk before ``append`` returns; it is also
copied into the main file at once (a checkpoint after every commit), so that the main file alone holds every spend
that was granted.  Triggers refuse UPDATE, DELETE and a row out of order.

No connection lives across a fork: SQLite's locks belong to a process and its bookkeeping would be wrong in the
child.  Connections are closed before a fork and opened again when next needed, in parent and child.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpcausal.errors import LedgerDamagedError, LedgerError
from dpcausal.privacy.ledger_check import Verification, examine
from dpcausal.privacy.ledger_entry import COLUMNS, Header, Row, hash_of
from dpcausal.privacy.ledger_file import (
    check_pages,
    connect,
    damaged,
    identity,
    lay_out,
    make_file,
    read_header,
    sync_directory,
    translated,
)

CHECKPOINT_SECONDS = 0.05
"""How long a spend tries to bring the main file up to its log."""


class Store(ABC):
    """The rows of one ledger, in order, its header, and the file it is in, if any."""

    header: Header
    path: Path | None = None

    @abstractmethod
    def append(self, following: Callable[[Row | None], Row]) -> Row:
        """Commit ``following(last row)`` as the next row, atomically; whatever it raises changes nothing."""

    @abstractmethod
    def last(self) -> Row | None:
        """Return the last row, or ``None``."""

    @abstractmethod
    def rows(self) -> list[Row]:
        """Return all rows."""

    @abstractmethod
    def verify(self) -> Verification:
        """Check everything that is kept."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what is held open."""


class MemoryStore(Store):
    """Rows in the memory of one process.  A forked child would have a second copy of the budget: it is refused."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self._rows: list[Row] = []
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def append(self, following: Callable[[Row | None], Row]) -> Row:
        if os.getpid() != self._pid and self.header.budget != "NoPrivacy()":
            raise LedgerError(
                "a ledger in memory serves the process that made it: a fork would spend its budget twice; "
                "use Ledger.create for several processes"
            )
        with self._lock:
            row = following(self._rows[-1] if self._rows else None)
            self._rows.append(row)
            return row

    def last(self) -> Row | None:
        rows = self.rows()
        return rows[-1] if rows else None

    def rows(self) -> list[Row]:
        with self._lock:
            return list(self._rows)

    def verify(self) -> Verification:
        return examine(self.header, self.rows(), recount=True)

    def close(self) -> None:
        """Nothing is held open."""


class SqliteStore(Store):
    """Rows in an SQLite file.  Every fault is a ``LedgerError`` that names the file; none is granted a spend."""

    path: Path

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._size = 0
        self._seen: tuple[int, str] = (0, "")
        with _registering:
            _LIVE.add(self)

    @classmethod
    def create(cls, path: Path, header: Header) -> SqliteStore:
        """Make a new ledger file, readable and writable by its owner alone; an existing file is refused."""
        if sqlite3.sqlite_version_info < (3, 37):
            raise LedgerError("a ledger needs SQLite 3.37 or later")
        make_file(path)
        store = cls(path)
        try:
            with store._lock:  # held like any other connection's: a fork waits
                store._connection = connect(path)
                lay_out(path, store._connection, header)
                store.close()
            sync_directory(path.parent)
        except BaseException as error:
            store.close()
            for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm"), Path(f"{path}-journal")):
                name.unlink(missing_ok=True)
            if isinstance(error, (sqlite3.Error, OSError)):
                raise translated(path, error) from error
            raise
        return cls.open(path)

    @classmethod
    def open(cls, path: Path, expected_head: str | None = None) -> SqliteStore:
        """Open a ledger file and check its header, its pages and the chain through its rows."""
        store = cls(path)
        try:
            with store._session() as connection:
                store.header = read_header(path, connection)
                check_pages(path, connection)
                cursor = connection.execute(SELECT)
                found = examine(store.header, cursor, recount=False, expected_head=expected_head)
                if not found.ok:
                    raise damaged(path, found.problems[0])
                store._seen = (found.entries, found.head)
        except BaseException:
            store.close()
            raise
        return store

    def append(self, following: Callable[[Row | None], Row]) -> Row:
        with self._session() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                row = following(self._checked_last(connection))
                connection.execute(_INSERT, row)
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                raise
            _checkpoint(connection)
            self._seen = (row[0], row[-1])
            return row

    def last(self) -> Row | None:
        with self._session() as connection, _reading(connection):
            return self._checked_last(connection)

    def rows(self) -> list[Row]:
        with self._session() as connection:
            return connection.execute(SELECT).fetchall()

    def verify(self) -> Verification:
        try:
            with self._session() as connection, _reading(connection):
                check_pages(self.path, connection)
                return examine(self.header, connection.execute(SELECT), recount=True, expected_head=self._seen[1])
        except LedgerDamagedError as error:
            return Verification(False, 0, self.header.hash, (str(error),))

    def close(self) -> None:
        with self._lock:
            if self._connection is not None and os.getpid() == _process:
                self._connection.close()
                self._connection = None

    def __del__(self) -> None:
        if hasattr(self, "_connection"):
            self.close()

    @contextmanager
    def _session(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection to one thread; a fault closes it and becomes an error of ours."""
        with self._lock:
            try:
                yield self._connected()
            except (sqlite3.Error, UnicodeError, OSError) as error:
                self.close()
                raise translated(self.path, error) from error
            except LedgerDamagedError:
                self.close()
                raise

    def _connected(self) -> sqlite3.Connection:
        if os.getpid() != _process:
            raise LedgerError(f"ledger {self.path}: this process was forked behind Python's back; use a new process")
        file, size = identity(self.path), self.path.stat().st_size
        if self._connection is not None and file != self._file:
            self.close()  # moved away or replaced: spends into the old file would be lost
        if self._connection is not None and size < self._size:
            raise damaged(self.path, "it was truncated")  # the file only grows; SQLite would serve from its cache
        self._size = size
        if self._connection is None:
            self._connection = connect(self.path)
            self._file = file
            header = read_header(self.path, self._connection)
            if header != getattr(self, "header", header):
                raise damaged(self.path, "it was replaced by another ledger")
        return self._connection

    def _checked_last(self, connection: sqlite3.Connection) -> Row | None:
        """Return the last row, its hash checked, and what this process saw earlier still in its place."""
        number, head = self._seen
        if number:
            found = connection.execute("SELECT hash FROM entries WHERE number = ?", (number,)).fetchone()
            if found != (head,):
                raise damaged(self.path, f"entry {number} is gone or altered: it was rolled back")
        row: Row | None = connection.execute(f"{SELECT} DESC LIMIT 1").fetchone()
        if row is not None and row[-1] != hash_of(row[:-1]):
            raise damaged(self.path, f"entry {row[0]} was altered: its hash does not match")
        return row


def is_open_here(file: tuple[int, int]) -> bool:
    """Return whether this process holds a connection to the file of that device and number."""
    return any(store._connection is not None and store._file == file for store in list(_LIVE))


SELECT = f"SELECT {', '.join(COLUMNS)} FROM entries ORDER BY number"
_INSERT = f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
_LIVE: weakref.WeakSet[SqliteStore] = weakref.WeakSet()
_registering = threading.RLock()


def _checkpoint(connection: sqlite3.Connection) -> None:
    """Copy the log into the main file, which a commit does by itself unless another process is reading or copying.

    The spend is committed by now: where a copy stays out of reach, the log beside the file holds it.
    """
    end = time.monotonic() + CHECKPOINT_SECONDS
    with suppress(sqlite3.Error):
        while time.monotonic() < end:
            busy, frames, copied = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if not busy and frames == copied:
                return
            time.sleep(0.0005)


@contextmanager
def _reading(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN")
    try:
        yield
    finally:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")


_held: list[SqliteStore] = []
_process = os.getpid()
"""The process whose connections these are."""


def _before_fork() -> None:
    _registering.acquire()
    for store in list(_LIVE):
        store._lock.acquire()
        _held.append(store)
        store.close()


def _after_fork() -> None:
    while _held:
        _held.pop()._lock.release()
    _registering.release()


def _after_fork_in_child() -> None:
    global _process
    _after_fork()
    if all(store._connection is None for store in list(_LIVE)):  # else ``_before_fork`` did not run: refuse from now on
        _process = os.getpid()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
