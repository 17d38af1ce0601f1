"""A noisy table of counts of x, y and the given levels, and two tests of it that know its noise: for few cells.

One sums the evidence of each stratum, whatever its sign; the other pools all strata.
The distribution of both under independence is that of simulated tables with the margins that the noisy table shows, and
noise of the same distribution, all drawn from public random numbers: the noise is no normal one, and where it rules, or
levels are rare, χ² is not the distribution.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.core.method import Run
from dpcausal.data.records import Records, Rows
from dpcausal.data.schema import Levels
from dpcausal.errors import ParameterError
from dpcausal.independence.methods.strata import LEAST_ROWS, StratumSums
from dpcausal.independence.null_distributions import LEAST_PVALUE
from dpcausal.independence.question import IndependenceQuestion, Released, Sample
from dpcausal.mechanisms.additive import geometric, geometric_variance, laplace_scale
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Query
from dpcausal.statistics.strata import Counts, contingency, contingency_sensitivity
from dpcausal.statistics.wald import chance_of, level_shares, strength_of_levels, upper_tail, wald_residuals

MOST_CELLS = 1_000_000

SMALL_CELLS = "most strata may be too small for their cells' noise, and then say nothing: fewer levels would say more"

MANY_LEVELS = "with so many levels and a small epsilon a true null can look dependent more often than alpha says"

TOGETHER, MOST_PVALUE = 0.2, 0.9
"""Weight of the test of all strata together, and the largest p-value that counts: so that it costs the other at most
0.03 of power, and gains 0.03 to 0.33 where the strata agree (2 to 20 strata, power near 0.75)."""

MOST_COPIES, FEWEST_COPIES, WORK = 1_000, 200, 10_000_000
"""Simulated tables.

