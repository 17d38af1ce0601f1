"""Test-set privacy as published: Laplace noise on both scores.

Theorems 1 and 3 are valid with constants that are too large.  The interquartile algorithm is in ``iqr_release``.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpcausal.dependence import hsic as hsic_scores
from dpcausal.dependence import rank
from dpcausal.direction.anm import Column, Residuals
from dpcausal.direction.calculators import after_two_draws
from dpcausal.direction.holdout import halves, settle_share
from dpcausal.direction.route import Plan, Released, Route
from dpcausal.mechanisms.additive import laplace, laplace_scale
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.call import pure_part
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity

PROOFS = {
    "spearman": ("spearman-rho", "score-difference", "laplace"),
    "kendall": ("kendall-tau", "score-difference", "laplace"),
    "hsic": ("hsic-published", "score-difference", "laplace"),
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


def _release(x: Column, y: Column, plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    return release(halves(x, y, plan, generator), plan.score, allotment, plan.spent)  # type: ignore[arg-type]


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
)
