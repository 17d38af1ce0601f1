"""The ledger under fire, for tests and audits: workers that are forked, killed with -9 at random times, and raced.

A round forks workers that spend and then release (write one byte to a pipe), over and over, waits for some
releases, then kills all of them after a random pause.  What the pipe holds was released; what the ledger holds was
recorded.  A release without its spend is the one thing that must never be seen.  Every other worker uses a second name
of the file: a hard link in another folder, a symbolic one and, where the machine allows one, a bind mount, in turn.  A
ledger in a database has two addresses.

A kill loses nothing that the kernel holds: these loops speak of processes that die, not of power that fails.
"""

import json
import os
import signal
import subprocess
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpcausal.errors import BudgetExceededError
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import Loss, PureDP
from dpcausal.privacy.storage.lines import sealed
from dpcausal.privacy.storage.witness import Witness, folder_of
from tests.privacy.postgres import Server

STEP = PureDP(0.001)
CONTROL_PAUSE = 0.01
"""Seconds that the control waits between a release and its spend."""

LONGEST_PAUSE = 0.003
"""Seconds: several spends on a ledger in memory, and well within the control's pause."""

ROUNDS_A_FILE = 50
"""Rounds that share one ledger, so that they find one that others left, and checks stay short."""

SECOND_NAMES = ("linked", "mounted", "symbolic")

Place = Path | str
"""A file, or an address in a database."""

Worker = Callable[[Any, int], object]


def long_ledger(path: Path, entries: int) -> str:
    """Write a ledger with so many equal spends, and return its head."""
    with Ledger.create(path, budget=PureDP(20_000), accept_large_epsilon=True) as ledger:
        head = ledger.head
    spend = {"task": "direction", "loss": "PureDP(0.00002)", "zcdp": None, "unit": "row", "column": ""}
    spend |= {"relation": "replace-one", "detail": {"columns": ["x", "y"]}, "once": {}, "caveats": ""}
    with path.open("ab") as file:
        for number in range(1, entries + 1):
            line = sealed("spend", spend | {"number": number, "previous": head})
            head = line[-67:-3].decode()
            file.write(line)
    return head


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
    return kill(child)


def run(work: Callable[[], object]) -> int:
    return finish(start(work))


def kill(child: int) -> int:
    """Kill a child with -9 and return its exit code."""
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def spend_then_release(path: Place, pipe: int) -> None:
    """Release until the budget is used up, each time after the spend: the only order that is right."""
    with Ledger.open(path) as ledger:
        try:
            while True:
                ledger.charge(STEP, task="spend, then release")
                os.write(pipe, b"x")
        except BudgetExceededError:
            return


def release_then_spend(path: Place, pipe: int) -> None:
    """Release before the spend: the control, which a loop that sees anything must catch."""
    with Ledger.open(path) as ledger:
        while True:
            os.write(pipe, b"x")
            time.sleep(CONTROL_PAUSE)
            ledger.charge(STEP, task="release, then spend")


def names_of(path: Place) -> Sequence[Place]:
    """Return a ledger's names, as containers have several: its path, links and, where the machine allows, a bind mount.

    ``remove`` takes them away again.
    """
    if isinstance(path, str):
        return [path, path.replace("127.0.0.1", "localhost")]
    link, mounted, symbolic = names = [path.parent / folder / path.name for folder in SECOND_NAMES]
    for name in names:
        name.parent.mkdir(exist_ok=True)
    os.link(path, link)
    mounted.touch()
    symbolic.symlink_to(path)
    return [path, link, symbolic, *([mounted] if mount("--bind", path, mounted) else [])]


def mount(*arguments: object) -> bool:
    """Return whether the machine mounted what was asked for."""
    command = ["mount", *map(str, arguments)]
    return os.name == "posix" and os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0


