"""Training-set privacy: the rows that the regressions are fitted on are protected, the test rows are not.

One training row moves every residual by at most ρ (``stability.md``).  So √HSIC_V of each direction moves by at most
ρ/s, s the public width of the residuals' kernel, and an interquartile range of residuals by at most 2ρ.
HSIC_V itself has a bound that is no smaller and margins ten times smaller, so only its root is offered.  Proofs:
``stable.md`` and ``training.md``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpcausal.core.method import Run
from dpcausal.direction.question import Pair, Released
from dpcausal.direction.scores.anm import Column
from dpcausal.mechanisms.additive import laplace
from dpcausal.papers.direction import stable
from dpcausal.papers.direction.half import OneMargin, released_margin, released_scores
from dpcausal.papers.direction.stable import Halves, Setting, StableFit
from dpcausal.papers.statistics.iqr import interquartile_range
from dpcausal.papers.statistics.stability import prediction_sensitivity
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity, Unit

LEAST_IQR = 2.0**-40
"""A released interquartile range below it counts as this under the logarithm."""

Margin = tuple[float, Sensitivity]
"""A margin, and how far a training row moves it."""


def iqr_sensitivity(n: int, penalty: float, *, ranges: int = 1) -> Sensitivity:
    """Return how far one training row moves the interquartile ranges of residuals: 2 (ρ + 2η) each, in l1.

    The same bound with ``ranges=1`` holds for ``iqr_margin``.

    *Source*: ``training.md``, training-iqr.

    >>> round(float(iqr_sensitivity(4000, 1.0).bound), 4)
    0.0026
    """
    shift = Fraction(prediction_sensitivity(n, penalty).bound)
    bound = ranges * (2 * shift + Fraction(1, 2**46))
    return Sensitivity(bound, Norm.L1, Relation.REPLACE_ONE, "training-iqr", Unit.TRAINING_ROW)


def iqr_margin(x: Column, y: Column, left_y: Column, left_x: Column) -> float:
    """Return [IQR(y) IQR(r_X) − IQR(x) IQR(r_Y)]/(IQR(x) + IQR(y)): its sign is that of the log scores' difference.

    The ranges of x and y are those of unprotected test rows and serve as weights: the sensitivity is that of one
    range of residuals, where two log ranges would have no bound.  0 if x and y are constant.
    """
    weight_x, weight_y = interquartile_range(x), interquartile_range(y)
    if weight_x + weight_y == 0:
        return 0.0
    both = weight_y * interquartile_range(left_x) - weight_x * interquartile_range(left_y)
    return both / (weight_x + weight_y)


def _root_scores(halves: Halves, setting: Setting) -> tuple[float, float]:
    return stable.root_scores(halves.x, halves.y, *halves.residuals(setting))


def _hsic_margin(halves: Halves, setting: Setting) -> Margin:
    forward, backward = _root_scores(halves, setting)
    return backward - forward, stable.training_sensitivity(halves.n, halves.m, setting.penalty)


def _iqr_margin(halves: Halves, setting: Setting) -> Margin:
    margin = iqr_margin(halves.x, halves.y, *halves.residuals(setting))
    return margin, iqr_sensitivity(halves.n, setting.penalty)


def _hsic_scores(halves: Halves, setting: Setting, allotment: CallBudget, loss: PureDP) -> Released:
    bound = stable.training_sensitivity(halves.n, halves.m, setting.penalty)
    return released_scores(_root_scores(halves, setting), bound, allotment, loss)


def _iqr_scores(halves: Halves, setting: Setting, allotment: CallBudget, loss: PureDP) -> Released:
    ranges = [interquartile_range(left) for left in halves.residuals(setting)]
    both = iqr_sensitivity(halves.n, setting.penalty, ranges=2)
    noisy = laplace(Query(np.array(ranges), both, "interquartile ranges of residuals"), allotment, loss)
    # x and y are test rows, which are not protected.
    forward, backward = (
        math.log(max(interquartile_range(known), LEAST_IQR)) + math.log(max(float(left), LEAST_IQR))
        for known, left in zip((halves.x, halves.y), noisy, strict=True)
    )
    return Released(backward - forward, "score", (forward, backward))


MARGINS: dict[str, Callable[[Halves, Setting], Margin]] = {"hsic": _hsic_margin, "iqr": _iqr_margin}
BOTH_SCORES: dict[str, Callable[[Halves, Setting, CallBudget, PureDP], Released]] = {
    "hsic": _hsic_scores, "iqr": _iqr_scores,
}  # fmt: skip
CLAIMS = {
    "hsic": ("ridge-stability", "root-hsic-residuals", "training-difference", "laplace"),
    "iqr": ("ridge-stability", "training-iqr", "laplace"),
}


@dataclass(frozen=True, kw_only=True)
class TrainingPrivacy(OneMargin, StableFit):
    """Noise on the margin of a test half for what a training row can move: the test rows are not protected.

    Parameters
    ----------
    release_scores : bool
        Release both scores, at the same total loss and a less sure direction.
    training_share : float, optional
        Share of the rows that the regressions are fitted on, by default 0.5.
    penalty, width : float, optional
        As in ``StableFit``: λ of the ridge and its kernel's width.
    """

    name: ClassVar[str] = "training"
    about: ClassVar[str] = "noise on the margin for the rows that the regressions are fitted on"
    scores: ClassVar[tuple[str, ...]] = tuple(MARGINS)

    def proofs_of(self, question: Pair, loss: PureDP) -> tuple[str, ...]:
        return CLAIMS[question.score]

    def noisy(self, run: Run[Pair]) -> Released:
        question = run.question
        halves, setting = self.halved(run.data, question, run.rng), self.setting
        if self.release_scores:
            return BOTH_SCORES[question.score](halves, setting, run.budget, run.loss)
        return released_margin(*MARGINS[question.score](halves, setting), run.budget, run.loss)
