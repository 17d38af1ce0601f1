"""Coverage of what is read off moments: instruments of every strength, mediation, partial correlations, sandwiches.

    python -m benchmarks effects_readings                        300 runs a line, n = 10,000, epsilon 1
    python -m benchmarks effects_readings --rows 2000 --epsilon 2

Each line: coverage of a nominal .95 of the intervals that are shown and their share of all runs; of Anderson–Rubin sets
also how often they are unbounded.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.effects_fresh import cache_key
from benchmarks.effects_lines_unseen import DESIGNS

Held = tuple[bool | None, bool]
"""Whether the interval holds the truth (``None``: not shown), and whether it is unbounded."""


def released(columns: dict[str, Any], loss: Any, meat: Any = None, reach: float = 15) -> Any:
    schema = dpc.Schema(dict.fromkeys(columns, dpc.Bounded(-reach, reach)))
    return dpc.moments(
        dpc.Table(columns, schema, dpc.Ledger.in_memory(loss)), list(columns), robust_for=meat, loss=loss
    )


def holds(interval: Any, truth: float) -> Held:
    return (None if interval is None else bool(interval[0] <= truth <= interval[1])), False


def instruments(strengths: tuple[float, ...]) -> Callable[[Any, int, Any], dict[str, Held]]:
    def ask(rng: Any, n: int, loss: Any) -> dict[str, Held]:
        x, u, e, f = rng.normal(size=(4, n))
        z = rng.normal(size=(len(strengths), n))
        a = np.array(strengths) @ z + 0.4 * x + u + e
        columns = {"y": 0.7 * a - 0.5 * x + u + f, "a": a, "x": x, **{f"z{i}": one for i, one in enumerate(z)}}
        found = released(columns, loss).iv(
            "y", "a", instruments=[f"z{i}" for i in range(len(z))], given=["x"], errors="homoscedastic"
        )
        sets = found.anderson_rubin
        inside = None if sets is None else any(low <= 0.7 <= high for low, high in sets)
        unbounded = sets is not None and any(math.isinf(low) or math.isinf(high) for low, high in sets)
        return {"two-stage": holds(found["a"].interval, 0.7), "Anderson–Rubin": (inside, unbounded)}

    return ask


def mediation(through: float, on: float) -> Callable[[Any, int, Any], dict[str, Held]]:
    def ask(rng: Any, n: int, loss: Any) -> dict[str, Held]:
        x, e, f, g = rng.normal(size=(4, n))
        a = 0.5 * x + e
        m = through * a + 0.3 * x + f
        columns = {"y": 0.3 * a + on * m - 0.5 * x + g, "a": a, "m": m, "x": x}
        release = released(columns, loss)
        found = release.mediation("a", "m", "y", given=["x"], errors="homoscedastic")
        correlation = release.partial("m", "a", given=["x"], errors="normal")["m"]
        cause = release.sensitivity("y", "m", given=["a", "x"], explains=(0.1, 0.1), errors="normal")
        left = on - math.sqrt(0.01 / 0.9) if on else 0.0
        told = {name: holds(found[name].interval, truth) for name, truth in
                (("direct", 0.3), ("indirect", through * on), ("total", 0.3 + through * on))}  # fmt: skip
        told["partial"] = holds(correlation.interval, through / math.hypot(1, through))
        return told | ({"cause of .1, .1": holds(cause["shares as named"].interval, left)} if on else {})

    return ask


def fanned(
    draw: Callable[[Any, int], Any], meat: bool, symmetric: bool = False
) -> Callable[[Any, int, Any], dict[str, Held]]:
    """Spread that goes with a regressor; with ``meat``, or said to be constant though it is not."""

    def ask(rng: Any, n: int, loss: Any) -> dict[str, Held]:
        x, w = rng.normal(size=(2, n))
        columns = {"y": 1 + 2 * x - w + draw(rng, n) * np.exp(0.5 * x), "x": x, "w": w}
        release = released(columns, loss, ("y", ["x", "w"]) if meat else None, 20)
        found = release.ols("y", ["x", "w"], errors="symmetric" if symmetric else None if meat else "homoscedastic")
        return {"x": holds(found["x"].interval, 2.0), "w": holds(found["w"].interval, -1.0)}

    return ask


def wages(rng: Any, n: int) -> dict[str, Any]:
    """Years of schooling that are whole, tenure uniform, and a spread that grows with both: an unseen shape."""
    school, tenure = rng.binomial(12, 0.5, n) - 6.0, rng.uniform(-3, 3, n)
    return {"y": 2 * school - tenure + rng.normal(size=n) * (0.5 + 0.2 * (school + 6)), "x": school, "w": tenure}


def visits(rng: Any, n: int) -> dict[str, Any]:
    """Gamma counts whose spread goes with their mean, which is a line in a yes or no and a number: an unseen shape."""
    sick, far = (rng.random(n) < 0.3).astype(float), rng.exponential(size=n)
    mean = 2 + 2 * sick + 0.5 * far
    return {"y": rng.gamma(2, mean / 2) - 3.5, "x": sick, "w": far}


def yields(rng: Any, n: int) -> dict[str, Any]:
    """Laplace errors, wide where rain is far from its middle; regressors that correlate by .7: an unseen shape."""
    rain = rng.normal(size=n)
    soil = 0.7 * rain + math.sqrt(0.51) * rng.normal(size=n)
    return {"y": 2 * rain - soil + rng.laplace(size=n) * (0.4 + 0.5 * rain**2), "x": rain, "w": soil}


def skewed_arm(rng: Any, n: int) -> dict[str, Any]:
    """A yes of one in ten that goes with a number; errors of the yes are skewed, the others normal."""
    w = rng.normal(size=n)
    yes = rng.random(n) < 1 / (1 + np.exp(math.log(9) - 0.8 * w))
    error = np.where(yes, 1.2 * (rng.exponential(size=n) - 1), rng.normal(size=n))
    return {"y": 0.5 * yes + w + error, "x": yes.astype(float), "w": w}


def few_far(rng: Any, n: int) -> dict[str, Any]:
    """A tenth of x lies far out, where errors are wide and skewed."""
    w, few = rng.normal(size=n), rng.random(n) < 0.1
    x = 0.3 * rng.normal(size=n) + 2 * few + 0.5 * w
    return {"y": 2 * x - w + np.where(few, 2 * (rng.exponential(size=n) - 1), rng.normal(size=n)), "x": x, "w": w}


def skewed_end(rng: Any, n: int) -> dict[str, Any]:
    """Errors are skewed above 1.2, normal below."""
    x, w = rng.normal(size=(2, n))
    return {"y": 2 * x - w + np.where(x > 1.2, 1.5 * (rng.exponential(size=n) - 1), rng.normal(size=n)), "x": x, "w": w}


def spread(draw: Callable[[Any, int], dict[str, Any]], *slopes: float, symmetric: bool = False) -> Any:
    """The regression named as ``robust_for``; of these with symmetric errors that may be said."""

    def ask(rng: Any, n: int, loss: Any) -> dict[str, Held]:
        found = released(draw(rng, n), loss, ("y", ["x", "w"]), 30).ols(
            "y", ["x", "w"], errors="symmetric" if symmetric else None
        )
        return {name: holds(found[name].interval, slope) for name, slope in zip("xw", slopes, strict=True)}

    return ask


@cache
def slopes_of(name: str) -> dict[str, float]:
    """Return the slopes of two million clipped rows of a design of others."""
    columns = clipped(name, np.random.default_rng(0), 2_000_000)
    outcome, *others = columns.values()
    design = np.column_stack([*others, np.ones(len(outcome))])
    found = np.linalg.lstsq(design, outcome, rcond=None)[0]
    return dict(zip(list(columns)[1:], found.tolist(), strict=False))


def clipped(name: str, rng: Any, n: int) -> dict[str, Any]:
    draw, reach, _ = DESIGNS[name]
    return {column: np.clip(values, *reach[column]) for column, values in draw(rng, n).items()}


def of_others(name: str, symmetric: bool) -> Callable[[Any, int, Any], dict[str, Held]]:
    """The regression of a design of others named as ``robust_for``."""

    def ask(rng: Any, n: int, loss: Any) -> dict[str, Held]:
        columns, reach = clipped(name, rng, n), DESIGNS[name][1]
        kinds = {one: dpc.Levels([0, 1]) if ends == (0, 1) else dpc.Bounded(*ends) for one, ends in reach.items()}
        columns = {one: values.astype(int) if reach[one] == (0, 1) else values for one, values in columns.items()}
        outcome, *others = columns
        private = dpc.Table(columns, dpc.Schema(kinds), dpc.Ledger.in_memory(loss))
        release = dpc.moments(private, list(columns), robust_for=(outcome, others), loss=loss)
        fit = release.ols(outcome, others, errors="symmetric" if symmetric else None)
        return {one: holds(fit[one].interval, slopes_of(name)[one]) for one in others}

    return ask


def normal(rng: Any, n: int) -> Any:
    return rng.normal(size=n)


LINES = {
    "instrument .5": instruments((0.5,)), "instrument .1": instruments((0.1,)), "instrument .02": instruments((0.02,)),
    "three of strength 0": instruments((0.0, 0.0, 0.0)), "two of .1": instruments((0.1, 0.1)),
    "mediation .4, .3": mediation(0.4, 0.3), "mediation 0, 0": mediation(0.0, 0.0),
    "mediation .05, .05": mediation(0.05, 0.05),
    "fan, meat": fanned(normal, True), "fan, symmetric": fanned(normal, True, True),
    "fan, said constant": fanned(normal, False),
    "fan of t5, symmetric": fanned(lambda rng, n: rng.standard_t(5, n), True, True),
    "skewed fan, meat": fanned(lambda rng, n: rng.exponential(size=n) - 1, True),
    "unseen: wages, meat": spread(wages, 2.0, -1.0), "unseen: visits, meat": spread(visits, 2.0, 0.5),
    "unseen: yields, meat": spread(yields, 2.0, -1.0),
    "wages, symmetric": spread(wages, 2.0, -1.0, symmetric=True),
    "yields, symmetric": spread(yields, 2.0, -1.0, symmetric=True),
    "skewed arm, meat": spread(skewed_arm, 0.5, 1.0), "few far out, meat": spread(few_far, 2.0, -1.0),
    "skewed end, meat": spread(skewed_end, 2.0, -1.0),
}  # fmt: skip

LINES |= {f"{name}, meat": of_others(name, False) for name in DESIGNS}
LINES |= {f"{name}, symmetric": of_others(name, True) for name, (_, _, symmetric) in DESIGNS.items() if symmetric}


def main(arguments: list[str]) -> int:
    """Return 0 if no interval that was shown covers less than .93, less three Monte-Carlo errors."""
    asked = cache_key(arguments, "--lines", LINES, 300)
    loss, failed = dpc.ApproxDP(asked.epsilon, 1e-6), False
    for n in map(int, asked.rows.split(",")):
        for line in asked.lines.split(";"):
            rows: list[dict[str, Held]] = []
            for seed in range(asked.runs):
                with dpc.simulated_noise(seed):
                    rows.append(LINES[line](np.random.default_rng([11, n, seed]), n, loss))
            for name in rows[0]:
                held = [row[name][0] for row in rows if row[name][0] is not None]
                mean = float(np.mean(held)) if held else math.nan
                low = bool(held) and mean < 0.93 - 3 * math.sqrt(0.0475 / len(held))
                failed |= low and "said" not in line
                ends = f"  unbounded {np.mean([row[name][1] for row in rows]):.2f}" if name == "Anderson–Rubin" else ""
                print(f"{line:<32}{n:>7}  {name:<16} {mean:.3f}{' LOW' if low else '    '}"
                      f"  shown {len(held) / asked.runs:.2f}{ends}", flush=True)  # fmt: skip
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
