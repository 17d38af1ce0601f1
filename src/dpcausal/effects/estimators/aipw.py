"""``"aipw"``: an effect adjusted for numbers, by a doubly robust score whose models come from noisy moments.

1. Moments of outcome, treatment, confounders and, where they cost little, squares and products give two lines.
2. Each row then has a score, whose mean is the effect if either line is right:

       ψ = m(1) − m(0) + a (y − m(1)) / e − (1 − a) (y − m(0)) / (1 − e)

3. Noisy counts of extreme scores choose where scores are cut; the mean of the cut scores is released.

A cut widens the interval by what the counts show that it may have taken.  Where noise would hide what lies beyond, the
effect is that on winsorised outcomes: cut so far from their line, times the probability of the record's arm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.core.method import Run, SumsOverRows
from dpcausal.data.records import Rows
from dpcausal.data.schema import Bounded
from dpcausal.effects.cells.corner_counts import GRID, corner_counts_sensitivity, functionals, levels_of
from dpcausal.effects.clusters import ClusteredScores, group_sums, shared
from dpcausal.effects.moments.adaptive import StreamedRows, predicted_signal
from dpcausal.effects.moments.redundant import NEARLY, nearly
from dpcausal.effects.nuisance.design import (
    FIRST,
    MOST_TIMES,
    TREATMENT,
    Design,
    Pair,
    check_noise,
    checked_design,
    enough,
    second_degree,
)
from dpcausal.effects.nuisance.effect_line import with_effect_line
from dpcausal.effects.nuisance.fit import FUNCTIONS, MOST_PAIRS, Fit, check_claims, check_lines
from dpcausal.effects.nuisance.fit_check import Checked
from dpcausal.effects.nuisance.line_errors import MOST_RELATIVE, LineErrors, line_errors
from dpcausal.effects.nuisance.residual_sums import pair_functions_sensitivity
from dpcausal.effects.nuisance.scores import (
    Nuisances,
    Scores,
    cuts_of,
    lines_of,
    noise_of_sum,
    overlap_reason,
    times_as_wide,
)
from dpcausal.effects.question import EffectMethod, EffectQuestion
from dpcausal.effects.result import Effect, GroupEffect, Interval, normal_reach
from dpcausal.errors import Advice, InfeasibleError, ParameterError, Setting
from dpcausal.mechanisms.additive import gaussian_scale
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, affordable_zcdp
from dpcausal.privacy.sensitivity import Norm

MOMENTS = tuple(Fraction(percent, 100) for percent in range(14, 51, 3))
WITH_CHECK, LEAST_CHECK = MOMENTS[3], Fraction(4, 100)
COUNTS, FEWER, EFFECT_LINE = Fraction(25, 100), Fraction(12, 100), Fraction(5, 100)
"""Shares of ρ of the moments, the least of these that predicts enough signal; of these and the check of the lines
together at least, and of the check; of the counts, and where light tails are stated; of the effect's line; the scores
have the rest."""
LEAST_SHARE, RARE_ARM = 0.95, 0.1
"""No interval where fewer records have a probability inside, or an arm has fewer: what is cut is not simulated for."""
LEAST_SIGNAL, ENOUGH_SIGNAL = 2.5, 3.6
"""No interval where the moments are nearer to their noise, and no answer where they would be by public numbers; what is
enough for nearly all intervals to be shown."""
MOST_CUT = 2.0
"""No interval where counts show that cut scores moved the mean by so many standard errors; where they could have moved
it by less, it is so much wider at that end."""
SEEN_FROM, MOST_WIDE = 4_000, 2.5
"""No interval, unless tails are said to be short, of fewer rows or where one that allows for long tails is predicted so
many times as wide as without noise."""
DEAR = Fraction(32, 100)
"""Squares, and products, are among the columns where moments with them have enough signal at a lesser share."""
CORNERS = corner_counts_sensitivity(1, Norm.L2)
BENT = (
    "neither the line of the outcome nor that of treatment fits. The estimate subtracts the bias that the check shows, "
    "and more may be left. Method 'boosted-aipw' has models that bend"
)
CUT = "too many scores were winsorised, at {cut:.3g} times their scale, for an interval: the outcome is too skewed"
WEAK = "the moments are too near their noise (signal to noise {signal:.2g}): take more rows, more loss, fewer columns"
BLIND = Advice(
    "with so few rows at this loss noise would hide a long tail of the outcome on one side, which biases the estimate: "
    "use more rows or a larger loss, or set ", Setting("method", "aipw", {"light_tails": True}, "dpc.methods.Aipw"),
    " if the residuals have no such tail",
)  # fmt: skip
NONE = "no interval, unless there are 4,000 rows and bounds show that no outcome lies far from its line"
RESTS = "intervals assume that the outcome's residuals have no long tail on one side, as you stated"
UNSEEN = (
    "extreme outcomes are winsorised, of at most {count:.0f} records. If each of these were twice as extreme, the "
    "effect without winsorising would differ by up to {differ:.3g}; at the bounds, by up to {most:.3g}. Narrower "
    "bounds help"
)
SMALL = (
    "the group is too small for the noise in its probability of treatment: more rows, a larger loss, or merge it with "
    "another group"
)
RARE = "one of the two outcomes is so rare that scores of such records are cut: method 'stratified' has limits for it"


def _widened(times: float) -> Advice:
    return Advice(
        f"few rows at this loss cannot show whether the lines fit, so the interval is {times:.2g} times as wide: more "
        "rows, a larger loss, or ", Setting("method", "aipw", {"lines_only": True}, "dpc.methods.Aipw"),
        " if lines are known to fit",
    )  # fmt: skip


def _allowing_tails(wide: float, short: float) -> Advice:
    return Advice(
        "extreme outcomes are winsorised at a cut that the result reports (ate-winsorized), unless the bounds show "
        f"that none lies beyond; public numbers predict intervals {wide:.2g} times as wide as without noise, and "
        f"{short:.2g} times if ", Setting("light_tails", True), " states it of the residuals",
    )  # fmt: skip


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
        States that lines fit: squares and products are left out, nothing checks the lines, and the interval does not
        allow for curvature.
    """

    name: ClassVar[str] = "aipw"
    about: ClassVar[str] = "a doubly robust score from noisy moments"
    losses: ClassVar[tuple[type[Loss], ...]] = (ApproxDP, ZCDP)
    proofs: ClassVar[tuple[str, ...]] = ("scale-histograms", "ellipse-moments", "corner-counts", "gaussian")
    assumptions: ClassVar[tuple[tuple[str, Any], ...]] = (("light_tails", True),)
    supports_clusters: ClassVar[bool] = True
    light_tails: bool = False
    lines_only: bool = False

    def plan(self, question: EffectQuestion, loss: ApproxDP | ZCDP | NoPrivacy) -> Aipw:
        if question.estimand != "ate":
            text = f"method {self.name!r} estimates the average effect only"
            hint = "use ", Setting("method", "stratified")
            raise ParameterError(text, argument="estimand", rule="estimand", value=question.estimand, hint=hint)
        d, n = len(checked_design(self.name, question).names), question.n
        if loss.exact:
            return self
        rho, _ = shared(affordable_zcdp(loss), question.cluster is not None)
        check_noise(loss, d, n, rho.part(WITH_CHECK), float(CORNERS.bound), rho.part(FEWER))
        most = rho.part(MOMENTS[-1])
        signal = predicted_signal(d, n, most)
        if signal < LEAST_SIGNAL:
            rows, times = enough(n, lambda n, times: predicted_signal(d, n, ZCDP(most.rho * times**2)), LEAST_SIGNAL)
            or_epsilon = f", or {times:.2g} times the epsilon" if times < MOST_TIMES else ""
            raise InfeasibleError(
                f"{n} rows at {loss} predict moments of {d} columns at {max(signal, 0):.2g} times their noise, "
                f"and {LEAST_SIGNAL:g} is needed: about {rows} rows would be enough{or_epsilon}, or adjust for "
                "fewer columns"
            )
        widest = float(pair_functions_sensitivity(MOST_PAIRS, 2).bound)
        check_noise(loss, d, n, most, widest, rho.part(LEAST_CHECK * FUNCTIONS))
        return self

    def proofs_of(self, question: EffectQuestion, loss: ApproxDP | ZCDP) -> tuple[str, ...]:
        rho, _ = shared(affordable_zcdp(loss), question.cluster is not None)
        shares = self._shares(question, rho)
        layers = ("group-layers",) if question.cluster else ()
        checks = check_claims(shares.design) if shares.check else ()
        return (*dict.fromkeys((*self.proofs, *checks, "residual-sums")), *layers)

    def caveats(self, question: EffectQuestion, loss: ApproxDP | ZCDP | NoPrivacy) -> tuple[str, ...]:
        whole, n = None if isinstance(loss, NoPrivacy) else affordable_zcdp(loss), question.n
        rho, _ = shared(whole, question.cluster is not None)
        shares = self._shares(question, rho)
        bent = shares.pairs
        products = any(i != j for i, j in bent)
        terms_text = " and its squares" * (len(bent) > 0) + " and products" * products
        terms_text += ", except products with rare levels" * bool(rho and products and shares.design.levels)
        right = f"right if the outcome, or the probability of treatment, is linear in what is adjusted for{terms_text}"
        if rho is None:
            return (right,)
        signal = predicted_signal(shares.columns, n, rho.part(shares.moments))
        far = f"public numbers predict moments {signal:.2g} times their noise, an interval needs {LEAST_SIGNAL:g}"
        both = (replace(self, light_tails=light) for light in (False, True))
        wide, short = (times_as_wide(n, one._shares(question, rho).noise, one.light_tails) for one in both)
        tails = RESTS if self.light_tails else _allowing_tails(wide, short)
        return (right, *((far,) if signal < 2 * LEAST_SIGNAL else ()),
                Advice(NONE, ": ", BLIND) if self._blind(shares) else tails)  # fmt: skip

    def _shares(self, question: EffectQuestion, rho: ZCDP | None) -> _Shares:
        design, n = Design.of(question), question.n
        pairs = [] if self.lines_only else second_degree(
            design, n, rho, lambda size: rho is None or moments_share(size, n, rho) < DEAR
        )  # fmt: skip
        counts = FEWER if self.light_tails else COUNTS
        moments = MOMENTS[0] if rho is None else moments_share(len(design.names) + len(pairs), n, rho)
        check = max(WITH_CHECK - moments, LEAST_CHECK) if check_claims(design) and not self.lines_only else Fraction(0)
        return _Shares(design, pairs, n, rho, moments, check, counts)

    def _blind(self, shares: _Shares, farthest: float = math.inf) -> bool:
        wide = times_as_wide(shares.n, shares.noise, False, farthest)
        return (shares.n < SEEN_FROM or wide > MOST_WIDE) and not self.light_tails

    def release(self, run: Run[EffectQuestion]) -> Effect:
        question = run.question
        rho, for_layers = shared(None if run.loss.exact else affordable_zcdp(run.loss), question.cluster is not None)
        shares = self._shares(question, rho)
        enough = LEAST_SIGNAL if rho else 1.0
        fit = Fit.of(question, lambda _: shares.pairs, rho, shares.moments, enough, run.budget, with_rare=False)
        whole = fit.whole
        rows, lines = fit.rows.with_terms(fit.terms), lines_of(fit.moments, whole.names)
        checked = check_lines(replace(fit, rho=rho and rho.part(shares.check)), lines) if shares.check else None
        lines = with_effect_line(fit, rows, lines, whole.raw, EFFECT_LINE)
        tally = Scores.of(question, lines, whole, cuts_of(question.n) if rho else cut_beyond_all(rows, lines, whole))
        deviations = shares.deviation(shares.scores), shares.deviation(shares.counts)
        far, _ = fit.release(rows.over(tally.far), CORNERS, "far scores, probabilities near 0 or 1", shares.counts)
        tally = tally.cut(far, deviations, self.light_tails or rho is None)
        noisy, _ = fit.release(rows.over(tally), CORNERS, "scores", shares.scores)
        otherwise = BLIND if rho is not None and self._blind(shares, tally.farthest) else ""
        effect = _answer(question, fit, tally, noisy, deviations, otherwise, checked)
        if question.cluster is None:
            return effect
        centre = lines.centre if effect.estimate is None else effect.estimate
        scores = ClusteredScores.of(effect, fit.count, centre, lines.spread)
        return scores.by_clusters(
            effect, lambda cut: rows.over(lambda unit, held: group_sums(cut(lines.scores(whole.raw(unit))[0]), held)),
            question.cluster, fit.n, for_layers, fit.budget,
        )  # fmt: skip


