"""What is shown, and whether it holds: coverage of every interval over all runs, and over those that have one.

    python -m benchmarks shown                              200 runs a line
    python -m benchmarks shown --room did --runs 100        cells, did or slopes

The shapes were named by one who knew the rules that withhold intervals.  ``LOW``: below .93 by two Monte-Carlo errors,
of those shown.  A test before treatment holds where its p-value is above .05.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import dpcausal as dpc
from dpcausal.errors import DpCausalError

PublicTableInfo = dict[str, bool | None]
"""By what is shown: whether it held; ``None`` if it was withheld."""
Reals = np.ndarray[Any, Any]


def held(interval: Any, truth: float) -> bool | None:
    return None if interval is None else bool(interval[0] <= truth <= interval[1])


# Numbers by cells: (share treated, outcome of n records on [0, 1] by arm, mean of both arms)
def levelled(*levels: tuple[float, float]) -> Callable[[Any, Reals], Reals]:
    """Outcomes of few values: shares by value."""
    values, shares = zip(*levels, strict=True)
    return lambda rng, arm: rng.choice(values, size=len(arm), p=shares)


def gammas(scale: float, times: float = 1.0) -> Callable[[Any, Reals], Reals]:
    return lambda rng, arm: np.minimum(rng.exponential(scale * np.where(arm == 1, times, 1.0)), 1.0)


def heavy(rng: Any, arm: Reals) -> Reals:
    return np.minimum(0.001 * np.exp(2 * rng.normal(size=len(arm))), 1.0)


NUMBERS: dict[str, tuple[float, Callable[[Any, Reals], Reals]]] = {
    "flat": (0.5, lambda rng, arm: rng.random(len(arm))),
    "bounds 20 times too wide": (0.5, lambda rng, arm: 0.5 + rng.normal(0, 0.01, len(arm)) + 0.005 * arm),
    "one value": (0.5, lambda rng, arm: 0.3 + 0.2 * arm),
    "all at a bound": (0.5, lambda rng, arm: 1.0 * arm),
    "one in a hundred at the far end": (0.5, levelled((0.0, 0.99), (1.0, 0.01))),
    "one in a thousand at the far end": (0.5, levelled((0.1, 0.999), (1.0, 0.001))),
    "a rare arm, one in fifty far": (0.05, levelled((0.0, 0.98), (1.0, 0.02))),
    "exponential": (0.5, gammas(0.05, 2.0)),
    "exponential, rare arm": (0.05, gammas(0.02, 2.0)),
    "log-normal": (0.3, heavy),
    "log-normal, rare arm": (0.02, heavy),
    "nearly all treated": (0.97, gammas(0.1)),
}  # fmt: skip


def cells(n: int, epsilon: float, shape: str, seed: int) -> PublicTableInfo:
    share, draw = NUMBERS[shape]
    rng = np.random.default_rng([seed, n])
    arm = (rng.random(n) < share).astype(int)
    stratum = rng.integers(0, 3, n)
    columns = {"a": arm, "s": stratum, "y": draw(rng, arm)}
    schema = dpc.Schema({"a": dpc.Levels([0, 1]), "s": dpc.Levels(range(3)), "y": dpc.Bounded(0, 1)})
    table = dpc.Table(columns, schema, dpc.Ledger.in_memory(dpc.PureDP(epsilon)), missing="impute")
    with dpc.simulated_noise(seed):
        released = dpc.cells(table, by=["a", "s"], values=["y"], loss=dpc.PureDP(epsilon))
    truth = mean_gap(shape)
    plain = released.effect(treatment="a", outcome="y")
    by = released.effect(treatment="a", outcome="y", groups="s")
    treated = released.effect(treatment="a", outcome="y", adjust=["s"], estimand="att")
    return {
        "ate": held(plain.interval, truth), "adjusted": held(by.interval, truth),
        "att": held(treated.interval, truth), "a group": held(by.by_group[0].interval, truth),
    }  # fmt: skip


KNOWN: dict[str, float] = {}


def mean_gap(shape: str) -> float:
    if shape not in KNOWN:
        rng, draw, size = np.random.default_rng(0), NUMBERS[shape][1], 4_000_000
        KNOWN[shape] = float(draw(rng, np.ones(size)).mean() - draw(rng, np.zeros(size)).mean())
        if shape in ("log-normal", "log-normal, rare arm", *(one for one in NUMBERS if "far" in one), "flat"):
            KNOWN[shape] = 0.0  # both arms alike
    return KNOWN[shape]


# Paths of four periods: a quarter treated from the third, a quarter from the fourth, half never
def paths(shape: str, rng: Any, n: int) -> tuple[Reals, Reals, float]:
    """Outcomes on [0, 1], cohorts and the effect, the same in every period after."""
    shares = {"a tiny cohort": (0.02, 0.28, 0.7), "few never": (0.5, 0.47, 0.03)}.get(shape, (0.25, 0.25, 0.5))
    g = rng.choice([3, 4, 9], size=n, p=shares)
    after = np.arange(1, 5) >= g[:, None]
    if shape == "yes and no":
        return 1.0 * (rng.random((n, 4)) < 0.3 + 0.1 * after), g, 0.1
    if shape == "rare yes":
        return 1.0 * (rng.random((n, 4)) < 0.01 + 0.01 * after), g, 0.01
    if shape == "nearly all at 0":
        return np.where(rng.random((n, 4)) < 0.02, np.minimum(rng.exponential(0.2, (n, 4)), 1), 0), g, 0.0
    if shape == "no change at all":
        return np.repeat(rng.random((n, 1)), 4, axis=1), g, 0.0
    if shape == "bounds 20 times too wide":
        return 0.5 + 0.01 * rng.normal(size=(n, 4)) + 0.01 * after, g, 0.01
    if shape == "rare long jumps":
        return 0.3 + 0.01 * rng.normal(size=(n, 4)) + 0.5 * (rng.random((n, 4)) < 0.005), g, 0.0
    if shape == "huge effect":
        return 0.1 + 0.02 * rng.normal(size=(n, 4)) + 0.7 * after, g, 0.7
    return np.clip(0.4 + 0.1 * rng.normal(size=(n, 1)) + 0.05 * rng.normal(size=(n, 4)) + 0.05 * after, 0, 1), g, 0.05


PATHS = ("usual", "a tiny cohort", "few never", "yes and no", "rare yes", "nearly all at 0", "no change at all",
         "bounds 20 times too wide", "rare long jumps", "huge effect")  # fmt: skip


def did(n: int, epsilon: float, shape: str, seed: int) -> PublicTableInfo:
    rng = np.random.default_rng([seed, n])
    y, g, truth = paths(shape, rng, n)
    columns = {"who": np.repeat(np.arange(n), 4), "t": np.tile(np.arange(1, 5), n), "g": np.repeat(g, 4),
               "y": y.ravel()}  # fmt: skip
    schema = dpc.Schema({"t": dpc.Levels([1, 2, 3, 4]), "g": dpc.Levels([3, 4, 9]), "y": dpc.Bounded(0, 1)})
    loss = dpc.ApproxDP(epsilon, 1e-6)
    table = dpc.Table(columns, schema, dpc.Ledger.in_memory(loss, person="who"), person="who")
    with dpc.simulated_noise(seed):
        found = dpc.did(table, time="t", outcome="y", cohort="g", loss=loss)
    each = [(one, truth if (one.event or 0) >= 0 else 0.0) for one in found.event_study]
    shown = bool(each) and each[0][0].band is not None
    told = {
        "mean": None if found.att is None else held(found.att.interval, truth),
        "all at once": all(held(one.band, its) for one, its in each) if shown else None,
        "pre-trend p > .05": None if found.pretrend is None else found.pretrend > 0.05,
    }
    return told | {f"event {one.event}": held(one.interval, its) for one, its in each}


# Slopes: x drives y by 1; z an instrument of a strength
def slopes(n: int, epsilon: float, shape: str, seed: int) -> PublicTableInfo:
    rng = np.random.default_rng([seed, n])
    z, w, e, own, hidden = rng.normal(size=(5, n))
    x = {"weak instrument": 0.03, "no instrument": 0.0}.get(shape, 0.5) * z + hidden
    given = {"collinear": x + 0.05 * w}.get(shape, w)
    if shape == "skewed errors":
        e = rng.exponential(size=n) - 1
    y_plain, y_confounded = x + e, x + 0.8 * hidden + 0.6 * own
    wide = 120 if shape == "bounds 20 times too wide" else 6
    columns = {"y": y_plain, "u": y_confounded, "x": x, "z": z, "w": given}
    outcome = dpc.Bounded(-3 * wide, 3 * wide)
    schema = dpc.Schema({"y": outcome, "u": outcome} | {name: dpc.Bounded(-wide, wide) for name in "xzw"})
    loss = dpc.ApproxDP(epsilon, 1e-6)
    table = dpc.Table(columns, schema, dpc.Ledger.in_memory(loss))
    with dpc.simulated_noise(seed):
        released = dpc.moments(table, ["y", "u", "x", "z", "w"], loss=loss)
    line = released.ols("y", ["x", "w"], errors="homoscedastic")
    stages = released.iv("u", "x", instruments=["z"], errors="homoscedastic")
    correlation = released.partial("x", "y", given=["w"], errors=None if "skewed" in shape else "normal")
    sets = stages.anderson_rubin
    return {
        "ols": held(line["x"].interval, 1.0), "two stages": held(stages["x"].interval, 1.0),
        "Anderson-Rubin": None if sets is None else any(low <= 1 <= high for low, high in sets),
        "partial": held(correlation["x"].interval, partial_of(shape)),
    }  # fmt: skip


def partial_of(shape: str) -> float:
    spread = {"weak instrument": 1.0009, "no instrument": 1.0, "collinear": 1 / (1 / 1.25 + 400)}.get(shape, 1.25)
    noise = 1.0
    return math.sqrt(spread / (spread + noise))


SLOPES = ("usual", "weak instrument", "no instrument", "collinear", "skewed errors", "bounds 20 times too wide")

ROOMS: dict[str, tuple[Callable[[int, float, str, int], PublicTableInfo], tuple[str, ...]]] = {
    "cells": (cells, tuple(NUMBERS)), "did": (did, PATHS), "slopes": (slopes, SLOPES),
}  # fmt: skip


def lines(room: str, n: int, epsilon: float, runs: int, only: str) -> Iterator[str]:
    ask, shapes = ROOMS[room]
    for shape in shapes:
        if only and shape not in only.split(";"):
            continue
        kept: dict[str, list[bool | None]] = {}
        refused = ""
        for seed in range(runs):
            try:
                found = ask(n, epsilon, shape, seed)
            except DpCausalError as error:
                refused = type(error).__name__
                break
            for name, one in found.items():
                kept.setdefault(name, []).append(one)
        told = "; ".join(f"{name} {judged(seen, runs)}" for name, seen in kept.items())
        yield f"{room} n={n} epsilon={epsilon:g} {shape}: {told or refused}"


def judged(seen: list[bool | None], runs: int) -> str:
    """Return the coverage of those shown and their share."""
    shown = [one for one in seen if one is not None]
    if not shown:
        return "none"
    low = " LOW" if np.mean(shown) < 0.93 - 2 * math.sqrt(0.0475 / len(shown)) else ""
    return f"{np.mean(shown):.3f}{low} ({len(shown) / runs:.2f})"


def main(arguments: list[str]) -> int:
    """Return 0 if all that was shown holds."""
    options = argparse.ArgumentParser()
    options.add_argument("--room", default=";".join(ROOMS))
    options.add_argument("--runs", type=int, default=200)
    options.add_argument("--rows", default="200,2000,10000")
    options.add_argument("--epsilons", default=".1,1,10")
    options.add_argument("--shapes", default="")
    given = options.parse_args(arguments)
    low = False
    for room in given.room.split(";"):
        for n in map(int, given.rows.split(",")):
            for epsilon in map(float, given.epsilons.split(",")):
                for line in lines(room, n, epsilon, given.runs, given.shapes):
                    low = low or " LOW" in line
                    print(line, flush=True)
    return int(low)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
