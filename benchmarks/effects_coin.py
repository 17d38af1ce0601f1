"""Trials by coin: the score of known probabilities beside sums by cells, errors and coverage.

    python -m benchmarks effects_coin                       1,000 runs a line

Each line, of ``Coin`` and of ``stratified``: root mean square error, coverage, the share of runs with an interval, half
its width.  The truth is that of the law the rows are drawn from.
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import Any

import numpy as np

import dpcausal as dpc
from dpcausal.errors import InfeasibleError

SHARES = (0.05, 0.2, 0.5)
SITES = np.array([0.0, 0.03, 0.06, 0.15])
COINS = np.array([0.5, 1.0, 1.0, 1.5])
"""Of four sites: what each adds to the outcome, and by how much its coin differs."""


def unit(shape: str, rng: Any, n: int) -> Any:
    """Return outcomes of controls, in a range of 1."""
    if shape == "skewed":
        return np.clip(rng.lognormal(-3, 1, n), 0, 1)
    if shape == "mostly zero":
        return np.clip((rng.random(n) < 0.1) * rng.exponential(0.15, n), 0, 1)
    if shape in ("binary", "rare"):
        return (rng.random(n) < (0.4 if shape == "binary" else 0.05)).astype(float)
    return np.clip(0.4 + 0.15 * rng.standard_normal(n), 0, 1)


LIFTS = {"normal": 0.03, "skewed": 0.02, "mostly zero": 0.01, "binary": 0.1, "rare": 0.1, "four sites": 0.03}


def both(shape: str, rng: Any, n: int) -> Any:
    """Return the two outcomes of each and the site."""
    site = rng.integers(0, 4, n)
    y = unit(shape, rng, n)
    if shape in ("binary", "rare"):
        return np.maximum(y, rng.random(n) < LIFTS[shape]), y, site
    shift = SITES[site] * (shape == "four sites")
    return np.clip(y + shift + LIFTS[shape], 0, 1), np.clip(y + shift, 0, 1), site


def line(shape: str, n: int, epsilon: float, share: float, runs: int, start: int) -> str:
    truth = float(np.mean([np.subtract(*both(shape, np.random.default_rng(seed), 500_000)[:2]).mean()
                           for seed in (1, 2, 3, 4)]))  # fmt: skip
    sites, levels = shape == "four sites", shape in ("binary", "rare")
    chances = share * COINS if sites else np.full(4, share)
    told = [(1 - chances).tolist(), chances.tolist()] if sites else [1 - share, share]
    schema = {"a": dpc.Levels([0, 1]), "y": dpc.Levels([0, 1]) if levels else dpc.Bounded(0, 1)}
    schema |= {"s": dpc.Levels(range(4))} if sites else {}
    ways: dict[str, Any] = {"coin": dpc.methods.Coin(probabilities=told), "stratified": "stratified"}
    errors, held, wide = ({name: [] for name in ways} for _ in range(3))
    for seed in range(start, start + runs):
        rng = np.random.default_rng(seed)
        treated, control, site = both(shape, rng, n)
        a = (rng.random(n) < chances[site]).astype(int)
        y = np.where(a, treated, control)
        columns = {"a": a, "y": y.astype(int) if levels else y} | ({"s": site} if sites else {})
        for name, method in ways.items():
            table = dpc.Table(columns, dpc.Schema(schema), dpc.Ledger.in_memory(dpc.PureDP(epsilon)))
            try:
                with dpc.simulated_noise(seed):
                    found = dpc.effect(table, treatment="a", outcome="y", adjust=["s"] * sites, method=method,
                                       loss=dpc.PureDP(epsilon))  # fmt: skip
            except InfeasibleError:
                continue
            errors[name].append(math.nan if found.estimate is None else found.estimate - truth)
            if found.interval is not None:
                held[name].append(found.interval[0] <= truth <= found.interval[1])
                wide[name].append(found.interval[1] - found.interval[0])
        if not errors["coin"]:
            return "refused"
    parts = []
    for name in ways:
        low = " LOW" if held[name] and np.mean(held[name]) < 0.93 - 3 * math.sqrt(0.0651 / len(held[name])) else ""
        known = [error for error in errors[name] if not math.isnan(error)]
        rmse = math.sqrt(np.mean(np.square(known))) if known else math.nan
        parts.append(f"{name} {rmse:.5f}, " + (
            f"{np.mean(held[name]):.3f}{low} ({len(held[name]) / runs:.2f} shown, ±{np.median(wide[name]) / 2:.4f})"
            if held[name] else "none"
        ))  # fmt: skip
    return "; ".join(parts)


def main(arguments: list[str]) -> int:
    """Return 0 if no interval of ``Coin`` covers less than .93, less three Monte-Carlo errors."""
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=1000)
    options.add_argument("--rows", default="1000,10000")
    options.add_argument("--epsilons", default="1")
    options.add_argument("--start", type=int, default=100_000, help="First seed: those below it chose the constants.")
    given = options.parse_args(arguments)
    low = False
    for n in map(int, given.rows.split(",")):
        for epsilon in map(float, given.epsilons.split(",")):
            for share in SHARES:
                for shape in LIFTS:
                    told = line(shape, n, epsilon, share, given.runs, given.start)
                    low |= " LOW" in told.split("; ")[0]
                    print(f"n={n:<6} epsilon={epsilon:<4g} coin {share:<5g} {shape:<12} {told}", flush=True)
    return int(low)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
