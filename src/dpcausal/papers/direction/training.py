"""Training-set privacy: the rows that the regressions are fitted on are protected, the test rows are not.

Both columns are scaled to [−1, 1] by their public bounds.  One training row moves every residual by at most ρ
(``stability.md``).  So √HSIC_V of each direction, with Gaussian kernels of public widths, moves by at most ρ/s, s the
width of the residuals' kernel, and an interquartile range of residuals by at most 2ρ.  HSIC_V itself has a bound that
is no smaller and margins ten times smaller, so only its root is offered.  Proofs: ``training.md``.

Kusner, Sun, Sridharan & Weinberger (2016), section 5: HSIC by Theorem 7, rank scores where Theorem 6 calls them stable.
Errata: Theorem 7 is valid and loose by a thousand and more; Theorem 6 needs gaps between values and one step more, and
never answers on real residuals (``docs/appendix/errata-direction-training.md``).
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.core import validate as public
from dpcausal.core.method import Run
from dpcausal.direction.question import Columns, Pair, Released
from dpcausal.direction.scores.anm import Column, half_sizes, split_rows
from dpcausal.errors import FenceError, LossError, ParameterError
from dpcausal.mechanisms.additive import laplace, laplace_scale
from dpcausal.papers.direction import holdout
from dpcausal.papers.direction.holdout import OneMargin, released_margin, released_scores
from dpcausal.papers.mechanisms.propose_test_release import stable_value
from dpcausal.papers.statistics import stability
from dpcausal.papers.statistics.hsic import GAUSSIAN, root_hsic_residual_sensitivity
from dpcausal.papers.statistics.iqr import interquartile_range
from dpcausal.papers.statistics.rank import kendall, spearman
from dpcausal.papers.statistics.stability import prediction_sensitivity
from dpcausal.privacy.loss import ApproxDP, Loss, PureDP
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity, Unit
from dpcausal.statistics.hsic import hsic, root_hsic

WIDTH = 0.3
"""Default width of the regressions' kernel, in halves of the regressor's public range."""

SCORE_WIDTH = 0.4
"""Width of the score's kernels, of the regressor and of the residuals, in halves of the public range."""

RANGE, RESIDUAL_RANGE = (-1.0, 1.0), (-2.0, 2.0)

ROUNDING = Fraction(1, 2**52)
"""The difference of two scores in [0, ½], as a float, is within 2⁻⁵³ of exact; neighbours are two such."""

LEAST_IQR = 2.0**-40
"""A released interquartile range below it counts as this under the logarithm."""


@dataclass(frozen=True, eq=False, repr=False)
class Halves:
    training_x: Column
    training_y: Column
    x: Column
    y: Column

    @property
    def n(self) -> int:
        return len(self.training_x)

    @property
    def m(self) -> int:
        return len(self.x)

    def residuals(self, penalty: float, width: float) -> tuple[Column, Column]:
        """Return the residuals of y on x and of x on y, of the test rows, in [−2, 2]."""
        table = stability.feature_table(width)
        forward = stability.fit_stable(self.training_x, self.training_y, penalty=penalty, table=table)
        backward = stability.fit_stable(self.training_y, self.training_x, penalty=penalty, table=table)
        return self.y - forward(self.x), self.x - backward(self.y)


def root_scores(x: Column, y: Column, left_y: Column, left_x: Column) -> tuple[float, float]:
    """Return √HSIC_V of ("x causes y", "y causes x")."""

    def score(regressor: Column, residual: Column) -> float:
        return root_hsic(
            regressor, residual, kernel=GAUSSIAN, width_x=SCORE_WIDTH, width_y=SCORE_WIDTH,
            range_x=RANGE, range_y=RESIDUAL_RANGE,
        )  # fmt: skip

    return score(x, left_y), score(y, left_x)


def training_sensitivity(n: int, m: int, penalty: float) -> Sensitivity:
    """Return how far one of n training rows moves D, and the two scores of m test rows in l1: 2 (ρ + 2η)/s + rounding.

    *Source*: ``training.md``, training-difference.

    >>> round(float(training_sensitivity(4000, 4000, 1.0).bound), 4)
    0.0064
    """
    shift = prediction_sensitivity(n, penalty, unit=Unit.TRAINING_ROW).rounded_up
    each = root_hsic_residual_sensitivity(m, shift, SCORE_WIDTH, RESIDUAL_RANGE, unit=Unit.TRAINING_ROW)
    bound = 2 * Fraction(each.bound) + ROUNDING
    return Sensitivity(bound, Norm.L1, Relation.REPLACE_ONE, "training-difference", Unit.TRAINING_ROW)


def default_penalty(rows: int, epsilon: float) -> float:
    """Return the public λ for n training rows at ε: (8000/(nε))^{3/4}, within [0.01, 1].

    A larger λ makes a worse regression that one row moves less.  The rule is near the best on simulated designs at
    n from 500 to 128,000; above 1 little is left of the regressions, and the direction is one of ranges and widths.

    >>> round(default_penalty(80_000, 1.0), 3), default_penalty(100, 1.0)
    (0.178, 1.0)
    """
    return min(1.0, max(0.01, float((8000 / (rows * epsilon)) ** 0.75)))


