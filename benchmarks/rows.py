"""Rows that lack a column, and persons of many rows: whether true nulls stay, and what power is left.

    python -m benchmarks rows [--runs R]

1. The same people lack both of two independent columns, the middle of whose bounds lies four deviations off: how often
   they are called dependent, with what is missing left out and with the middle in its place.
2. Twenty rows a person, both columns steady over a person's visits and independent of each other: rows and persons.
3. Shares of 0 to 40 per cent missing, in each column by itself or in both at once: level, and power beside a table of
   the complete rows alone.
4. Who is missing decides: by x alone, by x and y together, by a hidden cause of both.  The last two reject, and must be
   expected to: no method that leaves rows out can tell.
5. A survey of 27 per cent missing in one column and 11 in another: how often ``ci_test`` and ``direction`` say what
   they say without privacy of the complete rows.
6. A whole person replaced, by any number of rows: how far each answer that the gate sees moves, as a share of its
   bound; and a search for the worst person, claim by claim.

Level .05, ε = 1 (4 for persons).  Exit 1 if a target is missed: 8 of 60 and 6 of 40 rejections, nine tenths of the
power, 90 of 100 decisions; or if 4, which must fail, does not.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

import dpcausal as dpc

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


def without(columns: Columns, **lacks: npt.NDArray[np.bool_]) -> Columns:
    """Return the columns with some values gone."""
    return {name: np.where(lacks.get(name, False), np.nan, values) for name, values in columns.items()}


def pair(rng: np.random.Generator, n: int, effect: float = 0.0) -> Columns:
    x = rng.standard_normal(n)
    return {"x": x, "y": effect * x + rng.standard_normal(n)}


def complete(columns: Columns) -> Columns:
    kept = np.all([~np.isnan(values) for values in columns.values()], axis=0)
    return {name: values[kept] for name, values in columns.items()}


def jointly_missing(runs: int) -> bool:
    """Print the first table; return whether the target is met."""
    print(f"1. independent columns, one in a hundred lacks both: called dependent, of {runs}")
    met = True
    for n in (4_000, 20_000):
        counts = {}
        for missing in ("drop", "impute"):
            counts[missing] = 0
            for run in range(runs):
                rng = np.random.default_rng([1, n, run])
                gone = rng.random(n) < 0.01
                columns = without(pair(rng, n), x=gone, y=gone)
                counts[missing] += rejected(columns, FAR, run, missing=missing)
        print(f"   n = {n:>6}   left out {counts['drop']:>3}   the middle instead {counts['impute']:>3}", flush=True)
        met &= counts["drop"] * 60 <= 8 * runs
    return met


def persons(runs: int) -> bool:
    print(f"2. twenty rows a person, 200 persons, independent: called dependent, of {runs} (epsilon 4)")
    counts = dict.fromkeys(("rows", "persons, ids private", "persons, ids public"), 0)
    for run in range(runs):
        rng = np.random.default_rng([2, run])
        own = {name: np.repeat(values, 20) for name, values in pair(rng, 200).items()}
        seen = {name: values + 0.3 * rng.standard_normal(4000) for name, values in own.items()}
        columns = {"id": np.repeat(np.arange(200), 20), **seen}
        for way, how in zip(counts, ({}, {"person": "id"}, {"person": "id", "ids": "public"}), strict=True):
            counts[way] += rejected(columns, FAR, run, 4.0, method="gcm", **how)
    for way, count in counts.items():
        print(f"   {way:<22}{count:>3}", flush=True)
    return all(count * 40 <= 6 * runs for way, count in counts.items() if way != "rows")


def shares(runs: int) -> bool:
    print(f"3. n = 4000, share missing: called dependent; where they are so: left out, complete rows alone; of {runs}")
    nulls, found = [], np.zeros(2, dtype=int)
    for share in (0.0, 0.1, 0.2, 0.4):
        for kind in ("each", "both"):
            counts = [0, 0, 0]
            for run in range(runs):
                rng = np.random.default_rng([3, run])
                gone = rng.random(4000) < share
                other = gone if kind == "both" else rng.random(4000) < share
                null, linked = (without(pair(rng, 4000, effect), x=gone, y=other) for effect in (0.0, 0.05))
                counts[0] += rejected(null, FAR, run)
                counts[1] += rejected(linked, FAR, run)
                counts[2] += rejected(complete(linked), FAR, run)
            print(f"   {share:>4.0%} {kind:<5} {counts[0]:>3} | {counts[1]:>3} {counts[2]:>3}", flush=True)
            nulls.append(counts[0])
            found += counts[1:]
    print(f"   power of that on complete rows alone: {found[0] / found[1]:.0%}", flush=True)
    return bool(max(nulls) * 60 <= 8 * runs and found[0] >= 0.9 * found[1])


def selections(runs: int) -> bool:
    print(f"4. n = 4000, independent, about a third missing: called dependent, of {runs}")
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
            lacking = without(columns, x=of_x, y=nothing if of_y is None else of_y)
            counts[way] += rejected(lacking, FAR, run)
    for way, count in counts.items():
        print(f"   {way:<28}{count:>3}", flush=True)
    sound, failing = list(counts.values())[:2], list(counts.values())[2:]
    return max(sound) * 60 <= 8 * runs and min(failing) * 2 >= runs


def survey(runs: int) -> bool:
    print(f"5. 27 % and 11 % missing: as without privacy on the complete rows, of {runs}, half of them nulls")
    agreed = pointed = 0
    for run in range(runs):
        rng = np.random.default_rng([5, run])
        z = rng.standard_normal(8000)
        effect = 0.25 * (run % 2)
        x = 0.6 * z + 0.8 * rng.standard_normal(8000)
        y = effect * x + 0.6 * z + 0.8 * rng.standard_normal(8000)
        columns = {name: np.clip(values, -4, 4) for name, values in {"x": x, "y": y, "z": z}.items()}
        lacking = without(columns, x=rng.random(8000) < 0.27, y=rng.random(8000) < 0.11)
        table = dpc.Table(complete(lacking), NEAR, dpc.Ledger.without_privacy())
        with dpc.simulated_noise(run):
            exact = dpc.ci_test(table, "x", "y", given=["z"], alpha=ALPHA, loss=dpc.NoPrivacy())
        agreed += (exact.decision == "dependent") == rejected(lacking, NEAR, run)
        pointed += verdicts_agree(rng, bool(run % 2), run)
    print(f"   ci_test given z, n = 8000: {agreed}; verdict of direction, n = 10000: {pointed}", flush=True)
    return min(agreed, pointed) * 10 >= 9 * runs


def verdicts_agree(rng: np.random.Generator, linked: bool, seed: int) -> bool:
    """Return whether both directions say the same: of a pressure that rises and spreads with age, or is unlinked."""
    n = 10_000
    age = rng.uniform(-1.7, 1.7, n)
    pressure = 0.25 * np.exp(0.9 * age) + (0.3 + 0.03 * age) * rng.standard_normal(n) if linked else pair(rng, n)["x"]
    columns = {"x": age, "y": np.clip(pressure, -4, 4)}
    lacking = without(columns, x=rng.random(n) < 0.27, y=rng.random(n) < 0.11)
    said = []
    for rows, ledger, loss in (
        (complete(lacking), dpc.Ledger.without_privacy(), dpc.NoPrivacy()),
        (lacking, dpc.Ledger.in_memory(dpc.PureDP(1)), dpc.PureDP(1)),
    ):
        with dpc.simulated_noise(seed):
            table = dpc.Table(rows, PAIR, ledger)
            said.append(dpc.direction(table, "x", "y", method="verdict", loss=loss).verdict)
    return said[0] == said[1]


def whole_persons() -> bool:
    """Print how far whole persons move what comes to the gate, family by family; return whether no bound is passed."""
    from dpcausal.audit import compare
    from tests.test_persons import BY_PLACE, NEVER, WAYS, frame, replaced, table_of

    print("6. all rows of a person replaced by 1, 9 or 200, under private ids another id too: most moved, of the bound")
    met = True
    for way, ask in WAYS.items():
        told = []
        for ids in ("public", "private"):
            if way in NEVER or (ids == "private" and way in BY_PLACE):
                told.append("refused")
                continue
            most = 0.0
            for seed in range(6):
                before = frame(seed)
                after = replaced(before, seed, ids)
                audit = compare(
                    lambda: ask(table_of(before, ids)), lambda: ask(table_of(after, ids)), answers="low", seed=seed  # noqa: B023
                )
                met, most = met and not audit.violated, max(most, audit.ratio)
            told.append(f"{most:.3f}")
        print(f"   {way:<32} ids public {told[0]:>8}   private {told[1]:>8}", flush=True)
    return met


def worst_persons() -> bool:
    """Print how much of each bound the worst person found uses up; return whether none is passed and each reached."""
    from dpcausal.privacy.sensitivity import Unit
    from tests.registry.persons import over_persons, rows_of_persons

    met = True
    for row in rows_of_persons():
        told = []
        for unit in (Unit.LISTED_PERSON, Unit.PERSON):
            if not row.sensitivity(max(row.sizes)).covers(unit):
                told.append("by blocks" if row.claim.startswith("block") else "-")
                continue
            found = over_persons(row, unit is Unit.PERSON, evaluations=2_800)
            told.append(f"{found.ratio:.3f}")
            met &= not found.violated
        print(f"   {row.claim:<32} ids public {told[0]:>8}   private {told[1]:>9}   rows {row.reached:g}", flush=True)
    return met


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=60, help="of each design")
    runs = parser.parse_args(arguments).runs
    met = [jointly_missing(runs), persons(min(runs, 40))]
    met += [shares(runs), selections(runs), survey(100 if runs >= 60 else runs), whole_persons(), worst_persons()]
    print("targets met" if all(met) else "a target is missed")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
