"""Private causal inference, training-set privacy: HSIC by Theorem 7, and rank scores where Theorem 6 calls them stable.

Kusner, Sun, Sridharan & Weinberger (2016), section 5.
Errata: Theorem 7 is valid and loose by a thousand and more; Theorem 6 needs gaps between values and one step more, and
never answers on real residuals (``docs/appendix/errata-direction-training.md``).  Proofs: ``training.md``.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.core.method import Run
from dpcausal.direction.question import Pair, Released
from dpcausal.direction.scores.anm import Column
from dpcausal.errors import FenceError, LossError
from dpcausal.mechanisms.additive import laplace_scale
from dpcausal.papers.direction import stable
from dpcausal.papers.direction.half import released_scores
from dpcausal.papers.direction.stable import StableFit
from dpcausal.papers.mechanisms.propose_test_release import stable_value
from dpcausal.papers.statistics.hsic import GAUSSIAN
from dpcausal.papers.statistics.rank import kendall, spearman
from dpcausal.privacy.loss import ApproxDP, Loss, PureDP
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity, Unit
from dpcausal.statistics.hsic import hsic


def rank_gap(*columns: Column) -> float:
    """Return the smallest difference between two values of one column, over all columns."""
    return min(float(np.min(np.diff(np.sort(column)))) for column in columns)


def rank_distance(gap: float, n: int, penalty: float) -> int:
    """Return ⌈γ n λ^{3/2}/16⌉: it takes as many training rows, or more, to change the order of the residuals.

    After Theorem 6, which has a distance to instability, one less (``training.md``, training-ranks).
    """
    per_row = Fraction(16) / (n * Fraction(penalty**1.5 * (1 - 1e-12)))
    return math.ceil(Fraction(gap) / per_row)


def published_hsic_sensitivity(n: int, m: int, penalty: float) -> Sensitivity:
    """Return the bound of Theorem 7 on each score, 32 L √m R/n, R = 8/λ^{3/2}, L = e^{−½}/s; for λ ≤ 1."""
    slope = math.exp(-0.5) / stable.SCORE_WIDTH
    bound = 32 * slope * math.sqrt(m) * 8 / penalty**1.5 / n * (1 + 1e-12)
    return Sensitivity(bound, Norm.L1, Relation.REPLACE_ONE, "hsic-training-published", Unit.TRAINING_ROW)


@dataclass(frozen=True, kw_only=True)
class PublishedFit(StableFit):
    """One setting with λ of at most 1, as Theorems 5 to 7 have it."""

    most_penalty: ClassVar[float] = 1.0


@dataclass(frozen=True, kw_only=True)
class AnmTrainingPrivacy(PublishedFit):
    """HSIC of both directions with noise of Theorem 7, for the training half.

    Parameters
    ----------
    training_share : float, optional
        Share of the rows that the regressions are fitted on, by default 0.5.
    penalty, width : float, optional
        λ of the ridge, at most 1, and its kernel's width.
    """

    name: ClassVar[str] = "ANM, training-set privacy"
    about: ClassVar[str] = "noise on HSIC by Theorem 7"
    proofs: ClassVar[tuple[str, ...]] = ("hsic-training-published", "laplace")
    scores: ClassVar[tuple[str, ...]] = ("hsic",)

    def plan(self, question: Pair, loss: Any) -> Self:
        """Refuse a small λ: it asks for more noise than can be drawn."""
        ready = super().plan(question, loss)
        bound = 2 * published_hsic_sensitivity(*ready.sizes(question), ready.setting.penalty).bound
        try:
            if isinstance(loss, PureDP):
                laplace_scale(bound, loss)
        except FenceError:
            raise LossError("the published bound needs more noise than can be drawn: give a larger penalty") from None
        return ready

    def noisy(self, run: Run[Pair]) -> Released:
        halves, setting = self.halved(run.data, run.question, run.rng), self.setting
        each = published_hsic_sensitivity(halves.n, halves.m, setting.penalty)
        both = Sensitivity(2 * Fraction(each.bound), each.norm, each.relation, each.proof, each.unit)
        in_paper = (halves.m / (halves.m - 1)) ** 2
        left_y, left_x = halves.residuals(setting)
        forward, backward = (
            in_paper * hsic(
                regressor, left, kernel=GAUSSIAN, width_x=stable.SCORE_WIDTH, width_y=stable.SCORE_WIDTH,
                range_x=stable.RANGE, range_y=stable.RESIDUAL_RANGE,
            )
            for regressor, left in ((halves.x, left_y), (halves.y, left_x))
        )  # fmt: skip
        return released_scores((forward, backward), both, run.budget, run.loss)


@dataclass(frozen=True, kw_only=True)
class AnmTrainingRanks(PublishedFit):
    """Rank scores of both directions where they are stable by Theorem 6, which is never on real data.

    Parameters
    ----------
    training_share, penalty, width : float, optional
        As in ``AnmTrainingPrivacy``.
    """

    name: ClassVar[str] = "ANM, training-set privacy, ranks"
    about: ClassVar[str] = "rank scores where they are stable, by Theorem 6"
    losses: ClassVar[tuple[type[Loss], ...]] = (ApproxDP,)
    proofs: ClassVar[tuple[str, ...]] = ("training-ranks", "stable-value")
    scores: ClassVar[tuple[str, ...]] = ("spearman", "kendall")

    def noisy(self, run: Run[Pair]) -> Released:
        halves, setting = self.halved(run.data, run.question, run.rng), self.setting
        left_y, left_x = halves.residuals(setting)
        correlation = spearman if run.question.score == "spearman" else kendall
        scores = abs(correlation(halves.x, left_y)), abs(correlation(halves.y, left_x))
        distance = rank_distance(rank_gap(left_y, left_x), halves.n, setting.penalty)
        claim = Sensitivity(1, Norm.TESTED, Relation.REPLACE_ONE, "training-ranks", Unit.TRAINING_ROW)
        stated = stable_value(Query(np.array([float(distance), *scores]), claim, "rank scores"), run.budget, run.loss)
        if stated is None:
            return Released(None, "score")
        forward, backward = map(float, stated)
        return Released(backward - forward, "score", (forward, backward))
