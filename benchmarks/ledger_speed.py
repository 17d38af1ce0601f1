"""Speed of the ledger: a spend, opening and verifying a long ledger, and growth with its length.

    python benchmarks/ledger_speed.py [DIRECTORY]

DIRECTORY is where the ledgers are written, by default a temporary one; a spend waits for its disk.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from dpcausal.errors import BudgetExceededError
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.ledger_lines import sealed
from dpcausal.privacy.loss import ApproxDP, PureDP, loss_text

LOSS = PureDP(0.001)
BUDGET = ApproxDP(100_000, 1e-6)


def fill(path: Path, count: int) -> None:
    """Write the lines that ``count`` spends would write, at once."""
    with Ledger.create(path, budget=BUDGET, accept_large_epsilon=True) as ledger:
        head = ledger.head
    told = {"task": "direction", "loss": loss_text(LOSS), "zcdp": None, "unit": "row", "relation": "replace-one"}
    told |= {"detail": {"columns": ["x", "y"]}, "once": {}, "caveats": ""}
    lines = []
    for number in range(1, count + 1):
        lines.append(sealed("spend", told | {"number": number, "previous": head}))
        head = json.loads(lines[-1])["hash"]
    with path.open("ab") as file:
        file.writelines(lines)


def spends(path: Path, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the milliseconds of each of ``count`` spends, and of 400 bytes put on the same disk in between."""
    times, disk = [], []
    with Ledger.open(path) as ledger, path.with_suffix(".bare").open("ab", buffering=0) as bare:
        for _ in range(count):
            start = time.perf_counter()
            ledger.charge(LOSS, task="direction", detail={"columns": ["x", "y"]})
            between = time.perf_counter()
            bare.write(bytes(400))
            os.fsync(bare.fileno())
            times.append(1e3 * (between - start))
            disk.append(1e3 * (time.perf_counter() - between))
    return np.array(times), np.array(disk)


def race(path: Path, workers: int) -> tuple[float, int]:
    """Return the seconds in which that many processes use up a budget of 0.3, and the spends on record."""
    Ledger.create(path, budget=PureDP(0.3)).close()
    start = time.perf_counter()
    children = []
    for _ in range(workers):
        child = os.fork()
        if child == 0:
            with Ledger.open(path) as ledger:
                try:
                    while True:
                        ledger.charge(LOSS, task="race")
                except BudgetExceededError:
                    os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    seconds = time.perf_counter() - start
    with Ledger.open(path) as ledger:
        return seconds, ledger.verify().entries


def main(directory: Path) -> None:
    print("spends, milliseconds            p50     p99     max    p99 of the disk alone")
    for count in (0, 1_000, 10_000, 100_000):
        path = directory / f"{count}.ledger"
        fill(path, count)
        taken, disk = spends(path, 1000)
        p50, p99, most = np.quantile(taken, [0.5, 0.99, 1])
        beside = np.quantile(disk, 0.99)
        print(f"after {count:7,d} entries       {p50:7.2f} {p99:7.2f} {most:7.2f} {beside:7.2f}", flush=True)
    for count in (1_000, 10_000, 100_000):
        path = directory / f"{count}.ledger"
        start = time.perf_counter()
        ledger = Ledger.open(path)
        opened = time.perf_counter()
        found = ledger.verify()
        end = time.perf_counter()
        ledger.close()
        size = path.stat().st_size / 2**20
        words = f"open {opened - start:.2f} s, verify {end - opened:.2f} s, {size:.1f} MiB, ok: {found.ok}"
        print(f"{found.entries:,d} entries: {words}")
    seconds, granted = race(directory / "race.ledger", 6)
    print(f"6 processes, budget 0.3, spends of 0.001: {granted} granted in {seconds:.2f} s")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
