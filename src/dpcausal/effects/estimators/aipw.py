"""``"aipw"``: an effect with numbers adjusted for, by a score whose models come from noisy moments.

Three releases.  Moments of outcome, treatment, what is adjusted for and, where they cost little by public numbers, its
squares and products (``second_degree.py``) give a line for the outcome and one for the probability of treatment.  With
these fixed each row has the score

    ψ = m(1) − m(0) + a (y − m(1)) / e − (1 − a) (y − m(0)) / (1 − e)

whose mean is the effect if either line is right; errors of the lines, noise among them, enter as a product.  How many
scores lie beyond each of six public multiples of their spread, and how many probabilities lie near 0 or 1, is counted
next, by groups, and the scores are cut at the multiple whose interval these counts predict as the shortest.  They are
summed by groups as ``stratified`` are (claim ``corner-counts``: lines and cut are functions of what was released).
What the counts say that the cut may have taken widens the interval (``cut.py``), which is one for the mean of scores
that are cut at the edge of what noise would not hide.  A score lies as far from its centre as the outcome lies from its
line, over the probability of the record's arm: so that is the effect on outcomes that are cut so far from their line,
times that probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpcausal.core.method import Run, SumsOverRows
from dpcausal.data.schema import Bounded
from dpcausal.effects.cells.corner_counts import GRID, corner_counts_sensitivity, functionals
from dpcausal.effects.cells.effect import few_count_note, notes, unmeasured_fields
from dpcausal.effects.cells.value import levels_of
from dpcausal.effects.estimators.aipw_scores import TREATMENT, Design, Scores, lines_of, noise_of_sum
from dpcausal.effects.estimators.boosted_fit import Fit
from dpcausal.effects.estimators.clipping import cuts_of, times_as_wide
from dpcausal.effects.estimators.fit_check import Checked
from dpcausal.effects.estimators.line_check import BENT, UNCHECKED, bends, check_claims, check_lines, checkable
from dpcausal.effects.estimators.polynomial import Pair, QuadraticTerms, drop_weak_terms, products_of, squares_of
from dpcausal.effects.moments.adaptive import (
    HISTOGRAM,
    LAST,
    SHAPING,
    StreamedRows,
    estimate_location_scale,
    final_moments,
    noise_of,
    predicted_signal,
    tail_radius,
)
from dpcausal.effects.moments.redundant import NEARLY, nearly, redundant_note, without_redundant
from dpcausal.effects.moments.release import JointMoments
from dpcausal.effects.moments.slope_effect import balance_of
from dpcausal.effects.question import EffectMethod, EffectQuestion
from dpcausal.effects.result import Effect, GroupEffect, Interval
from dpcausal.errors import FenceError, InfeasibleError, LossError, ParameterError, Setting
from dpcausal.mechanisms.additive import gaussian, gaussian_scale
from dpcausal.mechanisms.gate import book_exact
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, affordable_zcdp
from dpcausal.privacy.sensitivity import Norm, Query

Reals = npt.NDArray[np.float64]

MOMENTS = tuple(Fraction(percent, 100) for percent in range(14, 51, 3))
WITH_CHECK = MOMENTS[3]
COUNTS, FEWER = Fraction(25, 100), Fraction(12, 100)
"""Shares of ρ of the moments, the least of these that predicts enough signal; of these and the check of the lines
together at least; of the counts, and where it is said that tails are short; the scores have the rest."""
LEAST_SHARE, RARE_ARM = 0.95, 0.1
"""No interval where fewer records have a probability inside, or an arm has fewer: what is cut is not simulated for."""
LEAST_SIGNAL, ENOUGH_SIGNAL = 2.5, 3.6
"""No interval where the moments are nearer to their noise, and no answer where they would be by public numbers; what is
enough for nearly all intervals to be shown."""
MOST_TIMES = 1e6
"""So many times the epsilon are no advice: some numbers of rows and columns no loss helps."""

MOST_CUT = 2.0
"""No interval where counts show that cut scores moved the mean by so many standard errors; where they could have moved
it by less, it is so much wider at that end."""
SEEN_FROM, MOST_WIDE = 4_000, 2.5
"""No interval, unless tails are said to be short, of fewer rows or where one that allows for long tails is predicted so
many times as wide as without noise."""
MOST_COLUMNS = 40
DEAR, ROWS_A_COLUMN = Fraction(32, 100), 20
"""Squares, and products, are among the columns where moments with them have enough signal at a lesser share; without
noise where there are so many rows for each column."""

CUT = "scores were cut at {cut:.3g} times their spread, too many for the interval: the outcome is too skewed"
WEAK = "the moments are too near their noise (signal to noise {signal:.2g}): take more rows, more loss, fewer columns"
BLIND = (
    "with so few rows at this loss a long tail of the outcome on one side, which moves the estimate, would not be "
    "seen: more rows, a larger loss, or say methods.Aipw(light_tails=True) if lines leave none of the outcome"
)
NONE = "no interval, unless there are 4,000 rows and bounds show that no outcome lies far from its line"
RESTS = "intervals rely on what was said, that lines leave no long tail of the outcome on one side (light_tails=True)"
ALLOWS = (
    "extreme outcomes are winsorised at a cut that the result reports (ate-winsorized), unless the bounds show "
    "that none lies beyond; public numbers predict intervals {wide:.2g} times as wide as without "
    "noise, and {short:.2g} times if light_tails=True states it of the residuals"
)
UNSEEN = (
    "outcomes count as if cut {cut:.3g} times the probability of their record's arm from their line; as many as "
    "{count:.0f} records may lie beyond, unseen: did each lie twice as far, the effect on outcomes that are not cut "
    "would differ by up to {differ:.3g}, and by up to {most:.3g} as extreme as bounds allow"
)
RARE = "one of the two outcomes is so rare that scores of such records are cut: method 'stratified' has limits for it"
OVERLAP = "one arm is below 10 %, or more than 5 % of the records have a probability of treatment near 0 or 1"


@dataclass(frozen=True, kw_only=True)
class Aipw(SumsOverRows, EffectMethod):
    """Lines for outcome and treatment from noisy moments, then the noisy mean of a doubly robust score.

    Parameters
    ----------
    light_tails : bool
        Whether the outcome's residuals have no long tail on one side, as normal errors have none:
        needed for an interval of fewer than 4,000 rows, or of more where noise would hide one; elsewhere intervals are
        narrower, and estimates nearer, where it is said.
    lines_only : bool
        Whether what is adjusted for comes without its squares and products, even where these cost little by public
        numbers.
    """

    name: ClassVar[str] = "aipw"
    about: ClassVar[str] = "a doubly robust score from noisy moments"
    losses: ClassVar[tuple[type[Loss], ...]] = (ApproxDP, ZCDP)
    proofs: ClassVar[tuple[str, ...]] = ("scale-histograms", "ellipse-moments", "corner-counts", "gaussian")
    assumptions: ClassVar[tuple[tuple[str, Any], ...]] = (("light_tails", True),)

    light_tails: bool = False
    lines_only: bool = False

    def plan(self, question: EffectQuestion, loss: ApproxDP | ZCDP | NoPrivacy) -> Aipw:
        if question.estimand != "ate":
            text = f"method {self.name!r} estimates the average effect only"
            hint = "use ", Setting("method", "stratified")
            raise ParameterError(text, argument="estimand", rule="estimand", value=question.estimand, hint=hint)
        if len(levels_of(question.column(question.treatment))) != 2:
            raise ParameterError("method 'aipw' needs a treatment of two levels")
        d, n = len(Design.of(question).names), question.n
        if d > MOST_COLUMNS:
            raise ParameterError(f"method 'aipw' takes {MOST_COLUMNS} columns and levels, here are {d}")
        if not loss.exact:
            rho = affordable_zcdp(loss)
            try:
                for share in (HISTOGRAM, *SHAPING, LAST):
                    noise_of(d, n, tail_radius(d, 0.3), rho.part(WITH_CHECK).part(share))
                _deviation(rho, FEWER)
            except FenceError:
                raise LossError(f"{loss} is too little here: the noise could not be drawn") from None
            most = rho.part(MOMENTS[-1])
            signal = predicted_signal(d, n, most)
            if signal < LEAST_SIGNAL:
                enough, times = n, 1.0
                while predicted_signal(d, enough, most) < LEAST_SIGNAL:
                    enough = math.ceil(enough * 1.1)
                while times < MOST_TIMES and predicted_signal(d, n, ZCDP(most.rho * times**2)) < LEAST_SIGNAL:
                    times *= 1.05
                or_epsilon = f", or {times:.2g} times the epsilon" if times < MOST_TIMES else ""
                raise InfeasibleError(
                    f"{n} rows at {loss} predict moments of {d} columns at {max(signal, 0):.2g} times their noise, "
                    f"and {LEAST_SIGNAL:g} is needed: about {enough} rows would be enough{or_epsilon}, or adjust for "
                    "fewer columns"
                )
        return self

    def proofs_of(self, question: EffectQuestion, loss: ApproxDP | ZCDP) -> tuple[str, ...]:
        design = Design.of(question)
        columns = len(design.names) + len(self._bent(design, question, loss))
        checked = check_share(design, columns, question.n, affordable_zcdp(loss)) > 0
        return self.proofs + check_claims(design) * checked

    def caveats(self, question: EffectQuestion, loss: ApproxDP | ZCDP | NoPrivacy) -> tuple[str, ...]:
        design, n = Design.of(question), question.n
        bent = self._bent(design, question, loss)
        terms_text = " and its squares" * (len(bent) > 0) + " and products" * any(i != j for i, j in bent)
        right = f"right if the outcome, or the probability of treatment, is linear in what is adjusted for{terms_text}"
        if loss.exact:
            return (right,)
        d, rho = len(design.names) + len(bent), affordable_zcdp(loss)
        signal = predicted_signal(d, n, rho.part(moments_share(d, n, rho)))
        far = f"public numbers predict moments {signal:.2g} times their noise, an interval needs {LEAST_SIGNAL:g}"
        wide, short = (times_as_wide(n, one._noise(d, n, rho), one.light_tails)
                       for one in (replace(self, light_tails=light) for light in (False, True)))  # fmt: skip
        tails = RESTS if self.light_tails else ALLOWS.format(wide=wide, short=short)
        checked = (UNCHECKED,) if checkable(design) and not check_share(design, d, n, rho) else ()
        return (right, *checked, *((far,) if signal < 2 * LEAST_SIGNAL else ()),
                f"{NONE}: {BLIND}" if self._blind(d, n, rho) else tails)  # fmt: skip

    def _bent(self, design: Design, question: EffectQuestion, loss: ApproxDP | ZCDP | NoPrivacy) -> list[Pair]:
        squares, n = squares_of(design), question.n
        for pairs in ([*squares, *products_of(design)], squares) if not self.lines_only else ():
            d = len(design.names) + len(pairs)
            if d > MOST_COLUMNS:
                continue
            if isinstance(loss, NoPrivacy):
                if n >= ROWS_A_COLUMN * d:
                    return pairs
            elif moments_share(d, n, affordable_zcdp(loss)) < DEAR:
                return pairs
        return []

    @property
    def _counts(self) -> Fraction:
        return FEWER if self.light_tails else COUNTS

    def _noise(self, columns: int, n: int, rho: ZCDP) -> float:
        return noise_of_sum(_deviation(rho, 1 - max(moments_share(columns, n, rho), WITH_CHECK) - self._counts))

    def _blind(self, columns: int, n: int, rho: ZCDP, farthest: float = math.inf) -> bool:
        wide = times_as_wide(n, self._noise(columns, n, rho), False, farthest)
        return (n < SEEN_FROM or wide > MOST_WIDE) and not self.light_tails

    def release(self, run: Run[EffectQuestion]) -> Effect:
        if run.loss.exact:
            return self._without_noise(run)
        question, allotment = run.question, run.budget
        design, n, rho = Design.of(question), question.n, affordable_zcdp(run.loss)
        bent = self._bent(design, question, run.loss)
        summed, d = StreamedRows.of(question.table, _names(question, design), design.units), len(design.names)
        share = moments_share(d + len(bent), n, rho)
        check = check_share(design, d + len(bent), n, rho)
        scores, part = 1 - share - check - self._counts, rho.part(share)
        shape = estimate_location_scale(summed, d, n, allotment, part, SHAPING[:1])
        more = QuadraticTerms.about(shape, bent, design)
        seen, whole = summed.with_terms(more), more.design(design)
        shape = estimate_location_scale(seen, len(whole.names), n, allotment, part, SHAPING[1:], more.shape(shape))
        last = final_moments(seen, shape, n, allotment, part)
        moments = drop_weak_terms(JointMoments.of_rounds(whole.names, n, whole.ranges, last), d, LEAST_SIGNAL)
        moments, gone = without_redundant(moments, 2, LEAST_SIGNAL)
        if gone:
            moments = moments.among(more.without_factor(moments.names, design))
        more = more.among(moments.names)
        moments = replace(moments, products=more.products(design))
        fit = Fit(n, design, more, moments, gone, summed, allotment, rho.part(check)) if check else None
        summed, design = summed.with_terms(more), more.design(design)
        lines, deviations = lines_of(moments, design.names), (_deviation(rho, scores), _deviation(rho, self._counts))
        checked = None if fit is None else check_lines(fit, lines)
        tally = Scores.of(question, lines, design, cuts_of(n))
        bound = corner_counts_sensitivity(1, Norm.L2)
        query = Query(summed.over(tally.far), bound, "far scores, probabilities near 0 or 1")
        far = np.asarray(gaussian(query, allotment, rho.part(self._counts)), dtype=np.float64)
        tally = tally.cut(far, deviations, self.light_tails)
        query = Query(summed.over(tally), bound, "scores")
        noisy = np.asarray(gaussian(query, allotment, rho.part(scores)), dtype=np.float64)
        blind = self._blind(len(whole.names), n, rho, tally.farthest)
        return _answer(question, moments, tally, noisy, deviations, blind, gone, checked)

    def _without_noise(self, run: Run[EffectQuestion]) -> Effect:
        question = run.question
        book_exact("effect", run.budget)
        design = Design.of(question)
        rows = question.table.parts(_names(question, design))
        unit = design.units(rows)
        moments = JointMoments.without_noise(design.names, question.n, design.ranges, unit, rows)
        more = QuadraticTerms.about(moments.scales, self._bent(design, question, run.loss), design)
        whole = more.design(design)
        moments = JointMoments.without_noise(whole.names, question.n, whole.ranges, more(unit), rows)
        moments = drop_weak_terms(moments, len(design.names), 1.0)
        more = more.among(moments.names)
        moments = replace(moments, products=more.products(design))
        fit = Fit(question.n, design, more, moments, (), StreamedRows.held(unit, rows), run.budget, None)
        unit, design = more(unit), more.design(design)
        raw, lines = design.middles + design.halves * unit, lines_of(moments, design.names)
        checked = check_lines(fit, lines) if checkable(fit.design) else None
        farthest = np.abs(lines.scores(raw)[0] - lines.centre).max(initial=0.0)
        tally = Scores.of(question, lines, design, np.array([float(farthest) * (1 + 1e-9) + 1e-9]) / lines.spread)
        tally = tally.cut(tally.far(unit, rows).astype(np.float64), (0.0, 0.0), True)
        noisy = tally(unit, rows).astype(np.float64)
        return _answer(question, moments, tally, noisy, (0.0, 0.0), False, checked=checked)


def _names(question: EffectQuestion, design: Design) -> tuple[str, ...]:
    grouped = () if question.groups is None else (question.groups,)
    return tuple(dict.fromkeys((*design.sources, *grouped)))


def _deviation(rho: ZCDP, share: Fraction) -> float:
    return gaussian_scale(float(corner_counts_sensitivity(1, Norm.L2).bound), rho.part(share)) / GRID


def moments_share(columns: int, n: int, rho: ZCDP) -> Fraction:
    """Return the moments' share of ρ: public."""
    enough = (share for share in MOMENTS if predicted_signal(columns, n, rho.part(share)) >= ENOUGH_SIGNAL)
    return next(enough, MOMENTS[-1])


