"""The interquartile scores of a test half released as values, by an exponential mechanism on each; test-set privacy.

A score is log IQR(A) + log IQR(B), and one row moves all four of A, B, C, E: x, the residuals of y, y, the residuals
of x.  For the direction alone the flip distance (``holdout``) is better.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpcausal.dependence.iqr import IqrReach
from dpcausal.dependence.log_iqr import enough_steps, inverse_sensitivity, log_iqr_grid, score_steps
from dpcausal.direction.anm import Column, Interval, Residuals
from dpcausal.direction.holdout import Halving
from dpcausal.direction.question import Columns, Pair, Released, pay_pure
from dpcausal.mechanisms.selection import noisy_max
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import Loss, NoPrivacy, PureDP
from dpcausal.privacy.neighbours import Unit
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Query

FORWARD, BACKWARD = "score of first to second", "score of second to first"
def score_columns(rest: Residuals) -> tuple[tuple[Column, Interval], ...]:
    """Return A, B and C, E with their public ranges: the forward score's columns, then the backward score's."""
    return (
        (rest.x, rest.range_x),
        (rest.left_y, rest.range_left_y),
        (rest.y, rest.range_y),
        (rest.left_x, rest.range_left_x),
    )


def by_inverse_sensitivity(rest: Residuals, allotment: Allotment, loss: PureDP) -> Released:
    """Return both scores, each by noisy max over a public grid at ε/2; claim ``log-iqr-inverse-sensitivity``.

    The count of records is of both columns at once: two releases at ε/2, not four at ε/4.
    """
    part = loss.part(Fraction(1, 2))
    released = []
    for label, pair in ((FORWARD, score_columns(rest)[:2]), (BACKWARD, score_columns(rest)[2:])):
        (_, (lower, upper)), (_, second) = pair
        grid = log_iqr_grid(lower, upper, rest.m, second)
        reaches = [IqrReach(values, *interval) for values, interval in pair]
        steps = score_steps(reaches, grid, enough_steps(part.epsilon, len(grid)))
        place = noisy_max(Query(-steps, inverse_sensitivity(Unit.TEST_ROW), label), allotment, part)
        released.append(float(grid[place]))
    forward, backward = released
    return Released(backward - forward, "score", (forward, backward))


@dataclass(frozen=True, kw_only=True)
class InverseSensitivity(Halving[PureDP]):
    """Both interquartile scores of a test half by an exponential mechanism: pure ε.

    Parameters
    ----------
    training_share : float, optional
        Share of the rows that the regressions are fitted on, in (0, 1), by default 0.5.
    """

    name: ClassVar[str] = "inverse-sensitivity"
    about: ClassVar[str] = "both interquartile scores by noisy max over a grid"
    scores: ClassVar[tuple[str, ...]] = ("iqr",)

    def pay(self, loss: Loss, question: Pair) -> tuple[PureDP | NoPrivacy, str]:
        return pay_pure(loss, self.name)

    def claims(self, question: Pair, spent: PureDP) -> tuple[str, ...]:
        return "iqr-reach", "log-iqr-inverse-sensitivity", "noisy-max"

    def release(
        self, private: Columns, question: Pair, spent: PureDP, coins: PublicGenerator,
        allotment: Allotment,
    ) -> Released:  # fmt: skip
        return by_inverse_sensitivity(self.halves(private, question, coins), allotment, spent)
