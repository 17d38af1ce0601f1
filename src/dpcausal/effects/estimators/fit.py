"""Noisy moments of a question's columns, what is released beside them, and whether models that were learnt fit.

The check: to the second order a doubly robust score is off by E[(e − ê)(m − m̂) / (e(1 − e))].  Along orthonormal
functions this is a sum of products of two residual sums.  Fresh noise in both is independent, so the products have no
bias.  The estimate of ``aipw`` is right if either of its lines is.  Where both bend, the mean score is off by a product
of two errors, which no width of the interval makes up for: so there is no interval where both are rejected, unless
what is left is small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpcausal.data.records import Rows
from dpcausal.effects.cells.corner_counts import GRID
from dpcausal.effects.cells.effect import few_count_note, notes, unmeasured_fields
from dpcausal.effects.estimators.design import FIRST, TREATMENT, Design, Pair, QuadraticTerms, drop_weak_terms
from dpcausal.effects.estimators.models import FINE, Feature, Models, PairFunction, density, fine_cells, quantile_bins
from dpcausal.effects.estimators.residual_sums import (
    haar,
    haar_of_grid,
    histograms,
    histograms_sensitivity,
    pair_functions,
    pair_functions_sensitivity,
    residual_sums,
    residual_sums_sensitivity,
)
from dpcausal.effects.estimators.scores import Nuisances
from dpcausal.effects.moments.adaptive import SHAPING, StreamedRows, estimate_location_scale, final_moments, shrinkage
from dpcausal.effects.moments.redundant import redundant_note, without_redundant
from dpcausal.effects.moments.regression import balance_of
from dpcausal.effects.moments.release import JointMoments
from dpcausal.effects.question import EffectQuestion
from dpcausal.effects.result import FitCheck, Interval
from dpcausal.mechanisms.additive import gaussian, gaussian_scale
from dpcausal.mechanisms.gate import book_exact
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP
from dpcausal.privacy.sensitivity import Query, Sensitivity

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
RANGE_IN_DEVIATIONS = 5.0
"""Fine cells reach so many spreads from a column's mean, inside its bounds."""
CHECKED_BINS = 64
WIDER = 1.69
"""The variance of the correction counts so many times in the interval."""
LEAST_FULL = 0.3
"""A bin counts as holding at least such a share of what it would hold if all were alike."""
LEFT = 1.2
"""Of models that fit the sums' squares are so many times those of noise and sampling, for what shrinkage leaves:
measured, so that a model that fits is rejected at level 0.05 in about one draw of ten or fewer."""
MOST_IN_TAIL = 4.0
"""Outcomes in the outermost bin are fitted if their sum of residuals is within so many deviations of 0."""
FEATURES, SUMS, FUNCTIONS = Fraction(1, 9), Fraction(5, 9), Fraction(3, 9)
"""Shares of the ρ of the check of lines: histograms of numbers, sums of residuals by their bins, and along pairs."""
LINE_BINS, MOST_PAIRS = 8, 200
MISFIT, CLEAR_BIAS, SMALL_BIAS = 0.05, 2.0, 0.25
"""Both lines are rejected at such a level, or the bias is so many of its errors; it is small where it is, with as many
errors more, at most such a share of half the interval."""


