"""Synthetic controls on simulated panels: error by budget, coverage, placebo level, beside the published algorithm."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.targets import report
from dpcausal.errors import InfeasibleError

DELTA = 1e-6
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 10.0, 50.0)
SIZES = (10, 100, 1000)


def loss_of(epsilon: float) -> Any:
    return dpc.ApproxDP(epsilon, DELTA)


def paid(loss: Any) -> dpc.Ledger:
    """Return a ledger in memory of just the loss, for the units of arrays."""
    return dpc.Ledger.in_memory(loss, unit="unit", accept_large_epsilon=True)


def panel(made: dpc.simulate.SimulatedPanel, loss: Any) -> dpc.Panel:
    ledger = dpc.Ledger.without_privacy() if isinstance(loss, dpc.NoPrivacy) else paid(loss)
    return dpc.Panel.from_arrays(made.donors, made.target, start=made.start, bounds=made.bounds, ledger=ledger)


def ask(made: dpc.simulate.SimulatedPanel, loss: Any, **arguments: Any) -> dpc.SyntheticControl:
    return dpc.synthetic_control(panel(made, loss), loss=loss, force=True, accept_large_epsilon=True, **arguments)


def rmse(path: Any, made: dpc.simulate.SimulatedPanel) -> float:
    return float(np.sqrt(np.mean((path - made.untreated[made.start :]) ** 2)))


def mean_rmse(design: Callable[..., Any], n: int, runs: int, loss: Any, **arguments: Any) -> float:
    """Return the mean RMSE over the design's seeds 0, …, runs − 1; the noise is simulated from the same seeds."""
    found = []
    for seed in range(runs):
        made = design(n, seed=seed)
        with dpc.simulated_noise(seed):
            found.append(rmse(ask(made, loss, **arguments).counterfactual, made))
    return float(np.mean(found))


def own_forecast(design: Callable[..., Any], n: int, runs: int) -> float:
    made = [design(n, seed=seed) for seed in range(runs)]
    return float(np.mean([rmse(ask(one, dpc.NoPrivacy()).donor_free_forecast, one) for one in made]))


def errors(title: str, design: Callable[..., Any], runs: int, met: dict[str, bool] | None) -> None:
    print(f"Mean RMSE of the treated periods, {title}; T0 = 10, m = 3, {runs} runs, range [-1, 1], δ = {DELTA:g}\n")
    for n in SIZES:
        exact = mean_rmse(design, n, runs, dpc.NoPrivacy(), method="simplex")
        own = own_forecast(design, n, runs)
        print(f"n = {n}: non-private simplex {exact:.3f}, the target's own forecast {own:.3f}")
        print(f"{'ε':>8}{'auto':>10}{'method':>10}{'published (out)':>18}{'simplex of output':>20}")
        for epsilon in EPSILONS:
            loss, quiet = loss_of(epsilon), {"inference": False}
            ours = mean_rmse(design, n, runs, loss)
            made = design(n, seed=0)
            with dpc.simulated_noise(0):
                method = ask(made, loss).method
            paper = mean_rmse(design, n, runs, dpc.PureDP(epsilon), method=dpc.papers.DpscOut())
            output = mean_rmse(design, n, runs, dpc.PureDP(epsilon), method=dpc.papers.OutputPerturbation(), **quiet)
            print(f"{epsilon:>8g}{ours:>10.3f}{method:>10}{paper:>18.3f}{output:>20.3f}", flush=True)
            if met is not None and (n, epsilon) in ((100, 1.0), (1000, 0.5)):
                limit = 0.17 if n == 100 else 0.13
                met[f"auto at n = {n}, ε = {epsilon:g}: at most {limit}, here {ours:.3f}"] = ours <= limit
                met[f"published there: at least 0.9, here {paper:.3f}"] = paper >= 0.9
        print()


