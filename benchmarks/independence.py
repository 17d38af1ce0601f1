"""Power of independence tests where another one is a natural choice, and ε for the power of a published one.

python -m benchmarks independence --runs 100 --parts levels
"""

from typing import Any

from benchmarks.designs.independence.shapes import agreeing, sign_changing
from benchmarks.rejections import rejection_rate
from benchmarks.run import Report, benchmark
from dpcausal.papers import PrivGcm
from dpcausal.privacy.loss import PureDP

N = 10_000


def rate(report: Report, label: str, least: float, most: float, **asked: Any) -> float:
    """Add a rate of rejections, and its target if it has one."""
    runs, method = report.given.runs, asked.get("method", "auto")
    found, name = rejection_rate(**asked, repetitions=runs, seed=11), getattr(method, "name", method)
    report.add(label, {"power": (found, (found * (1 - found) / runs) ** 0.5)}, n=asked["n"], runs=runs,
               epsilon=asked["loss"].epsilon, method=name)  # fmt: skip
    if (least, most) != (0, 1):
        text = f"at least {least:.3g}" if most == 1 else f"at most {most:g}"
        report.target(f"{label}, {name}, ε = {asked['loss'].epsilon:g}: {found:.3f}, {text}", least <= found <= most)
    return found


def epsilon_for(share: float, runs: int, method: Any, low: float, high: float) -> float:
    """By bisection on a logarithmic scale, the ε at which a share of tables is rejected."""
    for _ in range(7):
        middle = (low * high) ** 0.5
        found = rejection_rate(N, loss=PureDP(round(middle, 9)), method=method, effect=0.5, repetitions=runs, seed=5,
                               accept_large_epsilon=True)  # fmt: skip
        low, high = (low, middle) if found >= share else (middle, high)
    return (low * high) ** 0.5


def ratio(report: Report) -> None:
    ours = epsilon_for(0.8, report.given.runs, "gcm", 0.005, 2.0)
    published = epsilon_for(0.8, report.given.runs, PrivGcm(), 2.0, 60.0)
    for name, epsilon in (("gcm", ours), ("priv-gcm", published)):
        report.add("smooth, effect 0.5", {"ε for power 0.8": epsilon}, n=N, method=name, runs=report.given.runs)
    report.target(f"PrivGCM needs {published / ours:.0f} times the ε, at least 100", published / ours >= 100)


def weighted(report: Report) -> None:
    shared: dict[str, Any] = {"n": N, "loss": PureDP(1), "design": sign_changing(0.1)}
    rate(report, "y = 0.1 x sign(z) + noise", 0.9, 1, **shared, method="gcm-weighted")
    rate(report, "y = 0.1 x sign(z) + noise", 0, 1, **shared, method="gcm")


def levels(report: Report) -> None:
    """Two levels, linked alike in all strata: the default loses at most 0.03 of the power of a noisy table."""
    rate(report, "3 strata, share 0.1", 0.9, 1, design=agreeing(3, False, 0.1), n=2_000, loss=PureDP(0.5))
    kinds = (*((strata, False) for strata in (1, 2, 5, 10, 20, 50)), (5, True), (20, True))
    sizes = (1_000, 0.5, 0.15), (2_000, 0.5, 0.1), (2_000, 1.0, 0.08), (N, 0.1, 0.1), (N, 0.5, 0.04)
    for strata, rare in kinds:
        for n, epsilon, share in sizes:
            shared = {"n": n, "loss": PureDP(epsilon), "design": agreeing(strata, rare, share * (1 + rare))}
            name = f"{strata} {'rare ' * rare}strata, n = {n}"
            rate(report, name, rate(report, name, 0, 1, **shared, method="counts") - 0.03, 1, **shared)


PARTS = {"ratio": ratio, "weighted": weighted, "levels": levels}


@benchmark("independence", seeds="rejection_rate, seed 11; ε by seed 5", runs=200, parts=list(PARTS))
def main(report: Report) -> None:
    for part in report.given.parts:
        PARTS[part](report)
