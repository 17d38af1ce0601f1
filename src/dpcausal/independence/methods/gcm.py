"""The generalised covariance measure in blocks: whether residuals of x and of y given z covary.

The score of a block is the studentised permutation rank of its covariance of residuals: with rare or skewed values the
plain statistic of a block is skewed, and the sum over blocks then rejects true nulls.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar, Self

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.errors import ParameterError
from dpcausal.independence import null_distributions as null
from dpcausal.independence.methods.block_test import BELOW_NOISE, BlockTest
from dpcausal.independence.question import IndependenceQuestion, Released, Sample
from dpcausal.independence.residuals import residuals
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.noise import PublicGenerator, generator_from_seed

MOST_COLUMNS = 400
"""Most products of columns of x and y."""

CUTS = (0.25, 0.5, 0.75)
"""Quantiles, inside the block, at which a weight of the weighted measure changes its sign."""

EXACT_PERMUTATIONS = 999

DRAWN = 20_000
"""Scores of a block that a forecast draws."""

MOST_RAISED = 1.4
"""How many times its level a test may be off before a caveat says so."""

JUMPS = (
    "of several numbers given, curves in each, products of two, two jumps, crossings of two and smooth surfaces are "
    "learnt inside blocks; where the means of x and y do more than that, as many jumps, one whose place moves with "
    "other numbers, a border on a map, short waves, narrow peaks that only some records have, or a slope that goes "
    "with another number, and blocks are a dozen or more, a true null can look dependent, with more rows the surer"
)
CURVES = (
    "a curve in the number given that turns often is learnt in part inside blocks, and a true null then looks "
    "dependent, with more rows the surer: neighbours, the default where one number is given, learns nothing"
)


def weights(rows: Sample) -> Reals:
    """Return 1, signs around quantiles and signs of levels, shape (n, k): Scheidegger et al. (2022), section 2.2."""
    n = rows.n
    functions = [np.ones(n)]
    for column in rows.given.numbers.T:
        functions += [np.where(column > np.quantile(column, cut), 1.0, -1.0) for cut in CUTS]
    for codes in rows.given.levels.T:
        functions += [np.where(codes == code, 1.0, -1.0) for code in np.unique(codes)]
    return np.stack(functions, axis=1)


@dataclass(frozen=True, kw_only=True)
class Gcm(BlockTest):
    """Covariance of the residuals of x and of y given z, in blocks."""

    name: ClassVar[str] = "gcm"
    about: ClassVar[str] = "the covariance of residuals in blocks"

    def score(self, rows: Sample, question: IndependenceQuestion, rng: PublicGenerator) -> float:
        left, right, spread = self.residuals(rows, rng)
        return null.permutation_score(left, right, self.resamples or 0, spread, rng)

    def residuals(self, rows: Sample, rng: PublicGenerator) -> tuple[Reals, Reals, float]:
        """Return what is correlated, shapes (n, p) and (n, q), and the spread that smoothing leaves it."""
        p = rows.x.shape[1]
        fit = residuals(rows.given, (rows.x, rows.y), self.regression, rng)
        return fit.residuals[:, :p], fit.residuals[:, p:], fit.spread

    def two_sided(self, question: IndependenceQuestion) -> bool:
        """Return whether it is one pair of columns: of several the largest absolute covariance is scored."""
        return question.pairs == 1

    def approximate_power(self, question: IndependenceQuestion, loss: PureDP, correlation: float) -> float | None:
        """Return it from the distribution of the sum.

        Blocks score a rank among copies of a normal number of mean √m atanh r.
        """
        if not self.two_sided(question) or not self.blocks:
            return None
        from scipy.special import ndtr, ndtri

        blocks, rng, copies = self.blocks, generator_from_seed(1), self.resamples or 0
        rows = max(question.n / blocks - len(question.given) - 2, 1.0)
        beyond = ndtr(-(math.sqrt(rows) * math.atanh(abs(correlation)) + rng.standard_normal(DRAWN)))
        ranks = (rng.binomial(copies, beyond) + rng.random(DRAWN)) / (copies + 1)
        reach, epsilon = null.reach_of(blocks), loss.epsilon / question.blocks_moved
        terms = np.clip(-ndtri(ranks) * null.STEPS_PER_UNIT, -reach, reach)

        def significant(total: float) -> bool:
            return null.block_pvalue(math.floor(total), blocks, epsilon, True) <= question.alpha

        farthest = null.farthest_of(significant, float(reach))
        mean, spread = blocks * float(terms.mean()), math.sqrt(blocks) * float(terms.std())
        return null.noisy_power(mean, spread, 2 * reach / epsilon, farthest)

    def plan(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> Self:
        if question.pairs > MOST_COLUMNS:
            raise ParameterError(f"x and y may have at most {MOST_COLUMNS} pairs of columns, levels counted one by one")
        return super().plan(question, loss)

    def caveats(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> tuple[str, ...]:
        caveats = super().caveats(question, loss)
        # Where not even all M terms at ±r are significant, the level is at most α cosh(Mε/2), whatever they are, and
        # α exp(Mε/2) on one side: the noise's tail is exponential.
        raised = math.cosh if self.two_sided(question) else math.exp
        held = (
            BELOW_NOISE in caveats
            and not loss.exact
            and (raised(min(50.0, (self.blocks or 1) * loss.epsilon / 2)) <= MOST_RAISED)
        )
        learns = question.numbers > 0 and self.regression == "likely" and not held
        unlearnt = ((JUMPS if question.numbers > 1 else CURVES),) if learns else ()
        return (*caveats, *unlearnt)

    def exact(self, rows: Sample, question: IndependenceQuestion, rng: PublicGenerator) -> Released:
        left, right, spread = self.residuals(rows, rng)
        observed = float(np.abs(null.studentised_covariance(left, right)).max()) / math.sqrt(spread)
        if left.shape[1] == right.shape[1] == 1:
            signed = float(null.studentised_covariance(left, right)[0, 0]) / math.sqrt(spread)
            return Released(signed, max(null.LEAST_PVALUE, 2 * NormalDist().cdf(-observed)))
        above = 0
        for _ in range(EXACT_PERMUTATIONS):
            above += float(np.abs(null.studentised_covariance(left[rng.permutation(rows.n)], right)).max()) >= observed
        return Released(observed, (1 + above) / (1 + EXACT_PERMUTATIONS))


@dataclass(frozen=True, kw_only=True)
class WeightedGcm(Gcm):
    """The same with weights that change their sign with z: power where the covariance does."""

    name: ClassVar[str] = "gcm-weighted"
    adds_signs: ClassVar[bool] = False
    about: ClassVar[str] = "weighted covariances of residuals in blocks"

    def residuals(self, rows: Sample, rng: PublicGenerator) -> tuple[Reals, Reals, float]:
        left, right, spread = super().residuals(rows, rng)
        return left, (right[:, :, None] * weights(rows)[:, None, :]).reshape(rows.n, -1), spread

    def two_sided(self, question: IndependenceQuestion) -> bool:
        return question.pairs == 1 and not question.given
