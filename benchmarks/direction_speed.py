"""Seconds and memory of ``direction`` up to a million rows, each measured in a fresh process.

    python -m benchmarks direction_speed [--quick]

The wall and processor seconds are those of one call at ε = 1 with the default options and OpenDP's noise; ``start`` is
what the process took before it: imports, compiled code from its cache, a first call on 200 rows.  The memory is the
largest that the whole process held, the two columns included.  A busy machine lengthens the wall seconds, not the
processor's, so that the last lines compare those with the targets: of the verdict, which is what ``lsnm`` is for
everyone, and of score HSIC, its start included.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import dpcausal as dpc
from benchmarks.targets import report

QUICK = ("lsnm", "hsic")
SCORES = ("lsnm", "hsic", "spearman", "kendall", "iqr")
PROTECTED = ("test", "everyone")
SIZES = (200, 1_000, 10_000, 100_000, 1_000_000)
MOST_GIB = 2.0
MOST_SECONDS = {("lsnm", 100_000): 5.0, ("lsnm", 1_000_000): 30.0, ("hsic", 1_000_000): 30.0}


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def ask(rows: int, score: str, protect: str) -> tuple[float, float]:
    """Return wall and processor seconds of one call, the making of the data left out."""
    pair = dpc.simulate.anm_pair(rows, seed=1)
    loss = dpc.PureDP(1)
    table = dpc.Table(pair.columns, pair.schema, dpc.Ledger.in_memory(loss, protect=protect), missing="impute")
    wall, processor = time.perf_counter(), processor_seconds()
    dpc.direction(table, "x", "y", score=score, protect=protect, loss=loss)  # type: ignore[arg-type]
    return time.perf_counter() - wall, processor_seconds() - processor


def measure(rows: int, score: str, protect: str) -> None:
    """Measure in this process and print the figures as JSON."""
    ask(200, score, protect)
    start = processor_seconds()
    wall, processor = ask(rows, score, protect)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps({"start": start, "wall": wall, "processor": processor, "gib": peak / 2**30}))


def fresh(rows: int, score: str, protect: str) -> dict[str, float]:
    """Measure in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.direction_speed", "--one", str(rows), score, protect]
    done = subprocess.run(
        command, cwd=Path(__file__).resolve().parents[1], check=True, capture_output=True, text=True
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> int:
    """Print the table and return 0 if all targets hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the verdict and score HSIC only")
    parser.add_argument("--one", nargs=3, metavar=("ROWS", "SCORE", "PROTECT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        rows, score, protect = arguments.one
        measure(int(rows), score, protect)
        return 0
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load before the run {load:.1f}\n")
    print(f"{'score':<10}{'protect':<10}{'rows':>10}{'wall s':>9}{'cpu s':>9}{'peak GiB':>10}{'start cpu s':>13}")
    targets: dict[str, bool] = {}
    for score in QUICK if arguments.quick else SCORES:
        for protect in PROTECTED[score == "lsnm" :]:  # the verdict is for everyone
            for rows in SIZES:
                figures = fresh(rows, score, protect)
                print(
                    f"{score:<10}{protect:<10}{rows:>10,}{figures['wall']:>9.2f}{figures['processor']:>9.2f}"
                    f"{figures['gib']:>10.2f}{figures['start']:>13.2f}",
                    flush=True,
                )
                if (score, rows) in MOST_SECONDS:
                    start, most = figures["start"] * (score == "hsic"), MOST_SECONDS[score, rows]
                    used = start + figures["processor"]
                    where = f"{score}, {rows:,} rows, protect={protect!r}"
                    targets[f"{where}: {used:.1f} s of processor, at most {most:.0f}"] = used <= most
                    targets[f"{where}: {figures['gib']:.2f} GiB, at most {MOST_GIB:.0f}"] = figures["gib"] <= MOST_GIB
    return report(targets)


if __name__ == "__main__":
    sys.exit(main())
