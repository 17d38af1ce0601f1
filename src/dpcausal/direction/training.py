"""Training-set privacy: the rows that the regressions are fitted on are protected, the test rows are not.

One training row moves every residual by at most ρ (``regression/stability.md``).  So √HSIC_V of each direction moves
by at most ρ/s, s the public width of the residuals' kernel, and an interquartile range of residuals by at most 2ρ.
HSIC_V itself has a bound that is no smaller and margins ten times smaller, so only its root is offered; the published
bounds for HSIC and for rank scores are here for replication.  Proofs: ``stable.md`` and ``training.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dpcausal.dependence.hsic import hsic
from dpcausal.dependence.iqr import interquartile_range
from dpcausal.dependence.rank import kendall, spearman
from dpcausal.direction import stable
from dpcausal.direction.anm import Column
from dpcausal.direction.calculators import after_two_draws
from dpcausal.direction.route import Plan, Released, Route
from dpcausal.direction.stable import Halves, Setting
from dpcausal.errors import FenceError, LossError
from dpcausal.mechanisms.additive import laplace, laplace_scale
from dpcausal.mechanisms.stable_value import stable_value
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.call import pure_part
from dpcausal.privacy.loss import ApproxDP, Loss, PureDP
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity
from dpcausal.regression.stability import prediction_sensitivity

SHARE = 0.5
"""Default share of training rows."""

LARGEST_IQR = 4.0
"""The residuals lie in [−2, 2]."""

LEAST_IQR = 2.0**-40
"""A released interquartile range below it counts as this under the logarithm."""

Parts = tuple[Halves, tuple[Setting, ...], Allotment, PureDP]


def iqr_sensitivity(n: int, penalty: float, *, ranges: int = 1) -> Sensitivity:
    """Return how far one training row moves the interquartile ranges of residuals: 2 (ρ + 2η) each, in l1.

    The same bound with ``ranges=1`` holds for ``iqr_margin``.

    Notes
    -----
    *Source*: ``training.md``, training-iqr.

    Examples
    --------
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


def rank_gap(*columns: Column) -> float:
    """Return the smallest difference between two values of one column, over all columns."""
    gaps = [float(np.min(np.diff(np.sort(column)))) for column in columns]
    return min(gaps)


def rank_distance(gap: float, n: int, penalty: float) -> int:
    """Return ⌈γ n λ^{3/2}/16⌉: it takes as many training rows, or more, to change the order of the residuals.

    Notes
    -----
    *Source*: ``training.md``, training-ranks; Kusner et al. (2016), after Theorem 6, where it is a distance to
    instability, one less.

    Examples
    --------
    >>> rank_distance(0.016, 10_000, 1.0), rank_distance(1e-6, 10_000, 1.0)
    (10, 1)
    """
    per_row = Fraction(16) / (n * Fraction(penalty**1.5 * (1 - 1e-12)))
    return math.ceil(Fraction(gap) / per_row)


def published_hsic_sensitivity(n: int, m: int, penalty: float) -> Sensitivity:
    """Return the bound of Theorem 7 on each score, 32 L √m R/n, R = 8/λ^{3/2}, L = e^{−½}/s; for λ ≤ 1.

    Notes
    -----
    *Source*: Kusner et al. (2016), Theorem 7; valid by ``training.md``, hsic-training-published.

    Examples
    --------
    >>> round(float(published_hsic_sensitivity(1000, 1000, 1.0).bound), 1)
    12.3
    """
    slope = math.exp(-0.5) / stable.SCORE_WIDTH
    bound = 32 * slope * math.sqrt(m) * 8 / penalty**1.5 / n * (1 + 1e-12)
    return Sensitivity(bound, Norm.L1, Relation.REPLACE_ONE, "hsic-training-published", Unit.TRAINING_ROW)


def _root_scores(halves: Halves, setting: Setting) -> tuple[float, float]:
    return stable.root_scores(halves.x, halves.y, *halves.residuals(setting))


