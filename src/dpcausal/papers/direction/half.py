"""A system that protects one half of the rows: a public random split, a first caveat, and a form without privacy.

Its scores of residuals are those that only the published systems have.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.core.method import Run
from dpcausal.direction.methods.exact import exact_scores
from dpcausal.direction.question import Columns, DirectionMethod, Pair, Released
from dpcausal.direction.scores.anm import Column, Residuals, fit_halves, hsic_scores, split_rows
from dpcausal.errors import ParameterError
from dpcausal.mechanisms.additive import laplace, laplace_scale
from dpcausal.papers.direction.calculators import one_draw_tail, two_draws_tail
from dpcausal.papers.statistics.iqr import IqrReach, interquartile_range
from dpcausal.papers.statistics.rank import kendall, spearman
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.sensitivity import Query, Sensitivity, Unit


def reaches(rest: Residuals) -> tuple[tuple[IqrReach, IqrReach], tuple[IqrReach, IqrReach]]:
    return (
        (IqrReach(rest.x, *rest.range_x), IqrReach(rest.left_y, *rest.range_left_y)),
        (IqrReach(rest.y, *rest.range_y), IqrReach(rest.left_x, *rest.range_left_x)),
    )


Scores = Callable[[Residuals], tuple[float, float]]


def _log_spreads(spread: Callable[[Column], float]) -> Scores:
    def score(first: Column, second: Column) -> float:
        # Total: a spread of 0 counts as the least normal float.
        one, other = (math.log(max(float(spread(column)), 2.0**-1022)) for column in (first, second))
        return one + other

    return lambda rest: (score(*rest.forward()), score(*rest.backward()))


SCORES: dict[str, Scores] = {
    "hsic": hsic_scores,
    "spearman": lambda rest: (abs(spearman(*rest.forward())), abs(spearman(*rest.backward()))),
    "kendall": lambda rest: (abs(kendall(*rest.forward())), abs(kendall(*rest.backward()))),
    "iqr": _log_spreads(interquartile_range),
    "variance": _log_spreads(np.var),
}
"""The scores of ("x causes y", "y causes x") from residuals, the smaller wins; ``variance`` has no sensitivity."""


def released_margin(margin: float, sensitivity: Sensitivity, allotment: CallBudget, loss: PureDP) -> Released:
    """Return the difference of two scores with one Laplace draw."""
    noisy = laplace(Query(margin, sensitivity, "margin"), allotment, loss)
    return Released(noisy, "score", p_sign=one_draw_tail(noisy, laplace_scale(sensitivity.bound, loss)))


def released_scores(
    scores: tuple[float, float], sensitivity: Sensitivity, allotment: CallBudget, loss: PureDP
) -> Released:
    """Return both scores, each with a Laplace draw, and their difference."""
    forward, backward = map(float, laplace(Query(np.array(scores), sensitivity, "scores"), allotment, loss))
    margin = backward - forward
    tail = two_draws_tail(margin, laplace_scale(sensitivity.bound, loss))
    return Released(margin, "score", (forward, backward), p_sign=tail)


TRAINING_SHARE = 0.5
"""Default share of the rows that the regressions are fitted on."""

UNPROTECTED = {
    Unit.TEST_ROW: "the rows of the training half are NOT protected: only the test half is",
    Unit.TRAINING_ROW: "the rows of the test half are NOT protected: only the training half is",
}
"""The first caveat, by the unit."""


def checked_share(share: float | None) -> float:
    chosen = TRAINING_SHARE if share is None else share
    if isinstance(chosen, bool) or not isinstance(chosen, (int, float)) or not 0 < chosen < 1:
        raise ParameterError("training_share must be a number above 0 and below 1")
    return float(chosen)


@dataclass(frozen=True, kw_only=True)
class OneHalf(DirectionMethod):
    """A release of the scores of a test half, from regressions on a training half, that protects one of them."""

    half: ClassVar[Unit]
    supports_no_privacy: ClassVar[bool] = True

    training_share: float | None = None

    def caveats(self, question: Pair, loss: Any) -> tuple[str, ...]:
        texts = super().caveats(question, loss)
        return texts if loss.exact else (UNPROTECTED[self.half], *texts)

    def fitted(self, private: Columns, run: Run[Pair]) -> Residuals:
        """Return the residuals of a public random test half, from regressions on the other half."""
        train, test = split_rows(len(private.x), self.training_share or TRAINING_SHARE, run.rng)
        return fit_halves(private.x, private.y, train, test, *run.question.ranges, run.rng)

    def release(self, run: Run[Pair]) -> Released:
        """Release the noisy answer; without privacy the exact scores."""
        if run.loss.exact:
            return exact_scores(run, lambda whole: SCORES[run.question.score](self.fitted(whole, run)))
        return self.noisy(run)

    @abstractmethod
    def noisy(self, run: Run[Pair]) -> Released:
        """Release the noisy answer."""


@dataclass(frozen=True, kw_only=True)
class OneMargin(OneHalf):
    """A release of the difference of the scores of a test half, or of both scores."""

    release_scores: bool = False

    def plan(self, question: Pair, loss: Any) -> Self:
        if not isinstance(self.release_scores, bool):
            raise ParameterError("release_scores must be True or False")
        return super().plan(question, loss)
