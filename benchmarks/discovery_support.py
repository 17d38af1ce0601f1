"""What the support of an edge is worth: of those in each bin that share is true.

Networks of 12 to 36 generated columns, 5,000 to 100,000 rows, ε = 0.05 to 1, δ = 1e-6, all by seed: whitened pairs and
triples, where these are the default.  ``--named``: seeds of alarm, insurance and child, 100,000 rows, ε = 0.1 and 1.
``--first`` gives other networks and seeds.  The powers were fitted on networks of other rules of generation, on the
networks from 80000 to 80118, and on seeds 200 to 205 and 600 of the named ones.
"""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.data import DataAbsentError
from benchmarks.data.networks import read
from benchmarks.designs.graphs import Case, determined, generated
from benchmarks.discovery import asked
from benchmarks.run import Report, benchmark
from dpcausal.discovery.copies import lines_of

BINS = ((0.0, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 0.98), (0.98, 1.01))
LEAST_IN_BIN = 200


Cases = Iterable[tuple[Case, float]]
"""Rows and an ε."""


def drawn(seed: int) -> Cases:
    rng = np.random.default_rng([31, seed])
    columns, rows = int(rng.integers(12, 37)), int(10 ** rng.uniform(3.7, 5))
    case = Case.of(generated(columns, 31_000 + seed), seed, rows)
    return [(case, float(rng.choice([0.05, 0.1, 0.2, 0.5, 1.0, 1.0])))]


def named(seed: int) -> Cases:
    networks = product(("alarm", "insurance", "child"), (0.1, 1.0))
    return ((Case.of(read(name), seed), epsilon) for name, epsilon in networks)


def edges(cases: Callable[[int], Cases], seeds: range) -> dict[str, Any]:
    """Return by method for each edge that stands its support, and whether it is true."""
    seen: dict[str, list[tuple[float, bool]]] = {}
    for seed, (case, epsilon) in ((one, each) for one in seeds for each in cases(one)):
        found, _ = asked(case, dpc.ApproxDP(epsilon, 1e-6), seed)
        if found.method in ("whitened", "triples") and found.support is not None:
            seen.setdefault(found.method, []).extend(
                (found.support.edges[edge], edge in case.truth.skeleton)
                for edge in found.graph.skeleton - found.untested - lines_of(found.copies)
            )
    return {method: np.array(pairs) for method, pairs in seen.items()}


def calibration(report: Report, words: str, method: str, seen: Any) -> None:
    """Add of the edges in each bin the share that is true."""
    for low, high in BINS:
        inside = seen[(seen[:, 0] >= low) & (seen[:, 0] < high)]
        if not len(inside):
            continue
        mean, share = inside.mean(axis=0)
        bin_name = f"support {low:g} to {min(high, 1):g}"
        report.add(words, {"mean support": mean, "share true": (share, (share * (1 - share) / len(inside)) ** 0.5)},
                   method=method, reading=bin_name, runs=len(inside), delta=1e-6)  # fmt: skip
        if len(inside) >= LEAST_IN_BIN:
            report.target(f"{words}, {method}, {bin_name}: {share:.3f} of {len(inside)} true, within 0.1 of {mean:.2f}",
                          bool(abs(share - mean) <= 0.1))  # fmt: skip


@benchmark("discovery", networks=150, first=0, named=0, determined=20)
def main(report: Report) -> None:
    given = report.given
    kinds: tuple[tuple[str, Any, int], ...] = (
        ("generated", drawn, given.networks),
        ("deterministic", lambda seed: [(determined(20_000, seed), (1.0, 3.0)[seed % 2])], given.determined),
        ("partly deterministic", lambda seed: [
            (Case.of(generated(14, 77_000 + seed, determined=3), seed, 50_000), (1.0, 3.0)[seed % 2])
        ], given.determined),
        ("named", named, given.named),
    )  # fmt: skip
    for words, cases, count in kinds:
        try:
            found = edges(cases, range(given.first, given.first + count))
        except DataAbsentError as absent:
            print(f"{words} is skipped: {absent}")
            continue
        for method, seen in found.items():
            calibration(report, words, method, seen)
            firm = seen[seen[:, 0] >= 0.95] if "deterministic" in words else seen[:0]
            if len(firm):
                report.target(f"{method}, {words}: {int(firm[:, 1].sum())} of {len(firm)} edges of support 0.95 "
                              "or more are true, at least 0.9", bool(firm[:, 1].mean() >= 0.9))  # fmt: skip