def check_share(design: Design, columns: int, n: int, rho: ZCDP) -> Fraction:
    """Return the share of ρ of the check of the lines, what the moments need not: public."""
    return max(WITH_CHECK - moments_share(columns, n, rho), Fraction(0)) if checkable(design) else Fraction(0)


class _Mean:
    """The mean score of some groups together, and why it has no interval."""

    def __init__(self, noisy: Reals, tally: Scores, groups: list[int], deviation: float, reach: float) -> None:
        cells, width = noisy[groups], 2 * tally.reach
        N, T, Q = functionals(2) @ cells.sum(axis=0)
        self.count = max(float(N), 1.0)
        middle = float(np.clip(T / self.count, 0.0, 1.0))
        variance = len(cells) * deviation**2
        noise = functionals(2)[1] - middle * functionals(2)[0]
        self.noise = width * math.sqrt(variance * float(noise @ noise)) / self.count
        spread = max(float(Q) - 2 * middle * float(T) + middle**2 * float(N), 0.0) / self.count
        self.estimate = tally.lines.centre + width * (middle - 0.5)
        tails, unit = tally.tails(groups), tally.lines.spread / self.count
        # A score that is cut moves with the centre, whose error goes with that of the mean.
        drawn = tails.share_beyond(tally.place) * tally.lines.weight * tally.lines.error
        own = width * math.sqrt(spread / self.count) + (drawn if math.isfinite(drawn) else 0.0)
        error = math.hypot(own, self.noise)
        taken = tails.taken(tally.place, tally.edge)
        self.error = math.hypot(error, unit * taken.hidden)
        below, above = unit * taken.below, unit * taken.above
        self.ends = self.estimate - reach * self.error - below, self.estimate + reach * self.error + above
        self.few, self.noisy = self.count < 30 + 6 * math.sqrt(3 * variance), deviation > 0
        self.skewed = below + above > MOST_CUT * error or (tally.edge is not None and tails.beyond_last_threshold)
        self.unseen = 0.0 if tally.edge is None else tails.unseen(tally.edge, reach)

    def reason(self, otherwise: str, cut: float) -> str:
        """Return why there is no interval, or nothing."""
        if self.few:
            return "too few records for the noise" if self.noisy else "fewer than 30 records"
        return otherwise or (CUT.format(cut=cut) if self.skewed else "")


