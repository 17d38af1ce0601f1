"""Rank correlations within strata of z, as statistics that one row moves little.

Numbers among z are cut at public places: their declared cuts, or ``strata`` equal parts of their range.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.core import validate as public
from dpcausal.core.method import Run
from dpcausal.data.schema import Column, Levels
from dpcausal.errors import ParameterError
from dpcausal.independence import null_distributions as null
from dpcausal.independence.methods.strata import LEAST_ROWS, THIN
from dpcausal.independence.question import SIGNED, IndependenceQuestion, IndependenceTest, Released, Sample
from dpcausal.mechanisms.additive import geometric, laplace, laplace_scale
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Query, Sensitivity
from dpcausal.statistics.rank import conditional_kendall, conditional_kendall_sensitivity
from dpcausal.statistics.strata import GRID, contingency, contingency_sensitivity, spread_sensitivity, stratum_spread

STRATA = 16
"""Default number of equal parts of a given number's range."""

COARSE = "within a stratum a given number still varies: with many rows that alone can make a true null look dependent"
ORDERED = "levels are ranked in the order in which they were declared"
MOST_STRATA = 10_000

TAU_SHARE = Fraction(17, 20)
"""Share of ε for tau where x or y has two levels."""

COUNTED_SHARE = Fraction(9, 10)
"""Share of ε for tau where rows may be left out: the rest is for the number of complete rows."""


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
    def statistic(self, x: Reals, y: Reals, strata: Any) -> float: ...

    @abstractmethod
    def sensitivity(self, rows: int, strata: int) -> Sensitivity: ...

    @abstractmethod
    def deviation(self, rows: int, strata: int) -> float:
        """Return its standard deviation under independence without ties, at most: strata as small as they may be."""

    def proofs_of(self, question: IndependenceQuestion, loss: PureDP) -> tuple[str, ...]:
        return self.sensitivity(question.n, self.strata_in(question)).proof, "laplace"

    def plan(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> Self:
        question.check_single(self.name, LEAST_ROWS, any_levels=True)
        strata = public.whole("strata", STRATA if self.strata is None else self.strata, 1, MOST_STRATA)
        ready = replace(self, strata=strata if question.numbers else None)
        parts = ready.strata_in(question)
        if parts > 10**15:
            raise ParameterError("given has too many strata: declare cuts, or give fewer strata")
        ready.sensitivity(question.n, parts)  # refuses more strata than it takes, before anything is spent
        return ready

    def caveats(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> tuple[str, ...]:
        many = any(isinstance(column, Levels) and len(column) > 2 for column in question.declared(question.related))
        thin = self.strata_in(question) > question.n / 2
        caveats = ((SIGNED, True), (COARSE, question.numbers > 0), (ORDERED, many), (THIN, thin))
        return tuple(caveat for caveat, holds in caveats if holds)

    def strata_of(self, rows: Sample, question: IndependenceQuestion) -> Integers:
        """Return each row's stratum, a public function of its z; a row that has a missing value has one to itself."""
        code = np.zeros(rows.n, dtype=np.int64)
        for values, declared in zip(rows.raw.T, question.declared(question.given), strict=True):
            edges = self._edges(declared)
            code = code * (len(edges) + 1) + np.searchsorted(edges, values, side="right")
        return np.where(rows.is_complete, code, -1 - np.arange(rows.n))

    def strata_in(self, question: IndependenceQuestion) -> int:
        """Return how many strata the public cuts and levels of z make, empty ones too."""
        return math.prod(len(self._edges(column)) + 1 for column in question.declared(question.given))

    def _edges(self, declared: Column) -> Reals:
        """Return where a column is cut: between the codes of levels, at declared cuts, or at equal parts."""
        if isinstance(declared, Levels):
            return np.arange(1.0, len(declared))
        equal = np.linspace(declared.lower, declared.upper, (self.strata or 1) + 1)[1:-1]
        return np.asarray(declared.cuts or equal, dtype=np.float64)

    def release(self, run: Run[IndependenceQuestion]) -> Released:
        noisy, scale = self.noisy(run, run.loss)
        deviation = self.deviation(run.question.n, self.strata_in(run.question))
        return Released(noisy / deviation, null.normal_laplace_pvalue(noisy, deviation, scale))

    def noisy(self, run: Run[IndependenceQuestion], loss: Any) -> tuple[float, float]:
        """Return the coefficient with noise for a part of the loss, and the noise's scale."""
        rows, claim = run.data, self.sensitivity(run.question.n, self.strata_in(run.question))
        x, y = rows.pair
        value = self.statistic(x, y, self.strata_of(rows, run.question))
        query = Query(value, claim, f"{self.name} within strata")
        return laplace(query, run.budget, loss), laplace_scale(claim.bound, loss)


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
        if question.tied is not None:
            return (*proofs, "stratum-spread", "geometric")
        return (*proofs, "contingency-table", "geometric") if question.drops_missing else proofs

    def approximate_power(self, question: IndependenceQuestion, loss: PureDP, correlation: float) -> float | None:
        """Return it from the normal distribution, tau being (2/π) asin r, for one stratum without ties."""
        if question.tied is not None or self.strata_in(question) > 1:
            return None
        paid, sure = (loss.part(COUNTED_SHARE), 1 - null.MISSED) if question.drops_missing else (loss, 1.0)
        deviation, scale = self.deviation(question.n, 1), laplace_scale(self.sensitivity(question.n, 1).bound, paid)
        mean = 2 / math.pi * math.asin(abs(correlation))
        return null.level_power(mean, deviation, scale, sure * question.alpha)

    def spread(self, rows: Sample, question: IndependenceQuestion) -> int:
        """Return how often either level occurs, in its strata, of the column that has two."""
        values = rows.pair[0 if question.tied in question.x else 1]
        return stratum_spread(values.astype(np.int64), self.strata_of(rows, question))

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
        private, question = run.data, run.question
        tied = question.tied is not None
        if not tied and not question.drops_missing:
            return super().release(run)
        share = TAU_SHARE if tied else COUNTED_SHARE
        rest = run.loss.part(1 - share)
        bounding: Callable[[float, IndependenceQuestion], float]
        if tied:
            bound, bounding = spread_sensitivity(), self.tied_deviation
            query = Query(self.spread(private, question), bound, "spread within strata")
            count = float(geometric(query, run.budget, rest))
        else:
            bound, bounding = contingency_sensitivity(), self.complete_deviation
            query = Query(contingency([private.is_complete.astype(np.int64)], [2]), bound, "rows left out and kept")
            count = float(geometric(query, run.budget, rest)[1])
        tau, scale = self.noisy(run, run.loss.part(share))

        def at_most(miss: float) -> float:
            return bounding(null.upper_bound(count, laplace_scale(bound.bound, rest), miss), question)

        return Released(tau / at_most(null.MISSED * question.alpha), null.bounded_pvalue(tau, scale, at_most))


