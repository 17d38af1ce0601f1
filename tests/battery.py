"""What the battery asks of: rows and panels whose values are rounded, so that they are the same on every machine.

    python -m tests.battery "why the answers that differ are right"

puts today's answers on record where they differ, with the reason.
"""

from __future__ import annotations

import json
import platform
import re
import sys
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeRegressor
from threadpoolctl import threadpool_info

import dpcausal as dpc
from dpcausal import methods as m
from dpcausal import papers as p

LOSSES = {
    "PureDP": dpc.PureDP, "ApproxDP": lambda epsilon: dpc.ApproxDP(epsilon, 1e-6),
    "ZCDP": lambda epsilon: dpc.ZCDP(epsilon / 4), "NoPrivacy": lambda epsilon: dpc.NoPrivacy(),
}  # fmt: skip
NORMAL, CHANCE = dpc.ModelX(mean=lambda z: z[:, 0], sd=1.5), dpc.ModelX(mean=lambda z: (1 + z[:, 0]) / 4)
DRAWN = dpc.ModelX(sample=lambda z, coins: coins.integers(0, 2, len(z)).astype(float))
KNOWN = dpc.Knowledge(tiers=[["z1", "z2"], ["x", "y"]], forbidden=[("z2", "y")], required=[("x", "y")])


@lru_cache
def columns(design: str, n: int) -> tuple[dict[str, Any], dpc.Schema]:
    """Return z1 -> x -> y, z1 -> y, and z2: "numbers", numbers with "ties", or "levels" beside the number z2."""
    z1, z2, a, b = np.random.default_rng(1).standard_normal((4, n))
    x = z1 + z1 * z1 / 2 + a
    found: dict[str, Any] = {"x": x, "y": x + x * x * x / 20 - z1 + b / 2, "z1": z1, "z2": z2}
    for name, values in found.items():
        found[name] = np.clip(np.rint(2 * values) / 2 if design == "ties" else np.round(values, 3), -4, 4)
    schema: dict[str, Any] = dict.fromkeys(found, dpc.Bounded(-4, 4))
    if design == "levels":
        for name, cuts in {"x": [0.5], "y": [0.5], "z1": [-0.5, 0.5]}.items():
            found[name], schema[name] = np.digitize(found[name], cuts), dpc.Levels(range(len(cuts) + 1))
    return found, dpc.Schema(schema)


def panel(design: str, ledger: dpc.Ledger, target: Any = 0, start: Any = 6, **options: Any) -> dpc.Panel:
    """Return 250 units in 9 periods, each with a line in time, and a "step" or a "wave"."""
    unit, time = np.repeat(np.arange(250), 9), np.tile(np.arange(9), 250)
    shape = {"step": np.arange(9) > 5, "wave": np.array([0, 1, 0, -1, 0, 1, 0, -1, 1])}[design][time]
    coins = np.random.default_rng(2)
    slope, size = coins.standard_normal((2, 250))[:, unit] / 4
    outcome = np.round(slope * time / 8 + size * shape + coins.standard_normal(unit.size) / 20, 3)
    frame = {"unit": unit, "time": time, "outcome": outcome, "size": np.round(size, 2)}
    bounds = dpc.Bounded(-1, 1)
    return dpc.Panel(frame, unit="unit", time="time", outcome="outcome", target=target, start=start, bounds=bounds,
                     ledger=ledger, **options)  # fmt: skip


def again(found: dpc.Discovery) -> list[Any]:
    """Return a release and what it answers when it is asked again."""
    asked, known = found.release.discover, dpc.Knowledge(required=[("x", "y")])
    searched = asked(search="pc", max_order=1, knowledge=known)
    return [found.release, asked(alpha=0.2), searched, *found.with_support(5).edges()]


def words(design: str, kind: str, call: str) -> dict[str, Any]:
    """Return what a call on record may name; its ledger protects whom the call does."""
    budget = LOSSES[kind](8)
    half = re.search(r"p\.(Anm)?(Holdout|Test|Training)", call)
    unit = {"unit": "unit"} if "panel(" in call else {}
    unit = {"protect": "training" if half[2] == "Training" else "test"} if half else unit
    ledger = dpc.Ledger.without_privacy() if kind == "NoPrivacy" else dpc.Ledger.in_memory(budget, **unit)
    return {
        "dpc": dpc, "m": m, "p": p, "loss": LOSSES[kind], "again": again, "known": KNOWN, "drawn": DRAWN,
        "rows": lambda n=180: dpc.Table(*columns(design, n), ledger, missing="impute"),
        "panel": lambda **options: panel(design, ledger, **options),
        "law": CHANCE if design == "levels" else NORMAL, "size": {"size": dpc.Bounded(-1, 1)},
        "tree": DecisionTreeRegressor(splitter="random", max_depth=3),
    }  # fmt: skip


def machine() -> list[str]:
    """Return what the last bits of a float depend on; elsewhere only the first values are compared."""
    blas = {str(library.get("architecture")) for library in threadpool_info() if library["user_api"] == "blas"}
    return [*map(version, ("numpy", "scipy", "scikit-learn")), platform.libc_ver()[1], *sorted(blas)]


def record(reason: str) -> None:
    """Put on record what differs, and why."""
    from tests.test_battery import RECORD, differences

    on_record = json.loads(RECORD.read_text(encoding="utf-8"))
    changes, own = differences(on_record), on_record["machine"] == machine()
    if not own:
        sys.exit("another machine rounds otherwise: record on one that agrees with " + " ".join(on_record["machine"]))
    if not changes:
        sys.exit("nothing differs")
    for name, design, kinds, _, now in changes:
        on_record["calls"][name][1][design][kinds] = now
    named = {*on_record["changed"].get(reason, []), *(name for name, *_ in changes)}
    on_record["changed"][reason] = sorted(named)
    write(RECORD, on_record)


def write(path: Path, on_record: dict[str, Any]) -> None:
    """Write a record, a line for each call."""
    calls = ",\n".join(f"{json.dumps(name)}: {json.dumps(call)}" for name, call in on_record["calls"].items())
    head = ",\n".join(f"{json.dumps(key)}: {json.dumps(on_record[key])}" for key in ("machine", "changed"))
    path.write_text(f'{{\n{head},\n"calls": {{\n{calls}\n}}\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    record(sys.argv[1])
