"""Power of the independence tests, ours and as published, in one run.

    python -m benchmarks independence [repetitions] [which]

``which``: gcm, ratio, crt, weighted, levels, or all (the default).
"""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.independence_designs import agreeing, sign_changing
from dpcausal.independence.power import power
from dpcausal.methods import CrtDecision
from dpcausal.papers import PrivCrt, PrivGcm
from dpcausal.privacy.loss import PureDP

N = 10_000


def rate(repetitions: int, label: str, least: float, most: float, **asked: Any) -> bool:
    """Print a rate of rejections beside its target; return whether it is met."""
    found = power(**asked, repetitions=repetitions, seed=11)
    met = least <= found.rate <= most
    target = f"at least {least:g}" if most == 1 else f"at most {most:g}"
    target = "" if (least, most) == (0, 1) else target
    interval = f"({found.interval[0]:.3f} to {found.interval[1]:.3f})"
    print(f"{label:<60}{found.rate:.3f} {interval} {target}{'' if met else '  MISSED'}", flush=True)
    return met


def gcm(repetitions: int) -> list[bool]:
    print(f"Covariance of residuals, n = {N}, s = 2, d = 1, bounds 3")
    shared: dict[str, Any] = {"n": N, "complexity": 2.0, "bound": 3.0}
    quarter = PureDP(0.25)
    met = [
        rate(repetitions, "gcm, epsilon = .25, effect .5", 0.95, 1, **shared, loss=quarter, effect=0.5),
        rate(repetitions, "gcm, epsilon = .25, effect .1", 0.92, 1, **shared, loss=quarter, effect=0.1),
    ]
    for constants, most in (("published", 0.2), ("corrected", 1.0)):
        way: Any = PrivGcm(constants=constants)  # type: ignore[arg-type]
        label = f"PrivGCM ({constants} constant), epsilon = 4, effect .5"
        met.append(rate(repetitions, label, 0, most, **shared, loss=PureDP(4), effect=0.5, method=way))
    return met


def epsilon_for(share: float, repetitions: int, method: Any, low: float, high: float) -> float:
    """Return, by bisection on a logarithmic scale, the epsilon at which a share of tables is rejected."""
    for _ in range(7):
        middle = (low * high) ** 0.5
        found = power(N, loss=PureDP(round(middle, 9)), method=method, effect=0.5, repetitions=repetitions,
                      seed=5, accept_large_epsilon=True).rate  # fmt: skip
        low, high = (low, middle) if found >= share else (middle, high)
    return (low * high) ** 0.5


def ratio(repetitions: int) -> list[bool]:
    print("\nEpsilon for 80 % power, effect .5")
    ours = epsilon_for(0.8, repetitions, "gcm", 0.005, 2.0)
    published = epsilon_for(0.8, repetitions, PrivGcm(), 2.0, 60.0)
    met = published / ours >= 100
    print(f"gcm {ours:.3g}, PrivGCM {published:.3g}: ratio {published / ours:.0f}{'' if met else '  MISSED'}")
    return [met]


def crt(repetitions: int) -> list[bool]:
    print("\nRandomisation tests, n = 1000, epsilon = 2, effect .2")
    shared: dict[str, Any] = {"n": 1_000, "loss": PureDP(2), "effect": 0.2}
    met = [rate(repetitions, "crt", 0.9, 1, **shared, method="crt")]
    met.append(rate(repetitions, "crt-decision, m = 499", 0.9, 1, **shared, method=CrtDecision(resamples=499)))
    for constants in ("published", "corrected"):
        for m in (19, 99, 499):
            most = 0.2 if constants == "published" and m == 499 else 1.0
            label = f"PrivCRT ({constants} constant), m = {m}"
            way: Any = PrivCrt(resamples=m, constants=constants)  # type: ignore[arg-type]
            met.append(rate(repetitions, label, 0, most, **shared, method=way))
    return met


def weighted(repetitions: int) -> list[bool]:
    print("\ny = .1 x sign(z) + noise, n = 10000, epsilon = 1")
    shared: dict[str, Any] = {"n": N, "loss": PureDP(1), "design": sign_changing(0.1)}
    return [
        rate(repetitions, "gcm-weighted", 0.9, 1, **shared, method="gcm-weighted"),
        rate(repetitions, "gcm", 0, 1, **shared, method="gcm"),
    ]


def levels(repetitions: int) -> list[bool]:
    print("\nTwo levels, linked alike in all strata: auto beside the noisy table; met if not below it by more than .03")
    asked = {"design": agreeing(3, False, 0.1), "n": 2_000, "loss": PureDP(0.5)}
    met = [rate(repetitions, "3 strata, n = 2000, epsilon = .5, effect .1", 0.9, 1, **asked)]
    kinds = (*((strata, False) for strata in (1, 2, 5, 10, 20, 50)), (5, True), (20, True))
    sizes = (1_000, 0.5, 0.15), (2_000, 0.5, 0.1), (2_000, 1.0, 0.08), (N, 0.1, 0.1), (N, 0.5, 0.04)
    for strata, rare in kinds:
        for n, epsilon, share in sizes:
            shared = {"n": n, "loss": PureDP(epsilon), "design": agreeing(strata, rare, share * (1 + rare))}
            table = power(**shared, repetitions=repetitions, seed=11, method="counts").rate  # type: ignore[arg-type]
            label = f"{strata} {'rare ' * rare}strata, n = {n}, epsilon = {epsilon:g}; table {table:.3f}"
            met.append(rate(repetitions, label, table - 0.03, 1, **shared))
    return met


def main(arguments: list[str]) -> int:
    """Return 0 if every target was met."""
    repetitions = int(arguments[0]) if arguments else 200
    parts = {"gcm": gcm, "ratio": ratio, "crt": crt, "weighted": weighted, "levels": levels}
    chosen = arguments[1:] or list(parts)
    met = [one for name in chosen for one in parts[name](repetitions)]
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
