"""Rank correlations within strata of z, as statistics that one row moves little.

Numbers among z are cut at public places: their declared cuts, or ``strata`` equal parts of their range.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.core import validate as public
from dpcausal.core.method import Run
from dpcausal.data.schema import Bounded, Levels
from dpcausal.errors import ParameterError
from dpcausal.independence.null_laws import (
    MISSED,
    bounded_pvalue,
    farthest_of,
    noisy_power,
    normal_laplace_pvalue,
    upper_bound,
)
from dpcausal.independence.question import (
    SIGNED,
    IndependenceQuestion,
    IndependenceTest,
    Integers,
    Reals,
    Released,
    Sample,
    two_valued,
    values_of,
)
from dpcausal.mechanisms.additive import geometric, laplace, laplace_scale
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Query, Sensitivity
from dpcausal.statistics.rank import (
    conditional_kendall,
    conditional_kendall_sensitivity,
)
from dpcausal.statistics.strata import GRID, contingency, contingency_sensitivity, spread_sensitivity, stratum_spread

STRATA = 16
"""Default number of equal parts of a given number's range."""

COARSE = "within a stratum a given number still varies: with many rows that alone can make a true null look dependent"
THIN = "there may be as many strata as rows: what stands alone in its stratum says nothing"
ORDERED = "levels are ranked in the order in which they were declared"
MOST_STRATA = 10_000

TAU_SHARE = Fraction(17, 20)
"""Share of ε for tau where x or y has two levels."""

COUNTED_SHARE = Fraction(9, 10)
"""Share of ε for tau where rows may be left out: the rest is for the number of complete rows."""

LEAST_ROWS = 20


