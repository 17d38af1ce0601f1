"""Reconciled independence tests: the G-test or χ² in blocks, the median of the p-values with a smooth bound.

Wang, Pang & Song (2020), appendix F, Algorithm 6.  Erratum: Definition 10, whose bound is not smooth enough, and a
total that is counted afterwards (``docs/errata_discovery.md``).  Corrected, the decay is e^(−kβ) in the place of the
printed e^(−kε), and tests and total are fixed beforehand: each order has a share of (ε, δ), which its tests share
equally.  Where blocks that all agree would still be misjudged by the noise, it is refused: the least noise is public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from dpcausal.asking import public
from dpcausal.data.table import Table
from dpcausal.data.tabulate import codes_of
from dpcausal.dependence.smooth_median import smooth_median, smooth_median_sensitivity
from dpcausal.discovery.pc import Skeleton, Terms, Test, Verdict, find_skeleton
from dpcausal.discovery.question import Graph, check_cells
from dpcausal.errors import InfeasibleError, LossError
from dpcausal.mechanisms.smooth_sensitivity import smooth_laplace, smoothness
from dpcausal.mechanisms.subsample import assign_blocks
from dpcausal.papers.pc_system import DELTA, Counts, PcSystem, Replica
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import ApproxDP, Loss, NoPrivacy
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Query

Kind = Literal["g", "chi2"]

INDEPENDENT = 0.25
"""A noisy median of p-values at least this counts as independence: under independence it is near ½."""

LEAST_BETA = 1e-9
"""Below it the smooth bound is near 1 and the noise beyond any use: such a test is not made."""

EXACT_BETA = 0.1

LARGEST = 1.001
"""The public number that the smooth bound never passes."""


@dataclass(frozen=True, kw_only=True)
class ReconciledTests(PcSystem):
    """The median of p-values of blocks.

    Parameters
    ----------
    test : str
        ``"g"`` or ``"chi2"``.
    misses : float
        How often, 0 to .5, the noise may hide a dependence that all blocks agree on: a corrected call where public
        numbers say that it would more often is refused.
    constants, max_order
        As in all systems here.
    """

    name: ClassVar[str] = "reconciled tests"
    about: ClassVar[str] = "medians of the p-values of blocks"
    by_place: ClassVar[bool] = True

    test: Kind = "g"
    misses: float = 0.05

    def filled(self, columns: int) -> Self:
        public.number("misses", self.misses, 0.0, 0.5)
        public.one_of("test", self.test, ("g", "chi2"))
        return super().filled(columns)

    def pay_proved(self, loss: Loss) -> tuple[ApproxDP | NoPrivacy, str]:
        if loss.exact or (isinstance(loss, ApproxDP) and loss.exact_delta > 0):
            return loss, ""
        raise LossError(f"{self.name} are paid for in ApproxDP with delta above 0")

    def check(self, question: Graph) -> None:
        check_cells(question, default_blocks(question.n))

    def claims(self, question: Graph, spent: ApproxDP) -> tuple[str, ...]:
        return "smooth-median", "smooth-laplace"

    def draw_noise(self, question: Graph, spent: ApproxDP) -> None:
        first = spent.part(self.shares[0] / math.comb(len(question.names), 2))
        if smoothness(first).beta < LEAST_BETA:
            raise LossError(f"{spent} is too little for the medians of blocks: each test would have {first}")
        blocks = default_blocks(question.n)
        if missed(first, blocks) > self.misses:
            raise InfeasibleError(
                f"medians of {blocks} blocks at {first} a test tell too little: more often than misses={self.misses:g} "
                "noise hides even what all blocks agree on; use another method, or fewer columns"
            )

    def counts(self, private: Table, question: Graph, coins: PublicGenerator) -> Counts:
        return block_counts(list(codes_of(private, question.names).values.values()), question.sizes, coins)

    def proved(
        self, counts: Counts, question: Graph, terms: Terms, spent: ApproxDP | NoPrivacy, allotment: Allotment
    ) -> Skeleton:
        each: ApproxDP | NoPrivacy = spent
        beta: float | None = EXACT_BETA

        def begin(order: int, tests: list[Test], neighbours: dict[str, tuple[str, ...]]) -> None:
            nonlocal each, beta
            each = spent.part(self.shares[order] / len(tests))
            beta = beta_of(each)

        def ask(x: str, y: str, given: tuple[str, ...]) -> Verdict:
            if beta is None:
                return Verdict(None)
            values = pvalues(counts, [question.names.index(name) for name in (x, y, *given)], self.test)
            query = Query(smooth_median(values, beta), smooth_median_sensitivity(beta), "median of blocks")
            return Verdict(smooth_laplace(query, allotment, each, largest=LARGEST) >= INDEPENDENT)

        return find_skeleton(question.names, ask, terms, begin)

    def as_published(self, replica: Replica) -> tuple[Skeleton, str]:
        """Run Algorithm 6 with the printed decay e^(−kε) and noise S/(ε/2); report ε times the tests made."""

        def ask(*test: Any) -> Verdict:
            replica.asked += 1
            places = [replica.names.index(name) for name in (*test[:2], *test[2])]
            middle, bound = smooth_median(pvalues(replica.counts, places, self.test), replica.epsilon)
            return Verdict(middle + bound / (replica.epsilon / 2) * replica.laplace(1.0) >= INDEPENDENT)

        found = replica.skeleton(ask)
        return found, f"({replica.epsilon * replica.asked:.4g}, {DELTA:g})-DP after {replica.asked} tests"


def missed(loss: ApproxDP, blocks: int) -> float:
    """Return how often a test calls independence where all p-values are 0: P(S/α · z ≥ ¼), z ~ Lap(1).

    There S is least, e^(−β(M − 1)/2): so many values must change before the median can.
    """
    alpha, beta = smoothness(loss)
    scale = math.exp(-beta * (blocks - 1) / 2) / alpha
    return math.exp(-INDEPENDENT / scale) / 2 if scale > 1e-4 else 0.0


def beta_of(loss: ApproxDP | NoPrivacy) -> float | None:
    """Return β of one test; ``None`` where the loss pays for no noise of use."""
    if loss.exact:
        return EXACT_BETA
    try:
        beta = smoothness(loss).beta
    except LossError:
        return None
    return beta if beta >= LEAST_BETA else None


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
