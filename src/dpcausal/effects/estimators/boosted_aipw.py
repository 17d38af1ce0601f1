"""``"boosted-aipw"``: a doubly robust score whose two models bend, and a check of both from fresh noise.

1. Moments of outcome, treatment, confounders, their squares and products give lines (as method ``aipw``).
2. Histograms of the numbers and levels give bins of about equal counts, and the shares of levels.
3. Residual sums by bins, one feature after another, shrunken as wavelets, are added to both models; so are those along
   functions of two features.  Where this moved the estimate by more than its error, a second pass has finer bins.
4. The slope of the outcome's residuals on those of treatment corrects that of the lines.  With many rows, mean scores
   by bins say how the effect differs from it.
5. Sums of the final models' residuals with fresh noise estimate the bias that is left, to the second order. As much
   as the finest level of grids of two features moved the estimate is left in their cells, where models jump there.
6. The noisy mean of the scores, less that bias and the one that noise in the treatment's model leaves, is the
   estimate.  Scores are cut where noisy counts beyond several cuts predict the least error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.core.method import Run, SumsOverRows
from dpcausal.data.records import Rows
from dpcausal.effects.cells.corner_counts import GRID
from dpcausal.effects.clusters import ClusteredScores, group_sums, shared
from dpcausal.effects.moments.adaptive import predicted_signal
from dpcausal.effects.nuisance.design import FIRST, TREATMENT, Design, Pair, check_noise, checked_design, second_degree
from dpcausal.effects.nuisance.features import FINE, Feature
from dpcausal.effects.nuisance.fit import Fit
from dpcausal.effects.nuisance.fit_check import Checked, Dictionary, Step, saturated, shrunken
from dpcausal.effects.nuisance.mean_score import EXPECTED_CUT, FIRST_CUT, MeanScore, mean_score
from dpcausal.effects.nuisance.models import SIDE, Models, inverse_weight, with_ends
from dpcausal.effects.nuisance.pair_functions import PairGeometry, functions_of, functions_of_kinds
from dpcausal.effects.nuisance.residual_sums import (
    capped_squares,
    capped_squares_sensitivity,
    pair_functions_sensitivity,
    residual_sums,
    residual_sums_sensitivity,
)
from dpcausal.effects.nuisance.scores import overlap_reason
from dpcausal.effects.nuisance.tables import effect_by_bins, table_of
from dpcausal.effects.question import EffectMethod, EffectQuestion
from dpcausal.effects.result import Effect, normal_reach
from dpcausal.errors import InfeasibleError, ParameterError
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, affordable_zcdp

HISTOGRAMS, REFINING, CHECK, SQUARES = (Fraction(half, 200) for half in (8, 12, 36, 1))
"""Shares of ρ beside ``Shares``; the spread of the scores and counts take the rest."""
EFFECT_BINS = 16
SECOND_DEGREE_SIGNAL, LEAST_SIGNAL, FEWER = 1.8, 1.0, 0.9
"""Squares, and products, are columns where moments with them exceed their noise so far by the declared rows, or by the
noisy count if it is less than such a share; no answer where those of the columns alone would not exceed it so far."""
LEAST_SIZE = 1_000.0
"""No answer where n √(2ρ) √(3/columns) is less: there is noise alone."""
FROM_AN_EVENT = 2.0
"""Scores of an outcome of two levels are cut at no less than so many times that of an event at a mean probability."""
MOST_BEYOND = 0.0075
"""No interval where clearly so large a share more of the scores is beyond the cut on one side."""
MOST_CONFOUNDERS = 20
FINER, MOVED, MOST_REFINED = 2, 0.5, 3
"""A second pass has so many times the bins, along at most so many features and pairs: those along which the first moved
the estimate by more than such a share of its predicted error."""
LEFT_OF_MOVED = 6.0, 9.3
"""So many times the noise of what is learnt, as a share of how far it moved the estimate along features and along
pairs, is the error of what may be left beside what the check sees: measured."""
LEFT_OF_COARSE, CLEAR_MOVE = 0.6, 4.0
"""Such a share of what a refined pair moved beyond so many times the least move is the error of what coarse grids
leave: measured where both models jump."""
LEAST_CHANCE = 0.05
"""The mean square of the treatment's residuals is taken for no less."""
LEAST_PROBABILITIES = 0.01, 0.1
"""A third of the smaller arm's share, between these, is the least probability of an arm: smaller ones are raised."""
RARE_ARM, LEAST_SHARE = 0.1, 0.88
"""No interval where an arm has fewer, or fewer records have a probability of treatment inside its limits."""
CLEAR_TERM, LEAST_SPREAD = 2.0, 0.05
"""A term of the second degree stays in a line if its slope is so many deviations of its noise; a line leaves at least
such a share of the outcome's variance."""
BINS = ((3_500.0, 16), (8_000.0, 32), (16_000.0, 64), (40_000.0, 128), (math.inf, 256))
MANY_ROWS = 8_000.0
"""Bins of a feature by n √(2ρ) √(3/columns), and from where on there are many rows: cells of bins are fine, and how
effects differ is released."""
GRIDS_FROM = 1_500.0
"""Grids of two features are learnt where n √(2ρ) is so many times the number of features and pairs."""
FINEST = 0.022
"""Grids of a second pass are finer where the noise along each of their functions moves the probability by less."""
LADDER = (
    (4, "", 0), (8, "", 0), (8, "s", 0), (16, "s", 0), (16, "st", 0), (32, "st", 0), (32, "stb", 0), (64, "stb", 0),
    (64, "stb", SIDE),
)  # fmt: skip
"""Bins of a feature, functions of a column of a pair, and cells a side of the grids of all pairs: models are checked
along the last ones that can be afforded."""
AFFORDED = 0.83
"""The error of the correction if both models fit is at most so many times that of the mean score, by public numbers."""
TAILS, OF_TAIL, MOST_TAIL, MOSTLY = (2.4, 0.1), 4.0, 2.0, 0.95
"""Outcomes in the outermost bins are fitted if no sum of residuals is farther from 0 than so many deviations, and so
many more for each column.  If not, so many times the bias that it shows is an error of its own.  There is no interval
if that is more than so many times the others, or a smaller share of the records has a probability inside its limits,
as where overlap is weak the tails of outcome and treatment meet.  All are measured."""
CUT = (
    "{beyond:.1%} of the scores are extreme and cut, too many more on one side for an interval: the outcome is too "
    "skewed or too rare. Method 'aipw' allows for it, 'stratified' for an outcome of two levels"
)
TAIL = "the outcome's model misses the outermost values of a confounder: cut or transform it, or take more rows"
BENT = "the models do not fit, and the noise hides what bias that leaves: more rows, more loss or fewer confounders"
MISSES = 0.001
"""The outcome's p-value below which that of the treatment, whose check is weaker, does not count."""
WEAK = "the moments are too near their noise (signal to noise {signal:.2g}): more rows, more loss or fewer columns"


