"""Noisy moments of a question's columns, what is released beside them, and whether models that were learnt fit."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.data.records import Rows
from dpcausal.effects.cells.corner_counts import GRID
from dpcausal.effects.cells.effect import rare_arm_note, unmeasured_fields
from dpcausal.effects.moments.adaptive import (
    SHAPING,
    TAIL,
    StreamedRows,
    anchor,
    estimate_location_scale,
    final_moments,
    noise_of,
    shrinkage,
    tail_radius,
)
from dpcausal.effects.moments.effect import balance_of
from dpcausal.effects.moments.redundant import is_constant, redundant_note, without_redundant
from dpcausal.effects.moments.release import JointMoments
from dpcausal.effects.nuisance.design import FIRST, OUTCOME, TREATMENT, Design, Pair, QuadraticTerms, drop_weak_terms
from dpcausal.effects.nuisance.features import FINE, WIDE, Axis, Feature, quantile_bins
from dpcausal.effects.nuisance.fit_check import Checked, Dictionary, Sums, checked
from dpcausal.effects.nuisance.models import (
    OF_TREATMENT,
    Models,
    PairFunction,
)
from dpcausal.effects.nuisance.pair_functions import PairGeometry
from dpcausal.effects.nuisance.residual_sums import (
    density,
    histograms,
    histograms_sensitivity,
    pair_functions,
    pair_functions_sensitivity,
    residual_sums,
    residual_sums_sensitivity,
)
from dpcausal.effects.nuisance.scores import LEAST_PROBABILITY, LIMITED, Nuisances
from dpcausal.effects.nuisance.tables import joint_shares
from dpcausal.effects.question import EffectQuestion
from dpcausal.effects.result import MOSTLY, Interval
from dpcausal.mechanisms.additive import gaussian, gaussian_scale
from dpcausal.mechanisms.gate import book_exact
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP
from dpcausal.privacy.sensitivity import Query, Sensitivity

LEAST_SPREAD = 1e-9
"""A column with a smaller spread, on [−1, 1], has equal cells on its whole range."""
LEFT_IN_BINS, LEFT_ALONG_PAIRS = 5.0, 0.5
"""Such a share of the variance of the noise when a model was learnt is left in it, over the number of bins, and along
pairs: measured."""
FEATURES, SUMS, FUNCTIONS = Fraction(1, 9), Fraction(5, 9), Fraction(3, 9)
"""Shares of the ρ of the check of lines: histograms of numbers, sums of residuals by their bins, and along pairs."""
LINE_BINS, MOST_PAIRS = 8, 200
LEAST_LEVEL, RARE_LEVEL = 0.002, 0.06
"""A level is taken to have no smaller share of the records; it is rare where it has a smaller one."""


@dataclass(frozen=True)
class Fit:
    """Noisy moments of a question's columns, and what pays for what is released beside them; without privacy no ρ."""

    n: int
    design: Design
    terms: QuadraticTerms
    """The squares and products that are columns too."""
    moments: JointMoments
    redundant: tuple[str, ...]
    correlation: Reals
    """That of the confounders, as released; 0 of a column that is constant, as far as the noise shows."""
    rows: StreamedRows
    budget: CallBudget
    rho: ZCDP | None
    rare: dict[str, float] = field(default_factory=dict)
    """Shares of rare levels, which the lines have no products with: see ``Design.rare``."""

    @classmethod
    def of(
        cls, question: EffectQuestion, pairs_of: Callable[[int], Sequence[Pair]], rho: ZCDP | None, share: Fraction,
        enough: float, budget: CallBudget, with_rare: bool = True,
    ) -> Self:  # fmt: skip
        """Release the moments for a share of ρ, with the terms that ``pairs_of`` the rows that count, as a first round
        says, can have; those of terms and redundant columns go if they have not ``enough`` signal.  Where not
        ``with_rare``, so do products with levels that a round or the last release shows as rare."""
        design, n = Design.of(question), question.n
        sources, d, rare, doubt = tuple(dict.fromkeys(design.sources)), len(design.names), dict[int, float](), 0.0
        if rho is None:
            book_exact("effect", budget)
            held = question.table.parts(sources)
            unit = design.units(held)
            rows = StreamedRows.held(unit, held)
            first = JointMoments.without_noise(design.names, n, design.ranges, unit, held)
            terms = QuadraticTerms.about(first.scales, pairs_of(n), design)
            whole = terms.design(design)
            moments = JointMoments.without_noise(whole.names, n, whole.ranges, terms(unit), held)
        else:
            rows, part = StreamedRows.of(question.table, sources, design.units), rho.part(share)
            shape = estimate_location_scale(rows, d, n, budget, part, SHAPING[:1])
            rare = {} if with_rare else design.rare((1 + shape.middle) / 2)
            noise = noise_of(d, n, tail_radius(d, TAIL), part.part(SHAPING[0]))
            doubt = noise.deviation / math.sqrt(8) / anchor(noise.radius) / n
            pairs = pairs_of(math.ceil(min(shape.count, n)))
            terms = QuadraticTerms.about(shape, [pair for pair in pairs if not {*rare} & {*pair}], design)
            seen, whole = rows.with_terms(terms), terms.design(design)
            shape = estimate_location_scale(seen, len(whole.names), n, budget, part, SHAPING[1:], terms.shape(shape))
            last = final_moments(seen, shape, n, budget, part)
            moments = JointMoments.of_rounds(whole.names, n, whole.ranges, last)
            rare = {} if with_rare else design.rare(np.array([moments.mean(place) for place in range(d)])) | rare
        named = {design.names[place]: _doubted(share, doubt) for place, share in rare.items()}
        correlation = _correlation(moments, d)
        moments = moments.among(terms.without(moments.names, design, {*named})) if rare else moments
        moments, gone = without_redundant(drop_weak_terms(moments, d, enough), FIRST, enough)
        if gone:
            moments = moments.among(terms.without(moments.names, design, {*design.names} - {*moments.names}))
        terms = terms.among(moments.names)
        moments = replace(moments, products=terms.products(design))
        return cls(n, design, terms, moments, gone, correlation, rows, budget, rho, named)

    @property
    def whole(self) -> Design:
        return self.terms.design(self.design)

    @property
    def columns(self) -> Callable[[Reals], Reals]:
        """What makes the lines' columns, in their units, of rows on [−1, 1]; it can be sent to where the rows are."""
        terms, whole = self.terms, self.whole
        return lambda unit: whole.raw(terms(unit))

    def columns_of(self, models: Models) -> Callable[[Reals], Reals]:
        """Return the same, of which only columns in a line are filled: as its rows lie, or at the ends of the line."""
        terms, design = self.terms, self.design
        slopes = np.abs(models.outcome[:-1]) + np.abs(models.treatment[:-1])
        used = [OUTCOME, TREATMENT, *(FIRST + np.flatnonzero(slopes))]
        return lambda unit: terms.raw(models.bulk(unit), design, used)

    def scores(self, models: Models) -> Callable[[Reals], tuple[Reals, Reals]]:
        columns = self.columns_of(models)
        return lambda unit: models.scores(columns(unit), models.cells(unit))

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
        mean = float(np.clip(self.moments.mean(TREATMENT), 0.02, 0.98))
        return mean * (1 - mean)

    @property
    def pairs(self) -> list[Pair]:
        """Pairs of features, except two levels of one column: public."""
        return [(one - FIRST, other - FIRST) for one, other in self.design.pairs]

    def correlated(self, step: tuple[int, ...]) -> float:
        """Return the correlation of two features; 0 of one alone."""
        return float(self.correlation[step]) if len(step) == 2 else 0.0

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
        return np.asarray(noisy, dtype=np.float64) / GRID, self.noise_of(claim, share)

    def features(self, bins: int, share: Fraction, fine: int = FINE[0]) -> tuple[Feature, ...]:
        """Return the confounders in bins of about equal counts, by noisy histograms in ``fine`` cells."""
        numbers, names, features = self.design.numbers, self.moments.names, dict[int, Feature]()
        axes, levels = [self._axis(place) for place in numbers], self.design.levels if numbers else []
        sizes = [fine] * len(numbers) + [WIDE] * len(numbers) + [1 + len(places) for places in levels]

        def kernel(unit: Reals, rows: Rows) -> Integers:
            cells = [axis.cells(unit[:, place], fine) for place, axis in zip(numbers, axes, strict=True)]
            cells += [one * WIDE // fine for one in cells]
            cells += [(unit[:, places] > 0) @ np.arange(1, len(places) + 1) for places in levels]
            return histograms(np.stack(cells).T, sizes, rows.masses(GRID))

        means, least = {place: self.moments.mean(names.index(name)) for place, name in enumerate(self.design.names)
                        if name in names}, LEAST_LEVEL  # fmt: skip
        if numbers:
            claim, label = histograms_sensitivity(len(sizes)), "histograms of confounders"
            released, noise = self.release(self.rows.over(kernel), claim, label, share)
            noisy = np.split(released, np.cumsum(sizes[:-1]))
            wide = noisy[len(numbers) : 2 * len(numbers)]
            for place, counts, wider, axis in zip(numbers, noisy, wide, axes, strict=False):
                full = density(counts, wider, noise, self.count)
                features[place] = Feature(place, axis, quantile_bins(full, bins), bins, full)
            for places, counts in zip(levels, noisy[2 * len(numbers) :], strict=True):
                means |= {place: float(one) / self.count for place, one in zip(places, counts[1:], strict=False)}
            least = max(least, noise / self.count)
        halves = (np.arange(fine) >= fine // 2).astype(np.int64)
        for place in range(FIRST, len(self.design.names)):
            mean = float(np.clip(means.get(place, 0.0), least, 1 - least))
            full = self.count * np.where(halves, mean, 1 - mean) * 2 / fine
            features.setdefault(place, Feature(place, Axis(), halves, 2, full))
        return tuple(features[place] for place in range(FIRST, len(self.design.names)))

    def noise_of(self, claim: Sensitivity, share: Fraction) -> float:
        """Return the deviation of the noise of an answer in units of ``GRID``."""
        return 0.0 if self.rho is None else gaussian_scale(float(claim.bound), self.rho.part(share)) / GRID

    def levels_by_mean(self, features: Sequence[Feature], noise: float) -> tuple[int, ...]:
        """Return the rare levels whose slope in the treatment's line is noisier than the mean of their residuals would
        be, from sums with this noise."""
        moments, names = self.moments, self.design.names
        treated, *others = moments.names[TREATMENT:]
        line = moments.ols(treated, others).coefficients if others else ()  # none of the columns may vary
        own = {one.name: one.noise_error for one in line}
        few = {place: float(one.counts.min()) for place, one in enumerate(features)
               if one.bins == 2 and names[one.place] in own}  # fmt: skip
        return tuple(place for place, count in few.items() if count < RARE_LEVEL * self.count
                     and own[names[features[place].place]] > noise * OF_TREATMENT / count)  # fmt: skip

    def products_with(self, names: set[str]) -> set[str]:
        """Return names of columns and of the products with them."""
        products = zip(self.terms.names, self.terms.pairs, strict=True)
        return names | {own for own, pair in products if names & {self.design.names[place] for place in pair}}

    def _axis(self, place: int) -> Axis:
        name, middle, half = self.design.names[place], self.design.middles[place], self.design.halves[place]
        if name not in self.moments.names:
            return Axis()
        spread = math.sqrt(self.moments.residual(name, [])) / half
        centre = (self.moments.mean(self.moments.names.index(name)) - middle) / half
        return Axis.within(float(np.clip(centre, -1.0, 1.0)), spread) if spread > LEAST_SPREAD else Axis()

    def sums_along(self, models: Models, functions: Sequence[PairFunction]) -> Integers:
        columns = self.columns_of(models)

        def kernel(unit: Reals, rows: Rows) -> Integers:
            cells = models.cells(unit)
            residuals = models.residuals(columns(unit), cells)
            return along_pairs(models, functions, cells, residuals, rows.masses(GRID))

        return self.rows.over(kernel)

    def check(self, models: Models, along: Dictionary, share: Fraction) -> Checked:
        """Release the sums of the models' residuals with fresh noise, and return what they show."""
        cells = [math.prod(sides) for _, sides in along.steps]
        scales, released, columns = np.array(models.scales)[:, None], list[Sums](), self.columns_of(models)
        chance = self.chance

        def kernel(unit: Reals, rows: Rows) -> Integers:
            places, mass = models.cells(unit), rows.masses(GRID)
            residuals = models.residuals(columns(unit), places, chance)
            sums = [np.zeros((2, 0), dtype=np.int64)]
            sums += [residual_sums(models.codes(places, step, sides), size, residuals, mass)
                     for (step, sides), size in zip(along.steps, cells, strict=True)]  # fmt: skip
            if along.functions:
                sums.append(along_pairs(models, along.functions, places, residuals, mass))
            return np.concatenate(sums, axis=1)

        *parts, of_pairs = np.split(self.rows.over(kernel), np.cumsum(cells), axis=1)
        claim, label = residual_sums_sensitivity(2), "residual sums of the final models"
        for (step, sides), answer in zip(along.steps, parts, strict=True):
            noisy, noise = self.release(answer, claim, label, share * along.share(math.prod(sides)))
            margins = tuple(models.features[place].counts_of(side) for place, side in zip(step, sides, strict=True))
            size = math.prod(sides)
            left = LEFT_IN_BINS / max(size, LEFT_IN_BINS) * models.learning_noise(step) ** 2 / size
            blocks = models.blocks(step, sides)
            shares = joint_shares(margins, self.correlated(step))
            released.append(Sums(noisy * scales, noise * scales[:, 0], sides, margins, left, blocks, shares))
        if along.functions:
            claim, label = pair_functions_sensitivity(len(along.functions), 2), "residuals of the final models"
            noisy, noise = self.release(of_pairs, claim, label + " along pairs", share * along.share(along.of_pairs))
            left = LEFT_ALONG_PAIRS * models.learning_noise(()) ** 2
            own = PairGeometry.of(models, along.functions, self.correlation).orthonormal
            released.append(Sums(noisy * scales, noise * scales[:, 0], (), (own,), left))
        return checked(released, models.variances(self.chance), self.count, self.chance)

    def effect_fields(
        self, estimate: float, ends: Interval | None, share: float, spread: float, checked: Checked | None,
        more: tuple[str, ...] = (), limit: float = LEAST_PROBABILITY,
    ) -> dict[str, Any]:  # fmt: skip
        """Return what a result says of the moments, of confounding that was not measured, and of the check.  Such a
        ``share`` of the records has a probability of treatment inside ``limit`` and 1 − ``limit``.
        """
        moments = self.moments
        outcome, arm, *others = moments.names
        robust = moments.ols(outcome, [arm, *others])[arm].robustness_value
        limited = (LIMITED.format(1 - share, limit, 1 - limit),) if share < MOSTLY else ()
        against = *limited, *rare_arm_note(float(np.clip(moments.mean(TREATMENT), 0, 1)))
        return {
            "signal_to_noise": moments.signal_to_noise, "share_supported": share, "balance": balance_of(moments),
            "notes": (*redundant_note(self.redundant), *more, *against), "release": moments,
            "fit_check": None if checked is None else checked.check,
            **unmeasured_fields(robust, estimate, ends, spread),
        }  # fmt: skip


def _doubted(share: float, doubt: float) -> float:
    """Return the share of a rare level, not as rare by the deviation of its noise: errors there count less the rarer it
    is taken for."""
    share = min(max(share, 0.0), 1.0)
    return float(np.clip(share + math.copysign(doubt, 0.5 - share), LEAST_LEVEL, 1 - LEAST_LEVEL))


def _correlation(moments: JointMoments, columns: int) -> Reals:
    correlation = np.clip(moments.correlation[FIRST:columns, FIRST:columns], -1.0, 1.0)
    constant = [place - FIRST for place in range(FIRST, columns) if is_constant(moments, place)]
    correlation[constant], correlation[:, constant] = 0.0, 0.0
    np.fill_diagonal(correlation, 1.0)
    return correlation


def along_pairs(
    models: Models, functions: Sequence[PairFunction], cells: Sequence[Integers], residuals: Reals, mass: Integers
) -> Integers:
    """Return the sums of both residuals along functions of pairs, shape (2, functions)."""
    signs = [(one.features, own) for one in functions if (own := one.signs) is not None]
    if len(signs) < len(functions):
        return pair_functions(np.stack([models.values(cells, one) for one in functions]).T, residuals, mass)
    # Functions that are 1 or -1 in each quarter: the same whole numbers, from sums by quarters.
    sums = {pair: residual_sums(models.codes(cells, pair, (4, 4)), 16, residuals, mass) for pair in dict(signs)}
    return np.stack([sums[pair] @ own for pair, own in signs], axis=1)


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
    kinds = "ss" if any(one != other for one, other in fit.terms.pairs) else "rr"
    functions = tuple(PairFunction(pair, kinds) for pair in fit.pairs) if len(fit.pairs) <= MOST_PAIRS else ()
    steps = tuple(((place - FIRST,), (LINE_BINS,)) for place in fit.design.numbers)
    return fit.check(models, Dictionary(steps, functions), SUMS + FUNCTIONS)
