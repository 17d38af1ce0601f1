"""Private causal inference, test-set privacy: the interquartile score by propose-test-release, printed and corrected.

Kusner, Sun, Sridharan & Weinberger (2016), section 4.3 and appendix, Algorithm 1.
Errata: not private as printed, by an interval that misses the range and a threshold without a factor; one row moves
all four ranges (``docs/appendix/errata-direction-iqr.md``).  Proofs: ``iqr_intervals.md``, ``propose_test_release.md``.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

from dpcausal.core import validate as public
from dpcausal.core.method import Run
from dpcausal.direction.question import Pair, Released
from dpcausal.direction.scores.anm import Column, Interval, Residuals
from dpcausal.errors import FenceError
from dpcausal.papers.direction.holdout import Halving
from dpcausal.papers.mechanisms.iqr_intervals import proposal, proposal_sensitivity
from dpcausal.papers.mechanisms.propose_test_release import Calibration, propose_test_release, tested
from dpcausal.papers.statistics.iqr import IqrReach
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ApproxDP, Loss
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity, Unit

NAMES = ("the first", "the second's residuals", "the second", "the first's residuals")

NO_SHIFT = 0.0
"""Algorithm 1: its second interval misses the IQR when log IQR has a fractional part of ½ or more."""

PRINTED = Calibration("propose-test-release-published", in_scales=False)
"""Algorithm 1, line 8: a distance of 1 passes with probability ½δ^ε."""

QUARTER = Fraction(1, 4)
"""Four releases at a quarter of ε and of δ sum to the loss exactly.

No composition theorem gives four releases more: by the optimal one (Kairouz, Oh & Viswanath 2015) four ε-DP releases
need at least a δ of (e^{4ε} − e^{ε′})/(1 + e^ε)⁴ to be within any ε′ < 4ε.
"""


def published_log_iqr(
    query: Query, allotment: CallBudget, loss: ApproxDP, *, epsilon: float, delta: float
) -> float | None:
    """Return a noisy log IQR, or ``None`` for the printed algorithm's ⊥, at its ε and δ.

    R_j = A_j + Lap(1/ε) for j = 1, 2;  log IQR + Lap(1/ε) if some R_j > 1 + log(1/δ), in order;  else ⊥

    NOT PRIVATE AS CLAIMED: the second interval may miss the IQR, so that one record moves A_2 by hundreds; the
    threshold misses the factor 1/ε.  It runs on unproven allotments only; ``loss`` is the share of the claimed loss
    that is booked.  *Source*: Kusner et al. (2016), appendix, Algorithm 1, after Dwork & Lei (2009).
    """
    if query.shape != (3,):
        raise FenceError(f"'{query.label}' must be the two distances and the log IQR")
    if allotment.private:
        raise FenceError("the printed propose-test-release has no proof and runs on unproven allotments only")
    return tested(query, allotment, loss, epsilon, delta, PRINTED)


def score_columns(rest: Residuals) -> tuple[tuple[Column, Interval], ...]:
    """Return A, B and C, E with their public ranges: the forward score's columns, then the backward score's."""
    forward = (rest.x, rest.range_x), (rest.left_y, rest.range_left_y)
    return *forward, (rest.y, rest.range_y), (rest.left_x, rest.range_left_x)


def as_printed(rest: Residuals, allotment: CallBudget, loss: ApproxDP) -> Released:
    """Return the sums of four log IQRs from propose-test-release as printed, or no answer if any is ⊥.

    The paper counts (9ε, 3δ) for the four; so each runs at ε/9 and δ/3 of the loss.  (One row moves all four:
    (12ε, 4δ), were the algorithm itself right.)
    """
    claimed = Sensitivity(1, Norm.LINF, Relation.REPLACE_ONE, "iqr-published-unproven", Unit.TEST_ROW)
    return summed([
        published_log_iqr(
            Query(proposal(IqrReach(values, *interval), NO_SHIFT), claimed, f"log IQR of {name}"), allotment,
            loss.part(QUARTER), epsilon=loss.epsilon / 9, delta=loss.delta / 3,
        )
        for name, (values, interval) in zip(NAMES, score_columns(rest), strict=True)
    ])  # fmt: skip


def corrected(rest: Residuals, allotment: CallBudget, loss: ApproxDP) -> Released:
    """Return the sums of four log IQRs at a quarter of the loss each, or no answer if any is ⊥.

    Each runs at (ε/4, δ/4), with noise Lap(8/ε) on its two tests and its value; claim ``propose-test-release``.
    """
    claim = proposal_sensitivity(Unit.TEST_ROW)
    return summed([
        propose_test_release(
            Query(proposal(IqrReach(values, *interval)), claim, f"log IQR of {name}"), allotment, loss.part(QUARTER)
        )
        for name, (values, interval) in zip(NAMES, score_columns(rest), strict=True)
    ])  # fmt: skip


def summed(values: list[float | None]) -> Released:
    a, b, c, e = values
    if a is None or b is None or c is None or e is None:
        return Released(None, "score")
    return Released((c + e) - (a + b), "score", (a + b, c + e))


@dataclass(frozen=True, kw_only=True)
class AnmTestPrivacyIqr(Halving):
    """The interquartile score by propose-test-release, for the test half: not private as printed.

    Parameters
    ----------
    constants : str
        ``"published"``: as printed; ``"corrected"``: with the intervals and the threshold that are proved here.
    training_share : float, optional
        Share of the rows that the regressions are fitted on, in (0, 1), by default 0.5.
    """

    name: ClassVar[str] = "ANM, test-set privacy, IQR"
    about: ClassVar[str] = "interquartile scores by propose-test-release"
    losses: ClassVar[tuple[type[Loss], ...]] = (ApproxDP,)
    proofs: ClassVar[tuple[str, ...]] = (
        "iqr-reach", "iqr-interval-distance", "log-iqr-proposal", "propose-test-release",
    )  # fmt: skip
    scores: ClassVar[tuple[str, ...]] = ("iqr",)

    constants: Literal["published", "corrected"] = "published"

    @property
    def unproven(self) -> str:
        return "the interquartile algorithm" if self.constants == "published" else ""

    def caveats(self, question: Pair, loss: Any) -> tuple[str, ...]:
        unproven = ("published algorithm without a valid proof",) if self.unproven else ()
        return (*unproven, *super().caveats(question, loss))

    def plan(self, question: Pair, loss: Any) -> Self:
        public.check_choice("constants", self.constants, ("published", "corrected"))
        return super().plan(question, loss)

    def noisy(self, run: Run[Pair]) -> Released:
        way = as_printed if self.unproven else corrected
        return way(self.fitted(run.data, run), run.budget, run.loss)
