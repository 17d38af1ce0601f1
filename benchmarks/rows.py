"""Rows with missing columns, and persons of many rows: whether true nulls stay, and what power is left.

1. The same people have neither of two independent columns, the middle of whose bounds lies four deviations off: how
   often they are called dependent, with what is missing left out and with the middle in its place.
2. Twenty rows a person, both columns steady over a person's visits and independent of each other: rows and persons.
3. Shares of 0 to 40 per cent missing, in each column by itself or in both at once: level, and power beside a table of
   the complete rows alone.
4. Who is missing decides: by x alone, by x and y together, by a hidden cause of both.  The last two reject, and must be
   expected to: no method that leaves rows out can see it.
5. A survey of 27 per cent missing in one column and 11 in another: how often ``ci_test`` and ``direction`` decide as
   they do without privacy of the complete rows.

Level 0.05, ε = 1 (4 for persons).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import dpcausal as dpc
from benchmarks.run import Report, options

Reals = npt.NDArray[np.float64]
Columns = dict[str, npt.NDArray[Any]]

FAR = dpc.Schema({name: dpc.Bounded(-4, 12) for name in ("x", "y")})
PAIR = dpc.Schema({name: dpc.Bounded(-4, 4) for name in ("x", "y")})
NEAR = dpc.Schema({name: dpc.Bounded(-4, 4) for name in ("x", "y", "z")})
ALPHA = 0.05


def rejected(columns: Columns, schema: dpc.Schema, seed: int, epsilon: float = 1.0, **how: Any) -> bool:
    """Return whether x and y are called dependent, given z if there is one."""
    given = ["z"] if "z" in schema else []
    method = how.pop("method", "auto")
    whose = {name: how[name] for name in ("person", "ids") if name in how}
    with dpc.simulated_noise(seed):
        table = dpc.Table(columns, schema, dpc.Ledger.in_memory(dpc.PureDP(20), **whose), **how)
        found = dpc.ci_test(table, "x", "y", given=given, method=method, alpha=ALPHA, loss=dpc.PureDP(epsilon))
    return found.decision == "dependent"


def without(columns: Columns, **gone: npt.NDArray[np.bool_]) -> Columns:
    """Return the columns with some values gone."""
    return {name: np.where(gone.get(name, False), np.nan, values) for name, values in columns.items()}


def pair(rng: np.random.Generator, n: int, effect: float = 0.0) -> Columns:
    x = rng.standard_normal(n)
    return {"x": x, "y": effect * x + rng.standard_normal(n)}


def complete(columns: Columns) -> Columns:
    kept = np.all([~np.isnan(values) for values in columns.values()], axis=0)
    return {name: values[kept] for name, values in columns.items()}


def share(count: int, runs: int) -> tuple[float, float]:
    return count / runs, (count / runs * (1 - count / runs) / runs) ** 0.5


def jointly_missing(report: Report, runs: int) -> None:
    for n in (4_000, 20_000):
        counts = {}
        for missing in ("drop", "impute"):
            counts[missing] = 0
            for run in range(runs):
                rng = np.random.default_rng([1, n, run])
                gone = rng.random(n) < 0.01
                columns = without(pair(rng, n), x=gone, y=gone)
                counts[missing] += rejected(columns, FAR, run, missing=missing)
            report.add("one in a hundred has neither column", {"level": share(counts[missing], runs)}, n=n, epsilon=1,
                       reading=f"missing={missing!r}", runs=runs)  # fmt: skip
        report.target(f"n = {n:,}, left out: {counts['drop']} of {runs} rejected", counts["drop"] * 60 <= 8 * runs)


def persons(report: Report, runs: int) -> None:
    counts = dict.fromkeys(("rows", "persons, ids private", "persons, ids public"), 0)
    for run in range(runs):
        rng = np.random.default_rng([2, run])
        own = {name: np.repeat(values, 20) for name, values in pair(rng, 200).items()}
        seen = {name: values + 0.3 * rng.standard_normal(4000) for name, values in own.items()}
        columns = {"id": np.repeat(np.arange(200), 20), **seen}
        for way, how in zip(counts, ({}, {"person": "id"}, {"person": "id", "ids": "public"}), strict=True):
            counts[way] += rejected(columns, FAR, run, 4.0, method="gcm", **how)
    for way, count in counts.items():
        report.add("twenty rows a person, 200 persons", {"level": share(count, runs)}, epsilon=4, method="gcm",
                   reading=way, runs=runs)  # fmt: skip
        report.target(f"{way}: {count} of {runs} rejected", way == "rows" or count * 40 <= 6 * runs)


def shares(report: Report, runs: int) -> None:
    found = np.zeros(2, dtype=int)
    for missing in (0.0, 0.1, 0.2, 0.4):
        for kind in ("each", "both"):
            counts = [0, 0, 0]
            for run in range(runs):
                rng = np.random.default_rng([3, run])
                gone = rng.random(4000) < missing
                other = gone if kind == "both" else rng.random(4000) < missing
                null, linked = (without(pair(rng, 4000, effect), x=gone, y=other) for effect in (0.0, 0.05))
                counts[0] += rejected(null, FAR, run)
                counts[1] += rejected(linked, FAR, run)
                counts[2] += rejected(complete(linked), FAR, run)
            rates = [share(count, runs) for count in counts]
            metrics = dict(zip(("level", "power", "power of complete rows"), rates, strict=True))
            report.add(f"{missing:.0%} missing, {kind}", metrics, n=4_000, epsilon=1, runs=runs)
            report.target(f"{missing:.0%} missing, {kind}: {counts[0]} of {runs} rejected", counts[0] * 60 <= 8 * runs)
            found += counts[1:]
    report.target(f"power of that on complete rows: {found[0] / max(found[1], 1):.0%}", found[0] >= 0.9 * found[1])


def selections(report: Report, runs: int) -> None:
    counts = dict.fromkeys(("by x alone", "x by x and y by y", "by x + y", "by a hidden cause of both"), 0)
    for run in range(runs):
        rng = np.random.default_rng([4, run])
        columns = pair(rng, 4000)
        x, y, chance = columns["x"], columns["y"], rng.random((2, 4000))
        hidden = (x + y + 0.5 * rng.standard_normal(4000)) / 1.5
        gone = [
            (chance[0] < 0.6 * (x > 0), None), (chance[0] < 0.4 * (x > 0), chance[1] < 0.4 * (y > 0)),
            (chance[0] < 0.6 * (x + y > 0), None), (chance[0] < 0.6 * (hidden > 0), None),
        ]  # fmt: skip
        for way, (of_x, of_y) in zip(counts, gone, strict=True):
            nothing = np.zeros(4000, dtype=bool)
            thinned = without(columns, x=of_x, y=nothing if of_y is None else of_y)
            counts[way] += rejected(thinned, FAR, run)
    for place, (way, count) in enumerate(counts.items()):
        report.add(f"a third missing, {way}", {"level": share(count, runs)}, n=4_000, epsilon=1, runs=runs)
        report.target(f"{way}: {count} of {runs} rejected", count * 60 <= 8 * runs if place < 2 else count * 2 >= runs)


def survey(report: Report, runs: int) -> None:
    agreed = pointed = 0
    for run in range(runs):
        rng = np.random.default_rng([5, run])
        z = rng.standard_normal(8000)
        effect = 0.25 * (run % 2)
        x = 0.6 * z + 0.8 * rng.standard_normal(8000)
        y = effect * x + 0.6 * z + 0.8 * rng.standard_normal(8000)
        columns = {name: np.clip(values, -4, 4) for name, values in {"x": x, "y": y, "z": z}.items()}
        thinned = without(columns, x=rng.random(8000) < 0.27, y=rng.random(8000) < 0.11)
        table = dpc.Table(complete(thinned), NEAR, dpc.Ledger.without_privacy())
        with dpc.simulated_noise(run):
            exact = dpc.ci_test(table, "x", "y", given=["z"], alpha=ALPHA, loss=dpc.NoPrivacy())
        agreed += (exact.decision == "dependent") == rejected(thinned, NEAR, run)
        pointed += verdicts_agree(rng, bool(run % 2), run)
    for task, n, count in (("ci_test given z", 8_000, agreed), ("verdict of direction", 10_000, pointed)):
        report.add(f"27 % and 11 % missing, {task}", {"as without privacy": share(count, runs)}, n=n, epsilon=1,
                   runs=runs)  # fmt: skip
        report.target(f"{task}: {count} of {runs} as without privacy", count * 10 >= 9 * runs)


def verdicts_agree(rng: np.random.Generator, linked: bool, seed: int) -> bool:
    """Return whether both directions say the same: of a pressure that rises and spreads with age, or is unlinked."""
    n = 10_000
    age = rng.uniform(-1.7, 1.7, n)
    pressure = 0.25 * np.exp(0.9 * age) + (0.3 + 0.03 * age) * rng.standard_normal(n) if linked else pair(rng, n)["x"]
    columns = {"x": age, "y": np.clip(pressure, -4, 4)}
    thinned = without(columns, x=rng.random(n) < 0.27, y=rng.random(n) < 0.11)
    decisions = []
    for rows, ledger, loss in (
        (complete(thinned), dpc.Ledger.without_privacy(), dpc.NoPrivacy()),
        (thinned, dpc.Ledger.in_memory(dpc.PureDP(1)), dpc.PureDP(1)),
    ):
        with dpc.simulated_noise(seed):
            table = dpc.Table(rows, PAIR, ledger)
            decisions.append(dpc.direction(table, "x", "y", method="verdict", loss=loss).verdict)
    return decisions[0] == decisions[1]


def main(arguments: list[str], name: str = "rows", **changed: Any) -> int:
    given = options(__doc__, arguments, **{"runs": 60} | changed)
    report, runs = Report(name, "independence", given, arguments, seeds="rows [part, n, run], noise by run"), given.runs
    jointly_missing(report, runs)
    persons(report, min(runs, 40))
    shares(report, runs)
    selections(report, runs)
    survey(report, 100 if runs >= 60 else runs)
    return report.finish()
