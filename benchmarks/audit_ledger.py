"""Audit of the ledger under fire: workers killed with -9 at random times, and races for one budget.

    python -m benchmarks.audit_ledger [--rounds 10000] [--seed 0] [--directory DIRECTORY]

Of the rounds, half kill one process and the rest three at once; a tenth as many are added that kill a process while
it opens, and a twentieth as many (20 at least) with a control that releases before it spends.  One race is run for
every hundred rounds (4 at least).  Half of all processes use a second name of the ledger: a hard link and, where the
machine allows one, a bind mount.  DIRECTORY is where the ledgers are written: by default in memory where that is
possible, since a kill loses nothing that the kernel holds.  Power that fails is not part of it.

The exit code is 0 if no spend was under-recorded, no budget overdrawn, and the control was caught.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import PureDP
from tests.privacy.kill_loops import (
    STEP,
    Toll,
    kill_loop,
    names_of,
    race,
    release_then_spend,
    remove,
    spend_then_release,
)

PROCESSES, ATTEMPTS = 6, 200
BUDGETS = {PureDP(0.3): 300, PureDP(0.7): 700, PureDP(1.1): 1100, PureDP(2): 1200}
"""Budgets to race for, and the spends of 0.001 that each must grant of the 1,200 that are asked for."""


def killed(directory: Path, rounds: int, seed: int) -> list[Toll]:
    """Kill workers that spend before they release, and say what was seen."""
    single, together, opening = rounds // 2, rounds - rounds // 2, max(1, rounds // 10)
    tolls = [
        kill_loop(directory, spend_then_release, single, seed=seed),
        kill_loop(directory, spend_then_release, together, workers=3, seed=seed + 1),
        kill_loop(directory, spend_then_release, opening, seed=seed + 2, releases=(0, 0), longest_pause=0.02),
    ]
    for name, toll in zip(("one process", "three at once", "while it opens"), tolls, strict=True):
        print(f"{name:<15} {toll}", flush=True)
    return tolls


def raced(directory: Path, races: int) -> tuple[int, int]:
    """Race for budgets in turn; return how many budgets were overdrawn, and how many not granted in full."""
    path = directory / "race.ledger"
    above = below = 0
    begun = time.perf_counter()
    for number in range(races):
        budget, cap = list(BUDGETS.items())[number % len(BUDGETS)]
        remove(path)
        Ledger.create(path, budget=budget).close()
        granted = sum(race(path, [STEP], PROCESSES, ATTEMPTS))
        with Ledger.open(path) as ledger:
            found = ledger.verify()
        above += granted > cap or found.entries > cap or found.entries < granted or not found.ok
        below += granted < cap
    remove(path)
    seconds = time.perf_counter() - begun
    print(
        f"races           {races} of {PROCESSES} processes x {ATTEMPTS} spends: {above} above the budget, "
        f"{below} below it; {seconds:.1f} s",
        flush=True,
    )
    return above, below


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit_ledger", description="Kill and race ledgers.")
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--directory", type=Path)
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    directory = Path(tempfile.mkdtemp(dir=options.directory or memory))
    begun = time.perf_counter()
    print(f"{options.rounds} rounds of kills and more, seed {options.seed}, in {directory.parent}")
    try:
        Ledger.create(directory / "names.ledger", budget=STEP).close()
        kinds = zip(("its path", "a hard link", "a bind mount"), names_of(directory / "names.ledger"), strict=False)
        print(f"each ledger is used by {', '.join(kind for kind, _ in kinds)}\n", flush=True)
        remove(directory / "names.ledger")
        tolls = killed(directory, options.rounds, options.seed)
        control = kill_loop(directory, release_then_spend, max(20, options.rounds // 20), seed=options.seed + 3)
        caught = control.under_recorded / control.rounds
        print(f"{'control':<15} {control}", flush=True)
        above, below = raced(directory, max(len(BUDGETS), options.rounds // 100))
    finally:
        shutil.rmtree(directory)
    kills = sum(toll.kills for toll in tolls)
    lost = sum(toll.under_recorded for toll in tolls)
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    processor = sum(used.ru_utime + used.ru_stime for used in usage)
    print(f"\n{kills} kills in all; {time.perf_counter() - begun:.0f} s, {processor:.0f} s of processor\n")
    targets = {
        f"0 of {sum(toll.rounds for toll in tolls)} rounds under-recorded: {lost}": lost == 0,
        "no ledger damaged; at most one spend a kill without its release": all(toll.clean for toll in tolls),
        f"the control caught in at least 90 % of its rounds: {caught:.1%}": caught >= 0.9,
        f"races: none above its budget ({above}), none short of it ({below})": above == below == 0,
    }
    for target, met in targets.items():
        print(f"{'met   ' if met else 'MISSED'}  {target}")
    return 0 if all(targets.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