def _answer(
    question: EffectQuestion, moments: JointMoments, tally: Scores, noisy: Reals, deviations: tuple[float, float],
    blind: bool, gone: tuple[str, ...] = (), checked: Checked | None = None,
) -> Effect:  # fmt: skip
    from scipy.special import ndtri

    cells, share = noisy.reshape(tally.size, 3) / GRID, float(np.clip(1 - tally.near_an_end, 0, 1))
    reach, signal = float(ndtri(0.5 + question.coverage / 2)), moments.signal_to_noise
    otherwise, cut = BLIND if blind else "", tally.target
    rare = cut is not None and not isinstance(question.column(question.outcome), Bounded)
    below_noise, rare = not math.isfinite(tally.lines.error), rare and (cut or 0.0) < 2 * tally.lines.weight
    if rare:
        otherwise = RARE
    if signal < LEAST_SIGNAL or below_noise:
        otherwise = WEAK.format(signal=signal)
    if near := nearly(moments, 2):
        otherwise = NEARLY.format(near)
    # Where shortening moves the estimate by more than the error.
    few = deviations[0] > 0 and not RARE_ARM < moments.mean(TREATMENT) < 1 - RARE_ARM
    if share < LEAST_SHARE or few:
        otherwise = OVERLAP

    def mean_of(groups: list[int]) -> tuple[_Mean, Interval | None, str]:
        mean = _Mean(cells, tally, groups, deviations[0], reach)
        reason = mean.reason(otherwise, float(tally.cuts[tally.place]))
        return mean, None if reason else mean.ends, reason

    none = below_noise or rare
    whole, ends, why = mean_of(list(range(tally.size)))
    if checked is not None and ends is not None and bends(checked, (ends[1] - ends[0]) / 2):
        ends, why, otherwise = None, BENT, BENT
    by_group = []
    for place, level in enumerate(levels_of(question.column(question.groups)) if question.groups else ()):
        one, interval, reason = mean_of([place])
        estimate = None if one.few or none else one.estimate
        by_group.append(GroupEffect(f"{question.groups} = {level}", estimate, interval, reason, share))
    hidden: tuple[str, ...] = ()
    if cut is not None:
        far, among = tally.farthest * tally.lines.spread, whole.unseen / whole.count
        hidden = (UNSEEN.format(cut=cut, count=whole.unseen, differ=among * cut, most=among * (far - cut)),)
    outcome, arm, *others = moments.names
    spread = math.sqrt(max(moments.residual(outcome, []), 0.0))
    robust = moments.ols(outcome, [arm, *others])[arm].robustness_value
    return Effect.of(
        question, estimand="ate" if cut is None else "ate-winsorized", cut=cut,
        estimate=None if none else whole.estimate, interval=ends, interval_reason=why,
        standard_error=None if none or few else whole.error, noise_error=None if none else whole.noise,
        signal_to_noise=signal, share_supported=share, **unmeasured_fields(robust, whole.estimate, ends, spread),
        by_group=tuple(by_group), balance=balance_of(moments),
        notes=(*redundant_note(gone), *hidden, *notes(share, float(np.clip(moments.mean(TREATMENT), 0, 1))),
               *few_count_note(float(moments.sums[-1, -1]), question.n)),
        release=moments, fit_check=None if checked is None else checked.check,
    )  # fmt: skip
