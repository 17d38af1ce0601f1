"""Time and memory of the independence tests on many rows.

    python -m benchmarks independence_speed [workers]

The default with one number given at 100,000, 1,000,000 and 10,000,000 rows, each in a process of its own for its peak
memory; then blocks, with one and five numbers given.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import dpcausal as dpc
from benchmarks.targets import report

SIZES = (10_000, 100_000, 1_000_000)
MOST_SECONDS, MOST_GIB, MOST_GROWTH = 60.0, 2.0, 13.0
DEFAULT = {100_000: 1.0, 1_000_000: 10.0, 10_000_000: 120.0}
"""Most seconds of the default with one number given."""
MOST_BYTES = 400
"""A row, of the default at most, beside what the fewest rows take."""


def seconds(n: int, dimensions: int, workers: int, method: str) -> tuple[float, float]:
    """Return the wall and the processor's seconds of one test."""
    data = dpc.simulate.smooth_design(n, dimensions=dimensions, seed=1)
    loss = dpc.PureDP(1)
    table = dpc.Table(data.columns, data.schema, dpc.Ledger.in_memory(loss), missing="impute")
    way = dpc.methods.Gcm(workers=workers) if method == "gcm" else method
    start, busy = time.perf_counter(), time.process_time()
    dpc.ci_test(table, "x", "y", given=data.given, loss=loss, method=way)
    return time.perf_counter() - start, time.process_time() - busy


def peak() -> float:
    """Return this process's peak memory in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def default() -> dict[str, bool]:
    """Print what the default takes, and return which targets it met."""
    met, sizes = {}, dict[int, float]()
    for n, most in DEFAULT.items():
        found = subprocess.run(
            [sys.executable, "-m", "benchmarks.independence_speed", "--default", str(n)],
            capture_output=True, text=True, check=True,
        ).stdout.split()  # fmt: skip
        wall, busy, size = map(float, found)
        print(f"auto        d = 1, n = {n:>10,d}  {wall:7.2f} s  {busy:7.2f} s  {size / 2**30:.2f} GiB", flush=True)
        met[f"auto, {n:,} rows in at most {most:g} s"] = wall <= most
        sizes[n] = size
    least, *more = sizes
    met |= {
        f"auto, {n:,} rows in at most {MOST_BYTES} bytes each": sizes[n] - sizes[least] <= MOST_BYTES * (n - least)
        for n in more
    }
    return met


def main(arguments: list[str]) -> int:
    """Return 0 if the targets for the default, and for blocks of a million rows and five given columns, are met."""
    if arguments[:1] == ["--default"]:
        seconds(2_000, 1, 1, "auto")
        print(*seconds(int(arguments[1]), 1, 1, "auto"), peak())
        return 0
    workers = int(arguments[0]) if arguments else 2
    seconds(2_000, 1, 1, "gcm")  # what is loaded once
    print(f"epsilon 1, {workers} workers for gcm; wall and processor seconds\n")
    met = default()
    wall: dict[int, float] = {}
    for dimensions in (1, 5):
        for n in SIZES:
            found, busy = seconds(n, dimensions, workers, "gcm")
            if dimensions == 5:
                wall[n] = found
            print(f"gcm         d = {dimensions}, n = {n:>10,d}  {found:7.2f} s  {busy:7.2f} s", flush=True)
    growth = wall[SIZES[2]] / wall[SIZES[1]]
    met[f"gcm, d = 5, 1,000,000 rows in at most {MOST_SECONDS:g} s"] = wall[SIZES[2]] <= MOST_SECONDS
    met[f"gcm, d = 5, ten times the rows in {growth:.1f} of the time, at most {MOST_GROWTH:g}"] = growth <= MOST_GROWTH
    met[f"peak memory of these at most {MOST_GIB:g} GiB"] = peak() <= MOST_GIB * 2**30
    return report(met)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
