"""Figures 3 and 5 to 8 of the private synthetic control: published and ours, on its design, its data and a shock."""

import csv
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.data import DATA, text
from benchmarks.designs.panels import linear_panel
from benchmarks.run import Report, benchmark
from dpcausal.papers.statistics.ridge_weights import ridge_weights
from dpcausal.papers.synthetic_control import dpsc
from dpcausal.synthetic_control.methods import simplex as reference

Panel = tuple[Any, Any, Any, Any]
"""Donors before and after, target before and after, on the scale [−1, 1]."""

FULL_BUDGETS = (2.0, 4.0, 10.0, 20.0, 40.0, 100.0, 200.0)
PENALTIES = (1.0, 5.0, 10.0, 50.0, 100.0, 500.0, 1000.0)


def drawn(design: Callable[..., Any], n: int, T0: int, runs: int) -> Iterator[Panel]:
    for seed in range(runs):
        made = design(n, before=T0, seed=seed)
        yield made.donors[:, :T0], made.donors[:, T0:], made.target[:T0], made.untreated[T0:]


def authors(n: int, T0: int, runs: int) -> Iterator[Panel]:
    """Yield the authors' own draw, the last column as its target, again and again: only the noise differs."""
    name = f"dpsc_data_{T0}_{n}.csv"
    if not (DATA / "panels" / name).is_file():
        return
    rows = np.array([[float(value) for value in row] for row in csv.reader(text("panels", name).splitlines())]).T
    for _ in range(runs):
        yield rows[:-1, :T0], rows[:-1, T0:], rows[-1, :T0], rows[-1, T0:]


def rmse(path: Any, truth: Any) -> float:
    return float(np.sqrt(np.mean((path - truth) ** 2)))


def published(panel: Panel, penalty: float, first: Any, second: Any, objective: bool) -> Any:
    X, Y, y, _ = panel
    whole = dpc.ApproxDP(first.exact_epsilon + second.exact_epsilon, getattr(first, "exact_delta", 0) or 0)
    budget: Any = whole if isinstance(first, dpc.ApproxDP) else dpc.PureDP(whole.exact_epsilon)
    ledger = dpc.Ledger.in_memory(budget, unit="unit", accept_large_epsilon=True)
    allotment = ledger.charge(budget, task="replication", unit=dpc.Unit.DONOR, unit_column="unit", unproven=objective)
    weights = (dpsc.objective_weights if objective else dpsc.output_weights)(X, y, penalty, allotment, first)
    return dpsc.printed_path(weights, Y, allotment, second)


def ours(panel: Panel, epsilon: float) -> Any:
    X, Y, y, truth = panel
    loss = dpc.ApproxDP(epsilon, 1e-6)
    target = np.concatenate([y, truth])
    half = max(1.0, float(np.abs(target).max()))  # the authors' own panels pass 1, the range of their proofs
    made = dpc.Panel.from_arrays(np.hstack([X, Y]), target, start=len(y), bounds=dpc.Bounded(-half, half),
                                 ledger=dpc.Ledger.in_memory(loss, unit="unit", accept_large_epsilon=True))  # fmt: skip
    return dpc.synthetic_control(made, loss=loss, force=True, accept_large_epsilon=True).counterfactual


def mean(panels: Iterator[Panel], answer: Callable[[Panel], Any], clip: bool = True) -> tuple[float, float]:
    """The mean RMSE and its Monte-Carlo error."""
    found = []
    for seed, panel in enumerate(panels):
        with dpc.simulated_noise(seed):
            path = answer(panel)
        found.append(rmse(np.clip(path, -1, 1) if clip else path, panel[3]))
    return (float(np.mean(found)), float(np.std(found)) / len(found) ** 0.5) if found else (float("nan"),) * 2


def figures(report: Report, title: str, make: Callable[[int, int], Iterator[Panel]]) -> None:
    """Figure 3 by λ at n = T0 = 10, and 5 to 8 by total ε; paths as they come, and clipped to [-1, 1]."""
    each = dpc.PureDP(50)
    for penalty in PENALTIES:
        row = {"no noise": mean(make(10, 10), lambda p: p[1].T @ ridge_weights(p[0], p[2], penalty / 2))}  # noqa: B023
        for clip in (False, True):
            for objective in (False, True):
                name = f"{'objective' if objective else 'output'}{', clipped' * clip}"
                row[name] = mean(make(10, 10), lambda p: published(p, penalty, each, each, objective), clip)  # noqa: B023
        report.add(title, row, n=10, epsilon=100, method="published", reading=f"λ = {penalty:g}, T0 = 10",
                   runs=report.given.runs)  # fmt: skip
    for T0, n in ((10, 10), (10, 100), (100, 10), (100, 100)):
        simplex = mean(make(n, T0), lambda p: p[1].T @ reference.simplex_weights(p[0], p[2]))
        where = {"n": n, "reading": f"T0 = {T0}", "runs": report.given.runs}
        report.add(title, {"RMSE": simplex}, method="simplex", **where)
        for epsilon in FULL_BUDGETS:
            half, approx = dpc.PureDP(epsilon / 2), dpc.ApproxDP(epsilon / 2, 1e-6)
            cases = {"output": (half, False, False), "objective": (half, True, False),
                     "objective, δ = 1e-6": (approx, True, False), "output, clipped": (half, False, True),
                     "objective, clipped": (half, True, True)}  # fmt: skip
            row = {name: mean(make(n, T0), lambda p: published(p, float(T0), first, half, objective), clip)  # noqa: B023
                   for name, (first, objective, clip) in cases.items()}  # fmt: skip
            report.add(title, row, epsilon=epsilon, method="published", **where)
            own = mean(make(n, T0), lambda p: ours(p, epsilon))  # noqa: B023
            report.add(title, {"RMSE": own}, epsilon=epsilon, delta=1e-6, **where)


@benchmark("synthetic_control", runs=50)
def main(report: Report) -> None:
    runs = report.given.runs
    figures(report, "the paper's design", lambda n, T0: drawn(linear_panel, n, T0, runs))
    figures(report, "the authors' own panels", lambda n, T0: authors(n, T0, runs))
    figures(report, "factor design with a shock", lambda n, T0: drawn(dpc.simulate.factor_panel, n, T0, runs))
