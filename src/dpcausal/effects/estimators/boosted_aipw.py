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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpcausal.core.method import Run, SumsOverRows
from dpcausal.data.records import Rows
from dpcausal.effects.cells.corner_counts import GRID
from dpcausal.effects.estimators.design import (
    FIRST,
    TREATMENT,
    Design,
    Pair,
    check_noise,
    checked_design,
    second_degree,
)
from dpcausal.effects.estimators.fit import MOST_IN_TAIL, Checked, Fit
from dpcausal.effects.estimators.models import (
    FINE,
    OF_TREATMENT,
    Feature,
    Models,
    PairFunction,
    clear_weights,
    table_of,
)
from dpcausal.effects.estimators.residual_sums import (
    capped_squares,
    capped_squares_sensitivity,
    pair_functions_sensitivity,
    residual_sums,
    residual_sums_sensitivity,
)
from dpcausal.effects.estimators.scores import overlap_reason
from dpcausal.effects.moments.adaptive import predicted_signal
from dpcausal.effects.question import EffectMethod, EffectQuestion
from dpcausal.effects.result import Effect
from dpcausal.errors import InfeasibleError, ParameterError
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, affordable_zcdp

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
MOMENTS, HISTOGRAMS, BOOSTING, FUNCTIONS, CHECK, CHECKED_FUNCTIONS, SQUARES, SCORES = (
    Fraction(percent, 100) for percent in (18, 5, 21, 8, 20, 6, 4, 18)
)
"""Shares of ρ."""
SECOND_DEGREE_SIGNAL, LEAST_SIGNAL = 2.0, 1.0
"""Squares, and products, are among the columns where moments with them exceed their noise so far by public numbers; no
answer where those of the columns alone would not exceed it so far."""
LEAST_SIZE = 1_000.0
"""No answer where n √(2ρ) √(3/columns) is less: there is noise alone."""
SPREADS_INSIDE, FIRST_CUT, GROWS_FROM = 3.5, 4.0, 2_200.0
"""Scores are cut at so many spreads, more where n √(2ρ) is larger; squares at the square of that many spreads that the
lines predict."""
LEAST_OF_EXPECTED = 0.1
"""Scores spread at least by such a share of the variance that the lines predict."""
MOST_CONFOUNDERS = 20
RARE_ARM, LEAST_SHARE = 0.1, 0.75
"""No interval where an arm has fewer, or fewer records have a probability of treatment inside its limits."""
CLEAR_TERM = 2.0
"""A term of the second degree stays in a line if its slope is so many deviations of its noise."""
LEAST_SPREAD = 0.05
"""A line leaves at least such a share of the outcome's variance."""
BINS = ((3_500.0, 16), (8_000.0, 32), (16_000.0, 64), (40_000.0, 128), (math.inf, 256))
"""Bins of a feature by n √(2ρ) √(3/columns)."""
GRIDS_FROM = 1_500.0
"""Grids of two features are learnt where n √(2ρ) is so many times the number of features and pairs."""
FINEST_FUNCTION = 0.02
"""Several functions a pair where the noise of each moves the probability by less."""
TAIL = "the outcome's model misses the outermost values of a confounder: cut or transform it, or take more rows"
BENT = (
    "neither the model of treatment nor that of outcome fits, and the noise hides what bias that leaves: more rows, a "
    "larger loss or fewer confounders"
)
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
        design, n = checked_design(self.name, question, FIRST + MOST_CONFOUNDERS), question.n
        if not design.numbers:
            raise ParameterError(f"method {self.name!r} needs a bounded column among adjust; use method 'stratified'")
        if loss.exact:
            return self
        rho, d = affordable_zcdp(loss), len(design.names)
        check_noise(loss, d, n, rho.part(MOMENTS), GRID * math.sqrt(2 * d), rho.part(SQUARES))
        times = _shortfall(d, n, rho)
        if times > 1:
            raise InfeasibleError(
                f"{n} rows at {loss} are too few for method {self.name!r} with {d - FIRST} columns: about "
                f"{math.ceil(n * times)} rows would be enough, or {times:.2g} times the epsilon; method 'aipw' needs "
                "less"
            )
        return self

    def proofs_of(self, question: EffectQuestion, loss: ApproxDP | ZCDP) -> tuple[str, ...]:
        several = ("pair-functions",) if Design.of(question).pairs else ()
        return ("scale-histograms", "ellipse-moments", "histograms", "residual-sums", *several, "capped-squares",
                "gaussian")  # fmt: skip

    def caveats(self, question: EffectQuestion, loss: ApproxDP | ZCDP | NoPrivacy) -> tuple[str, ...]:
        return ("right if the outcome, or the probability of treatment, is a sum of functions of one confounder and "
                "coarse functions of two; fit_check tests this",)  # fmt: skip

    def release(self, run: Run[EffectQuestion]) -> Effect:
        question, rho = run.question, None if run.loss.exact else affordable_zcdp(run.loss)
        pairs = terms_of(Design.of(question), question.n, rho)
        return _estimate(question, Fit.of(question, pairs, rho, MOMENTS, LEAST_SIGNAL, run.budget))


