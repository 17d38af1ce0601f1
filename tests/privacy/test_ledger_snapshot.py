"""A ledger that is only read: an auditor needs no right to write, sees every spend or none, and leaves no trace."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dpcausal.cli import app
from dpcausal.errors import LedgerDamagedError, LedgerError
from dpcausal.privacy import ledger_file, ledger_snapshot
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import PureDP
from tests.privacy.kill_loops import finish, start

SPENDS = 6


@pytest.fixture
def path(directory: Path) -> Path:
    """A closed ledger of budget 1 with six spends of 0.1."""
    path = directory / "study.ledger"
    with Ledger.create(path, budget=PureDP(1)) as ledger:
        for number in range(SPENDS):
            ledger.allot(PureDP(0.1), task=f"call {number}", detail={"columns": ["x", "y"]})
    return path


def trace(directory: Path) -> dict[str, tuple[bytes, int]]:
    """Return every file of a directory with its content and time of change."""
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in directory.iterdir()}


def test_what_is_read_is_what_an_ordinary_opening_shows(path: Path) -> None:
    with Ledger.open(path) as ordinary:
        seen = ordinary.entries(), ordinary.head, ordinary.remaining, ordinary.budget, ordinary.verify()
    with Ledger.open(path, read_only=True) as audited:
        found = audited.entries(), audited.head, audited.remaining, audited.budget, audited.verify()
        assert found == seen
        assert audited.durable and audited.private and audited.path == path
        assert "study.ledger" in repr(audited)
    assert len(seen[0]) == SPENDS and seen[4].ok


def test_reading_leaves_no_trace(path: Path) -> None:
    before = trace(path.parent)
    with Ledger.open(path, read_only=True) as audited:
        audited.verify()
        audited.entries()
        assert trace(path.parent) == before
    for command in ("verify", "show"):
        assert CliRunner().invoke(app, ["ledger", command, str(path)]).exit_code == 0
    assert set(trace(path.parent)) == {"study.ledger"}


def test_nothing_can_be_spent_from_it(path: Path) -> None:
    before = trace(path.parent)
    audited = Ledger.open(path, read_only=True)
    with pytest.raises(LedgerError, match=r"study\.ledger.*read only"):
        audited.allot(PureDP(0.1), task="call")
    assert trace(path.parent) == before


@pytest.mark.parametrize("what", ["file and directory", "file", "directory"])
def test_verify_and_show_serve_an_auditor_without_the_right_to_write(path: Path, what: str) -> None:
    """Under a user whom the modes bind: root is not stopped by them."""

    def work() -> None:
        if os.getuid() == 0:
            os.setuid(65534)
        with pytest.raises(LedgerError, match="read-only"):
            Ledger.open(path)
        verified = CliRunner().invoke(app, ["ledger", "verify", str(path)])
        assert verified.exit_code == 0 and f"{SPENDS} entries verified" in verified.output
        shown = CliRunner().invoke(app, ["ledger", "show", str(path), "--jsonl"])
        assert shown.exit_code == 0 and shown.output.count("call ") == SPENDS

    path.chmod(0o666 if what == "directory" else 0o444)
    path.parent.chmod(0o777 if what == "file" else 0o555)
    try:
        assert finish(start(work)) == 0
    finally:
        path.parent.chmod(0o700)


def test_a_ledger_in_use_is_refused_and_read_once_it_is_closed(path: Path, directory: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.allot(PureDP(0.1), task="one more")
        with pytest.raises(LedgerError, match="open in this process"):
            Ledger.open(path, read_only=True)
        for name in ("study.ledger", "study.ledger-wal"):
            shutil.copy(directory / name, directory / name.replace("study", "copy"))
        with pytest.raises(LedgerError, match=r"copy\.ledger-wal lies beside it"):
            Ledger.open(directory / "copy.ledger", read_only=True)
        ledger.allot(PureDP(0.1), task="the lock still holds")
    with Ledger.open(path, read_only=True) as audited:
        assert len(audited.entries()) == SPENDS + 2


def test_a_spend_that_only_the_log_holds_is_not_passed_over(path: Path, directory: Path) -> None:
    """A crash between commit and checkpoint leaves the last spend in the log alone."""
    crashed = directory / "crashed"
    crashed.mkdir()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    row = list(connection.execute("SELECT * FROM entries ORDER BY number DESC LIMIT 1").fetchone())
    row[0] += 1
    connection.execute(f"INSERT INTO entries VALUES ({', '.join('?' * len(row))})", row)
    for name in ("study.ledger", "study.ledger-wal"):
        shutil.copy(directory / name, crashed / name)
    connection.close()
    with pytest.raises(LedgerError, match="-wal lies beside it and may hold spends"):
        Ledger.open(crashed / "study.ledger", read_only=True)
    (crashed / "by-link.ledger").symlink_to(crashed / "study.ledger")
    with pytest.raises(LedgerError, match="-wal lies beside it and may hold spends"):
        Ledger.open(crashed / "by-link.ledger", read_only=True)


def test_a_rollback_journal_beside_it_is_refused(path: Path) -> None:
    path.with_name("study.ledger-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7")
    with pytest.raises(LedgerError, match="-journal lies beside it"):
        Ledger.open(path, read_only=True)


@pytest.mark.parametrize("damage", [False, True])
def test_a_file_that_changes_while_it_is_read_gives_no_verdict(
    path: Path, monkeypatch: pytest.MonkeyPatch, damage: bool
) -> None:
    def in_the_middle(name: Path, connection: sqlite3.Connection) -> None:
        with path.open("r+b") as file:
            file.seek(0, os.SEEK_END)
            file.write(b"\0" * 4096)
        if damage:
            raise LedgerDamagedError("pages of two times")

    monkeypatch.setattr(ledger_snapshot, "check_pages", in_the_middle)
    with pytest.raises(LedgerError, match="written to while it was read") as caught:
        Ledger.open(path, read_only=True)
    assert not isinstance(caught.value, LedgerDamagedError)


def altered(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DROP TRIGGER entries_no_update")
    connection.execute("UPDATE entries SET task = 'nothing' WHERE number = 2")
    connection.execute(ledger_file.SCHEMA["entries_no_update"])
    connection.close()


def without_log(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = DELETE").close()
    connection.close()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (altered, "entry 2 was altered"),
        (without_log, "write-ahead log was switched off"),
        (lambda path: path.write_bytes(b""), "not a ledger"),
        (lambda path: path.write_bytes(b"no database" * 500), "not an SQLite file"),
        (lambda path: os.truncate(path, path.stat().st_size - 4096), r"study\.ledger"),
    ],
)
def test_a_damaged_file_is_refused_as_in_an_ordinary_opening(
    path: Path, spoil: Callable[[Path], None], words: str
) -> None:
    spoil(path)
    with pytest.raises(LedgerDamagedError, match=words):
        Ledger.open(path, read_only=True)
    with pytest.raises(LedgerDamagedError, match=words):
        Ledger.open(path)


def test_a_flipped_bit_is_refused_or_changes_nothing(path: Path) -> None:
    with Ledger.open(path, read_only=True) as ledger:
        seen = ledger.entries(), ledger.head, ledger.remaining
    content = path.read_bytes()
    generator = np.random.default_rng(3)
    caught = 0
    for offset in [*range(0, 100, 3), *generator.integers(100, len(content), 100).tolist()]:
        changed = bytearray(content)
        changed[offset] ^= 1 << int(generator.integers(8))
        path.write_bytes(changed)
        try:
            damaged = Ledger.open(path, read_only=True)
        except LedgerError:
            caught += 1
        else:
            assert damaged.verify().ok and (damaged.entries(), damaged.head, damaged.remaining) == seen
    assert caught >= 30


def test_a_noted_head_is_looked_for(path: Path) -> None:
    with Ledger.open(path, read_only=True) as audited:
        heads = [entry.hash for entry in audited.entries()]
    Ledger.open(path, heads[2], read_only=True)
    with pytest.raises(LedgerDamagedError, match="noted head"):
        Ledger.open(path, "0" * 64, read_only=True)


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir(), os.mkfifo])
def test_what_is_no_file_is_refused(directory: Path, make: Callable[[Path], None]) -> None:
    make(directory / "other.ledger")
    with pytest.raises(LedgerError, match=r"other\.ledger"):
        Ledger.open(directory / "other.ledger", read_only=True)
