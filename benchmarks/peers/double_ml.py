"""Effects where confounding bends: the default without privacy and at ε = 1, beside DoubleML with boosted trees.

The peer is ``DoubleMLIRM`` with five folds and scikit-learn's histogram gradient boosting, on the same rows.
"""

import warnings
from typing import Any
from zlib import crc32

from joblib import Parallel, delayed

import dpcausal as dpc
from benchmarks import designs as registry
from benchmarks.designs.effects.bends import DESIGNS
from benchmarks.run import Report, benchmark, mean, median, ratio, rms, selected, share, summarised

SHAPES = [f"{shape}, three numbers" for shape in (
    "line", "square", "cube", "product", "step", "hinge", "sin 3x", "both > 0", "effect varies as sine",
    "effect varies as step",
)]  # fmt: skip
SIDES = {"without privacy": 1.2, "ε = 1": 1.3}
"""What is asked, and how many times the peer's RMSE it may have; at ε = 1 from 100,000 rows on."""
PRIVATE_FROM = 100_000
TREES = {"max_iter": 100, "learning_rate": 0.1, "max_leaf_nodes": 8, "min_samples_leaf": 50, "random_state": 0}
SUMMARY = {
    "RMSE": rms("error"), "peer RMSE": rms("peer error"), "ratio": ratio(rms("error"), rms("peer error")),
    "coverage": mean("covers"), "peer coverage": mean("peer covers"), "shown": share("covers"),
    "half-width": median("width"), "peer half-width": median("peer width"),
}  # fmt: skip


def peer(rows: dict[str, Any], truth: float, seed: int) -> dict[str, float]:
    """The columns of DoubleML's answer on these rows."""
    import numpy as np
    from doubleml import DoubleMLData, DoubleMLIRM
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    x = np.column_stack([column for name, column in rows.items() if name not in ("a", "y")]).astype(float)
    data = DoubleMLData.from_arrays(x, rows["y"], rows["a"])
    np.random.seed(seed)  # it draws its folds from numpy's global generator
    fit = DoubleMLIRM(
        data, HistGradientBoostingRegressor(**TREES), HistGradientBoostingClassifier(**TREES), n_folds=5
    ).fit()
    estimate, half = float(fit.coef[0]), 1.96 * float(fit.se[0])
    columns = registry.Reading(estimate, (estimate - half, estimate + half), truth).columns
    return {f"peer {name}": value for name, value in columns.items()}


def ours(design: registry.Design, n: int, run: int, loss: Any) -> dict[str, float]:
    """The columns of the default's answer; the noise of each design is its own."""
    with dpc.simulated_noise(crc32(f"{design.name} {run}".encode())):
        return dict(design.make.ask(design.rng(n, run), n, loss)[""].columns)


def both(name: str, n: int, run: int) -> list[dict[str, float]]:
    """One run's columns by side, the peer's in each."""
    design = DESIGNS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = peer(design.make.rows(design.rng(n, run), n), design.make.effect(), run)
    losses = (dpc.NoPrivacy(), dpc.ApproxDP(1, design.delta))
    return [theirs | ours(design, n, run, loss) for loss in losses]


SEEDS = "rows from numpy's default_rng, noise from simulated_noise(crc32 of design and run); run = 0, 1, ..."


@benchmark("peers", designs=SHAPES, families=[], rows=[10_000], runs=20, jobs=1, seeds=SEEDS)
def main(report: Report) -> None:
    import doubleml  # noqa: F401

    given = report.given
    for design in selected(DESIGNS, given).values():
        for n in given.rows:
            lines = Parallel(given.jobs)(delayed(both)(design.name, n, run) for run in range(given.runs))
            for place, (side, most) in enumerate(SIDES.items()):
                found = summarised([line[place] for line in lines], SUMMARY)
                private = {"epsilon": 1.0, "delta": design.delta} if side == "ε = 1" else {}
                report.add(design.name, found, n=n, method="boosted-aipw", reading=side, runs=given.runs, **private)
                if side == "without privacy" or n >= PRIVATE_FROM:
                    times, words = found["ratio"][0], f"{design.name}, n = {n:,}, {side}"
                    report.target(f"{words}: RMSE {times:.2f} times the peer's, at most {most}", times <= most)
