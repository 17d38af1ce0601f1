"""The interquartile score of a test half released as values, in three ways; test-set privacy.

A score is log IQR(A) + log IQR(B), and one row moves all four of A, B, C, E: x, the residuals of y, y, the residuals
of x.  So whatever is released four times is charged four times, whatever twice twice.

* **Inverse sensitivity**: an exponential mechanism on each score, pure ε, by far the most accurate.
* **Smooth sensitivity**: Laplace noise scaled to a private smooth bound, on the margin alone or on each score.
* **Propose-test-release**: on each of the four log IQRs, as Kusner et al. (2016) have it; corrected, or as printed.

For the direction alone the flip distance (``holdout``) is better than all three.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.dependence import iqr_intervals
from dpcausal.dependence.iqr import IqrReach
from dpcausal.dependence.log_iqr import enough_steps, inverse_sensitivity, log_iqr_grid, score_steps
from dpcausal.dependence.log_iqr_smooth import LogIqrSteps, largest_bound, smooth_log_iqr, smooth_sensitivity
from dpcausal.direction.anm import Column, Interval, Residuals
from dpcausal.direction.holdout import Halving
from dpcausal.direction.question import Columns, Pair, Released, pay_pure, pay_with_delta
from dpcausal.mechanisms.propose_test_release import propose_test_release
from dpcausal.mechanisms.selection import noisy_max
from dpcausal.mechanisms.smooth_sensitivity import smooth_laplace, smoothness
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import ApproxDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.neighbours import Unit
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Query

FORWARD, BACKWARD = "score of first to second", "score of second to first"
NAMES = ("the first", "the second's residuals", "the second", "the first's residuals")

def score_columns(rest: Residuals) -> tuple[tuple[Column, Interval], ...]:
    """Return A, B and C, E with their public ranges: the forward score's columns, then the backward score's."""
    return (
        (rest.x, rest.range_x),
        (rest.left_y, rest.range_left_y),
        (rest.y, rest.range_y),
        (rest.left_x, rest.range_left_x),
    )


QUARTER = Fraction(1, 4)
"""Four releases at a quarter of ε and of δ sum to the loss exactly.

No composition theorem gives four releases more: by the optimal one (Kairouz, Oh & Viswanath 2015) four ε-DP releases
need at least a δ of (e^{4ε} − e^{ε′})/(1 + e^ε)⁴ to be within any ε′ < 4ε.
"""


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


def by_smooth_sensitivity(rest: Residuals, allotment: Allotment, loss: ApproxDP, both: bool) -> Released:
    """Return the margin by one draw at the whole loss, or both scores at half of it; claim ``log-iqr-smooth``.

    How sure the margin's sign is depends on the scale of its noise, which is private: no probability is told.
    """
    steps = [LogIqrSteps(values, *interval) for values, interval in score_columns(rest)]
    part = loss.part(Fraction(1, 2)) if both else loss
    beta = smoothness(part).beta

    def released(label: str, columns: list[LogIqrSteps], signs: tuple[int, ...]) -> float:
        answer = smooth_log_iqr(columns, signs, beta)
        query = Query(answer, smooth_sensitivity(beta, Unit.TEST_ROW), label)
        return smooth_laplace(query, allotment, part, largest=largest_bound(columns))

    if not both:
        return Released(released("margin", steps, (-1, -1, 1, 1)), "score")
    forward, backward = released(FORWARD, steps[:2], (1, 1)), released(BACKWARD, steps[2:], (1, 1))
    return Released(backward - forward, "score", (forward, backward))


def by_propose_test_release(rest: Residuals, allotment: Allotment, loss: ApproxDP) -> Released:
    """Return the sums of four log IQRs at a quarter of the loss each, or no answer if any is ⊥.

    Each runs at (ε/4, δ/4), with noise Lap(8/ε) on its two tests and its value; claim ``propose-test-release``.
    """
    claim = iqr_intervals.proposal_sensitivity(Unit.TEST_ROW)
    return summed([
        propose_test_release(
            Query(iqr_intervals.proposal(IqrReach(values, *interval)), claim, f"log IQR of {name}"),
            allotment,
            loss.part(QUARTER),
        )
        for name, (values, interval) in zip(NAMES, score_columns(rest), strict=True)
    ])  # fmt: skip


def summed(values: list[float | None]) -> Released:
    a, b, c, e = values
    if a is None or b is None or c is None or e is None:
        return Released(None, "score")
    return Released((c + e) - (a + b), "score", (a + b, c + e))


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


@dataclass(frozen=True, kw_only=True)
class SmoothSensitivity(Halving[ApproxDP]):
    """The margin of the interquartile scores, or both, with noise scaled to a smooth bound.

    Parameters
    ----------
    release_scores : bool
        Both scores, at half of the loss each.
    training_share : float, optional
        Share of the rows that the regressions are fitted on, in (0, 1), by default 0.5.
    """

    name: ClassVar[str] = "smooth-sensitivity"
    about: ClassVar[str] = "interquartile scores with noise of a smooth bound"
    scores: ClassVar[tuple[str, ...]] = ("iqr",)

    release_scores: bool = False

    def pay(self, loss: Loss, question: Pair) -> tuple[ApproxDP | NoPrivacy, str]:
        return pay_with_delta(loss, self.name)[0], "the scale of the noise depends on the data and is not told"

    def settle(self, question: Pair, spent: ApproxDP | NoPrivacy) -> Self:
        if isinstance(spent, ApproxDP):
            smoothness(spent.part(Fraction(1, 2)))  # refused here if it is too small, before anything is spent
        return super().settle(question, spent)

    def claims(self, question: Pair, spent: ApproxDP) -> tuple[str, ...]:
        return "iqr-reach", "log-iqr-smooth", "smooth-laplace"

    def release(
        self, private: Columns, question: Pair, spent: ApproxDP, coins: PublicGenerator,
        allotment: Allotment,
    ) -> Released:  # fmt: skip
        return by_smooth_sensitivity(self.halves(private, question, coins), allotment, spent, self.release_scores)


@dataclass(frozen=True, kw_only=True)
class ProposeTestRelease(Halving[ApproxDP]):
    """Four log interquartile ranges, each by propose-test-release: it may decline to answer.

    Parameters
    ----------
    training_share : float, optional
        Share of the rows that the regressions are fitted on, in (0, 1), by default 0.5.
    """

    name: ClassVar[str] = "propose-test-release"
    about: ClassVar[str] = "interquartile scores by propose-test-release"
    scores: ClassVar[tuple[str, ...]] = ("iqr",)

    def pay(self, loss: Loss, question: Pair) -> tuple[ApproxDP | NoPrivacy, str]:
        return pay_with_delta(loss, self.name)

    def claims(self, question: Pair, spent: ApproxDP) -> tuple[str, ...]:
        return "iqr-reach", "iqr-interval-distance", "log-iqr-proposal", "propose-test-release"

    def release(
        self, private: Columns, question: Pair, spent: ApproxDP, coins: PublicGenerator,
        allotment: Allotment,
    ) -> Released:  # fmt: skip
        return by_propose_test_release(self.halves(private, question, coins), allotment, spent)
