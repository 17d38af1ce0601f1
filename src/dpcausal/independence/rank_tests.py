"""Kendall's tau and Spearman's rho within strata of z, as statistics that one row moves little.

Numbers among z are cut at public places: their declared cuts, or ``strata`` equal parts of their range.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.asking import public
from dpcausal.data.schema import Bounded, Levels
from dpcausal.dependence.conditional_kendall import (
    conditional_kendall,
    conditional_kendall_sensitivity,
    conditional_spearman,
    conditional_spearman_sensitivity,
)
from dpcausal.errors import ParameterError
from dpcausal.independence.columns import Integers, Reals, Rows
from dpcausal.independence.crt import values_of
from dpcausal.independence.law import normal_laplace_pvalue
from dpcausal.independence.question import Hypothesis, PureTest, Released
from dpcausal.mechanisms.additive import laplace, laplace_scale
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Query, Sensitivity

STRATA = 16
"""Default number of equal parts of a given number's range."""

COARSE = "within a stratum a given number still varies: with many rows that alone can make a true null look dependent"
THIN = "there may be as many strata as rows: what stands alone in its stratum says nothing"
ORDERED = "levels are ranked in the order in which they were declared"
MOST_STRATA = 10_000
LEAST_ROWS = 20


@dataclass(frozen=True, kw_only=True)
class RankTest(PureTest):
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

    def claims(self, question: Hypothesis, spent: PureDP) -> tuple[str, ...]:
        return self.sensitivity(question.n, self.number_of_strata(question)).proof, "laplace"

    def settle(self, question: Hypothesis, spent: PureDP | NoPrivacy) -> Self:
        if len(question.x) != 1 or len(question.y) != 1:
            raise ParameterError(f"method {self.name!r} takes one column x and one column y")
        public.whole("the number of rows", question.n, LEAST_ROWS, 10**8)
        strata = public.whole("strata", STRATA if self.strata is None else self.strata, 1, MOST_STRATA)
        ready = replace(self, strata=strata if _numbers(question) else None)
        parts = ready.number_of_strata(question)
        if parts > 10**15:
            raise ParameterError("given has too many strata: declare cuts, or give fewer strata")
        ready.sensitivity(question.n, parts)  # refuses more strata than it takes, before anything is spent
        return ready

    def caveats(self, question: Hypothesis, spent: PureDP | NoPrivacy) -> tuple[str, ...]:
        declared = [question.schema[name] for name in (*question.x, *question.y)]
        many = any(isinstance(column, Levels) and len(column) > 2 for column in declared)
        thin = self.number_of_strata(question) > question.n / 2
        told = ((COARSE, bool(_numbers(question))), (ORDERED, many), (THIN, thin))
        return tuple(words for words, holds in told if holds)

    def strata_of(self, rows: Rows, question: Hypothesis) -> Integers:
        """Return each row's stratum, a public function of its z; a row that lacks a column has one to itself."""
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
        return np.where(rows.kept, code, -1 - np.arange(rows.n))

    def number_of_strata(self, question: Hypothesis) -> int:
        """Return how many strata the public cuts and levels of z make, empty ones too."""
        parts = 1
        for name in question.given:
            declared = question.schema[name]
            if isinstance(declared, Bounded):
                parts *= len(declared.cuts) + 1 if declared.cuts else self.strata or 1
            else:
                parts *= len(declared)
        return parts

    def release(
        self, private: Rows, question: Hypothesis, spent: PureDP, coins: PublicGenerator, allotment: Allotment
    ) -> Released:
        y = private.y @ np.arange(1.0, private.y.shape[1] + 1)
        strata = self.number_of_strata(question)
        claim = self.sensitivity(question.n, strata)
        value = self.statistic(values_of(private), y, self.strata_of(private, question))
        noisy = laplace(Query(value, claim, f"{self.name} within strata"), allotment, spent)
        deviation = self.deviation(question.n, strata)
        return Released(
            noisy / deviation, normal_laplace_pvalue(noisy, deviation, laplace_scale(claim.bound, spent))
        )


@dataclass(frozen=True, kw_only=True)
class Kendall(RankTest):
    """Kendall's tau within strata."""

    name: ClassVar[str] = "kendall"
    leaves_out: ClassVar[bool] = True
    private_ids: ClassVar[bool] = True

    def statistic(self, x: Reals, y: Reals, strata: Any) -> float:
        return conditional_kendall(x, y, strata)

    def sensitivity(self, rows: int, strata: int) -> Sensitivity:
        return conditional_kendall_sensitivity(rows)

    def deviation(self, rows: int, strata: int) -> float:
        # Var K_s = m(m − 1)(2m + 5)/18, so n Var T = (4/9) Σ (m + 3/2 − 5/(2m))/n.
        return float(2 / 3 * (min(11 / 9, 1 + 1.5 * strata / rows) / rows) ** 0.5)


@dataclass(frozen=True, kw_only=True)
class Spearman(RankTest):
    """Spearman's rho within strata."""

    name: ClassVar[str] = "spearman"
    leaves_out: ClassVar[bool] = True
    private_ids: ClassVar[bool] = True

    def statistic(self, x: Reals, y: Reals, strata: Any) -> float:
        return conditional_spearman(x, y, strata)

    def sensitivity(self, rows: int, strata: int) -> Sensitivity:
        return conditional_spearman_sensitivity(rows)

    def deviation(self, rows: int, strata: int) -> float:
        # Var rho_s = 1/(m − 1), so n Var = Σ m²/(m − 1)/n.
        return float((min(2, 1 + 2 * strata / rows) / rows) ** 0.5)


def _numbers(question: Hypothesis) -> list[str]:
    return [name for name in question.given if isinstance(question.schema[name], Bounded)]
