"""The ledger's file: what it refuses, and what damage cannot do."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from dpcausal.errors import BudgetExceededError, LedgerDamagedError, LedgerError, ParameterError
from dpcausal.privacy import ledger_file
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import PureDP


@pytest.fixture
def path(directory: Path) -> Path:
    """A closed ledger of budget 1 with ten spends of 0.05."""
    path = directory / "study.ledger"
    with Ledger.create(path, budget=PureDP(1)) as ledger:
        for number in range(10):
            ledger.allot(PureDP(0.05), task=f"call {number}", detail={"columns": ["x", "y"]})
    return path


def edit(path: Path, *statements: str) -> None:
    """Change a ledger behind its back."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        for statement in statements:
            connection.execute(statement)
    finally:
        connection.close()


UNLOCK = ("DROP TRIGGER entries_no_update", "DROP TRIGGER entries_no_delete", "DROP TRIGGER header_no_update")
LOCK = tuple(ledger_file.SCHEMA[statement.split()[-1]] for statement in UNLOCK)


def test_a_ledger_survives_being_closed(path: Path) -> None:
    ledger = Ledger.open(path)
    assert ledger.remaining.epsilon == 0.5
    assert [entry.number for entry in ledger.entries()] == list(range(1, 11))
    assert (ledger.durable, ledger.private, ledger.path) == (True, True, path)
    found = ledger.verify()
    assert (found.ok, found.entries, found.head, found.problems) == (True, 10, ledger.head, ())


def test_two_objects_on_one_file_see_each_other(path: Path) -> None:
    one, other = Ledger.open(path), Ledger.open(path)
    one.allot(PureDP(0.3), task="one")
    assert other.remaining.epsilon == 0.2
    with pytest.raises(BudgetExceededError):
        other.allot(PureDP(0.3), task="other")
    assert other.allot(PureDP(0.2), task="other").number == 12


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ledger = Ledger.create(tmp_path / "study.ledger", budget=PureDP(1))
    finally:
        os.umask(before)
    ledger.allot(PureDP(0.1), task="t")
    files = sorted(tmp_path.iterdir())
    assert files[0].name == "study.ledger"
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_new_ledger_replaces_nothing(path: Path, directory: Path) -> None:
    content = path.read_bytes()
    with pytest.raises(LedgerError, match=r"study.ledger: a file is there already"):
        Ledger.create(path, budget=PureDP(5))
    assert path.read_bytes() == content
    (directory / "link").symlink_to(directory / "nowhere")
    with pytest.raises(LedgerError, match="already"):
        Ledger.create(directory / "link", budget=PureDP(5))
    with pytest.raises(LedgerError, match="directory does not exist"):
        Ledger.create(directory / "missing" / "study.ledger", budget=PureDP(5))
    with pytest.raises(LedgerError, match="already"):
        Ledger.create(directory, budget=PureDP(5))


@pytest.mark.parametrize("name", ["with space.ledger", "a?mode=ro#x.ledger", "50%20.ledger", "ü.ledger", ":memory:"])
def test_a_path_is_taken_as_it_is(directory: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(directory)
    with Ledger.create(name, budget=PureDP(1)) as ledger:
        ledger.allot(PureDP(0.5), task="t")
    assert [file.name for file in directory.iterdir()] == [name]
    monkeypatch.chdir("/")
    assert Ledger.open(directory / name).remaining.epsilon == 0.5


@pytest.mark.parametrize("wrong", [b"study.ledger", 5, None, "a\0b"])
def test_a_path_that_is_none_is_a_parameter_error(wrong: object) -> None:
    with pytest.raises(ParameterError):
        Ledger.open(wrong)  # type: ignore[arg-type]


def test_a_missing_file_and_a_directory_are_named(directory: Path) -> None:
    with pytest.raises(LedgerError, match=r"gone.ledger: there is no such file"):
        Ledger.open(directory / "gone.ledger")
    assert list(directory.iterdir()) == []
    with pytest.raises(LedgerError, match="not a file"):
        Ledger.open(directory)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET task = 'other' WHERE number = 3",
        "UPDATE entries SET total_epsilon = 0",
        "DELETE FROM entries WHERE number = 10",
        "DELETE FROM entries",
        "UPDATE header SET budget = 'PureDP(100)'",
        "DELETE FROM header",
        "REPLACE INTO header SELECT * FROM header",
        "REPLACE INTO entries SELECT * FROM entries WHERE number = 10",
        "INSERT OR IGNORE INTO entries SELECT * FROM entries WHERE number = 10",
    ],
)
def test_the_file_itself_refuses_to_be_rewritten(path: Path, statement: str) -> None:
    head = Ledger.open(path).head
    with pytest.raises(sqlite3.IntegrityError, match="only grows"):
        edit(path, statement)
    assert Ledger.open(path, head).verify().entries == 10


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET task = 'other' WHERE number = 3",
        "UPDATE entries SET total_epsilon = total_epsilon - 1 WHERE number = 10",
        "UPDATE entries SET hash = previous WHERE number = 10",
        "DELETE FROM entries WHERE number = 4",
        "DELETE FROM entries WHERE number = 1",
        "UPDATE header SET budget = 'PureDP(100)'",
        "UPDATE header SET hash = 'x'",
        "DROP TABLE entries",
        "CREATE TABLE more (x)",
        "ALTER TABLE entries ADD COLUMN more TEXT",
        "CREATE TRIGGER quiet BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END",
        "PRAGMA user_version = 2",
        "PRAGMA user_version = 0",
        "PRAGMA application_id = 5",
        "PRAGMA journal_mode = DELETE",
    ],
)
def test_a_change_behind_its_back_is_refused_at_open(path: Path, change: str) -> None:
    edit(path, *UNLOCK, change, *(() if change.startswith("DROP") else LOCK))
    with pytest.raises(LedgerDamagedError, match=r"study\.ledger: .*nothing can be spent"):
        Ledger.open(path)


