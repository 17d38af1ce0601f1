"""A hundred thousand donors over sixty periods from the long frame, a million over forty as arrays: time and memory."""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

import dpcausal as dpc
from benchmarks.targets import report

DONORS, BEFORE, AFTER = 100_000, 50, 10


def million() -> int:
    """Ask a million donors, with `million`, in a process of its own: memory is that of the process."""
    made = dpc.simulate.factor_panel(1_000_000, before=34, after=6, effect=0.2, seed=1)
    loss, start = dpc.ApproxDP(1, 1e-6), time.perf_counter()
    panel = dpc.Panel.from_arrays(made.donors, made.target, start=34, bounds=made.bounds,
                                  ledger=dpc.Ledger.in_memory(loss, unit="unit"))  # fmt: skip
    answer = dpc.synthetic_control(panel, loss=loss)
    spent, most = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"1,000,000 donors x 40 periods: {spent:.1f} s, {most:.2f} GiB at most; effect {answer.att:.3f}")
    return report({f"at most 60 s, here {spent:.1f}": spent <= 60, f"at most 2 GiB, here {most:.2f}": most <= 2})


def main() -> int:
    made = dpc.simulate.factor_panel(DONORS, before=BEFORE, after=AFTER, effect=0.2, seed=1)
    T = BEFORE + AFTER
    rows = np.vstack([made.target, made.donors])
    frame = {
        "unit": np.repeat(np.array([f"u{k:06d}" for k in range(DONORS + 1)]), T),
        "year": np.tile(np.arange(1960, 1960 + T), DONORS + 1),
        "sales": rows.ravel(),
    }
    try:
        import polars

        long = polars.DataFrame(frame)
    except ImportError:
        long = frame
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    loss = dpc.ApproxDP(1, 1e-6)
    start, busy = time.perf_counter(), time.process_time()
    panel = dpc.Panel(long, unit="unit", time="year", outcome="sales", target="u000000", start=1960 + BEFORE,
                      bounds=made.bounds, ledger=dpc.Ledger.in_memory(loss, unit="unit"))  # fmt: skip
    ready = time.perf_counter()
    answer = dpc.synthetic_control(panel, loss=loss, method="factor")
    end, spent = time.perf_counter(), time.process_time() - busy
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(answer.summary())
    print(f"\n{DONORS:,} donors x {T} periods, {len(frame['unit']):,} rows: panel {ready - start:.1f} s, "
          f"answer {end - ready:.1f} s, {spent:.1f} s of the processor, "
          f"{most:.2f} GiB at most ({before:.2f} before the panel)")  # fmt: skip
    return report({
        f"at most 30 s of the processor from the long frame, here {spent:.1f}": spent <= 30,
        f"at most 4 GiB, here {most:.2f}": most <= 4,
        f"the effect of {made.effect:g} is in the interval": answer.interval is not None
        and answer.interval[0] <= 0.2 <= answer.interval[1],
    })  # fmt: skip


if __name__ == "__main__":
    sys.exit(million() if "million" in sys.argv[1:] else main())