def _hsic_margin(parts: Parts) -> Released:
    halves, settings, allotment, loss = parts
    scores = [_root_scores(halves, setting) for setting in settings]
    margins = [backward - forward for forward, backward in scores]
    bounds = [stable.training_sensitivity(halves.n, halves.m, setting.penalty) for setting in settings]
    return stable.release_margin(margins, bounds, settings, stable.LARGEST, allotment, loss)


def _hsic_scores(parts: Parts) -> Released:
    halves, settings, allotment, loss = parts
    scores = [_root_scores(halves, setting) for setting in settings]
    margins = [backward - forward for forward, backward in scores]
    bounds = [stable.training_sensitivity(halves.n, halves.m, setting.penalty) for setting in settings]
    place, rest = stable.chosen(margins, bounds, allotment, loss)
    forward, backward = map(float, laplace(Query(np.array(scores[place]), bounds[place], "scores"), allotment, rest))
    margin = backward - forward
    probability = after_two_draws(margin, laplace_scale(bounds[place].bound, rest), stable.LARGEST)
    setting = settings[place]
    return Released(margin, "score", probability, (forward, backward), setting.penalty, setting.width)


def _iqr_margins(halves: Halves, settings: tuple[Setting, ...]) -> tuple[list[float], list[Sensitivity]]:
    margins = [iqr_margin(halves.x, halves.y, *halves.residuals(setting)) for setting in settings]
    return margins, [iqr_sensitivity(halves.n, setting.penalty) for setting in settings]


def _iqr_margin(parts: Parts) -> Released:
    halves, settings, allotment, loss = parts
    margins, bounds = _iqr_margins(halves, settings)
    return stable.release_margin(margins, bounds, settings, LARGEST_IQR, allotment, loss)


def _iqr_scores(parts: Parts) -> Released:
    halves, settings, allotment, loss = parts
    margins, bounds = _iqr_margins(halves, settings)
    place, rest = stable.chosen(margins, bounds, allotment, loss)
    setting = settings[place]
    ranges = [interquartile_range(left) for left in halves.residuals(setting)]
    both = iqr_sensitivity(halves.n, setting.penalty, ranges=2)
    noisy = laplace(Query(np.array(ranges), both, "interquartile ranges of residuals"), allotment, rest)
    # x and y are test rows, which are not protected.
    forward, backward = (
        math.log(max(interquartile_range(known), LEAST_IQR)) + math.log(max(float(left), LEAST_IQR))
        for known, left in zip((halves.x, halves.y), noisy, strict=True)
    )
    return Released(backward - forward, "score", None, (forward, backward), setting.penalty, setting.width)


DIRECTIONS: dict[str, Callable[[Parts], Released]] = {"hsic": _hsic_margin, "iqr": _iqr_margin}
BOTH_SCORES: dict[str, Callable[[Parts], Released]] = {"hsic": _hsic_scores, "iqr": _iqr_scores}
CLAIMS = {
    "hsic": ("ridge-stability", "root-hsic-residuals", "training-difference", "laplace"),
    "iqr": ("ridge-stability", "training-iqr", "laplace"),
}


def _proofs(plan: Plan) -> tuple[str, ...]:
    choice = ("margin-choice", "noisy-max") if len(stable.settings(plan)) > 1 else ()
    return CLAIMS[plan.score] + choice


def release(halves: Halves, plan: Plan, allotment: Allotment, loss: PureDP) -> Released:
    """Return the margin, or both scores, of scaled halves."""
    kind = BOTH_SCORES if plan.release_scores else DIRECTIONS
    return kind[plan.score]((halves, stable.settings(plan), allotment, loss))


