"""Faults of the system under a ledger: no locks, interrupts, a disk that fails or is full, rights that are lost."""

import errno
import os
import signal
import sys
from collections.abc import Callable
from io import FileIO
from pathlib import Path

import pytest

from dpcausal import Ledger, PureDP
from dpcausal.errors import LedgerError
from dpcausal.privacy.storage import store as ledger_file
from tests.privacy.kill_loops import STEP, run

resource = pytest.importorskip("resource", reason="limits and forks: POSIX only")


def test_a_spend_is_on_the_disk_before_it_is_granted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order is: the whole line, the disk, then the grant; of a new file also its name."""
    path, synced, fsync = tmp_path / "study.ledger", [], os.fsync

    def noting(descriptor: int) -> None:
        lines = path.read_bytes().count(b"\n") if path.exists() else 0
        synced.append((os.path.samestat(os.fstat(descriptor), tmp_path.stat()), lines))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    ledger = Ledger.create(path, budget=PureDP(1))
    assert synced == [(False, 0), (True, 1)]  # its content before it has its name, then the directory
    for number in (1, 2):
        ledger.charge(STEP, task="t")
        assert synced[-1] == (False, number + 1)
    ledger.store(1, {"margin": 1})
    assert synced[-1] == (False, 4)
    assert len(synced) == 5


@pytest.mark.parametrize("fault", [OSError(errno.ENOLCK, ""), OSError(errno.EOPNOTSUPP, ""), ImportError()])
def test_where_there_are_no_locks_there_is_no_ledger_file(
    directory: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    """As on network drives that refuse them, and on systems without ``flock``."""
    path = directory / "study.ledger"
    Ledger.create(path, budget=PureDP(1)).close()

    def refusing(*_: object) -> None:
        raise fault

    if isinstance(fault, ImportError):
        monkeypatch.setitem(sys.modules, "fcntl", None)
    else:
        monkeypatch.setattr("fcntl.flock", refusing)
    for call in (
        lambda: Ledger.open(path),
        lambda: Ledger.open(path, read_only=True),
        lambda: Ledger.create(directory / "new.ledger", budget=PureDP(1)),
    ):
        with pytest.raises(LedgerError, match=r"no locks|locks of a POSIX system"):
            call()
    assert [file.name for file in directory.iterdir()] == ["study.ledger"]
    Ledger.in_memory(PureDP(1)).charge(STEP, task="t")


@pytest.mark.parametrize("moment", ["take", "_write_through", "_check_place"])
def test_an_interrupt_before_the_spend_is_granted_spends_nothing(
    directory: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    ledger = Ledger.create(directory / "study.ledger", budget=PureDP(1))
    ledger.charge(STEP, task="t")
    place = {"take": ledger_file.Account, "_write_through": ledger_file, "_check_place": ledger_file.LedgerStore}[
        moment
    ]
    original, calls = getattr(place, moment), []

    def interrupted(*arguments: object) -> object:
        calls.append(1)
        if moment == "_check_place" and len(calls) == 1:  # the second is made when the line is on the disk
            return original(*arguments)
        if moment == "_write_through":
            original(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(place, moment, interrupted)
        ledger.charge(STEP, task="t")
    assert len(ledger.entries()) == 1
    assert ledger.charge(STEP, task="t").number == 2
    assert ledger.verify().ok


def test_a_disk_that_fails_grants_nothing_and_a_line_that_stays_is_counted(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.create(directory / "study.ledger", budget=PureDP(1))

    def failing(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing)
        with pytest.raises(LedgerError, match=r"study\.ledger: Input/output error; nothing was granted"):
            ledger.charge(STEP, task="taken back", once={"targets": ["A"]})
        assert ledger.entries() == []
        patched.setattr(ledger_file, "open", lambda *given, **named: Stuck(*given[:2], **named), raising=False)
        with pytest.raises(LedgerError, match="Input/output error"):
            ledger.charge(STEP, task="cannot be taken back")
    assert [entry.task for entry in ledger.entries()] == ["cannot be taken back"]
    assert ledger.charge(STEP, task="after", once={"targets": ["B"]}).number == 2
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing)
        with pytest.raises(LedgerError, match="Input/output error"):
            ledger.store(2, {"margin": 1})
    assert ledger.answer(2) is None
    ledger.store(2, {"margin": 2})
    assert ledger.verify().ok


class Stuck(FileIO):
    """A file that cannot be cut."""

    def __init__(self, path: Path, mode: str, *, buffering: int, opener: Callable[[str, int], int]) -> None:
        super().__init__(path, mode, opener=opener)

    def truncate(self, size: int | None = None) -> int:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def test_a_full_disk_grants_nothing_that_is_not_recorded(directory: Path) -> None:
    path = directory / "study.ledger"
    Ledger.create(path, budget=PureDP(1000), accept_large_epsilon=True).close()
    limit = path.stat().st_size + 40_000
    reading, writing = os.pipe()

    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        ledger = Ledger.open(path)
        with pytest.raises(LedgerError, match=r"study\.ledger: the disk is full.*nothing was granted"):
            for _ in range(5000):
                ledger.charge(STEP, task="x" * 200)
                os.write(writing, b"x")
        for _ in range(3):
            with pytest.raises(LedgerError):
                ledger.charge(STEP, task="x" * 200)

    assert run(work) == 0
    os.close(writing)
    granted = len(os.read(reading, 65536))
    os.close(reading)
    ledger = Ledger.open(path)  # the limit is gone: it goes on where it was
    found = ledger.verify()
    assert found.ok
    assert granted >= 20
    assert (found.entries, found.incomplete) == (granted, 0)
    assert ledger.charge(STEP, task="after").number == granted + 1


def test_a_ledger_that_cannot_be_written_in_full_is_not_created(directory: Path) -> None:
    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        with pytest.raises(LedgerError, match=r"study\.ledger"):
            Ledger.create(directory / "study.ledger", budget=PureDP(1))
        assert list(directory.iterdir()) == []

    assert run(work) == 0


def test_a_file_that_may_not_be_written_refuses_to_spend(directory: Path) -> None:
    directory.chmod(0o777)
    path = directory / "study.ledger"

    def work() -> None:
        if os.getuid() == 0:
            os.setuid(65534)  # root is not stopped by a mode
        ledger = Ledger.create(path, budget=PureDP(1))
        ledger.charge(STEP, task="t")
        path.chmod(0o400)
        with pytest.raises(LedgerError, match=r"study\.ledger: Permission denied; nothing was granted"):
            ledger.charge(STEP, task="t")
        path.chmod(0o600)
        assert ledger.charge(STEP, task="t").number == 2

    assert run(work) == 0