@dataclass(frozen=True, kw_only=True)
class RankTest(IndependenceTest):
    """A rank correlation within strata.

    Parameters
    ----------
    strata : int, optional
        Bins of each given number without declared cuts, by default 16.
    """

    about: ClassVar[str] = "a rank correlation within strata"

    strata: int | None = None

    @abstractmethod
    def statistic(self, x: Reals, y: Reals, strata: Any) -> float:
        """Return the coefficient."""

    @abstractmethod
    def sensitivity(self, rows: int, strata: int) -> Sensitivity:
        """Return how far one row moves it."""

    @abstractmethod
    def deviation(self, rows: int, strata: int) -> float:
        """Return its standard deviation under independence without ties, at most: strata as small as they may be."""

    def proofs_of(self, question: IndependenceQuestion, loss: PureDP) -> tuple[str, ...]:
        return self.sensitivity(question.n, self.strata_in(question)).proof, "laplace"

    def plan(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> Self:
        if len(question.x) != 1 or len(question.y) != 1:
            raise ParameterError(f"method {self.name!r} takes one column x and one column y")
        public.whole("the number of rows", question.n, LEAST_ROWS, 10**8)
        strata = public.whole("strata", STRATA if self.strata is None else self.strata, 1, MOST_STRATA)
        ready = replace(self, strata=strata if _numbers(question) else None)
        parts = ready.strata_in(question)
        if parts > 10**15:
            raise ParameterError("given has too many strata: declare cuts, or give fewer strata")
        ready.sensitivity(question.n, parts)  # refuses more strata than it takes, before anything is spent
        return ready

    def caveats(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> tuple[str, ...]:
        declared = [question.schema[name] for name in (*question.x, *question.y)]
        many = any(isinstance(column, Levels) and len(column) > 2 for column in declared)
        thin = self.strata_in(question) > question.n / 2
        caveats = ((SIGNED, True), (COARSE, bool(_numbers(question))), (ORDERED, many), (THIN, thin))
        return tuple(caveat for caveat, holds in caveats if holds)

    def strata_of(self, rows: Sample, question: IndependenceQuestion) -> Integers:
        """Return each row's stratum, a public function of its z; a row that has a missing value has one to itself."""
        code = np.zeros(rows.n, dtype=np.int64)
        for place, name in enumerate(question.given):
            declared, values = question.schema[name], rows.raw[:, place]
            if isinstance(declared, Bounded):
                equal = np.linspace(declared.lower, declared.upper, (self.strata or 1) + 1)[1:-1]
                cuts = np.asarray(declared.cuts or tuple(equal))
                part, parts = np.searchsorted(cuts, values, side="right"), len(cuts) + 1
            else:
                part, parts = values.astype(np.int64), len(declared)
            code = code * parts + part
        return np.where(rows.is_complete, code, -1 - np.arange(rows.n))

    def strata_in(self, question: IndependenceQuestion) -> int:
        """Return how many strata the public cuts and levels of z make, empty ones too."""
        parts = 1
        for name in question.given:
            declared = question.schema[name]
            if isinstance(declared, Bounded):
                parts *= len(declared.cuts) + 1 if declared.cuts else self.strata or 1
            else:
                parts *= len(declared)
        return parts

    def release(self, run: Run[IndependenceQuestion]) -> Released:
        question = run.question
        strata = self.strata_in(question)
        claim, deviation = self.sensitivity(question.n, strata), self.deviation(question.n, strata)
        query = Query(self.value(run.data, question), claim, f"{self.name} within strata")
        noisy = laplace(query, run.budget, run.loss)
        return Released(
            noisy / deviation, normal_laplace_pvalue(noisy, deviation, laplace_scale(claim.bound, run.loss))
        )

    def value(self, rows: Sample, question: IndependenceQuestion) -> float:
        """Return the coefficient of the rows."""
        return self.statistic(values_of(rows.x), values_of(rows.y), self.strata_of(rows, question))


@dataclass(frozen=True, kw_only=True)
class Kendall(RankTest):
    """Kendall's tau within strata; where x or y has two levels, part of ε goes to how often each occurs there."""

    supports_no_privacy: ClassVar[bool] = True
    name: ClassVar[str] = "kendall"
    supports_missing: ClassVar[bool] = True
    allows_private_ids: ClassVar[bool] = True

    def statistic(self, x: Reals, y: Reals, strata: Any) -> float:
        return conditional_kendall(x, y, strata)

    def sensitivity(self, rows: int, strata: int) -> Sensitivity:
        return conditional_kendall_sensitivity(rows, one_stratum=strata == 1)

    def deviation(self, rows: int, strata: int) -> float:
        # Var K_s = m(m − 1)(2m + 5)/18, so n Var T = (4/9) Σ (m + 3/2 − 5/(2m))/n.
        return float(2 / 3 * (min(11 / 9, 1 + 1.5 * strata / rows) / rows) ** 0.5)

    def proofs_of(self, question: IndependenceQuestion, loss: PureDP) -> tuple[str, ...]:
        proofs = super().proofs_of(question, loss)
        if self.tied(question) is not None:
            return (*proofs, "stratum-spread", "geometric")
        return (*proofs, "contingency-table", "geometric") if question.drops_missing else proofs

    def approximate_power(self, question: IndependenceQuestion, loss: PureDP, correlation: float) -> float | None:
        """Return it from the normal distribution, tau being (2/π) asin r, where one stratum holds all and nothing "
        "is tied."""
        if self.tied(question) is not None or self.strata_in(question) > 1:
            return None
        paid, sure = (loss.part(COUNTED_SHARE), 1 - MISSED) if question.drops_missing else (loss, 1.0)
        deviation = self.deviation(question.n, 1)
        scale = laplace_scale(self.sensitivity(question.n, 1).bound, paid)
        level = sure * question.alpha
        farthest = farthest_of(lambda tau: normal_laplace_pvalue(tau, deviation, scale) <= level, deviation)
        return noisy_power(2 / math.pi * math.asin(abs(correlation)), deviation, scale, farthest)

    def tied(self, question: IndependenceQuestion) -> str | None:
        """Return the first of x and y that the schema gives two levels."""
        names = *question.x, *question.y
        return next((name for name in names if two_valued(question.schema[name])), None)

    def spread(self, rows: Sample, question: IndependenceQuestion) -> int:
        """Return how often either level occurs, in its strata, of the column that has two."""
        columns = rows.x if self.tied(question) in question.x else rows.y
        return stratum_spread(values_of(columns).astype(np.int64), self.strata_of(rows, question))

    def tied_deviation(self, spread: float, question: IndependenceQuestion) -> float:
        """Return the deviation under independence for a spread B = Σ n₁n₀/m in units of 1/GRID, or a bound on it.

        Var K_s = n₁n₀(m + 1)/3 without ties in the other, so n² Var T = (4/3) Σ (n₁n₀/m)(1 + 1/m).
        """
        whole = spread / GRID
        more = min(whole / 2, self.strata_in(question) / 4)
        untied = self.deviation(question.n, self.strata_in(question))
        return min(untied, math.sqrt(4 / 3 * max(1.0, whole + more)) / question.n)

    def complete_deviation(self, complete: float, question: IndependenceQuestion) -> float:
        """Return the deviation of the coefficient, which divides by all n, with these complete rows, or a bound on it.

        n² Var T = (4/9) Σ (m + 3/2 − 5/(2m)), over strata of the complete rows.
        """
        rows = math.ceil(min(max(complete, 1.0), question.n))
        return self.deviation(rows, self.strata_in(question)) * rows / question.n

    def release(self, run: Run[IndependenceQuestion]) -> Released:
        private, question, allotment = run.data, run.question, run.budget
        tied = self.tied(question) is not None
        if not tied and not question.drops_missing:
            return super().release(run)
        share = TAU_SHARE if tied else COUNTED_SHARE
        rest, first = run.loss.part(1 - share), run.loss.part(share)
        bounding: Callable[[float, IndependenceQuestion], float]
        if tied:
            bound, bounding = spread_sensitivity(), self.tied_deviation
            query = Query(self.spread(private, question), bound, "spread within strata")
            noisy = float(geometric(query, allotment, rest))
        else:
            bound, bounding = contingency_sensitivity(), self.complete_deviation
            query = Query(contingency([private.is_complete.astype(np.int64)], [2]), bound, "rows left out and kept")
            noisy = float(geometric(query, allotment, rest)[1])
        scale = laplace_scale(bound.bound, rest)
        claim = self.sensitivity(question.n, self.strata_in(question))
        tau = laplace(Query(self.value(private, question), claim, "kendall within strata"), allotment, first)

        def at_most(miss: float) -> float:
            return bounding(upper_bound(noisy, scale, miss), question)

        p = bounded_pvalue(tau, laplace_scale(claim.bound, first), at_most)
        return Released(tau / at_most(MISSED * question.alpha), p)


def _numbers(question: IndependenceQuestion) -> list[str]:
    return [name for name in question.given if isinstance(question.schema[name], Bounded)]
