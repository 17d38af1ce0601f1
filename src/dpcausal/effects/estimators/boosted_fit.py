"""How the models of ``boosted-aipw`` are learnt and checked: what is released, step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Self

import numpy as np
import numpy.typing as npt

from dpcausal.data.records import Rows
from dpcausal.effects.cells.corner_counts import GRID
from dpcausal.effects.estimators.aipw_scores import TREATMENT, Design
from dpcausal.effects.estimators.boosted_models import (
    FINE,
    OF_TREATMENT,
    Feature,
    Models,
    PairFunction,
    density,
    fine_cells,
    kept_weights,
    quantile_bins,
    table_of,
)
from dpcausal.effects.estimators.fit_check import Checked, Sums, checked
from dpcausal.effects.estimators.polynomial import Pair, QuadraticTerms, drop_weak_terms, products_of, squares_of
from dpcausal.effects.estimators.residual_sums import (
    histograms,
    histograms_sensitivity,
    pair_functions,
    pair_functions_sensitivity,
    residual_sums,
    residual_sums_sensitivity,
)
from dpcausal.effects.moments.adaptive import (
    SHAPING,
    StreamedRows,
    estimate_location_scale,
    final_moments,
    predicted_signal,
    shrinkage,
)
from dpcausal.effects.moments.redundant import without_redundant
from dpcausal.effects.moments.release import JointMoments
from dpcausal.effects.question import EffectQuestion
from dpcausal.mechanisms.additive import gaussian, gaussian_scale
from dpcausal.mechanisms.gate import book_exact
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP
from dpcausal.privacy.sensitivity import Query, Sensitivity

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

MOMENTS, HISTOGRAMS, BOOSTING, FUNCTIONS, CHECK, CHECKED_FUNCTIONS, SQUARES, SCORES = (
    Fraction(percent, 100) for percent in (18, 5, 21, 8, 20, 6, 4, 18)
)
"""Shares of ρ."""
SECOND_DEGREE_SIGNAL, LEAST_SIGNAL, ROWS_A_COLUMN = 2.0, 1.0, 20
"""Squares, and products, are among the columns where moments with them stand so far above their noise by public
numbers, without noise where there are so many rows for each column; no answer where those of the columns alone would
not stand so far."""
MOST_TERMS = 40
CLEAR_TERM = 2.0
"""A term of the second degree stays in a line if its slope is so many deviations of its noise."""
BINS = ((3_500.0, 16), (8_000.0, 32), (16_000.0, 64), (40_000.0, 128), (math.inf, 256))
"""Bins of a feature by n √(2ρ) √(3/columns)."""
CHECKED_BINS = 64
GRIDS_FROM = 1_500.0
"""Grids of two features are learnt where n √(2ρ) is so many times the number of features and pairs."""
FINEST_FUNCTION = 0.02
"""Several functions a pair where the noise of each moves the probability by less."""
LEAST_SPREAD = 0.05
"""A line leaves at least such a share of the outcome's variance."""
RANGE_IN_DEVIATIONS = 5.0
"""Fine cells reach so many spreads from a column's mean, inside its bounds."""


@dataclass(frozen=True)
class Columns:
    """What makes the lines' columns, in their units, of rows on [−1, 1]; it can be sent to where the rows are."""

    terms: QuadraticTerms
    middles: Reals
    halves: Reals

    def __call__(self, unit: Reals) -> Reals:
        return self.middles + self.halves * self.terms(unit)


