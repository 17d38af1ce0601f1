"""Residuals for rows whose regressions are protected too: everything public but the rows themselves.

Both columns are scaled to [−1, 1] by their public bounds.  The regressions are those of ``regression.stability``, the
score is √HSIC_V with Gaussian kernels of public widths.  One replaced training row moves the difference D of the two
scores by ``training_sensitivity`` at most; ``training`` releases it.  Proofs: ``stable.md``.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.direction.question import Columns, Pair
from dpcausal.direction.scores.anm import Column, Interval, half_sizes, split_rows
from dpcausal.errors import ParameterError
from dpcausal.papers.direction.half import TRAINING_SHARE, OneHalf, checked_share
from dpcausal.papers.statistics.hsic import GAUSSIAN, root_hsic_residual_sensitivity
from dpcausal.papers.statistics.stability import (
    LARGEST_PENALTY,
    LARGEST_WIDTH,
    LEAST_PENALTY,
    LEAST_WIDTH,
    MOST_ROWS,
    feature_table,
    fit_stable,
    prediction_sensitivity,
)
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity, Unit
from dpcausal.statistics.hsic import root_hsic

WIDTH = 0.3
"""Default width of the regressions' kernel, in halves of the regressor's public range."""

SCORE_WIDTH = 0.4
"""Width of the score's kernels, of the regressor and of the residuals, in halves of the public range."""

RANGE, RESIDUAL_RANGE = (-1.0, 1.0), (-2.0, 2.0)

ROUNDING = Fraction(1, 2**52)
"""The difference of two scores in [0, ½], as a float, is within 2⁻⁵³ of exact; neighbours are two such."""


@dataclass(frozen=True)
class Setting:
    penalty: float
    width: float


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

    def residuals(self, setting: Setting) -> tuple[Column, Column]:
        """Return the residuals of y on x and of x on y, of the test rows, in [−2, 2]."""
        table = feature_table(setting.width)
        forward = fit_stable(self.training_x, self.training_y, penalty=setting.penalty, table=table)
        backward = fit_stable(self.training_y, self.training_x, penalty=setting.penalty, table=table)
        return self.y - forward(self.x), self.x - backward(self.y)


def scaled(values: Column, interval: Interval) -> Column:
    lower, upper = interval
    return np.clip((values - lower) / (upper - lower) * 2 - 1, -1.0, 1.0)


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

    *Source*: ``stable.md``, training-difference.

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
class StableFit(OneHalf):
    """A release of the scores of a test half whose regressions are protected too."""

    half: ClassVar[Unit] = Unit.TRAINING_ROW
    most_penalty: ClassVar[float] = LARGEST_PENALTY

    penalty: float | None = None
    width: float | None = None

    @property
    def setting(self) -> Setting:
        """λ and width, once they are planned."""
        return Setting(self.penalty or 0.0, self.width or 0.0)

    def sizes(self, question: Pair) -> tuple[int, int]:
        """Return the public numbers of training and test rows."""
        return half_sizes(question.n, self.training_share or TRAINING_SHARE)

    def halved(self, private: Columns, question: Pair, rng: PublicGenerator) -> Halves:
        """Return the two halves of a public random split, scaled."""
        train, test = split_rows(len(private.x), self.training_share or TRAINING_SHARE, rng)
        x, y = (scaled(*pair) for pair in zip(private[:2], question.ranges, strict=True))
        return Halves(x[train], y[train], x[test], y[test])

    def plan(self, question: Pair, loss: Any) -> Self:
        """Check the share of training rows, λ and the width, and fill their defaults, from public numbers."""
        ready = super().plan(question, loss)
        ready = replace(ready, training_share=checked_share(ready.training_share))
        n, m = ready.sizes(question)
        if n > MOST_ROWS:
            raise ParameterError(f"protected regressions take at most {MOST_ROWS} training rows, here {n}")
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
            penalty=_checked("penalty", penalty, LEAST_PENALTY, self.most_penalty),
            width=_checked("width", width, LEAST_WIDTH, LARGEST_WIDTH),
        )


def _checked(name: str, value: object, least: float, most: float) -> float:
    if not (isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most):
        raise ParameterError(f"{name} must be a number between {least:g} and {most:g}")
    return float(value)
