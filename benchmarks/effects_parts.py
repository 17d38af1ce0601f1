"""Numbers without cuts that are adjusted for at pure ε: bias, width and coverage.

    python -m benchmarks effects_parts                      150 runs a line, fewer where rows are many

The last five shapes were named after the rules were frozen, before any was run.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import dpcausal as dpc

Rows = dict[str, Any]
Shape = tuple[str, float, float, dict[str, tuple[float, float]]]

SHAPES: tuple[Shape, ...] = (
    ("curve, strong confounding", 5, 250, {"a": (18, 100)}),
    ("risk by age in whole years", 0.05, 1, {"a": (18, 100)}),
    ("two numbers with an interaction", 4, 200, {"a": (18, 100), "w": (0, 80)}),
    ("skewed number and outcome", 2, 120, {"a": (0, 100)}),
    ("steps at 65 in both", 3, 100, {"a": (18, 100)}),
    ("a trial", 2, 120, {"a": (18, 100)}),
    ("8 % treated, outcomes missing by age", 3, 150, {"a": (0, 110)}),
    ("unseen: income with a kink at 30", 2, 100, {"a": (0, 200)}),
    ("unseen: birth weight of two humps, a risk", 0.04, 1, {"a": (0.4, 6)}),
    ("unseen: three lab values that go together", 1, 30, {"a": (-5, 5), "b": (-5, 5), "c": (-5, 5)}),
    ("unseen: ages heaped at fives, a wave", 2, 60, {"a": (0, 100)}),
    ("unseen: costs, treated by age squared", 1.5, 80, {"a": (20, 80)}),
)
"""Name, effect, upper bound of the outcome, numbers with their bounds."""


def rows(shape: int, n: int, rng: np.random.Generator) -> Rows:
    """Return the rows of a shape."""
    truth, a = SHAPES[shape][1], rng.uniform(18, 90, n)

    def drawn(index: Any) -> Any:
        return rng.random(n) < 1 / (1 + np.exp(-index))

    if shape == 0:
        x = drawn((a - 55) / 12)
        return {"a": a, "x": x, "y": 80 + 0.02 * (a - 40) ** 2 + truth * x + rng.normal(0, 10, n)}
    if shape == 1:
        a = np.floor(a)
        x = drawn((a - 60) / 20)
        return {"a": a, "x": x, "y": (rng.random(n) < 0.02 + 0.004 * (a - 18) + truth * x).astype(float)}
    if shape == 2:
        w = rng.gamma(4, 6, n)
        x = drawn((a - 55) / 20 + (w - 24) / 20 - 0.25)
        y = 20 + 0.2 * a + 0.3 * w + 0.004 * a * w + truth * x + rng.normal(0, 8, n)
        return {"a": a, "w": w, "x": x, "y": y}
    if shape == 3:
        a = rng.exponential(8, n)
        x = drawn((a - 8) / 8)
        return {"a": a, "x": x, "y": rng.exponential(1, n) * (2 + 0.3 * a) + truth * x}
    if shape == 4:
        x = rng.random(n) < 0.2 + 0.5 * (a > 65)
        return {"a": a, "x": x, "y": 30 + 8 * (a > 65) + 0.1 * a + truth * x + rng.normal(0, 6, n)}
    if shape == 5:
        x = rng.random(n) < 0.5
        return {"a": a, "x": x, "y": 50 + 0.2 * a + truth * x + rng.normal(0, 8, n)}
    if shape == 7:
        a = np.minimum(rng.gamma(2, 18, n), 200)
        x = drawn(1.2 - 0.05 * np.maximum(a - 30, 0))
        return {"a": a, "x": x, "y": 20 + 0.8 * np.minimum(a, 30) + truth * x + rng.normal(0, 7, n)}
    if shape == 8:
        a = np.where(rng.random(n) < 0.12, rng.normal(1.6, 0.4, n), rng.normal(3.4, 0.45, n)).clip(0.4, 6)
        x = drawn((2.5 - a) * 2)
        return {"a": a, "x": x, "y": (rng.random(n) < 0.05 + 0.3 / (1 + np.exp(4 * (a - 2))) + truth * x).astype(float)}
    if shape == 9:
        lab = np.sqrt(0.5) * (rng.normal(size=n) + rng.normal(size=(3, n)))
        x = drawn(0.5 * lab.sum(axis=0) - 0.2)
        y = 15 + lab[0] + 0.7 * lab[1] - 0.5 * lab[2] + truth * x
        return {"a": lab[0], "b": lab[1], "c": lab[2], "x": x, "y": y + rng.normal(0, 2, n)}
    if shape == 10:
        a = rng.uniform(15, 95, n)
        a = np.where(rng.random(n) < 0.5, 5 * np.rint(a / 5), a)
        x = drawn(np.sin(a / 8))
        return {"a": a, "x": x, "y": 30 + 4 * np.sin(a / 8) + truth * x + rng.normal(0, 5, n)}
    if shape == 11:
        a = rng.uniform(20, 80, n)
        x = drawn(((a - 50) / 15) ** 2 - 1.5)
        return {"a": a, "x": x, "y": np.exp(1 + 0.02 * a + 0.4 * rng.normal(size=n)) + truth * x}
    a = rng.normal(55, 15, n)
    x = drawn((a - 55) / 15 - 2.6)
    y = 40 + 0.3 * a + truth * x + rng.normal(0, 8, n)
    return {"a": a, "x": x, "y": np.where(rng.random(n) < 0.6 / (1 + np.exp((70 - a) / 10)), np.nan, y)}


def line(shape: int, n: int, epsilon: float, runs: int) -> str:
    _, truth, upper, numbers = SHAPES[shape]
    schema = dpc.Schema({name: dpc.Bounded(*ends) for name, ends in numbers.items()} | {
        "x": dpc.Levels([0, 1]), "y": dpc.Bounded(0, upper)})  # fmt: skip
    errors, held, widths = [], [], []
    for seed in range(runs):
        columns = rows(shape, n, np.random.default_rng([seed, n]))
        table = dpc.Table(columns | {"x": columns["x"].astype(int)}, schema, dpc.Ledger.in_memory(dpc.PureDP(epsilon)))
        with dpc.simulated_noise(seed):
            try:
                found = dpc.effect(table, treatment="x", outcome="y", adjust=[*numbers], loss=dpc.PureDP(epsilon))
            except dpc.errors.InfeasibleError:
                return "refused"
        if found.estimate is not None:
            errors.append(found.estimate - truth)
        if found.interval is not None:
            held.append(found.interval[0] <= truth <= found.interval[1])
            widths.append((found.interval[1] - found.interval[0]) / 2)
    if not held:
        return "no interval"
    return (f"bias {np.mean(errors):+.2g}, RMSE {np.sqrt(np.mean(np.square(errors))):.2g}, ± {np.median(widths):.2g}, "
            f"held {np.mean(held):.2f} of {len(held)} in {runs}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=150)
    parser.add_argument("--shapes", default=",".join(map(str, range(len(SHAPES)))), help="places in the list")
    asked = parser.parse_args()
    for place in map(int, asked.shapes.split(",")):
        for n, epsilon, share in ((200, 1.0, 1.0), (5_000, 1.0, 1.0), (20_000, 0.5, 1.0), (100_000, 1.0, 0.4),
                                  (1_000_000, 1.0, 0.08)):  # fmt: skip
            told = line(place, n, epsilon, max(3, int(asked.runs * share)))
            print(f"{SHAPES[place][0]}, n = {n:,}, ε = {epsilon:g}: {told}", flush=True)


if __name__ == "__main__":
    main()
