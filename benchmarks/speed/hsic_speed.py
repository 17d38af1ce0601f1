"""Speed of exact Laplacian HSIC beside dcor, hyppo and causal-learn, measured in one run.

Medians of repeated warm calls on the same data; one thread on our side.  The peers compute what they offer at their
defaults: dcor the squared distance covariance (its faster method), hyppo its HSIC statistic, causal-learn the
statistic and p-value of its unconditional kernel test, which it approximates.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.run import Report, options
from dpcausal.papers.statistics.hsic import GAUSSIAN
from dpcausal.statistics.hsic import LAPLACIAN, Kernel, root_hsic

BOX: dict[str, Any] = {"width_x": 0.2, "width_y": 0.2, "range_x": (0.0, 1.0), "range_y": (0.0, 1.3)}


def data(m: int) -> tuple[Any, Any]:
    """Records of a noisy line, in random order."""
    rng = np.random.default_rng(0)
    x = rng.random(m)
    return x, x + 0.3 * rng.random(m)


def median_times(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The median seconds of each call; the calls take turns, so that a busy moment hits them all."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def main(arguments: list[str], name: str = "hsic_speed", **changed: Any) -> int:
    given = options(__doc__, arguments, **{"repeats": 11} | changed)
    report = Report(name, "speed", given, arguments, code=["dpcausal.statistics.hsic"], seeds="data of seed 0")
    warnings.simplefilter("ignore")
    import dcor
    from causallearn.utils.KCI.KCI import KCI_UInd
    from hyppo.independence import Hsic

    def ours(x: Any, y: Any, kernel: Kernel = LAPLACIAN) -> Callable[[], object]:
        return lambda: root_hsic(x, y, kernel=kernel, **BOX)

    (x, y), (u, v) = data(3_000), data(100_000)
    columns = x[:, None], y[:, None]
    found = {
        3_000: median_times({
            "dpcausal": ours(x, y), "dpcausal, Gaussian": ours(x, y, GAUSSIAN),
            "hyppo": lambda: Hsic().statistic(*columns), "causal-learn": lambda: KCI_UInd().compute_pvalue(*columns),
        }, given.repeats),
        100_000: median_times({
            "dpcausal": ours(u, v), "dcor, mergesort": lambda: dcor.distance_covariance_sqr(u, v, method="mergesort"),
            "dcor, avl": lambda: dcor.distance_covariance_sqr(u, v, method="avl"),
        }, given.repeats),
        1_000_000: median_times({"dpcausal": ours(*data(1_000_000))}, min(given.repeats, 5)),
    }  # fmt: skip
    for m, times in found.items():
        for method, seconds in times.items():
            report.add("a noisy line", {"milliseconds": 1e3 * seconds, "x ours": seconds / times["dpcausal"]}, n=m,
                       method=method, runs=given.repeats)  # fmt: skip
    small, large, growth = found[3_000], found[100_000], found[1_000_000]["dpcausal"] / found[100_000]["dpcausal"]
    dcor_best = min(large["dcor, mergesort"], large["dcor, avl"])
    report.target("100,000: no slower than dcor", dcor_best >= large["dpcausal"])
    report.target("3,000: 200 x faster than hyppo", small["hyppo"] >= 200 * small["dpcausal"])
    report.target("3,000: 50 x faster than causal-learn", small["causal-learn"] >= 50 * small["dpcausal"])
    report.target(f"100,000 to 1,000,000: {growth:.1f} x the time, at most 20", growth <= 20)
    return report.finish()
