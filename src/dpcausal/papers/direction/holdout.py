"""Test-set privacy: the scores of the held-out rows are protected, the training rows are not.

This answers the paper.  One draw of noise on the difference of the scores, or on the signed flip distance, takes
the place of the paper's two draws.  What all systems share that protect one half of the rows comes first.
Proofs: ``holdout.md`` and the pages of the scores.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.core import validate as public
from dpcausal.core.method import Run
from dpcausal.direction.methods.exact import exact_scores
from dpcausal.direction.question import Columns, DirectionMethod, Pair, Released
from dpcausal.direction.scores.anm import Column, Residuals, fit_halves, half_sizes, hsic_scores, split_rows
from dpcausal.errors import ParameterError
from dpcausal.mechanisms.additive import geometric, laplace, laplace_scale
from dpcausal.papers.direction.calculators import flip_draw_tail, one_draw_tail, two_draws_tail
from dpcausal.papers.statistics import rank
from dpcausal.papers.statistics.iqr import IqrReach, interquartile_range, iqr_signed_distance
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity, Unit
from dpcausal.statistics.hsic import LAPLACIAN, root_hsic_sensitivity
from dpcausal.statistics.rank import kendall_numerator


def reaches(rest: Residuals) -> tuple[tuple[IqrReach, IqrReach], tuple[IqrReach, IqrReach]]:
    return (
        (IqrReach(rest.x, *rest.range_x), IqrReach(rest.left_y, *rest.range_left_y)),
        (IqrReach(rest.y, *rest.range_y), IqrReach(rest.left_x, *rest.range_left_x)),
    )


Scores = Callable[[Residuals], tuple[float, float]]


def _sizes(correlation: Callable[[Column, Column], float]) -> Scores:
    return lambda rest: (abs(correlation(*rest.forward())), abs(correlation(*rest.backward())))


def _log_spreads(spread: Callable[[Column], float]) -> Scores:
    def score(first: Column, second: Column) -> float:
        # Total: a spread of 0 counts as the least normal float.
        one, other = (math.log(max(float(spread(column)), 2.0**-1022)) for column in (first, second))
        return one + other

    return lambda rest: (score(*rest.forward()), score(*rest.backward()))


SCORES: dict[str, Scores] = {
    "hsic": hsic_scores,
    "spearman": _sizes(rank.spearman),
    "kendall": _sizes(rank.kendall),
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


ROUNDING = Fraction(1, 2**52)
"""The difference of two scores in [0, 1], as a float, is within 2⁻⁵³ of exact; neighbours are two such."""


def difference_sensitivity(score: Sensitivity) -> Sensitivity:
    """Return the sensitivity of s₂ − s₁ where one row moves each of two scores by at most Δ: 2Δ, and rounding.

    *Source*: ``holdout.md``, score-difference.
    """
    return Sensitivity(2 * Fraction(score.bound) + ROUNDING, Norm.L1, score.relation, "score-difference", score.unit)


def score_sensitivity(score: str, m: int) -> Sensitivity:
    if score == "hsic":
        return root_hsic_sensitivity(m, unit=Unit.TEST_ROW)
    of_rank = rank.spearman_sensitivity if score == "spearman" else rank.kendall_sensitivity
    return of_rank(m, unit=Unit.TEST_ROW)


def release_values(score: str, rest: Residuals, allotment: CallBudget, loss: PureDP) -> Released:
    """Return both scores with noise."""
    each = score_sensitivity(score, rest.m)
    both = Sensitivity(2 * Fraction(each.bound), Norm.L1, each.relation, "score-difference", each.unit)
    return released_scores(SCORES[score](rest), both, allotment, loss)


def release_direction(score: str, rest: Residuals, allotment: CallBudget, loss: PureDP) -> Released:
    """Return the noisy flip distance where there is one, else the noisy difference of the scores."""
    if score not in FLIP_DISTANCES:
        forward, backward = SCORES[score](rest)
        sensitivity = difference_sensitivity(score_sensitivity(score, rest.m))
        return released_margin(backward - forward, sensitivity, allotment, loss)
    distance, claim = FLIP_DISTANCES[score]
    noisy = geometric(Query(distance(rest), claim, "margin"), allotment, loss)
    # z ≥ 0 is a win of the first by z + 1 records, z ≤ −1 one of the second by −z: centre between 0 and −1.
    return Released(noisy + 0.5, "records", p_sign=flip_draw_tail(noisy, loss.epsilon))


def _kendall_distance(rest: Residuals) -> int:
    bound = rank.kendall_numerator_sensitivity(rest.m).bound
    forward, backward = kendall_numerator(*rest.forward()), kendall_numerator(*rest.backward())
    return rank.signed_margin(abs(forward), abs(backward), int(bound))


def _iqr_distance(rest: Residuals) -> int:
    return iqr_signed_distance(*reaches(rest))


FLIP_DISTANCES: dict[str, tuple[Callable[[Residuals], int], Sensitivity]] = {
    "kendall": (_kendall_distance, rank.flip_sensitivity("rank-flip-distance", Unit.TEST_ROW)),
    "iqr": (_iqr_distance, rank.flip_sensitivity("iqr-flip-distance", Unit.TEST_ROW)),
}

PROOFS = {
    "hsic": ("root-hsic", "score-difference", "laplace"),
    "spearman": ("spearman-rho", "score-difference", "laplace"),
    "kendall": ("kendall-tau", "rank-flip-distance", "geometric"),
    "iqr": ("iqr-reach", "iqr-flip-distance", "geometric"),
}
"""The claims of each score's direction."""

