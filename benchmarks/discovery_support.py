"""What the support of an edge is worth: of those in each bin that share is true; and the two searches apart.

Networks of 12 to 36 generated columns, 5,000 to 100,000 rows, ε = .05 to .5, δ = 1e-6, all by seed: pairs of whitened
levels, where these are the default.  ``--first`` gives other networks; ``--fit`` prints the curve that the library has,
which was fitted on the seeds 20,000 and up.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.discovery_wide import Case, asked, generated
from benchmarks.networks import read
from benchmarks.pairs import DataAbsentError
from benchmarks.targets import report
from dpcausal.discovery.averaged import averaged
from dpcausal.discovery.climb import climbed
from dpcausal.discovery.strongest import strongest_first

BINS = {0.5: (0.4, 0.6), 0.7: (0.6, 0.8), 0.9: (0.8, 0.98), 1.0: (0.98, 1.01)}
LEAST_IN_BIN = 200


def drawn(seeds: range) -> Iterator[tuple[Case, float, int]]:
    """Yield rows of generated networks, an ε and a seed."""
    for seed in seeds:
        rng = np.random.default_rng([31, seed])
        columns, rows = int(rng.integers(12, 37)), int(10 ** rng.uniform(3.7, 5))
        yield Case.of(generated(columns, 31_000 + seed), seed, rows), float(rng.choice([0.05, 0.1, 0.2, 0.5])), seed


def edges(seeds: range) -> list[tuple[float, bool]]:
    """Return the support of each edge that stands, and whether it is true."""
    seen: list[tuple[float, bool]] = []
    for case, epsilon, seed in drawn(seeds):
        found, _ = asked(case, dpc.ApproxDP(epsilon, 1e-6), seed)
        if found.method == "whitened" and found.support is not None:
            tested = found.graph.skeleton - found.untested
            seen += [(found.support.edges[edge], edge in case.truth.skeleton) for edge in tested]
    return seen


def calibration(seen: list[tuple[float, bool]], targets: dict[str, bool]) -> None:
    """Print of the edges in each bin the share that is true."""
    for middle, (low, high) in BINS.items():
        inside = [(support, right) for support, right in seen if low <= support < high]
        if not inside:
            continue
        mean, share = np.mean(inside, axis=0)
        error = (share * (1 - share) / len(inside)) ** 0.5
        words = f"support {low:g} to {min(high, 1):g}, mean {mean:.2f}: {share:.3f} ± {error:.3f} of {len(inside)} true"
        print(words, flush=True)
        if len(inside) >= LEAST_IN_BIN:
            targets[f"{words}, within .1 of {middle:g}"] = bool(abs(share - middle) <= 0.1)


def paired(seeds: range) -> None:
    """Print the skeleton F1 of both searches and of both put together, on the same releases at ε = .1."""
    for name in ("child", "insurance", "alarm", "generated 36"):
        told = []
        for seed in seeds:
            network = generated(36, 100 + seed) if name == "generated 36" else read(name)
            case = Case.of(network, seed)
            found: Any = asked(case, dpc.ApproxDP(0.1, 1e-6), seed)[0]
            release, terms = found.release.by_name(), found.terms
            alone = strongest_first(release, terms).edges, climbed(release, terms)
            skeletons, true = (*alone, averaged(release, terms)[0].edges), case.truth.skeleton
            told.append([2 * len(one & true) / max(len(one) + len(true), 1) for one in skeletons])
        mean, difference = np.mean(told, axis=0), np.array(told)[:, 2] - np.array(told)[:, 0]
        print(
            f"{name:<13} ε = .1: strongest first {mean[0]:.3f}, climbing {mean[1]:.3f}, together {mean[2]:.3f}, "
            f"together less strongest first {difference.mean():.3f} ± "
            f"{difference.std(ddof=1) / len(told) ** 0.5 if len(told) > 1 else 0:.3f}", flush=True,
        )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=150)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--paired", type=int, default=0, help="so many seeds of the paired comparison as well")
    options = parser.parse_args()
    targets: dict[str, bool] = {}
    calibration(edges(range(options.first, options.first + options.networks)), targets)
    try:
        paired(range(options.paired))
    except DataAbsentError as absent:
        print(f"the rest is skipped: {absent}")
    return report(targets)


if __name__ == "__main__":
    sys.exit(main())
