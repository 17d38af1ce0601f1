"""One slope from noisy moments on shapes that should break it, and beside scores and fold-splitting.

    python -m benchmarks effects_slope                        100 runs a cell, 20 from 100,000 rows on
    python -m benchmarks effects_slope --shapes "line;rare" --rows 300,10000 --epsilons 1,4 --said
    python -m benchmarks effects_slope --many                 25 columns, a fifth treated, beside the other methods

Truths are two: the mean effect of everybody, and the slope of least squares, both of two million rows; where they
differ the answer is about the second, and says so.  ``--said`` says that errors are of one law everywhere,
``--symmetric`` that they are symmetric.
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
from dpcausal.mechanisms.blocks import assign_blocks
from dpcausal.papers.effects.fold_split import ESTIMATORS, GRID, averages, fold_split_sensitivity, scores
from dpcausal.privacy.noise import generator_from_seed

Drawn = tuple[Any, Any, Any, Any]
"""What is adjusted for, treatment, outcome if not treated and if treated."""
REACH, MANY, TREATED, LIKE = 12.0, 25, -1.55, np.random.default_rng(7)
BINARY = LIKE.uniform(0.1, 0.9, MANY - 6)
SLOPES, CHANCES = 0.25 * LIKE.choice(5, MANY, p=[0.5, 0.2, 0.15, 0.1, 0.05]), 0.25 * LIKE.normal(size=MANY)


def logistic(rng: Any, t: Any) -> Any:
    return (rng.random(len(t)) < 1 / (1 + np.exp(-t))).astype(int)


def normal(rng: Any, n: int, columns: int = 4) -> Any:
    return np.clip(rng.normal(size=(n, columns)), -4, 4)


def line(rng: Any, n: int, intercept: float = 0.0, effect: float = 0.5) -> Drawn:
    x = normal(rng, n)
    y = x @ [0.5, 0.4, 0.2, 0.0] + rng.normal(size=n)
    return x, logistic(rng, intercept + 0.5 * x[:, 0] - 0.4 * x[:, 1]), y, y + effect


def heterogeneous(rng: Any, n: int) -> Drawn:
    x, a, y, _ = line(rng, n, -1.0)
    return x, a, y, y + 0.5 + 0.6 * x[:, 0]


def bent(rng: Any, n: int) -> Drawn:
    x = normal(rng, n)
    y = np.exp(0.5 * x[:, 0]) + np.sin(2 * x[:, 1]) + rng.normal(size=n)
    return x, logistic(rng, x[:, 0] ** 2 / 2 - 1), y, y + 0.5


def skewed(rng: Any, n: int) -> Drawn:
    x, a, y, _ = line(rng, n)
    y = y + np.exp(rng.normal(size=n)) - 1.6
    return x, a, y, y + 0.5


def fanned(rng: Any, n: int) -> Drawn:
    x, a, _, _ = line(rng, n, -1.5)
    y = x @ [0.5, 0.4, 0.2, 0.0] + np.exp(0.5 * x[:, 0]) * rng.normal(size=n)
    return x, a, y, y + 0.5


def jumps(rng: Any, n: int) -> Drawn:
    """Treated outcomes spread four times as wide, and are skewed."""
    x, a, y, _ = line(rng, n, -1.5)
    return x, a, y, y + 0.5 + 2 * (rng.exponential(size=n) - 1)


def many(rng: Any, n: int) -> Drawn:
    """Six numbers and nineteen flags, a fifth treated, the effect 4: like a study of infants' health, larger."""
    numbers, flags = np.clip(rng.normal(size=(n, 6)), -3, 3), (rng.random((n, MANY - 6)) < BINARY).astype(float)
    z = np.hstack([numbers, flags - BINARY])
    y = z @ SLOPES + rng.normal(size=n)
    return np.hstack([numbers, flags]), logistic(rng, z @ CHANCES + TREATED), y, y + 4


SHAPES: dict[str, Callable[[Any, int], Drawn]] = {
    "line": line, "nothing": lambda rng, n: line(rng, n, effect=0.0),
    "5 % treated": lambda rng, n: line(rng, n, -3.2), "2 % treated": lambda rng, n: line(rng, n, -4.2),
    "effect that grows with x": heterogeneous, "neither is a line": bent, "log-normal errors": skewed,
    "spread that grows with x": fanned, "treated spread, skewed": jumps, "25 columns": many,
    "30 % missing": line, "persons of 1 to 4 rows": line,
}  # fmt: skip


