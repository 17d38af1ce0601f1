"""Neighbours in z of many rows: numpy in memory, DuckDB's windows, and DuckDB's sort read as a stream, to one bit.

    python -m benchmarks engines_order [--rows 1e6 1e7] [--neighbours 9]

Each line is a process of its own, DuckDB on one thread, Parquet with z of five decimals, so that it has ties; these go
by the place of a row.  CPU and peak memory are those of reading and summing, imports left out of the seconds.

memory   as ``ci_test`` by ``"neighbours"`` does it: the columns collected, ``pair_sums``
windows  SQL: row numbers in the order of z, then lags 1 to k of x, y and the ranks, products and their sums
sorted   SQL sorts; its batches are summed as they come, the last k rows carried on: what a stream could do
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from dpcausal.statistics.neighbour_pairs import ENDS, pair_sums

BATCH = 1 << 18


def written(folder: Path, rows: int) -> Path:
    """Return a file of x and y that hang together by z."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    rng, path = np.random.default_rng(1), folder / f"{rows}.parquet"
    z = rng.normal(size=rows)
    columns = {"x": z + rng.normal(size=rows), "y": z + rng.normal(size=rows), "z": np.round(z, 5)}
    pq.write_table(pa.table(columns), path, compression="zstd")
    return path


def records(path: Path) -> str:
    """Return the query of the rows, cut to their bounds, each with its place."""
    cut = ", ".join(f"least(greatest({name}, -5), 5) AS {name}" for name in "xyz")
    return f"(SELECT {cut}, file_row_number AS p FROM read_parquet('{path}', file_row_number = true))"


def windows(path: Path, k: int) -> str:
    """Return the query of K and Q by lag."""

    def sign(column: str, lag: int) -> str:
        before = f"lag({column}, {lag}) OVER w"
        return f"(({column} > {before})::TINYINT - ({column} < {before})::TINYINT)"

    close = "({after} >= {lag} AND lag(before, {lag}) OVER w >= {lag})::TINYINT"
    products = ", ".join(
        f"({sign('x', lag)} * {sign('y', lag)} * {close.format(after='after', lag=lag)})::INTEGER AS d{lag}"
        for lag in range(1, k + 1)
    )
    sums = ", ".join(f"sum(d{lag}), sum(abs(d{lag}))" for lag in range(1, k + 1))
    ranks = f"least({k}, r // {ENDS}) AS before, least({k}, (n + 1 - r) // {ENDS}) AS after"
    return (
        f"WITH placed AS (SELECT x, y, row_number() OVER (ORDER BY z, p) AS r, count(*) OVER () AS n "
        f"FROM {records(path)}), ranked AS (SELECT x, y, r, {ranks} FROM placed), "
        f"pairs AS (SELECT {products} FROM ranked WINDOW w AS (ORDER BY r)) SELECT {sums} FROM pairs"
    )


def streamed(batches: Any, n: int, k: int) -> tuple[int, int]:
    """Return K and Q of batches in the order of z."""
    signed = untied = seen = 0
    held = [np.empty(0)] * 4
    for batch in batches:
        x, y = (np.asarray(batch.column(place)) for place in range(2))
        ranks = np.arange(seen + 1, seen + 1 + len(x))
        fresh = x, y, np.minimum(ranks // ENDS, k), np.minimum((n + 1 - ranks) // ENDS, k)
        seen, carried = seen + len(x), len(held[0])
        held = [np.concatenate(pair) for pair in zip(held, fresh, strict=True)]
        for lag in range(1, k + 1):
            first = max(carried - lag, 0)  # whose later partner is new
            x1, y1, _, after = (column[first + lag :] for column in held)
            x0, y0, before, _ = (column[first : first + len(x1)] for column in held)
            both = ((x1 > x0).astype(np.int8) - (x1 < x0)) * ((y1 > y0).astype(np.int8) - (y1 < y0))
            both *= (before >= lag) & (after >= lag)
            signed, untied = signed + int(both.sum(dtype=np.int64)), untied + int(np.count_nonzero(both))
        held = [column[-k:] for column in held]
    return signed, untied


def one(how: str, path: Path, n: int, k: int) -> dict[str, Any]:
    """Do it in this process and return the sums and what they took."""
    import duckdb
    import pyarrow  # noqa: F401

    connection = duckdb.connect(config={"threads": 1})
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    if how == "windows":
        (found,) = connection.sql(windows(path, k)).fetchall()
        sums = sum(int(one or 0) for one in found[::2]), sum(int(one or 0) for one in found[1::2])
    elif how == "sorted":
        query = f"SELECT x, y FROM {records(path)} ORDER BY z, p"
        sums = streamed(connection.sql(query).to_arrow_reader(BATCH), n, k)
    else:
        table = connection.sql(f"SELECT x, y, z FROM {records(path)}").to_arrow_table()
        x, y, z = (table.column(name).to_numpy() for name in "xyz")
        sums = tuple(pair_sums(x, y, z, np.zeros(n, np.int64), np.arange(n), np.ones(n, np.bool_), k))
    cpu, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"sums": sums, "cpu": cpu, "peak": peak / 2**20, "before": before / 2**20}


def main() -> int:
    """Return 0 if all ways give the same two numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="+", type=float, default=[1e6, 1e7])
    parser.add_argument("--neighbours", type=int, default=9)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/engines-order"))
    parser.add_argument("--one", nargs=3)
    given = parser.parse_args()
    if given.one:
        how, path, rows = given.one
        print(json.dumps(one(how, Path(path), int(rows), given.neighbours)))
        return 0
    same = True
    print(f"{'rows':>8} {'how':<9}{'CPU s':>8}{'peak GB':>9}{'at start':>9}  K, Q")
    for rows in map(int, given.rows):
        path, seen = written(given.folder, rows), set()
        for how in ("memory", "windows", "sorted"):
            arguments = [sys.executable, "-m", "benchmarks.engines_order", "--neighbours", str(given.neighbours)]
            done = subprocess.run([*arguments, "--one", how, str(path), str(rows)], capture_output=True, check=True)
            told = json.loads(done.stdout.splitlines()[-1])
            seen.add(tuple(told["sums"]))
            print(f"{rows:8.0e} {how:<9}{told['cpu']:8.2f}{told['peak']:9.2f}{told['before']:9.2f}  {told['sums']}",
                  flush=True)  # fmt: skip
        same &= len(seen) == 1
    shutil.rmtree(given.folder, ignore_errors=True)
    print("met: the same two numbers" if same else "MISSED: other numbers")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