def name_for(names: Sequence[Place], number: int) -> Place:
    """Return the first name to every other caller, and the second names in turn to the rest."""
    return names[0] if number % 2 == 0 else names[1:][number // 2 % (len(names) - 1)]


def killed_round(
    names: Sequence[Place], work: Worker, pause: float, releases: int, workers: int = 1, number: int = 0
) -> int:
    """Kill the workers ``pause`` seconds after so many releases; return the releases in all."""
    reading, writing = os.pipe()
    paths = [name_for(names, number * workers + worker) for worker in range(workers)]
    children = [start(lambda path=path: work(path, writing)) for path in paths]  # type: ignore[misc]
    os.close(writing)
    released = 0
    while released < releases:
        seen = len(os.read(reading, 1))
        if not seen:
            raise RuntimeError("the workers ended before they could be killed")
        released += seen
    time.sleep(pause)
    codes = [kill(child) for child in children]
    while chunk := os.read(reading, 65536):
        released += len(chunk)
    os.close(reading)
    if set(codes) != {-signal.SIGKILL}:
        raise RuntimeError(f"the workers ended before they could be killed: {codes}")
    return released


@dataclass
class Toll:
    """What a loop saw: of its rounds, how many broke which rule."""

    rounds: int = 0
    kills: int = 0
    released: int = 0
    recorded: int = 0
    under_recorded: int = 0
    over_recorded: int = 0
    damaged: int = 0
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        return self.rounds > 0 and self.under_recorded == self.over_recorded == self.damaged == 0

    def __str__(self) -> str:
        return (
            f"{self.rounds} rounds, {self.kills} kills, {self.released} released, {self.recorded} recorded: "
            f"{self.under_recorded} under-recorded, {self.over_recorded} over-recorded, {self.damaged} damaged; "
            f"{self.seconds:.1f} s"
        )


def kill_loop(
    directory: Path | Server,
    work: Worker,
    rounds: int,
    *,
    workers: int = 1,
    seed: int = 0,
    releases: tuple[int, int] = (1, 5),
    longest_pause: float = LONGEST_PAUSE,
) -> Toll:
    """Kill workers at random times, of a seed, and check their ledger after each round; one serves fifty rounds.

    ``work`` gets the ledger's path and where to write a byte for a release.  In each round the kill comes a random
    pause, in seconds, after so many ``releases``, at fewest and most; (0, 0) counts the pause from the fork.
    """
    generator = np.random.default_rng(seed)
    toll = Toll()
    begun = time.perf_counter()
    names: Sequence[Place] = ()
    path: Place = ""
    before = 0
    for number in range(rounds):
        if number % ROUNDS_A_FILE == 0:
            path = directory.new() if isinstance(directory, Server) else directory / "fire.ledger"
            remove(path)
            Ledger.create(path, budget=PureDP(1000), accept_large_epsilon=True).close()
            names, before = names_of(path), 0
        awaited = int(generator.integers(releases[0], releases[1] + 1))
        pause = float(generator.uniform(0, longest_pause))
        released = killed_round(names, work, pause, awaited, workers, number)
        if isinstance(directory, Server):
            directory.settle()  # a commit that was under way when its client died
        with Ledger.open(path) as ledger:
            found = ledger.verify()
        recorded = found.entries - before
        before = found.entries
        toll.rounds += 1
        toll.kills += workers
        toll.released += released
        toll.recorded += recorded
        toll.damaged += not found.ok
        toll.under_recorded += recorded < released
        toll.over_recorded += recorded > released + workers  # each may have died between its spend and release
    remove(path)
    toll.seconds = time.perf_counter() - begun
    return toll


def remove(path: Place) -> None:
    """Remove a ledger's file under all of its names, and its witness."""
    if isinstance(path, str):
        return
    with suppress(FileNotFoundError):
        first = json.loads(path.read_bytes().partition(b"\n")[0])["hash"]
        if (folder := folder_of()) is not None:
            Witness(folder, first).path.unlink(missing_ok=True)
    mounted = path.parent / "mounted" / path.name
    if mounted.exists() and path.exists() and mounted.samefile(path):
        subprocess.run(["umount", "--lazy", str(mounted)], check=True)
    for name in (path, *(path.parent / folder / path.name for folder in SECOND_NAMES)):
        name.unlink(missing_ok=True)


def race(path: Place, losses: list[Loss], processes: int, attempts: int) -> list[int]:
    """Let processes ask for spends at once, ``attempts`` each, the losses in turn; return the grants of each.

    Half of them use second names of the ledger, which ``remove`` takes away.
    """
    gate, pipes, names = os.pipe(), [os.pipe() for _ in range(processes)], names_of(path)

    def work(number: int) -> None:
        os.close(gate[1])
        os.read(gate[0], 1)  # all set off when the parent closes the gate
        with Ledger.open(name_for(names, number)) as ledger:
            for attempt in range(attempts):
                try:
                    ledger.charge(losses[(number + attempt) % len(losses)], task=f"process {number}")
                except BudgetExceededError:
                    continue
                os.write(pipes[number][1], b"x")

    children = [start(lambda number=number: work(number)) for number in range(processes)]  # type: ignore[misc]
    os.close(gate[0])
    os.close(gate[1])
    codes = [finish(child, 600) for child in children]  # many wait for one lock, on a machine that may be busy
    grants = []
    for reading, writing in pipes:
        os.close(writing)
        grants.append(len(os.read(reading, 65536)))
        os.close(reading)
    if codes != [0] * processes:
        raise RuntimeError(f"a racing process failed: {codes}")
    return grants
