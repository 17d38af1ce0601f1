"""``"moments"``: an effect with numbers adjusted for, by a score whose models come from noisy moments.

Three releases.  Moments of outcome, treatment and what is adjusted for give a line for the outcome and one for the
probability of treatment.  With these fixed each row has the score

    ψ = m(1) − m(0) + a (y − m(1)) / e − (1 − a) (y − m(0)) / (1 − e)

whose mean is the effect if either line is right; errors of the lines, noise among them, enter as a product.  How many
scores lie beyond each of four public multiples of their spread is counted next, and the scores are cut at the one whose
interval these counts foretell as the shortest.  They are summed by groups as ``cells`` are (claim ``corner-counts``:
lines and cut are functions of what was released).  How many were cut on either side, and how many probabilities lie
near 0 or 1, is counted last, by groups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpcausal.data.coding import bin_codes
from dpcausal.data.rows import Rows
from dpcausal.data.schema import Bounded, Column
from dpcausal.data.table import Table
from dpcausal.effects.contrast import UNMEASURED, arms_of, e_values, notes, void
from dpcausal.effects.corner_counts import GRID, corner_counts, corner_counts_sensitivity, corners, functionals
from dpcausal.effects.cut import ALLOWED, LONG_TAIL, NET, best_cut, cuts_of, taken_by, unsure_of
from dpcausal.effects.joint_moments import JointMoments
from dpcausal.effects.noisy_cells import levels_of
from dpcausal.effects.question import Contrast, EffectMethod
from dpcausal.effects.result import Balance, Effect, GroupEffect, Interval
from dpcausal.effects.rounds import HISTOGRAM, LAST, SHAPING, Summed, foretold, learnt_moments, noise_of, tail_radius
from dpcausal.effects.score_lines import TREATMENT, Lines, lines_of
from dpcausal.effects.unmeasured import robustness_limit
from dpcausal.errors import FenceError, InfeasibleError, LossError, ParameterError
from dpcausal.mechanisms.additive import gaussian, gaussian_scale
from dpcausal.mechanisms.gate import book_exact
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.call import gaussian_part
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, affordable_zcdp
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Norm, Query

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MOMENTS = tuple(Fraction(percent, 100) for percent in range(23, 51, 3))
FAR, TOLD = Fraction(12, 100), Fraction(1, 10)
"""Shares of ρ of the moments, the least of these that foretells enough signal; of the counts that the cut is chosen by,
and of those of what was cut; the scores have the rest."""
LEAST_SHARE, RARE_ARM = 0.95, 0.1
"""No interval where fewer records have a probability inside, or an arm has fewer: what is cut is not made up for."""
LEAST_SIGNAL, ENOUGH_SIGNAL = 2.5, 3.6
"""No interval where the moments are nearer to their noise, and no answer where they would be by public numbers; what is
enough for nearly all intervals to be shown."""
MOST_CUT = 2.0
"""No interval where cut scores could move the mean by so many standard errors; where they could move it by less, it is
so much wider at both ends."""
SEEN_FROM, MOST_HIDDEN = 9_500, 0.19
"""No interval, unless tails are said to be short, of fewer rows or where the deviation of a count of far scores is more
of √n: what a cut takes of a long tail on one side is then more than the error, and not seen."""
MOST_COLUMNS = 40

CUT = "scores were cut at {cut:.3g} times their spread, too many for the interval: the outcome is too skewed"
WEAK = "the moments are too near their noise (signal to noise {signal:.2g}): take more rows, more loss, fewer columns"
BLIND = (
    "with so few rows at this loss a long tail of the outcome on one side, which moves the estimate, would not be "
    "seen: more rows, a larger loss, or say methods.Orthogonal(short_tails=True) if lines leave none of the outcome"
)
OVERLAP = "one arm is below 10 %, or more than 5 % of the records have a probability of treatment near 0 or 1"


@dataclass(frozen=True)
class Design:
    """The columns of the moments: name, middle and half width of the range, code of the level that is 1 (or None)."""

    names: tuple[str, ...]
    sources: tuple[str, ...]
    codes: tuple[int | None, ...]
    middles: Reals
    halves: Reals

    @classmethod
    def of(cls, question: Contrast) -> Design:
        """Return the columns for a question: outcome, treatment, numbers as they are, one column a further level."""
        found: list[tuple[str, str, int | None, float, float]] = []
        treated = arms_of(
            levels_of(question.column(question.treatment)), question.treatment, question.treated, question.control
        )[1]
        for name in (question.outcome, question.treatment, *question.strata):
            column = question.column(name)
            if isinstance(column, Bounded) and name != question.treatment:
                found.append((name, name, None, column.midpoint, column.width / 2))
                continue
            levels = levels_of(column)
            codes = [treated] if name == question.treatment else list(range(1, len(levels)))
            named = [name if len(levels) == 2 else f"{name} = {levels[code]}" for code in codes]
            found += [(text, name, code, 0.5, 0.5) for text, code in zip(named, codes, strict=True)]
        names, sources, all_codes, middles, halves = zip(*found, strict=True)
        return cls(names, sources, all_codes, np.array(middles), np.array(halves))

    def units(self, rows: Rows) -> Reals:
        """Return the rows on [−1, 1]."""
        values = rows.values
        columns = [
            values[source].astype(np.float64) if code is None else (values[source] == code).astype(np.float64)
            for source, code in zip(self.sources, self.codes, strict=True)
        ]
        return np.clip((np.stack(columns, axis=1) - self.middles) / self.halves, -1.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class Orthogonal(EffectMethod[ApproxDP | ZCDP]):
    """Lines for outcome and treatment from noisy moments, then the noisy mean of a doubly robust score.

    Parameters
    ----------
    short_tails : bool
        Whether what the lines leave of the outcome has no long tail on one side, as about normal errors have none:
        needed for an interval of fewer than 9,500 rows, or of more where noise would hide one.
    """

    name: ClassVar[str] = "moments"
    about: ClassVar[str] = "a doubly robust score from noisy moments"
    at_once: ClassVar[bool] = False
    uses_coins: ClassVar[bool] = False
    words: ClassVar[tuple[str, ...]] = ("short_tails",)

    short_tails: bool = False

    def pay(self, loss: Loss, question: Contrast) -> tuple[ApproxDP | ZCDP | NoPrivacy, str]:
        return gaussian_part(loss, "method 'moments'")

    def settle(self, question: Contrast, spent: ApproxDP | ZCDP | NoPrivacy) -> Orthogonal:
        if question.estimand != "ate":
            raise ParameterError("method 'moments' has estimand='ate' only; method 'cells' has both")
        if len(levels_of(question.column(question.treatment))) != 2:
            raise ParameterError("method 'moments' needs a treatment of two levels")
        d, n = len(Design.of(question).names), question.n
        if d > MOST_COLUMNS:
            raise ParameterError(f"method 'moments' takes {MOST_COLUMNS} columns and levels, here are {d}")
        if not spent.exact:
            rho = affordable_zcdp(spent)
            try:
                for share in (HISTOGRAM, *SHAPING, LAST):
                    noise_of(d, n, tail_radius(d, 0.3), rho.part(MOMENTS[0]).part(share))
                _deviation(rho, TOLD)
            except FenceError:
                raise LossError(f"{spent} is too little here: the noise could not be drawn") from None
            most = rho.part(MOMENTS[-1])
            signal = foretold(d, n, most)
            if signal < LEAST_SIGNAL:
                enough, times = n, 1.0
                while foretold(d, enough, most) < LEAST_SIGNAL:
                    enough = math.ceil(enough * 1.1)
                while foretold(d, n, ZCDP(most.rho * times**2)) < LEAST_SIGNAL:
                    times *= 1.05
                raise InfeasibleError(
                    f"{n} rows at {spent} foretell moments of {d} columns at {max(signal, 0):.2g} times their noise, "
                    f"and {LEAST_SIGNAL:g} is needed: about {enough} rows would do, or {times:.2g} times the epsilon, "
                    "or adjust for fewer columns"
                )
        return self

    def claims(self, question: Contrast, spent: ApproxDP | ZCDP) -> tuple[str, ...]:
        return "scale-histograms", "ellipse-moments", "corner-counts", "gaussian"

    def caveats(self, question: Contrast, spent: ApproxDP | ZCDP | NoPrivacy) -> tuple[str, ...]:
        right = "right if the outcome, or the probability of treatment, is linear in what is adjusted for"
        if spent.exact:
            return (right,)
        d, n, rho = len(Design.of(question).names), question.n, affordable_zcdp(spent)
        signal = foretold(d, n, rho.part(moments_share(d, n, rho)))
        far = f"public numbers foretell moments {signal:.2g} times their noise, an interval needs {LEAST_SIGNAL:g}"
        hidden = (f"no interval: {BLIND}",) if self._blind(n, rho) else ()
        return (right, *((far,) if signal < 2 * LEAST_SIGNAL else ()), *hidden)

    def _blind(self, n: int, rho: ZCDP) -> bool:
        hidden = n < SEEN_FROM or _deviation(rho, FAR) > MOST_HIDDEN * math.sqrt(n)
        return hidden and not self.short_tails

    def release(
        self, private: Table, question: Contrast, spent: ApproxDP | ZCDP, coins: PublicGenerator, allotment: Allotment
    ) -> Effect:
        design, n, rho = Design.of(question), question.n, affordable_zcdp(spent)
        summed = Summed.of(question.table, _names(question, design), design.units)
        share = moments_share(len(design.names), n, rho)
        scores = 1 - share - FAR - TOLD
        found = learnt_moments(summed, len(design.names), n, allotment, rho.part(share))
        moments = JointMoments.of_rounds(design.names, n, (design.middles, design.halves), found)
        deviations, lines = (_deviation(rho, scores), _deviation(rho, TOLD)), lines_of(moments)
        cuts = cuts_of(n, deviations[0])
        bound = corner_counts_sensitivity(1, Norm.L2)
        query = Query(summed.over(_Far(lines, design, cuts * lines.spread)), bound, "far scores")
        far = np.asarray(gaussian(query, allotment, rho.part(FAR)), dtype=np.float64) / GRID
        cut, long = best_cut(cuts, far, (deviations[0], _deviation(rho, FAR)), lines.weight)
        lines = replace(lines, cut=cut, long=long, blind=self._blind(n, rho))
        tally = _Scores.of(question, lines, design)
        counts, told = tally.apart(summed.over(tally))
        query = Query(counts, bound, "scores")
        noisy = np.asarray(gaussian(query, allotment, rho.part(scores)), dtype=np.float64)
        query = Query(told, bound, "scores that were cut, probabilities near 0 or 1")
        shares = np.asarray(gaussian(query, allotment, rho.part(TOLD)), dtype=np.float64)
        return _answer(question, moments, lines, noisy, shares, deviations)

    def exact(self, private: Table, question: Contrast, coins: PublicGenerator, allotment: Allotment) -> Effect:
        book_exact("effect", allotment)
        design = Design.of(question)
        rows = question.table.parts(_names(question, design))
        unit = design.units(rows)
        moments = JointMoments.exact(design.names, question.n, (design.middles, design.halves), unit, rows)
        raw, lines = design.middles + design.halves * unit, lines_of(moments)
        farthest = np.abs(lines.scores(raw)[0] - lines.centre).max(initial=0.0)
        lines = replace(lines, cut=(float(farthest) * (1 + 1e-9) + 1e-9) / lines.spread)
        tally = _Scores.of(question, lines, design)
        counts, told = tally.apart(tally(unit, rows))
        return _answer(question, moments, lines, counts.astype(np.float64), told.astype(np.float64), (0.0, 0.0))


def _names(question: Contrast, design: Design) -> tuple[str, ...]:
    grouped = () if question.groups is None else (question.groups,)
    return tuple(dict.fromkeys((*design.sources, *grouped)))


@dataclass(frozen=True)
class _Far:
    """How many scores lie below the farthest cut, between each and the next, and above."""

    lines: Lines
    design: Design
    reaches: Reals

    def __call__(self, unit: Reals, rows: Rows) -> Integers:
        scores, _ = self.lines.scores(self.design.middles + self.design.halves * unit)
        ends = np.concatenate([-self.reaches[::-1], self.reaches])
        whole = corners(np.zeros(rows.n), 0, rows.masses(GRID))
        places = np.searchsorted(ends, scores - self.lines.centre)
        return corner_counts(places, len(ends) + 1, rows.kept, [whole]).ravel()


@dataclass(frozen=True)
class _Scores:
    """The corner counts of the scores by groups; and how many scores were left alone, with a probability of treatment
    within and near an end, and were cut below and above."""

    lines: Lines
    design: Design
    groups: str | None
    column: Column | None
    size: int

    @classmethod
    def of(cls, question: Contrast, lines: Lines, design: Design) -> _Scores:
        column = None if question.groups is None else question.column(question.groups)
        return cls(lines, design, question.groups, column, 1 if column is None else len(levels_of(column)))

    def __call__(self, unit: Reals, rows: Rows) -> Integers:
        lines, mass = self.lines, rows.masses(GRID)
        scores, outside = lines.scores(self.design.middles + self.design.halves * unit)
        below, above = scores < lines.centre - lines.reach, scores > lines.centre + lines.reach
        place = np.clip((scores - lines.centre) / (2 * lines.reach) + 0.5, 0.0, 1.0)
        groups, kind = self._groups(rows), np.where(below, 2, np.where(above, 3, outside))
        counts = corner_counts(groups, self.size, rows.kept, [corners(place, 2, mass)])
        told = corner_counts(groups * 4 + kind, 4 * self.size, rows.kept, [corners(place, 0, mass)])
        return np.concatenate([counts.ravel(), told.ravel()])

    def apart(self, sums: Integers) -> tuple[Integers, Integers]:
        """Return both."""
        return sums[: 3 * self.size].reshape(self.size, 3), sums[3 * self.size :].reshape(4 * self.size, 1)

    def _groups(self, rows: Rows) -> Integers:
        if self.groups is None or self.column is None:
            return np.zeros(rows.n, dtype=np.int64)
        codes = rows.values[self.groups]
        return bin_codes(codes, self.column) if isinstance(self.column, Bounded) else codes


def _deviation(rho: ZCDP, share: Fraction) -> float:
    """Return the deviation of the noise of one corner of the scores, or of one of the counts."""
    return gaussian_scale(float(corner_counts_sensitivity(1, Norm.L2).bound), rho.part(share)) / GRID


def moments_share(columns: int, n: int, rho: ZCDP) -> Fraction:
    """Return the moments' share of ρ: public."""
    enough = (share for share in MOMENTS if foretold(columns, n, rho.part(share)) >= ENOUGH_SIGNAL)
    return next(enough, MOMENTS[-1])