@dataclass(frozen=True, kw_only=True)
class StableFit(holdout.OneHalf):
    """A release of the scores of a test half whose regressions are protected too."""

    half: ClassVar[Unit] = Unit.TRAINING_ROW
    most_penalty: ClassVar[float] = stability.LARGEST_PENALTY

    penalty: float | None = None
    width: float | None = None

    @property
    def setting(self) -> tuple[float, float]:
        """λ and width, once they are planned."""
        return self.penalty or 0.0, self.width or 0.0

    def sizes(self, question: Pair) -> tuple[int, int]:
        """Return the public numbers of training and test rows."""
        return half_sizes(question.n, self.training_share or holdout.TRAINING_SHARE)

    def halved(self, private: Columns, question: Pair, rng: PublicGenerator) -> Halves:
        """Return the two halves of a public random split, scaled."""
        train, test = split_rows(len(private.x), self.training_share or holdout.TRAINING_SHARE, rng)
        x, y = (
            np.clip((values - lower) / (upper - lower) * 2 - 1, -1.0, 1.0)
            for values, (lower, upper) in zip(private[:2], question.ranges, strict=True)
        )
        return Halves(x[train], y[train], x[test], y[test])

    def plan(self, question: Pair, loss: Any) -> Self:
        """Check the share of training rows, λ and the width, and fill their defaults, from public numbers."""
        ready = super().plan(question, loss)
        ready = replace(ready, training_share=holdout.checked_share(ready.training_share))
        n, m = ready.sizes(question)
        if n > stability.MOST_ROWS:
            raise ParameterError(f"protected regressions take at most {stability.MOST_ROWS} training rows, here {n}")
        if question.score == "hsic" and m > GAUSSIAN.most_records:
            least = math.ceil(10**4 * (1 - GAUSSIAN.most_records / question.n)) / 10**4
            raise ParameterError(
                f"the hsic score takes at most {GAUSSIAN.most_records} rows in a test half here: give a "
                f"training_share of at least {least}"
            )
        usual = 1.0 if loss.exact else default_penalty(n, float(loss.exact_epsilon))
        penalty = usual if ready.penalty is None else ready.penalty
        width = WIDTH if ready.width is None else ready.width
        return replace(
            ready,
            penalty=public.number("penalty", penalty, stability.LEAST_PENALTY, self.most_penalty),
            width=public.number("width", width, stability.LEAST_WIDTH, stability.LARGEST_WIDTH),
        )


def iqr_sensitivity(n: int, penalty: float, *, ranges: int = 1) -> Sensitivity:
    """Return how far one training row moves the interquartile ranges of residuals: 2 (ρ + 2η) each, in l1.

    The same bound with ``ranges=1`` holds for ``iqr_margin``.

    *Source*: ``training.md``, training-iqr.

    >>> round(float(iqr_sensitivity(4000, 1.0).bound), 4)
    0.0026
    """
    shift = Fraction(prediction_sensitivity(n, penalty).bound)
    bound = ranges * (2 * shift + Fraction(1, 2**46))
    return Sensitivity(bound, Norm.L1, Relation.REPLACE_ONE, "training-iqr", Unit.TRAINING_ROW)


def iqr_margin(x: Column, y: Column, left_y: Column, left_x: Column) -> float:
    """Return [IQR(y) IQR(r_X) − IQR(x) IQR(r_Y)]/(IQR(x) + IQR(y)): its sign is that of the log scores' difference.

    The ranges of x and y are those of unprotected test rows and serve as weights: the sensitivity is that of one
    range of residuals, where two log ranges would have no bound.  0 if x and y are constant.
    """
    weight_x, weight_y = interquartile_range(x), interquartile_range(y)
    if weight_x + weight_y == 0:
        return 0.0
    both = weight_y * interquartile_range(left_x) - weight_x * interquartile_range(left_y)
    return both / (weight_x + weight_y)


CLAIMS = {
    "hsic": ("ridge-stability", "root-hsic-residuals", "training-difference", "laplace"),
    "iqr": ("ridge-stability", "training-iqr", "laplace"),
}


