"""Synthetic controls on real panels: placebo errors of counties and countries, the three classics, beside the paper."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks import panels
from benchmarks.pairs import DataAbsentError
from benchmarks.targets import report
from dpcausal.errors import InfeasibleError

DELTA = 1e-6


def ask(real: panels.RealPanel, target: str, loss: Any, **arguments: Any) -> dpc.SyntheticControl:
    return dpc.synthetic_control(real.of(target, loss), loss=loss, force=True, accept_large_epsilon=True, **arguments)


def placebo(title: str, real: panels.RealPanel, count: int, epsilons: tuple[float, ...], part: str) -> dict[Any, float]:
    """Print root mean square errors over units that nothing happened to, each in turn the target."""
    rng = np.random.default_rng(0)
    chosen = [real.units[k] for k in rng.choice(len(real.units), min(count, len(real.units)), replace=False)]
    found: dict[Any, list[float]] = {}

    def note(key: Any, path: Any, observed: Any) -> None:
        found.setdefault(key, []).append(float(np.sqrt(np.mean((path - observed) ** 2))))

    methods = {}
    for seed, unit in enumerate(chosen):
        exact = ask(real, unit, dpc.NoPrivacy(), method="simplex")
        note("simplex", exact.counterfactual, exact.observed)
        note("last value", np.full(len(exact.observed), exact.past[-1]), exact.observed)
        note("own forecast", exact.donor_free_forecast, exact.observed)
        for epsilon in epsilons:
            with dpc.simulated_noise(seed):
                answer = ask(real, unit, dpc.ApproxDP(epsilon, DELTA))
                paper = ask(real, unit, dpc.PureDP(epsilon), method="output-perturbation", calibration="published")
            methods[epsilon] = answer.method
            note(epsilon, answer.counterfactual, answer.observed)
            note(("published", epsilon), paper.counterfactual, paper.observed)
    errors = {key: float(np.mean(values)) for key, values in found.items()}
    print(f"{title}: mean over {len(chosen)} placebo targets of the RMSE in {part}\n")
    print("  " + ", ".join(f"{key} {errors[key]:.3g}" for key in ("simplex", "last value", "own forecast")))
    print(f"  {'ε':>6}{'auto':>10}{'root mean sq.':>15}{'published':>12}   method")
    for epsilon in epsilons:
        squares = float(np.sqrt(np.mean(np.square(found[epsilon]))))
        print(f"  {epsilon:>6g}{errors[epsilon]:>10.3g}{squares:>15.3g}{errors['published', epsilon]:>12.3g}"
              f"   {methods[epsilon]}")  # fmt: skip
    print(flush=True)
    return errors | {("squares", epsilon): float(np.sqrt(np.mean(np.square(found[epsilon])))) for epsilon in epsilons}


def classic(title: str, real: panels.RealPanel, epsilons: tuple[float, ...], runs: int) -> dict[Any, float]:
    """Print the mean error of the ATT against the non-private simplex answer."""
    exact = ask(real, real.target, dpc.NoPrivacy(), method="simplex")
    own = float(np.mean(exact.observed - exact.donor_free_forecast))
    trend = _trend(exact)
    print(f"{title}: {exact.n} donors; ATT by simplex weights {exact.att:.4g}, against the own {exact.donor_free_rule} "
          f"forecast {own:.4g}, against the own trend {trend:.4g}")  # fmt: skip
    errors: dict[Any, float] = {"simplex": exact.att, "trend": abs(trend - exact.att), "own": abs(own - exact.att)}
    for epsilon in epsilons:
        loss = dpc.ApproxDP(epsilon, DELTA)
        try:
            dpc.synthetic_control(real.of(real.target, loss), loss=loss)
            verdict = "runs"
        except InfeasibleError as error:
            verdict = f"refused ({error})"
        found = []
        for seed in range(runs):
            with dpc.simulated_noise(seed):
                found.append(abs(ask(real, real.target, loss).att - exact.att))
        errors[epsilon] = float(np.mean(found))
        print(f"  ε = {epsilon:g}: mean |ATT − simplex ATT| {errors[epsilon]:.3g} (own trend {errors['trend']:.3g}); "
              f"{verdict}")  # fmt: skip
    print(flush=True)
    return errors


def _trend(answer: dpc.SyntheticControl) -> float:
    t = np.arange(len(answer.past) + len(answer.observed))
    slope, level = np.polyfit(t[: len(answer.past)], answer.past, 1)
    return float(np.mean(answer.observed - level - slope * t[len(answer.past) :]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few targets; the goals do not count")
    quick = parser.parse_args().quick
    met: dict[str, bool] = {}
    try:
        few = 20 if quick else 200
        counties = placebo("US counties, unemployment in points", panels.counties(), few, (0.1, 0.25, 0.5, 1.0, 2.0),
                           "2016 to 2018")  # fmt: skip
        met[f"counties, ε = 1: at most .75, here {counties[1.0]:.3f}"] = counties[1.0] <= 0.75
        met[f"counties, published: above 15, here {counties['published', 1.0]:.1f}"] = counties["published", 1.0] > 15
        placebo("Penn World Table, log GDP", panels.penn(), 10 if quick else 111, (0.5, 1.0, 4.0), "2000 to 2007")
        runs = 20 if quick else 300
        state = classic("California", panels.california(), (1.0, 4.0, 10.0), runs)
        met[f"California, ε = 4: at most 2 above the own trend's {state['trend']:.2f}, here {state[4.0]:.2f}"] = (
            state[4.0] <= state["trend"] + 2
        )
        loss = dpc.ApproxDP(1, DELTA)
        try:
            dpc.synthetic_control(panels.california().of("California", loss), loss=loss)
            met["California, ε = 1: refused"] = False
        except InfeasibleError:
            met["California, ε = 1: refused"] = True
        pairs = (("California", state, -19.514, -19.519),
                 ("Basque", classic("Basque Country from 1970", panels.basque(), (4.0,), runs), -0.895, -0.899),
                 ("Germany", classic("West Germany", panels.germany(), (4.0,), runs), -1297, -1310))  # fmt: skip
        for name, errors, _, other in pairs:
            near = abs(errors["simplex"] - other) <= 0.0101 * abs(other)
            met[f"{name}: simplex ATT {errors['simplex']:.4g} within 1 % of pysyncon's {other:g}"] = near
    except DataAbsentError as error:
        print(f"skipped: {error}")
    return 0 if quick else report(met)


if __name__ == "__main__":
    sys.exit(main())
