"""Wide tables of ten kinds, written down before any result of them was seen, by nobody who had tuned a search.

Each draw of a kind has its own edges and its own distributions.
"""

from collections.abc import Callable
from itertools import product

import numpy as np
import numpy.typing as npt

from benchmarks.data.networks import Network

Reals = npt.NDArray[np.float64]
Codes = tuple[int, ...]


def made(name: str, sizes: list[int], parents: list[list[int]], chances: Callable[[int, Codes], Reals]) -> Network:
    """The network of columns with these levels; ``chances``: of one column given the codes of its parents."""
    names = [f"v{place:02d}" for place in range(len(sizes))]
    tables = {}
    for place, above in enumerate(parents):
        table = np.zeros([sizes[k] for k in above] + [sizes[place]])
        for codes in product(*(range(sizes[k]) for k in above)):
            weights = np.maximum(chances(place, codes), 0.0)
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

    def chances(k: int, codes: Codes) -> Reals:
        if not codes:
            return start
        shares = np.full(3, 0.05)
        shares[codes[0]] += stays[k]
        shares[min(codes[0] + 1, 2)] += 0.15
        return shares + 0.05 * start

    return made("wear", [3] * 30, [[], *[[k - 1] for k in range(1, 30)]], chances)


def faults(rng: np.random.Generator) -> Network:
    """Ten causes in 0.03 to 0.2 of the rows, fifteen alarms that each of two to four causes sets off, or none."""
    parents: list[list[int]] = [[] for _ in range(10)] + [
        sorted(rng.choice(10, int(rng.integers(2, 5)), replace=False).tolist()) for _ in range(15)
    ]
    base, strength = rng.uniform(0.03, 0.2, 25), rng.uniform(0.3, 0.9, (25, 4))

    def chances(k: int, codes: Codes) -> Reals:
        off = 1 - (base[k] if k < 10 else base[k] / 4)
        for place, code in enumerate(codes):
            off *= 1 - strength[k, place] * code
        return np.array([off, 1 - off])

    return made("faults", [2] * 25, parents, chances)


def grades(rng: np.random.Generator) -> Network:
    """Eighteen marks of three to five ordered levels, each a sum of one to three earlier ones, cut, with noise."""
    from scipy.special import ndtr

    sizes = [int(k) for k in rng.integers(3, 6, 18)]
    parents = [sorted(rng.choice(k, min(k, int(rng.integers(1, 4))), replace=False).tolist()) for k in range(18)]
    slopes = rng.uniform(0.4, 0.9, (18, 3)) * rng.choice([-1, 1], (18, 3))

    def chances(k: int, codes: Codes) -> Reals:
        scores = [2 * code / (sizes[above] - 1) - 1 for above, code in zip(parents[k], codes, strict=True)]
        middle = float(sum(slope * score for slope, score in zip(slopes[k], scores, strict=False)))
        cuts = np.linspace(-1.2, 1.2, sizes[k] - 1)
        return np.diff(ndtr((cuts - middle) / 0.8), prepend=0.0, append=1.0)

    return made("grades", sizes, parents, chances)


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


def carrier(rng: np.random.Generator) -> Network:
    """One column of four levels, two in 0.01 to 0.04 of the rows, above eighteen; six more below some of these."""
    rare = rng.uniform(0.01, 0.04, 2)
    sizes = [4] + [int(k) for k in rng.integers(2, 5, 18)] + [2] * 6
    parents: list[list[int]] = [[], *[[0]] * 18, *[[] for _ in range(6)]]
    for k in range(19, 25):
        parents[k] = sorted(rng.choice(np.arange(1, 19), 2, replace=False).tolist())
    tables = [rng.dirichlet(np.ones(size), size=20) for size in sizes]
    tables[0][0] = [0.55 * (1 - rare.sum()), 0.45 * (1 - rare.sum()), *rare]
    return made("carrier", sizes, parents, lambda k, codes: tables[k][sum(4**i * c for i, c in enumerate(codes))])


def relay(rng: np.random.Generator) -> Network:
    """Thirty columns of two or three levels in a chain, each a copy of the last but in 0.02 to 0.08 of the rows."""
    size, slips = int(rng.integers(2, 4)), rng.uniform(0.02, 0.08, 30)

    def chances(k: int, codes: Codes) -> Reals:
        shares = np.full(size, slips[k] / size)
        shares[codes[0] if codes else 0] += (1 - slips[k]) if codes else 0.2
        return shares

    return made("relay", [size] * 30, [[], *[[k - 1] for k in range(1, 30)]], chances)


def gates(rng: np.random.Generator) -> Network:
    """Eight inputs of two levels; twelve gates of two earlier columns, each xor, and, or or, wrong in 0.05 to 0.15."""
    parents: list[list[int]] = [[] for _ in range(8)]
    for k in range(8, 20):
        parents.append(sorted(rng.choice(k, 2, replace=False).tolist()))
    base, wrong, kinds = rng.uniform(0.3, 0.7, 20), rng.uniform(0.05, 0.15, 20), rng.integers(0, 3, 20)

    def chances(k: int, codes: Codes) -> Reals:
        if not codes:
            return np.array([1 - base[k], base[k]])
        on = (codes[0] != codes[1], bool(codes[0] and codes[1]), bool(codes[0] or codes[1]))[kinds[k]]
        high = 1 - wrong[k] if on else wrong[k]
        return np.array([1 - high, high])

    return made("gates", [2] * 20, parents, chances)


def lattice(rng: np.random.Generator) -> Network:
    """Four stations at six times, three ordered levels: each follows itself and its neighbour one time before."""
    from scipy.special import ndtr

    places = [(time, station) for time in range(6) for station in range(4)]
    parents = [
        [] if not time else sorted({4 * (time - 1) + station, 4 * (time - 1) + max(station - 1, 0)})
        for time, station in places
    ]
    own, other = rng.uniform(0.6, 1.1, 24), rng.uniform(0.3, 0.7, 24)

    def chances(k: int, codes: Codes) -> Reals:
        slopes = (own[k],) if len(codes) == 1 else (other[k], own[k])
        middle = float(sum(slope * (code - 1) for slope, code in zip(slopes, codes, strict=False)))
        return np.diff(ndtr((np.array([-0.5, 0.5]) - middle) / 0.8), prepend=0.0, append=1.0)

    return made("lattice", [3] * 24, parents, chances)


def visits(rng: np.random.Generator) -> Network:
    """Sixteen counts cut in 0, 1, 2 to 4, more: 0 in 0.5 to 0.8 of the rows; the rate grows with one or two others."""
    from scipy.stats import poisson

    parents = [sorted(rng.choice(k, min(k, int(rng.integers(1, 3))), replace=False).tolist()) for k in range(16)]
    none, rate, growth = rng.uniform(0.5, 0.8, 16), rng.uniform(0.8, 2.0, 16), rng.uniform(0.25, 0.6, (16, 2))

    def chances(k: int, codes: Codes) -> Reals:
        more = float(sum(slope * code for slope, code in zip(growth[k], codes, strict=False)))
        counts = np.diff(poisson.cdf([0, 1, 4], rate[k] * np.exp(more)), prepend=0.0, append=1.0)
        absent = none[k] * np.exp(-more)
        return np.asarray((1 - absent) * counts + absent * np.eye(4)[0])

    return made("visits", [4] * 16, parents, chances)


KINDS = (diagnosis, wear, faults, grades, baskets, carrier, relay, gates, lattice, visits)
