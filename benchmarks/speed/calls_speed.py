"""Time and memory of public calls on many rows, each in a process of its own.

    python -m benchmarks calls_speed --cases "direction, verdict" --sizes 1000 100000

Wall and processor seconds are those of one call with its default options and OpenDP's noise, after one on few rows that
loads what is loaded once; memory is the most that the process held, its data included.
"""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import dpcausal as dpc
from benchmarks.record import HERE
from benchmarks.run import Report, chosen, options

LOSS, BOTH = dpc.PureDP(1), dpc.ApproxDP(1, 1e-6)
Call = Callable[[], Any]


def direction(n: int, **how: Any) -> Call:
    pair = dpc.simulate.anm_pair(n, seed=1)
    table = dpc.Table(pair.columns, pair.schema, dpc.Ledger.in_memory(LOSS), missing="impute")
    return lambda: dpc.direction(table, "x", "y", loss=LOSS, **how)


def direction_all(pairs: int, budget: Any, one_by_one: bool = False) -> Call:
    """So many pairs of 1,000 rows, every other one named effect first."""
    columns: dict[str, Any] = {}
    declared: dict[str, Any] = {}
    for place in range(pairs):
        pair = dpc.simulate.anm_pair(1_000, mechanism="tanh", noise="gaussian", seed=place)
        for name, new in (("x", f"a{place}"), ("y", f"b{place}")):
            columns[new], declared[new] = pair.columns[name], pair.schema.column(name)
    names = [(f"a{place}", f"b{place}")[:: 1 if place % 2 == 0 else -1] for place in range(pairs)]
    table = dpc.Table(columns, dpc.Schema(declared), dpc.Ledger.in_memory(budget), missing="impute")

    def call() -> None:
        if one_by_one:
            for pair in names:
                dpc.direction(table, *pair, loss=budget / pairs)
        else:
            dpc.direction_all(table, names, loss=budget)
        assert not table.ledger.remaining.epsilon, "the budget is exactly spent"

    return call


def ci_test(n: int, given: int = 1, method: Any = "auto") -> Call:
    data = dpc.simulate.smooth_design(n, dimensions=given, seed=1)
    table = dpc.Table(data.columns, data.schema, dpc.Ledger.in_memory(LOSS), missing="impute")
    return lambda: dpc.ci_test(table, "x", "y", given=data.given, loss=LOSS, method=method)


def synthetic_control(donors: int, before: int = 34, after: int = 6) -> Call:
    made = dpc.simulate.factor_panel(donors, before=before, after=after, effect=0.2, seed=1)

    def call() -> None:
        panel = dpc.Panel.from_arrays(made.donors, made.target, start=before, bounds=made.bounds,
                                      ledger=dpc.Ledger.in_memory(BOTH, unit="unit"))  # fmt: skip
        dpc.synthetic_control(panel, loss=BOTH, force=True)

    return call


def long_frame(donors: int) -> Call:
    """Sixty periods from a long frame."""
    made, T = dpc.simulate.factor_panel(donors, before=50, after=10, effect=0.2, seed=1), 60
    frame = {
        "unit": np.repeat(np.array([f"u{k:06d}" for k in range(donors + 1)]), T),
        "year": np.tile(np.arange(1960, 1960 + T), donors + 1), "sales": np.vstack([made.target, made.donors]).ravel(),
    }  # fmt: skip

    def call() -> None:
        panel = dpc.Panel(frame, unit="unit", time="year", outcome="sales", target="u000000", start=2010,
                          bounds=made.bounds, ledger=dpc.Ledger.in_memory(BOTH, unit="unit"))  # fmt: skip
        dpc.synthetic_control(panel, loss=BOTH, method="factor", force=True)

    return call


class Case(NamedTuple):
    """A call by size, its sizes, and by size the most seconds of a processor and the most GiB."""

    make: Callable[[int], Call]
    sizes: tuple[int, ...]
    most: dict[int, tuple[float, float]] | None = None


ROWS = (1_000, 10_000, 100_000, 1_000_000)
CASES = {
    "direction, verdict": Case(direction, ROWS, {100_000: (5, 2), 1_000_000: (30, 2)}),
    "direction, hsic": Case(lambda n: direction(n, score="hsic", method="majority-vote"), ROWS, {1_000_000: (30, 2)}),
    "direction_all, pure": Case(lambda pairs: direction_all(pairs, dpc.PureDP(5)), (100,), {100: (60, 2)}),
    "direction_all, zCDP": Case(lambda pairs: direction_all(pairs, dpc.ZCDP(0.5)), (100,), {100: (60, 2)}),
    "direction, pair by pair": Case(lambda pairs: direction_all(pairs, dpc.PureDP(5), one_by_one=True), (100,)),
    "ci_test, default": Case(ci_test, (100_000, 1_000_000, 10_000_000),
                             {100_000: (1, 2), 1_000_000: (10, 2), 10_000_000: (120, 5)}),
    "ci_test, gcm, one given": Case(lambda n: ci_test(n, 1, dpc.methods.Gcm(workers=2)), ROWS[1:]),
    "ci_test, gcm, five given": Case(lambda n: ci_test(n, 5, dpc.methods.Gcm(workers=2)), ROWS[1:],
                                     {1_000_000: (120, 2)}),
    "synthetic_control, arrays": Case(synthetic_control, (100_000, 1_000_000), {1_000_000: (60, 2)}),
    "synthetic_control, long frame": Case(long_frame, (100_000,), {100_000: (30, 4)}),
}  # fmt: skip


def one(name: str, size: int) -> dict[str, float]:
    """Measure in this process."""
    CASES[name].make(min(size, 1_000 if CASES[name].sizes[0] >= 1_000 else 2))()
    call = CASES[name].make(size)
    wall, processor = time.perf_counter(), time.process_time()
    call()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {"wall seconds": time.perf_counter() - wall, "processor seconds": time.process_time() - processor,
            "peak GiB": peak / 2**30}  # fmt: skip


def main(arguments: list[str], name: str = "calls_speed", **changed: Any) -> int:
    given = options(__doc__, arguments, **{"cases": list(CASES), "sizes": [0][:0], "one": ""} | changed)
    if given.one:
        print(json.dumps(one(given.one, int(given.sizes[0]))))
        return 0
    report = Report(name, "speed", given, arguments, code=["dpcausal.api"], seeds="data of seed 1, OpenDP's noise")
    for case in chosen(given.cases, CASES):
        for size in [int(float(one)) for one in given.sizes] or CASES[case].sizes:
            command = [sys.executable, "-m", "benchmarks", "calls_speed", "--one", case, "--sizes", str(size)]
            done = subprocess.run(command, cwd=HERE.parent, check=True, capture_output=True, text=True)
            found = json.loads(done.stdout.splitlines()[-1])
            report.add(case, found, n=size, method="")
            if size in (most := CASES[case].most or {}):
                seconds, gib = most[size]
                report.target(f"{case}, {size:,}: {found['processor seconds']:.1f} s of processor, at most {seconds:g}",
                              found["processor seconds"] <= seconds)  # fmt: skip
                peak = found["peak GiB"]
                report.target(f"{case}, {size:,}: {peak:.2f} GiB, at most {gib:g}", peak <= gib)
    return report.finish()
