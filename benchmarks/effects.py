"""How large is the effect: error, coverage, width and share of answers by design, rows and loss, with what fails.

    python -m benchmarks effects                     400 runs a cell up to 10,000 rows, 100 beyond
    python -m benchmarks effects --runs 2000 --designs trial,skewed --epsilons 1

Coverage of a nominal .95 is good if no less than .93, less three Monte-Carlo errors √(.95·.05/runs).
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpcausal as dpc
from dpcausal.errors import InfeasibleError

Draw = Callable[[Any, int], tuple[Any, Any, Any, Any]]
"""(generator, n) → treatment, stratum, outcome if not treated and if treated."""

LEVELS = {"a": dpc.Levels([0, 1]), "z": dpc.Levels([0, 1, 2, 3])}


@dataclass(frozen=True)
class Design:
    draw: Draw
    outcome: Any
    adjust: tuple[str, ...] = ("z",)
    lost: bool = False
    """Whether 40 % of the treatments are missing, more often in high strata."""

    def columns(self, rng: Any, n: int) -> dict[str, Any]:
        a, z, y0, y1 = self.draw(rng, n)
        treatment: Any = np.where(rng.random(n) < 0.25 + 0.1 * z, None, a) if self.lost else a
        return {"a": treatment, "z": z, "y": self.clipped(np.where(a == 1, y1, y0))}

    def clipped(self, y: Any) -> Any:
        return np.clip(y, self.outcome.lower, self.outcome.upper) if isinstance(self.outcome, dpc.Bounded) else y

    def truth(self) -> float:
        _, _, y0, y1 = self.draw(np.random.default_rng(0), 2_000_000)
        return float((self.clipped(y1) * 1.0 - self.clipped(y0)).mean())


def strata(rng: Any, n: int, shift: float = 0.15, base: float = 0.2) -> tuple[Any, Any]:
    z = rng.integers(0, 4, n)
    return (rng.random(n) < base + shift * z).astype(int), z


def binary(low: float, high: float) -> Draw:
    def draw(rng: Any, n: int) -> Any:
        a, z = strata(rng, n, 0.0, 0.5)
        u = rng.random(n)
        return a, z, (u < low).astype(int), (u < high).astype(int)

    return draw


def normal(rng: Any, n: int) -> Any:
    a, z = strata(rng, n)
    y0 = 0.5 * z + rng.normal(size=n)
    return a, z, y0, y0 + 0.4


def heteroskedastic(rng: Any, n: int) -> Any:
    a, z = strata(rng, n)
    e = rng.normal(size=n)
    return a, z, 0.5 * z + 0.3 * e, 0.4 + 0.5 * z + (0.5 + z) * e


def lognormal(rng: Any, n: int) -> Any:
    a, z = strata(rng, n)
    e = np.exp(rng.normal(size=n))
    return a, z, e + 0.3 * z, 1.3 * e + 0.3 * z


def poisson(rng: Any, n: int) -> Any:
    a, z = strata(rng, n)
    y0 = rng.poisson(1 + 0.5 * z)
    return a, z, y0, y0 + rng.poisson(0.3, n)


def rare(rng: Any, n: int) -> Any:
    a, z = strata(rng, n, 0.0, 0.05)
    y0 = rng.exponential(size=n)
    return a, z, y0, y0 * 1.3


DESIGNS = {
    "trial": Design(binary(0.20, 0.26), dpc.Levels([0, 1]), ()),
    "rare outcome": Design(binary(0.01, 0.015), dpc.Levels([0, 1]), ()),
    "normal": Design(normal, dpc.Bounded(-4, 6)),
    "heteroskedastic": Design(heteroskedastic, dpc.Bounded(-12, 14)),
    "skewed": Design(lognormal, dpc.Bounded(0, 50)),
    "poisson": Design(poisson, dpc.Bounded(0, 20)),
    "rare treatment": Design(rare, dpc.Bounded(0, 20)),
    "40 % missing": Design(normal, dpc.Bounded(-4, 6), lost=True),
}


def run(design: Design, n: int, epsilon: float, runs: int, truth: float) -> str:
    schema = dpc.Schema({**LEVELS, "y": design.outcome})
    loss = dpc.PureDP(epsilon)
    errors, covered, widths, plain = [], [], [], []
    for seed in range(runs):
        columns = design.columns(np.random.default_rng([7, n, seed]), n)
        asked: Any = {"treatment": "a", "outcome": "y", "adjust": list(design.adjust)}
        exact = dpc.effect(dpc.Table(columns, schema, dpc.Ledger.without_privacy()), loss=dpc.NoPrivacy(), **asked)
        plain.append(exact.standard_error or math.nan)
        with dpc.simulated_noise(seed):
            try:
                found = dpc.effect(dpc.Table(columns, schema, dpc.Ledger.in_memory(loss)), loss=loss, **asked)
            except InfeasibleError:
                return "refused before the spend"
        if found.estimate is not None and found.interval is not None:
            errors.append(found.estimate - truth)
            covered.append(found.interval[0] <= truth <= found.interval[1])
            widths.append(found.standard_error)
    if not covered:
        return "no interval in any run"
    rmse, coverage = math.sqrt(float(np.mean(np.square(errors)))), float(np.mean(covered))
    wide = float(np.mean(widths)) / float(np.nanmean(plain))
    low = coverage < 0.93 - 3 * math.sqrt(0.95 * 0.05 / len(covered))
    share = len(covered) / runs
    return f"{rmse:8.4f}  {coverage:.3f}{' LOW' if low else ''}  width x {wide:5.2f}  answered {share:.2f}"


def main(arguments: list[str]) -> int:
    """Return 0 if no interval that was shown covers less than it should."""
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=400)
    options.add_argument("--designs", default=",".join(DESIGNS))
    options.add_argument("--rows", default="1000,10000,100000")
    options.add_argument("--epsilons", default="0.1,0.5,1")
    asked = options.parse_args(arguments)
    failed = False
    print(f"{asked.runs} runs a cell (a quarter beyond 10,000 rows); RMSE, coverage of .95, width over that without "
          f"privacy.\nMonte-Carlo error of a coverage: {math.sqrt(0.0475 / asked.runs):.3f}.\n")  # fmt: skip
    for name in asked.designs.split(","):
        design, truth = DESIGNS[name], DESIGNS[name].truth()
        for n in map(int, asked.rows.split(",")):
            for epsilon in map(float, asked.epsilons.split(",")):
                line = run(design, n, epsilon, asked.runs if n <= 10_000 else max(asked.runs // 4, 1), truth)
                failed |= " LOW" in line
                print(f"{name:<16}{n:>8} {epsilon:>5g}  {line}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
