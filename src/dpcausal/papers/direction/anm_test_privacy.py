"""Private causal inference, test-set privacy: Laplace noise on both scores of the held-out rows.

Kusner, Sun, Sridharan & Weinberger (2016), section 4: Theorem 1 (ranks) and Theorem 3 (HSIC).
Erratum: the constants hold and are too large (``docs/appendix/errata-direction.md``).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpcausal.core.method import Run
from dpcausal.direction.question import Pair, Released
from dpcausal.direction.scores.anm import Residuals, hsic_scores
from dpcausal.papers.direction.half import released_scores
from dpcausal.papers.direction.holdout import Halving
from dpcausal.papers.statistics import rank
from dpcausal.papers.statistics.hsic import Calibration, hsic_sensitivity
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity, Unit
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


def _hsic_pair(rest: Residuals) -> tuple[float, float]:
    forward, backward = hsic_scores(rest, hsic)
    # The paper divides by (m − 1)² where HSIC_V divides by m².
    factor = (rest.m / (rest.m - 1)) ** 2
    return factor * forward, factor * backward


def release(rest: Residuals, score: str, allotment: CallBudget, loss: PureDP) -> Released:
    """Return both scores, signed rho, |tau|, HSIC by (m − 1)², with Laplace noise of scale Δ/(ε/2), Δ as published."""
    if score == "spearman":
        pair = rank.spearman(*rest.forward()), rank.spearman(*rest.backward())
        each = rank.spearman_sensitivity(rest.m, RANKS, Unit.TEST_ROW)
        bound = Fraction(each.bound)
    elif score == "kendall":
        pair = abs(rank.kendall(*rest.forward())), abs(rank.kendall(*rest.backward()))
        each = rank.kendall_sensitivity(rest.m, RANKS, Unit.TEST_ROW)
        bound = Fraction(each.bound)
    else:
        pair = _hsic_pair(rest)
        each = hsic_sensitivity(rest.m, HSIC, unit=Unit.TEST_ROW)
        bound = Fraction(each.bound) * Fraction(rest.m, rest.m - 1) ** 2
    both = Sensitivity(2 * bound + Fraction(1, 2**50), Norm.L1, Relation.REPLACE_ONE, each.proof, each.unit)
    return released_scores(pair, both, allotment, loss)


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
