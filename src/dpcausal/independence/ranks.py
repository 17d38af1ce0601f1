"""Standard scores of a block: where a statistic stands among those of exchangeable copies, as a normal number.

Under the null the rank is uniform, ties broken by a coin, so the score is standard normal: exactly so for every number
of copies.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from dpcausal.privacy.noise import PublicGenerator

Reals = npt.NDArray[np.float64]

BATCH = 250_000
"""Numbers permuted at a time."""


RESOLUTION = 1e-10
"""Statistics that differ by less than this share of the largest they can be are equal: sums in another order are."""


def score_of_rank(observed: float, copies: Reals, largest: float, generator: PublicGenerator) -> float:
    """Return Φ⁻¹(1 − u), u = (#{copies above} + U (#{copies equal} + 1)) / (number of copies + 1), U uniform.

    Ties are found on a grid of 1e-10 of ``largest``, which none is above, whichever of them was observed: rounding may
    not break them, as it treats the rows as they stand and their copies unlike.

    >>> from dpcausal.privacy.noise import generator_from_seed
    >>> score_of_rank(5.0, np.arange(4.0), 5.0, generator_from_seed(1)) > 0.8
    True
    """
    places = np.rint(np.append(copies, observed) / (largest * RESOLUTION)) if largest > 0 else np.zeros(copies.size + 1)
    if not np.isfinite(places).all():
        return 0.0
    above, equal = int(np.sum(places[:-1] > places[-1])), int(np.sum(places[:-1] == places[-1]))
    u = (above + (1 - generator.random()) * (equal + 1)) / (copies.size + 1)
    return -NormalDist().inv_cdf(min(max(u, 2.0**-53), 1 - 2.0**-53))


def studentised(left: Reals, right: Reals) -> Reals:
    """Return Σ_i l_i r_i / √Σ_i (l_i r_i)² for each column of ``left`` with each of ``right``; 0 where 0/0."""
    turned = np.swapaxes(left, -1, -2)
    sums, squares = turned @ right, turned**2 @ right**2
    return np.where(squares > 0, sums / np.sqrt(np.maximum(squares, 1e-300)), 0.0)


def permutation_score(
    left: Reals, right: Reals, permutations: int, spread: float, generator: PublicGenerator
) -> float:
    """Return the score of the studentised covariance of residuals among those of permuted rows of ``left``.

    With one column on either side the covariance counts with its sign; with more, the largest absolute one counts.
    ``spread`` is the covariance's variance over that which permutations show, at least 1.
    """
    one = left.shape[1] == right.shape[1] == 1

    def summary(rows: Reals) -> Reals:
        each = studentised(rows, right)
        return each[..., 0, 0] if one else np.abs(each).max(axis=(-1, -2))

    observed = float(summary(left)) / math.sqrt(spread)
    copies = np.empty(permutations)
    at_once = max(1, BATCH // left.size)
    places = np.arange(left.shape[0])
    for start in range(0, permutations, at_once):
        size = min(at_once, permutations - start)
        order = generator.permuted(np.broadcast_to(places, (size, places.size)), axis=1)
        copies[start : start + size] = summary(left[order])
    return score_of_rank(observed, copies, math.sqrt(left.shape[0]), generator)