@dataclass(frozen=True)
class Fit:
    """Noisy moments of a question's columns, and what pays for what is released beside them; without privacy no ρ."""

    n: int
    design: Design
    terms: QuadraticTerms
    """The squares and products that are columns of the lines."""
    moments: JointMoments
    redundant: tuple[str, ...]
    rows: StreamedRows
    budget: CallBudget
    rho: ZCDP | None

    @classmethod
    def of(cls, question: EffectQuestion, rho: ZCDP | None, budget: CallBudget) -> Self:
        """Release the moments."""
        design, n = Design.of(question), question.n
        sources = tuple(dict.fromkeys(design.sources))
        streamed = StreamedRows.of(question.table, sources, design.units)
        d, pairs = len(design.names), second_degree(design, n, rho)
        if rho is None:
            book_exact("effect", budget)
            rows = question.table.parts(sources)
            unit = design.units(rows)
            first = JointMoments.without_noise(design.names, n, design.ranges, unit, rows)
            terms = QuadraticTerms.about(first.scales, pairs, design)
            whole = terms.design(design)
            moments = JointMoments.without_noise(whole.names, n, whole.ranges, terms(unit), rows)
        else:
            part = rho.part(MOMENTS)
            shape = estimate_location_scale(streamed, d, n, budget, part, SHAPING[:1])
            terms = QuadraticTerms.about(shape, pairs, design)
            seen, whole = streamed.with_terms(terms), terms.design(design)
            shape = estimate_location_scale(
                seen, len(whole.names), n, budget, part, SHAPING[1:], terms.shape(shape)
            )
            last = final_moments(seen, shape, n, budget, part)
            moments = JointMoments.of_rounds(whole.names, n, whole.ranges, last)
        moments, gone = without_redundant(drop_weak_terms(moments, d, LEAST_SIGNAL), 2, LEAST_SIGNAL)
        if gone:
            moments = moments.among(terms.without_factor(moments.names, design))
        terms = terms.among(moments.names)
        return cls(n, design, terms, replace(moments, products=terms.products(design)), gone, streamed, budget, rho)

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

    def release(self, answer: Integers, claim: Sensitivity, label: str, share: Fraction) -> tuple[Reals, float]:
        """Return a noisy answer in units of ``GRID``, and the deviation of its noise."""
        if self.rho is None:
            return answer / GRID, 0.0
        loss = self.rho.part(share)
        noisy = gaussian(Query(answer, claim, label), self.budget, loss)
        return np.asarray(noisy, dtype=np.float64) / GRID, gaussian_scale(float(claim.bound), loss) / GRID

    @property
    def columns(self) -> Columns:
        """What makes the lines' columns of a row."""
        whole = self.terms.design(self.design)
        return Columns(self.terms, whole.middles, whole.halves)

    def lines(self) -> Models:
        """Return the models that are lines."""
        outcome, treated, *others = self.moments.names
        names = self.terms.design(self.design).names
        of_outcome, of_treatment = self._line(outcome, [treated, *others]), self._line(treated, others)
        slopes = [
            np.array([line.get(name, 0.0) for name in (*names[2:], "intercept")])
            for line in (of_outcome, of_treatment)
        ]
        moments = self.moments
        shrunken = shrinkage(len(moments.names), moments.radius) if moments.deviation > 0 else 1.0
        least = (1e-6 * float(moments.halves[0])) ** 2
        whole = max(moments.residual(outcome, []) / shrunken, least)
        own = moments.residual(outcome, [name for name in of_outcome if name != "intercept"]) / shrunken
        return Models(
            slopes[0], slopes[1], of_outcome.get(treated, 0.0), math.sqrt(max(own, LEAST_SPREAD * whole)),
            moments.mean(0), math.sqrt(whole), (),
        )  # fmt: skip

    def _line(self, outcome: str, regressors: Sequence[str]) -> dict[str, float]:
        chosen = list(regressors)
        for _ in range(2):
            if chosen:
                slopes = self.moments.ols(outcome, chosen).coefficients[:-1]
                first = self.design.names
                chosen = [one.name for one in slopes
                        if one.name in first or abs(one.estimate) > CLEAR_TERM * one.noise_error]  # fmt: skip
        if not chosen:
            return {"intercept": self.moments.mean(self.moments.names.index(outcome))}
        return {one.name: one.estimate for one in self.moments.ols(outcome, chosen).coefficients}

    def learnt(self) -> Models:
        """Release what is learnt beside the lines: one pass over the features and pairs, then pair functions."""
        columns = len(self.design.names) - 2
        whole = self.size * math.sqrt(3 / columns)
        bins = next((number for end, number in BINS if whole < end), FINE)
        models = replace(self.lines(), features=self.features(bins, HISTOGRAMS))
        steps: list[tuple[int, ...]] = [(place,) for place in range(columns)]
        pairs = pairs_of(self.design)
        if self.size > GRIDS_FROM * (columns + len(pairs)):
            steps += pairs
        for step in steps:
            models = self._boosted(models, step, BOOSTING / len(steps))
        functions = functions_of(models.features, pairs, self.n, self.rho)
        if functions:
            claim = pair_functions_sensitivity(len(functions), 2)
            noisy, noise = self.release(self._along(models, functions), claim, "residuals along pairs", FUNCTIONS)
            scales, sizes = np.array(models.scales), np.array([one.size for one in functions])
            weights = kept_weights(
                noisy * scales[:, None], noise * scales, models.variances(self.chance), sizes, self.count
            )
            models = replace(models, functions=functions, weights=weights)
        return replace(models, final=True)

    def features(self, bins: int, share: Fraction) -> tuple[Feature, ...]:
        """Return the columns in bins of about equal counts, by noisy histograms of the numbers."""
        design = self.design
        numbers = [place for place in range(2, len(design.names)) if design.codes[place] is None]
        ends = [self._shown(place) for place in numbers]

        def kernel(unit: Reals, rows: Rows) -> Integers:
            cells = [fine_cells(unit[:, place], *end) for place, end in zip(numbers, ends, strict=True)]
            return histograms(np.stack(cells, axis=1), FINE, rows.masses(GRID))

        found = {}
        noisy, noise = np.zeros((0, FINE)), 0.0
        if numbers:
            claim = histograms_sensitivity(len(numbers))
            noisy, noise = self.release(self.rows.over(kernel), claim, "histograms of confounders", share)
        for place, counts, (low, width) in zip(numbers, noisy, ends, strict=True):
            cells, full = quantile_bins(density(counts, noise, self.count), bins)
            found[place] = Feature(place, low, width, cells, full)
        halves = (np.arange(FINE) >= FINE // 2).astype(np.int64)
        for place in range(2, len(design.names)):
            name = design.names[place]
            mean = self.moments.mean(self.moments.names.index(name)) if name in self.moments.names else 0.0
            mean = float(np.clip(mean, 0.02, 0.98))
            levels = Feature(place, -1.0, 2.0, halves, self.count * np.array([1 - mean, mean]))
            found.setdefault(place, levels)
        return tuple(found[place] for place in sorted(found))

    def _shown(self, place: int) -> tuple[float, float]:
        name, middle, half = self.design.names[place], self.design.middles[place], self.design.halves[place]
        if name not in self.moments.names:
            return -1.0, 2.0
        reach = RANGE_IN_DEVIATIONS * math.sqrt(self.moments.residual(name, [])) / half
        centre = (self.moments.mean(self.moments.names.index(name)) - middle) / half
        low, high = (float(np.clip(end, -1.0, 1.0)) for end in (centre - reach, centre + reach))
        return (low, high - low) if high - low > 1e-9 else (-1.0, 2.0)

    def _boosted(self, models: Models, step: tuple[int, ...], share: Fraction) -> Models:
        sides, raw = models.sides(step, FINE), self.columns

        def kernel(unit: Reals, rows: Rows) -> Integers:
            codes, residuals = models.codes(unit, step, sides), models.residuals(raw(unit), unit)
            return residual_sums(codes, math.prod(sides), residuals, rows.masses(GRID))

        noisy, noise = self.release(self.rows.over(kernel), residual_sums_sensitivity(2), "residual sums", share)
        scales = np.array(models.scales)
        table = table_of(
            noisy * scales[:, None], noise * scales, models.variances(self.chance), models, step, sides, self.count
        )
        return replace(models, tables=(*models.tables, table))

    def _along(self, models: Models, functions: Sequence[PairFunction]) -> Integers:
        raw = self.columns

        def kernel(unit: Reals, rows: Rows) -> Integers:
            values = np.stack([models.values(unit, one) for one in functions], axis=1)
            return pair_functions(values, models.residuals(raw(unit), unit), rows.masses(GRID))

        return self.rows.over(kernel)

    def check(
        self, models: Models, steps: Sequence[tuple[int, ...]],
        shares: tuple[Fraction, Fraction] = (CHECK, CHECKED_FUNCTIONS), uneven: bool = False,
    ) -> Checked:  # fmt: skip
        """Release the sums of the final models' residuals with fresh noise, and return what they show.

        ``uneven`` says that bins may be far from equally full.
        """
        sides = [models.sides(step, CHECKED_BINS) for step in steps]
        cells = [math.prod(one) for one in sides]
        scales, found, raw = np.array(models.scales)[:, None], [], self.columns

        def kernel(unit: Reals, rows: Rows) -> Integers:
            residuals, mass = models.residuals(raw(unit), unit), rows.masses(GRID)
            sums = [residual_sums(models.codes(unit, step, side), size, residuals, mass)
                    for step, side, size in zip(steps, sides, cells, strict=True)]  # fmt: skip
            return np.concatenate(sums, axis=1)

        parts = np.split(self.rows.over(kernel), np.cumsum(cells)[:-1], axis=1) if steps else []
        claim, label = residual_sums_sensitivity(2), "residual sums of the final models"
        for step, answer, side in zip(steps, parts, sides, strict=True):
            noisy, noise = self.release(answer, claim, label, shares[0] / len(steps))
            full = models.features[step[0]].counts_of(side[0]) if uneven else None
            found.append(Sums(noisy * scales, noise * scales[:, 0], side, full))
        if models.functions:
            claim, label = pair_functions_sensitivity(len(models.functions), 2), "residuals of the final models"
            answer = self._along(models, models.functions)
            noisy, noise = self.release(answer, claim, label + " along pairs", shares[1])
            sizes = scales * models.functions[0].size  # of all functions alike
            found.append(Sums(noisy * sizes, noise * sizes[:, 0], ()))
        return checked(found, models.variances(self.chance), self.count, self.chance)


def second_degree(design: Design, n: int, rho: ZCDP | None) -> list[Pair]:
    """Return the squares and products that are among the lines' columns: public."""
    squares = squares_of(design)
    for pairs in ([*squares, *products_of(design)], squares):
        size = len(design.names) + len(pairs)
        if size > MOST_TERMS:
            continue
        if rho is None:
            enough = n >= ROWS_A_COLUMN * size
        else:
            enough = predicted_signal(size, n, rho.part(MOMENTS)) >= SECOND_DEGREE_SIGNAL
        if enough:
            return pairs
    return []


def pairs_of(design: Design) -> list[tuple[int, int]]:
    """Return the pairs of features, but for two levels of one column: public."""
    sources = design.sources[2:]
    return [(one, other) for one, other in combinations(range(len(sources)), 2) if sources[one] != sources[other]]


def functions_of(
    features: Sequence[Feature], pairs: Sequence[tuple[int, int]], n: int, rho: ZCDP | None
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
