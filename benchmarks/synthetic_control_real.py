"""Synthetic controls on real panels: placebo errors of counties and countries, the three classics, beside the paper."""

from __future__ import annotations

from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.data import panels
from benchmarks.run import Report, options
from dpcausal.errors import InfeasibleError

DELTA = 1e-6


def ask(real: panels.RealPanel, target: str, loss: Any, **arguments: Any) -> dpc.SyntheticControl:
    return dpc.synthetic_control(real.of(target, loss), loss=loss, force=True, accept_large_epsilon=True, **arguments)


def placebo(
    report: Report, title: str, real: panels.RealPanel, count: int, epsilons: tuple[float, ...]
) -> dict[Any, float]:
    """Add root mean square errors over units that nothing happened to, each in turn the target."""
    rng = np.random.default_rng(0)
    chosen = [real.units[k] for k in rng.choice(len(real.units), min(count, len(real.units)), replace=False)]
    found: dict[Any, list[float]] = {}

    def note(key: Any, path: Any, observed: Any) -> None:
        found.setdefault(key, []).append(float(np.sqrt(np.mean((path - observed) ** 2))))

    for seed, unit in enumerate(chosen):
        exact = ask(real, unit, dpc.NoPrivacy(), method="simplex")
        note("simplex", exact.counterfactual, exact.observed)
        note("last value", np.full(len(exact.observed), exact.past[-1]), exact.observed)
        note("own forecast", exact.donor_free_forecast, exact.observed)
        for epsilon in epsilons:
            with dpc.simulated_noise(seed):
                answer = ask(real, unit, dpc.ApproxDP(epsilon, DELTA))
                paper = ask(real, unit, dpc.PureDP(epsilon), method=dpc.papers.DpscOut())
            note(epsilon, answer.counterfactual, answer.observed)
            note(("published", epsilon), paper.counterfactual, paper.observed)
    errors = {key: float(np.mean(values)) for key, values in found.items()}
    for key, values in found.items():
        epsilon, method = (key[1], "published") if isinstance(key, tuple) else (key, "auto")
        exact = isinstance(key, str)
        metrics = {"mean RMSE": (errors[key], float(np.std(values)) / len(values) ** 0.5),
                   "root mean square": float(np.sqrt(np.mean(np.square(values))))}  # fmt: skip
        report.add(title, metrics, n=len(real.units) - 1, epsilon=None if exact else epsilon, runs=len(chosen),
                   method=key if exact else method, delta=0.0 if exact or method == "published" else DELTA)  # fmt: skip
    return errors


def classic(report: Report, real: panels.RealPanel, epsilons: tuple[float, ...], runs: int) -> dict[Any, float]:
    """Add the mean error of the ATT against the non-private simplex answer."""
    exact = ask(real, real.target, dpc.NoPrivacy(), method="simplex")
    own, trend = float(np.mean(exact.observed - exact.donor_free_forecast)), _trend(exact)
    report.add(real.target, {"ATT": exact.att, "against the own forecast": own, "against the own trend": trend},
               n=exact.n, method="simplex")  # fmt: skip
    errors: dict[Any, float] = {"trend": abs(trend - exact.att)}
    for epsilon in epsilons:
        loss, found, note = dpc.ApproxDP(epsilon, DELTA), [], ""
        try:
            dpc.synthetic_control(real.of(real.target, loss), loss=loss)
        except InfeasibleError:
            note = "refused without force=True"
        for seed in range(runs):
            with dpc.simulated_noise(seed):
                found.append(abs(ask(real, real.target, loss).att - exact.att))
        errors[epsilon] = float(np.mean(found))
        report.add(real.target, {"distance to the simplex ATT": (errors[epsilon], float(np.std(found)) / runs**0.5)},
                   n=exact.n, epsilon=epsilon, delta=DELTA, runs=runs, note=note)  # fmt: skip
    return errors


def _trend(answer: dpc.SyntheticControl) -> float:
    t = np.arange(len(answer.past) + len(answer.observed))
    slope, level = np.polyfit(t[: len(answer.past)], answer.past, 1)
    return float(np.mean(answer.observed - level - slope * t[len(answer.past) :]))


def main(arguments: list[str], name: str = "synthetic_control_real", **changed: Any) -> int:
    """``--runs``: draws of the noise of each classic; as many placebo targets are two thirds of them."""
    given = options(__doc__, arguments, **{"runs": 300} | changed)
    report, runs = Report(name, "synthetic_control", given, arguments), given.runs
    counties = placebo(report, "US counties", panels.counties(), 2 * runs // 3, (0.1, 0.25, 0.5, 1.0, 2.0))
    report.target(f"counties, ε = 1: at most 0.75, here {counties[1.0]:.3f}", counties[1.0] <= 0.75)
    report.target(f"counties, published: {counties['published', 1.0]:.1f}", counties["published", 1.0] > 15)
    placebo(report, "Penn World Table, log GDP", panels.penn(), min(111, runs), (0.5, 1.0, 4.0))
    state = classic(report, panels.california(), (1.0, 4.0, 10.0), runs)
    words = f"California, ε = 4: at most 2 above the own trend's {state['trend']:.2f}, here {state[4.0]:.2f}"
    report.target(words, state[4.0] <= state["trend"] + 2)
    classic(report, panels.basque(), (4.0,), runs)
    classic(report, panels.germany(), (4.0,), runs)
    return report.finish()