@dataclass(frozen=True)
class _Shares:
    """The columns of the lines, and the shares of ρ: all of it public."""

    design: Design
    pairs: list[Pair]
    n: int
    rho: ZCDP | None
    moments: Fraction
    check: Fraction
    counts: Fraction

    @property
    def columns(self) -> int:
        return len(self.design.names) + len(self.pairs)

    @property
    def scores(self) -> Fraction:
        return 1 - self.moments - self.check - self.counts - EFFECT_LINE

    def deviation(self, share: Fraction) -> float:
        if self.rho is None:
            return 0.0
        return gaussian_scale(float(CORNERS.bound), self.rho.part(share)) / GRID

    @property
    def noise(self) -> float:
        """The deviation of a sum of scores that are cut at 1, were the lines checked."""
        return noise_of_sum(self.deviation(1 - max(self.moments + self.check, WITH_CHECK) - self.counts - EFFECT_LINE))


def moments_share(columns: int, n: int, rho: ZCDP) -> Fraction:
    enough = (share for share in MOMENTS if predicted_signal(columns, n, rho.part(share)) >= ENOUGH_SIGNAL)
    return next(enough, MOMENTS[-1])


class _Mean:
    def __init__(
        self, noisy: Reals, tally: Scores, groups: list[int], deviation: float, reach: float,
        lines: LineErrors | None = None,
    ) -> None:  # fmt: skip
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
        moved = 0.0 if lines is None else lines.moves(self.estimate - tally.lines.centre)
        error = math.hypot(own, self.noise, moved)
        taken = tails.taken(tally.place, tally.edge)
        self.error = math.hypot(error, unit * taken.hidden)
        below, above = unit * taken.below, unit * taken.above
        self.ends = self.estimate - reach * self.error - below, self.estimate + reach * self.error + above
        self.few, self.noisy = self.count < 30 + 6 * math.sqrt(3 * variance), deviation > 0
        self.skewed = below + above > MOST_CUT * math.hypot(own, self.noise)
        self.skewed |= tally.edge is not None and tails.beyond_last_threshold
        self.unseen = 0.0 if tally.edge is None else tails.unseen(tally.edge, reach)

    def reason(self, otherwise: str, cut: float) -> str:
        if self.few:
            return "too few records for the noise" if self.noisy else "fewer than 30 records"
        return otherwise or (CUT.format(cut=cut) if self.skewed else "")