VALUE_PROOFS = {score: (PROOFS[score][0], "score-difference", "laplace") for score in ("hsic", "spearman", "kendall")}
"""Those of the scores that are released as values too."""


TRAINING_SHARE = 0.5  # by default, of the rows that the regressions are fitted on

UNPROTECTED = {
    Unit.TEST_ROW: "the rows of the training half are NOT protected: only the test half is",
    Unit.TRAINING_ROW: "the rows of the test half are NOT protected: only the training half is",
}
"""The first caveat, by the unit."""


def checked_share(share: float | None) -> float:
    chosen = TRAINING_SHARE if share is None else share
    return public.number("training_share", chosen, math.ulp(0.0), math.nextafter(1, 0))


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


@dataclass(frozen=True, kw_only=True)
class Halving(OneHalf):
    """A release of the scores of a test half, from regressions on the training half."""

    half: ClassVar[Unit] = Unit.TEST_ROW

    def plan(self, question: Pair, loss: Any) -> Self:
        """Check the share of training rows, and the size of the test half that it leaves."""
        super().plan(question, loss)
        share = checked_share(self.training_share)
        if question.score == "hsic" and half_sizes(question.n, share)[1] > LAPLACIAN.most_records:
            raise ParameterError(f"the hsic score takes at most {LAPLACIAN.most_records} rows in a test half")
        return replace(self, training_share=share)


@dataclass(frozen=True, kw_only=True)
class Holdout(OneMargin, Halving):
    """One draw of noise on the difference of the scores of a test half, or on its flip distance.

    Parameters
    ----------
    release_scores : bool
        Release both scores, at the same total loss and a less sure direction.
    training_share : float, optional
        Share of the rows that the regressions are fitted on, in (0, 1), by default 0.5.
    """

    name: ClassVar[str] = "holdout"
    about: ClassVar[str] = "noise on the margin of a test half"
    scores: ClassVar[tuple[str, ...]] = tuple(PROOFS)

    def proofs_of(self, question: Pair, loss: PureDP) -> tuple[str, ...]:
        return (VALUE_PROOFS if self.release_scores else PROOFS)[question.score]

    def plan(self, question: Pair, loss: Any) -> Self:
        ready = super().plan(question, loss)
        if self.release_scores and question.score not in VALUE_PROOFS:
            raise ParameterError(f"the {question.score} scores are not released as values, only which is smaller")
        return ready

    def noisy(self, run: Run[Pair]) -> Released:
        release = release_values if self.release_scores else release_direction
        return release(run.question.score, self.fitted(run.data, run), run.budget, run.loss)
