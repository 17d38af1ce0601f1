"""Risks of which few records tell: coverage of differences, ratios and groups, and how often there is an interval.

    python -m benchmarks effects_rare                       400 runs a line

The arms are a tenth and the rest, or as a number of events says; the truth is that of the law the rows are drawn from.
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import Any

import numpy as np

import dpcausal as dpc

RISKS = ((0.1, 0.01, 1.0), (0.1, 0.03, 3.0), (0.5, 0.03, 1.0), (0.1, 0.99, 1.0))
"""Share of the treated, risk of the controls, risk ratio."""
RARE = np.array([0.02, 0.05, 0.1, 0.2])
TREATED = np.array([0.05, 0.2, 0.4, 0.6])
TIMES = 1.8

Held = list[bool]


def asked(columns: dict[str, Any], epsilon: float, **words: Any) -> dpc.Effect:
    schema = dpc.Schema({"a": dpc.Levels([0, 1]), "y": dpc.Levels([0, 1])} | (
        {"s": dpc.Levels(range(4))} if "s" in columns else {}))  # fmt: skip
    table = dpc.Table(columns, schema, dpc.Ledger.in_memory(dpc.PureDP(epsilon)), missing="impute")
    return dpc.effect(table, treatment="a", outcome="y", loss=dpc.PureDP(epsilon), **words)


def note(held: Held, interval: Any, truth: float) -> None:
    if interval is not None:
        held.append(bool(interval[0] <= truth <= interval[1]))


def share(held: Held, runs: int) -> str:
    """Return the coverage, marked where it is below .93 by three Monte-Carlo errors, and the share that is shown."""
    if not held:
        return "none"
    low = " LOW" if np.mean(held) < 0.93 - 3 * math.sqrt(0.0475 / len(held)) else ""
    return f"{np.mean(held):.3f}{low} ({len(held) / runs:.2f} shown)"


def one_stratum(n: int, epsilon: float, runs: int, treated: float, risk: float, times: float) -> str:
    kept: list[Held] = [[], [], []]
    odds = risk * times / (1 - risk * times) / (risk / (1 - risk))
    for seed in range(runs):
        rng = np.random.default_rng([seed, n])
        a = (rng.random(n) < treated).astype(int)
        y = (rng.random(n) < risk * np.where(a, times, 1.0)).astype(int)
        with dpc.simulated_noise(seed):
            found = asked({"a": a, "y": y}, epsilon, adjust=[])
        assert found.risk_ratio is not None and found.odds_ratio is not None
        intervals = found.interval, found.risk_ratio.interval, found.odds_ratio.interval
        for held, interval, truth in zip(kept, intervals, (risk * (times - 1), times, odds), strict=True):
            note(held, interval, truth)
    events = n * treated * min(risk * times, 1 - risk * times)
    return f"{events:5.1f} in the smaller arm: " + "; ".join(
        f"{name} {share(held, runs)}" for name, held in zip(("difference", "ratio", "odds"), kept, strict=True)
    )


def groups(n: int, epsilon: float, runs: int) -> str:
    """Return the coverage in four strata of risk .02 to .2 of which .05 to .6 are treated, and over those supported."""
    whole: Held = []
    each: list[Held] = [[] for _ in RARE]
    for seed in range(runs):
        rng = np.random.default_rng([seed, n])
        s = rng.integers(0, 4, n)
        a = (rng.random(n) < TREATED[s]).astype(int)
        y = (rng.random(n) < RARE[s] * np.where(a, TIMES, 1.0)).astype(int)
        with dpc.simulated_noise(seed):
            found = asked({"a": a, "y": y, "s": s}, epsilon, adjust=["s"], groups="s")
        there = [one.share_supported > 0 for one in found.by_group]
        note(whole, found.interval, float((RARE * (TIMES - 1))[there].mean()) if any(there) else 0.0)
        for held, one, risk in zip(each, found.by_group, RARE, strict=True):
            note(held, one.interval, float(risk * (TIMES - 1)))
    return f"those supported {share(whole, runs)}; groups " + ", ".join(share(held, runs) for held in each)


def main(arguments: list[str]) -> int:
    """Return 0 if no interval that was shown covers less than .93, less three Monte-Carlo errors."""
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=400)
    options.add_argument("--rows", default="300,1000,4000")
    options.add_argument("--epsilons", default="1,10")
    given = options.parse_args(arguments)
    lines = []
    for n in map(int, given.rows.split(",")):
        for epsilon in map(float, given.epsilons.split(",")):
            for treated, risk, times in RISKS:
                told = one_stratum(n, epsilon, given.runs, treated, risk, times)
                lines.append(f"n={n:<6} epsilon={epsilon:<4g} risk {risk:g} x {times:g}, {treated:g} treated, {told}")
                print(lines[-1], flush=True)
            if n >= 1000:
                lines.append(f"n={n:<6} epsilon={epsilon:<4g} four strata: {groups(n, epsilon, given.runs)}")
                print(lines[-1], flush=True)
    return int(any(" LOW" in line for line in lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
