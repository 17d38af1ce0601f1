"""Regression discontinuity: error, coverage, width, and where there is no answer.

    python -m benchmarks effects_cutoff                                        200 runs a cell
    python -m benchmarks effects_cutoff --rows 10000 --epsilons 1 --runs 1000
    python -m benchmarks effects_cutoff --bandwidth 0.5 --designs "line;cubic"   the same bandwidth with and without

``x error`` and ``x width`` are over those of the same call without privacy on the same rows; ``bunched`` is the share
of runs that find a jump of density at level .05.  Running numbers lie in [−1, 1], the cutoff is 0.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpcausal as dpc
from dpcausal.errors import InfeasibleError

Reals = Any
MONTHS = np.arange(-12, 12)


@dataclass(frozen=True)
class Design:
    """A running number, the mean outcome, its errors, and what jumps."""

    running: Callable[[Any, int], Reals]
    mean: Callable[[Reals], Reals]
    bounds: tuple[float, float]
    truth: float
    errors: Callable[[Any, Reals], Reals] = lambda rng, x: 0.5 * rng.normal(size=len(x))
    levels: bool = False
    moved: float | None = None
    """Jump of the share of treated, where the cutoff does not decide."""
    yes: bool = False


def even(rng: Any, n: int) -> Reals:
    return rng.uniform(-1, 1, n)


def beta(rng: Any, n: int) -> Reals:
    return 2 * rng.beta(2, 4, n) - 1


def months(rng: Any, n: int) -> Reals:
    return rng.choice(MONTHS, n) / 12


def polynomial(left: list[float], right: list[float]) -> Callable[[Reals], Reals]:
    at = np.polynomial.polynomial.polyval
    return lambda x: np.where(x < 0, at(x, left), at(x, right))


def small(rng: Any, x: Reals) -> Reals:
    return 0.1295 * rng.normal(size=len(x))


def step(mean: Callable[[Reals], Reals], jump: float = 0.3) -> Callable[[Reals], Reals]:
    return lambda x: mean(x) + jump * (x >= 0)


# The first two: Lee (2008) and Ludwig & Miller (2007) as fitted by Calonico, Cattaneo & Titiunik (2014).
DESIGNS = {
    "elections": Design(beta, polynomial([0.48, 1.27, 7.18, 20.21, 21.54, 7.33], [0.52, 0.84, -3, 7.99, -9.01, 3.56]),
                        (-0.5, 1.6), 0.04, small),
    "head start": Design(beta, polynomial([3.71, 2.30, 3.28, 1.45, 0.23, 0.03],
                                          [0.26, 18.49, -54.81, 74.30, -45.02, 9.83]), (-4, 8), -3.45, small),
    "line": Design(even, step(lambda x: 0.5 * x), (-2.5, 2.5), 0.3),
    "cubic": Design(even, step(lambda x: x - 0.8 * x**3), (-2.5, 2.5), 0.3),
    "parabola, normal": Design(lambda rng, n: rng.normal(0, 0.4, n).clip(-1, 1), step(lambda x: 1.5 * x**2),
                               (-2, 3.5), 0.3),
    "kink": Design(even, step(lambda x: np.where(x < 0, -0.5 * x, x)), (-2.5, 3.5), 0.3),
    "waves": Design(even, step(lambda x: 0.5 * np.sin(10 * x)), (-2.5, 2.5), 0.3),
    "exponential": Design(even, step(lambda x: 0.5 * x), (-1.5, 6), 0.3,
                          lambda rng, x: rng.exponential(0.5, len(x)) - 0.5),
    "spread": Design(even, step(lambda x: 0.5 * x), (-4, 4), 0.3,
                     lambda rng, x: (0.2 + 0.8 * (x > 0)) * rng.normal(size=len(x))),
    "few right": Design(lambda rng, n: 1.5 * rng.beta(2, 6, n) - 0.9, step(lambda x: 0.5 * x), (-2.5, 2.5), 0.3),
    "yes and no": Design(even, step(lambda x: 0.3 + 0.1 * x + 0.1 * np.sin(3 * x), 0.1), (0, 1), 0.1, yes=True),
    "months": Design(months, step(lambda x: 0.5 * x**2 + x * (x > 0)), (-2.5, 3), 0.3, levels=True),
    "rounded": Design(months, step(lambda x: 0.5 * x**2 + x * (x > 0)), (-2.5, 3), 0.3),
    "moved .5": Design(even, lambda x: 0.5 * x, (-2.5, 2.5), 0.3, moved=0.5),
    "moved .1": Design(even, lambda x: 0.5 * x, (-2.5, 2.5), 0.3, moved=0.1),
    "moved 0": Design(even, lambda x: 0.5 * x, (-2.5, 2.5), 0.3, moved=0.0),
    "bunched": Design(lambda rng, n: np.where((x := even(rng, n)) > -0.05, np.where(x < 0, x + 0.05, x), x),
                      step(lambda x: 0.5 * x), (-2.5, 2.5), 0.3),
    # Named after bins, degree and rules were fixed, and left as they were found.
    "fresh: a jump elsewhere": Design(even, step(lambda x: 0.5 * x + 0.8 * (x > 0.45)), (-2.5, 3.5), 0.3),
    "fresh: two humps": Design(lambda rng, n: np.clip(rng.choice([-0.5, 0.5], n) + 0.2 * rng.normal(size=n), -1, 1),
                               step(np.tanh), (-2.5, 2.5), 0.3),
    "fresh: a hinge at .1": Design(even, step(lambda x: 3 * np.maximum(x - 0.1, 0) - 0.5 * x), (-2.5, 5), 0.3),
    "fresh: t3 pay": Design(lambda rng, n: np.clip(rng.exponential(0.5, n) - 0.7, -1, 1),
                            step(np.exp, -0.4), (-4, 6), -0.4, lambda rng, x: 0.5 * rng.standard_t(3, len(x))),
    "fresh: a rare yes": Design(even, step(lambda x: 0.02 + 0.015 * x**2, 0.03), (0, 1), 0.03, yes=True),
}  # fmt: skip


def drawn(design: Design, n: int, seed: int) -> tuple[dict[str, Any], dpc.Schema]:
    """Return rows and their schema."""
    rng = np.random.default_rng([seed, n])
    x = design.running(rng, n)
    y = design.mean(x) + design.errors(rng, x)
    schema: dict[str, Any] = {"x": dpc.Levels(MONTHS.tolist()) if design.levels else dpc.Bounded(-1, 1),
                              "y": dpc.Bounded(*design.bounds)}  # fmt: skip
    columns: dict[str, Any] = {"x": np.rint(12 * x).astype(int) if design.levels else x, "y": y}
    if design.yes:
        columns["y"], schema["y"] = (rng.random(n) < design.mean(x)).astype(int), dpc.Levels([0, 1])
    if design.moved is not None:
        hidden = rng.normal(size=n)
        treated = rng.random(n) < 0.25 + design.moved * (x >= 0) + 0.1 * (hidden > 0)
        columns |= {"y": y + design.truth * treated + 0.3 * hidden, "a": treated.astype(int)}
        schema["a"] = dpc.Levels([0, 1])
    return columns, dpc.Schema(schema)


def asked(
    columns: dict[str, Any], schema: dpc.Schema, loss: dpc.PureDP | dpc.NoPrivacy, options: dict[str, Any]
) -> Any:
    ledger = dpc.Ledger.without_privacy() if loss.exact else dpc.Ledger.in_memory(loss, accept_large_epsilon=True)
    table = dpc.Table(columns, schema, ledger)
    treatment = "a" if "a" in columns else None
    return dpc.discontinuity(
        table, running="x", outcome="y", cutoff=0, treatment=treatment, loss=loss, accept_large_epsilon=True, **options
    )


def holds(found: Any, truth: float) -> bool:
    """Return whether the interval, or the Anderson–Rubin set, has the truth in it."""
    if found.anderson_rubin is not None:
        return any(low <= truth <= high for low, high in found.anderson_rubin)
    return bool(found.interval[0] <= truth <= found.interval[1])


def cell(name: str, n: int, epsilon: float, runs: int, options: dict[str, Any]) -> str:
    """Return one line of the table."""
    design, rows = DESIGNS[name], []
    for seed in range(runs):
        columns, schema = drawn(design, n, seed)
        try:
            with dpc.simulated_noise(seed + 10**6):
                found = asked(columns, schema, dpc.PureDP(epsilon), options)
        except InfeasibleError:
            return f"{name:<18}{n:>8}{epsilon:>6g}   refused before the spend"
        exact = asked(columns, schema, dpc.NoPrivacy(), options)
        if found.estimate is None or exact.estimate is None:
            continue
        width = [float(np.subtract(*one.interval[::-1])) if one.interval else np.inf for one in (found, exact)]
        rows.append((
            found.estimate - design.truth, exact.estimate - design.truth, holds(found, design.truth), *width,
            found.bandwidth, holds(exact, design.truth), 1.0 if found.density is None else found.density,
        ))  # fmt: skip
    shown = np.array(rows, dtype=float)
    if not rows:
        return f"{name:<18}{n:>8}{epsilon:>6g}   no answer"
    error, exact_error = (np.sqrt(np.mean(shown[:, place] ** 2)) for place in (0, 1))
    wide, exact_wide = (np.median(shown[:, place]) for place in (3, 4))
    return (
        f"{name:<18}{n:>8}{epsilon:>6g}{len(shown) / runs:>7.2f}{error:>9.4f}{error / exact_error:>8.2f}"
        f"{shown[:, 2].mean():>9.3f}{shown[:, 6].mean():>9.3f}{wide / 2:>9.4f}"
        f"{wide / exact_wide if np.isfinite(wide) else np.inf:>8.2f}"
        f"{np.isfinite(shown[:, 3]).mean():>9.2f}{np.median(shown[:, 5]):>7.2f}{np.mean(shown[:, 7] < 0.05):>9.3f}"
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="effects_cutoff")
    parser.add_argument("--designs", default="all", help="names with ; between them, or all")
    parser.add_argument("--rows", default="2000,10000,100000")
    parser.add_argument("--epsilons", default="0.1,0.5,1")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--bandwidth", type=float)
    parser.add_argument("--curvature", type=float)
    parser.add_argument("--bins", type=int, default=12)
    told = parser.parse_args(arguments)
    options = {"bandwidth": told.bandwidth, "curvature": told.curvature, "bins": told.bins}
    names = list(DESIGNS) if told.designs == "all" else told.designs.split(";")
    print(f"{'':<18}{'n':>8}{'eps':>6}{'shown':>7}{'error':>9}{'x error':>8}{'covers':>9}{'without':>9}{'half':>9}"
          f"{'x width':>8}{'bounded':>9}{'h':>7}{'bunched':>9}")  # fmt: skip
    for n in map(int, told.rows.split(",")):
        for epsilon in map(float, told.epsilons.split(",")):
            for name in names:
                print(cell(name, n, epsilon, told.runs, options), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
