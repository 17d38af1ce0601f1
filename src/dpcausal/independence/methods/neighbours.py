"""Neighbours in the order of one given number: sign products of their differences in x and y, without a regression."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.core import validate as public
from dpcausal.core.method import Run
from dpcausal.data.schema import Bounded
from dpcausal.errors import ParameterError
from dpcausal.independence import null_distributions as null
from dpcausal.independence.question import SIGNED, IndependenceQuestion, IndependenceTest, Released, Sample
from dpcausal.mechanisms.additive import geometric, laplace_scale
from dpcausal.mechanisms.blocks import block_order
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Query
from dpcausal.statistics import neighbour_pairs as pairs

SIGNED_SHARE = Fraction(17, 20)
"""Share of ε for the signed sum where x or y has two levels; the rest counts the untied pairs."""

LEAST_ROWS = 60
MOST_CELLS = 10**15
FAR_NEIGHBOURS = (
    "where means of x and y change much or jump often between neighbours in z, as with a z of Cauchy's tails or a "
    "sawtooth, a true null can look dependent; fewer neighbours help"
)

DROWNING = 2.0
"""Deviations of the statistic in one of the noise from which on nothing that failed without noise fails any more."""

ROWS_PER_NEIGHBOUR, MOST_BY_RULE = 250, 16
"""k is a 250th of a cell's rows, at most the fourth root of two thirds of them, and 16: means of x and y that differ
inside windows move the sum by k² and more; its deviation grows like k√n, and beside its mean hardly falls with k."""


def default_neighbours(rows: int, cells: int) -> int:
    """Return the public number of neighbours on either side of the m = n/cells rows of a cell. k = max(2, ⌊min(m/250,
    (2m/3)^{1/4}, 16)⌋)"""
    root = math.isqrt(math.isqrt(2 * rows // (3 * cells)))
    return max(2, min(rows // (ROWS_PER_NEIGHBOUR * cells), root, MOST_BY_RULE))


LEAST_ENDS = 2


def default_ends(rows: int, k: int, scale: float) -> int:
    """Return over how many ranks of an end a row has one neighbour more, where the noise of the sum has this scale.

    8/⌊1.5 + h⌋, at least 2: h is the variance of the noise over that of the sum.  What tails of z add, where close
    ranks may be far apart, counts beside the deviation of both.

    >>> default_ends(2_000, 6, 36.0), default_ends(2_000, 6, 144.0), default_ends(4_300, 7, 420.0)
    (8, 4, 2)
    """
    hidden = 2 * scale**2 / max(1.0, pairs.null_variance(rows, k))
    return max(LEAST_ENDS, pairs.ENDS // math.floor(1.5 + min(hidden, pairs.ENDS)))


@dataclass(frozen=True, kw_only=True)
class Neighbours(IndependenceTest):
    """Sign products of neighbours in the order of one given number, inside cells of the given levels.

    Parameters
    ----------
    neighbours : int, optional
        On either side; by default a number that grows slowly with the rows a cell, 2 to 16.  Fewer follow means of x
        and y that change fast with z.
    ends : int, optional
        The row of rank p from an end of its cell meets those up to ⌊p/ends⌋ further on; by default 8, 4 or 2, fewer
        where the noise is larger.
    """

    name: ClassVar[str] = "neighbours"
    about: ClassVar[str] = "sign products of neighbours in z"
    supports_no_privacy: ClassVar[bool] = True
    supports_missing: ClassVar[bool] = True
    allows_private_ids: ClassVar[bool] = True

    neighbours: int | None = None
    ends: int | None = None

    def proofs_of(self, question: IndependenceQuestion, loss: PureDP) -> tuple[str, ...]:
        return "neighbour-pairs", *(("untied-pairs",) if question.tied else ()), "neighbour-variance", "geometric"

    def plan(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> Self:
        question.check_single(self.name, LEAST_ROWS)
        if question.numbers != 1 or question.cells > MOST_CELLS:
            raise ParameterError(f"method {self.name!r} takes one number among the columns given, beside levels")
        default = default_neighbours(question.n, question.cells)
        wanted = default if self.neighbours is None else self.neighbours
        k = public.whole("neighbours", wanted, 1, min(pairs.MOST_NEIGHBOURS, question.n // 10))
        scale = laplace_scale(pairs.signed_sensitivity(k, question.unit).bound, loss)
        ends = default_ends(question.n, k, scale) if self.ends is None else self.ends
        return replace(self, neighbours=k, ends=public.whole("ends", ends, 1, pairs.MOST_NEIGHBOURS))

    def caveats(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> tuple[str, ...]:
        if not loss.exact:
            scale = laplace_scale(pairs.signed_sensitivity(self.neighbours or 1, question.unit).bound, loss)
            if math.sqrt(2) * scale >= DROWNING * self.deviation(question):
                return (SIGNED,)
        return (SIGNED, FAR_NEIGHBOURS)

    def sums(self, rows: Sample, question: IndependenceQuestion, rng: PublicGenerator) -> pairs.PairSums:
        place = next(i for i, one in enumerate(question.declared(question.given)) if isinstance(one, Bounded))
        return pairs.pair_sums(
            *rows.pair, rows.raw[:, place], rows.cells,
            block_order(rows.n, rng, rows.keys), rows.is_complete, self.neighbours or 1, self.ends or pairs.ENDS,
        )  # fmt: skip

    def release(self, run: Run[IndependenceQuestion]) -> Released:
        question, spent = run.question, run.loss
        sums, k = self.sums(run.data, question, run.rng), self.neighbours or 1
        signed, untied = pairs.signed_sensitivity(k, question.unit), pairs.untied_sensitivity(k, question.unit)
        first = spent.part(SIGNED_SHARE) if question.tied else spent
        noisy = geometric(Query(sums.signed, signed, "sign products"), run.budget, first)
        scale = laplace_scale(signed.bound, first)
        if not question.tied:
            deviation = self.deviation(question)
            return Released(noisy / deviation, null.normal_laplace_pvalue(noisy, deviation, scale))
        rest = spent.part(1 - SIGNED_SHARE)
        count = geometric(Query(sums.untied, untied, "untied pairs"), run.budget, rest)

        def at_most(miss: float) -> float:
            return self.deviation(question, null.upper_bound(count, laplace_scale(untied.bound, rest), miss))

        return Released(noisy / at_most(null.MISSED * question.alpha), null.bounded_pvalue(noisy, scale, at_most))

    def approximate_power(self, question: IndependenceQuestion, loss: PureDP, correlation: float) -> float | None:
        """Return it from the normal distribution: each pair's signs agree as those of a pair of normal numbers do."""
        if question.tied:
            return None
        k, deviation = self.neighbours or 1, self.deviation(question)
        in_a_cell = pairs.pair_counts(max(question.n // question.cells, k + 1), k, self.ends or pairs.ENDS)[0]
        mean = question.cells * in_a_cell * 2 / math.pi * math.asin(abs(correlation))
        scale = laplace_scale(pairs.signed_sensitivity(k, question.unit).bound, loss)
        return null.level_power(mean, deviation, scale, question.alpha)

    def deviation(self, question: IndependenceQuestion, untied: float | None = None) -> float:
        """Return the deviation of the signed sum under independence, at most."""
        variance = pairs.null_variance(question.n, self.neighbours or 1, untied, self.ends or pairs.ENDS)
        return math.sqrt(max(1.0, variance))
