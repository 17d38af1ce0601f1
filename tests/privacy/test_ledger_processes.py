"""The ledger under fire: kills, races, forks, a full disk, a read-only file."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dpcausal.errors import BudgetExceededError, FenceError, LedgerError
from dpcausal.privacy import ledger as ledger_module
from dpcausal.privacy import ledger_file, ledger_store
from dpcausal.privacy.events import Event
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import PureDP

resource = pytest.importorskip("resource", reason="limits and forks: POSIX only")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks the test process: POSIX only")

STEP = PureDP(0.001)


def start(work: Callable[[], object]) -> int:
    """Run ``work`` in a forked child; its exit code is 0 if it returns, 1 if it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads, Python 3.12 and later
        child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def finish(child: int, seconds: float = 60) -> int:
    """Wait for a child and return its exit code; one that hangs is killed and counts as -9."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run(work: Callable[[], object]) -> int:
    return finish(start(work))


def spend_until_refused(path: Path, pipe: int) -> None:
    with Ledger.open(path) as ledger:
        try:
            while True:
                ledger.allot(STEP, task="race")
                os.write(pipe, b"x")
        except BudgetExceededError:
            return


def killed_round(path: Path, work: Callable[[Path, int], None], pause: float, spends: int, workers: int = 1) -> int:
    """Kill workers at a moment counted from the last release that is waited for; return the releases in all."""
    reading, writing = os.pipe()
    children = [start(lambda: work(path, writing)) for _ in range(workers)]
    os.close(writing)
    released = 0
    while released < spends:
        released += len(os.read(reading, 1))
    time.sleep(pause)
    for child in children:
        os.kill(child, signal.SIGKILL)
        assert finish(child) == -signal.SIGKILL
    while chunk := os.read(reading, 65536):
        released += len(chunk)
    os.close(reading)
    return released


def release_before_spending(path: Path, pipe: int) -> None:
    with Ledger.open(path) as ledger:
        while True:
            os.write(pipe, b"x")
            time.sleep(0.01)
            ledger.allot(STEP, task="control")


@pytest.mark.parametrize("workers", [1, 3])
def test_a_killed_process_never_leaves_a_release_without_its_spend(directory: Path, workers: int) -> None:
    path = directory / "study.ledger"
    Ledger.create(path, budget=PureDP(1000)).close()
    generator = np.random.default_rng(workers)
    released = 0
    for _ in range(20):
        pause = float(generator.uniform(0, 0.003))
        released += killed_round(path, spend_until_refused, pause, int(generator.integers(1, 6)), workers)
        ledger = Ledger.open(path)
        found = ledger.verify()
        assert found.ok
        assert released <= found.entries <= released + 20 * workers
        ledger.close()
    assert released >= 20


def test_the_main_file_of_a_killed_process_holds_its_spends_without_the_log(directory: Path) -> None:
    path = directory / "study.ledger"
    Ledger.create(path, budget=PureDP(1000)).close()
    released = 0
    for count in range(1, 11):
        released += killed_round(path, spend_until_refused, 0.0, count)
        for suffix in ("-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        with Ledger.open(path) as ledger:
            assert ledger.verify().ok
            assert len(ledger.entries()) >= released


def test_the_kill_loop_catches_a_process_that_releases_before_it_spends(directory: Path) -> None:
    path = directory / "study.ledger"
    Ledger.create(path, budget=PureDP(1000)).close()
    caught = 0
    recorded = 0
    for _ in range(20):
        released = killed_round(path, release_before_spending, 0.0, 2)
        with Ledger.open(path) as ledger:
            caught += len(ledger.entries()) - recorded < released
            recorded = len(ledger.entries())
    assert caught >= 18


def test_racing_processes_are_granted_the_budget_exactly(directory: Path) -> None:
    path = directory / "study.ledger"
    Ledger.create(path, budget=PureDP(0.3)).close()
    reading, writing = os.pipe()
    children = [start(lambda: spend_until_refused(path, writing)) for _ in range(6)]
    os.close(writing)
    assert [finish(child) for child in children] == [0] * 6
    granted = len(os.read(reading, 65536))
    os.close(reading)
    ledger = Ledger.open(path)
    found = ledger.verify()
    assert (granted, found.ok, found.entries, ledger.remaining.epsilon) == (300, True, 300, 0.0)


@pytest.mark.parametrize("kind", ["memory", "one object", "an object each"])
def test_racing_threads_are_granted_the_budget_exactly(directory: Path, kind: str) -> None:
    path = directory / "study.ledger"
    shared = Ledger.in_memory(PureDP(0.1)) if kind == "memory" else Ledger.create(path, budget=PureDP(0.1))
    granted: list[int] = []

    def work() -> None:
        mine = Ledger.open(path) if kind == "an object each" else shared
        for _ in range(40):
            try:
                granted.append(mine.allot(STEP, task="race").number)
            except BudgetExceededError:
                return

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(granted) == list(range(1, 101))
    assert shared.verify().ok


def test_a_live_ledger_goes_on_in_parent_and_child_after_a_fork(directory: Path) -> None:
    path = directory / "study.ledger"
    ledger = Ledger.create(path, budget=PureDP(1))
    ledger.allot(STEP, task="before")

    def spend(count: int) -> None:
        for _ in range(count):
            ledger.allot(STEP, task="after")

    children = [start(lambda: spend(20)) for _ in range(2)]
    spend(20)
    assert [finish(child) for child in children] == [0, 0]
    spend(1)
    found = ledger.verify()
    assert (found.ok, found.entries) == (True, 62)
    assert {entry.pid for entry in ledger.entries()} == {os.getpid(), *children}


def test_a_fork_amid_another_threads_spends_leaves_both_sides_working(directory: Path) -> None:
    ledger = Ledger.create(directory / "study.ledger", budget=PureDP(1000))
    stop = threading.Event()
    spent: list[int] = []

    def work() -> None:
        while not stop.is_set():
            spent.append(ledger.allot(STEP, task="thread").number)

    thread = threading.Thread(target=work)
    thread.start()
    codes = [run(lambda: ledger.allot(STEP, task="child")) for _ in range(10)]
    stop.set()
    thread.join()
    found = ledger.verify()
    assert codes == [0] * 10
    assert (found.ok, found.entries) == (True, len(spent) + 10)


def test_a_fork_that_python_did_not_see_is_refused(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = directory / "study.ledger"
    ledger = Ledger.create(path, budget=PureDP(1))
    with monkeypatch.context() as patched:
        patched.setattr(ledger_store, "_process", os.getpid() + 1)
        for spend in (lambda: ledger.allot(STEP, task="t"), lambda: Ledger.open(path)):
            with pytest.raises(LedgerError, match="forked"):
                spend()
    assert ledger.allot(STEP, task="t").number == 1


def test_a_ledger_that_others_keep_busy_refuses_and_goes_on(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = directory / "study.ledger"
    monkeypatch.setattr(ledger_file, "BUSY_SECONDS", 0.05)
    ledger = Ledger.create(path, budget=PureDP(1))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match=r"busy.*nothing was granted"):
        ledger.allot(STEP, task="t")
    other.execute("ROLLBACK")
    other.close()
    assert ledger.allot(STEP, task="t").number == 1


def test_an_interrupt_before_the_commit_spends_nothing(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.create(directory / "study.ledger", budget=PureDP(1))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(ledger_module, "sealed", interrupted)
        ledger.allot(STEP, task="t")
    assert ledger.entries() == []
    assert ledger.allot(STEP, task="t").number == 1


def test_a_fork_cannot_spend_a_budget_in_memory_or_an_allotment_twice() -> None:
    ledger = Ledger.in_memory(PureDP(1))
    allotment = ledger.allot(PureDP(0.5), task="t")
    free = Ledger.without_privacy()

    def work() -> None:
        with pytest.raises(LedgerError, match="fork"):
            ledger.allot(PureDP(0.5), task="t")
        with pytest.raises(FenceError, match="fork"):
            allotment.spend(Event("laplace", "step", PureDP(0.5), 1.0, "l1", 1.0, "kendall-tau"))
        free.allot(free.budget, task="exact")

    assert run(work) == 0


def test_a_full_disk_grants_nothing_that_is_not_recorded(directory: Path) -> None:
    path = directory / "study.ledger"
    Ledger.create(path, budget=PureDP(1000)).close()
    limit = path.stat().st_size + 40_000
    reading, writing = os.pipe()

    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        ledger = Ledger.open(path)
        with pytest.raises(LedgerError, match=r"study\.ledger: the disk is full|failed.*nothing was granted"):
            for _ in range(5000):
                ledger.allot(STEP, task="x" * 200)
                os.write(writing, b"x")
        for _ in range(3):
            with pytest.raises(LedgerError):
                ledger.allot(STEP, task="x" * 200)

    assert run(work) == 0
    os.close(writing)
    granted = len(os.read(reading, 65536))
    os.close(reading)
    ledger = Ledger.open(path)  # the limit is gone: it goes on where it was
    found = ledger.verify()
    assert found.ok
    assert granted >= 20
    assert found.entries == granted
    assert ledger.allot(STEP, task="after").number == granted + 1


def test_a_ledger_that_cannot_be_written_in_full_is_not_created(directory: Path) -> None:
    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        with pytest.raises(LedgerError, match=r"study\.ledger"):
            Ledger.create(directory / "study.ledger", budget=PureDP(1))
        assert list(directory.iterdir()) == []

    assert run(work) == 0


@pytest.mark.parametrize("what", ["file", "directory"])
@pytest.mark.parametrize("when", ["before it is opened", "while it is open"])
def test_a_read_only_ledger_refuses_to_spend(directory: Path, what: str, when: str) -> None:
    directory.chmod(0o777)
    path = directory / "study.ledger"

    def work() -> None:
        if os.getuid() == 0:
            os.setuid(65534)  # root is not stopped by a mode
        Ledger.create(path, budget=PureDP(1)).close()
        ledger = Ledger.open(path)
        if what == "file":
            path.chmod(0o400)
        if when == "before it is opened":
            ledger.close()
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        with pytest.raises(LedgerError, match=r"study\.ledger.*read-only"):
            (ledger if when == "while it is open" else Ledger.open(path)).allot(STEP, task="t")

    ready, go = os.pipe(), os.pipe()
    child = start(work)
    os.read(ready[0], 1)
    if what == "directory":
        directory.chmod(0o555)
    os.write(go[1], b"x")
    code = finish(child)
    directory.chmod(0o700)
    for end in (*ready, *go):
        os.close(end)
    assert code == 0