class _Mean:
    """The mean score of some groups together, and why it has no interval."""

    def __init__(
        self, cells: Reals, told: Reals, lines: Lines, deviations: tuple[float, float], reach: float, signal: float,
        thin: bool,
    ) -> None:  # fmt: skip
        N, T, Q = functionals(2) @ cells.sum(axis=0)
        self.count, width = max(float(N), 1.0), 2 * lines.reach
        middle = float(np.clip(T / self.count, 0.0, 1.0))
        variance = len(cells) * deviations[0] ** 2
        noise = functionals(2)[1] - middle * functionals(2)[0]
        self.noise = width * math.sqrt(variance * float(noise @ noise)) / self.count
        spread = max(float(Q) - 2 * middle * float(T) + middle**2 * float(N), 0.0) / self.count
        self.estimate = lines.centre + width * (middle - 0.5)
        self.error = math.hypot(width * math.sqrt(spread / self.count), self.noise)
        below, above = float(told[:, 2].sum()), float(told[:, 3].sum())
        unsure = 0.0 if lines.long else ALLOWED * unsure_of(below, above, math.sqrt(len(told)) * deviations[1])
        tail = LONG_TAIL if lines.long else NET
        taken = lines.spread * taken_by(lines.cut, (below, above), unsure, lines.weight, tail) / self.count
        self.reason = ""
        if self.count < 30 + 6 * math.sqrt(3 * variance):
            self.reason = "too few records for the noise"
        elif thin:
            self.reason = OVERLAP
        elif signal < LEAST_SIGNAL:
            self.reason = WEAK.format(signal=signal)
        elif lines.blind:
            self.reason = BLIND
        elif taken > MOST_CUT * self.error:
            self.reason = CUT.format(cut=lines.cut)
        half = reach * self.error + taken
        self.interval: Interval | None = None if self.reason else (self.estimate - half, self.estimate + half)


