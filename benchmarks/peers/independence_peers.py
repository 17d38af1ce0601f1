"""Independence tests beside tests without privacy on the same tables: level, power and time.

causal-learn's and pgmpy's are left out where they are not installed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.designs.independence.shapes import DESIGNS
from benchmarks.run import Report, mean, options, summarised

N, LINK = 500, 0.3
Test = Callable[[Any], float]


def ours(loss: Any, method: str = "auto") -> Test:
    def pvalue(data: Any) -> float:
        ledger = dpc.Ledger.without_privacy() if loss.exact else dpc.Ledger.in_memory(loss)
        table = dpc.Table(data.columns, data.schema, ledger)
        return float(dpc.ci_test(table, "x", "y", given=data.given, loss=loss, method=method).pvalue or 1.0)

    return pvalue


def pgmpy(data: Any) -> float:
    import pandas as pd
    from pgmpy.ci_tests import GCM

    test = GCM(pd.DataFrame(data.columns))
    test("x", "y", data.given)
    return float(test.p_value_)


def causal_learn(kind: str) -> Test:
    def pvalue(data: Any) -> float:
        from causallearn.utils.cit import CIT

        columns = np.stack([data.columns[name] for name in ("x", "y", *data.given)], axis=1)
        return float(CIT(columns, kind)(0, 1, list(range(2, columns.shape[1]))))

    return pvalue


TESTS: dict[str, tuple[str, float | None, Test]] = {
    "auto, ε = 0.25": ("", 0.25, ours(dpc.PureDP(0.25))), "auto, ε = 1": ("", 1.0, ours(dpc.PureDP(1))),
    "auto, no privacy": ("", None, ours(dpc.NoPrivacy())), "gcm, no privacy": ("", None, ours(dpc.NoPrivacy(), "gcm")),
    "pgmpy GCM (linear)": ("pgmpy", None, pgmpy),
    "causal-learn Fisher z": ("causallearn", None, causal_learn("fisherz")),
    "causal-learn KCI": ("causallearn", None, causal_learn("kci")),
}  # fmt: skip


def main(arguments: list[str], name: str = "independence_peers", **changed: Any) -> int:
    defaults = {"runs": 100, "designs": ["linear", "z²", "sine, 8 cycles", "additive in d = 5"]}
    given = options(__doc__, arguments, **defaults | changed)
    report = Report(name, "independence", given, arguments)
    for test, (module, epsilon, pvalue) in TESTS.items():
        if module and find_spec(module) is None:
            print(f"{test} is left out: {module} is not installed; pip install -e '.[benchmark]'")
            continue
        for design in given.designs:
            start, rows = time.process_time(), []
            for seed in range(given.runs):
                row = {}
                for rate, link in (("level", 0.0), ("power", LINK)):
                    data = DESIGNS[design].make(N, np.random.default_rng(seed), link)
                    with dpc.simulated_noise(seed):
                        row[rate] = float(pvalue(data) <= 0.05)
                rows.append(row)
            spent = (time.process_time() - start) / (2 * given.runs)
            report.add(design, summarised(rows, {"level": mean("level"), "power": mean("power")})
                       | {"milliseconds of processor": (1e3 * spent, float("nan"))},
                       n=N, epsilon=epsilon, method=test, runs=given.runs)  # fmt: skip
    return report.finish()