def _shortfall(d: int, n: int, rho: ZCDP) -> float:
    times = 1.0
    while predicted_signal(d, math.ceil(n * times), rho.part(MOMENTS)) < LEAST_SIGNAL:
        times *= 1.1
    return max(times, LEAST_SIZE / (n * math.sqrt(2 * rho.rho) * math.sqrt(3 / (d - FIRST))))


def terms_of(design: Design, n: int, rho: ZCDP | None) -> list[Pair]:
    def affordable(size: int) -> bool:
        return rho is None or predicted_signal(size, n, rho.part(MOMENTS)) >= SECOND_DEGREE_SIGNAL

    return second_degree(design, n, rho, affordable)


def lines(fit: Fit) -> Models:
    moments, names = fit.moments, fit.whole.names
    outcome, treated, *others = moments.names
    both = _line(fit, outcome, [treated, *others]), _line(fit, treated, others)
    slopes = [np.array([line.get(name, 0.0) for name in (*names[FIRST:], "intercept")]) for line in both]
    spread, whole = fit.residual_spreads([name for name in both[0] if name != "intercept"], LEAST_SPREAD)
    return Models(slopes[0], slopes[1], both[0].get(treated, 0.0), spread, moments.mean(0), whole, ())


def _line(fit: Fit, outcome: str, regressors: Sequence[str]) -> dict[str, float]:
    moments, chosen = fit.moments, list(regressors)
    for _ in range(2):
        if chosen:
            slopes = moments.ols(outcome, chosen).coefficients[:-1]
            chosen = [one.name for one in slopes
                      if one.name in fit.design.names or abs(one.estimate) > CLEAR_TERM * one.noise_error]  # fmt: skip
    if not chosen:
        return {"intercept": moments.mean(moments.names.index(outcome))}
    return {one.name: one.estimate for one in moments.ols(outcome, chosen).coefficients}


def learnt(fit: Fit) -> Models:
    """Release what is learnt beside the lines: one pass over the features and pairs, then pair functions."""
    columns, pairs = len(fit.design.names) - FIRST, fit.pairs
    bins = next((number for end, number in BINS if fit.size * math.sqrt(3 / columns) < end), FINE)
    models = replace(lines(fit), features=fit.features(bins, HISTOGRAMS))
    steps: list[tuple[int, ...]] = [(place,) for place in range(columns)]
    if fit.size > GRIDS_FROM * (columns + len(pairs)):
        steps += pairs
    for step in steps:
        models = _boosted(fit, models, step, BOOSTING / len(steps))
    functions = functions_of(models.features, pairs, fit.n, fit.rho)
    if functions:
        claim = pair_functions_sensitivity(len(functions), 2)
        noisy, noise = fit.release(fit.sums_along(models, functions), claim, "residuals along pairs", FUNCTIONS)
        scales, sizes = np.array(models.scales), np.array([one.size for one in functions])
        weights = clear_weights(noisy * scales[:, None], noise * scales, models.variances(fit.chance), sizes, fit.count)
        models = replace(models, functions=functions, weights=weights)
    return replace(models, final=True)


