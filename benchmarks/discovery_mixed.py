"""Graphs of numbers beside levels: cut at noisy quartiles, at four equal widths of the bounds, at the exact quartiles.

Sixteen columns, two arrows a column, every other one of two to four levels; a number has as its score the normal one
that causes it, and is told as that, its exponential, or a count with many noughts: the graph is the same, and only the
cuts differ.  n = 100,000 where nothing else is said, δ = 1e-6, noise simulated of the stated laws.  Shares and rounds
were chosen on seeds 0 to 3.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

import dpcausal as dpc
from benchmarks.discovery_wide import Case, asked
from benchmarks.targets import report
from dpcausal.discovery.pvalues import pvalue_of

COLUMNS, ROWS = 16, 100_000
Reals = npt.NDArray[np.float64]

SHAPES: dict[str, tuple[Callable[[Reals], Reals], float, float]] = {
    "normal, ±4": (lambda z: z, -4.0, 4.0),
    "normal, ±400": (lambda z: z, -400.0, 400.0),
    "exponential, to 10": (lambda z: -norm.logsf(z), 0.0, 10.0),
    "log-normal, to 60": (np.exp, 0.0, 60.0),
    "log-normal, to 6,000": (np.exp, 0.0, 6_000.0),
    "counts, to 100": (lambda z: np.maximum(0.0, np.floor(2 * np.exp(z) - 2)), 0.0, 100.0),
}
"""How a normal score is told, and the bounds."""


def mixed(shape: str, seed: int, rows: int = ROWS) -> Case:
    """Draw a graph and rows of it."""
    rng = np.random.default_rng(40_000 + seed)
    told, lower, upper = SHAPES[shape]
    frame: dict[str, Any] = {}
    schema: dict[str, dpc.Bounded | dpc.Levels] = {}
    scores: list[Reals] = []
    arcs = []
    names = [f"v{place:02d}" for place in range(COLUMNS)]
    for place, name in enumerate(names):
        score = rng.normal(size=rows)
        for above in range(place):
            if rng.random() < 2 / (COLUMNS - 1):
                arcs.append((names[above], name))
                score += rng.choice([-1, 1]) * rng.uniform(0.3, 0.9) * scores[above]
        score = (score - score.mean()) / score.std()
        if place % 2:
            levels = np.digitize(score, np.sort(rng.normal(0, 0.7, rng.integers(1, 4))))
            frame[name], schema[name] = levels, dpc.Levels(range(4))
            score = (levels - levels.mean()) / max(levels.std(), 0.1)
        else:
            frame[name], schema[name] = told(score), dpc.Bounded(lower, upper)
        scores.append(score)
    return Case(frame, dpc.Schema(schema), dpc.Cpdag.from_dag(names, arcs))


def cut(case: Case, way: str) -> Case:
    """Return a case with declared cuts: at equal widths, or at the exact quartiles."""

    def declared(name: str, column: Any) -> Any:
        if not isinstance(column, dpc.Bounded) or way == "learnt":
            return column
        widths = [column.lower + column.width * part / 4 for part in (1, 2, 3)]
        exact = np.unique(np.quantile(case.frame[name], [0.25, 0.5, 0.75]))
        inside = exact[(exact > column.lower) & (exact < column.upper)].tolist()
        return dpc.Bounded(column.lower, column.upper, widths if way == "widths" or not inside else inside)

    return Case(case.frame, dpc.Schema({k: declared(k, one) for k, one in case.schema.items()}), case.truth)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--first", type=int, default=100)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES), choices=list(SHAPES))
    options = parser.parse_args()
    targets: dict[str, bool] = {}
    for shape in options.shapes:
        for epsilon in (0.1, 1.0):
            means = {}
            for way in ("widths", "learnt", "exact"):
                scores, rejected = [], []
                for seed in range(options.first, options.first + options.seeds):
                    case = cut(mixed(shape, seed, options.rows), way)
                    found, seconds = asked(case, dpc.ApproxDP(epsilon, 1e-6), seed)
                    false = len(found.graph.skeleton - case.truth.skeleton)
                    scores.append((found.graph.skeleton_f1(case.truth), found.graph.f1(case.truth), false, seconds))
                    names: Any = found.release.names  # type: ignore[union-attr]
                    for (x, one), (y, other) in combinations(enumerate(names), 2):
                        if case.truth.d_separated(one, other, []):
                            pvalue = pvalue_of(found.release, x, y, ())  # type: ignore[arg-type]
                            rejected += [] if pvalue is None else [pvalue < 0.01]
                mean = np.mean(scores, axis=0)
                error = np.std([score[0] for score in scores], ddof=1) / len(scores) ** 0.5
                means[way] = mean[0]
                print(
                    f"{shape:<22}ε = {epsilon:<4g}{found.method:<10}{way:<8}skeleton F1 {mean[0]:.3f} ± {error:.3f}  "
                    f"class F1 {mean[1]:.3f}  false {mean[2]:.1f}  {mean[3]:.1f} s  independent pairs rejected "
                    f"{np.mean(rejected):.4f} of {len(rejected)}", flush=True,
                )  # fmt: skip
            words = f"{shape}, ε = {epsilon:g}: learnt {means['learnt']:.3f}, at equal widths {means['widths']:.3f}"
            targets[words] = bool(means["learnt"] >= means["widths"] - 0.01)
    return report(targets)


if __name__ == "__main__":
    sys.exit(main())
