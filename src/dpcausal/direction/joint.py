"""Joint privacy: every row is protected, by noise for the larger of what a test row and a training row can move.

The halves are split by public coins, and a row lies in one of them.  Nothing is learnt on the training half but the
regressions, and nothing on the test half but the scores: every width, every range, λ and the split are public.
Blocks do better on all that was measured (``benchmarks/README.md``), so ``method="auto"`` never takes this way.
Proofs: ``joint.md`` and ``stable.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpcausal.dependence.hsic import MOST_RECORDS, root_hsic_residual_sensitivity, root_hsic_sensitivity
from dpcausal.direction import stable
from dpcausal.direction.question import Columns, Pair, Released, pay_pure
from dpcausal.direction.stable import StableFit, training_sensitivity
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import Loss, NoPrivacy, PureDP
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Norm, Sensitivity
from dpcausal.regression.stability import rounding

SHARE = 0.8
"""Default share of training rows: a training row moves D more than a test row does, so most rows go there."""

PROOFS = ("ridge-stability", "root-hsic", "root-hsic-residuals", "joint-difference", "laplace")


def of_test_row(m: int, penalty: float) -> Fraction:
    """Return how far one of m test rows moves D, as computed: 2Δ, and rounding.

    The same training rows may give regressions that differ in their last digits, by 2η.
    """
    each = root_hsic_sensitivity(m, kernel="gaussian")
    digits = math.nextafter(float(2 * rounding(penalty)), math.inf)
    again = root_hsic_residual_sensitivity(m, digits, stable.SCORE_WIDTH, stable.RESIDUAL_RANGE, unit=Unit.ROW)
    return 2 * (Fraction(each.bound) + Fraction(again.bound)) + stable.ROUNDING


def joint_sensitivity(n: int, m: int, penalty: float) -> Sensitivity:
    """Return how far any one row moves D: the larger of the two halves' bounds.

    Notes
    -----
    *Source*: ``joint.md``, joint-difference.

    Examples
    --------
    >>> round(float(joint_sensitivity(8000, 2000, 1.0).bound), 4)
    0.0032
    """
    of_training = Fraction(training_sensitivity(n, m, penalty, Unit.ROW).bound)
    bound = max(of_training, of_test_row(m, penalty))
    return Sensitivity(bound, Norm.L1, Relation.REPLACE_ONE, "joint-difference", Unit.ROW)


@dataclass(frozen=True, kw_only=True)
class Joint(StableFit[PureDP]):
    """Noise on the difference of the scores for the larger of what a test row and a training row can move.

    Parameters
    ----------
    training_share : float, optional
        By default 0.8, or more if over 50,000 rows would be scored.
    penalty, width : float, or tuple or list of float, optional
        As in ``StableFit``: λ of the ridge and its kernel's width; of several one is chosen, and charged.
    """

    name: ClassVar[str] = "joint"
    about: ClassVar[str] = "noise for both halves on the difference of the scores"
    protect: ClassVar[str] = "everyone"
    scores: ClassVar[tuple[str, ...]] = ("hsic",)
    default_share: ClassVar[float] = SHARE

    def pay(self, loss: Loss, question: Pair) -> tuple[PureDP | NoPrivacy, str]:
        return pay_pure(loss, self.name)

    def share(self, question: Pair) -> float:
        # Gaussian kernels cost O(m²): of many rows all but the most that are scored train.
        return max(SHARE, 1 - (MOST_RECORDS["gaussian"] - 1) / question.n)

    def claims(self, question: Pair, spent: PureDP) -> tuple[str, ...]:
        return PROOFS + self.choice()

    def release(
        self, private: Columns, question: Pair, spent: PureDP, coins: PublicGenerator,
        allotment: Allotment,
    ) -> Released:  # fmt: skip
        halves, settings = self.halved(private, question, coins), self.settings()
        margins = []
        for setting in settings:
            forward, backward = stable.root_scores(halves.x, halves.y, *halves.residuals(setting))
            margins.append(backward - forward)
        bounds = [joint_sensitivity(halves.n, halves.m, setting.penalty) for setting in settings]
        return stable.release_margin(margins, bounds, settings, stable.LARGEST, allotment, spent)
