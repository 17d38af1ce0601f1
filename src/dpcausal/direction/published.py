"""Test-set privacy as published: Laplace noise on both scores, and propose-test-release as printed.

Theorems 1 and 3 are valid with constants that are too large; the interquartile algorithm has no guarantee.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpcausal.dependence import hsic as hsic_scores
from dpcausal.dependence import iqr_intervals, rank
from dpcausal.direction.anm import Column, Residuals, reaches
from dpcausal.direction.calculators import after_two_draws
from dpcausal.direction.holdout import halves, settle_share
from dpcausal.direction.route import Plan, Released, Route
from dpcausal.errors import LossError
from dpcausal.mechanisms.additive import laplace, laplace_scale
from dpcausal.mechanisms.propose_test_release import published_log_iqr
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.call import pure_part
from dpcausal.privacy.loss import ApproxDP, Loss, PureDP
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity

PROOFS = {
    "spearman": ("spearman-rho", "score-difference", "laplace"),
    "kendall": ("kendall-tau", "score-difference", "laplace"),
    "hsic": ("hsic-published", "score-difference", "laplace"),
    "iqr": (),
}


def _hsic_pair(rest: Residuals) -> tuple[float, float]:
    shared = {"x": rest.range_x, "y": rest.range_left_y}, {"x": rest.range_y, "y": rest.range_left_x}
    widths = (rest.width_x, rest.width_left_y), (rest.width_y, rest.width_left_x)
    # The paper divides by (m − 1)² where HSIC_V divides by m².
    factor = (rest.m / (rest.m - 1)) ** 2
    forward, backward = (
        factor
        * hsic_scores.hsic(*pair, width_x=width[0], width_y=width[1], range_x=ranges["x"], range_y=ranges["y"])
        for pair, width, ranges in zip((rest.forward(), rest.backward()), widths, shared, strict=True)
    )
    return forward, backward


def release(rest: Residuals, score: str, allotment: Allotment, loss: PureDP) -> Released:
    """Return both scores with Laplace noise of scale Δ/(ε/2), Δ the published constant.

    Scores as published: signed rho, |tau|, HSIC with (m − 1)².  *Source*: Kusner et al. (2016), Theorems 1 to 3.
    """
    if score == "spearman":
        pair = rank.spearman(*rest.forward()), rank.spearman(*rest.backward())
        each = rank.spearman_sensitivity(rest.m, rank.PUBLISHED, Unit.TEST_ROW)
        bound, largest = Fraction(each.bound), 2.0  # signed
    elif score == "kendall":
        pair = abs(rank.kendall(*rest.forward())), abs(rank.kendall(*rest.backward()))
        each = rank.kendall_sensitivity(rest.m, rank.PUBLISHED, Unit.TEST_ROW)
        bound, largest = Fraction(each.bound), 1.0
    else:
        pair = _hsic_pair(rest)
        each = hsic_scores.hsic_sensitivity(rest.m, hsic_scores.PUBLISHED_TIGHTER, unit=Unit.TEST_ROW)
        in_paper = Fraction(rest.m, rest.m - 1) ** 2
        bound, largest = Fraction(each.bound) * in_paper, float(in_paper / 4)
    both = Sensitivity(2 * bound + Fraction(1, 2**50), Norm.L1, Relation.REPLACE_ONE, each.proof, each.unit)
    noisy = laplace(Query(np.asarray(pair), both, "scores"), allotment, loss)
    forward, backward = (float(entry) for entry in noisy)
    margin = backward - forward
    probability = after_two_draws(margin, laplace_scale(both.bound, loss), largest)
    return Released(margin, "score", probability, (forward, backward))


def release_iqr(rest: Residuals, allotment: Allotment, loss: ApproxDP) -> Released:
    """Return the sums of four log IQRs from propose-test-release as printed, or no answer if any is ⊥.

    The paper counts (9ε, 3δ) for the four; so each runs at ε/9 and δ/3 of the loss.  (One row moves all four:
    (12ε, 4δ), were the algorithm itself right.)  *Source*: Kusner et al. (2016), section 4.3 and appendix.
    """
    claimed = Sensitivity(1, Norm.LINF, Relation.REPLACE_ONE, "iqr-published-unproven", Unit.TEST_ROW)
    share = ApproxDP(loss.exact_epsilon / 4, loss.exact_delta / 4)
    values: list[float | None] = []
    forward_reach, backward_reach = reaches(rest)
    for position, reach in enumerate((*forward_reach, *backward_reach)):
        first, second = iqr_intervals.proposed_distances(reach, iqr_intervals.PUBLISHED)
        log_iqr = math.log(max(reach.iqr, 2.0**-1022))
        query = Query(np.asarray([float(first), float(second), log_iqr]), claimed, f"log IQR {position + 1} of 4")
        values.append(
            published_log_iqr(query, allotment, share, epsilon=loss.epsilon / 9, delta=loss.delta / 3)
        )
    a, b, c, e = values
    if a is None or b is None or c is None or e is None:
        return Released(None, "score", None)
    return Released((c + e) - (a + b), "score", None, (a + b, c + e))


def _release(x: Column, y: Column, plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    rest = halves(x, y, plan, generator)
    if isinstance(plan.spent, ApproxDP):
        return release_iqr(rest, allotment, plan.spent)
    return release(rest, plan.score, allotment, plan.spent)  # type: ignore[arg-type]


def _pay_with_delta(loss: Loss) -> tuple[Loss, str]:
    if not (isinstance(loss, ApproxDP) and loss.exact_delta > 0):
        raise LossError("propose-test-release is paid for in ApproxDP with delta above 0")
    return loss, "published algorithm without a valid proof"


ROUTES = (
    Route(
        method="holdout",
        protect="test",
        scores=("hsic", "spearman", "kendall"),
        pay=lambda loss: pure_part(loss, "this release"),
        proofs=lambda plan: PROOFS[plan.score],
        release=_release,
        settle=settle_share,
        takes=frozenset({"training_share"}),
        gives_scores="always",
        calibration="published",
    ),
    Route(
        method="holdout",
        protect="test",
        scores=("iqr",),
        pay=_pay_with_delta,
        proofs=lambda plan: PROOFS[plan.score],
        release=_release,
        settle=settle_share,
        takes=frozenset({"training_share"}),
        gives_scores="always",
        gives_probability=lambda plan: False,
        calibration="published",
        unproven="the interquartile algorithm",
    ),
)