class Shares(NamedTuple):
    """Shares of ρ for moments, residuals by bins and along pairs, the slope, how effects differ, and the mean score."""

    moments: Fraction
    boosting: Fraction
    functions: Fraction
    slope: Fraction
    effects: Fraction
    scores: Fraction


OF_FEW_ROWS, OF_MANY_ROWS = (Shares(*(Fraction(half, 200) for half in own))
                             for own in ((32, 29, 13, 7, 0, 42), (18, 51, 8, 6, 6, 34)))  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class BoostedAipw(SumsOverRows, EffectMethod):
    """A doubly robust score with boosted models of treatment and outcome, and an interval that counts what they miss.

    For confounders among which are numbers, whose relation to treatment or outcome may bend.
    """

    name: ClassVar[str] = "boosted-aipw"
    about: ClassVar[str] = "a doubly robust score with boosted models"
    losses: ClassVar[tuple[type[Loss], ...]] = (ApproxDP, ZCDP)
    supports_clusters: ClassVar[bool] = True

    def plan(self, question: EffectQuestion, loss: ApproxDP | ZCDP | NoPrivacy) -> BoostedAipw:
        if question.estimand != "ate" or question.groups is not None:
            raise ParameterError(f"method {self.name!r} estimates the effect for everybody: estimand 'ate', no groups")
        design, n = checked_design(self.name, question, FIRST + MOST_CONFOUNDERS), question.n
        if not design.numbers:
            raise ParameterError(f"method {self.name!r} needs a bounded column among adjust; use method 'stratified'")
        if loss.exact:
            return self
        (rho, _), d = shared(affordable_zcdp(loss), question.cluster is not None), len(design.names)
        finest = FINER * LADDER[-1][0] * (d - FIRST) + (FINER * SIDE) ** 2 * len(design.pairs)
        widest = float(pair_functions_sensitivity(finest, 2).bound)
        check_noise(loss, d, n, rho.part(_shares(d, n, rho).moments), widest, rho.part(CHECK))
        times = _shortfall(d, n, rho)
        if times > 1:
            raise InfeasibleError(
                f"{n} rows at {loss} are too few for method {self.name!r} with {d - FIRST} columns: about "
                f"{math.ceil(n * times)} rows would be enough, or {times:.2g} times the epsilon; 'aipw' needs less"
            )
        return self

    def proofs_of(self, question: EffectQuestion, loss: ApproxDP | ZCDP) -> tuple[str, ...]:
        several = ("pair-functions",) if Design.of(question).pairs else ()
        layers = ("group-layers",) if question.cluster else ()
        return ("scale-histograms", "ellipse-moments", "histograms", "residual-sums", *several, "capped-squares",
                *layers, "gaussian")  # fmt: skip

    def caveats(self, question: EffectQuestion, loss: ApproxDP | ZCDP | NoPrivacy) -> tuple[str, ...]:
        return ("right if the outcome, or the probability of treatment, is a sum of functions of one confounder and "
                "coarse functions of two; fit_check tests this in part",
                "a relation with many turns, or a ratio or threshold of two confounders, can bias the estimate unseen: "
                "transform or combine such columns")  # fmt: skip

    def release(self, run: Run[EffectQuestion]) -> Effect:
        question = run.question
        rho, for_layers = shared(None if run.loss.exact else affordable_zcdp(run.loss), question.cluster is not None)
        design, n = Design.of(question), question.n
        share = _shares(len(design.names), n, rho).moments
        terms = partial(terms_of, design, n, rho and rho.part(share))
        return _estimate(question, Fit.of(question, terms, rho, share, LEAST_SIGNAL, run.budget), for_layers)