@dataclass(frozen=True, kw_only=True)
class TrainingPrivacy(OneMargin, StableFit):
    """Noise on the margin of a test half for what a training row can move: the test rows are not protected.

    Parameters
    ----------
    release_scores : bool
        Release both scores, at the same total loss and a less sure direction.
    training_share : float, optional
        Share of the rows that the regressions are fitted on, by default 0.5.
    penalty, width : float, optional
        As in ``StableFit``: λ of the ridge and its kernel's width.
    """

    name: ClassVar[str] = "training"
    about: ClassVar[str] = "noise on the margin for the rows that the regressions are fitted on"
    scores: ClassVar[tuple[str, ...]] = tuple(CLAIMS)

    def proofs_of(self, question: Pair, loss: PureDP) -> tuple[str, ...]:
        return CLAIMS[question.score]

    def noisy(self, run: Run[Pair]) -> Released:
        halves = self.halved(run.data, run.question, run.rng)
        left = halves.residuals(*self.setting)
        penalty, _ = self.setting
        if run.question.score == "hsic":
            bound = training_sensitivity(halves.n, halves.m, penalty)
            forward, backward = root_scores(halves.x, halves.y, *left)
            if self.release_scores:
                return released_scores((forward, backward), bound, run.budget, run.loss)
            return released_margin(backward - forward, bound, run.budget, run.loss)
        if not self.release_scores:
            bound = iqr_sensitivity(halves.n, penalty)
            return released_margin(iqr_margin(halves.x, halves.y, *left), bound, run.budget, run.loss)
        ranges = np.array([interquartile_range(column) for column in left])
        both = iqr_sensitivity(halves.n, penalty, ranges=2)
        noisy = laplace(Query(ranges, both, "interquartile ranges of residuals"), run.budget, run.loss)
        # x and y are test rows, which are not protected.
        forward, backward = (
            math.log(max(interquartile_range(known), LEAST_IQR)) + math.log(max(float(of_residuals), LEAST_IQR))
            for known, of_residuals in zip((halves.x, halves.y), noisy, strict=True)
        )
        return Released(backward - forward, "score", (forward, backward))


MOST_PUBLISHED = 1.0
"""The largest λ of Theorems 5 to 7."""


def rank_gap(*columns: Column) -> float:
    """Return the smallest difference between two values of one column, over all columns."""
    return min(float(np.min(np.diff(np.sort(column)))) for column in columns)


def rank_distance(gap: float, n: int, penalty: float) -> int:
    """Return ⌈γ n λ^{3/2}/16⌉: it takes as many training rows, or more, to change the order of the residuals.

    After Theorem 6, which has a distance to instability, one less (``md``, training-ranks).
    """
    per_row = Fraction(16) / (n * Fraction(penalty**1.5 * (1 - 1e-12)))
    return math.ceil(Fraction(gap) / per_row)


def published_hsic_sensitivity(n: int, m: int, penalty: float) -> Sensitivity:
    """Return the bound of Theorem 7 on each score, 32 L √m R/n, R = 8/λ^{3/2}, L = e^{−½}/s; for λ ≤ 1."""
    slope = math.exp(-0.5) / SCORE_WIDTH
    bound = 32 * slope * math.sqrt(m) * 8 / penalty**1.5 / n * (1 + 1e-12)
    return Sensitivity(bound, Norm.L1, Relation.REPLACE_ONE, "hsic-training-published", Unit.TRAINING_ROW)


@dataclass(frozen=True, kw_only=True)
class AnmTrainingPrivacy(StableFit):
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
    most_penalty: ClassVar[float] = MOST_PUBLISHED
    scores: ClassVar[tuple[str, ...]] = ("hsic",)

    def plan(self, question: Pair, loss: Any) -> Self:
        """Refuse a small λ: it asks for more noise than can be drawn."""
        ready = super().plan(question, loss)
        bound = 2 * published_hsic_sensitivity(*ready.sizes(question), ready.setting[0]).bound
        try:
            if isinstance(loss, PureDP):
                laplace_scale(bound, loss)
        except FenceError:
            raise LossError("the published bound needs more noise than can be drawn: give a larger penalty") from None
        return ready

    def noisy(self, run: Run[Pair]) -> Released:
        halves, (penalty, width) = self.halved(run.data, run.question, run.rng), self.setting
        each = published_hsic_sensitivity(halves.n, halves.m, penalty)
        both = replace(each, bound=2 * Fraction(each.bound))
        in_paper = (halves.m / (halves.m - 1)) ** 2
        left_y, left_x = halves.residuals(penalty, width)
        forward, backward = (
            in_paper * hsic(
                regressor, left, kernel=GAUSSIAN, width_x=SCORE_WIDTH, width_y=SCORE_WIDTH,
                range_x=RANGE, range_y=RESIDUAL_RANGE,
            )
            for regressor, left in ((halves.x, left_y), (halves.y, left_x))
        )  # fmt: skip
        return released_scores((forward, backward), both, run.budget, run.loss)


@dataclass(frozen=True, kw_only=True)
class AnmTrainingRanks(StableFit):
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
    most_penalty: ClassVar[float] = MOST_PUBLISHED
    scores: ClassVar[tuple[str, ...]] = ("spearman", "kendall")

    def noisy(self, run: Run[Pair]) -> Released:
        halves, (penalty, width) = self.halved(run.data, run.question, run.rng), self.setting
        left_y, left_x = halves.residuals(penalty, width)
        correlation = spearman if run.question.score == "spearman" else kendall
        scores = abs(correlation(halves.x, left_y)), abs(correlation(halves.y, left_x))
        distance = rank_distance(rank_gap(left_y, left_x), halves.n, penalty)
        claim = Sensitivity(1, Norm.TESTED, Relation.REPLACE_ONE, "training-ranks", Unit.TRAINING_ROW)
        stated = stable_value(Query(np.array([float(distance), *scores]), claim, "rank scores"), run.budget, run.loss)
        if stated is None:
            return Released(None, "score")
        forward, backward = map(float, stated)
        return Released(backward - forward, "score", (forward, backward))
