"""``"boosted-aipw"``: a doubly robust score whose two models bend, and a check of both from fresh noise.

1. Moments of outcome, treatment, confounders, their squares and products give lines (as method ``aipw``).
2. Histograms of the numbers give bins of about equal counts.
3. Residual sums by bins, one feature after another, shrunken as wavelets, are added to both models; so are those along
   functions of two features.
4. The same sums of the final models with fresh noise estimate the bias that is left, to the second order.
5. The noisy mean of the scores, cut at a released multiple of their spread, less that bias, is the estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpcausal.core.method import Run, SumsOverRows
from dpcausal.data.records import Rows
from dpcausal.effects.cells.corner_counts import GRID
from dpcausal.effects.cells.effect import few_count_note, notes, unmeasured_fields
from dpcausal.effects.cells.value import levels_of
from dpcausal.effects.estimators.aipw_scores import TREATMENT, Design
from dpcausal.effects.estimators.boosted_fit import LEAST_SIGNAL, MOMENTS, SCORES, SQUARES, Fit, pairs_of
from dpcausal.effects.estimators.boosted_models import Models
from dpcausal.effects.estimators.fit_check import MOST_IN_TAIL, Checked
from dpcausal.effects.estimators.residual_sums import (
    capped_squares,
    capped_squares_sensitivity,
    residual_sums,
    residual_sums_sensitivity,
)
from dpcausal.effects.moments.adaptive import HISTOGRAM, LAST, SHAPING, noise_of, predicted_signal, tail_radius
from dpcausal.effects.moments.redundant import redundant_note
from dpcausal.effects.moments.slope_effect import balance_of
from dpcausal.effects.question import EffectMethod, EffectQuestion
from dpcausal.effects.result import Effect
from dpcausal.errors import FenceError, InfeasibleError, LossError, ParameterError
from dpcausal.mechanisms.additive import gaussian_scale
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, affordable_zcdp

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

LEAST_SIZE = 1_000.0
"""No answer where n √(2ρ) √(3/columns) is less: there is noise alone."""
SPREADS_INSIDE, FIRST_CUT, GROWS_FROM = 3.5, 4.0, 2_200.0
"""Scores are cut at so many spreads, more where n √(2ρ) is larger; squares at the square of that many spreads that the
lines predict."""
LEAST_OF_EXPECTED = 0.1
"""Scores spread at least by such a share of the variance that the lines predict."""
MOST_COLUMNS = 20
RARE_ARM, LEAST_SHARE = 0.1, 0.75
"""No interval where an arm has fewer, or fewer records have a probability of treatment inside its limits."""
MISFIT = 0.05
"""Level of the test that a model fits."""

TAIL = "the outcome's model misses the outermost values of a confounder: cut or transform it, or take more rows"
BENT = (
    "neither the model of treatment nor that of outcome fits, and the noise hides what bias that leaves: more rows, a "
    "larger loss or fewer confounders"
)
OVERLAP = "one arm is below 10 %, or more than 25 % of the records have a probability of treatment near 0 or 1"
WEAK = "the moments are too near their noise (signal to noise {signal:.2g}): take more rows, more loss, fewer columns"


@dataclass(frozen=True, kw_only=True)
class BoostedAipw(SumsOverRows, EffectMethod):
    """A doubly robust score with boosted models of treatment and outcome, and an interval that counts what they miss.

    For confounders among which are numbers, whose relation to treatment or outcome may bend.
    """

    name: ClassVar[str] = "boosted-aipw"
    about: ClassVar[str] = "a doubly robust score with boosted models"
    losses: ClassVar[tuple[type[Loss], ...]] = (ApproxDP, ZCDP)

    def plan(self, question: EffectQuestion, loss: ApproxDP | ZCDP | NoPrivacy) -> BoostedAipw:
        if question.estimand != "ate" or question.groups is not None:
            raise ParameterError(f"method {self.name!r} estimates the effect for everybody: estimand 'ate', no groups")
        if len(levels_of(question.column(question.treatment))) != 2:
            raise ParameterError(f"method {self.name!r} needs a treatment of two levels")
        design, n = Design.of(question), question.n
        d = len(design.names)
        if not any(code is None for code in design.codes[2:]):
            raise ParameterError(f"method {self.name!r} needs a bounded column among adjust; use method 'stratified'")
        if d - 2 > MOST_COLUMNS:
            raise ParameterError(f"method {self.name!r} takes {MOST_COLUMNS} columns and levels, here are {d - 2}")
        if loss.exact:
            return self
        rho = affordable_zcdp(loss)
        try:
            for share in (HISTOGRAM, *SHAPING, LAST):
                noise_of(d, n, tail_radius(d, 0.3), rho.part(MOMENTS).part(share))
            gaussian_scale(GRID * math.sqrt(2 * d), rho.part(SQUARES))
        except FenceError:
            raise LossError(f"{loss} is too little here: the noise could not be drawn") from None
        times = _shortfall(d, n, rho)
        if times > 1:
            raise InfeasibleError(
                f"{n} rows at {loss} are too few for method {self.name!r} with {d - 2} columns: about "
                f"{math.ceil(n * times)} rows would be enough, or {times:.2g} times the epsilon; method 'aipw' needs "
                "less"
            )
        return self

    def proofs_of(self, question: EffectQuestion, loss: ApproxDP | ZCDP) -> tuple[str, ...]:
        several = ("pair-functions",) if pairs_of(Design.of(question)) else ()
        return ("scale-histograms", "ellipse-moments", "histograms", "residual-sums", *several, "capped-squares",
                "gaussian")  # fmt: skip

    def caveats(self, question: EffectQuestion, loss: ApproxDP | ZCDP | NoPrivacy) -> tuple[str, ...]:
        return ("right if the outcome, or the probability of treatment, is a sum of functions of one confounder and "
                "coarse functions of two; fit_check tests this",)  # fmt: skip

    def release(self, run: Run[EffectQuestion]) -> Effect:
        rho = None if run.loss.exact else affordable_zcdp(run.loss)
        return _estimate(run.question, Fit.of(run.question, rho, run.budget))


def _shortfall(d: int, n: int, rho: ZCDP) -> float:
    times = 1.0
    while predicted_signal(d, math.ceil(n * times), rho.part(MOMENTS)) < LEAST_SIGNAL:
        times *= 1.1
    return max(times, LEAST_SIZE / (n * math.sqrt(2 * rho.rho) * math.sqrt(3 / (d - 2))))


def _mean_score(fit: Fit, models: Models) -> tuple[float, float, float, float, float]:
    """Release the mean score less the slope, and return it, its spread, its noise, its cut and the share inside."""
    expected = models.spread / math.sqrt(fit.chance)
    first, raw = FIRST_CUT * expected, fit.columns

    def squares(unit: Reals, rows: Rows) -> Integers:
        scores, inside = models.scores(raw(unit), unit)
        return capped_squares(np.column_stack([np.minimum((scores / first) ** 2, 1.0), inside]), rows.masses(GRID))

    claim = capped_squares_sensitivity(2)
    (square, inside), _ = fit.release(fit.rows.over(squares), claim, "squares of scores", SQUARES)
    spread = math.sqrt(max(float(square) / fit.count * first**2, LEAST_OF_EXPECTED * expected**2))
    cut = SPREADS_INSIDE * spread * max(1.0, min(fit.size, 1e9) / GROWS_FROM) ** 0.25

    def scores_of(unit: Reals, rows: Rows) -> Integers:
        scores = models.scores(raw(unit), unit)[0] / cut
        return residual_sums(np.zeros(len(unit), dtype=np.int64), 1, scores[:, None], rows.masses(GRID))

    noisy, noise = fit.release(fit.rows.over(scores_of), residual_sums_sensitivity(1), "scores", SCORES)
    share = float(np.clip(inside / fit.count, 0, 1))
    return float(noisy[0, 0]) * cut / fit.count, spread, noise * cut / fit.count, cut, share


def _reason(fit: Fit, checked: Checked, share: float) -> str:
    check, signal = checked.check, fit.moments.signal_to_noise
    if share < LEAST_SHARE or not RARE_ARM < fit.moments.mean(TREATMENT) < 1 - RARE_ARM:
        return OVERLAP
    if signal < LEAST_SIGNAL:
        return WEAK.format(signal=signal)
    if check.tail > MOST_IN_TAIL:
        return TAIL
    misfit = max(check.treatment_pvalue, check.outcome_pvalue) < MISFIT
    return BENT if misfit and check.correction**2 < 4 * checked.null else ""


def _estimate(question: EffectQuestion, fit: Fit) -> Effect:
    from scipy.special import ndtri

    moments, models = fit.moments, fit.learnt()
    checked = fit.check(models, [table.features for table in models.tables])
    mean, spread, noise, cut, share = _mean_score(fit, models)
    estimate = models.effect + mean - checked.shrunken
    error = math.sqrt(spread**2 / fit.count + noise**2 + checked.variance)
    reach, reason = float(ndtri(0.5 + question.coverage / 2)), _reason(fit, checked, share)
    ends = None if reason else (estimate - reach * error, estimate + reach * error)
    outcome, arm, *others = moments.names
    robust = moments.ols(outcome, [arm, *others])[arm].robustness_value
    return Effect.of(
        question, estimand="ate-winsorized", cut=cut, estimate=estimate, interval=ends, interval_reason=reason,
        standard_error=error, noise_error=math.hypot(noise, checked.check.error),
        signal_to_noise=moments.signal_to_noise, share_supported=share, balance=balance_of(moments),
        **unmeasured_fields(robust, estimate, ends, models.whole_spread),
        notes=(*redundant_note(fit.redundant), *notes(share, float(np.clip(moments.mean(TREATMENT), 0, 1))),
               *few_count_note(float(moments.sums[-1, -1]), question.n)),
        release=moments, fit_check=checked.check,
    )  # fmt: skip
