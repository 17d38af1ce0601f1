"""The covariance inside strata that the given levels make, and its permutation variance: for x and y of two values."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar, Self

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.core.method import Run
from dpcausal.data.records import Records, Rows
from dpcausal.data.schema import Bounded, Column
from dpcausal.errors import Advice, ParameterError, Setting
from dpcausal.independence.null_distributions import MISSED, bounded_pvalue, upper_bound
from dpcausal.independence.question import IndependenceQuestion, IndependenceTest, Released, Sample
from dpcausal.mechanisms.additive import geometric, laplace_scale
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Query
from dpcausal.statistics import strata

COVARIANCE_SHARE = Fraction(4, 5)
"""Share of ε for the covariance; the rest is for its variance."""

LEAST_ROWS = 20
MOST_STRATA = 10**15
MOST_SUMMED = 2**16
"""Strata whose sums are added up where the rows are; of more all rows come at once."""

CANCELLING = Advice("links of opposite sign in different strata cancel here: ", Setting("method", "counts"),
                    " sees them")  # fmt: skip

THIN = "there may be as many strata as rows: a row alone in its stratum carries no information"


@dataclass(frozen=True, kw_only=True)
class StratumSums(IndependenceTest):
    """A test of sums over the strata of given levels, added up where the rows are unless the strata are very many."""

    supports_no_privacy: ClassVar[bool] = True
    supports_missing: ClassVar[bool] = True
    allows_private_ids: ClassVar[bool] = True

    def sums(self, question: IndependenceQuestion) -> int:
        return question.cells

    def needs_all_rows(self, question: IndependenceQuestion) -> bool:
        return self.sums(question) > MOST_SUMMED

    def read(self, question: IndependenceQuestion) -> Sample | Records:
        return question.read() if self.needs_all_rows(question) else question.table.records(question.names)


@dataclass(frozen=True, kw_only=True)
class StrataCovariance(StratumSums):
    """Covariance inside the strata of the given levels: it moves by less than 2 with a row, however many they are.

    x and y have two levels, or are numbers, which count as shares of their declared range.
    """

    name: ClassVar[str] = "strata-covariance"
    about: ClassVar[str] = "the covariance inside the strata of given levels"
    proofs: ClassVar[tuple[str, ...]] = ("stratum-covariance", "stratum-variance", "geometric")
    uses_public_randomness: ClassVar[bool] = False

    def plan(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> Self:
        question.check_single(self.name, LEAST_ROWS)
        if question.numbers or question.cells > MOST_STRATA:
            raise ParameterError(f"method {self.name!r} takes only levels among the columns given")
        return self

    def caveats(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> tuple[str, ...]:
        return (*((CANCELLING,) if question.cells > 1 else ()), *((THIN,) if question.cells > question.n / 2 else ()))

    def moments(self, rows: Sample | Records, question: IndependenceQuestion) -> strata.StratumMoments:
        units = _column_unit(question.schema[question.x[0]]), _column_unit(question.schema[question.y[0]])
        if isinstance(rows, Records):
            return strata.of_sums(rows.sum(partial(_stratum_sums, question.without_table)), units)
        return strata.stratum_moments(*_complete_rows(rows, question), units)

    def release(self, run: Run[IndependenceQuestion]) -> Released:
        question = run.question
        moments = self.moments(run.data, question)
        first, rest = run.loss.part(COVARIANCE_SHARE), run.loss.part(1 - COVARIANCE_SHARE)
        of_sum, of_variance = strata.covariance_sensitivity(question.cells), strata.variance_sensitivity()
        noisy = geometric(Query(moments.covariance, of_sum, "covariance inside strata"), run.budget, first)
        spread = geometric(Query(moments.variance, of_variance, "variance inside strata"), run.budget, rest)
        scale = laplace_scale(of_variance.bound, rest)

        def at_most(miss: float) -> float:
            return max(1e-3, math.sqrt(upper_bound(spread, scale, miss) / strata.GRID))

        p = bounded_pvalue(noisy / strata.GRID, laplace_scale(of_sum.bound, first) / strata.GRID, at_most)
        return Released(noisy / strata.GRID / at_most(MISSED * question.alpha), p)


def _stratum_sums(question: IndependenceQuestion, rows: Rows) -> Integers:
    return strata.stratum_sums(*_complete_rows(question.sample(rows), question), question.cells)


def _complete_rows(rows: Sample, question: IndependenceQuestion) -> tuple[Integers, Integers, Integers]:
    x, y = (
        _in_units(values[rows.is_complete], question.schema[name])
        for values, name in zip(rows.pair, question.related, strict=True)
    )
    return x, y, rows.cells[rows.is_complete]


def _column_unit(declared: Column) -> int:
    return strata.MOST_UNITS if isinstance(declared, Bounded) else 1


def _in_units(values: Reals, declared: Column) -> Integers:
    if not isinstance(declared, Bounded):
        return values.astype(np.int64)
    shares = np.clip((values - declared.lower) / declared.width, 0.0, 1.0)
    return np.floor(shares * strata.MOST_UNITS).astype(np.int64)