def coverage(runs: int, met: dict[str, bool]) -> None:
    print(f"Nominal 90 % intervals of the mean effect, effect 0.2, {runs} panels\n")
    print(f"{'n':>6}{'ε':>6}{'coverage':>10}{'median width':>14}{'none':>6}   method")
    for n, epsilon, most in ((1000, 0.5, 0.8), (1000, 2.0, 0.5), (300, 2.0, None), (5000, 1.0, None)):
        hits, widths, none, method = [], [], 0, ""
        for seed in range(runs):
            made = dpc.simulate.factor_panel(n, effect=0.2, seed=seed)
            truth = float(np.mean((made.target - made.untreated)[made.start :]))
            with dpc.simulated_noise(seed):
                answer = ask(made, loss_of(epsilon))
            method = answer.method
            if answer.interval is None:
                none += 1
                continue
            low, high = answer.interval
            hits.append(low <= truth <= high)
            widths.append(high - low)
        share, width = float(np.mean(hits)), float(np.median(widths))
        print(f"{n:>6}{epsilon:>6g}{share:>10.3f}{width:>14.3f}{none:>6}   {method}", flush=True)
        if most is not None:
            met[f"coverage at n = {n}, ε = {epsilon:g}: .88 to 1, here {share:.3f}"] = 0.88 <= share <= 1
            met[f"median width there: at most {most}, here {width:.3f}"] = width <= most
    made = dpc.simulate.factor_panel(100, seed=0)
    with dpc.simulated_noise(0):
        answer = ask(made, loss_of(0.5))
    print(f"\nn = 100, ε = .5: no interval: {answer.interval_reason}\n")
    met["no interval at n = 100, ε = .5, with the reason"] = answer.interval is None and bool(answer.interval_reason)


def level(runs: int, met: dict[str, bool]) -> None:
    print(f"Placebo p-values without an effect: share at most .05, and with an effect of 0.5; {runs} panels\n")
    print(f"{'n':>6}{'ε':>6}{'level':>8}{'power':>8}   method")
    for n, epsilon in ((1000, 0.5), (1000, 2.0), (100, 2.0), (100, 10.0)):
        low = {0.0: 0, 0.5: 0}
        method = ""
        for effect, count in ((0.0, runs), (0.5, runs // 10)):
            for seed in range(count):
                made = dpc.simulate.factor_panel(n, effect=effect, seed=seed)
                with dpc.simulated_noise(seed):
                    answer = ask(made, loss_of(epsilon))
                method = answer.method
                low[effect] += answer.pvalue is not None and answer.pvalue <= 0.05
        share, power = low[0.0] / runs, low[0.5] / (runs // 10)
        print(f"{n:>6}{epsilon:>6g}{share:>8.3f}{power:>8.2f}   {method}", flush=True)
        met[f"placebo level at n = {n}, ε = {epsilon:g}: at most .075, here {share:.3f}"] = share <= 0.075
    print()


def refusals(met: dict[str, bool]) -> None:
    print("Refused before anything is spent:\n")
    for n, epsilon in ((10, 1.0), (38, 0.5)):
        try:
            made = dpc.simulate.factor_panel(n, seed=1)
            dpc.synthetic_control(panel(made, loss_of(epsilon)), loss=loss_of(epsilon))
            refused = False
        except InfeasibleError as error:
            refused = True
            print(f"n = {n}, ε = {epsilon:g}: {error}")
        met[f"n = {n}, ε = {epsilon:g} is refused"] = refused
    print()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs; the targets do not count")
    quick = parser.parse_args().quick
    part = 10 if quick else 1
    met: dict[str, bool] = {}
    errors("factor design with a shock", dpc.simulate.factor_panel, 200 // part, met)
    errors("the paper's linear design", dpc.simulate.linear_panel, 100 // part, None)
    coverage(500 // part, met)
    level(2000 // part, met)
    refusals(met)
    return 0 if quick else report(met)


if __name__ == "__main__":
    sys.exit(main())
