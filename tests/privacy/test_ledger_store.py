"""The ledger's file: one budget under all its names, what it refuses, what damage and lost power cannot do."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from dpcausal import Ledger, PureDP
from dpcausal.errors import LedgerDamagedError, LedgerError, ParameterError
from dpcausal.privacy.storage import store as ledger_file
from dpcausal.privacy.storage.lines import Account
from tests.commands import command
from tests.privacy.conftest import SPENDS, seen
from tests.privacy.kill_loops import long_ledger, run


def test_a_ledger_survives_being_closed(path: Path) -> None:
    ledger = Ledger.open(path)
    assert ledger.remaining.epsilon == 0.5
    assert [entry.number for entry in ledger.entries()] == [1, 2, 3, 4]
    assert (ledger.durable, ledger.private, ledger.path) == (True, True, path)
    found = ledger.verify()
    assert (found.ok, found.entries, found.head, found.problems, found.incomplete) == (True, 4, ledger.head, (), 0)


def test_the_file_is_for_its_owner_alone_and_all_there_is(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ledger = Ledger.create(tmp_path / "study.ledger", budget=PureDP(1))
    finally:
        os.umask(before)
    ledger.charge(PureDP(0.1), task="t")
    (file,) = tmp_path.iterdir()
    assert (file.name, stat.S_IMODE(file.stat().st_mode)) == ("study.ledger", 0o600)
    assert file.read_text(encoding="ascii").count("\n") == 2


def test_a_new_ledger_replaces_nothing(path: Path, directory: Path) -> None:
    content = path.read_bytes()
    (directory / "link").symlink_to(directory / "nowhere")
    for taken in (path, directory / "link", directory):
        with pytest.raises(LedgerError, match="a file is there already"):
            Ledger.create(taken, budget=PureDP(5))
    assert path.read_bytes() == content
    for place in ("missing/study.ledger", "study.ledger/study.ledger"):
        with pytest.raises(LedgerError, match="no such file or folder"):
            Ledger.create(directory / place, budget=PureDP(5))
    assert sorted(file.name for file in directory.iterdir()) == ["link", "study.ledger"]


@pytest.mark.parametrize("name", ["with space.ledger", "a?mode=ro#x.ledger", "50%20.ledger", "ü.ledger", ":memory:"])
def test_a_path_is_taken_as_it_is(directory: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(directory)
    with Ledger.create(name, budget=PureDP(1)) as ledger:
        ledger.charge(PureDP(0.5), task="t")
    assert [file.name for file in directory.iterdir()] == [name]
    monkeypatch.chdir("/")
    assert Ledger.open(directory / name).remaining.epsilon == 0.5


@pytest.mark.parametrize("wrong", [b"study.ledger", 5, None, "a\0b"])
def test_a_path_that_is_none_is_a_parameter_error(wrong: object) -> None:
    with pytest.raises(ParameterError):
        Ledger.open(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir(), os.mkfifo])
@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_no_file_is_named_and_refused(directory: Path, make: Callable[[Path], None], read_only: bool) -> None:
    make(directory / "other.ledger")
    before = list(directory.iterdir())
    with pytest.raises(LedgerError, match=r"other\.ledger"):
        Ledger.open(directory / "other.ledger", read_only=read_only)
    assert list(directory.iterdir()) == before


# A file that changes while it is open: what was seen must still be there.


def replaced_by_a_copy(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


def truncated(part: float) -> Callable[[Path], None]:
    return lambda path: os.truncate(path, part if isinstance(part, int) else int(part * path.stat().st_size))


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    **{f"truncated at {part}": (truncated(part), r"cut short or rolled back|noted head|not a ledger")
       for part in (0, 100, 0.1, 0.5, 0.9, 0.999)},
    "edited": (lambda path: path.write_bytes(path.read_bytes().replace(b"call 4", b"call 5")), "line [56].* altered"),
    "deleted": (Path.unlink, "no such file"),
    "moved away": (lambda path: path.rename(path.with_name("elsewhere")), "no such file"),
    "replaced by a copy": (replaced_by_a_copy, "replaced by another"),
    "replaced by another": (
        lambda path: Path(Ledger.create(path.with_name("a"), budget=PureDP(1)).path).replace(path),
        "replaced by another"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_live_ledger_refuses_a_file_that_was_changed_or_is_another_or_gone(path: Path, change: str) -> None:
    """Others may still hold the file that was there: spends into two files would not add up."""
    ledger = Ledger.open(path)
    CHANGES[change][0](path)
    left = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    for call in (lambda: ledger.charge(PureDP(0.05), task="after"), lambda: ledger.remaining, ledger.entries) * 2:
        with pytest.raises(LedgerError, match=CHANGES[change][1]):
            call()
    assert "cannot be read" in repr(ledger)
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == left


def test_a_live_ledger_that_is_verified_notices_damage_to_what_it_read_long_ago(path: Path) -> None:
    ledger = Ledger.open(path)
    path.write_bytes(path.read_bytes().replace(b"call 1", b"call 5"))
    assert "line 2: it was altered" in ledger.verify().problems[0]


def test_a_file_that_comes_back_to_its_place_goes_on(path: Path) -> None:
    ledger, elsewhere = Ledger.open(path), path.with_name("elsewhere")
    path.rename(elsewhere)
    with Ledger.open(elsewhere) as other:
        other.charge(PureDP(0.125), task="under another name")
    elsewhere.rename(path)
    assert ledger.charge(PureDP(0.125), task="back").number == SPENDS + 2


@pytest.mark.parametrize("step", ["before it is written", "once it is written"])
def test_a_file_that_is_replaced_in_the_middle_of_a_spend_grants_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    ledger, write = Ledger.open(path), ledger_file._write_through

    def replacing(file: IO[bytes], text: bytes) -> None:
        if step == "before it is written":
            replaced_by_a_copy(path)
        write(file, text)
        if step == "once it is written":
            replaced_by_a_copy(path)

    monkeypatch.setattr(ledger_file, "_write_through", replacing)
    with pytest.raises(LedgerError, match="replaced by another"):
        ledger.charge(PureDP(0.125), task="t")


def test_a_noted_head_tells_a_rollback(path: Path, directory: Path, unwitnessed: None) -> None:
    older = directory / "older"
    shutil.copy(path, older)
    with Ledger.open(path) as ledger:
        noted = [ledger.head, ledger.charge(PureDP(0.1), task="t").ledger_head]
        ledger.charge(PureDP(0.1), task="later")
    for head in noted:
        assert Ledger.open(path, expected_head=head).remaining.epsilon == 0.3
    assert Ledger.open(older, noted[0]).verify().ok
    with pytest.raises(LedgerDamagedError, match="noted head"):
        Ledger.open(older, noted[1])
    with pytest.raises(LedgerDamagedError, match="noted head"):
        Ledger.open(path, Ledger.create(directory / "other", budget=PureDP(1)).head)
    for wrong in (noted[0][:-1], noted[0].upper() + "g", 5):
        with pytest.raises(ParameterError):
            Ledger.open(path, expected_head=wrong)  # type: ignore[arg-type]


# A ledger that is only read: an auditor needs no right to write, and leaves no trace.


def trace(directory: Path) -> dict[str, tuple[bytes, int]]:
    """Return every file of a directory with its content and time of change."""
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in directory.iterdir()}


def test_reading_shows_what_an_ordinary_opening_shows_and_leaves_no_trace(path: Path) -> None:
    before = trace(path.parent)
    with Ledger.open(path, read_only=True) as audited, Ledger.open(path) as ordinary:
        assert (*seen(audited), audited.verify()) == (*seen(ordinary), ordinary.verify())
        with pytest.raises(LedgerError, match=r"study\.ledger.*read only"):
            audited.charge(PureDP(0.1), task="call")
        with pytest.raises(LedgerError, match=r"study\.ledger.*read only"):
            audited.store(1, {})
    for word in ("verify", "show"):
        assert command("ledger", word, path).exit_code == 0
    assert trace(path.parent) == before


def test_a_ledger_in_use_is_read_and_shows_what_is_spent_meanwhile(path: Path) -> None:
    with Ledger.open(path) as ledger, Ledger.open(path, read_only=True) as audited:
        ledger.charge(PureDP(0.25), task="one more")
        assert audited.remaining.epsilon == 0.25
        ledger.charge(PureDP(0.125), task="and one")
        assert len(audited.entries()) == SPENDS + 2


@pytest.mark.parametrize("what", ["file and directory", "file", "directory"])
def test_an_auditor_needs_no_right_to_write_and_an_analyst_none_but_to_the_file(path: Path, what: str) -> None:
    """Under a user whom the modes bind: root is not stopped by them."""

    def work() -> None:
        if os.getuid() == 0:
            os.setuid(65534)
        verified = command("ledger", "verify", path)
        assert verified.exit_code == 0 and f"{SPENDS} entries verified" in verified.output
        shown = command("ledger", "show", path, "--jsonl")
        assert shown.exit_code == 0 and shown.output.count("call ") == SPENDS
        if what == "directory":  # nothing is written beside the file, so it alone must be writable
            assert Ledger.open(path).charge(PureDP(0.125), task="t").number == SPENDS + 1
        else:
            with pytest.raises(LedgerError, match=r"study\.ledger: Permission denied; nothing was granted"):
                Ledger.open(path)
        if what != "file":
            with pytest.raises(LedgerError, match=r"other\.ledger: Permission denied"):
                Ledger.create(path.with_name("other.ledger"), budget=PureDP(1))

    path.chmod(0o666 if what == "directory" else 0o444)
    path.parent.chmod(0o777 if what == "file" else 0o555)
    try:
        assert run(work) == 0
    finally:
        path.parent.chmod(0o700)


# Size.


def test_opening_reads_each_line_once_and_a_spend_only_the_last(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How long 100,000 lines take: ``python -m benchmarks audit_ledger``."""
    path, entries = directory / "long.ledger", 2_000
    head = long_ledger(path, entries)
    taken: list[int] = []
    take = Account.take
    monkeypatch.setattr(Account, "take", lambda self, line: taken.append(len(line)) or take(self, line))
    ledger = Ledger.open(path, head)
    assert len(taken) == 1 + entries
    assert ledger.remaining.epsilon == 19_999.96
    reads: list[int] = []
    read = Account.read
    monkeypatch.setattr(Account, "read", lambda self, raw, *rest: reads.append(len(raw)) or read(self, raw, *rest))
    ledger.charge(PureDP(2e-5), task="t")
    assert reads == [taken[-2] + 1]  # of all that was spent before, a spend reads the last line again
    assert len(taken) == 2 + entries
