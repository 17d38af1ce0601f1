"""Counts and moments of many rows: CPU, time and peak memory beside the engine's own sums without privacy.

    python -m benchmarks engines --rows 1e7 1e8 --engines duckdb polars --whats counts moments

Rows lie in a folder of Parquet files, ten million a file; more rows are links to the one file, so its pages are warm
and the disk is not measured.  Each line is a process of its own, on as many threads as there are cores.

own      the engine counts 6,561 cells of 8 columns, or sums the 65 products and means of 10 columns
pass     one pass of the library: the same cells, or one release's exact sums (rows shortened, on the grid)
call     ``discover(method="table")`` or ``discover(method="moments")``: ledger, two passes for moments, noise, graph
"""

import itertools
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.run import Report, options

FILE_ROWS = 10_000_000
NUMBERS, LEVELS = [f"x{i}" for i in range(10)], [f"g{i}" for i in range(8)]
SCHEMA = dpc.Schema({name: dpc.Bounded(-5, 5) for name in NUMBERS} | {name: dpc.Levels([0, 1, 2]) for name in LEVELS})
LOSS = dpc.ApproxDP(1, 1e-9)
TARGETS = {"counts": 1.4, "moments": 1.3}


def written(folder: Path, rows: int) -> Path:
    """Return a folder of files of the rows in all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    size = min(rows, FILE_ROWS)
    one = folder / f"one-{size}.parquet"
    if not one.exists():
        rng = np.random.default_rng(1)
        with pq.ParquetWriter(one, schema(pa), compression="zstd") as writer:
            for start in range(0, size, 1_000_000):
                many = min(1_000_000, size - start)
                common = rng.normal(size=many)
                columns: dict[str, Any] = {name: 0.5 * common + rng.normal(size=many) for name in NUMBERS}
                columns |= {name: rng.integers(0, 3, many, dtype=np.int8) for name in LEVELS}
                writer.write_table(pa.table(columns, schema=schema(pa)))
    home = folder / f"rows-{rows}"
    home.mkdir(exist_ok=True)
    for place in range(-(-rows // size)):
        link = home / f"part-{place:03}.parquet"
        if not link.exists():
            os.link(one, link)
    return home


def schema(pa: Any) -> Any:
    return pa.schema([(name, pa.float64()) for name in NUMBERS] + [(name, pa.int8()) for name in LEVELS])


def frame_of(engine: str, home: Path) -> Any:
    if engine == "duckdb":
        import duckdb

        return duckdb.connect().read_parquet(f"{home}/*.parquet")
    if engine == "polars":
        import polars

        return polars.scan_parquet(f"{home}/*.parquet")
    return home


def own(engine: str, what: str, home: Path) -> None:
    """Let the engine do it without privacy."""
    frame: Any = frame_of(engine, home)
    pairs = [(a, b) for place, a in enumerate(NUMBERS) for b in NUMBERS[place:]]
    if engine == "duckdb":
        keys = ", ".join(LEVELS)
        sums = ", ".join([f"sum({a} * {b})" for a, b in pairs] + [f"sum({a})" for a in NUMBERS])
        frame.aggregate(f"{keys}, count(*)", keys).fetchall() if what == "counts" else frame.aggregate(sums).fetchall()
        return
    import polars as pl

    frame = frame_of("polars", home)
    if what == "counts":
        frame.group_by(LEVELS).len().collect(engine="streaming")
        return
    products = [(pl.col(a) * pl.col(b)).sum().alias(f"{a}{b}") for a, b in pairs]
    frame.select(products + [pl.col(a).sum() for a in NUMBERS]).collect(engine="streaming")


def ours(engine: str, what: str, how: str, home: Path) -> tuple[float, float]:
    """Do it by the library; return when the table was made."""
    from dpcausal.data.counts import counts_of
    from dpcausal.discovery.methods import moments as room
    from dpcausal.statistics.moments import grid_bits

    table = dpc.Table(frame_of(engine, home), SCHEMA, dpc.Ledger.in_memory(LOSS))
    made = time.process_time(), time.perf_counter()
    if how == "call" and what == "counts":
        dpc.discover(table, columns=LEVELS, method="table", loss=LOSS)
    elif how == "call":
        dpc.discover(table, columns=NUMBERS, method="moments", loss=LOSS)
    elif what == "counts":
        counts_of(table, LEVELS)
    else:
        units, radius = room.Units.of(table, tuple(NUMBERS)), room.radius_of(10, table.n, dpc.NoPrivacy())
        kernel = room.Products(units, np.full(10, 0.5), np.full(10, 0.11), radius, grid_bits(table.n, radius))
        table.records(NUMBERS).sum(kernel)
    return made


def one(engine: str, what: str, how: str, home: Path) -> dict[str, float]:
    """Do one thing in this process and return what it took."""
    import_all(engine)
    start = time.process_time(), time.perf_counter()
    if how == "own":
        own(engine, what, home)
    else:
        start = ours(engine, what, how, home)
    return {
        "cpu": time.process_time() - start[0], "wall": time.perf_counter() - start[1],
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }  # fmt: skip


def import_all(engine: str) -> None:
    """Import what is imported late, so that it is not measured."""
    import pandas  # noqa: F401
    import scipy.special  # noqa: F401

    if engine == "duckdb":
        import duckdb  # noqa: F401
    else:
        import polars  # noqa: F401


def measured(engine: str, what: str, how: str, home: Path) -> dict[str, float]:
    arguments = [sys.executable, "-m", "benchmarks", "engines", "--one", engine, what, how, str(home)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def exponent(points: list[tuple[int, float]]) -> float | None:
    """Return the slope of log CPU in log rows between the fewest and the most rows."""
    (few, least), (many, most) = points[0], points[-1]
    return None if many == few else float(np.log(most / least) / np.log(many / few))


def main(arguments: list[str], name: str = "engines", **changed: Any) -> int:
    """``--one``: engine, what, how and folder, in this process."""
    defaults = {"rows": [1_000_000, 10_000_000], "folder": "/tmp/engines", "engines": ["duckdb", "polars"],
                "whats": ["counts", "moments"], "hows": ["own", "pass", "call"], "keep": False, "one": []}  # fmt: skip
    given = options(__doc__, arguments, **defaults | changed)
    if given.one:
        engine, what, how, home = given.one
        print(json.dumps(one(engine, what, how, Path(home))))
        return 0
    report = Report(name, "speed", given, arguments, code=["dpcausal.data.counts"], seeds="data of seed 1")
    lines: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    for rows, engine, what in itertools.product(given.rows, given.engines, given.whats):
        home, base = written(Path(given.folder), rows), None
        for how in given.hows:
            took = measured(engine, what, how, home)
            base = took["cpu"] if how == "own" else base
            lines.setdefault((engine, what, how), []).append((rows, took["cpu"]))
            took |= {"of own": took["cpu"] / base} if base else {}
            report.add(f"{what}, {how}", took, n=rows, method=engine)
            if how == "pass" and rows >= 10**7:
                words = f"{engine}, {what}, {rows:,} rows"
                report.target(f"{words}: {took['peak']:.2f} GB, at most 2", took["peak"] <= 2)
                report.target(f"{words}: at most {TARGETS[what]} of own", took.get("of own", 0.0) <= TARGETS[what])
    for line, points in lines.items():
        if (growth := exponent(points)) is not None:
            report.target(f"{' '.join(line)}: CPU grows with rows to the power {growth:.2f}, a pass to 1.05",
                          line[2] != "pass" or growth <= 1.05)  # fmt: skip
    if not given.keep:
        shutil.rmtree(given.folder, ignore_errors=True)
    return report.finish()
