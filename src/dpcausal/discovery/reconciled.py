"""The reconciled G-test and χ²: one p-value a block, their median with a smooth bound, noise scaled to that.

Algorithm 6 of Wang, Pang & Song (2020) with a decay of e^(−kβ) in the place of the printed e^(−kε), and with the tests
and their total fixed in advance: each order has a share of (ε, δ), which its tests share equally.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from dpcausal.dependence.smooth_median import smooth_median, smooth_median_sensitivity
from dpcausal.discovery.contrasts import shares_of
from dpcausal.discovery.pc import Test, Verdict
from dpcausal.errors import LossError
from dpcausal.mechanisms.smooth_sensitivity import smooth_laplace, smoothness
from dpcausal.mechanisms.subsample import assign_blocks
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import ApproxDP, NoPrivacy
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Query

Counts = npt.NDArray[np.int64]
Kind = Literal["g", "chi2"]

PROOFS = ("smooth-median", "smooth-laplace")

INDEPENDENT = 0.25
"""A noisy median of p-values at least this counts as independence: under independence it is near ½."""

LEAST_BETA = 1e-9
"""Below it the smooth bound is near 1 and the noise beyond any use: such a test is not made."""

LARGEST = 1.001
"""The public number that the smooth bound never passes."""


def default_blocks(n: int) -> int:
    """Return the public number of blocks: odd, about one for 200 rows, 5 to 1001."""
    return min(max(n // 200, 5), 1001) // 2 * 2 + 1


def block_counts(codes: list[Counts], sizes: tuple[int, ...], generator: PublicGenerator) -> Counts:
    """Return the table of counts of each block of a public random partition, shape (blocks, *sizes)."""
    n = len(codes[0])
    blocks = min(default_blocks(n), n - 1 + n % 2)
    place = np.zeros(n, dtype=np.int64)
    for column, size in zip(codes, sizes, strict=True):
        place = place * size + column
    cells = math.prod(sizes)
    parts = assign_blocks(n, blocks, generator)
    return np.stack([np.bincount(place[rows], minlength=cells) for rows in parts]).reshape(blocks, *sizes)


def pvalues(counts: Counts, axes: list[int], kind: Kind) -> npt.NDArray[np.float64]:
    """Return the p-value of each block's test of the columns on the first two axes given the others.

    The degrees of freedom are those of the declared levels: an empty cell or stratum adds 0 to the statistic.
    """
    from scipy.special import chdtrc

    others = tuple(axis + 1 for axis in range(counts.ndim - 1) if axis not in axes)
    left = sorted(axes)
    margin = counts.sum(axis=others).transpose([0, *(left.index(axis) + 1 for axis in axes)]).astype(np.float64)
    strata = margin.reshape(*margin.shape[:3], -1)
    totals = np.maximum(strata.sum(axis=(1, 2), keepdims=True), 1.0)
    expected = strata.sum(axis=1, keepdims=True) * strata.sum(axis=2, keepdims=True) / totals
    floored = np.where(expected > 0, expected, 1.0)
    if kind == "g":
        terms = 2 * strata * np.log(np.where(strata > 0, strata, 1.0) / floored) * (strata > 0)
    else:
        terms = np.where(expected > 0, (strata - expected) ** 2 / floored, 0.0)
    freedom = max((strata.shape[1] - 1) * (strata.shape[2] - 1) * strata.shape[3], 1)
    return np.asarray(chdtrc(freedom, np.maximum(terms.sum(axis=(1, 2, 3)), 0.0)))


def share_of_test(spent: ApproxDP, order: int, max_order: int, tests: int) -> ApproxDP:
    """Return one test's share of (ε, δ)."""
    part, whole = shares_of(max_order)[order]
    return ApproxDP(spent.exact_epsilon * part / whole / tests, spent.exact_delta * part / whole / tests)


@dataclass
class Reconciled:
    """The pruner.

    Attributes
    ----------
    counts : int64 array, shape (blocks, *sizes)
        Private.
    spent : ApproxDP or NoPrivacy
        What all tests together cost.
    """

    names: tuple[str, ...]
    counts: Counts = field(repr=False)
    kind: Kind
    max_order: int
    spent: ApproxDP | NoPrivacy
    allotment: Allotment
    _each: ApproxDP | NoPrivacy | None = None
    _beta: float | None = None

    def begin(self, order: int, tests: list[Test], neighbours: dict[str, tuple[str, ...]]) -> None:
        """Share the order's part of the loss among its tests; where that pays for no noise they are not made."""
        if isinstance(self.spent, NoPrivacy):
            self._each, self._beta = self.spent, 0.1
            return
        self._each = share_of_test(self.spent, order, self.max_order, len(tests))
        try:
            self._beta = smoothness(self._each).beta
        except LossError:
            self._beta = None

    def ask(self, x: str, y: str, given: tuple[str, ...]) -> Verdict:
        """Release the noisy median of the blocks' p-values."""
        if self._beta is None or self._each is None or self._beta < LEAST_BETA:
            return Verdict(None)
        values = pvalues(self.counts, [self.names.index(name) for name in (x, y, *given)], self.kind)
        query = Query(smooth_median(values, self._beta), smooth_median_sensitivity(self._beta), "median of blocks")
        noisy = smooth_laplace(query, self.allotment, self._each, largest=LARGEST)
        return Verdict(noisy >= INDEPENDENT)
