"""Audit of the ledger under fire: workers killed with -9 at random times, and races for one budget.

    python -m benchmarks audit_ledger --rounds 10000

Of the rounds, half kill one process and the rest three at once; a tenth as many are added that kill a process while
it opens, and a twentieth as many (20 at least) with a control that releases before it spends.  One race is run for
every hundred rounds (4 at least).  Half of all processes use a second name of the ledger: a hard link and, where the
machine allows one, a bind mount.  ``--directory`` is where the ledgers are written: by default in memory where that is
possible, since a kill loses nothing that the kernel holds.  Power that fails is not part of it.  ``--store postgres``
audits ledgers in a database under two addresses, on a server made for it without fsync.

Targets: no spend is under-recorded, no budget overdrawn, the control is caught, and a ledger of 100,000 spends opens
in two seconds of processor time.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.run import Report, benchmark
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import PureDP
from tests.privacy import kill_loops
from tests.privacy.postgres import NEEDED, Server, programs, server

PROCESSES, ATTEMPTS = 6, 200
BUDGETS = {PureDP(0.3): 300, PureDP(0.7): 700, PureDP(1.1): 1100, PureDP(2): 1200}
"""Budgets to race for, and the spends of 0.001 that each must grant of the 1,200 that are asked for."""


def killed(ground: Path | Server, rounds: int, seed: int) -> list[kill_loops.Toll]:
    """Kill workers that spend before they release."""
    single, together, opening = rounds // 2, rounds - rounds // 2, max(1, rounds // 10)
    slower = 10 if isinstance(ground, Server) else 1
    pause, of_opening = slower * kill_loops.LONGEST_PAUSE, slower * 0.02
    rounds_of = ({"rounds": single, "seed": seed, "longest_pause": pause},
                 {"rounds": together, "seed": seed + 1, "longest_pause": pause, "workers": 3},
                 {"rounds": opening, "seed": seed + 2, "longest_pause": of_opening, "releases": (0, 0)})  # fmt: skip
    tolls = [kill_loops.kill_loop(ground, kill_loops.spend_then_release, **one) for one in rounds_of]
    for name, toll in zip(("one process", "three at once", "while it opens"), tolls, strict=True):
        print(f"{name:<15} {toll}", flush=True)
    return tolls


def raced(ground: Path | Server, races: int) -> tuple[int, int]:
    """Race for budgets in turn; return how many budgets were overdrawn, and how many not granted in full."""
    above = below = 0
    for number in range(races):
        path = ground.new() if isinstance(ground, Server) else ground / "race.ledger"
        budget, cap = list(BUDGETS.items())[number % len(BUDGETS)]
        kill_loops.remove(path)
        Ledger.create(path, budget=budget).close()
        granted = sum(kill_loops.race(path, [kill_loops.STEP], PROCESSES, ATTEMPTS))
        with Ledger.open(path) as ledger:
            check = ledger.verify()
        above += granted > cap or not granted <= check.entries <= cap or not check.ok
        below += granted < cap
        kill_loops.remove(path)
    return above, below


def opened(entries: int) -> float:
    """Return the processor time, in seconds, that a file of so many spends takes to open."""
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "long.ledger"
        head = kill_loops.long_ledger(path, entries)
        begun = time.process_time()
        Ledger.open(path, head).close()
        return time.process_time() - begun


@contextmanager
def ground_for(store: str, directory: str) -> Iterator[Path | Server]:
    """Where ledgers of a store are made, and what their names are is printed."""
    if store == "postgres":
        folder = programs()
        if folder is None:
            raise SystemExit(f"this audit needs {NEEDED}")
        with server(folder) as running:
            print("each ledger is used by two addresses\n", flush=True)
            yield running
        return
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=directory or memory) as made:
        path = Path(made) / "names.ledger"
        Ledger.create(path, budget=kill_loops.STEP).close()
        kinds = zip(("its path", "a hard link", "a bind mount"), kill_loops.names_of(path), strict=False)
        print(f"each ledger is used by {', '.join(kind for kind, _ in kinds)}\n", flush=True)
        kill_loops.remove(path)
        yield Path(made)


@benchmark("audit", code="dpcausal.privacy.ledger", rounds=10_000, seed=0, directory="", store="file")
def main(report: Report) -> None:
    given = report.given
    with ground_for(given.store, given.directory) as ground:
        tolls = killed(ground, given.rounds, given.seed)
        few = max(20, given.rounds // 20)
        control = kill_loops.kill_loop(ground, kill_loops.release_then_spend, few, seed=given.seed + 3)
        print(f"{'control':<15} {control}", flush=True)
        above, below = raced(ground, max(len(BUDGETS), given.rounds // 100))
    lost, caught = sum(toll.under_recorded for toll in tolls), control.under_recorded / control.rounds
    report.target(f"0 of {sum(toll.rounds for toll in tolls)} rounds under-recorded: {lost}", lost == 0)
    clean = all(toll.clean for toll in tolls)
    report.target("no ledger damaged; at most one spend a kill without its release", clean)
    report.target(f"the control caught in at least 90 % of its rounds: {caught:.1%}", caught >= 0.9)
    report.target(f"races: none above its budget ({above}), none short of it ({below})", above == below == 0)
    seconds = opened(100_000)
    report.target(f"100,000 spends open in 2 s of processor time: {seconds:.2f}", seconds <= 2)