def _shares(d: int, n: int, rho: ZCDP | None) -> Shares:
    many = rho is None or n * math.sqrt(2 * rho.rho) * math.sqrt(3 / (d - FIRST)) > MANY_ROWS
    return OF_MANY_ROWS if many else OF_FEW_ROWS


def _shares_of(fit: Fit) -> Shares:
    return _shares(len(fit.design.names), fit.n, fit.rho)


def _shortfall(d: int, n: int, rho: ZCDP) -> float:
    times = 1.0
    while predicted_signal(d, math.ceil(n * times), rho.part(OF_FEW_ROWS.moments)) < LEAST_SIGNAL:
        times *= 1.1
    return max(times, LEAST_SIZE / (n * math.sqrt(2 * rho.rho) * math.sqrt(3 / (d - FIRST))))


def terms_of(design: Design, declared: int, part: ZCDP | None, count: int) -> list[Pair]:
    n, least = declared if count >= FEWER * declared else count, SECOND_DEGREE_SIGNAL
    return second_degree(design, n, part, lambda size: part is None or predicted_signal(size, n, part) >= least)


def lines(fit: Fit, features: tuple[Feature, ...], by_mean: tuple[int, ...]) -> Models:
    moments, names = fit.moments, fit.whole.names
    without = fit.products_with({names[features[place].place] for place in by_mean})
    outcome, treated, *others = (name for name in moments.names if name not in without)
    both = _line(fit, outcome, [treated, *others]), _line(fit, treated, others)
    slopes = [np.array([line.get(name, 0.0) for name in (*names[FIRST:], "intercept")]) for line in both]
    spread, whole = fit.residual_spreads([name for name in both[0] if name != "intercept"], LEAST_SPREAD)
    share = moments.mean(TREATMENT)
    least, effect = float(np.clip(min(share, 1 - share) / 3, *LEAST_PROBABILITIES)), both[0].get(treated, 0.0)
    return Models(slopes[0], slopes[1], effect, spread, moments.mean(0), whole, features, least=least, by_mean=by_mean)


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
    """Release what is learnt beside the lines: features and pairs one after another, pair functions, a second pass."""
    bins, pairs = _bins_of_first_pass(fit), fit.pairs
    features = fit.features(min(2 * FINER * bins, FINE[0]), HISTOGRAMS, FINE[_size_of_each(fit) > MANY_ROWS])
    steps: list[tuple[int, ...]] = [(place,) for place in range(len(features))]
    if fit.size > GRIDS_FROM * (len(steps) + len(pairs)):
        steps += pairs
    own = _shares_of(fit)
    share = (own.boosting if pairs else own.boosting + own.functions) / len(steps)
    rare = fit.levels_by_mean(features, fit.noise_of(residual_sums_sensitivity(2), share))
    models = with_ends(lines(fit, features, rare), fit.design.halves)
    for step in steps:
        models = _boosted(fit, models, step, share, bins)
    products = any(one != other for one, other in fit.terms.pairs)
    paid = math.inf if fit.rho is None else float(own.functions) * fit.rho.rho
    functions = functions_of(models.features, pairs, fit.n, paid, products)
    if functions:
        claim = pair_functions_sensitivity(len(functions), 2)
        noisy, noise = fit.release(fit.sums_along(models, functions), claim, "residuals along pairs", own.functions)
        scales, largest = np.array(models.scales), max(one.size for one in functions)
        geometry, variances = PairGeometry.of(models, functions, fit.correlation), models.variances(fit.chance)
        weights = geometry.weights(noisy * scales[:, None], noise * scales, variances, fit.count)
        tables = (*models.tables, *geometry.without_mains(models.features, weights))
        pairs_noise = noise * scales * largest
        models = replace(models, tables=tables, functions=functions, weights=weights, pairs_noise=pairs_noise)
    least, moves = MOVED * _predicted_score_error(fit) * models.spread, models.moves(fit.chance)
    large = sorted((step for step in moves if moves[step] > least), key=lambda step: -moves[step])[:MOST_REFINED]
    for step in large:
        models = _boosted(fit, models, step, REFINING / len(large), FINER * bins)
    return _with_slope(fit, replace(models, final=True, refined=tuple(large)))


