"""Figures 3 and 5 to 8 of the private synthetic control: published and ours, on its design, its data and a shock."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.pairs import DATA
from dpcausal.papers.synthetic_control import dpsc, perturbation
from dpcausal.synthetic_control.methods import simplex as reference

Panel = tuple[Any, Any, Any, Any]
"""Donors before and after, target before and after, on the scale [−1, 1]."""

FULL_BUDGETS = (2.0, 4.0, 10.0, 20.0, 40.0, 100.0, 200.0)
WIDTHS: list[float] = []
PENALTIES = (1.0, 5.0, 10.0, 50.0, 100.0, 500.0, 1000.0)


def drawn(design: Callable[..., Any], n: int, T0: int, runs: int) -> Iterator[Panel]:
    for seed in range(runs):
        made = design(n, before=T0, seed=seed)
        yield made.donors[:, :T0], made.donors[:, T0:], made.target[:T0], made.untreated[T0:]


def authors(n: int, T0: int, runs: int) -> Iterator[Panel]:
    """Yield the authors' own draw, the last column as its target, again and again: only the noise differs."""
    path = Path(DATA) / "panels" / f"dpsc_data_{T0}_{n}.csv"
    if not path.is_file():
        return
    rows = np.array([[float(value) for value in row] for row in csv.reader(path.open())]).T
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


def mean(panels: Iterator[Panel], answer: Callable[[Panel], Any], clip: bool = True) -> float:
    found = []
    for seed, panel in enumerate(panels):
        with dpc.simulated_noise(seed):
            path = answer(panel)
        found.append(rmse(np.clip(path, -1, 1) if clip else path, panel[3]))
    if found:
        WIDTHS.append(1.96 * float(np.std(found)) / len(found) ** 0.5 / float(np.mean(found)))
    return float(np.mean(found)) if found else float("nan")


def surely() -> str:
    """Return how sure the means of a table are, and begin anew."""
    if not WIDTHS:
        return "no data\n"
    told = f"95 % half-widths: {np.median(WIDTHS):.1%} of a figure in the middle, {max(WIDTHS):.1%} at most\n"
    WIDTHS.clear()
    return told


def half(epsilon: float) -> dpc.PureDP:
    return dpc.PureDP(epsilon / 2)


def figure_3(make: Callable[[int, int], Iterator[Panel]]) -> None:
    print("Figure 3: RMSE by λ, ε1 = ε2 = 50, n = T0 = 10; paths as they come, and cut at [-1, 1]")
    print(f"{'λ':>8}{'no noise':>10}{'out':>10}{'obj':>10}{'out, cut':>10}{'obj, cut':>10}")
    each = dpc.PureDP(50)
    for penalty in PENALTIES:
        row = [mean(make(10, 10), lambda p: perturbation.ridge_path(p[0], p[1], p[2], penalty))]  # noqa: B023
        for clip in (False, True):
            row += [mean(make(10, 10), lambda p: published(p, penalty, each, each, objective), clip)  # noqa: B023
                    for objective in (False, True)]  # fmt: skip
        print(f"{penalty:>8g}" + "".join(f"{value:>10.3g}" for value in row), flush=True)
    print(surely())


def figures_5_and_6(make: Callable[[int, int], Iterator[Panel]], sizes: tuple[tuple[int, int], ...]) -> None:
    for T0, n in sizes:
        exact = mean(make(n, T0), lambda p: p[1].T @ reference.simplex_weights(p[0], p[2]))
        print(f"Figures 5 to 8: RMSE by total ε, λ = T0 = {T0}, n = {n}; simplex without noise {exact:.3g}")
        print(f"{'ε':>8}{'out':>10}{'obj':>10}{'obj δ=1e-6':>12}{'out, cut':>10}{'obj, cut':>10}{'ours':>10}")
        for epsilon in FULL_BUDGETS:
            each, approx = half(epsilon), dpc.ApproxDP(epsilon / 2, 1e-6)
            cases = ((each, False, False), (each, True, False), (approx, True, False), (each, False, True),
                     (each, True, True))  # fmt: skip
            row = [mean(make(n, T0), lambda p: published(p, float(T0), first, each, objective), clip)  # noqa: B023
                   for first, objective, clip in cases]  # fmt: skip
            row.append(mean(make(n, T0), lambda p: ours(p, epsilon)))  # noqa: B023
            print(f"{epsilon:>8g}" + "".join(f"{value:>{12 if k == 2 else 10}.3g}" for k, value in enumerate(row)),
                  flush=True)  # fmt: skip
        print(surely(), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50, help="draws of each panel and its noise (the paper: 500)")
    runs = parser.parse_args().runs
    sizes = ((10, 10), (10, 100), (100, 10), (100, 100))
    print(f"{runs} runs each; 'ours' is auto at (ε, 1e-6), the published ones at the same ε\n")
    for title, make in (
        ("The paper's design", lambda n, T0: drawn(dpc.simulate.linear_panel, n, T0, runs)),
        ("The authors' own panels", lambda n, T0: authors(n, T0, runs)),
        ("Factor design with a shock", lambda n, T0: drawn(dpc.simulate.factor_panel, n, T0, runs)),
    ):
        print(f"== {title}\n")
        figure_3(make)
        figures_5_and_6(make, sizes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