def asked(shape: str, n: int, loss: Any, seed: int, method: Any) -> Any:
    rng = np.random.default_rng([31, n, seed])
    x, a, y0, y1 = SHAPES[shape](rng, n)
    y, more, owner = np.where(a == 1, y1, y0), {}, {}
    columns = {f"x{place}": column for place, column in enumerate(x.T)}
    if "missing" in shape:
        y = np.where(rng.random(n) < 0.3, np.nan, y)
    if "persons" in shape:  # a person's rows share half of the outcome's spread
        rows = rng.integers(1, 5, n)
        owner, more = {"id": np.repeat(np.arange(n), rows)}, {"person": "id"}
        columns = {name: column[owner["id"]] for name, column in columns.items()}
        a, y = a[owner["id"]], (y + 0.7 * rng.normal(size=n))[owner["id"]] + 0.7 * rng.normal(size=int(rows.sum()))
    schema = dict.fromkeys(columns, dpc.Bounded(-4, 4)) | {"a": dpc.Levels([0, 1]), "y": dpc.Bounded(-REACH, REACH)}
    ledger = dpc.Ledger.without_privacy() if loss.exact else dpc.Ledger.in_memory(loss, accept_large_epsilon=True)
    table = dpc.Table({**columns, "a": a, "y": y, **owner}, dpc.Schema(schema), ledger, **more)
    return dpc.effect(table, treatment="a", outcome="y", adjust=list(columns), loss=loss, method=method,
                      accept_large_epsilon=True)  # fmt: skip


def truths(shape: str) -> tuple[float, float]:
    """Return everybody's mean effect and the slope of least squares."""
    squares, right, effect = 0.0, 0.0, 0.0
    for seed in range(20):
        x, a, y0, y1 = SHAPES[shape](np.random.default_rng([32, seed]), 100_000)
        y0, y1 = np.clip(y0, -REACH, REACH), np.clip(y1, -REACH, REACH)
        f = np.column_stack([a, np.ones(len(a)), x])
        squares, right = squares + f.T @ f, right + f.T @ np.where(a == 1, y1, y0)
        effect += float((y1 - y0).mean()) / 20
    return effect, float(np.linalg.solve(squares, right)[0])


def found(shape: str, n: int, epsilon: float, runs: int, method: Any) -> list[Any] | str:
    """Return the answers, or why they are refused before the spend."""
    answers = []
    for seed in range(runs):
        with dpc.simulated_noise(seed):
            try:
                answers.append(asked(shape, n, dpc.ApproxDP(epsilon, 1e-6), seed, method))
            except DpCausalError:
                return "refused before the spend"
    return answers


def told(answers: list[Any] | str, plain: list[Any], aims: dict[str, float]) -> str:
    """Return what a cell's answers come to: errors over the first of the truths, coverage of each."""
    if isinstance(answers, str):
        return answers
    aim = next(iter(aims.values()))
    if all(one.estimate is None for one in answers):
        return "no answer"
    own, error = (
        math.sqrt(float(np.mean([(one.estimate - aim) ** 2 for one in some if one.estimate is not None])))
        for some in (plain, answers)
    )
    shown = [one.interval for one in answers if one.interval]
    text = f"RMSE {error:.4f} (× {error / own:.2f}), shown in {len(shown) / len(answers):.2f} of {len(answers)}"
    none = sum(one.estimate is None for one in answers)
    text += f", no answer in {none}" if none else ""
    within = [abs(one.estimate - aim) <= 1.96 * one.standard_error for one in answers if one.standard_error]
    text += f", within 1.96 errors {np.mean(within):.3f}" if within and len(shown) < len(answers) else ""
    for name, value in aims.items():
        held = [low <= value <= high for low, high in shown]
        if held:
            low = " LOW" if np.mean(held) < 0.93 - 3 * math.sqrt(0.0475 / len(held)) else ""
            text += f", {name} held {np.mean(held):.3f}{low}"
    if shown:
        width = float(np.mean([high - low for low, high in shown])) / 2
        usual = float(np.mean([one.interval[1] - one.interval[0] for one in plain if one.interval])) / 2
        text += f", half-width {width:.4f} (× {width / usual:.2f})"
    return text


