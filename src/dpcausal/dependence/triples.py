"""Third moments of the whitened levels of chosen columns, each row shortened: what they are, and what one row moves.

Rows weigh as in the second moments of the same columns, so that both tell of one law.  Proofs: ``triples.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpcausal.dependence.whitened import Codes, Reals, features
from dpcausal.privacy.neighbours import Relation
from dpcausal.privacy.sensitivity import Norm, Sensitivity

Triple = tuple[int, int, int]

MOST_THIRDS = 10_000
"""Most entries."""

BESIDE = 0.05
"""The square of the constant beside a row's products, for the sum of the weights, as a part of their number."""

MOST_BITS = 24
"""Finest grid of weights, 2⁻²⁴."""


def third_entries(shares: Sequence[Reals], triples: Sequence[Triple]) -> int:
    """Return how many products a row has, without the constant."""
    return sum(math.prod(len(shares[place]) - 1 for place in triple) for triple in triples)


def constant(entries: int) -> float:
    """Return the constant beside so many products."""
    return math.sqrt(BESIDE * max(entries, 1))


def weight_bits(n: int) -> int:
    """Return s such that the sum of n weights on the grid 2⁻ˢ is exact in float64."""
    return min(52 - math.ceil(math.log2(max(n, 1))), MOST_BITS)


def weight_sums(
    codes: Sequence[Codes], places: Sequence[Sequence[int]], shares: Sequence[Reals], squared: float,
    triples: Sequence[Triple], length: float, n: int,
) -> npt.NDArray[np.int64]:  # fmt: skip
    """Return the sums of the rows' weights on the grid over each cell of each triple, and over all rows.

    A row's weight is w², as in the second moments shortened to the root of ``squared``, or less: so that weight times
    products are no longer than ``length``.
    """
    kept = [np.asarray(place)[column] for place, column in zip(places, codes, strict=True)]
    squares = [np.square(features(p)).sum(axis=1)[column] for p, column in zip(shares, kept, strict=True)]
    own, products = np.ones(len(kept[0])), np.full(len(kept[0]), constant(third_entries(shares, triples)) ** 2)
    for one in squares:
        own += one
    for a, b, c in triples:
        products += squares[a] * squares[b] * squares[c]
    weight = np.minimum(np.minimum(1.0, squared / own), length * (1 - 2.0**-30) / np.sqrt(products))
    weight = np.trunc(weight * 2.0 ** weight_bits(n))
    sums = [np.array([weight.sum()])]
    for a, b, c in triples:
        cell = (kept[a] * len(shares[b]) + kept[b]) * len(shares[c]) + kept[c]
        size = len(shares[a]) * len(shares[b]) * len(shares[c])
        sums.append(np.bincount(cell, weights=weight, minlength=size))
    return np.concatenate([*sums[1:], sums[0]]).astype(np.int64)


def third_moments(
    sums: npt.NDArray[np.int64], shares: Sequence[Reals], triples: Sequence[Triple], n: int
) -> Reals:
    """Return Σ g F_a ⊗ F_b ⊗ F_c of each triple, and Σ g times the constant, as one row, of ``weight_sums``."""
    tables, start, found = [features(p) for p in shares], 0, []
    weights = sums * 2.0 ** -weight_bits(n)
    for triple in triples:
        shape = [len(shares[place]) for place in triple]
        values = weights[start : start + math.prod(shape)].reshape(shape)
        for place in triple:  # each contraction takes the first axis and puts its own last
            values = np.tensordot(values, tables[place], axes=([0], [0]))
        found.append(values.ravel())
        start += math.prod(shape)
    return np.concatenate([*found, constant(third_entries(shares, triples)) * weights[-1:]])


def third_moments_sensitivity(
    shares: Sequence[Reals], triples: Sequence[Triple], length: float, n: int
) -> Sensitivity:
    """Return the l2 sensitivity of ``third_moments``: 2C, plus rounding."""
    entries, levels = third_entries(shares, triples) + 1, max(len(p) for p in shares)
    rounding = math.sqrt(entries) * n * length * (3 * levels + 8) * 2.0**-52
    bound = 2 * length * (1 + 2.0**-30) + 2 * rounding
    return Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "third-moments", symmetric=True)
