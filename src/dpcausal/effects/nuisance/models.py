"""Models for the treatment's probability and the outcome: lines, then tables by bins, grids and pair functions.

All of it was released; a row's values are made of the row alone, one column after another.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from dpcausal.arrays import Integers, Reals

FINE, WIDE = (256, 2048), 32
"""Equal cells of a column, of which its bins are made: with few rows for the noise, and with many; wider ones, whose
counts say how many records are in many fine ones together."""
OF_TREATMENT, OF_OUTCOME = 0.8, 2.2
"""Residuals of treatment are at most so large; those of the outcome are cut at so many of their spreads."""
MOST_FROM_MEAN = 6.0
"""The outcome's model lies within so many spreads of the outcome from its mean."""
THRESHOLD = 1.5
"""Of residual sums, in deviations: what is smaller is taken for noise."""
FAR, NEAR, BEYOND = 1 / 64, 1 / 8, 0.5
MANY = 4
"""A table has slopes inside bins if so many are not empty."""
SIDE = 8
"""Bins a side of a grid of two columns."""
LEAST_OWN = 0.5
"""A factor of pair functions is not used where others of its column leave less of its mean square."""


@dataclass(frozen=True)
class Feature:
    """One column that is adjusted for, in bins of about equal counts. ``low`` and ``width`` say where its fine cells
    lie on the column's range [−1, 1]; ``cells`` is the bin of each."""

    place: int
    low: float
    width: float
    cells: Integers
    bins: int
    density: Reals
    """Of the fine cells, as counts."""

    @property
    def counts(self) -> Reals:
        return np.bincount(self.cells, self.density, self.bins).astype(np.float64)

    @property
    def bulk(self) -> tuple[float, float]:
        """Where lines end: beyond ``FAR`` of the counts, by so many times as far as those are from ``NEAR``."""
        places = (np.cumsum(self.density) - self.density / 2) / self.density.sum()
        far, near = (np.interp([share, 1 - share], places, np.arange(len(places)) + 0.5) for share in (FAR, NEAR))
        low, high = self.low + (far + BEYOND * (far - near)) / len(places) * self.width
        return float(low), float(high)

    @property
    def values(self) -> float:
        """How many values there are about as often as others, as far as fine cells show: 2 of levels."""
        return 2.0 if self.bins <= 2 else float(self.density.sum() ** 2 / (self.density**2).sum())

    def fine(self, unit: Reals) -> Integers:
        return fine_cells(unit[:, self.place], self.low, self.width, len(self.cells))

    def wider(self, bins: int) -> Integers:
        """Return the bin of each fine cell, of ``bins`` that are as many times as wide."""
        return self.cells * bins // self.bins

    @cached_property
    def factors(self) -> dict[str, Reals]:
        """The factors of functions of pairs, by fine cells."""
        codes, bins = self.cells, self.bins
        above = np.where(codes >= bins // 2, 1.0, -1.0)
        middle = np.where((codes >= bins // 4) & (codes < bins - bins // 4), 1.0, -1.0)
        ranks = np.clip(2 * (2 * (codes + 0.5) / bins - 1), -1.0, 1.0)
        return {"s": above, "t": middle, "b": above * middle, "r": ranks}

    def own_kinds(self, kinds: str) -> str:
        """Return the kinds of factors without those that are nearly a mix of earlier ones, as of a number with few
        values."""
        own, root = "", np.sqrt(self.density)
        basis = root[:, None]
        for kind in kinds if self.bins > 2 else "s"[: len(kinds)]:
            factor = root * self.factors[kind]
            left = factor - basis @ np.linalg.lstsq(basis, factor)[0]
            if not own or left @ left >= LEAST_OWN * (factor @ factor):
                own, basis = own + kind, np.column_stack([basis, factor])
        return own

    def counts_of(self, bins: int) -> Reals:
        return np.asarray(self.counts.reshape(bins, -1).sum(axis=1))

    def sloped(self, values: Reals) -> Reals:
        """Return the values of fine cells, from those of the bins: with a slope inside a bin towards both neighbours,
        the smaller one where both rise or both fall, else none."""
        cells, size = self.cells * len(values) // self.bins, len(values)
        counts = np.bincount(cells, self.density, size)
        full = np.flatnonzero(counts)
        if len(full) < MANY:
            return values[cells]
        places = np.bincount(cells, self.density * np.arange(len(cells)), size)[full] / counts[full]
        rises = np.diff(values[full]) / np.diff(places)
        left, right = np.append(0.0, rises), np.append(rises, 0.0)
        slopes, centres = np.zeros(size), np.zeros(size)
        least = np.minimum(2 * np.minimum(np.abs(left), np.abs(right)), np.abs(left + right) / 2)
        slopes[full] = np.where(left * right > 0, np.sign(left) * least, 0.0)
        centres[full] = places
        return values[cells] + slopes[cells] * (np.arange(len(cells)) - centres[cells])


def fine_cells(column: Reals, low: float, width: float, number: int) -> Integers:
    places = (column - low) / width
    places *= number
    return np.clip(places, 0, number - 1, out=places).astype(np.int64)


def quantile_bins(counts: Reals, bins: int) -> Integers:
    """Return the bin of each fine cell, of bins with about equal counts."""
    middle = (np.cumsum(counts) - counts / 2) / counts.sum()
    return np.asarray(np.minimum((middle * bins).astype(np.int64), bins - 1))


def within_blocks(grid: Reals, sides: Sequence[int], blocks: Sequence[int]) -> Reals:
    """Return how the cells of a grid differ from the mean of their block: ``blocks`` cells along each feature."""
    (first, other), (one, two) = sides, blocks
    cells = grid.reshape(*grid.shape[:-1], first // one, one, other // two, two)
    return np.asarray((cells - cells.mean(axis=(-3, -1), keepdims=True)).reshape(grid.shape))


@dataclass(frozen=True)
class Table:
    """What is added to both models in the fine cells of one feature, or in the cells of a grid of two."""

    features: tuple[int, ...]
    sides: tuple[int, ...]
    treatment: Reals
    outcome: Reals
    noise: Reals
    """The deviation of the noise of both sums, along functions whose mean square is 1."""
    shares: Reals | None = None
    """Of the records, in the cells of a grid of correlated features; without, they are taken to be independent."""
    error: float = 0.0
    """The mean square of the error that noise leaves in the probability of treatment."""


@dataclass(frozen=True)
class PairFunction:
    """A function of two features with values in [−1, 1]; ``size`` times it has a mean square of about 1."""

    features: tuple[int, int]
    kinds: str
    """A letter for each: ``s`` above the median or not, ``t`` middle half or not, ``b`` their product; ``r`` twice the
    rank, from −1 to 1, cut there."""

    @property
    def size(self) -> float:
        return math.pow(1.5, self.kinds.count("r") / 2)

    @property
    def signs(self) -> Integers | None:
        """Its values in the quarters of both features, one after another; ``None`` of ranks, which vary inside them."""
        signs = {"s": [-1, -1, 1, 1], "t": [-1, 1, 1, -1], "b": [1, -1, 1, -1]}
        if "r" in self.kinds:
            return None
        return np.outer(signs[self.kinds[0]], signs[self.kinds[1]]).ravel()


@dataclass(frozen=True)
class Models:
    """The two models: lines in the columns' units, then what was learnt beside them, in order."""

    outcome: Reals
    """Slopes of the columns and intercept, of those who are not treated."""
    treatment: Reals
    effect: float
    """The slope of the treatment in the line of the outcome."""
    spread: float
    """Of the outcome's residuals."""
    middle: float
    whole_spread: float
    """Mean and spread of the outcome."""
    features: tuple[Feature, ...]
    ends: tuple[tuple[int, float, float], ...] = ()
    """Places of numbers, and where the lines end: a long tail beyond is taken for its end."""
    least: float = 0.1
    """Probabilities of treatment lie so far from 0 and 1 in the end; a third of it while they are learnt."""
    tables: tuple[Table, ...] = ()
    functions: tuple[PairFunction, ...] = ()
    weights: Reals = field(default_factory=lambda: np.zeros((2, 0)))
    """Of the functions, in both models."""
    shift: float = 0.0
    """So many times the probability of treatment is added to the outcome's model."""
    pairs_noise: Reals = field(default_factory=lambda: np.zeros(2))
    """The deviation of the noise of both sums along pairs."""
    by_mean: tuple[int, ...] = ()
    """Features that are levels which are in no line: what is learnt of them are the means of their residuals."""
    refined: tuple[tuple[int, ...], ...] = ()
    """Features and pairs that were learnt twice."""
    effect_noise: float = 0.0
    """The deviation of the noise of the effect's last correction."""
    effects: tuple[tuple[int, Reals], ...] = ()
    """Features, and how far the effect is from its slope in the fine cells of each."""
    chance: float = 0.25
    """The mean square of the treatment's residuals."""
    final: bool = False

    @property
    def scales(self) -> tuple[float, float]:
        """What the residuals of treatment and of outcome are cut at."""
        return OF_TREATMENT, OF_OUTCOME * self.spread

    def variances(self, chance: float) -> tuple[float, float]:
        """Return the variance of a row's residual of treatment, which is given, and of outcome."""
        return chance, self.spread**2

    def learning_noise(self, features: Sequence[int]) -> Reals:
        """Return the deviation of the noise of both sums when tables were learnt, along functions with a mean square of
        1; of no features, along pairs."""
        tables = (table.noise for table in self.tables if table.features == tuple(features))
        return next(tables, np.zeros(2)) if features else self.pairs_noise

    def moves(self, chance: float) -> dict[tuple[int, ...], float]:
        """Return how far what was learnt along each feature, and each pair, moved the estimate."""
        moved = dict[tuple[int, ...], float]()
        for features in dict.fromkeys(table.features for table in self.tables):
            same = [table for table in self.tables if table.features == features]
            on_e, on_m = (np.sum([getattr(one, model) for one in same], axis=0) for model in ("treatment", "outcome"))
            of_grid = np.ones(len(on_e)) if same[0].shares is None else same[0].shares
            weights = self.features[features[0]].density if len(features) == 1 else of_grid
            own = [one - np.average(one, weights=weights) for one in (on_e, on_m)]
            moved[features] = float(np.average(own[0] * own[1], weights=weights)) / chance
        for function, (on_e, on_m) in zip(self.functions, self.weights.T, strict=True):
            moved[function.features] = moved.get(function.features, 0.0) + on_e * on_m / chance / function.size**2
        return {features: abs(move) for features, move in moved.items()}

    def finest_move(self, chance: float) -> float:
        """Return how far the finest level of grids moved the estimate.

        As much is left within their cells where a model jumps inside one, on average, and a third where it bends.
        """
        moved = 0.0
        for pair, sides in {table.features: table.sides for table in self.tables if len(table.features) == 2}.items():
            same = [table for table in self.tables if table.features == pair]
            both = np.sum([(table.treatment, table.outcome) for table in same], axis=0)
            on_e, on_m = within_blocks(both, sides, self.blocks(pair, sides))
            moved += float(np.average(on_e * on_m, weights=same[0].shares)) / chance
        return moved

    def left_of_levels(self, count: float, chance: float) -> float:
        """Return the error of the estimate by what noise hides in the means of residuals in a level, where few have it:
        the residuals themselves are at most their scale."""
        left = 0.0
        for table in self.tables:
            if len(table.features) == 1 and table.features[0] in self.by_mean:
                fewer = float(self.features[table.features[0]].counts.min()) / count
                both = np.minimum(table.noise / math.sqrt(2) / (fewer * count), self.scales)
                left += fewer * float(both.prod()) / chance
        return left

    def blocks(self, features: Sequence[int], sides: Sequence[int]) -> tuple[int, ...]:
        """Return how many cells of a grid make a block along each feature: 2, or 1 where its values fill no cell."""
        return tuple(1 if self.features[place].values < 2 * side else 2
                     for place, side in zip(features, sides, strict=True))  # fmt: skip

    def sides(self, features: Sequence[int], most: int, side: int) -> tuple[int, ...]:
        return tuple(min(most if len(features) == 1 else side, self.features[place].bins) for place in features)

    def cells(self, unit: Reals) -> list[Integers]:
        """Return the fine cells of rows on [−1, 1], by features."""
        return [feature.fine(unit) for feature in self.features]

    def fitted(self, raw: Reals, cells: Sequence[Integers]) -> tuple[Reals, Reals]:
        """Return the probability of treatment, and the mean outcome of those who are not treated, of each row. ``raw``
        has the columns of the lines in their units."""
        e, m = (np.full(len(raw), line[-1]) for line in (self.treatment, self.outcome))
        for line, fitted in ((self.treatment, e), (self.outcome, m)):
            for place in np.flatnonzero(line[:-1]):
                fitted += line[place] * raw[:, place + 2]
        np.clip(e, self.least / 3, 1 - self.least / 3, out=e)
        for table in self.tables:
            if table.treatment.any():
                e += table.treatment.take(self.places(cells, table), mode="clip")
                np.clip(e, self.least / 3, 1 - self.least / 3, out=e)
        for table in self.tables_of_outcome:
            m += table.outcome.take(self.places(cells, table), mode="clip")
        for function, (on_e, on_m) in zip(self.functions, self.weights.T, strict=True):
            if on_e or on_m:
                values = self.values(cells, function)
                e += on_e * values
                m += on_m * values
        if self.final:
            np.clip(e, self.least, 1 - self.least, out=e)
            reach = MOST_FROM_MEAN * self.whole_spread
            np.clip(m, self.middle - reach, self.middle + reach, out=m)
        return e, m + self.shift * e

    @cached_property
    def tables_of_outcome(self) -> list[Table]:
        """The tables of the same places as one, without those that add nothing to the outcome's model."""
        same: dict[tuple[tuple[int, ...], int], Table] = {}
        for table in self.tables:
            key = table.features, len(table.outcome)
            same[key] = replace(table, outcome=table.outcome + (same[key].outcome if key in same else 0.0))
        return [table for table in same.values() if table.outcome.any()]

    def places(self, cells: Sequence[Integers], table: Table) -> Integers:
        one = len(table.features) == 1
        return cells[table.features[0]] if one else self.codes(cells, table.features, table.sides)

    def bulk(self, unit: Reals) -> Reals:
        """Return the rows with numbers cut where the lines end."""
        cut = unit.copy("K") if self.ends else unit
        for place, low, high in self.ends:
            cut[:, place] = np.clip(unit[:, place], low, high)
        return cut

    def codes(self, cells: Sequence[Integers], features: Sequence[int], bins: Sequence[int]) -> Integers:
        first, *others = zip(features, bins, strict=True)
        codes: Integers = self.features[first[0]].wider(first[1]).take(cells[first[0]], mode="clip")
        for feature, size in others:
            codes *= size
            codes += self.features[feature].wider(size).take(cells[feature], mode="clip")
        return codes

    def values(self, cells: Sequence[Integers], function: PairFunction) -> Reals:
        (one, other), kinds = function.features, function.kinds
        first, second = self.features[one].factors[kinds[0]], self.features[other].factors[kinds[1]]
        values: Reals = first.take(cells[one], mode="clip")
        values *= second.take(cells[other], mode="clip")
        return values

    def residuals(self, raw: Reals, cells: Sequence[Integers], chance: float | None = None) -> Reals:
        """Return the residuals of treatment and outcome over what they are cut at, shape (n, 2). With ``chance``, the
        mean of e(1 − e), both are divided by √(e(1 − e) / chance): as in the score's bias."""
        return self.scaled(raw[:, 1], *self.left_over(raw, cells)[:2], chance)

    def scaled(self, a: Reals, e: Reals, left: Reals, chance: float | None = None) -> Reals:
        of_treatment, of_outcome = self.scales
        weight = np.ones(len(a)) if chance is None else np.sqrt(chance / (e * (1 - e)))
        most = np.minimum(1.0, of_treatment / (weight * np.maximum(e, 1 - e)))
        both = np.empty((2, len(a)))
        np.divide(weight * (a - e) * most, of_treatment, out=both[0])
        np.divide(weight * left, of_outcome, out=both[1])
        return both.T

    def left_over(self, raw: Reals, cells: Sequence[Integers]) -> tuple[Reals, Reals, Reals | float]:
        """Return the probability of treatment, the outcome less its model, and how far the effect is from its slope."""
        e, m = self.fitted(raw, cells)
        a = raw[:, 1]
        left = raw[:, 0] - self.effect * a - m
        if not self.effects:
            return e, left, 0.0
        varies = np.sum([own.take(cells[feature], mode="clip") for feature, own in self.effects], axis=0)
        return e, left - varies * (a - e), varies

    def with_slope(self, effect: float, noise: float, chance: float) -> Self:
        """Return the same models with another slope of the treatment, and the same mean outcome at each place."""
        shift = self.shift + self.effect - effect
        return replace(self, effect=effect, effect_noise=noise, shift=shift, chance=chance)

    def shift_bias(self, count: float, steps: Sequence[tuple[int, ...]] | None = None) -> float:
        """Return the bias of the mean score by what noise leaves in the treatment's model; of ``steps`` alone, with
        those along pairs.

        The outcome's model has ``shift`` times the probability, so both models are off by the same error.
        """
        last = {table.features: table.error for table in self.tables}
        errors = [error for features, error in last.items() if steps is None or features in steps]
        of_functions = np.count_nonzero(self.weights[0]) * (self.pairs_noise[0] / count) ** 2
        return self.shift * (sum(errors) + float(of_functions)) / self.chance

    def scores(self, raw: Reals, cells: Sequence[Integers]) -> tuple[Reals, Reals]:
        """Return the doubly robust score less ``effect``, and 1 where the probability is inside its limits."""
        e, left, varies = self.left_over(raw, cells)
        inside = (e > self.least) & (e < 1 - self.least)
        return varies + left * inverse_weight(raw[:, 1], e), inside.astype(np.float64)


def inverse_weight(a: Reals, e: Reals) -> Reals:
    return a / e - (1 - a) / (1 - e)