def lines(shape: str, n: int, epsilons: list[float], runs: int, way: dpc.methods.PartiallyLinear) -> Iterator[str]:
    """Yield a line for each ε."""
    plain = [asked(shape, n, dpc.NoPrivacy(), seed, dpc.methods.PartiallyLinear()) for seed in range(runs)]
    effect, slope = truths(shape)
    aims = {"slope": slope} | ({"effect": effect} if abs(effect - slope) > 0.002 else {})
    yield f"{shape}, n = {n}: slope {slope:.3f}, mean effect {effect:.3f}; without privacy {told(plain, plain, aims)}"
    for epsilon in epsilons:
        yield f"  ε = {epsilon:<4g} {told(found(shape, n, epsilon, runs, way), plain, aims)}"


def folded(n: int, epsilons: list[float], runs: int) -> list[float]:
    """Return fold-splitting's least error over K and the estimator, its noise added in closed form."""
    best = [math.inf] * len(epsilons)
    for K in (K for K in (20, 50, 100, 200, 400, 1_000) if n // K >= 50):
        errors = []
        for seed in range(runs):
            x, a, y0, y1 = many(np.random.default_rng([31, n, seed]), n)
            y, parts = np.where(a == 1, y1, y0) / REACH, assign_blocks(n, K, generator_from_seed(seed))
            means = averages(x / 4, a > 0, y, np.ones(n, dtype=bool), parts, 0.05)
            errors.append([scores(one, means, a > 0, y).mean() * REACH - 4 for one in ESTIMATORS])
        for one, square in zip(ESTIMATORS, np.mean(np.square(errors), axis=0), strict=True):
            moved = float(fold_split_sensitivity(one, n, K, 0.05).bound) / GRID / n * REACH
            best = [min(b, math.sqrt(square + 2 * (moved / e) ** 2)) for b, e in zip(best, epsilons, strict=True)]
    return best


def beside(n: int, epsilons: list[float], runs: int) -> Iterator[str]:
    """Yield a line for each ε and method on many numbers."""
    plain = [asked("25 columns", n, dpc.NoPrivacy(), seed, "partially-linear") for seed in range(runs)]
    yield f"25 columns, n = {n}: without privacy {told(plain, plain, {'effect': 4.0})}"
    peers = folded(n, epsilons, max(min(runs, 100_000 // n), 3))
    said = dpc.methods.PartiallyLinear
    ways = {"one slope": "partially-linear", "one slope, errors said symmetric": said(errors="symmetric"),
            "one slope, of one law": said(errors="homoscedastic"), "aipw": "aipw", "moments, tails said short":
            dpc.methods.Aipw(light_tails=True)}  # fmt: skip
    for epsilon, peer in zip(epsilons, peers, strict=True):
        for name, way in ways.items():
            answers = found("25 columns", n, epsilon, runs, way)
            yield f"  ε = {epsilon:<4g} {name}: {told(answers, plain, {'effect': 4.0})}"
        yield f"  ε = {epsilon:<4g} fold-splitting, K and estimator of the least error: RMSE {peer:.4f}"


def main(arguments: list[str]) -> int:
    """Return 0 if no interval that was shown holds the slope less often than it should."""
    options = argparse.ArgumentParser()
    options.add_argument("--shapes", default=";".join(SHAPES))
    options.add_argument("--rows", default="300,10000,100000")
    options.add_argument("--epsilons", default="1,4")
    options.add_argument("--runs", type=int, default=100)
    options.add_argument("--said", action="store_true")
    options.add_argument("--symmetric", action="store_true")
    options.add_argument("--many", action="store_true")
    asked, failed = options.parse_args(arguments), False
    way = dpc.methods.PartiallyLinear(
        errors="symmetric" if asked.symmetric else "homoscedastic" if asked.said else None
    )
    epsilons = [float(one) for one in asked.epsilons.split(",")]
    for n in map(int, asked.rows.split(",")):
        runs = asked.runs if n < 100_000 else max(asked.runs // 5, 2)
        cells = [beside(n, epsilons, runs)] if asked.many else [
            lines(shape, n, epsilons, runs, way) for shape in asked.shapes.split(";")
        ]  # fmt: skip
        for cell in cells:
            for text in cell:
                failed |= "slope held" in text and " LOW" in text.split("effect held")[0]
                print(text, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