@dataclass(frozen=True)
class Fit:
    """Noisy moments of a question's columns, and what pays for what is released beside them; without privacy no ρ."""

    n: int
    design: Design
    terms: QuadraticTerms
    """The squares and products that are columns too."""
    moments: JointMoments
    redundant: tuple[str, ...]
    rows: StreamedRows
    budget: CallBudget
    rho: ZCDP | None

    @classmethod
    def of(
        cls, question: EffectQuestion, pairs: Sequence[Pair], rho: ZCDP | None, share: Fraction, enough: float,
        budget: CallBudget,
    ) -> Self:  # fmt: skip
        """Release the moments for a share of ρ; those of terms and redundant columns go if they have not ``enough``
        signal."""
        design, n = Design.of(question), question.n
        sources, d = tuple(dict.fromkeys(design.sources)), len(design.names)
        if rho is None:
            book_exact("effect", budget)
            held = question.table.parts(sources)
            unit = design.units(held)
            rows = StreamedRows.held(unit, held)
            first = JointMoments.without_noise(design.names, n, design.ranges, unit, held)
            terms = QuadraticTerms.about(first.scales, pairs, design)
            whole = terms.design(design)
            moments = JointMoments.without_noise(whole.names, n, whole.ranges, terms(unit), held)
        else:
            rows, part = StreamedRows.of(question.table, sources, design.units), rho.part(share)
            shape = estimate_location_scale(rows, d, n, budget, part, SHAPING[:1])
            terms = QuadraticTerms.about(shape, pairs, design)
            seen, whole = rows.with_terms(terms), terms.design(design)
            shape = estimate_location_scale(seen, len(whole.names), n, budget, part, SHAPING[1:], terms.shape(shape))
            last = final_moments(seen, shape, n, budget, part)
            moments = JointMoments.of_rounds(whole.names, n, whole.ranges, last)
        moments, gone = without_redundant(drop_weak_terms(moments, d, enough), FIRST, enough)
        if gone:
            moments = moments.among(terms.without_factor(moments.names, design))
        terms = terms.among(moments.names)
        return cls(n, design, terms, replace(moments, products=terms.products(design)), gone, rows, budget, rho)

    @property
    def whole(self) -> Design:
        return self.terms.design(self.design)

    @property
    def columns(self) -> Callable[[Reals], Reals]:
        """What makes the lines' columns, in their units, of rows on [−1, 1]; it can be sent to where the rows are."""
        terms, whole = self.terms, self.whole
        return lambda unit: whole.raw(terms(unit))

    @property
    def count(self) -> float:
        """The rows that count, noisy."""
        return min(self.moments.count, float(self.n))

    @property
    def size(self) -> float:
        """n √(2ρ), which rows weigh against noise."""
        return math.inf if self.rho is None else self.n * math.sqrt(2 * self.rho.rho)

    @property
    def chance(self) -> float:
        """The variance of the treatment, e(1 − e) for all alike."""
        mean = float(np.clip(self.moments.mean(TREATMENT), 0.05, 0.95))
        return mean * (1 - mean)

    @property
    def pairs(self) -> list[Pair]:
        """Pairs of features, except two levels of one column: public."""
        return [(one - FIRST, other - FIRST) for one, other in self.design.pairs]

    def residual_spreads(self, regressors: Sequence[str], least_share: float = 0.0) -> tuple[float, float]:
        """Return the outcome's standard deviations about a line and about its mean, the first at least a share."""
        moments = self.moments
        outcome, least = moments.names[0], (1e-6 * float(moments.halves[0])) ** 2
        left = shrinkage(len(moments.names), moments.radius) if moments.deviation > 0 else 1.0
        own, whole = moments.residual(outcome, regressors) / left, max(moments.residual(outcome, []) / left, least)
        return math.sqrt(max(own, least_share * whole or least)), math.sqrt(whole)

    def release(self, answer: Integers, claim: Sensitivity, label: str, share: Fraction) -> tuple[Reals, float]:
        """Return a noisy answer in units of ``GRID``, and the deviation of its noise."""
        if self.rho is None:
            return answer / GRID, 0.0
        loss = self.rho.part(share)
        noisy = gaussian(Query(answer, claim, label), self.budget, loss)
        return np.asarray(noisy, dtype=np.float64) / GRID, gaussian_scale(float(claim.bound), loss) / GRID

    def features(self, bins: int, share: Fraction) -> tuple[Feature, ...]:
        """Return the confounders in bins of about equal counts, by noisy histograms of the numbers."""
        numbers, names, features = self.design.numbers, self.moments.names, dict[int, Feature]()
        ends = [self._range(place) for place in numbers]

        def kernel(unit: Reals, rows: Rows) -> Integers:
            cells = [fine_cells(unit[:, place], *end) for place, end in zip(numbers, ends, strict=True)]
            return histograms(np.stack(cells, axis=1), FINE, rows.masses(GRID))

        if numbers:
            claim = histograms_sensitivity(len(numbers))
            noisy, noise = self.release(self.rows.over(kernel), claim, "histograms of confounders", share)
            for place, counts, (low, width) in zip(numbers, noisy, ends, strict=True):
                cells, full = quantile_bins(density(counts, noise, self.count), bins)
                features[place] = Feature(place, low, width, cells, full)
        halves = (np.arange(FINE) >= FINE // 2).astype(np.int64)
        for place, name in list(enumerate(self.design.names))[FIRST:]:
            mean = self.moments.mean(names.index(name)) if name in names else 0.0
            mean = float(np.clip(mean, 0.02, 0.98))
            features.setdefault(place, Feature(place, -1.0, 2.0, halves, self.count * np.array([1 - mean, mean])))
        return tuple(features[place] for place in range(FIRST, len(self.design.names)))

    def _range(self, place: int) -> tuple[float, float]:
        name, middle, half = self.design.names[place], self.design.middles[place], self.design.halves[place]
        if name not in self.moments.names:
            return -1.0, 2.0
        reach = RANGE_IN_DEVIATIONS * math.sqrt(self.moments.residual(name, [])) / half
        centre = (self.moments.mean(self.moments.names.index(name)) - middle) / half
        low, high = (float(np.clip(end, -1.0, 1.0)) for end in (centre - reach, centre + reach))
        return (low, high - low) if high - low > 1e-9 else (-1.0, 2.0)

    def sums_along(self, models: Models, functions: Sequence[PairFunction]) -> Integers:
        columns = self.columns

        def kernel(unit: Reals, rows: Rows) -> Integers:
            values = np.stack([models.values(unit, one) for one in functions], axis=1)
            return pair_functions(values, models.residuals(columns(unit), unit), rows.masses(GRID))

        return self.rows.over(kernel)

    def check(
        self, models: Models, steps: Sequence[tuple[int, ...]], shares: tuple[Fraction, Fraction], uneven: bool = False
    ) -> Checked:
        """Release the sums of the models' residuals with fresh noise, and return what they show.

        ``uneven`` says that bins may be far from equally full.
        """
        sides = [models.sides(step, CHECKED_BINS) for step in steps]
        cells = [math.prod(one) for one in sides]
        scales, released, columns = np.array(models.scales)[:, None], list[Sums](), self.columns

        def kernel(unit: Reals, rows: Rows) -> Integers:
            residuals, mass = models.residuals(columns(unit), unit), rows.masses(GRID)
            sums = [residual_sums(models.codes(unit, step, side), size, residuals, mass)
                    for step, side, size in zip(steps, sides, cells, strict=True)]  # fmt: skip
            return np.concatenate(sums, axis=1)

        parts = np.split(self.rows.over(kernel), np.cumsum(cells)[:-1], axis=1) if steps else []
        claim, label = residual_sums_sensitivity(2), "residual sums of the final models"
        for step, answer, side in zip(steps, parts, sides, strict=True):
            noisy, noise = self.release(answer, claim, label, shares[0] / len(steps))
            full = models.features[step[0]].counts_of(side[0]) if uneven else None
            released.append(Sums(noisy * scales, noise * scales[:, 0], side, full))
        if models.functions:
            claim, label = pair_functions_sensitivity(len(models.functions), 2), "residuals of the final models"
            answer = self.sums_along(models, models.functions)
            noisy, noise = self.release(answer, claim, label + " along pairs", shares[1])
            sizes = scales * models.functions[0].size  # of all functions alike
            released.append(Sums(noisy * sizes, noise * sizes[:, 0], ()))
        return checked(released, models.variances(self.chance), self.count, self.chance)

    def effect_fields(
        self, estimate: float, ends: Interval | None, share: float, spread: float, checked: Checked | None,
        more: tuple[str, ...] = (),
    ) -> dict[str, Any]:  # fmt: skip
        """Return what a result says of the moments, of confounding that was not measured, and of the check."""
        moments = self.moments
        outcome, arm, *others = moments.names
        robust = moments.ols(outcome, [arm, *others])[arm].robustness_value
        against = notes(share, float(np.clip(moments.mean(TREATMENT), 0, 1)))
        few = few_count_note(float(moments.sums[-1, -1]), self.n)
        return {
            "signal_to_noise": moments.signal_to_noise, "share_supported": share, "balance": balance_of(moments),
            "notes": (*redundant_note(self.redundant), *more, *against, *few), "release": moments,
            "fit_check": None if checked is None else checked.check,
            **unmeasured_fields(robust, estimate, ends, spread),
        }  # fmt: skip


@dataclass(frozen=True)
class Sums:
    """Noisy sums of the residuals of treatment and outcome along functions, shape (2, K), in units of both."""

    sums: Reals
    noise: Reals
    bins: tuple[int, ...]
    """Of a feature or a grid; of pair functions none."""
    counts: Reals | None = None
    """Of the bins of one feature, where they may be far from equally full."""

    def coefficients(self) -> tuple[Reals, Reals]:
        """Return the sums along orthonormal functions without the mean, shape (2, K), and how much of the noise's
        variance is in each."""
        if self.counts is not None:
            shares = np.maximum(self.counts, LEAST_FULL * self.counts.mean())
            shares = shares / shares.sum()
            scaled = (self.sums - np.outer(self.sums.sum(axis=1), shares)) / np.sqrt(shares * len(shares))
            return scaled, 1 / (shares * len(shares))
        if not self.bins:
            along = self.sums
        elif len(self.bins) == 1:
            along = np.stack([haar(one)[1:] for one in self.sums])
        else:
            along = np.stack([haar_of_grid(one.reshape(self.bins))[1:, 1:].ravel() for one in self.sums])
        return along, np.ones(along.shape[1])


@dataclass(frozen=True)
class Checked:
    """The check, the correction's variance and what it would be if both models fitted."""

    check: FitCheck
    variance: float
    null: float

    @property
    def rejected(self) -> bool:
        """Whether neither model fits."""
        return max(self.check.treatment_pvalue, self.check.outcome_pvalue) < MISFIT

    @property
    def shrunken(self) -> float:
        """The correction that the estimate takes: less, the nearer it is to its noise."""
        correction = self.check.correction
        return correction * max(0.0, 1 - self.null / correction**2) if correction else 0.0

    def bends(self, half_width: float) -> bool:
        """Return whether both models are off by more than an interval of such a half-width bears."""
        error, size = self.check.error, abs(self.check.correction)
        return (self.rejected or size > CLEAR_BIAS * error) and size + CLEAR_BIAS * error > SMALL_BIAS * half_width


def checked(sums: list[Sums], variances: tuple[float, float], count: float, chance: float) -> Checked:
    """Return the check, from the ``variances`` of one row's residuals, ``count`` rows and ``chance`` e(1 − e)."""
    from scipy.special import chdtrc

    correction = variance = null = 0.0
    energies, terms, tail = np.zeros(2), 0, 0.0
    for one in sums:
        (M, N), loud = one.coefficients()
        size = math.prod(one.bins)
        of_m, of_n = (noise**2 * loud + count / size * own for noise, own in zip(one.noise, variances, strict=True))
        scale = size / (count**2 * chance)
        least = float(of_m @ of_n)
        correction += scale * float(M @ N)
        variance += scale**2 * max(float(M**2 @ of_n) + float(N**2 @ of_m) - least, least / 2)
        null += scale**2 * least
        energies += float((M**2 / of_m).sum()), float((N**2 / of_n).sum())
        terms += len(M) - (one.counts is not None)
        if len(one.bins) == 1 and one.bins[0] > 2:
            tail = max(tail, float(np.abs(one.sums[1, [0, -1]]).max()) / math.sqrt(float(of_n[0])))
    pvalues = [float(chdtrc(terms, energy / LEFT)) for energy in energies]
    error = math.sqrt(WIDER * variance)
    return Checked(FitCheck(correction, error, pvalues[0], pvalues[1], tail), WIDER * variance, null)


def check_claims(design: Design) -> tuple[str, ...]:
    """Return the names of the proofs of what the check of lines releases; none where lines can miss nothing."""
    numbers = ("histograms", "residual-sums") if design.numbers else ()
    return (*numbers, "pair-functions") if 0 < len(design.pairs) <= MOST_PAIRS else numbers


def check_lines(fit: Fit, lines: Nuisances) -> Checked:
    """Release sums of both residuals by eight bins of each number, and along each pair, and return what they show."""
    spreads = fit.residual_spreads(fit.moments.names[1:])
    models = Models(
        lines.outcome[1:], lines.treatment, float(lines.outcome[0]), spreads[0], fit.moments.mean(0), spreads[1],
        fit.features(LINE_BINS, FEATURES),
    )  # fmt: skip
    functions = tuple(PairFunction(pair, "ss") for pair in fit.pairs) if len(fit.pairs) <= MOST_PAIRS else ()
    models = replace(models, functions=functions, weights=np.zeros((2, len(functions))))
    return fit.check(models, [(place - FIRST,) for place in fit.design.numbers], (SUMS, FUNCTIONS), uneven=True)
