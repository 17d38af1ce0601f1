"""What each test of independence does with missing values and with persons: bound and level, or that it refuses.

    python -m benchmarks independence_rows [repetitions]

True nulls: x = z + e, y = z + e′ for tests given a number, three strata for `kendall`, and two levels in them for tests
of tables; nothing given where a test takes nothing.  A fifth of x and of y is missing.  As persons each has one to four
rows, and e and e′ have a part that all rows of a person share.  Bounds are those that the release declares for its
sums, for ε = 2.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import dpcausal as dpc
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
    table = dpc.Table(columns, schema, dpc.Ledger.in_memory(LOSS), missing="drop", **of_persons)
    return dpc.ci_test(table, "x", "y", given=given, method=method, loss=LOSS)


def cell(method: Any, kind: str, ids: str | None, repetitions: int) -> tuple[str, bool]:
    """Return the bounds and the level in words, and whether the level is at most .07 within two standard errors."""
    try:
        with recording_gate("low") as recording:
            asked(method, kind, ids, 0)
        rejected = 0
        for seed in range(repetitions):
            with dpc.simulated_noise(seed):
                rejected += asked(method, kind, ids, seed).decision == "dependent"
    except DpCausalError:
        return "refused", True
    bounds = ", ".join(dict.fromkeys(f"{float(passage.bound):.4g}" for passage in recording.passages))
    level = rejected / repetitions
    words = f"{bounds}; {level:.3f}"
    return words, level - 2 * (level * (1 - level) / repetitions) ** 0.5 <= MOST


def main(arguments: list[str]) -> int:
    """Print the table; return 1 if a level fails."""
    repetitions = int(arguments[0]) if arguments else 300
    known, several = dpc.ModelX(mean=lambda z: z[:, 0], sd=1.0), {"crt", "cpt", "crt-decision"}
    print(f"bounds; level at .05 of {repetitions} tables of {N} rows or persons, ε = 2\n")
    print(f"| method | {' | '.join(UNITS)} |\n|{'---|' * (1 + len(UNITS))}")
    held = True
    for name, way in METHODS.items():
        kind = KINDS.get(name, "numbers")
        method: Any = way(model_x=known) if name in several else way()  # type: ignore[call-arg]
        cells = [cell(method, kind, ids, repetitions) for ids in UNITS.values()]
        held &= all(met for _, met in cells)
        print(f"| `{name}` | {' | '.join(words for words, _ in cells)} |", flush=True)
    return int(not held)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