def _bins_of_first_pass(fit: Fit) -> int:
    return next((number for end, number in BINS if _size_of_each(fit) < end), BINS[-1][1])


def _size_of_each(fit: Fit) -> float:
    return fit.size * math.sqrt(3 / (len(fit.design.names) - FIRST))


def _side_of_grids(fit: Fit) -> int:
    fine = fit.rho is None or 2 * SIDE / math.sqrt(float(REFINING) * fit.rho.rho) / fit.n <= FINEST
    return SIDE if fine else SIDE // 2


def _learning_noise(fit: Fit) -> float:
    """Return the noise of what the first pass learns along one function, in the treatment's probability: public."""
    whole = _bins_of_first_pass(fit) * (len(fit.design.names) - FIRST)
    return 0.0 if fit.rho is None else 2 * math.sqrt(whole / (float(_shares_of(fit).boosting) * fit.rho.rho)) / fit.n


def _predicted_score_error(fit: Fit) -> float:
    return math.hypot(2 / math.sqrt(fit.n), 4 * EXPECTED_CUT / (fit.size * math.sqrt(float(_shares_of(fit).scores))))


def _boosted(fit: Fit, models: Models, step: tuple[int, ...], share: Fraction, bins: int) -> Models:
    sides, columns = models.sides(step, bins, _side_of_grids(fit)), fit.columns_of(models)

    def kernel(unit: Reals, rows: Rows) -> Integers:
        cells = models.cells(unit)
        codes, residuals = models.codes(cells, step, sides), models.residuals(columns(unit), cells)
        return residual_sums(codes, math.prod(sides), residuals, rows.masses(GRID))

    noisy, noise = fit.release(fit.rows.over(kernel), residual_sums_sensitivity(2), "residual sums", share)
    scales, variances = np.array(models.scales), models.variances(fit.chance)
    sums, together = noisy * scales[:, None], fit.correlated(step)
    table = table_of(sums, noise * scales, variances, models, step, sides, fit.count, together)
    return replace(models, tables=(*models.tables, table))


