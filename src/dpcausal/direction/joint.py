"""Joint privacy: every row is protected, by noise for the larger of what a test row and a training row can move.

The halves are split by public coins, and a row lies in one of them.  Nothing is learnt on the training half but the
regressions, and nothing on the test half but the scores: every width, every range, λ and the split are public.
Blocks do better on all that was measured (``benchmarks/README.md``), so ``method="auto"`` never takes this way.
Proofs: ``joint.md`` and ``stable.md``.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpcausal.dependence.hsic import MOST_RECORDS, root_hsic_residual_sensitivity, root_hsic_sensitivity
from dpcausal.direction import stable
from dpcausal.direction.anm import Column
from dpcausal.direction.route import Plan, Released, Route
from dpcausal.direction.stable import Halves, training_sensitivity
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.call import pure_part
from dpcausal.privacy.loss import PureDP
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


def release(halves: Halves, plan: Plan, allotment: Allotment, loss: PureDP) -> Released:
    """Return the margin of scaled halves, of one setting or of the chosen one."""
    settings = stable.settings(plan)
    margins = []
    for setting in settings:
        forward, backward = stable.root_scores(halves.x, halves.y, *halves.residuals(setting))
        margins.append(backward - forward)
    bounds = [joint_sensitivity(halves.n, halves.m, setting.penalty) for setting in settings]
    return stable.release_margin(margins, bounds, settings, stable.LARGEST, allotment, loss)


def _release(x: Column, y: Column, plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    return release(stable.halved(x, y, plan, generator), plan, allotment, plan.spent)  # type: ignore[arg-type]


def _settle(plan: Plan) -> Plan:
    # Gaussian kernels cost O(m²): of many rows all but the most that are scored train.
    return stable.settle(plan, share=max(SHARE, 1 - (MOST_RECORDS["gaussian"] - 1) / plan.n))


def _proofs(plan: Plan) -> tuple[str, ...]:
    choice = ("margin-choice", "noisy-max") if len(stable.settings(plan)) > 1 else ()
    return PROOFS + choice


ROUTES = (
    Route(
        method="joint",
        protect="everyone",
        scores=("hsic",),
        pay=lambda loss: pure_part(loss, "joint"),
        proofs=_proofs,
        release=_release,
        settle=_settle,
        takes=frozenset({"training_share", "penalty", "width"}),
    ),
)
