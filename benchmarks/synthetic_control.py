"""Synthetic controls of fresh units: coverage, width, error beside the simplex, level and power, by design and ε.

    python -m benchmarks synthetic_control --families simulated --methods default dpsc-out output-perturbation
    python -m benchmarks synthetic_control --families practice --targets 20 --runs 800

Nothing happens to the targets unless a design names an effect.  Coverage is of a nominal 0.9; volatile and calm:
in the fifths of targets whose past moves most and least.  Widths are over the root mean square error of the effect.
"""

from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks import designs as registry
from benchmarks.designs.panels import DESIGNS, Drawn
from benchmarks.run import Report, benchmark, grid, mean, median, ratio, rms, share
from dpcausal.errors import InfeasibleError
from dpcausal.synthetic_control.methods.simplex import simplex_weights

PUBLISHED = {"dpsc-out": dpc.papers.DpscOut(), "output-perturbation": dpc.papers.OutputPerturbation()}
"""They are paid in pure ε."""


def ask(drawn: Drawn, loss: Any, method: Any = "auto", **more: Any) -> Any:
    panel = dpc.Panel.from_arrays(drawn.donors, drawn.target, start=drawn.start, bounds=drawn.bounds,
                                  ledger=registry.ledger_of(loss, unit="unit"))  # fmt: skip
    return dpc.synthetic_control(panel, loss=loss, method=method, accept_large_epsilon=True, **more), panel


def fifth(name: str, place: int) -> Any:
    """The mean of a column in the fifth of runs whose past moves least (0) to most (4)."""

    def of(columns: Any) -> float:
        had = ~np.isnan(columns[name])
        fifths = np.argsort(np.argsort(columns["volatility"][had])) * 5 // max(int(had.sum()), 1)
        inside = columns[name][had][fifths == place]
        return float(inside.mean()) if len(inside) else float("nan")

    return of


SUMMARY = {
    "coverage": mean("held"), "volatile": fifth("held", 4), "calm": fifth("held", 0),
    "width / RMSE": ratio(mean("width"), rms("error")), "median width / RMSE": ratio(median("width"), rms("error")),
    "shown": share("held"), "path RMSE": mean("path"), "simplex path RMSE": mean("simplex"),
    "x simplex": ratio(mean("path"), mean("simplex")), "p <= 0.05": mean("small p"), "refused": mean("refused"),
}  # fmt: skip


@benchmark(
    "synthetic_control", designs=[], families=["families"], methods=["default"], rows=[1_000], epsilons=[1.0], runs=400,
    seeds="panels from seeds of their own by n and run // targets, noise from simulated_noise(run + 1)", targets=10,
)  # fmt: skip
def main(report: Report) -> None:
    def measure(design: registry.Design, n: int, epsilon: float, run: int, method: str) -> dict[str, dict[str, float]]:
        drawn = design.make(n, run, report.given.targets)
        way = PUBLISHED.get(method, "auto" if method == "default" else method)
        loss = registry.loss_of(epsilon, 0.0 if method in PUBLISHED else design.delta)
        if method == "output-perturbation":
            more = {"inference": False, "force": True}
        else:
            more = {} if design.family == "practice" else {"force": True}
        try:
            with dpc.simulated_noise(run + design.more.get("noise", 1)):
                found, panel = ask(drawn, loss, way, **more)
        except InfeasibleError:
            if design.family == "practice":
                return {"": {"refused": 1.0}}
            raise
        start, past = drawn.start, drawn.target[: drawn.start]
        columns = {"error": found.att - drawn.effect, "volatility": float(np.std(np.diff(past))), "refused": 0.0,
                   "path": float(np.sqrt(np.mean((found.counterfactual - drawn.untreated) ** 2)))}  # fmt: skip
        if n <= 1_000:
            seen = panel.donors()
            exact = seen[:, start:].T @ simplex_weights(seen[:, :start], past)
            columns["simplex"] = float(np.sqrt(np.mean((exact - drawn.untreated) ** 2)))
        if found.interval is not None:
            low, high = found.interval
            columns |= {"held": float(low <= drawn.effect <= high), "width": high - low}
        if found.pvalue is not None:
            columns["small p"] = float(found.pvalue <= 0.05)
        return {"": columns}

    grid(report, DESIGNS, measure, SUMMARY)
