"""Private causal inference, test-set privacy: noise on both scores, and the IQR score by propose-test-release.

Kusner, Sun, Sridharan & Weinberger (2016), section 4: Theorem 1 (ranks), Theorem 3 (HSIC), appendix, Algorithm 1 (IQR).
Errata: the constants hold and are too large (``docs/appendix/errata-direction.md``).  The IQR is not private as
printed, by an interval that misses the range and a threshold without a factor; one row moves all four ranges
(``docs/appendix/errata-direction-iqr.md``).  Proofs: ``iqr.md``, ``propose_test_release.md``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

from dpcausal.core import validate as public
from dpcausal.core.method import Run
from dpcausal.direction.question import Pair, Released
from dpcausal.direction.scores.anm import Residuals, hsic_scores
from dpcausal.errors import FenceError
from dpcausal.papers.direction.holdout import SCORES, Halving, reaches, released_scores
from dpcausal.papers.mechanisms.propose_test_release import Calibration as TestCalibration
from dpcausal.papers.mechanisms.propose_test_release import propose_test_release, tested
from dpcausal.papers.statistics import rank
from dpcausal.papers.statistics.hsic import Calibration, hsic_sensitivity
from dpcausal.papers.statistics.iqr import IqrReach, proposal, proposal_sensitivity
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ApproxDP, Loss, PureDP
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity, Unit
from dpcausal.statistics.hsic import hsic

RANKS = rank.Calibration(spearman=(30, 0), kendall=(4, 0))
"""Theorem 1: valid; about five times too large for rho."""

HSIC = Calibration(slope=Fraction(12), offset=Fraction(11), proof="hsic-published")
"""After Theorem 3 and appendix, in units of HSIC_V: valid, five times too large."""

HSIC_WIDER = Calibration(slope=Fraction(16), offset=Fraction(8), proof="hsic-published")
"""Theorem 3: valid, six times too large."""

CLAIMS = {
    "hsic": ("hsic-published", "score-difference", "laplace"),
    "spearman": ("spearman-rho", "score-difference", "laplace"),
    "kendall": ("kendall-tau", "score-difference", "laplace"),
}


def _published_scores(rest: Residuals, score: str) -> tuple[tuple[float, float], Sensitivity]:
    if score == "spearman":
        signed = rank.spearman(*rest.forward()), rank.spearman(*rest.backward())
        return signed, rank.spearman_sensitivity(rest.m, RANKS, Unit.TEST_ROW)
    if score == "kendall":
        return SCORES[score](rest), rank.kendall_sensitivity(rest.m, RANKS, Unit.TEST_ROW)
    # The paper divides by (m − 1)² where HSIC_V divides by m².
    factor = (rest.m / (rest.m - 1)) ** 2
    forward, backward = hsic_scores(rest, hsic)
    each = hsic_sensitivity(rest.m, HSIC, unit=Unit.TEST_ROW)
    bound = Fraction(each.bound) * Fraction(rest.m, rest.m - 1) ** 2
    return (factor * forward, factor * backward), replace(each, bound=bound)


def release(rest: Residuals, score: str, allotment: CallBudget, loss: PureDP) -> Released:
    """Return both scores, signed rho, |tau|, HSIC by (m − 1)², with Laplace noise of scale Δ/(ε/2), Δ as published."""
    scores, each = _published_scores(rest, score)
    both = replace(each, bound=2 * Fraction(each.bound) + Fraction(1, 2**50), norm=Norm.L1)
    return released_scores(scores, both, allotment, loss)


@dataclass(frozen=True, kw_only=True)
class AnmTestPrivacy(Halving):
    """Both scores with noise of the published constants, for the test half.

    Parameters
    ----------
    training_share : float, optional
        Share of the rows that the regressions are fitted on, in (0, 1), by default 0.5.
    """

    name: ClassVar[str] = "ANM, test-set privacy"
    about: ClassVar[str] = "noise on both scores of a test half, constants as published"
    scores: ClassVar[tuple[str, ...]] = tuple(CLAIMS)

    def proofs_of(self, question: Pair, loss: PureDP) -> tuple[str, ...]:
        return CLAIMS[question.score]

    def noisy(self, run: Run[Pair]) -> Released:
        return release(self.fitted(run.data, run), run.question.score, run.budget, run.loss)


NAMES = ("the first", "the second's residuals", "the second", "the first's residuals")

NO_SHIFT = 0.0
"""Algorithm 1: its second interval misses the IQR when log IQR has a fractional part of ½ or more."""

PRINTED = TestCalibration("propose-test-release-published", in_scales=False)
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


def log_iqrs(rest: Residuals) -> Iterator[tuple[str, IqrReach]]:
    """Yield A, B and C, E, the forward score's columns, then the backward score's, each with its label."""
    forward, backward = reaches(rest)
    for name, reach in zip(NAMES, (*forward, *backward), strict=True):
        yield f"log IQR of {name}", reach


def as_printed(rest: Residuals, allotment: CallBudget, loss: ApproxDP) -> Released:
    """Return the sums of four log IQRs from propose-test-release as printed, or no answer if any is ⊥.

    The paper counts (9ε, 3δ) for the four; so each runs at ε/9 and δ/3 of the loss.  (One row moves all four:
    (12ε, 4δ), were the algorithm itself right.)
    """
    claimed = Sensitivity(1, Norm.LINF, Relation.REPLACE_ONE, "iqr-published-unproven", Unit.TEST_ROW)
    each, epsilon, delta = loss.part(QUARTER), loss.epsilon / 9, loss.delta / 3
    queries = (Query(proposal(reach, NO_SHIFT), claimed, label) for label, reach in log_iqrs(rest))
    return summed([published_log_iqr(query, allotment, each, epsilon=epsilon, delta=delta) for query in queries])


def corrected(rest: Residuals, allotment: CallBudget, loss: ApproxDP) -> Released:
    """Return the sums of four log IQRs at a quarter of the loss each, or no answer if any is ⊥.

    Each runs at (ε/4, δ/4), with noise Lap(8/ε) on its two tests and its value; claim ``propose-test-release``.
    """
    claim = proposal_sensitivity(Unit.TEST_ROW)
    queries = (Query(proposal(reach), claim, label) for label, reach in log_iqrs(rest))
    return summed([propose_test_release(query, allotment, loss.part(QUARTER)) for query in queries])


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
