"""Second moments of the whitened levels of columns, each row shortened: what they are, and what one row moves.

A column counts by functions of its level that are orthonormal under released shares, so that noise of one size hurts
rare levels no more than others.  Proofs: ``whitened.md``.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpcausal.arrays import Reals
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity
from dpcausal.statistics.moments import clip_rows, grid_bits, second_moments_sensitivity, upper_of

Codes = npt.NDArray[np.integer]

MERGED = 1.5
"""Levels with fewer rows than so many deviations of the noise of a margin are merged."""

MOST_ENTRIES = 1000
"""Longest row."""

CHUNK = 1 << 16


def merged_levels(counts: Reals, deviation: float) -> tuple[tuple[int, ...], Reals]:
    """Return which level each declared one counts as, and the shares: one lost in noise counts as the rarest other."""
    least = max(MERGED * deviation, 1.0)
    frequent = np.flatnonzero(counts >= least)
    if not frequent.size:
        frequent = np.array([int(counts.argmax())])
    places = np.full(len(counts), int(counts[frequent].argmin()))
    places[frequent] = np.arange(len(frequent))
    sums = np.maximum(np.bincount(places, weights=np.maximum(counts, 0.0), minlength=len(frequent)), least)
    return tuple(places.tolist()), sums / sums.sum()


def features(shares: Reals) -> Reals:
    """Return k − 1 functions of k levels, orthonormal and of mean 0 under these shares, shape (k, k − 1). f_j is
    constant on the levels before j and 0 after it."""
    k = len(shares)
    functions = np.zeros((k, k - 1))
    before = 0.0
    for j in range(1, k):
        before += float(shares[j - 1])
        both = before + float(shares[j])
        functions[:j, j - 1] = math.sqrt(shares[j] / (before * both))
        functions[j, j - 1] = -math.sqrt(before / (shares[j] * both))
    return functions


class Grid(NamedTuple):
    radius: float
    bits: int


def grid(squared: float, n: int) -> Grid:
    radius = math.sqrt(squared)
    return Grid(radius, grid_bits(n, radius))


def row_entries(shares: Sequence[Reals]) -> int:
    return 1 + sum(len(p) - 1 for p in shares)


def whitened_sums(
    codes: Sequence[Codes], places: Sequence[Sequence[int]], shares: Sequence[Reals], squared: float, n: int
) -> npt.NDArray[np.int64]:
    """Return the diagonal of Σ v vᵀ on the grid and what is above it, v = (F_1(r_1), …, F_d(r_d), 1) shortened to a
    squared length; ``scaled``, they are the moments."""
    tables = [features(p)[np.asarray(place)] for p, place in zip(shares, places, strict=True)]
    radius, bits = grid(squared, n)
    entries = row_entries(shares)
    total = np.zeros((entries, entries))  # of whole numbers, so that no grouping of the rows rounds otherwise
    for start in range(0, max(len(codes[0]), 1), CHUNK):
        part = [table[column[start : start + CHUNK]] for table, column in zip(tables, codes, strict=True)]
        rows = clip_rows(np.hstack([*part, np.ones((len(part[0]), 1))]), radius, bits)
        total += rows.T @ rows
    return upper_of(total).astype(np.int64)


def whitened_moments_sensitivity(entries: int, squared: float, n: int) -> Sensitivity:
    plain = second_moments_sensitivity(*grid(squared, n), entries)
    return Sensitivity(plain.bound, plain.norm, plain.relation, "whitened-moments", symmetric=True)


Triple = tuple[int, int, int]

MOST_THIRDS = 10_000
"""Most entries."""

CONSTANT_SHARE = 0.05
"""The square of the constant beside a row's products, for the sum of the weights, as a part of their number."""

MOST_BITS = 24
"""Finest grid of weights, 2⁻²⁴."""


def third_entries(shares: Sequence[Reals], triples: Sequence[Triple]) -> int:
    return sum(math.prod(len(shares[place]) - 1 for place in triple) for triple in triples)


def constant(entries: int) -> float:
    return math.sqrt(CONSTANT_SHARE * max(entries, 1))


def weight_bits(n: int) -> int:
    return min(52 - math.ceil(math.log2(max(n, 1))), MOST_BITS)


def weight_sums(
    codes: Sequence[Codes], places: Sequence[Sequence[int]], shares: Sequence[Reals], squared: float,
    triples: Sequence[Triple], length: float, n: int,
) -> npt.NDArray[np.int64]:  # fmt: skip
    """Return the sums of the rows' weights on the grid over each cell of each triple, and over all rows. A weight is
    w², as in the second moments, or less: weight times products are no longer than ``length``."""
    merged = [np.asarray(place)[column] for place, column in zip(places, codes, strict=True)]
    squares = [np.square(features(p)).sum(axis=1)[column] for p, column in zip(shares, merged, strict=True)]
    own, products = np.ones(len(merged[0])), np.full(len(merged[0]), constant(third_entries(shares, triples)) ** 2)
    for one in squares:
        own += one
    for a, b, c in triples:
        products += squares[a] * squares[b] * squares[c]
    weight = np.minimum(np.minimum(1.0, squared / own), length * (1 - 2.0**-30) / np.sqrt(products))
    weight = np.trunc(weight * 2.0 ** weight_bits(n))
    sums = [np.array([weight.sum()])]
    for a, b, c in triples:
        cell = (merged[a] * len(shares[b]) + merged[b]) * len(shares[c]) + merged[c]
        size = len(shares[a]) * len(shares[b]) * len(shares[c])
        sums.append(np.bincount(cell, weights=weight, minlength=size))
    return np.concatenate([*sums[1:], sums[0]]).astype(np.int64)


def third_moments(sums: npt.NDArray[np.int64], shares: Sequence[Reals], triples: Sequence[Triple], n: int) -> Reals:
    """Return Σ g F_a ⊗ F_b ⊗ F_c of each triple, and Σ g times the constant, as one row, of ``weight_sums``."""
    tables, start, moments = [features(p) for p in shares], 0, []
    weights = sums * 2.0 ** -weight_bits(n)
    for triple in triples:
        shape = [len(shares[place]) for place in triple]
        values = weights[start : start + math.prod(shape)].reshape(shape)
        for place in triple:  # each contraction takes the first axis and puts its own last
            values = np.tensordot(values, tables[place], axes=([0], [0]))
        moments.append(values.ravel())
        start += math.prod(shape)
    return np.concatenate([*moments, constant(third_entries(shares, triples)) * weights[-1:]])


def third_moments_sensitivity(shares: Sequence[Reals], triples: Sequence[Triple], length: float, n: int) -> Sensitivity:
    entries, levels = third_entries(shares, triples) + 1, max(len(p) for p in shares)
    rounding = math.sqrt(entries) * n * length * (3 * levels + 8) * 2.0**-52
    bound = 2 * length * (1 + 2.0**-30) + 2 * rounding
    return Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "third-moments", symmetric=True)