def test_dropped_triggers_are_damage_too(path: Path) -> None:
    edit(path, UNLOCK[0])
    with pytest.raises(LedgerDamagedError, match="triggers"):
        Ledger.open(path)


def test_a_newer_format_says_so(path: Path) -> None:
    edit(path, "PRAGMA user_version = 2")
    with pytest.raises(LedgerDamagedError, match="newer version of this library: format 2"):
        Ledger.open(path)


def test_a_live_ledger_notices_damage_before_it_spends(path: Path) -> None:
    ledger = Ledger.open(path)
    edit(path, *UNLOCK, "UPDATE entries SET total_epsilon = 0 WHERE number = 10", *LOCK)
    with pytest.raises(LedgerDamagedError, match="entry 10 was altered"):
        ledger.allot(PureDP(0.1), task="t")
    assert not ledger.verify().ok
    assert "cannot be read" in repr(ledger)


def test_a_live_ledger_notices_that_it_was_rolled_back(path: Path, directory: Path) -> None:
    older = directory / "older"
    shutil.copy(path, older)
    with Ledger.open(path) as ledger:
        ledger.allot(PureDP(0.3), task="t")
    ledger = Ledger.open(path)
    os.replace(older, path)
    with pytest.raises(LedgerDamagedError, match="rolled back"):
        ledger.allot(PureDP(0.3), task="t")


def test_a_live_ledger_notices_that_its_file_is_another_or_gone(path: Path, directory: Path) -> None:
    ledger = Ledger.open(path)
    Ledger.create(directory / "other", budget=PureDP(100)).close()
    os.replace(directory / "other", path)
    with pytest.raises(LedgerDamagedError, match="replaced by another"):
        ledger.allot(PureDP(0.1), task="t")
    path.unlink()
    with pytest.raises(LedgerError, match="no such file"):
        ledger.allot(PureDP(0.1), task="t")
    assert not path.exists()


def test_a_noted_head_tells_a_rollback(path: Path, directory: Path) -> None:
    older = directory / "older"
    shutil.copy(path, older)
    with Ledger.open(path) as ledger:
        noted = [ledger.head, ledger.allot(PureDP(0.1), task="t").ledger_head]
        ledger.allot(PureDP(0.1), task="later")
    for head in noted:
        assert Ledger.open(path, expected_head=head).remaining.epsilon == 0.3
    assert Ledger.open(older, noted[0]).verify().ok
    with pytest.raises(LedgerDamagedError, match="noted head"):
        Ledger.open(older, noted[1])
    with pytest.raises(ParameterError):
        Ledger.open(path, expected_head=noted[0][:-1])


def test_a_head_of_another_ledger_is_refused(path: Path, directory: Path) -> None:
    other = Ledger.create(directory / "other", budget=PureDP(1))
    with pytest.raises(LedgerDamagedError, match="noted head"):
        Ledger.open(path, other.head)


