"""Ours beside tests without privacy on the same tables: level, power and time; causal-learn's and pgmpy's if installed.

    python -m benchmarks independence_peers [repetitions]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.independence_shapes import SHAPES
from dpcausal.simulate import SimulatedRows

N, LINK = 500, 0.3
ASKED = ("linear", "z²", "sine, 8 cycles", "additive in d = 5")
Test = Callable[[SimulatedRows], float]


def ours(loss: dpc.PureDP | None, method: str = "auto") -> Test:
    """Return the p-value of ours, at a loss or without privacy."""

    def pvalue(data: SimulatedRows) -> float:
        exact = loss is None
        ledger = dpc.Ledger.without_privacy() if exact else dpc.Ledger.in_memory(loss)
        table, paid = dpc.Table(data.columns, data.schema, ledger), dpc.NoPrivacy() if exact else loss
        return float(dpc.ci_test(table, "x", "y", given=data.given, loss=paid, method=method).pvalue or 1.0)

    return pvalue


def peers() -> dict[str, Test]:
    """Return those that are installed."""
    found: dict[str, Test] = {}
    try:
        import pandas as pd
        from pgmpy.ci_tests import GCM

        def published(data: SimulatedRows) -> float:
            test = GCM(pd.DataFrame(data.columns))
            test("x", "y", data.given)
            return float(test.p_value_)

        found["pgmpy GCM (linear)"] = published
    except ImportError:
        print("pgmpy is not installed")
    try:
        from causallearn.utils.cit import CIT

        def learnt(kind: str) -> Test:
            def pvalue(data: SimulatedRows) -> float:
                columns = np.stack([data.columns[name] for name in ("x", "y", *data.given)], axis=1)
                return float(CIT(columns, kind)(0, 1, list(range(2, columns.shape[1]))))

            return pvalue

        found |= {"causal-learn Fisher z": learnt("fisherz"), "causal-learn KCI": learnt("kci")}  # the slowest last
    except ImportError:
        print("causal-learn is not installed")
    return found


def main(arguments: list[str]) -> int:
    """Print level, power and seconds of each."""
    repetitions = int(arguments[0]) if arguments else 100
    tests: dict[str, Test] = {
        "auto, ε = .25": ours(dpc.PureDP(0.25)), "auto, ε = 1": ours(dpc.PureDP(1)), "auto, no privacy": ours(None),
        "gcm, no privacy": ours(None, "gcm"), **peers(),
    }  # fmt: skip
    print(f"n = {N}, {repetitions} tables; level, power at an effect of {LINK:g}, processor's milliseconds a test\n")
    print(f"| test | {' | '.join(ASKED)} |\n|{'---|' * (1 + len(ASKED))}")
    for name, test in tests.items():
        cells = []
        for shape in ASKED:
            start, rates = time.process_time(), []
            for link in (0.0, LINK):
                pvalues: list[Any] = []
                for seed in range(repetitions):
                    data = SHAPES[shape](N, np.random.default_rng(seed), link)
                    with dpc.simulated_noise(seed):
                        pvalues.append(test(data))
                rates.append(float(np.mean(np.array(pvalues) <= 0.05)))
            spent = (time.process_time() - start) / (2 * repetitions)
            cells.append(f"{rates[0]:.2f}, {rates[1]:.2f}, {1e3 * spent:.0f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
