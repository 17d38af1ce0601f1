"""A ledger's SQLite file: how it is laid out, made, opened and recognised, and what its faults are called."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import suppress
from pathlib import Path

from dpcausal.errors import LedgerDamagedError, LedgerError
from dpcausal.privacy.ledger_entry import COLUMNS, FORMAT, Header, parse_loss

NO_FILE = "there is no such file, or it cannot be read; a new one is made by Ledger.create or 'dpcausal ledger create'"

APPLICATION = 0x64706361
"""The application id in the file's header: "dpca"."""

BUSY_SECONDS = 60.0
"""How long a spend waits for other processes before it gives up."""

SCHEMA = {
    "header": "CREATE TABLE header (id INTEGER PRIMARY KEY CHECK (id = 1), format INTEGER NOT NULL, "
    "created TEXT NOT NULL, pid INTEGER NOT NULL, library TEXT NOT NULL, budget TEXT NOT NULL, "
    "hash TEXT NOT NULL) STRICT",
    "entries": f"CREATE TABLE entries ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())}, "
    "CHECK (caveats = ''), CHECK (length(hash) = 64)) STRICT",
    "entries_in_order": "CREATE TRIGGER entries_in_order BEFORE INSERT ON entries WHEN NEW.number IS NOT "
    "(SELECT coalesce(max(number), 0) + 1 FROM entries) BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END",
    **{
        f"{table}_no_{verb.lower()}": f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
        "BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END"
        for table, verbs in {"header": ("INSERT", "UPDATE", "DELETE"), "entries": ("UPDATE", "DELETE")}.items()
        for verb in verbs
    },
}


_LAID_OUT = {("trigger" if "_" in name else "table", name, name.split("_")[0], sql) for name, sql in SCHEMA.items()}


def make_file(path: Path) -> None:
    """Make an empty file, its owner's alone from the start; an existing one is refused."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    except FileExistsError:
        raise LedgerError(f"ledger {path}: a file is there already; a ledger never replaces one") from None
    except FileNotFoundError:
        raise LedgerError(f"ledger {path}: its directory does not exist") from None
    except OSError as error:
        raise LedgerError(f"ledger {path}: the file cannot be made: {error.strerror}") from None
    os.close(descriptor)


def lay_out(path: Path, connection: sqlite3.Connection, header: Header) -> None:
    """Write the tables, the header and the triggers, in one transaction."""
    if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
        raise LedgerError(f"ledger {path}: its file system does not carry a write-ahead log; use a local disk")
    connection.execute("BEGIN IMMEDIATE")
    for name, sql in SCHEMA.items():
        if name == "header_no_insert":
            values = (header.format, header.created, header.pid, header.library, header.budget, header.hash)
            connection.execute("INSERT INTO header VALUES (1, ?, ?, ?, ?, ?, ?)", values)
        connection.execute(sql)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")


def sync_directory(directory: Path) -> None:
    """Make a new file's name durable, where the system can open a directory."""
    with suppress(PermissionError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def connect(path: Path) -> sqlite3.Connection:
    """Open an existing file, durable at every commit and checkpointed after it."""
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw", uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        for pragma in (
            "synchronous = FULL",
            "fullfsync = ON",
            "wal_autocheckpoint = 1",
            "trusted_schema = OFF",
            "cell_size_check = ON",
        ):
            connection.execute(f"PRAGMA {pragma}").close()
    except BaseException:
        connection.close()
        raise
    return connection


def connect_immutable(path: Path) -> sqlite3.Connection:
    """Open an existing file to read what it holds now: no lock, no log, nothing written beside it."""
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None)
    try:
        for pragma in ("query_only = ON", "trusted_schema = OFF", "cell_size_check = ON"):
            connection.execute(f"PRAGMA {pragma}").close()
    except BaseException:
        connection.close()
        raise
    return connection


def may_write(path: Path) -> bool:
    """Return whether the file and its directory, where the log goes, can be written."""
    return os.access(path, os.R_OK | os.W_OK) and os.access(path.parent, os.W_OK)


def identity(path: Path) -> tuple[int, int]:
    """Return which file is at the path now, having checked that it may be written."""
    try:
        found = path.stat()
    except OSError:
        raise LedgerError(f"ledger {path}: {NO_FILE}") from None
    if not stat.S_ISREG(found.st_mode):
        raise LedgerError(f"ledger {path}: not a file")
    if not may_write(path):
        raise LedgerError(f"ledger {path}: the file or its directory is read-only; nothing can be spent from it")
    return found.st_dev, found.st_ino


def read_header(path: Path, connection: sqlite3.Connection, *, immutable: bool = False) -> Header:
    """Check that the file is a ledger of this format, laid out as this library lays it out."""
    if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION,):
        raise damaged(path, "not a ledger of this library")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != FORMAT:
        newer = "written by a newer version of this library: " if version > FORMAT else ""
        raise damaged(path, f"{newer}format {version}, and only format {FORMAT} is read")
    if not (_keeps_log(path) if immutable else connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)):
        raise damaged(path, "its write-ahead log was switched off")
    found = set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema"))
    if found != _LAID_OUT:
        raise damaged(path, "its tables or triggers were changed")
    rows = connection.execute("SELECT format, created, pid, library, budget, hash FROM header").fetchall()
    if len(rows) != 1 or Header(*rows[0][:-1]).hash != rows[0][-1]:
        raise damaged(path, "its header was altered")
    header = Header(*rows[0][:-1])
    try:
        parse_loss(header.budget)
    except ValueError:
        raise damaged(path, "its budget cannot be read") from None
    return header


def _keeps_log(path: Path) -> bool:
    # An immutable file has no journal mode; bytes 18 and 19, the versions to write and read with, are 2 with a log.
    with path.open("rb") as file:
        return file.read(20)[18:] == b"\x02\x02"


def check_pages(path: Path, connection: sqlite3.Connection) -> None:
    """Run SQLite's own check of the file's structure."""
    if connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
        raise damaged(path, "its pages are damaged")


def damaged(path: Path, rule: str) -> LedgerDamagedError:
    """Return the error of a ledger that must not be used, to be raised."""
    return LedgerDamagedError(f"ledger {path}: {rule}; nothing can be spent from it")


_RULES = {
    "SQLITE_FULL": "the disk is full or the file may not grow",
    "SQLITE_IOERR": "reading or writing the disk failed",
    "SQLITE_READONLY": "the file or its directory is read-only",
    "SQLITE_CANTOPEN": "the file cannot be opened for writing",
    "SQLITE_PERM": "the file or its directory is read-only",
    "SQLITE_BUSY": "other processes kept it busy for too long",
    "SQLITE_LOCKED": "other processes kept it busy for too long",
    "SQLITE_NOMEM": "memory ran out",
}


def translated(path: Path, error: Exception) -> LedgerError:
    """Return the error of ours for a fault of SQLite or of the system; whatever is not understood is damage."""
    if isinstance(error, OSError):
        return LedgerError(f"ledger {path}: {error.strerror}; nothing was granted")
    name = getattr(error, "sqlite_errorname", "")
    for prefix, rule in _RULES.items():
        if name.startswith(prefix):
            return LedgerError(f"ledger {path}: {rule}; nothing was granted")
    if name.startswith("SQLITE_NOTADB"):
        return damaged(path, "not an SQLite file")
    if isinstance(error, sqlite3.ProgrammingError):
        return LedgerError(f"ledger {path}: its connection was closed; nothing was granted")
    return damaged(path, "damaged")
