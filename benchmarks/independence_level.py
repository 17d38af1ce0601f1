"""Level of the independence tests under true nulls: share of rejections at nominal .05.

    python -m benchmarks independence_level [repetitions] [which]

``which``: gcm, crt, shapes, hard, weighted, or all (the default).  1,000 repetitions take an hour of one processor.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from benchmarks.independence_designs import binary_on_z, lognormal, rare_binary, rarer_alone, sign_changing
from dpcausal.independence.power import power
from dpcausal.methods import Gcm
from dpcausal.privacy.loss import PureDP

Case = tuple[str, dict[str, Any], tuple[float, float]]


def cases(which: str) -> Iterator[Case]:
    """Yield a name, the arguments of ``power`` and the allowed range of the level."""
    if which in ("gcm", "crt", "all"):
        for method in ("gcm", "crt") if which == "all" else (which,):
            for complexity in (1.0, 2.0):
                for n in (1_000, 10_000):
                    for epsilon in (0.5, 2.0):
                        name = f"{method:<14} s = {complexity:g}, n = {n:>6}, epsilon = {epsilon:g}"
                        arguments = {"n": n, "loss": PureDP(epsilon), "method": method, "complexity": complexity}
                        yield name, {**arguments, "effect": 0.0}, (0.03, 0.075)
    if which in ("shapes", "all"):
        for design in (rare_binary, rarer_alone, binary_on_z, lognormal):
            for n, epsilon in ((1_000, 2.0), (10_000, 0.25)):
                name = f"gcm            {design.__name__}, n = {n:>6}, epsilon = {epsilon:g}"
                yield name, {"n": n, "loss": PureDP(epsilon), "design": design}, (0.0, 0.08)
    if which in ("hard", "all"):
        shared: dict[str, Any] = {"n": 10_000, "loss": PureDP(2.0), "effect": 0.0}
        for complexity in (8.0, 16.0):
            yield f"gcm            s = {complexity:g}", {**shared, "complexity": complexity}, (0.0, 1.0)
        yield "gcm            s = 8, epsilon = .25", {**shared, "complexity": 8.0, "loss": PureDP(0.25)}, (0.0, 1.0)
        for shape in ("isotropic", "additive"):
            asked = {**shared, "dimensions": 5, "method": Gcm(regression=shape)}
            yield f"gcm            d = 5, {shape}", asked, (0.0, 1.0)
    if which in ("weighted", "all"):
        arguments = {"n": 10_000, "loss": PureDP(1.0), "method": "gcm-weighted", "design": sign_changing(0.0)}
        yield "gcm-weighted   n = 10000, epsilon = 1", arguments, (0.0, 0.075)


def main(arguments: list[str]) -> int:
    """Print the levels; return 1 if one is out of its range by more than chance (3 standard errors)."""
    repetitions = int(arguments[0]) if arguments else 100
    failed = False
    print(f"{repetitions} repetitions; 95 % Wilson intervals\n")
    for name, asked, (low, high) in cases(arguments[1] if len(arguments) > 1 else "all"):
        found = power(**asked, repetitions=repetitions, seed=7)
        slack = 3 * (0.05 * 0.95 / repetitions) ** 0.5 if repetitions < 1_000 else 0.0
        outside = not low - slack <= found.rate <= high + slack
        failed |= outside
        interval = f"({found.interval[0]:.3f} to {found.interval[1]:.3f})"
        print(f"{name:<64}{found.rate:.3f} {interval}{'  OUT OF RANGE' if outside else ''}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
