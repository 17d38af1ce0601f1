"""How large is the effect: error, coverage, width and share of answers by design, rows and loss, with what fails.

    python -m benchmarks effects                     400 runs a cell up to 10,000 rows, 100 beyond
    python -m benchmarks effects --runs 2000 --designs "trial;skewed" --epsilons 1
    python -m benchmarks effects --designs "line;competitor" --rows 1000,10000
    python -m benchmarks effects --designs "linear;nonlinear" --rows 100000 --epsilons 0.5

Cells are paid in pure ε; scores and slopes in (ε, 1e-6), the competitor's design at its own δ = 1e-5; ``linear`` and
``nonlinear`` are the designs of ``effects_literature``, with the ε at which fold-splitting has the same error.

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
from benchmarks import effects_literature
from dpcausal.errors import InfeasibleError

Draw = Callable[[Any, int], tuple[Any, Any, Any, Any]]
"""(generator, n) → treatment, stratum, outcome if not treated and if treated."""


@dataclass(frozen=True)
class Design:
    draw: Draw
    outcome: Any
    adjust: tuple[str, ...] = ("z",)
    lost: bool = False
    """Whether 40 % of the treatments are missing, more often in high strata."""
    strata: int = 4

    @property
    def schema(self) -> dpc.Schema:
        levels = {"a": dpc.Levels([0, 1]), "z": dpc.Levels(list(range(self.strata)))}
        return dpc.Schema({**levels, "y": self.outcome})

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


def heavy(rng: Any, n: int) -> Any:
    a, z = strata(rng, n)
    e = np.exp(1.5 * rng.normal(size=n))
    return a, z, e, 1.2 * e + 0.3 * z


def one_percent(rng: Any, n: int) -> Any:
    a, z = strata(rng, n, 0.0, 0.01)
    e = np.exp(rng.normal(size=n))
    return a, z, e, 1.5 * e


def mostly_zero(rng: Any, n: int) -> Any:
    a, z = strata(rng, n, 0.0, 0.1)
    spend, u = 5 * rng.gamma(0.5, size=n), rng.random(n)
    return a, z, spend * (u < 0.05), spend * (u < 0.07)


def tiny_strata(rng: Any, n: int) -> Any:
    z = np.minimum(rng.geometric(0.35, n) - 1, 11)
    a = (rng.random(n) < 0.3 + 0.03 * z).astype(int)
    y0 = 0.3 * z + rng.standard_t(3, n)
    return a, z, y0, y0 + 0.5 - 0.1 * z


def confounded(rng: Any, n: int) -> Any:
    z = rng.integers(0, 4, n)
    a = (rng.random(n) < np.array([0.03, 0.2, 0.7, 0.95])[z]).astype(int)
    y0 = 2.0 * z + rng.normal(size=n)
    return a, z, y0, y0 - 0.4


AFTERWARDS = {
    "log-normal 1.5": Design(heavy, dpc.Bounded(0, 200)),
    "1 % treated": Design(one_percent, dpc.Bounded(0, 30), ()),
    "mostly zero": Design(mostly_zero, dpc.Bounded(0, 40), ()),
    "tiny strata, t3": Design(tiny_strata, dpc.Bounded(-15, 20), strata=12),
    "confounded": Design(confounded, dpc.Bounded(-5, 12)),
    "skewed, missing": Design(lognormal, dpc.Bounded(0, 50), lost=True),
}
"""Shapes named after the rules were frozen."""

DESIGNS |= AFTERWARDS

NUMBERS = {f"x{place}": dpc.Bounded(-5, 5) for place in range(4)}
SLOPES = (0.8, 0.5, -0.3, 0.2)
ERRORS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "line": lambda rng, a, x: rng.normal(size=len(a)),
    "line, spread": lambda rng, a, x: rng.normal(size=len(a)) * (0.5 + a) * np.exp(0.3 * x[:, 0]),
    "line, exponential": lambda rng, a, x: rng.exponential(size=len(a)) - 1,
    "line, log-normal": lambda rng, a, x: np.exp(rng.normal(size=len(a))) - math.exp(0.5),
    "line, rare arm": lambda rng, a, x: rng.normal(size=len(a)),
    "line, own effects": lambda rng, a, x: rng.normal(size=len(a)) + 0.3 * a * x[:, 0],
    "line, t3": lambda rng, a, x: rng.standard_t(3, len(a)),
    "line, mostly zero": lambda rng, a, x: 10 * rng.exponential(size=len(a)) * (rng.random(len(a)) < 0.05) - 0.5,
}
"""Four numbers are adjusted for; what is added to the line."""
SHORT = ("line", "line, rare arm", "line, own effects")
"""Of normal errors: it is said that their tails are short."""


def scored(name: str, n: int, epsilon: float, seed: int, exact: bool) -> Any:
    """Return the effect .4 with four numbers adjusted for."""
    rng = np.random.default_rng([3, n, seed])
    x = np.clip(rng.normal(size=(n, 4)), -5, 5)
    share = 0.06 + 0.02 * x[:, 0] if name == "line, rare arm" else 0.5 + 0.12 * x[:, 0] - 0.08 * x[:, 1]
    a = (rng.random(n) < np.clip(share, 0.01, 0.99)).astype(int)
    y = np.clip(0.4 * a + x @ np.array(SLOPES) + ERRORS[name](rng, a, x), -15, 15)
    columns = {"a": a, "y": y, **{name: x[:, place] for place, name in enumerate(NUMBERS)}}
    schema = dpc.Schema({"a": dpc.Levels([0, 1]), "y": dpc.Bounded(-15, 15), **NUMBERS})
    table, loss = _paid(columns, schema, dpc.ApproxDP(epsilon, 1e-6), exact)
    method = dpc.methods.Aipw(light_tails=name in SHORT)
    return dpc.effect(table, treatment="a", outcome="y", adjust=list(NUMBERS), loss=loss, method=method)


LINES: dict[str, Callable[[Any, Any], Any]] = {
    "competitor": lambda rng, x: rng.normal(size=len(x)),
    "slope": lambda rng, x: rng.normal(size=len(x)),
    "slope, exponential": lambda rng, x: rng.exponential(size=len(x)) - 1,
    "slope, t5": lambda rng, x: rng.standard_t(5, size=len(x)),
    "slope, t3": lambda rng, x: rng.standard_t(3, len(x)),
    "slope, log-normal": lambda rng, x: np.exp(rng.normal(size=len(x))) - math.exp(0.5),
    "slope, skewed spread": lambda rng, x: (rng.exponential(size=len(x)) - 1) * np.exp(0.5 * x[:, 0]),
}
"""Two regressors in ±5, the outcome in ±20; the slope of the first is 2."""


def slope(name: str, n: int, epsilon: float, seed: int, exact: bool) -> Any:
    rng = np.random.default_rng([5, n, seed])
    x = rng.normal(size=(n, 2))
    y = 1 + 2 * x[:, 0] - x[:, 1] + LINES[name](rng, x)
    schema = dpc.Schema({"y": dpc.Bounded(-20, 20), "x": dpc.Bounded(-5, 5), "w": dpc.Bounded(-5, 5)})
    loss = dpc.ApproxDP(epsilon, 1e-5 if name == "competitor" else 1e-6)
    table, loss = _paid({"y": y, "x": x[:, 0], "w": x[:, 1]}, schema, loss, exact)  # type: ignore[assignment]
    normal = name in ("competitor", "slope")
    release = dpc.moments(table, ["y", "x", "w"], loss=loss)
    return release.ols("y", ["x", "w"], errors="normal" if normal else "homoscedastic")["x"]


def _paid(columns: Any, schema: Any, loss: Any, exact: bool) -> tuple[dpc.Table, Any]:
    ledger = dpc.Ledger.without_privacy() if exact else dpc.Ledger.in_memory(loss)
    return dpc.Table(columns, schema, ledger), dpc.NoPrivacy() if exact else loss


def by_cells(name: str, n: int, epsilon: float, seed: int, exact: bool) -> Any:
    design = DESIGNS[name]
    columns = design.columns(np.random.default_rng([7, n, seed]), n)
    table, loss = _paid(columns, design.schema, dpc.PureDP(epsilon), exact)
    return dpc.effect(table, treatment="a", outcome="y", adjust=list(design.adjust), loss=loss)


LITERATURE = ("linear", "nonlinear")
ALL = {**dict.fromkeys(DESIGNS, by_cells), **dict.fromkeys(ERRORS, scored), **dict.fromkeys(LINES, slope)}


def run(name: str, n: int, epsilon: float, runs: int) -> str:
    """Return the line of one cell: the error of all and of those with intervals, coverage, width, share shown."""
    truth = DESIGNS[name].truth() if name in DESIGNS else 2.0 if name in LINES else 0.4
    errors, covered, shown, widths, plain, own = [], [], [], [], [], []
    for seed in range(runs):
        with dpc.simulated_noise(seed):
            try:
                found = ALL[name](name, n, epsilon, seed, False)
            except InfeasibleError:
                return "refused before the spend"
        exact = ALL[name](name, n, epsilon, seed, True)
        plain.append(exact.standard_error or math.nan)
        if found.estimate is not None:
            errors.append(found.estimate - truth)
            own.append(math.nan if exact.estimate is None else exact.estimate - truth)
        if found.interval is not None:
            covered.append(found.interval[0] <= truth <= found.interval[1])
            shown.append(found.estimate - truth)
            widths.append(found.standard_error)
    rmse, least, seen = (
        math.sqrt(float(np.nanmean(np.square(some)))) if some else math.nan for some in (errors, own, shown)
    )
    wide = float(np.mean(widths)) / float(np.nanmean(plain)) if shown else math.nan
    coverage = float(np.mean(covered)) if covered else math.nan
    low = bool(covered) and coverage < 0.93 - 3 * math.sqrt(0.95 * 0.05 / len(covered))
    told = f"{rmse:8.4f} x {rmse / least:5.2f}  shown {seen:8.4f}  {coverage:.3f}{' LOW' if low else '    '}"
    return f"{told}  width x {wide:5.2f}  intervals in {len(covered) / runs:.2f} of {runs} runs"


def main(arguments: list[str]) -> int:
    """Return 0 if no interval that was shown covers less than it should."""
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=400)
    options.add_argument("--designs", default=";".join((*ALL, *LITERATURE)), help="names, separated by ;")
    options.add_argument("--rows", default="1000,10000,100000")
    options.add_argument("--epsilons", default="0.1,0.5,1")
    asked = options.parse_args(arguments)
    failed = False
    print(f"{asked.runs} runs a cell (a quarter beyond 10,000 rows); RMSE, and over that without privacy;\n"
          "where an interval is shown its RMSE, coverage of .95, and its Monte-Carlo error at that many runs "
          f"{math.sqrt(0.0475 / asked.runs):.3f},\nwidth over that without privacy.\n")  # fmt: skip
    for name in asked.designs.split(";"):
        for n in map(int, asked.rows.split(",")):
            runs, epsilons = asked.runs if n <= 10_000 else max(asked.runs // 4, 1), asked.epsilons.split(",")
            if name in LITERATURE:
                for line in effects_literature.lines(name, n, [float(one) for one in epsilons], runs):
                    failed |= " LOW" in line
                    print(line, flush=True)
                continue
            for epsilon in map(float, epsilons):
                line = run(name, n, epsilon, runs)
                failed |= " LOW" in line
                print(f"{name:<21}{n:>8} {epsilon:>5g}  {line}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