def _with_slope(fit: Fit, models: Models) -> Models:
    """Release the slope of the outcome's residuals on those of treatment, which corrects the slope of the lines, and
    mean scores by bins, which say how effects differ."""
    columns, expected, own = fit.columns_of(models), models.spread / math.sqrt(fit.chance), _shares_of(fit)
    first, steps = FIRST_CUT * expected, list(enumerate(models.features)) if own.effects else []
    sides = [min(EFFECT_BINS, feature.bins) for _, feature in steps]

    def kernel(unit: Reals, rows: Rows) -> Integers:
        raw, cells, mass = columns(unit), models.cells(unit), rows.masses(GRID)
        e, left, _ = models.left_over(raw, cells)
        of_treatment, of_outcome = np.clip(models.scaled(raw[:, 1], e, left), -1, 1).T[..., None]
        sums = [residual_sums(np.zeros(len(unit), dtype=np.int64), 1, of_treatment * of_outcome, mass).ravel()]
        sums.append(capped_squares(of_treatment**2, mass))
        scores = (left * inverse_weight(raw[:, 1], e) / first)[:, None]
        sums += [residual_sums(feature.wider(side).take(own), side, scores, mass).ravel()
                 for (_, feature), own, side in zip(steps, cells, sides, strict=False)]  # fmt: skip
        return np.concatenate(sums)

    of_slope, *by_bins = np.split(fit.rows.over(kernel), np.cumsum([2, *sides[:-1]]) if sides else [])
    effects, claim = list[tuple[int, Reals]](), residual_sums_sensitivity(1)
    (products,), noise = fit.release(of_slope[:1], claim, "slope", own.slope)
    (squares,), _ = fit.release(of_slope[1:], capped_squares_sensitivity(1), "squares of residuals", SQUARES)
    for (place, feature), sums in zip(steps, by_bins, strict=True):
        noisy, deviation = fit.release(sums, claim, "scores by bins", own.effects / len(steps))
        effects.append((place, effect_by_bins(noisy * first, deviation * first, expected, feature, fit.count)))
    of_treatment, of_outcome = models.scales
    squared = max(float(squares), LEAST_CHANCE * fit.count / of_treatment**2)
    unit, chance = of_outcome / of_treatment / squared, squared * of_treatment**2 / fit.count
    models = replace(models, effects=tuple((place, own) for place, own in effects if own.any()))
    return models.with_slope(models.effect + float(products) * unit, noise * unit, chance)


def dictionary(fit: Fit, models: Models) -> Dictionary:
    """Return the functions along which the models are checked, more of them the more rows there are: released."""
    features, affordable = models.features, Dictionary(())
    for bins, kinds, side in LADDER:
        finer = [bins * (FINER if (place,) in models.refined else 1) for place in range(len(features))]
        steps: list[Step] = [((place,), (min(size, features[place].bins),)) for place, size in enumerate(finer)]
        pairs = fit.pairs if side else [step for step in models.refined if len(step) == 2]
        steps += [(pair, models.sides(pair, bins, side or _side_of_grids(fit))) for pair in pairs]
        one = Dictionary(tuple(steps), functions_of_kinds(features, fit.pairs, kinds))
        if fit.rho is None or one.predicted_error(fit.n, fit.rho.part(CHECK)) <= AFFORDED * _predicted_score_error(fit):
            affordable = one
    return affordable