def _boosted(fit: Fit, models: Models, step: tuple[int, ...], share: Fraction) -> Models:
    sides, columns = models.sides(step, FINE), fit.columns

    def kernel(unit: Reals, rows: Rows) -> Integers:
        codes, residuals = models.codes(unit, step, sides), models.residuals(columns(unit), unit)
        return residual_sums(codes, math.prod(sides), residuals, rows.masses(GRID))

    noisy, noise = fit.release(fit.rows.over(kernel), residual_sums_sensitivity(2), "residual sums", share)
    scales, variances = np.array(models.scales), models.variances(fit.chance)
    table = table_of(noisy * scales[:, None], noise * scales, variances, models, step, sides, fit.count)
    return replace(models, tables=(*models.tables, table))


def functions_of(
    features: Sequence[Feature], pairs: Sequence[Pair], n: int, rho: ZCDP | None
) -> tuple[PairFunction, ...]:
    """Return the functions of pairs, nine, four or one a pair by public numbers."""
    most = 3
    while most > 1 and rho is not None:
        noise = 2 * OF_TREATMENT * most * math.sqrt(len(pairs) / (float(FUNCTIONS) * rho.rho)) / n
        if noise <= FINEST_FUNCTION:
            break
        most -= 1
    if most == 1:
        return tuple(PairFunction(pair, "r") for pair in pairs)
    functions = []
    for pair in pairs:
        one, other = ("stb"[:most] if features[place].bins > 2 else "s" for place in pair)
        functions += [PairFunction(pair, a + b) for a in one for b in other]
    return tuple(functions)


def _mean_score(fit: Fit, models: Models) -> tuple[float, float, float, float, float]:
    """Release the mean score less the slope, and return it, its spread, its noise, its cut and the share inside."""
    expected = models.spread / math.sqrt(fit.chance)
    first, columns = FIRST_CUT * expected, fit.columns

    def squares(unit: Reals, rows: Rows) -> Integers:
        scores, inside = models.scores(columns(unit), unit)
        return capped_squares(np.column_stack([np.minimum((scores / first) ** 2, 1.0), inside]), rows.masses(GRID))

    claim = capped_squares_sensitivity(2)
    (square, inside), _ = fit.release(fit.rows.over(squares), claim, "squares of scores", SQUARES)
    spread = math.sqrt(max(float(square) / fit.count * first**2, LEAST_OF_EXPECTED * expected**2))
    cut = SPREADS_INSIDE * spread * max(1.0, min(fit.size, 1e9) / GROWS_FROM) ** 0.25

    def scores_of(unit: Reals, rows: Rows) -> Integers:
        scores = models.scores(columns(unit), unit)[0] / cut
        return residual_sums(np.zeros(len(unit), dtype=np.int64), 1, scores[:, None], rows.masses(GRID))

    noisy, noise = fit.release(fit.rows.over(scores_of), residual_sums_sensitivity(1), "scores", SCORES)
    share = float(np.clip(inside / fit.count, 0, 1))
    return float(noisy[0, 0]) * cut / fit.count, spread, noise * cut / fit.count, cut, share


def _reason(fit: Fit, checked: Checked, share: float) -> str:
    signal = fit.moments.signal_to_noise
    if overlap := overlap_reason(fit.moments.mean(TREATMENT), share, RARE_ARM, LEAST_SHARE):
        return overlap
    if signal < LEAST_SIGNAL:
        return WEAK.format(signal=signal)
    if checked.check.tail > MOST_IN_TAIL:
        return TAIL
    return BENT if checked.rejected and checked.check.correction**2 < 4 * checked.null else ""


def _estimate(question: EffectQuestion, fit: Fit) -> Effect:
    from scipy.special import ndtri

    models = learnt(fit)
    checked = fit.check(models, [table.features for table in models.tables], (CHECK, CHECKED_FUNCTIONS))
    mean, spread, noise, cut, share = _mean_score(fit, models)
    estimate = models.effect + mean - checked.shrunken
    error = math.sqrt(spread**2 / fit.count + noise**2 + checked.variance)
    reach, reason = float(ndtri(0.5 + question.coverage / 2)), _reason(fit, checked, share)
    ends = None if reason else (estimate - reach * error, estimate + reach * error)
    return question.effect(
        estimand="ate-winsorized", cut=cut, estimate=estimate, interval=ends, interval_reason=reason,
        standard_error=error, noise_error=math.hypot(noise, checked.check.error),
        **fit.effect_fields(estimate, ends, share, models.whole_spread, checked),
    )  # fmt: skip