def _answer(
    question: Contrast, moments: JointMoments, lines: Lines, noisy: Reals, told: Reals,
    deviations: tuple[float, float],
) -> Effect:  # fmt: skip
    from scipy.special import ndtri

    cells, told = noisy / GRID, told.reshape(-1, 4) / GRID
    share = float(np.clip(1 - told[:, 1].sum() / max(float(told.sum()), 1.0), 0, 1))
    thin = share < LEAST_SHARE or not RARE_ARM < moments.mean(TREATMENT) < 1 - RARE_ARM
    reach, signal = float(ndtri(0.5 + question.coverage / 2)), moments.signal_to_noise
    whole = _Mean(cells, told, lines, deviations, reach, signal, thin)
    by_group = []
    for place, level in enumerate(levels_of(question.column(question.groups)) if question.groups else ()):
        one = _Mean(cells[[place]], told[[place]], lines, deviations, reach, signal, thin)
        estimate = None if one.reason.startswith("too few") else one.estimate
        by_group.append(GroupEffect(f"{question.groups} = {level}", estimate, one.interval, one.reason, share))
    levels = levels_of(question.column(question.treatment))
    control, treated = arms_of(levels, question.treatment, question.treated, question.control)
    outcome, arm, *others = moments.names
    spread = math.sqrt(max(moments.residual(outcome, []), 0.0))
    balance = []
    for name in others:
        slope, deep = moments.ols(name, [arm])[arm], math.sqrt(max(moments.residual(name, []), 1e-300))
        mean, treats = moments.mean(moments.names.index(name)), moments.mean(TREATMENT)
        balance.append(
            Balance(name, mean + (1 - treats) * slope.estimate, mean - treats * slope.estimate, slope.estimate / deep,
                    slope.noise_error / deep)
        )  # fmt: skip
    ends, robust = whole.interval, moments.ols(outcome, [arm, *others])[arm].robustness_value
    unmeasured: dict[str, float | None] = dict.fromkeys(UNMEASURED)
    if ends is not None and robust is not None:
        limit = robustness_limit(robust, whole.estimate, ends)
        unmeasured |= {"robustness_value": robust, "robustness_value_limit": limit}
        unmeasured |= e_values(whole.estimate, ends, spread)
    return Effect(
        treatment=question.treatment, outcome=question.outcome, treated=levels[treated], control=levels[control],
        estimand=question.estimand, adjusted_for=question.strata, estimate=whole.estimate, interval=ends,
        interval_reason=whole.reason, coverage=question.coverage, standard_error=whole.error, noise_error=whole.noise,
        mean_treated=None, mean_control=None, risk_ratio=None, odds_ratio=None, signal_to_noise=signal,
        share_supported=share,
        **unmeasured, by_group=tuple(by_group), balance=tuple(balance),
        notes=(*notes(share, float(np.clip(moments.mean(TREATMENT), 0, 1))),
               *void(float(moments.sums[-1, -1]), question.n)),
        method="moments", settings={}, n=question.n, release=moments, guarantee=moments.guarantee,
    )  # fmt: skip
