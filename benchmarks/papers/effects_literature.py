"""Fold-splitting, the baseline of the literature, beside the methods of the library: error, and ε at equal error.

Fold-splitting is ``dpc.papers.FoldSplit``, read from an abstract and made as good as it can be: K and estimator are
those of the least true error, and its noise is added in closed form.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.designs import Design
from benchmarks.effects import DESIGNS, SUMMARY, measure
from benchmarks.run import Report, options, summarised
from dpcausal.errors import InfeasibleError
from dpcausal.mechanisms.blocks import assign_blocks
from dpcausal.papers.effects.fold_split import ESTIMATORS, GRID, averages, fold_split_sensitivity, scores
from dpcausal.privacy.noise import generator_from_seed

LEAST = 0.05
WAYS = {"linear": ["default", "aipw"], "nonlinear": ["default", "aipw"],
        "25 columns": ["default", "partially-linear, symmetric", "partially-linear, homoscedastic", "aipw",
                       "aipw, light tails"]}  # fmt: skip


def peers(design: Design, n: int, runs: int) -> tuple[Any, Any]:
    """Mean squared errors without noise, and how far one record moves the estimate, of every K and estimator."""
    study, squares, moved = design.make, [], []
    half = study.schema["y"].width / 2
    names = [name for name in study.schema if name not in ("a", "y")]
    for K in [K for K in (5, 20, 50, 100, 200, 400, 1_000) if n // K >= (50 if len(names) > 20 else 25)]:
        errors = []
        for run in range(runs):
            columns = study.rows(design.rng(n, run), n)
            x = np.column_stack([columns[name] / study.schema[name].upper for name in names])
            a, y = columns["a"] > 0, columns["y"] / half
            means = averages(x, a, y, np.ones(n, dtype=bool), assign_blocks(n, K, generator_from_seed(run)), LEAST)
            errors.append([scores(one, means, a, y).mean() * half - study.effect() for one in ESTIMATORS])
        squares.append(np.square(errors).mean(axis=0))
        moved.append([float(fold_split_sensitivity(one, n, K, LEAST).bound) / GRID / n * half for one in ESTIMATORS])
    return np.concatenate(squares), np.concatenate(moved)


def epsilon_for(squares: Any, moved: Any, error: float) -> float:
    """The least ε at which fold-splitting has this error; infinite if no ε does."""
    left = error**2 - squares
    return float(np.min(np.where(left > 0, np.sqrt(2) * moved / np.sqrt(np.maximum(left, 1e-300)), np.inf)))


def main(arguments: list[str], name: str = "effects_literature", **changed: Any) -> int:
    defaults = {"designs": list(WAYS), "rows": [1_000, 10_000, 100_000], "epsilons": [0.1, 0.5, 1.0, 2.0, 4.0],
                "runs": 200}  # fmt: skip
    given = options(__doc__, arguments, **defaults | changed)
    report = Report(name, "effects", given, arguments)
    for design in (DESIGNS[one] for one in given.designs):
        for n in given.rows:
            runs = given.runs if n <= 10_000 else max(given.runs // 2, 1)
            peer = peers(design, n, max(min(runs, 400_000 // n), 8))
            where = {"n": n, "delta": design.delta, "runs": runs}
            for epsilon in given.epsilons:
                floor = float(np.sqrt(peer[0] + 2 * (peer[1] / epsilon) ** 2).min())
                report.add(design.name, {"RMSE": floor}, epsilon=epsilon, method="fold-split", **where)
                for way in WAYS[design.name]:
                    try:
                        lines = [measure(design, n, epsilon, run, way) for run in range(runs)]
                    except InfeasibleError:
                        report.add(design.name, {}, epsilon=epsilon, method=way, note="refused", **where)
                        continue
                    found = summarised([next(iter(line.values())) for line in lines], SUMMARY)
                    times = epsilon_for(*peer, found["RMSE"][0]) / epsilon
                    note = f"fold-splitting needs ε x {times:.3g}" if math.isfinite(times) else "fold-splitting at no ε"
                    report.add(design.name, found | {"ε of fold-splitting / ε": times}, epsilon=epsilon, method=way,
                               note=note, **where)  # fmt: skip
    return report.finish()