def cut_beyond_all(rows: StreamedRows, lines: Nuisances, design: Design) -> Reals:
    """Return the one cut that no score of rows in memory lies beyond, in spreads."""

    def farthest(unit: Reals, _: Rows) -> Reals:
        return np.asarray(np.abs(lines.scores(design.raw(unit))[0] - lines.centre).max(initial=0.0))

    return np.array([float(rows.over(farthest)) * (1 + 1e-9) + 1e-9]) / lines.spread


def _answer(
    question: EffectQuestion, fit: Fit, tally: Scores, noisy: Reals, deviations: tuple[float, float], otherwise: str,
    checked: Checked | None,
) -> Effect:  # fmt: skip
    moments, cells, share = fit.moments, noisy.reshape(tally.size, 3), float(np.clip(1 - tally.near_an_end, 0, 1))
    reach, signal = normal_reach(question.coverage), moments.signal_to_noise
    cut, bias, allowed = tally.target, 0.0, 0.0
    if checked is not None:
        bias, allowed = checked.check.correction, checked.check.error
    rare = cut is not None and not isinstance(question.column(question.outcome), Bounded)
    below_noise, rare = not math.isfinite(tally.lines.error), rare and (cut or 0.0) < 2 * tally.lines.weight
    if rare:
        otherwise = RARE
    if signal < LEAST_SIGNAL or below_noise:
        otherwise = WEAK.format(signal=signal)
    if near := nearly(moments, FIRST):
        otherwise = NEARLY.format(near)
    # Where shortening moves the estimate by more than the error.
    few = deviations[0] > 0 and not RARE_ARM < moments.mean(TREATMENT) < 1 - RARE_ARM
    otherwise = overlap_reason(moments.mean(TREATMENT) if few else 0.5, share, RARE_ARM, LEAST_SHARE) or otherwise

    def mean_of(groups: list[int], lines: LineErrors | None = None) -> tuple[_Mean, Interval | None, str]:
        mean = _Mean(cells, tally, groups, deviations[0], reach, lines)
        reason = mean.reason(otherwise, float(tally.cuts[tally.place]))
        # It holds the estimate's interval, and that of the estimate less the bias that the check shows.
        below, above = (math.hypot(mean.estimate - end, reach * allowed) for end in mean.ends)
        lower, upper = mean.estimate - bias - below, mean.estimate - bias + above
        return mean, None if reason else (min(mean.ends[0], lower), max(mean.ends[1], upper)), reason

    def errors_of(question: EffectQuestion, differences: list[float]) -> list[LineErrors | None]:
        exact = not moments.deviation
        return [None] * len(differences) if exact else line_errors(
            fit, question, differences, tally.lines.effect_covariance
        )

    none = below_noise or rare
    whole, ends, why = mean_of(list(range(tally.size)), *errors_of(replace(question, groups=None), [0.0]))
    seen = 0.0
    clear = not otherwise and not whole.few
    if checked is not None and clear and checked.bends((whole.ends[1] - whole.ends[0]) / 2):
        ends, why, otherwise, seen = None, BENT, BENT, checked.beside(0.0)
    by_group = []
    levels = levels_of(question.column(question.groups)) if question.groups else ()
    by_lines = [mean_of([place])[0].estimate - tally.lines.centre for place in range(len(levels))]
    errors = errors_of(question, by_lines) if levels else []
    for place, (level, lines) in enumerate(zip(levels, errors, strict=True)):
        one, interval, reason = mean_of([place], lines)
        estimate = None if one.few or none else one.estimate - seen
        if moments.deviation and estimate is not None and (lines is None or lines.relative > MOST_RELATIVE):
            estimate, interval, reason = None, None, SMALL
        by_group.append(GroupEffect(f"{question.groups} = {level}", estimate, interval, reason, share))
    times = math.hypot(whole.error, allowed) / max(whole.error, 1e-300)
    hidden: tuple[str, ...] = (_widened(times),) if ends and allowed > whole.error > 0 else ()
    if cut is not None:
        far, among = tally.farthest * tally.lines.spread, whole.unseen / whole.count
        hidden += (UNSEEN.format(cut=cut, count=whole.unseen, differ=among * cut, most=among * (far - cut)),)
    spread = math.sqrt(max(moments.residual(moments.names[0], []), 0.0))
    return question.effect(
        estimand="ate" if cut is None else "ate-winsorized", cut=cut,
        estimate=None if none else whole.estimate - seen, interval=ends, interval_reason=why, by_group=tuple(by_group),
        standard_error=None if none or few else math.hypot(whole.error, allowed),
        noise_error=None if none else math.hypot(whole.noise, allowed),
        **fit.effect_fields(whole.estimate - seen, ends, share, spread, checked, hidden),
    )  # fmt: skip
