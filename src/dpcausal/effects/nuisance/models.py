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
from dpcausal.effects.nuisance.features import Feature

OF_TREATMENT, OF_OUTCOME = 0.8, 2.2
"""Residuals of treatment are at most so large; those of the outcome are cut at so many of their spreads."""
MOST_FROM_MEAN = 6.0
"""The outcome's model lies within so many spreads of the outcome from its mean."""
THRESHOLD = 2.0
"""Of residual sums, in deviations: what is smaller is taken for noise.  With 1.5 errors are a tenth larger."""
SIDE = 8
"""Bins a side of a grid of two columns."""


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
    ends: tuple[tuple[int, float, float, float], ...] = ()
    """Places of numbers, where the lines end on [−1, 1], and the slope of the outcome's line there.  A long tail beyond
    is taken for its end, where ``Table`` shows no slope."""
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
        for place, low, high, _ in self.ends:
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
        last = {table.features: table.error for table in self.tables if table.noise.any()}
        errors = [error for features, error in last.items() if steps is None or features in steps]
        of_functions = np.count_nonzero(self.weights[0]) * (self.pairs_noise[0] / count) ** 2
        return self.shift * (sum(errors) + float(of_functions)) / self.chance

    def scores(self, raw: Reals, cells: Sequence[Integers]) -> tuple[Reals, Reals]:
        """Return the doubly robust score less ``effect``, and 1 where the probability is inside its limits."""
        e, left, varies = self.left_over(raw, cells)
        inside = (e > self.least) & (e < 1 - self.least)
        return varies + left * inverse_weight(raw[:, 1], e), inside.astype(np.float64)


def with_ends(models: Models, halves: Reals) -> Models:
    """Return models whose lines end where the bulk of each number does, ``halves`` the half widths of the columns."""
    ends = tuple((one.place, *one.bulk, float(models.outcome[one.place - 2] * halves[one.place]))
                 for one in models.features if one.bins > 2)  # fmt: skip
    return replace(models, ends=ends)


def inverse_weight(a: Reals, e: Reals) -> Reals:
    return a / e - (1 - a) / (1 - e)
