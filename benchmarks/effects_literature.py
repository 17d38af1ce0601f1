"""Scores from noisy moments against fold-splitting, the baseline of the literature: error, coverage, ε at equal error.

    python -m benchmarks effects_literature                      200 runs a cell, 100 at n = 100,000
    python -m benchmarks effects_literature --silent             ours alone, and nobody says that tails are short

Five numbers uniform on [−1, 1] are adjusted for, the effect is .4, the outcome lies in ±2.5.  *Linear*: linear outcome,
logistic treatment.  *Nonlinear*: the lines are given squares and cubes as well, and the truth is neither.

Fold-splitting is ``dpc.papers.FoldSplit``, our own reading of an abstract, made as good as it can be: K and estimator
are those of the least true error.  Its noise is added in closed form.

The ratio of ε at equal error is printed for each ε that is answered, and where one is refused for the least that is.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import dpcausal as dpc
from dpcausal.errors import InfeasibleError
from dpcausal.mechanisms.blocks import assign_blocks
from dpcausal.papers.effects.fold_split import ESTIMATORS, GRID, averages, fold_split_sensitivity, scores
from dpcausal.privacy.noise import generator_from_seed

EFFECT, REACH, LEAST = 0.4, 2.5, 0.05
PLAIN_NAMES = [f"x{place}" for place in range(5)]


def drawn(kind: str, n: int, seed: int) -> tuple[Any, Any, Any]:
    """Return x, treatment, outcome."""
    rng = np.random.default_rng([13, n, seed])
    x = rng.uniform(-1, 1, (n, 5))
    if kind == "linear":
        logit, line = 0.6 * x[:, 0] - 0.4 * x[:, 1], x @ [0.5, 0.3, -0.2, 0.1, 0.0]
    else:
        logit = 0.8 * np.sin(2 * x[:, 0]) - 0.5 * x[:, 1] * x[:, 2]
        line = 0.6 * np.sin(2.5 * x[:, 0]) + 0.3 * np.abs(x[:, 1]) + 0.2 * x[:, 2] * x[:, 3]
    a = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    return x, a, np.clip(EFFECT * a + line + 0.44 * rng.normal(size=n), -REACH, REACH)


def features(kind: str, x: Any) -> Any:
    return x if kind == "linear" else np.hstack([x, x**2, x**3])


def ask(kind: str, n: int, loss: Any, seed: int, short: bool = True) -> Any:
    x, a, y = drawn(kind, n, seed)
    columns = dict(zip([f"f{place}" for place in range(99)], features(kind, x).T, strict=False))
    private = not isinstance(loss, dpc.NoPrivacy)
    ledger = dpc.Ledger.in_memory(loss, accept_large_epsilon=True) if private else dpc.Ledger.without_privacy()
    bounds = dict.fromkeys(columns, dpc.Bounded(-1, 1))
    schema = dpc.Schema({"a": dpc.Levels([0, 1]), "y": dpc.Bounded(-REACH, REACH), **bounds})
    table = dpc.Table({"a": a, "y": y, **columns}, schema, ledger)
    method = dpc.methods.Aipw(light_tails=short)  # errors are normal
    return dpc.effect(table, treatment="a", outcome="y", adjust=list(columns), loss=loss, method=method,
                      accept_large_epsilon=True)  # fmt: skip


def folds(kind: str, n: int, seed: int, K: int) -> Any:
    """Return fold-splitting's G-formula, weighted and doubly robust estimate without noise."""
    x, a, y = drawn(kind, n, seed)
    parts = assign_blocks(n, K, generator_from_seed(seed))
    means = averages(features(kind, x), a > 0, y / REACH, np.ones(n, dtype=bool), parts, LEAST)
    return np.array([scores(one, means, a > 0, y / REACH).mean() * REACH for one in ESTIMATORS])


def bounds(n: int, K: int) -> Any:
    """Return how far one record moves the three."""
    return np.array([float(fold_split_sensitivity(one, n, K, LEAST).bound) / GRID / n * REACH for one in ESTIMATORS])


