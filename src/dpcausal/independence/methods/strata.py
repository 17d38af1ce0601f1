"""The covariance inside strata that the given levels make, and its permutation variance: for x and y of two values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from dpcausal.core import validate as public
from dpcausal.core.method import Run
from dpcausal.data.reader import Records
from dpcausal.data.records import Rows
from dpcausal.data.schema import Bounded, Column
from dpcausal.errors import ParameterError
from dpcausal.independence.null_laws import MISSED, bounded_pvalue, upper_bound
from dpcausal.independence.question import (
    IndependenceQuestion,
    IndependenceTest,
    Integers,
    Reals,
    Released,
    Sample,
    cells_of,
    check_single,
    values_of,
)
from dpcausal.mechanisms.additive import geometric, laplace_scale
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Query
from dpcausal.statistics.strata import (
    GRID,
    MOST_UNITS,
    StratumMoments,
    covariance_sensitivity,
    of_sums,
    stratum_moments,
    stratum_sums,
    variance_sensitivity,
)

COVARIANCE_SHARE = Fraction(4, 5)
"""Share of ε for the covariance; the rest is for its variance."""

LEAST_ROWS = 20
MOST_STRATA = 10**15
MOST_SUMMED = 2**16
"""Strata whose sums are added up where the rows are; of more all rows come at once."""

CANCELLING = "links of opposite sign in different strata cancel here: method='counts' sees them"

THIN = "there may be as many strata as rows: what stands alone in its stratum says nothing"


@dataclass(frozen=True, kw_only=True)
class StrataCovariance(IndependenceTest):
    """Covariance inside the strata of the given levels: it moves by less than 2 with a row, however many they are.

    x and y have two levels, or are numbers, which count as shares of their declared range.
    """

    name: ClassVar[str] = "strata-covariance"
    about: ClassVar[str] = "the covariance inside the strata of given levels"
    proofs: ClassVar[tuple[str, ...]] = ("stratum-covariance", "stratum-variance", "geometric")
    supports_no_privacy: ClassVar[bool] = True
    supports_missing: ClassVar[bool] = True
    allows_private_ids: ClassVar[bool] = True
    uses_public_randomness: ClassVar[bool] = False

    def plan(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> Self:
        check_single(self.name, question)
        if question.numbers or question.cells > MOST_STRATA:
            raise ParameterError(f"method {self.name!r} takes only levels among the columns given")
        public.whole("the number of rows", question.n, LEAST_ROWS, 10**8)
        return self

    def caveats(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> tuple[str, ...]:
        return (*((CANCELLING,) if question.cells > 1 else ()), *((THIN,) if question.cells > question.n / 2 else ()))

    def needs_all_rows(self, question: IndependenceQuestion) -> bool:
        return question.cells > MOST_SUMMED

    def read(self, question: IndependenceQuestion) -> Sample | Records:
        return question.read() if self.needs_all_rows(question) else question.table.records(question.names)

    def moments(self, rows: Sample | Records, question: IndependenceQuestion) -> StratumMoments:
        """Return the covariance and its variance, of the rows kept."""
        units = _unit(question.schema[question.x[0]]), _unit(question.schema[question.y[0]])
        if isinstance(rows, Records):
            return of_sums(rows.sum(Sums(question.without_table)), units)
        return stratum_moments(*_complete(rows, question), units)

    def release(self, run: Run[IndependenceQuestion]) -> Released:
        question = run.question
        moments = self.moments(run.data, question)
        first, rest = run.loss.part(COVARIANCE_SHARE), run.loss.part(1 - COVARIANCE_SHARE)
        of_sum, of_variance = covariance_sensitivity(question.cells), variance_sensitivity()
        noisy = geometric(Query(moments.covariance, of_sum, "covariance inside strata"), run.budget, first)
        spread = geometric(Query(moments.variance, of_variance, "variance inside strata"), run.budget, rest)
        scale = laplace_scale(of_variance.bound, rest)

        def at_most(miss: float) -> float:
            return max(1e-3, math.sqrt(upper_bound(spread, scale, miss) / GRID))

        p = bounded_pvalue(noisy / GRID, laplace_scale(of_sum.bound, first) / GRID, at_most)
        return Released(noisy / GRID / at_most(MISSED * question.alpha), p)


@dataclass(frozen=True)
class Sums:
    """What each stratum's rows add up to, in an engine's workers too."""

    question: IndependenceQuestion

    def __call__(self, rows: Rows) -> Integers:
        return stratum_sums(*_complete(self.question.sample(rows), self.question), self.question.cells)


def _complete(rows: Sample, question: IndependenceQuestion) -> tuple[Integers, Integers, Integers]:
    x, y = (_in_units(columns[rows.is_complete], question.schema[name])
            for columns, (name,) in ((rows.x, question.x), (rows.y, question.y)))  # fmt: skip
    return x, y, cells_of(rows.given)[rows.is_complete]


def _unit(declared: Column) -> int:
    return MOST_UNITS if isinstance(declared, Bounded) else 1


def _in_units(columns: Reals, declared: Column) -> Integers:
    values = values_of(columns)
    if not isinstance(declared, Bounded):
        return values.astype(np.int64)
    shares = np.clip((values - declared.lower) / declared.width, 0.0, 1.0)
    return np.floor(shares * MOST_UNITS).astype(np.int64)
