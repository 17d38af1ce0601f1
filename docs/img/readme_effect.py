"""Draw the picture of the README: ``python docs/img/readme_effect.py``.

Ten runs with fresh noise at each of three privacy levels, and the estimate without privacy.
"""

from pathlib import Path

import matplotlib.pyplot as plt

import dpcausal as dpc

SCHEMA = dpc.Schema(
    {"free": dpc.Levels(["no", "yes"]), "site": dpc.Levels([1, 2, 3, 4, 5, 6]), "visits": dpc.Bounded(0, 52)}
)
EPSILONS, RUNS = (0.5, 1.0, 2.0), 10


def estimate(loss: dpc.PureDP | dpc.NoPrivacy) -> tuple[float, tuple[float, float]]:
    private = isinstance(loss, dpc.PureDP)
    ledger = dpc.Ledger.in_memory(loss, person="zper") if private else dpc.Ledger.without_privacy()
    table = dpc.Table(dpc.datasets.load_rand(), SCHEMA, ledger, person="zper")
    result = dpc.effect(table, treatment="free", outcome="visits", adjust=["site"], loss=loss)
    return result.estimate, result.interval


def main() -> None:
    exact, interval = estimate(dpc.NoPrivacy())
    print(f"without privacy {exact:.2f} ({interval[0]:.2f} to {interval[1]:.2f})")
    figure, axes = plt.subplots(figsize=(7.2, 2.9))
    axes.axhspan(*interval, color="0.88", lw=0)
    axes.axhline(exact, color="0.5", lw=1)
    axes.axhline(0, color="0.2", lw=0.8)
    for place, epsilon in enumerate(EPSILONS):
        for run in range(RUNS):
            value, (low, high) = estimate(dpc.PureDP(epsilon))
            x = place * (RUNS + 3) + run
            axes.plot([x, x], [low, high], color="#1f6f8b", lw=1.6)
            axes.plot(x, value, "o", color="#1f6f8b", ms=4)
            print(f"epsilon {epsilon}: {value:.2f} ({low:.2f} to {high:.2f})")
    axes.set_xticks([place * (RUNS + 3) + (RUNS - 1) / 2 for place in range(len(EPSILONS))])
    axes.set_xticklabels([f"ε = {epsilon:g}" for epsilon in EPSILONS])
    axes.set_ylabel("extra visits a year (95 % CI)")
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.tick_params(axis="x", length=0)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=140, bbox_inches="tight")


if __name__ == "__main__":
    main()