FOREIGN: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("epsilon 1\n" * 1000),
    "noise": lambda path: path.write_bytes(np.random.default_rng(1).bytes(20_000)),
    "database": lambda path: edit(path, "CREATE TABLE entries (number INTEGER PRIMARY KEY)"),
    "posing": lambda path: edit(
        path,
        "PRAGMA journal_mode = WAL",
        f"PRAGMA application_id = {ledger_file.APPLICATION}",
        "PRAGMA user_version = 1",
    ),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_file_is_refused_and_left_alone(directory: Path, kind: str) -> None:
    path = directory / "study.ledger"
    FOREIGN[kind](path)
    content = path.read_bytes()
    with pytest.raises(LedgerDamagedError, match=r"study\.ledger"):
        Ledger.open(path)
    assert path.read_bytes() == content


def test_a_truncated_file_is_refused_at_every_length(path: Path, directory: Path) -> None:
    content = path.read_bytes()
    cut = directory / "cut.ledger"
    lengths = {0, 1, 16, 99, 100, 512, len(content) - 1, *range(1024, len(content), 1024)}
    for length in sorted(lengths):
        cut.write_bytes(content[:length])
        with pytest.raises(LedgerError, match=r"cut\.ledger"):
            Ledger.open(cut)


def test_a_flipped_bit_is_refused_or_changes_nothing(path: Path, directory: Path) -> None:
    """Each flip either is refused at open, or hits bytes that hold no content: all entries, the head, the budget and
    what is left are then the same, and the ledger verifies."""
    ledger = Ledger.open(path)
    entries, head, left = ledger.entries(), ledger.head, ledger.remaining
    ledger.close()
    content = path.read_bytes()
    generator = np.random.default_rng(2)
    offsets = {*range(100), *generator.integers(100, len(content), 300).tolist()}
    caught = harmless = 0
    flipped = directory / "flipped.ledger"
    for offset in sorted(offsets):
        changed = bytearray(content)
        changed[offset] ^= 1 << int(generator.integers(8))
        flipped.write_bytes(changed)
        try:
            damaged = Ledger.open(flipped)
        except LedgerError:
            caught += 1
        else:
            assert damaged.verify().ok
            assert (damaged.entries(), damaged.head, damaged.remaining) == (entries, head, left)
            assert damaged.budget == PureDP(1)
            damaged.close()
            harmless += 1
    assert caught >= 100
    assert caught + harmless == len(offsets)


@pytest.mark.parametrize("part", [0, 100, 0.1, 0.5, 0.9])
def test_a_file_truncated_while_it_is_open_loses_no_spend_unseen(path: Path, part: float) -> None:
    ledger = Ledger.open(path)
    ledger.allot(PureDP(0.05), task="before")
    os.truncate(path, part if isinstance(part, int) else int(part * path.stat().st_size))
    granted = 11
    with pytest.raises(LedgerDamagedError, match="truncated"):
        ledger.allot(PureDP(0.05), task="at once")
    for _ in range(3):
        with suppress(LedgerError):
            granted = max(granted, ledger.allot(PureDP(0.05), task="after").number)
    ledger.close()
    try:
        found = Ledger.open(path).verify()
    except LedgerError as error:
        assert "study.ledger" in str(error)
    else:
        assert found.ok
        assert found.entries == granted


def test_every_flip_inside_a_row_is_caught(path: Path, directory: Path) -> None:
    content = path.read_bytes()
    start = content.index(b"call 3")
    flipped = directory / "flipped.ledger"
    for offset in range(start, start + 150):
        changed = bytearray(content)
        changed[offset] ^= 1 << (offset % 8)
        flipped.write_bytes(changed)
        with pytest.raises(LedgerDamagedError):
            Ledger.open(flipped)


def test_the_main_file_alone_holds_every_spend(path: Path, directory: Path) -> None:
    ledger = Ledger.open(path)
    ledger.allot(PureDP(0.125), task="t")
    alone = directory / "alone.ledger"
    shutil.copy(path, alone)  # without the write-ahead log
    assert Ledger.open(alone, ledger.head).remaining.epsilon == 0.375


def test_the_python_optimiser_changes_nothing(path: Path) -> None:
    program = (
        "import sys; from dpcausal.privacy.ledger import *; from dpcausal.privacy.loss import *\n"
        "from dpcausal.errors import *\n"
        "ledger = Ledger.open(sys.argv[1]); ledger.allot(PureDP(0.5), task='t')\n"
        "try: ledger.allot(PureDP(1e-9), task='t')\n"
        "except BudgetExceededError: print('refused', ledger.verify().ok)\n"
    )
    run = [sys.executable, "-O", "-W", "error", "-c", program, str(path)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("refused True\n", "")
