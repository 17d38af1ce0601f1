"""Time and memory of the independence tests on many rows.

    python -m benchmarks independence_speed [workers]
"""

from __future__ import annotations

import resource
import sys
import time

import dpcausal as dpc

SIZES = (10_000, 100_000, 1_000_000)
MOST_SECONDS, MOST_GIB, MOST_GROWTH = 60.0, 2.0, 13.0


def seconds(n: int, dimensions: int, workers: int, method: str) -> tuple[float, float]:
    """Return the wall and the processor's seconds of one test."""
    data = dpc.simulate.smooth_design(n, dimensions=dimensions, seed=1)
    loss = dpc.PureDP(1)
    table = dpc.Table(data.columns, data.schema, dpc.Ledger.in_memory(loss), missing="impute")
    way = dpc.methods.Gcm(workers=workers) if method == "gcm" else method
    start, busy = time.perf_counter(), time.process_time()
    dpc.ci_test(table, "x", "y", given=data.given, loss=loss, method=way)
    return time.perf_counter() - start, time.process_time() - busy


def main(arguments: list[str]) -> int:
    """Return 0 if the targets for a million rows and five given columns are met."""
    workers = int(arguments[0]) if arguments else 2
    seconds(2_000, 1, 1, "gcm")  # what is loaded once
    print(f"epsilon 1, {workers} workers; wall and processor seconds\n")
    wall: dict[int, float] = {}
    for dimensions in (1, 5):
        for n in SIZES:
            found, busy = seconds(n, dimensions, workers, "gcm")
            if dimensions == 5:
                wall[n] = found
            print(f"gcm         d = {dimensions}, n = {n:>9,d}  {found:7.2f} s  {busy:7.2f} s", flush=True)
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    growth = wall[SIZES[2]] / wall[SIZES[1]]
    print(f"\npeak memory {gib:.2f} GiB; from 100,000 to 1,000,000 rows with d = 5 time grows {growth:.1f} times")
    return int(not (wall[SIZES[2]] <= MOST_SECONDS and gib <= MOST_GIB and growth <= MOST_GROWTH))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
