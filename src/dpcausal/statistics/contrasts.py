"""Contrasts of discrete columns: what is new in a joint table of some columns beyond the tables of fewer.

A column with k levels has k − 1 orthonormal contrasts, orthogonal to the constant; the contrast of a set of columns
is their tensor product summed over the records.  For two levels these are parities, scaled by 2^(−|S|/2).  Proofs:
``contrasts.md``.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import product

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity

MOST_CHANGES = 20_000
"""Ways to change columns, counted by their numbers of levels, beyond which the complete bound is not computed."""

ROUNDING = 2.0**-42
"""Largest relative error of a computed contrast, in units of n: for tables of up to 2⁹ cells."""


@lru_cache(maxsize=64)
def contrast_basis(levels: int) -> Reals:
    """Return k − 1 orthonormal columns that sum to 0 (Helmert), shape (k, k − 1)."""
    basis = np.zeros((levels, max(levels - 1, 0)))
    for column in range(levels - 1):
        basis[: column + 1, column] = 1
        basis[column + 1, column] = -(column + 1)
        basis[:, column] /= math.sqrt((column + 1) * (column + 2))
    basis.setflags(write=False)
    return basis


def contrast_of(counts: Integers) -> Reals:
    """Return (⊗_i Q_iᵀ) counts, Q_i the basis of the table's i-th axis, as one row of Π (k_i − 1) numbers."""
    values: Reals = counts.astype(np.float64)
    for axis, size in enumerate(counts.shape):
        values = np.moveaxis(np.tensordot(values, contrast_basis(size), axes=([axis], [0])), -1, axis)
    return values.ravel()


def contrast_square(sizes: Sequence[int]) -> float:
    """Return the largest squared l2 change of one set's contrast: 2 Π(1 − 1/k_i)(1 + 1/(min k_i − 1))."""
    if min(sizes) < 2:
        return 0.0
    return 2 * math.prod(1 - 1 / k for k in sizes) * (1 + 1 / (min(sizes) - 1))


@lru_cache(maxsize=256)
def _complete_square(sizes: tuple[int, ...], order: int) -> float:
    groups = sorted(Counter(sizes).items())
    if math.prod(count + 1 for _, count in groups) > MOST_CHANGES:
        return math.inf

    def symmetric(changed: tuple[int, ...]) -> float:
        # Σ over sets of 1 to ``order`` columns of the product of one number a column.
        sums = [1.0] + [0.0] * order
        for (levels, count), h in zip(groups, changed, strict=True):
            for value, times in ((-1 / levels, h), (1 - 1 / levels, count - h)):
                for _ in range(times):
                    for size in range(order, 0, -1):
                        sums[size] += value * sums[size - 1]
        return sum(sums[1:])

    nothing = symmetric((0,) * len(groups))
    return max(2 * (nothing - symmetric(h)) for h in product(*(range(count + 1) for _, count in groups)))


def complete_square(sizes: Iterable[int], order: int) -> float:
    """Return the largest squared l2 change of all contrasts of 1 to ``order`` columns together. Δ₂² = max_H Σ_{1 ≤ |S|
    ≤ order} 2 [Π_{i∈S} (1 − 1/k_i) − Π_{i∈S} ((1 − H_i) − 1/k_i)], H_i = 1 for the columns that the replaced record
    changes.  Infinite where there are too many different numbers of levels to go through: a batch then has the sum of
    its sets' bounds."""
    return _complete_square(tuple(sorted(size for size in sizes if size > 1)), order)


def contrasts_sensitivity(
    sizes: Sequence[int], batch: Sequence[Sequence[int]], n: int, counted: bool = False
) -> Sensitivity:
    """Return the l2 sensitivity of the contrasts of a batch of different column sets, released together. The smaller of
    the sum over the batch and of the complete set; with the number of kept records beside them (``counted``) at least 1
    + Σ Π (1 − 1/k_i)."""
    order = max(len(members) for members in batch)
    listed = sum(contrast_square([sizes[i] for i in members]) for members in batch)
    square = min(listed, complete_square(sizes, order))
    if counted:
        square = max(square, 1 + sum(math.prod(1 - 1 / sizes[i] for i in members) for members in batch))
    entries = sum(math.prod(sizes[i] - 1 for i in members) for members in batch)
    # 1e-9: the sums above in floats; then the error of the contrasts on both sides.
    bound = math.sqrt(max(square, 1e-6)) * (1 + 1e-9) + 2 * math.sqrt(entries) * n * ROUNDING
    return Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "contrasts", symmetric=True)
