"""What the support of an edge is worth: of those in each bin that share is true; and the three searches apart.

Networks of 12 to 36 generated columns, 5,000 to 100,000 rows, ε = .05 to .5, δ = 1e-6, all by seed: pairs of whitened
levels, where these are the default.  ``--first`` gives other networks; ``--fit`` prints how likely these answers are
under some curves that calibrate draws: the library's was fitted on the seeds from 20,000 on, at these and larger n.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.discovery_wide import Case, asked, generated
from benchmarks.networks import read
from benchmarks.pairs import DataAbsentError
from benchmarks.targets import report
from dpcausal.discovery.averaged import OF_ORDERS, averaged
from dpcausal.discovery.climb import climbed
from dpcausal.discovery.orders import in_orders
from dpcausal.discovery.strongest import strongest_first
from dpcausal.discovery.support import CLEAR, STEEPEST
from dpcausal.privacy.noise import generator_from_seed

BINS = {0.2: (0.0, 0.4), 0.5: (0.4, 0.6), 0.7: (0.6, 0.8), 0.9: (0.8, 0.98), 1.0: (0.98, 1.01)}
LEAST_IN_BIN = 200


def drawn(seeds: range) -> Iterator[tuple[Case, float, int]]:
    """Yield rows of generated networks, an ε and a seed."""
    for seed in seeds:
        rng = np.random.default_rng([31, seed])
        columns, rows = int(rng.integers(12, 37)), int(10 ** rng.uniform(3.7, 5))
        yield Case.of(generated(columns, 31_000 + seed), seed, rows), float(rng.choice([0.05, 0.1, 0.2, 0.5])), seed


def edges(seeds: range) -> Any:
    """Return for each edge that stands its support, whether it is true, and the rows' weight over the noise."""
    seen: list[tuple[float, bool, float]] = []
    for case, epsilon, seed in drawn(seeds):
        found, _ = asked(case, dpc.ApproxDP(epsilon, 1e-6), seed)
        if found.method == "whitened" and found.support is not None:
            release: Any = found.release
            seen += [
                (found.support.edges[edge], edge in case.truth.skeleton, release.count / release.deviation)
                for edge in found.graph.skeleton - found.untested
            ]
    return np.array(seen)


def calibration(seen: Any, targets: dict[str, bool]) -> None:
    """Print of the edges in each bin the share that is true: of all, and by how small the noise is."""
    little = seen[:, 2] > CLEAR
    for words, part in (("all", seen), ("large noise", seen[~little]), ("little noise", seen[little])):
        for middle, (low, high) in BINS.items():
            inside = part[(part[:, 0] >= low) & (part[:, 0] < high)]
            if not len(inside):
                continue
            mean, share, _ = inside.mean(axis=0)
            told = (
                f"{words}: support {low:g} to {min(high, 1):g}, mean {mean:.2f}: {share:.3f} ± "
                f"{(share * (1 - share) / len(inside)) ** 0.5:.3f} of {len(inside)} true"
            )
            print(told, flush=True)
            if words == "all" and len(inside) >= LEAST_IN_BIN:
                targets[f"{told}, within .1 of {middle:g}"] = bool(abs(share - middle) <= 0.1)


def fit(seen: Any) -> None:
    """Print the mean log-likelihood of the answers, by where a curve leaves the shares of draws and by its power."""
    support, right, clear = seen.T
    draws = support ** (1 / np.clip((clear / CLEAR) ** 2, 1, STEEPEST))
    for start, most in product((40.0, 50.0, 60.0, 80.0, 1e9), (2.0, 3.0, 4.0)):
        chance = np.minimum(draws, 0.99) ** np.clip((clear / start) ** 2, 1, most)
        likely = np.log(np.where(right == 1, chance, 1 - chance)).mean()
        print(f"from {start:<6g} to the power {most:g}: {likely:.4f}")


def paired(seeds: range) -> None:
    """Print the skeleton F1 of each search and of all put together, on the same releases at ε = .1."""
    for name in ("child", "insurance", "alarm", "generated 36"):
        told = []
        for seed in seeds:
            network = generated(36, 100 + seed) if name == "generated 36" else read(name)
            case = Case.of(network, seed)
            found: Any = asked(case, dpc.ApproxDP(0.1, 1e-6), seed)[0]
            release, terms = found.release.by_name(), found.terms
            likely = in_orders(release, terms, generator_from_seed(seed), None, *OF_ORDERS)
            sampled = {edge for edge, share in likely.items() if share > 0.5}
            alone = strongest_first(release, terms).edges, climbed(release, terms), sampled
            skeletons, true = (*alone, averaged(release, terms)[0].edges), case.truth.skeleton
            told.append([2 * len(one & true) / max(len(one) + len(true), 1) for one in skeletons])
        mean, difference = np.mean(told, axis=0), np.array(told)[:, 3] - np.array(told)[:, 0]
        print(
            f"{name:<13} ε = .1: strongest first {mean[0]:.3f}, climbing {mean[1]:.3f}, orders {mean[2]:.3f}, "
            f"together {mean[3]:.3f}, less strongest first {difference.mean():.3f} ± "
            f"{difference.std(ddof=1) / len(told) ** 0.5 if len(told) > 1 else 0:.3f}", flush=True,
        )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=150)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--fit", action="store_true", help="compare curves on these networks")
    parser.add_argument("--paired", type=int, default=0, help="so many seeds of the paired comparison as well")
    options = parser.parse_args()
    targets: dict[str, bool] = {}
    if options.networks:
        seen = edges(range(options.first, options.first + options.networks))
        calibration(seen, targets)
        if options.fit:
            fit(seen)
    try:
        if options.paired:
            paired(range(options.paired))
    except DataAbsentError as absent:
        print(f"the rest is skipped: {absent}")
    return report(targets)


if __name__ == "__main__":
    sys.exit(main())
