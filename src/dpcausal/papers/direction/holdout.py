"""Test-set privacy: the scores of the held-out rows are protected, the training rows are not.

This answers the paper.  One draw of noise on the difference of the scores, or on the signed flip distance, takes
the place of the paper's two draws.  Proofs: ``holdout.md`` and the pages of ``dependence``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

from dpcausal.core.method import Run
from dpcausal.direction.question import Pair, Released
from dpcausal.direction.scores.anm import Residuals, half_sizes
from dpcausal.errors import ParameterError
from dpcausal.mechanisms.additive import geometric
from dpcausal.papers.direction.calculators import flip_draw_tail
from dpcausal.papers.direction.half import (
    SCORES,
    OneHalf,
    OneMargin,
    checked_share,
    reaches,
    released_margin,
    released_scores,
)
from dpcausal.papers.statistics.iqr import iqr_signed_distance
from dpcausal.papers.statistics.rank import (
    flip_sensitivity,
    kendall_numerator_sensitivity,
    kendall_sensitivity,
    signed_margin,
    spearman_sensitivity,
)
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity, Unit
from dpcausal.statistics.hsic import LAPLACIAN, root_hsic_sensitivity
from dpcausal.statistics.rank import kendall_numerator

Release = Callable[[Residuals, CallBudget, PureDP], Released]


@dataclass(frozen=True)
class Rule:
    direction: Release
    proofs: tuple[str, ...]
    scores: Release | None = None

    @property
    def score_proofs(self) -> tuple[str, ...]:
        return (self.proofs[0], "score-difference", "laplace")


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
    if score == "spearman":
        return spearman_sensitivity(m, unit=Unit.TEST_ROW)
    return kendall_sensitivity(m, unit=Unit.TEST_ROW)


def _by_difference(score: str) -> Release:
    def release(rest: Residuals, allotment: CallBudget, loss: PureDP) -> Released:
        forward, backward = SCORES[score](rest)
        sensitivity = difference_sensitivity(score_sensitivity(score, rest.m))
        return released_margin(backward - forward, sensitivity, allotment, loss)

    return release


def _by_two_scores(score: str) -> Release:
    def release(rest: Residuals, allotment: CallBudget, loss: PureDP) -> Released:
        each = score_sensitivity(score, rest.m)
        both = Sensitivity(2 * Fraction(each.bound), Norm.L1, each.relation, "score-difference", each.unit)
        return released_scores(SCORES[score](rest), both, allotment, loss)

    return release


def _by_flips(distance: Callable[[Residuals], int], proof: str) -> Release:
    def release(rest: Residuals, allotment: CallBudget, loss: PureDP) -> Released:
        noisy = geometric(Query(distance(rest), flip_sensitivity(proof, Unit.TEST_ROW), "margin"), allotment, loss)
        # z ≥ 0 is a win of the first by z + 1 records, z ≤ −1 one of the second by −z: centre between 0 and −1.
        return Released(noisy + 0.5, "records", p_sign=flip_draw_tail(noisy, loss.epsilon))

    return release


def _kendall_distance(rest: Residuals) -> int:
    bound = kendall_numerator_sensitivity(rest.m).bound
    forward, backward = kendall_numerator(*rest.forward()), kendall_numerator(*rest.backward())
    return signed_margin(abs(forward), abs(backward), int(bound))


RULES: dict[str, Rule] = {
    "hsic": Rule(_by_difference("hsic"), ("root-hsic", "score-difference", "laplace"), _by_two_scores("hsic")),
    "spearman": Rule(
        _by_difference("spearman"), ("spearman-rho", "score-difference", "laplace"), _by_two_scores("spearman")
    ),
    "kendall": Rule(
        _by_flips(_kendall_distance, "rank-flip-distance"),
        ("kendall-tau", "rank-flip-distance", "geometric"),
        _by_two_scores("kendall"),
    ),
    "iqr": Rule(
        _by_flips(lambda rest: iqr_signed_distance(*reaches(rest)), "iqr-flip-distance"),
        ("iqr-reach", "iqr-flip-distance", "geometric"),
    ),
}


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
    scores: ClassVar[tuple[str, ...]] = tuple(RULES)

    def proofs_of(self, question: Pair, loss: PureDP) -> tuple[str, ...]:
        rule = RULES[question.score]
        return rule.score_proofs if self.release_scores else rule.proofs

    def plan(self, question: Pair, loss: Any) -> Self:
        ready = super().plan(question, loss)
        if self.release_scores and RULES[question.score].scores is None:
            raise ParameterError(f"the {question.score} scores are not released as values, only which is smaller")
        return ready

    def noisy(self, run: Run[Pair]) -> Released:
        rule = RULES[run.question.score]
        release = rule.scores if self.release_scores and rule.scores else rule.direction
        return release(self.fitted(run.data, run), run.budget, run.loss)
