"""The ledger under fire: kills, races under two names, threads, forks."""

import os
import signal
import threading
import time
import warnings
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from dpcausal import ZCDP, ApproxDP, Ledger, PureDP
from dpcausal.errors import BudgetExceededError, FenceError, LedgerError
from dpcausal.privacy.loss import Loss, parse_loss
from dpcausal.privacy.storage import store as ledger_file
from tests.privacy.conftest import event
from tests.privacy.kill_loops import (
    LONGEST_PAUSE,
    STEP,
    finish,
    kill,
    kill_loop,
    race,
    release_then_spend,
    remove,
    run,
    spend_then_release,
    start,
)
from tests.voices import together

fcntl = pytest.importorskip("fcntl", reason="locks and forks: POSIX only")
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


def test_a_process_that_is_killed_in_the_middle_of_a_line_leaves_what_the_next_one_cuts_off(directory: Path) -> None:
    path = directory / "study.ledger"
    with Ledger.create(path, budget=PureDP(1)) as ledger:
        ledger.charge(STEP, task="before")
    whole = path.read_bytes()

    def half(file: IO[bytes], text: bytes) -> None:
        file.write(text[: len(text) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

    def work() -> None:
        ledger_file._write_through = half
        Ledger.open(path).charge(STEP, task="cut short")

    assert run(work) == -signal.SIGKILL
    torn = len(path.read_bytes()) - len(whole)
    assert torn > 100
    with Ledger.open(path) as ledger:
        assert (ledger.verify().entries, ledger.verify().incomplete) == (1, torn)
        assert ledger.charge(STEP, task="after").number == 2
        assert (ledger.verify().ok, ledger.verify().incomplete) == (True, 0)
    assert path.read_bytes().startswith(whole)


def test_a_ledger_whose_creation_was_killed_is_whole_or_not_there(directory: Path) -> None:
    path = directory / "study.ledger"
    generator = np.random.default_rng(7)
    whole = 0
    for _ in range(40):
        child = start(lambda: Ledger.create(path, budget=PureDP(0.5)))
        time.sleep(float(generator.uniform(0, 0.015)))
        kill(child)
        if path.exists():
            with Ledger.open(path) as ledger:
                assert (ledger.budget, ledger.entries(), ledger.verify().ok) == (PureDP(0.5), [], True)
            whole += 1
        remove(path)
    print(f"{whole} of 40 whole, the others not there")


def test_processes_that_open_or_create_one_ledger_at_once_share_it(directory: Path) -> None:
    for number in range(10):
        path = directory / f"{number}.ledger"

        def work(path: Path = path) -> None:
            with Ledger.open_or_create(path, budget=PureDP(0.004)) as ledger:
                ledger.charge(STEP, task="t")

        children = [start(work) for _ in range(4)]
        assert [finish(child) for child in children] == [0] * 4
        with Ledger.open(path) as ledger:
            assert (ledger.remaining.epsilon, ledger.verify().entries) == (0, 4)


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
    remove(path)


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
                granted.append(mine.charge(STEP, task="race").number)
            except BudgetExceededError:
                return

    together(*[work] * 4)
    assert sorted(granted) == list(range(1, 101))
    assert shared.verify().ok


def test_a_fork_amid_another_threads_spends_leaves_both_sides_working(directory: Path) -> None:
    ledger = Ledger.create(directory / "study.ledger", budget=PureDP(1000), accept_large_epsilon=True)
    stop = threading.Event()
    spent: list[int] = []

    def work() -> None:
        while not stop.is_set():
            spent.append(ledger.charge(STEP, task="thread").number)

    thread = threading.Thread(target=work)
    thread.start()
    codes = [run(lambda: ledger.charge(STEP, task="child")) for _ in range(10)]
    stop.set()
    thread.join()
    found = ledger.verify()
    assert codes == [0] * 10
    assert (found.ok, found.entries) == (True, len(spent) + 10)
    assert len({entry.pid for entry in ledger.entries()}) == 11


def test_a_fork_in_the_middle_of_a_spend_has_no_part_in_it(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a handler of signals may do: parent and child come back to one spend, which must not be granted twice."""
    ledger = Ledger.create(directory / "study.ledger", budget=STEP)
    take, children = ledger_file.Account.take, list[int]()

    def forking(account: ledger_file.Account, line: bytes) -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads, Python 3.12 and later
            children.append(os.fork())
        return take(account, line)

    monkeypatch.setattr(ledger_file.Account, "take", forking)
    try:
        number = ledger.charge(STEP, task="t").number
    except LedgerError as error:
        os._exit(0 if "fork" in str(error) else 1)
    finally:
        if children == [0]:
            os._exit(2)
    monkeypatch.undo()
    assert (number, [finish(child) for child in children]) == (1, [0])
    assert (ledger.verify().ok, ledger.verify().entries) == (True, 1)


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_spend_in_the_middle_of_a_spend_is_refused_or_counted(
    directory: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """As a handler of signals may ask for one, in the same thread."""
    monkeypatch.setattr(ledger_file, "BUSY_SECONDS", 0.05)
    ledger = Ledger.in_memory(STEP) if kind == "memory" else Ledger.create(directory / "study.ledger", budget=STEP)
    take, granted = ledger_file.Account.take, []

    def spend() -> None:
        with suppress(LedgerError, BudgetExceededError):
            granted.append(ledger.charge(STEP, task="t").number)

    def interrupted(account: ledger_file.Account, line: bytes) -> object:
        monkeypatch.setattr(ledger_file.Account, "take", take)
        spend()
        return take(account, line)

    monkeypatch.setattr(ledger_file.Account, "take", interrupted)
    spend()
    assert granted == [1]
    assert (ledger.verify().ok, ledger.verify().entries, ledger.remaining.epsilon) == (True, 1, 0)


def test_a_fork_that_python_did_not_see_has_a_lock_of_its_own(directory: Path) -> None:
    """Nothing of the file is held between two spends, so that there is nothing to share."""
    path = directory / "study.ledger"
    ledger = Ledger.create(path, budget=PureDP(1))
    before = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
    ledger.charge(STEP, task="t")
    assert before == (set(os.listdir("/proc/self/fd")) if before else set())


def locked_elsewhere(path: Path, kind: int) -> int:
    """Have another process hold the lock until it is killed; return it."""
    reading, writing = os.pipe()

    def work() -> None:
        with path.open("rb") as file:
            fcntl.flock(file, kind)
            os.write(writing, b"x")
            time.sleep(60)

    child = start(work)
    os.read(reading, 1)
    os.close(reading)
    os.close(writing)
    return child


def test_a_ledger_that_others_keep_busy_refuses_and_goes_on(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = directory / "study.ledger"
    monkeypatch.setattr(ledger_file, "BUSY_SECONDS", 0.05)
    ledger = Ledger.create(path, budget=PureDP(1))
    for kind in (fcntl.LOCK_SH, fcntl.LOCK_EX):
        other = locked_elsewhere(path, kind)
        with pytest.raises(LedgerError, match=r"study\.ledger: others kept it busy.*nothing was granted"):
            ledger.charge(STEP, task="t")
        for reader in (ledger, None):
            if kind == fcntl.LOCK_SH:  # readers share the lock
                assert (reader or Ledger.open(path, read_only=True)).remaining.epsilon == 1
            else:  # what is being written may be taken back
                with pytest.raises(LedgerError, match="busy"):
                    _ = (reader or Ledger.open(path, read_only=True)).remaining
        kill(other)
    assert ledger.charge(STEP, task="t").number == 1


def test_a_fork_cannot_spend_a_budget_in_memory_or_an_allotment_twice() -> None:
    ledger = Ledger.in_memory(PureDP(1))
    allotment = ledger.charge(PureDP(0.5), task="t")
    free = Ledger.without_privacy()

    def work() -> None:
        with pytest.raises(LedgerError, match="fork"):
            ledger.charge(PureDP(0.5), task="t")
        with pytest.raises(FenceError, match="fork"):
            allotment.spend(event(PureDP(0.5)))
        free.charge(free.budget, task="exact")

    assert run(work) == 0
