"""Graphs of five kinds of wide tables that were written down before any result of them was seen, by no tuner of it.

Whoever named them had not tuned the search of whitened pairs or its rule of support, and changed nothing afterwards.
δ = 1e-6, noise simulated of the stated laws; each draw of a kind has its own arrows and its own laws.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from itertools import product

import numpy as np
import numpy.typing as npt

import dpcausal as dpc
from benchmarks.discovery_wide import Case, asked
from benchmarks.networks import Network

Reals = npt.NDArray[np.float64]
Codes = tuple[int, ...]


def made(name: str, sizes: list[int], parents: list[list[int]], law: Callable[[int, Codes], Reals]) -> Network:
    """Return the network of columns of so many levels; ``law``: of one column given the codes of its parents."""
    names = [f"v{place:02d}" for place in range(len(sizes))]
    tables = {}
    for place, above in enumerate(parents):
        table = np.zeros([sizes[k] for k in above] + [sizes[place]])
        for codes in product(*(range(sizes[k]) for k in above)):
            weights = np.maximum(law(place, codes), 0.0)
            table[codes] = weights / weights.sum()
        tables[names[place]] = table
    levels = {name: tuple(map(str, range(size))) for name, size in zip(names, sizes, strict=True)}
    return Network(name, levels, {names[k]: tuple(names[j] for j in above) for k, above in enumerate(parents)}, tables)


def diagnosis(rng: np.random.Generator) -> Network:
    """One column of six levels is above sixteen signs of two or three levels; seven columns in a tree are above it."""
    sizes = [int(k) for k in rng.integers(2, 5, 7)] + [6] + [int(k) for k in rng.integers(2, 4, 16)]
    parents: list[list[int]] = [[], [0], [0], [1], [], [4], []] + [[3, 5]] + [[7]] * 12 + [[7, 8], [7, 9], [14], [15]]
    drawn = [rng.dirichlet(np.full(size, 0.7), size=200) for size in sizes]
    return made("diagnosis", sizes, parents, lambda k, codes: drawn[k][sum(9**i * c for i, c in enumerate(codes))])


def wear(rng: np.random.Generator) -> Network:
    """Thirty stages in one chain, of three ordered levels, each mostly as the one before or one worse."""
    stays = rng.uniform(0.6, 0.85, 30)
    start = np.array([0.5, 0.3, 0.2])

    def law(k: int, codes: Codes) -> Reals:
        if not codes:
            return start
        shares = np.full(3, 0.05)
        shares[codes[0]] += stays[k]
        shares[min(codes[0] + 1, 2)] += 0.15
        return shares + 0.05 * start

    return made("wear", [3] * 30, [[], *[[k - 1] for k in range(1, 30)]], law)


def faults(rng: np.random.Generator) -> Network:
    """Ten causes in .03 to .2 of the rows, fifteen alarms that each of two to four causes sets off, or none."""
    parents: list[list[int]] = [[] for _ in range(10)] + [
        sorted(rng.choice(10, int(rng.integers(2, 5)), replace=False).tolist()) for _ in range(15)
    ]
    base, strength = rng.uniform(0.03, 0.2, 25), rng.uniform(0.3, 0.9, (25, 4))

    def law(k: int, codes: Codes) -> Reals:
        off = 1 - (base[k] if k < 10 else base[k] / 4)
        for place, code in enumerate(codes):
            off *= 1 - strength[k, place] * code
        return np.array([off, 1 - off])

    return made("faults", [2] * 25, parents, law)


def grades(rng: np.random.Generator) -> Network:
    """Eighteen marks of three to five ordered levels, each a sum of one to three earlier ones, cut, with noise."""
    from scipy.special import ndtr

    sizes = [int(k) for k in rng.integers(3, 6, 18)]
    parents = [sorted(rng.choice(k, min(k, int(rng.integers(1, 4))), replace=False).tolist()) for k in range(18)]
    slopes = rng.uniform(0.4, 0.9, (18, 3)) * rng.choice([-1, 1], (18, 3))

    def law(k: int, codes: Codes) -> Reals:
        scores = [2 * code / (sizes[above] - 1) - 1 for above, code in zip(parents[k], codes, strict=True)]
        middle = float(sum(slope * score for slope, score in zip(slopes[k], scores, strict=False)))
        cuts = np.linspace(-1.2, 1.2, sizes[k] - 1)
        return np.diff(ndtr((cuts - middle) / 0.8), prepend=0.0, append=1.0)

    return made("grades", sizes, parents, law)


def baskets(rng: np.random.Generator) -> Network:
    """Forty goods in five groups that have nothing in common; within one, a good is bought with all of its parents."""
    parents = [
        sorted((8 * (k // 8) + rng.choice(k % 8, min(k % 8, int(rng.integers(0, 3))), replace=False)).tolist())
        for k in range(40)
    ]
    alone, together = rng.uniform(0.05, 0.3, 40), rng.uniform(0.5, 0.9, 40)
    return made(
        "baskets", [2] * 40, parents,
        lambda k, codes: np.array([1 - (p := together[k] if codes and all(codes) else alone[k]), p]),
    )  # fmt: skip


KINDS = (diagnosis, wear, faults, grades, baskets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--epsilons", type=float, nargs="*", default=[0.1, 1.0])
    options = parser.parse_args()
    for kind, rows, epsilon in product(KINDS, options.rows, options.epsilons):
        told = []
        for seed in range(options.seeds):
            network = kind(np.random.default_rng([7_000, seed]))
            loss = dpc.ApproxDP(epsilon, 1e-6)
            found, seconds = asked(Case.of(network, seed, rows), loss, seed)
            truth = network.truth
            told.append((found.graph.skeleton_f1(truth), found.graph.f1(truth), len(found.graph.skeleton),
                         len(found.graph.skeleton & truth.skeleton), len(truth.skeleton), seconds))  # fmt: skip
        mean = np.mean(told, axis=0)
        print(
            f"{kind.__name__:<10} {len(network.levels)} columns  n {rows:>9,}  epsilon {epsilon:<4g} {found.method:<9} "
            f"skeleton F1 {mean[0]:.3f}  class F1 {mean[1]:.3f}  edges {mean[2]:.1f}, true {mean[3]:.1f} of "
            f"{mean[4]:.1f}  answered {np.mean([one[2] > 0 for one in told]):.2f}  {mean[5]:.1f} s", flush=True,
        )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
