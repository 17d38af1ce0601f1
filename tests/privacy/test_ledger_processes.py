"""The ledger under fire: kills, races, forks, a full disk, a read-only file."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from dpcausal.privacy.ledger_entry import parse_loss

from dpcausal.errors import BudgetExceededError, FenceError, LedgerError
from dpcausal.privacy import ledger as ledger_module
from dpcausal.privacy import ledger_file, ledger_store
from dpcausal.privacy.events import Event
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, PureDP
from tests.privacy.kill_loops import (
    LONGEST_PAUSE,
    STEP,
    finish,
    kill,
    kill_loop,
    killed_round,
    race,
    release_then_spend,
    remove,
    run,
    spend_then_release,
    start,
)

resource = pytest.importorskip("resource", reason="limits and forks: POSIX only")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks the test process: POSIX only")


@pytest.mark.parametrize(
    ("workers", "rounds", "releases", "longest_pause"),
    [
        pytest.param(1, 130, (1, 5), LONGEST_PAUSE, id="one process"),
        pytest.param(3, 40, (1, 5), LONGEST_PAUSE, id="three at once"),
        pytest.param(1, 30, (0, 0), 0.02, id="while it opens"),
    ],
)
def test_a_killed_process_never_leaves_a_release_without_its_spend(
    directory: Path, workers: int, rounds: int, releases: tuple[int, int], longest_pause: float
) -> None:
    toll = kill_loop(
        directory, spend_then_release, rounds,
        workers=workers, seed=workers, releases=releases, longest_pause=longest_pause,
    )  # fmt: skip
    print(toll)
    assert toll.clean
    assert (toll.rounds, toll.kills) == (rounds, rounds * workers)
    assert toll.released >= rounds * releases[0]


def test_the_kill_loop_catches_a_process_that_releases_before_it_spends(directory: Path) -> None:
    toll = kill_loop(directory, release_then_spend, 40, seed=5)
    print(toll)
    assert toll.under_recorded >= 36
    assert toll.damaged == 0


def test_the_main_file_of_a_killed_process_holds_its_spends_without_the_log(directory: Path) -> None:
    path = directory / "study.ledger"
    Ledger.create(path, budget=PureDP(1000)).close()
    released = 0
    for count in range(1, 11):
        released += killed_round(path, spend_then_release, 0.0, count)
        for suffix in ("-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        with Ledger.open(path) as ledger:
            assert ledger.verify().ok
            assert len(ledger.entries()) >= released


def test_a_damaged_log_of_a_killed_process_costs_no_spend(directory: Path) -> None:
    path, copy = directory / "study.ledger", directory / "copy.ledger"
    Ledger.create(path, budget=PureDP(1000)).close()
    released = killed_round(path, spend_then_release, 0.0, 20)
    log = Path(f"{path}-wal").read_bytes()
    assert log
    generator = np.random.default_rng(6)
    for number in range(60):
        remove(copy)
        copy.write_bytes(path.read_bytes())
        damaged = bytearray(log)
        offset = int(generator.integers(len(log)))
        if number % 2:
            damaged[offset] ^= 1 << int(generator.integers(8))
        else:
            del damaged[offset:]
        Path(f"{copy}-wal").write_bytes(damaged)
        with Ledger.open(copy) as ledger:
            found = ledger.verify()
        assert found.ok
        assert found.entries >= released


def test_a_ledger_whose_creation_was_killed_is_whole_or_refused(directory: Path) -> None:
    path = directory / "study.ledger"
    generator = np.random.default_rng(7)
    whole = 0
    for _ in range(40):
        child = start(lambda: Ledger.create(path, budget=PureDP(0.5)))
        time.sleep(float(generator.uniform(0, 0.015)))
        kill(child)
        try:
            with Ledger.open(path) as ledger:
                assert (ledger.budget, ledger.entries(), ledger.verify().ok) == (PureDP(0.5), [], True)
            whole += 1
        except LedgerError as error:
            assert "study.ledger" in str(error)
        remove(path)
    print(f"{whole} of 40 whole")


@pytest.mark.parametrize(
    ("budget", "losses", "granted"),
    [
        pytest.param(PureDP(0.3), [STEP], 300, id="three hundred of .001 fit .3"),
        pytest.param(PureDP(0.7), [STEP], 700, id="a budget for most"),
        pytest.param(ZCDP(0.4), [ZCDP(0.001), ZCDP(0.0007), PureDP(0.04)], None, id="zCDP, mixed amounts"),
        pytest.param(ApproxDP(1, 1e-6), [ApproxDP(0.002, 1e-9), STEP], None, id="approximate, mixed amounts"),
    ],
)
def test_racing_processes_never_go_above_the_budget(
    directory: Path, budget: Loss, losses: list[Loss], granted: int | None
) -> None:
    path = directory / "study.ledger"
    Ledger.create(path, budget=budget).close()
    grants = race(path, losses, processes=6, attempts=200)
    with Ledger.open(path) as ledger:
        entries, found, left = ledger.entries(), ledger.verify(), ledger.remaining
    print(f"{grants} = {sum(grants)} granted of 1200, left: {left}")
    assert found.ok
    assert found.entries == len(entries) == sum(grants) < 1200
    assert granted in (None, sum(grants))
    kinds = {entry.loss for entry in entries}
    assert len(kinds) == len(losses)
    spent = sum((amount_of(parse_loss(entry.loss), budget) for entry in entries), Fraction(0))
    cap = amount_of(budget, budget)
    least = min(amount_of(loss, budget) for loss in losses)
    assert cap - least < spent <= cap
    assert granted is None or (spent == cap and left.epsilon == 0)


def amount_of(loss: Loss, budget: Loss) -> Fraction:
    """What a loss adds to a budget's plain sum, exactly: of ρ in zCDP, else of ε."""
    if isinstance(loss, ZCDP):
        return loss.exact_rho
    assert isinstance(loss, (PureDP, ApproxDP))
    return loss.exact_epsilon**2 / 2 if isinstance(budget, ZCDP) else loss.exact_epsilon


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
