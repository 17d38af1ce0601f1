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
from dpcausal.synthetic_control.methods.simplex import simplex_weights

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
                paper = ask(real, unit, dpc.PureDP(epsilon), method=dpc.papers.DpscOut())
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


def beside_pysyncon(real: panels.RealPanel) -> tuple[float, float, float, float] | None:
    """Return our ATT and loss on the past, and pysyncon's best over scales of its objective; ``None`` without it.

    Its predictors are divided by their standard deviations, so their variances as weights give the plain loss; its
    solver stops by an absolute tolerance, so the scale matters.
    """
    try:
        import pandas
        from pysyncon import Synth
    except ImportError:
        return None
    start = real.times.index(real.start)
    table = pandas.DataFrame(real.values.T, index=list(real.times), columns=list(real.units)).ffill().bfill()
    past, own = table.drop(columns=real.target).iloc[:start], table[real.target].iloc[:start]
    variance = table.iloc[:start].var(axis=1)
    donors, y = table.drop(columns=real.target).to_numpy(), table[real.target].to_numpy()

    def judged(weights: Any) -> tuple[float, float]:
        missed = y - donors @ weights
        return float(missed[start:].mean()), float((missed[:start] ** 2).mean())

    found = []
    for scale in 10.0 ** np.arange(-1, 6):
        fit = Synth()
        with np.errstate(all="ignore"):
            fit.fit(X0=past, X1=own, Z0=past, Z1=own, custom_V=(variance / variance.sum() * scale).to_numpy())
        found.append(judged(np.asarray(fit.W)))
    return (*judged(simplex_weights(donors[:start].T, y[:start])), *min(found, key=lambda pair: pair[1]))


def beside_mlsynth(real: panels.RealPanel) -> float | None:
    """Return the ATT of mlsynth's simplex weights; ``None`` without it."""
    try:
        import pandas
        from mlsynth import VanillaSC
    except ImportError:
        return None
    wide = pandas.DataFrame(real.values, index=list(real.units), columns=list(real.times)).ffill(axis=1).bfill(axis=1)
    long = wide.stack().rename("y").rename_axis(["unit", "time"]).reset_index()
    long["treated"] = ((long["unit"] == real.target) & (long["time"] >= real.start)).astype(int)
    asked = {"df": long, "outcome": "y", "treat": "treated", "unitid": "unit", "time": "time", "display_graphs": False}
    return float(VanillaSC(asked).fit().effects.att)


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
        classic("Basque Country from 1970", panels.basque(), (4.0,), runs)
        classic("West Germany", panels.germany(), (4.0,), runs)
        for real in (panels.california(), panels.basque(), panels.germany()):
            both = beside_pysyncon(real)
            if both is None:
                print("pysyncon is not installed: the comparison with it is skipped")
                break
            att, loss, other, other_loss = both
            print(f"{real.target}: ATT {att:.6g}, pysyncon {other:.6g}; loss on the past {loss:.7g}, {other_loss:.7g}")
            met[f"{real.target}: ATT {att:.5g} within 1 % of pysyncon's {other:.5g}"] = (
                abs(att - other) <= 0.01 * abs(other)
            )
            third = beside_mlsynth(real)
            if third is not None:
                print(f"  mlsynth {third:.6g}")
                met[f"{real.target}: ATT {att:.5g} within .01 % of mlsynth's {third:.5g}"] = (
                    abs(att - third) <= 1e-4 * abs(third)
                )
            met[f"{real.target}: the past is fitted no worse"] = loss <= other_loss * (1 + 1e-9)
    except DataAbsentError as error:
        print(f"skipped: {error}")
    return 0 if quick else report(met)


if __name__ == "__main__":
    sys.exit(main())
