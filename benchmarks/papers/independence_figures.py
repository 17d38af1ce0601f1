"""Figures 1 to 6, 9 and 10 of Kalemaj, Kasiviswanathan & Ramdas (2024): published and ours, as tables.

    python -m benchmarks independence_figures --runs 10 --figures 2 4

With f_s(z) = exp(−z²/2) sin(sz); as printed, with exp(−s²/2), Figure 1 could not come out.  Figure 7 is on concrete.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import dpcausal as dpc
from benchmarks.rejections import rejection_rate, smooth_model
from benchmarks.run import Report, benchmark
from dpcausal import methods, papers

Line = tuple[str, dict[str, Any]]

PUBLISHED_GCM: Line = ("PrivGCM", {"method": papers.PrivGcm()})
PUBLISHED_CRT: Line = ("PrivCRT", {"method": papers.PrivCrt()})
OURS_GCM: Line = ("gcm", {"method": "gcm"})
OURS_CRT: Line = ("crt", {"method": "crt"})
DECISION: Line = ("crt-decision", {"method": methods.CrtDecision(resamples=99)})
DEFAULT: Line = ("neighbours", {"method": "neighbours"})
EXACT: Line = ("GCM, no privacy", {"method": "gcm", "loss": dpc.NoPrivacy()})
EXACT_CRT: Line = ("CRT, no privacy", {"method": "crt", "loss": dpc.NoPrivacy()})


class Figure(NamedTuple):
    """Shares of rejections: one line a method, one value of its axis a point, and how a point's tables are drawn."""

    number: str
    title: str
    axis: str
    values: Sequence[float]
    lines: Sequence[Line]
    design: Callable[[float], dict[str, Any]]

    def add(self, report: Report) -> None:
        runs = report.given.runs
        for (name, changed), value in product(self.lines, self.values):
            arguments = {**self.design(value), **changed}
            if "kind" in arguments:
                arguments["method"] = arguments.pop("kind")(resamples=arguments.pop("resamples"))
            rate = rejection_rate(**arguments, repetitions=runs, seed=17)
            report.add(f"Figure {self.number}, {self.title}", {"rejected": (rate, (rate * (1 - rate) / runs) ** 0.5)},
                       n=arguments["n"], method=name, epsilon=getattr(arguments["loss"], "epsilon", None),
                       reading=f"{self.axis} {value:g}", runs=runs)  # fmt: skip


def figures() -> Iterator[Figure]:
    for d, parts in ((1, 100), (5, 3)):
        # In the paper 100 clusters of z, which are made from the data: here as many public strata, 3⁵ for five columns.
        printed = {"method": papers.PrivKendall(strata=parts), "accept_unproven": True}
        baselines: list[Line] = [
            ("PrivToT", {"method": papers.PrivToT()}), ("private Kendall", printed),
            ("kendall", {"method": methods.Kendall(strata=parts)}),
        ]  # fmt: skip
        yield Figure(
            "1", f"level, n = 10,000, epsilon = 2, d = {d}", "s", (1, 2, 4, 8, 16, 32),
            [*baselines, PUBLISHED_GCM, PUBLISHED_CRT, OURS_GCM, OURS_CRT, *([DEFAULT] if d == 1 else [])],
            lambda s, d=d: {"n": 10_000, "loss": dpc.PureDP(2), "effect": 0.0, "complexity": s, "dimensions": d},
        )  # fmt: skip
        yield Figure(
            "2", f"n = 10,000, epsilon = 7, d = {d}", "effect", (0, 0.1, 0.5, 1, 1.5),
            [EXACT, PUBLISHED_GCM, OURS_GCM],
            lambda b, d=d: {"n": 10_000, "loss": dpc.PureDP(7), "effect": b, "dimensions": d},
        )  # fmt: skip
        for effect in (0.0, 1.0):
            yield Figure(
                "3", f"epsilon = 7, d = {d}, effect {effect:g}", "n", (300, 1_000, 3_000, 10_000),
                [EXACT, PUBLISHED_GCM, OURS_GCM],
                lambda n, d=d, b=effect: {"n": int(n), "loss": dpc.PureDP(7), "effect": b, "dimensions": d},
            )  # fmt: skip
    crt_lines = [EXACT_CRT, PUBLISHED_CRT, OURS_CRT, DECISION]
    yield Figure("4", "n = 1,000, epsilon = 2", "effect", (0, 0.1, 0.2, 0.5, 1, 1.5), crt_lines,
                 lambda b: {"n": 1_000, "loss": dpc.PureDP(2), "effect": b})  # fmt: skip
    for effect in (0.0, 0.5):
        yield Figure("5", f"epsilon = 2, effect {effect:g}", "n", (150, 300, 1_000, 3_000), crt_lines,
                     lambda n, b=effect: {"n": int(n), "loss": dpc.PureDP(2), "effect": b})  # fmt: skip
    yield Figure("6", "n = 10,000, effect 0.5", "epsilon", (0.125, 0.25, 0.5, 1, 2, 4, 8),
                 [PUBLISHED_GCM, PUBLISHED_CRT, OURS_GCM, OURS_CRT],
                 lambda e: {"n": 10_000, "loss": dpc.PureDP(e), "effect": 0.5})  # fmt: skip
    yield Figure("9", "n = 1,000, epsilon = 2, effect 0.2", "m", (19, 49, 99, 499),
                 [("PrivCRT", {"kind": papers.PrivCrt}), ("crt", {"kind": methods.Crt}),
                  ("crt-decision", {"kind": methods.CrtDecision})],
                 lambda m: {"n": 1_000, "loss": dpc.PureDP(2), "effect": 0.2, "resamples": int(m)})  # fmt: skip


def pvalues(report: Report) -> None:
    """Figure 10: p-values of true nulls, n = 1,000, ε = 2."""
    model = smooth_model(2.0)
    ways = (("PrivCRT", papers.PrivCrt(model_x=model)), ("crt", methods.Crt(model_x=model)), ("gcm", methods.Gcm()))
    for name, way in ways:
        values = []
        for seed in range(report.given.runs):
            data = dpc.simulate.smooth_design(1_000, seed=seed)
            asked = dpc.Table(data.columns, data.schema, dpc.Ledger.in_memory(dpc.PureDP(2)), missing="impute")
            with dpc.simulated_noise(seed + 10**6):  # not the stream of the rows
                values.append(dpc.ci_test(asked, "x", "y", given=["z1"], loss=dpc.PureDP(2), method=way).pvalue)
        shares = np.histogram(values, bins=10, range=(0, 1))[0] / report.given.runs
        report.add("Figure 10, p-values of true nulls", {f"tenth {k}": one for k, one in enumerate(shares, 1)}, n=1_000,
                   epsilon=2, method=name, runs=report.given.runs)  # fmt: skip


@benchmark("independence", seeds="rows and noise of rejection_rate, seed 17", runs=10, figures=[])
def main(report: Report) -> None:
    wanted = report.given.figures
    for figure in figures():
        if not wanted or figure.number in wanted:
            figure.add(report)
    if not wanted or "10" in wanted:
        pvalues(report)