def peers(kind: str, n: int, runs: int) -> tuple[Any, Any]:
    """Return the mean squared errors without noise and the sensitivities, of every K and estimator."""
    squares, moved = [], []
    for K in [K for K in (5, 20, 50, 100, 200, 400, 1_000) if n // K >= 25]:
        errors = np.array([folds(kind, n, seed, K) for seed in range(runs)]) - EFFECT
        squares.append((errors**2).mean(axis=0))
        moved.append(bounds(n, K))
    return np.concatenate(squares), np.concatenate(moved)


def epsilon_for(squares: Any, moved: Any, error: float) -> float:
    """Return the least ε at which fold-splitting has this error; infinite if no ε does."""
    left = error**2 - squares
    return float(np.min(np.where(left > 0, np.sqrt(2) * moved / np.sqrt(np.maximum(left, 1e-300)), np.inf)))


def least(kind: str, n: int) -> float:
    """Return the least ε, to a tenth, that is answered: public numbers alone decide."""
    epsilon = 0.1
    while not is_answered(kind, n, epsilon):
        epsilon = round(epsilon + (0.1 if epsilon >= 1 else 0.05), 2)
    return epsilon


def is_answered(kind: str, n: int, epsilon: float) -> bool:
    try:
        ask(kind, n, dpc.ApproxDP(epsilon, 1e-6), 0)
    except InfeasibleError:
        return False
    return True


def answered(kind: str, n: int, epsilon: float, runs: int, plain: list[Any], peer: tuple[Any, Any]) -> str:
    """Return the line of a cell that is answered."""
    found = []
    for seed in range(runs):
        with dpc.simulated_noise(seed):
            one = ask(kind, n, dpc.ApproxDP(epsilon, 1e-6), seed)
            found += [] if one.estimate is None else [one]
    own, error = (math.sqrt(float(np.mean([(one.estimate - EFFECT) ** 2 for one in some]))) for some in (plain, found))
    held = [one.interval[0] <= EFFECT <= one.interval[1] for one in found if one.interval]
    half, width = (1.96 * float(np.mean([one.standard_error for one in some])) for some in (found, plain))
    low = " LOW" if held and np.mean(held) < 0.93 - 3 * math.sqrt(0.0475 / len(held)) else ""
    floor, times = math.sqrt(float(peer[0].min())), epsilon_for(*peer, error) / epsilon
    told = f"× {times:.3g}" if math.isfinite(times) else f"at no ε (its error without noise is {floor:.4f})"
    return (f"RMSE {error:.4f} (× {error / own:.2f}), coverage {np.mean(held) if held else math.nan:.3f}{low}, "
            f"half-width {half:.4f} (× {half / width:.2f}), intervals in {len(held) / runs:.2f} of {runs} runs; "
            f"fold-splitting RMSE {least_at(*peer, epsilon):.4f}, ε at equal RMSE {told}")  # fmt: skip


def silent(kind: str, n: int, epsilon: float, runs: int) -> str:
    """Return the line of a cell where nobody says that tails are short."""
    plain, found = [ask(kind, n, dpc.NoPrivacy(), seed) for seed in range(min(runs, 40))], []
    for seed in range(runs):
        with dpc.simulated_noise(seed):
            try:
                one = ask(kind, n, dpc.ApproxDP(epsilon, 1e-6), seed, short=False)
            except InfeasibleError:
                return f"{kind}, n = {n}, ε = {epsilon:g}: refused before the spend"
            found += [] if one.estimate is None else [one]
    held = np.array([one.interval[0] <= EFFECT <= one.interval[1] for one in found if one.interval])
    error = math.sqrt(float(np.mean([(one.estimate - EFFECT) ** 2 for one in found])))
    shown = [one.interval for one in found if one.interval]
    wide = float(np.mean([high - low for low, high in shown])) / 2 if shown else math.nan
    own = 1.96 * float(np.mean([one.standard_error for one in plain]))
    low = " LOW" if len(held) and held.mean() < 0.93 - 3 * math.sqrt(0.0475 / len(held)) else ""
    return (f"{kind}, n = {n}, ε = {epsilon:g}: RMSE {error:.4f}, coverage "
            f"{held.mean() if len(held) else math.nan:.3f}{low}, half-width {wide:.4f} (× {wide / own:.2f}), shown in "
            f"{len(held) / runs:.2f} of {runs}, {', '.join(sorted({one.estimand for one in found}))}")  # fmt: skip


def least_at(squares: Any, moved: Any, epsilon: float) -> float:
    """Return fold-splitting's least error at ε."""
    return float(np.sqrt(squares + 2 * (moved / epsilon) ** 2).min())


def lines(kind: str, n: int, epsilons: Sequence[float], runs: int) -> Iterator[str]:
    """Yield a line for each ε; where it is refused, also that of the least ε that is answered."""
    plain = [ask(kind, n, dpc.NoPrivacy(), seed) for seed in range(runs)]
    own = math.sqrt(float(np.mean([(one.estimate - EFFECT) ** 2 for one in plain])))
    width = 1.96 * float(np.mean([one.standard_error for one in plain]))
    peer, first = peers(kind, n, max(min(runs, 400_000 // n), 8)), least(kind, n)
    yield f"{kind}, n = {n}: RMSE {own:.4f} and half-width {width:.4f} without privacy; answered from ε = {first:g} on"
    refused = [epsilon for epsilon in epsilons if epsilon < first]
    for epsilon in refused:
        peers_error = least_at(*peer, epsilon)
        yield f"  ε = {epsilon:<4g} refused before the spend, see ε = {first:g}; fold-splitting RMSE {peers_error:.4f}"
    for epsilon in dict.fromkeys(([first] if refused else []) + [one for one in epsilons if one >= first]):
        yield f"  ε = {epsilon:<4g} {answered(kind, n, epsilon, runs, plain, peer)}"


def main(arguments: list[str]) -> int:
    """Return 0 if no interval that was shown covers less than it should."""
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=200)
    options.add_argument("--kinds", default="linear,nonlinear")
    options.add_argument("--rows", default="1000,10000,100000")
    options.add_argument("--epsilons", default="0.1,0.5,1,2,4")
    options.add_argument("--silent", action="store_true")
    asked, failed = options.parse_args(arguments), False
    for kind in asked.kinds.split(","):
        for n in map(int, asked.rows.split(",")):
            runs = asked.runs if n <= 10_000 else max(asked.runs // 2, 1)
            epsilons = [float(one) for one in asked.epsilons.split(",")]
            ours = (silent(kind, n, epsilon, runs) for epsilon in epsilons)
            for line in ours if asked.silent else lines(kind, n, epsilons, runs):
                failed |= " LOW" in line
                print(line, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
