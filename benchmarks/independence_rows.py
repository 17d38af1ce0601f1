"""What each test of independence does with missing values and with persons: bound and level, or that it refuses.

True nulls: x = z + e, y = z + e′ for tests given a number, three strata for `kendall`, and two levels in them for tests
of tables; nothing given where a test takes nothing.  A fifth of x and of y is missing.  As persons each has one to four
rows, and e and e′ have a part that all rows of a person share.  Bounds are those that the release declares for its
sums, for ε = 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.run import Report, options
from dpcausal.errors import DpCausalError
from dpcausal.independence.methods import METHODS
from dpcausal.mechanisms.gate import recording_gate

N, LOSS, MOST = 600, dpc.PureDP(2), 0.07
UNITS = {"rows": None, "persons, private ids": "private", "persons, public ids": "public"}
KINDS = {"strata-covariance": "levels", "counts": "levels", "kendall": "strata", "hsic": "alone"}
WIDE, TWO = dpc.Bounded(-12, 12), dpc.Levels([0, 1])


def frame(kind: str, persons: bool, seed: int) -> tuple[dict[str, Any], dpc.Schema, list[str]]:
    """Return the columns of a true null, their schema and what is given."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(N), rng.integers(1, 5, N)) if persons else np.arange(N)
    shared, own = rng.standard_normal((2, N))[:, owner], rng.standard_normal((2, owner.size))
    first, second = (shared + own) / 2**0.5
    columns: dict[str, Any] = {"id": owner}
    if kind == "levels":
        s = rng.integers(0, 3, N)[owner]
        columns |= {"x": (first < 0.4 * s - 0.5) + 0.0, "y": (second < 0.4 * s - 0.5) + 0.0, "s": s}
        schema, given = dpc.Schema({"x": TWO, "y": TWO, "s": dpc.Levels(range(3))}), ["s"]
    elif kind == "strata":
        s = rng.integers(0, 3, N)[owner]
        columns |= {"x": s + first, "y": s + second, "s": s}
        schema, given = dpc.Schema({"x": WIDE, "y": WIDE, "s": dpc.Levels(range(3))}), ["s"]
    else:
        z = rng.standard_normal(N)[owner] if kind == "numbers" else np.zeros(owner.size)
        columns |= {"x": z + first, "y": z + second, "z": z}
        schema, given = dpc.Schema({"x": WIDE, "y": WIDE, "z": WIDE}), ["z"] if kind == "numbers" else []
    for name in ("x", "y"):
        columns[name] = np.where(rng.random(owner.size) < 0.2, np.nan, columns[name])
    if not persons:
        del columns["id"]
    return columns, schema, given


def asked(method: Any, kind: str, ids: str | None, seed: int) -> Any:
    """Ask one table."""
    columns, schema, given = frame(kind, ids is not None, seed)
    of_persons: dict[str, Any] = {} if ids is None else {"person": "id", "ids": ids}
    table = dpc.Table(columns, schema, dpc.Ledger.in_memory(LOSS, **of_persons), missing="drop", **of_persons)
    return dpc.ci_test(table, "x", "y", given=given, method=method, loss=LOSS)


def main(arguments: list[str], name: str = "independence_rows", **changed: Any) -> int:
    given = options(__doc__, arguments, **{"runs": 300} | changed)
    report, known = Report(name, "independence", given, arguments), dpc.ModelX(mean=lambda z: z[:, 0], sd=1.0)
    for short, way in METHODS.items():
        kind = KINDS.get(short, "numbers")
        method: Any = way(model_x=known) if short in ("crt", "crt-decision") else way()  # type: ignore[call-arg]
        for unit, ids in UNITS.items():
            where = {"n": N, "epsilon": LOSS.epsilon, "method": short, "reading": unit, "runs": given.runs}
            try:
                with recording_gate("low") as recording:
                    asked(method, kind, ids, 0)
                rejected = 0
                for seed in range(given.runs):
                    with dpc.simulated_noise(seed):
                        rejected += asked(method, kind, ids, seed).decision == "dependent"
            except DpCausalError:
                report.add(kind, {}, note="refused", **where)
                continue
            level = rejected / given.runs
            error = (level * (1 - level) / given.runs) ** 0.5
            bounds = ", ".join(dict.fromkeys(f"{float(passage.bound):.4g}" for passage in recording.passages))
            report.add(kind, {"level": (level, error)}, note=f"bounds {bounds}", **where)
            report.target(f"{short}, {unit}: level {level:.3f}, at most {MOST}", level - 2 * error <= MOST)
    return report.finish()