def _release(x: Column, y: Column, plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    return release(stable.halved(x, y, plan, generator), plan, allotment, plan.spent)  # type: ignore[arg-type]


def _published_hsic(x: Column, y: Column, plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    halves, (setting,) = stable.halved(x, y, plan, generator), stable.settings(plan)
    loss: PureDP = plan.spent  # type: ignore[assignment]
    each = published_hsic_sensitivity(halves.n, halves.m, setting.penalty)
    both = Sensitivity(2 * Fraction(each.bound), each.norm, each.relation, each.proof, each.unit)
    in_paper = (halves.m / (halves.m - 1)) ** 2
    left_y, left_x = halves.residuals(setting)
    scores = [
        in_paper * hsic(
            regressor, left, kernel="gaussian", width_x=stable.SCORE_WIDTH, width_y=stable.SCORE_WIDTH,
            range_x=stable.RANGE, range_y=stable.RESIDUAL_RANGE,
        )
        for regressor, left in ((halves.x, left_y), (halves.y, left_x))
    ]  # fmt: skip
    forward, backward = map(float, laplace(Query(np.array(scores), both, "scores"), allotment, loss))
    margin = backward - forward
    probability = after_two_draws(margin, laplace_scale(both.bound, loss), in_paper / 4)
    return Released(margin, "score", probability, (forward, backward), setting.penalty, setting.width)


def _published_ranks(x: Column, y: Column, plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    halves, (setting,) = stable.halved(x, y, plan, generator), stable.settings(plan)
    loss: ApproxDP = plan.spent  # type: ignore[assignment]
    left_y, left_x = halves.residuals(setting)
    correlation = spearman if plan.score == "spearman" else kendall
    scores = abs(correlation(halves.x, left_y)), abs(correlation(halves.y, left_x))
    distance = rank_distance(rank_gap(left_y, left_x), halves.n, setting.penalty)
    claim = Sensitivity(1, Norm.TESTED, Relation.REPLACE_ONE, "training-ranks", Unit.TRAINING_ROW)
    stated = stable_value(Query(np.array([float(distance), *scores]), claim, "rank scores"), allotment, loss)
    if stated is None:
        return Released(None, "score", None, None, setting.penalty, setting.width)
    forward, backward = map(float, stated)
    return Released(backward - forward, "score", None, (forward, backward), setting.penalty, setting.width)


def _pay_with_delta(loss: Loss) -> tuple[Loss, str]:
    if not (isinstance(loss, ApproxDP) and loss.exact_delta > 0):
        raise LossError("the release of stable rank scores is paid for in ApproxDP with delta above 0")
    return loss, ""


def _settle(plan: Plan) -> Plan:
    return stable.settle(plan, share=SHARE)


def _settle_published(plan: Plan) -> Plan:
    """Theorems 5 to 7 speak of one λ of at most 1; that of HSIC at a small λ asks for more noise than can be drawn."""
    plan = stable.settle(plan, share=SHARE, most_penalty=1.0, several=False)
    if plan.score == "hsic":
        (setting,) = stable.settings(plan)
        bound = 2 * published_hsic_sensitivity(*stable.sizes(plan), setting.penalty).bound
        try:
            laplace_scale(bound, plan.spent)  # type: ignore[arg-type]
        except FenceError:
            raise LossError("the published bound needs more noise than can be drawn: give a larger penalty") from None
    return plan


OPTIONS = frozenset({"training_share", "penalty", "width"})

ROUTES = (
    Route(
        method="holdout",
        protect="training",
        scores=tuple(DIRECTIONS),
        pay=lambda loss: pure_part(loss, "this release"),
        proofs=_proofs,
        release=_release,
        settle=_settle,
        takes=OPTIONS,
        gives_scores="if asked",
        gives_probability=lambda plan: not (plan.score == "iqr" and plan.release_scores),
    ),
    Route(
        method="holdout",
        protect="training",
        scores=("hsic",),
        pay=lambda loss: pure_part(loss, "this release"),
        proofs=lambda plan: ("hsic-training-published", "laplace"),
        release=_published_hsic,
        settle=_settle_published,
        takes=OPTIONS,
        gives_scores="always",
        calibration="published",
    ),
    Route(
        method="holdout",
        protect="training",
        scores=("spearman", "kendall"),
        pay=_pay_with_delta,
        proofs=lambda plan: ("training-ranks", "stable-value"),
        release=_published_ranks,
        settle=_settle_published,
        takes=OPTIONS,
        gives_scores="always",
        gives_probability=lambda plan: False,
        calibration="published",
    ),
)