def _tail_error(fit: Fit, checked: Checked) -> float:
    farthest = TAILS[0] + TAILS[1] * (len(fit.design.names) - FIRST)
    return OF_TAIL * checked.tail_bias if checked.check.tail > farthest else 0.0


def _reason(fit: Fit, models: Models, checked: Checked, score: MeanScore, missed_tail: bool, half: float) -> str:
    if (signal := fit.moments.signal_to_noise) < LEAST_SIGNAL:
        return WEAK.format(signal=signal)
    if overlap := overlap_reason(fit.moments.mean(TREATMENT), score.inside, RARE_ARM, LEAST_SHARE, models.least):
        return overlap
    if score.tails.skew > MOST_BEYOND:
        return CUT.format(beyond=score.tails.beyond)
    if saturated(models) or missed_tail:
        return TAIL
    unclear = checked.rejected and checked.check.correction**2 < 4 * checked.null
    return BENT if unclear or (checked.check.outcome_pvalue < MISSES and not checked.is_small(half)) else ""


def _estimate(question: EffectQuestion, fit: Fit, for_layers: ZCDP | None) -> Effect:
    models = learnt(fit)
    checked = fit.check(models, along := dictionary(fit, models), CHECK)
    share = fit.moments.mean(TREATMENT)
    weight = 1 / float(np.clip(min(share, 1 - share), models.least, 0.5))
    score = mean_score(fit, models, 0.0 if question.event is None else FROM_AN_EVENT * weight, _shares_of(fit).scores)
    moved, (seen, unsure) = models.finest_move(fit.chance), checked.finest
    checked_steps = [features for features, _ in along.steps]
    bias, seen_bias, others = (models.shift_bias(fit.count, steps) for steps in (None, checked_steps, ()))
    of_grids = [models.shift_bias(fit.count, [step]) - others for step in checked_steps if len(step) == 2]
    corrected = checked.check.correction if fit.rho is None else checked.beside(seen_bias, of_grids)
    estimate = models.effect + score.mean - bias - corrected - shrunken(moved, 2 * unsure)
    moves, least = models.moves(fit.chance), CLEAR_MOVE * MOVED * _predicted_score_error(fit) * models.spread
    left = _learning_noise(fit) * sum(LEFT_OF_MOVED[len(step) - 1] * move for step, move in moves.items())
    pairs = [step for step in models.refined if len(step) == 2 and _side_of_grids(fit) < SIDE]
    coarse = LEFT_OF_COARSE * sum(max(moves[step] - least, 0.0) for step in pairs)
    own = score.spread**2 / fit.count + score.noise**2 + score.tails.taken**2
    own += score.limited(models.effect_noise) ** 2 + models.left_of_levels(fit.count, fit.chance) ** 2
    tail, finest = _tail_error(fit, checked), shrunken(moved + seen, unsure)
    error = math.hypot(math.sqrt(own + checked.variance), left, finest, coarse)
    missed_tail = tail > (MOST_TAIL * error if score.inside > MOSTLY else 0.0)
    none = fit.moments.signal_to_noise < LEAST_SIGNAL
    reach, error = normal_reach(question.coverage), math.hypot(error, tail)
    reason = _reason(fit, models, checked, score, missed_tail, reach * error)
    ends = None if reason else (estimate - reach * error, estimate + reach * error)
    effect = question.effect(
        estimand="ate-winsorized", cut=score.tails.cut, interval=ends, interval_reason=reason,
        estimate=None if none else estimate, standard_error=None if none else error,
        noise_error=None if none else math.hypot(score.noise, checked.check.error),
        **fit.effect_fields(estimate, ends, score.inside, models.whole_spread, checked, limit=models.least),
    )  # fmt: skip
    if question.cluster is None:
        return effect
    scores, scores_of = ClusteredScores(score.mean, score.spread, fit.count), fit.scores(models)
    return scores.by_clusters(
        effect, lambda cut: fit.rows.over(lambda unit, rows: group_sums(cut(scores_of(unit)[0]), rows)),
        question.cluster, fit.n, for_layers, fit.budget,
    )  # fmt: skip
