"""Reconciled independence tests: the G-test or χ² in blocks, the median of the p-values with a smooth bound.

Wang, Pang & Song (2020), appendix F, Algorithm 6.  Errata: Definition 10, whose bound is not smooth enough, and a
total that is counted afterwards (``docs/appendix/errata-discovery.md``).
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from dpcausal.core import validate as public
from dpcausal.data.counts import codes_of
from dpcausal.data.table import Table
from dpcausal.discovery.question import DiscoveryQuestion, check_cells
from dpcausal.discovery.search.pc import Skeleton, Verdict
from dpcausal.mechanisms.blocks import assign_blocks
from dpcausal.papers.discovery.pc_system import DELTA, Counts, PcSystem, Replica
from dpcausal.privacy.noise import PublicGenerator

INDEPENDENT = 0.25
"""A noisy median of p-values at least this counts as independence: under independence it is near ½."""

ROUNDING = 1e-12  # taken off β and added to S: outweighs the rounding of both
LEAST = 1e-250  # a smaller S counts as this


@dataclass(frozen=True, kw_only=True)
class ReconciledTests(PcSystem):
    """The median of p-values of blocks.

    Parameters
    ----------
    test : str
        ``"g"`` or ``"chi2"``.
    max_order
        As in all systems here.
    """

    name: ClassVar[str] = "reconciled tests"
    about: ClassVar[str] = "medians of the p-values of blocks"
    by_place: ClassVar[bool] = True

    test: Literal["g", "chi2"] = "g"

    def filled(self, columns: int) -> Self:
        public.check_choice("test", self.test, ("g", "chi2"))
        return super().filled(columns)

    def check(self, question: DiscoveryQuestion) -> None:
        check_cells(question, default_blocks(question.n))

    def counts(self, private: Table, question: DiscoveryQuestion, rng: PublicGenerator) -> Counts:
        return block_counts(list(codes_of(private, question.names).values.values()), question.sizes, rng)

    def as_published(self, replica: Replica) -> tuple[Skeleton, str]:
        """Run Algorithm 6 with the printed decay e^(−kε) and noise S/(ε/2); report ε times the tests made."""

        def ask(*test: Any) -> Verdict:
            replica.tests_made += 1
            places = [replica.names.index(name) for name in (*test[:2], *test[2])]
            middle, bound = smooth_median(pvalues(replica.counts, places, self.test), replica.epsilon)
            return Verdict(middle + bound / (replica.epsilon / 2) * replica.laplace(1.0) >= INDEPENDENT)

        skeleton = replica.skeleton(ask)
        return skeleton, f"({replica.epsilon * replica.tests_made:.4g}, {DELTA:g})-DP after {replica.tests_made} tests"


def smooth_median(values: npt.NDArray[np.float64], beta: float) -> tuple[float, float]:
    """Return the median of an odd number M of values in [0, 1] and S = max_{k ≥ 0} e^(−kβ) A_k.

    A_k = max_{0 ≤ t ≤ k+1} (x_(m+t) − x_(m+t−k−1)), m = (M + 1)/2, values beyond the ends are 0 and 1.
    *Source*: Definition 10, with β = ε; Nissim, Raskhodnikova & Smith (2007), Proposition 3.4.
    """
    M = len(values)
    padded = np.concatenate([np.zeros(M + 1), np.sort(np.clip(values, 0.0, 1.0)), np.ones(M + 1)])
    centre = M + 1 + (M - 1) // 2
    best, weight = LEAST, 1.0
    for k in range(M + 1):
        if weight <= best:
            break
        t = np.arange(k + 2)
        best = max(best, weight * float((padded[centre + t] - padded[centre + t - k - 1]).max()))
        weight *= math.exp(-(beta - ROUNDING))
    return float(padded[centre]), best * (1 + ROUNDING)


def default_blocks(n: int) -> int:
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


def pvalues(counts: Counts, axes: list[int], kind: str) -> npt.NDArray[np.float64]:
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