With fewer the distribution is χ².  How many there are is bounded by cells · degrees of freedom a stratum.
"""


@dataclass(frozen=True, kw_only=True)
class ContingencyTest(StratumSums):
    """A noisy table of counts, and in each stratum of it what x and y share beyond their margins."""

    name: ClassVar[str] = "counts"
    about: ClassVar[str] = "a noisy table of counts of levels"
    proofs: ClassVar[tuple[str, ...]] = ("contingency-table", "geometric")

    def plan(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> Self:
        question.check_single(self.name, LEAST_ROWS, any_levels=True)
        if not all(isinstance(column, Levels) for column in question.declared(question.names)):
            raise ParameterError(f"method {self.name!r} takes columns of levels only")
        if self.sums(question) > MOST_CELLS:
            raise ParameterError(f"method {self.name!r} takes at most {MOST_CELLS} cells")
        return self

    def caveats(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> tuple[str, ...]:
        if loss.exact:
            return ()
        below_noise = () if reaches(question.n, self.shape(question), loss.epsilon) else (SMALL_CELLS,)
        return (*below_noise, *((MANY_LEVELS,) if not copies_of(self.shape(question)) and loss.epsilon < 1 else ()))

    def shape(self, question: IndependenceQuestion) -> tuple[int, int, int]:
        x, y = (len(column) for column in question.declared((*question.x, *question.y)) if isinstance(column, Levels))
        return x, y, question.cells

    def sums(self, question: IndependenceQuestion) -> int:
        return math.prod(self.shape(question))

    def table(self, rows: Sample | Records, question: IndependenceQuestion) -> Counts:
        shape = self.shape(question)
        if isinstance(rows, Records):
            return rows.sum(partial(_worker_table, question.without_table, shape))
        return _count_table(rows, shape)

    def approximate_power(self, question: IndependenceQuestion, loss: PureDP, correlation: float) -> float | None:
        x, y, strata = self.shape(question)
        if strata > 1 or min(x, y) < 2:
            return None
        variance = geometric_variance(laplace_scale(contingency_sensitivity().bound, loss))
        return chance_of(strength_of_levels(x, y, question.n, variance, correlation), question.alpha)

    def release(self, run: Run[IndependenceQuestion]) -> Released:
        bound = contingency_sensitivity()
        noisy = geometric(Query(self.table(run.data, run.question), bound, "table of counts"), run.budget, run.loss)
        return _noisy_decision(noisy, laplace_scale(bound.bound, run.loss), run.rng)


def _worker_table(question: IndependenceQuestion, shape: tuple[int, int, int], rows: Rows) -> Counts:
    return _count_table(question.sample(rows), shape)


def _count_table(rows: Sample, shape: tuple[int, int, int]) -> Counts:
    codes = *(values.astype(np.int64) for values in rows.pair), rows.cells
    return contingency([column[rows.is_complete] for column in codes], shape)


def reaches(n: int, shape: tuple[int, int, int], epsilon: float) -> bool:
    cells = shape[0] * shape[1]
    return n / shape[2] >= max(5 * cells, 3 * math.sqrt(8 / epsilon**2 * cells))


def copies_of(shape: tuple[int, int, int]) -> int:
    copies = min(MOST_COPIES, WORK // max(1, math.prod(shape) * (shape[0] - 1) * (shape[1] - 1)))
    return copies if copies >= FEWEST_COPIES else 0


def _noisy_decision(counts: Any, scale: float, rng: PublicGenerator) -> Released:
    noisy, variance = counts.astype(np.float64), geometric_variance(scale) if scale else 0.0
    residuals = wald_residuals(noisy, variance)
    if residuals is None:
        return Released(0.0, 1.0)
    each, together = float(residuals.terms().sum()), float(residuals.pooled()[0])
    if not math.isfinite(each + together):
        return Released(0.0, 1.0)
    null_samples = _null_statistics(noisy, scale, variance, rng)
    if null_samples is None:
        p = upper_tail(each, residuals.residual.size), upper_tail(together, residuals.residual.shape[1])
    else:
        p = gamma_tail(each, null_samples[0]), gamma_tail(together, null_samples[1])
    best = p[0] if noisy.shape[2] == 1 else cauchy_combination(*p)
    return Released(each, min(1.0, max(LEAST_PVALUE, best)))


def cauchy_combination(each: float, together: float) -> float:
    """Return the p-value of two p-values, the sum of their weighted Cauchy quantiles: however they hang together.

    Measured for normal residuals of 2 to 20 strata: level 0.051 to 0.053 at 0.05, 0.010 at 0.01.

    >>> round(cauchy_combination(0.04, 0.04), 9), cauchy_combination(0.04, 1.0) < 0.06
    (0.04, True)
    """
    quantiles = (1 / math.tan(math.pi * min(max(p, LEAST_PVALUE / 10), MOST_PVALUE)) for p in (each, together))
    return math.atan2(1.0, sum(w * q for w, q in zip((1 - TOGETHER, TOGETHER), quantiles, strict=True))) / math.pi


def _null_statistics(noisy: Reals, scale: float, variance: float, rng: PublicGenerator) -> tuple[Reals, Reals] | None:
    x, y, strata = noisy.shape
    copies = copies_of((x, y, strata))
    if not copies:
        return None
    totals = np.rint(np.maximum(noisy.sum(axis=(0, 1)), 0)).astype(np.int64)
    of_x, of_y = level_shares(noisy.sum(axis=1).T), level_shares(noisy.sum(axis=0).T)
    tables = np.empty((x, y, strata, copies))
    for place, total in enumerate(totals.tolist()):
        cells = np.outer(of_x[place], of_y[place]).ravel()
        tables[:, :, place] = rng.multinomial(total, cells / cells.sum(), size=copies).T.reshape(x, y, copies)
    if scale:
        success = -math.expm1(-1 / scale)
        tables += rng.geometric(success, tables.shape) - rng.geometric(success, tables.shape)
    residuals = wald_residuals(tables.reshape(x, y, -1), variance)
    if residuals is None:
        return np.zeros(copies), np.zeros(copies)
    return residuals.terms().reshape(strata, copies).sum(axis=0), residuals.pooled(copies)


def gamma_tail(value: float, sample: Reals) -> float:
    """Return the larger P(G ≥ value) of two gamma distributions with the mean and variance of a sample, one with its
    skewness.

    Noise of the tables makes the tail longer than that of χ².

    >>> from scipy.stats import chi2
    >>> quantiles = chi2.ppf((np.arange(2000) + 0.5) / 2000, 4)
    >>> round(gamma_tail(9.4877, quantiles), 3)
    0.05
    """
    from scipy.special import gammaincc

    mean, spread = float(sample.mean()), float(sample.std())
    if spread <= 0:
        return 1.0
    plain = (mean / spread) ** 2
    skewness = float(np.mean(((sample - mean) / spread) ** 3))
    longer = 4 / max(skewness, 1e-3) ** 2
    standard = (value - mean) / spread
    return max(float(gammaincc(shape, max(0.0, shape + math.sqrt(shape) * standard))) for shape in (plain, longer))
