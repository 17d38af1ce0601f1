"""Regression discontinuities: a running number on [-1, 1] and the cutoff 0."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.designs import Reading, register, table

Reals = Any
MONTHS = np.arange(-12, 12)


@dataclass(frozen=True)
class Cutoff:
    """A running number, the mean outcome, its errors, and what jumps."""

    mean: Callable[[Reals], Reals]
    bounds: tuple[float, float] = (-2.5, 2.5)
    truth: float = 0.3
    running: Callable[[Any, int], Reals] = lambda rng, n: rng.uniform(-1, 1, n)
    errors: Callable[[Any, Reals], Reals] = lambda rng, x: 0.5 * rng.normal(size=len(x))
    levels: bool = False
    moved: float | None = None
    """Jump of the share of treated, where the cutoff does not decide."""
    yes: bool = False

    def rows(self, rng: Any, n: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Rows and their schema."""
        x = self.running(rng, n)
        y = self.mean(x) + self.errors(rng, x)
        schema: dict[str, Any] = {"x": dpc.Levels(MONTHS.tolist()) if self.levels else dpc.Bounded(-1, 1),
                                  "y": dpc.Bounded(*self.bounds)}  # fmt: skip
        columns: dict[str, Any] = {"x": np.rint(12 * x).astype(int) if self.levels else x, "y": y}
        if self.yes:
            columns["y"], schema["y"] = (rng.random(n) < self.mean(x)).astype(int), dpc.Levels([0, 1])
        if self.moved is not None:
            hidden = rng.normal(size=n)
            treated = rng.random(n) < 0.25 + self.moved * (x >= 0) + 0.1 * (hidden > 0)
            columns |= {"y": y + self.truth * treated + 0.3 * hidden, "a": treated.astype(int)}
            schema["a"] = dpc.Levels([0, 1])
        return columns, schema

    def ask(self, rng: Any, n: int, loss: Any, method: Any = "default") -> dict[str, Reading]:
        """``method``: options of the call, as ``bandwidth=0.5,bins=12``."""
        columns, schema = self.rows(rng, n)
        named = [word.split("=") for word in str(method).split(",") if "=" in word]
        options: dict[str, Any] = {name: int(value) if name == "bins" else float(value) for name, value in named}
        found = dpc.discontinuity(
            table(columns, schema, loss), running="x", outcome="y", cutoff=0, loss=loss, accept_large_epsilon=True,
            treatment="a" if "a" in columns else None, **options,
        )  # fmt: skip
        interval, estimate = found.interval, found.estimate
        if estimate is not None and found.anderson_rubin is not None:
            parts = [part for part in found.anderson_rubin if part[0] <= self.truth <= part[1]]
            interval = parts[0] if parts else (math.nan, math.nan)
        elif estimate is None:
            interval = None
        bunched = 1.0 if found.density is None else found.density
        more = {"bounded": float(bool(found.interval)), "h": found.bandwidth or math.nan, "bunched": bunched < 0.05}
        return {"": Reading(estimate, interval, self.truth, more)}


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


LINE = step(lambda x: 0.5 * x)
MONTHLY = {"mean": step(lambda x: 0.5 * x**2 + x * (x > 0)), "bounds": (-2.5, 3), "running": months}
# The first two: Lee (2008) and Ludwig & Miller (2007) as fitted by Calonico, Cattaneo & Titiunik (2014).
CUTOFFS = {
    "elections": Cutoff(polynomial([0.48, 1.27, 7.18, 20.21, 21.54, 7.33], [0.52, 0.84, -3, 7.99, -9.01, 3.56]),
                        (-0.5, 1.6), 0.04, beta, small),
    "head start": Cutoff(polynomial([3.71, 2.30, 3.28, 1.45, 0.23, 0.03], [0.26, 18.49, -54.81, 74.30, -45.02, 9.83]),
                         (-4, 8), -3.45, beta, small),
    "line": Cutoff(LINE), "cubic": Cutoff(step(lambda x: x - 0.8 * x**3)),
    "parabola, normal": Cutoff(step(lambda x: 1.5 * x**2), (-2, 3.5),
                               running=lambda rng, n: rng.normal(0, 0.4, n).clip(-1, 1)),
    "kink": Cutoff(step(lambda x: np.where(x < 0, -0.5 * x, x)), (-2.5, 3.5)),
    "waves": Cutoff(step(lambda x: 0.5 * np.sin(10 * x))),
    "exponential": Cutoff(LINE, (-1.5, 6), errors=lambda rng, x: rng.exponential(0.5, len(x)) - 0.5),
    "spread": Cutoff(LINE, (-4, 4), errors=lambda rng, x: (0.2 + 0.8 * (x > 0)) * rng.normal(size=len(x))),
    "few right": Cutoff(LINE, running=lambda rng, n: 1.5 * rng.beta(2, 6, n) - 0.9),
    "yes and no": Cutoff(step(lambda x: 0.3 + 0.1 * x + 0.1 * np.sin(3 * x), 0.1), (0, 1), 0.1, yes=True),
    "months": Cutoff(**MONTHLY, levels=True), "rounded": Cutoff(**MONTHLY),
    **{f"moved {share:g}": Cutoff(lambda x: 0.5 * x, moved=share) for share in (0.5, 0.1, 0.0)},
    "bunched": Cutoff(LINE, running=lambda rng, n: np.where(
        (x := rng.uniform(-1, 1, n)) > -0.05, np.where(x < 0, x + 0.05, x), x)),
}  # fmt: skip
LATER = {
    "a jump elsewhere": Cutoff(step(lambda x: 0.5 * x + 0.8 * (x > 0.45)), (-2.5, 3.5)),
    "two humps": Cutoff(step(np.tanh), running=lambda rng, n: np.clip(
        rng.choice([-0.5, 0.5], n) + 0.2 * rng.normal(size=n), -1, 1)),
    "a hinge at 0.1": Cutoff(step(lambda x: 3 * np.maximum(x - 0.1, 0) - 0.5 * x), (-2.5, 5)),
    "t3 pay": Cutoff(step(np.exp, -0.4), (-4, 6), -0.4, lambda rng, n: np.clip(rng.exponential(0.5, n) - 0.7, -1, 1),
                     lambda rng, x: 0.5 * rng.standard_t(3, len(x))),
    "a rare yes": Cutoff(step(lambda x: 0.02 + 0.015 * x**2, 0.03), (0, 1), 0.03, yes=True),
}  # fmt: skip
FACTS = {"more": {"noise": 10**6}}
DESIGNS = register(CUTOFFS, "cutoffs", **FACTS) | register(LATER, "cutoffs, later", "2026-11-23", **FACTS)
