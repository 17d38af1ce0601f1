"""Second moments of the whitened levels of columns, each row shortened: what they are, and what one row moves.

A column counts by functions of its level that are orthonormal under released shares, so that noise of one size hurts
rare levels no more than others.  Proofs: ``whitened.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpcausal.dependence.second_moments import clip_rows, grid_bits, scaled, second_moments_sensitivity, upper_of
from dpcausal.privacy.sensitivity import Sensitivity

Reals = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer]

MERGED = 1.5
"""Levels with fewer rows than so many deviations of the noise of a margin are merged."""

MOST_ENTRIES = 1000
"""Longest row."""

CHUNK = 1 << 16


def merged_levels(counts: Reals, deviation: float) -> tuple[tuple[int, ...], Reals]:
    """Return which kept level each declared one counts as, and the shares of the kept: of noisy counts.

    What is lost in the noise counts as the rarest level that is not.
    """
    least = max(MERGED * deviation, 1.0)
    kept = np.flatnonzero(counts >= least)
    if not kept.size:
        kept = np.array([int(counts.argmax())])
    places = np.full(len(counts), int(counts[kept].argmin()))
    places[kept] = np.arange(len(kept))
    sums = np.maximum(np.bincount(places, weights=np.maximum(counts, 0.0), minlength=len(kept)), least)
    return tuple(places.tolist()), sums / sums.sum()


def features(shares: Reals) -> Reals:
    """Return k − 1 functions of k levels, orthonormal and of mean 0 under these shares, shape (k, k − 1).

    f_j is constant on the levels before j and 0 after it.
    """
    k = len(shares)
    found = np.zeros((k, k - 1))
    before = 0.0
    for j in range(1, k):
        before += float(shares[j - 1])
        both = before + float(shares[j])
        found[:j, j - 1] = math.sqrt(shares[j] / (before * both))
        found[j, j - 1] = -math.sqrt(before / (shares[j] * both))
    return found


class Grid(NamedTuple):
    """The length that rows are shortened to, and s of the grid 2⁻ˢ."""

    radius: float
    bits: int


def grid(squared: float, n: int) -> Grid:
    """Return both for the square of the length and n rows."""
    radius = math.sqrt(squared)
    return Grid(radius, grid_bits(n, radius))


def row_entries(shares: Sequence[Reals]) -> int:
    """Return D, the length of a row: the levels of each column less one, and the constant."""
    return 1 + sum(len(p) - 1 for p in shares)


def whitened_moments(
    codes: Sequence[Codes], places: Sequence[Sequence[int]], shares: Sequence[Reals], squared: float, n: int
) -> Reals:
    """Return Σ v vᵀ on the grid as one row: v = (F_1(r_1), …, F_d(r_d), 1), shortened to a squared length.

    Places and shares come from an earlier release, n is public.
    """
    return scaled(whitened_sums(codes, places, shares, squared, n), row_entries(shares))


def whitened_sums(
    codes: Sequence[Codes], places: Sequence[Sequence[int]], shares: Sequence[Reals], squared: float, n: int
) -> npt.NDArray[np.int64]:
    """Return the whole numbers of ``whitened_moments``, which add over rows."""
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
    """Return the l2 sensitivity of ``whitened_moments`` of rows of so many entries: that of ``second_moments``."""
    plain = second_moments_sensitivity(*grid(squared, n), entries)
    return Sensitivity(plain.bound, plain.norm, plain.relation, "whitened-moments", symmetric=True)
