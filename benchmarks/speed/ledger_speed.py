"""Speed of the ledger: a spend, opening and verifying a long ledger, and growth with its length."""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.run import Report, options
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
    entry = {"task": "direction", "loss": loss_text(LOSS), "zcdp": None, "unit": "row", "relation": "replace-one"}
    entry |= {"detail": {"columns": ["x", "y"]}, "once": {}, "caveats": ""}
    lines = []
    for number in range(1, count + 1):
        lines.append(sealed("spend", entry | {"number": number, "previous": head}))
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


def main(arguments: list[str], name: str = "ledger_speed", **changed: Any) -> int:
    """``--folder``: where the ledgers are written; a spend waits for its disk."""
    given = options(__doc__, arguments, **{"folder": ""} | changed)
    report = Report(name, "speed", given, arguments, code=["dpcausal.privacy.ledger"], seeds="none: nothing is drawn")
    with tempfile.TemporaryDirectory(dir=given.folder or None) as made:
        for count in (0, 1_000, 10_000, 100_000):
            path = Path(made) / f"{count}.ledger"
            fill(path, count)
            taken, disk = spends(path, 1000)
            p50, p99, most = np.quantile(taken, [0.5, 0.99, 1]).tolist()
            values = {"p50 ms": p50, "p99 ms": p99, "most ms": most, "p99 ms of the disk": np.quantile(disk, 0.99)}
            report.add("spends", values, n=count, runs=1000, method="")
            if not count:
                continue
            start = time.perf_counter()
            ledger = Ledger.open(path)
            opened = time.perf_counter()
            found = ledger.verify()
            values = {"seconds to open": opened - start, "seconds to verify": time.perf_counter() - opened}
            ledger.close()
            report.add("a long ledger", values | {"MiB": path.stat().st_size / 2**20}, n=found.entries, method="")
            report.target(f"{found.entries:,} entries are as they were written", found.ok)
        seconds, granted = race(Path(made) / "race.ledger", 6)
        report.add("6 processes, budget 0.3, spends of 0.001", {"seconds": seconds, "granted": granted}, method="")
        report.target(f"{granted} granted, 300", granted == 300)
    return report.finish()
