"""Causes that bend: bias and coverage of ``aipw`` with squares and products, where they are cheap, and without.

    python -m benchmarks effects_bends                   100 runs a cell, 30 from 100,000 rows on, ε = 1, δ = 1e-6
    python -m benchmarks effects_bends --rows 5000,10000 --shapes "square;abs"
    python -m benchmarks effects_bends --unseen          eight designs of others (``effects_bends_unseen.py``)

Treatment and outcome both go with the same function of what is adjusted for, errors are normal, the effect is .4 or, in
the last two, its mean.  The last column is the estimate's error over that of the same call without privacy.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.effects_bends_unseen import COLUMNS, OUTCOMES, UNSEEN
from dpcausal.errors import InfeasibleError

EFFECT = 0.4
Shape = Callable[[Any, int], tuple[dict[str, Any], Any, Any, Any]]
"""(generator, rows) → columns, probability of treatment, mean if not treated, effect."""


def numbers(rng: Any, n: int) -> tuple[Any, Any]:
    x, w = np.clip(rng.normal(size=(2, n)), -4, 4)
    return x, w


def of(bend: Callable[[Any, Any], Any], effect: Callable[[Any, Any], Any] | None = None) -> Shape:
    """Return a shape whose treatment and outcome go with one function of two numbers."""

    def draw(rng: Any, n: int) -> tuple[dict[str, Any], Any, Any, Any]:
        x, w = numbers(rng, n)
        bent = bend(x, w)
        moved = np.full(n, EFFECT) if effect is None else effect(x, w)
        return {"x": x, "w": w}, 0.5 + 0.2 * np.clip(bent, -2, 2), 0.7 * bent + 0.3 * w, moved

    return draw


def age(rng: Any, n: int) -> tuple[dict[str, Any], Any, Any, Any]:
    years, w = np.clip(18 + np.round(rng.gamma(6, 6, n)), 18, 110), numbers(rng, n)[1]
    u = (years - 50) / 18
    return {"age": years, "w": w}, 0.3 + 0.12 * np.minimum(u**2, 4), 0.7 * u**2 + 0.3 * u, np.full(n, EFFECT)


def by_sex(rng: Any, n: int) -> tuple[dict[str, Any], Any, Any, Any]:
    (x, _), sex = numbers(rng, n), rng.integers(0, 2, n)
    bent = x * (2 * sex - 1)
    return {"x": x, "sex": sex}, 0.5 + 0.2 * np.clip(bent, -2, 2), 0.7 * bent, np.full(n, EFFECT)


SHAPES: dict[str, Shape] = {
    "line": of(lambda x, w: x),
    "square": of(lambda x, w: (x**2 - 1) / 1.4),
    "product": of(lambda x, w: x * w),
    "age, a U": age,
    "a slope by sex": by_sex,
    "absolute value": of(lambda x, w: (np.abs(x) - 0.8) / 0.6),
    "step": of(lambda x, w: np.where(x > 1, 1.5, -0.5)),
    "cube": of(lambda x, w: np.clip(x**3 / 3 - x, -2, 2)),
    "wave": of(lambda x, w: np.sin(3 * x)),
    "both above 0": of(lambda x, w: 2.0 * ((x > 0) & (w > 0)) - 0.5),
    "square, effect too": of(lambda x, w: (x**2 - 1) / 1.4, lambda x, w: 0.4 + 0.3 * (x**2 - 1)),
    "product, effect too": of(lambda x, w: x * w, lambda x, w: 0.4 + 0.3 * x * w),
}
SCHEMA: dict[str, Any] = {
    "x": dpc.Bounded(-4, 4), "w": dpc.Bounded(-4, 4), "age": dpc.Bounded(18, 110), "sex": dpc.Levels([0, 1]),
}  # fmt: skip


def truth(name: str) -> float:
    """Return the mean effect, outcomes cut at their bounds."""
    if name in SHAPES:
        return EFFECT
    _, _, y, effect = UNSEEN[name](np.random.default_rng(7), 1_000_000)
    low, high = OUTCOMES[name].lower, OUTCOMES[name].upper
    return float((np.clip(y + effect, low, high) - np.clip(y, low, high)).mean())


def ask(name: str, n: int, loss: Any, seed: int, lines_only: bool) -> dpc.Effect:
    rng = np.random.default_rng([53, n, seed])
    columns: dict[str, Any] = {"a": dpc.Levels([0, 1]), "y": OUTCOMES.get(name, dpc.Bounded(-15, 15))}
    if name in SHAPES:
        adjust, chance, mean, effect = SHAPES[name](rng, n)
        a = (rng.random(n) < np.clip(chance, 0.08, 0.92)).astype(int)
        y = mean + effect * a + rng.normal(size=n)
        columns |= {one: SCHEMA[one] for one in adjust}
    else:
        adjust, chance, y, effect = UNSEEN[name](rng, n)
        a = (rng.random(n) < chance).astype(int)
        y = y + effect * a
        columns |= {one: COLUMNS[one] for one in adjust}
    ledger = dpc.Ledger.without_privacy() if isinstance(loss, dpc.NoPrivacy) else dpc.Ledger.in_memory(loss)
    rows = {"a": a, "y": np.clip(y, columns["y"].lower, columns["y"].upper), **adjust}
    table = dpc.Table(rows, dpc.Schema(columns), ledger)
    method = dpc.methods.Aipw(light_tails=True, lines_only=lines_only)
    return dpc.effect(table, treatment="a", outcome="y", adjust=list(adjust), loss=loss, method=method)


def cell(name: str, n: int, epsilon: float, runs: int, lines_only: bool) -> str:
    """Return bias, coverage and share shown of one way."""
    errors, plain, held, beside, right = [], [], [], 0, truth(name)
    for seed in range(runs):
        try:
            with dpc.simulated_noise(seed):
                found = ask(name, n, dpc.ApproxDP(epsilon, 1e-6), seed, lines_only)
        except InfeasibleError:
            return "refused"
        if found.release is not None:
            beside = max(beside, len(found.release.products))  # type: ignore[attr-defined]
        if found.estimate is not None:
            errors.append(found.estimate - right)
            exact = ask(name, n, dpc.NoPrivacy(), seed, lines_only).estimate
            plain.append((exact or math.nan) - right)
        if found.interval is not None:
            held.append(found.interval[0] <= right <= found.interval[1])
    if not errors:
        return "no answer"
    coverage = float(np.mean(held)) if held else math.nan
    low = " LOW" if held and coverage < 0.93 - 3 * math.sqrt(0.0475 / len(held)) else ""
    spread = float(np.std(errors)) / math.sqrt(len(errors))
    times = math.sqrt(float(np.mean(np.square(errors))) / float(np.mean(np.square(plain))))
    return (f"+ {beside}  of {right:.4g}: bias {np.mean(errors):+.4g} ± {spread:.2g}  coverage {coverage:.2f}{low}, "
            f"shown {len(held) / runs:.2f}  × {times:.2f}")  # fmt: skip


def main(arguments: list[str]) -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=100)
    options.add_argument("--shapes", default="")
    options.add_argument("--unseen", action="store_true")
    options.add_argument("--rows", default="5000,10000,100000")
    options.add_argument("--epsilon", type=float, default=1.0)
    asked = options.parse_args(arguments)
    named = asked.shapes.split(";") if asked.shapes else UNSEEN if asked.unseen else SHAPES
    for name in named:
        for n in map(int, asked.rows.split(",")):
            runs = asked.runs if n < 100_000 else max(asked.runs * 3 // 10, 1)
            for lines_only in (False, True):
                way = "lines only" if lines_only else "default"
                print(f"{name:<36}{n:>8}  {way:<11}{cell(name, n, asked.epsilon, runs, lines_only)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
