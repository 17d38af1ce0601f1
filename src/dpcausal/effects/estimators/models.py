"""Models for the treatment's probability and the outcome: lines, then tables by bins, grids and pair functions.

All of it was released; a row's values are made of the row alone, one column after another.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dpcausal.effects.estimators.residual_sums import haar, haar_levels, inverse_haar, smoothed, smoothed_grid

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
FINE = 256
"""Equal cells of a column, of which its bins are made."""
OF_TREATMENT, OF_OUTCOME = 0.8, 2.2
"""Residuals of treatment are at most so large; those of the outcome are cut at so many of their spreads."""
LEAST_STEP, LEAST_PROBABILITY = 0.03, 0.1
"""Probabilities of treatment lie so far from 0 and 1 while they are learnt, and in the end."""
MOST_FROM_MEAN = 2.5
"""The outcome's model lies within so many spreads of the outcome from its mean."""
LARGEST_STEP = 0.6, 4.0
"""The most that one table changes the probability, and the outcome's model, in residual standard deviations."""
FROM_A_FUNCTION = 0.3
THRESHOLD, RISE, FINER = 1.5, 0.25, 0.7
SIDE = 8
"""Bins a side of a grid of two columns."""
LEAST_FULL = 0.3
"""A bin counts as holding at least such a share of what it would hold if all were alike."""


@dataclass(frozen=True)
class Feature:
    """One column that is adjusted for, in bins of about equal counts.

    ``low`` and ``width`` say where its fine cells lie on the column's range [−1, 1]; ``cells`` is the bin of each.
    """

    place: int
    low: float
    width: float
    cells: Integers
    counts: Reals

    @property
    def bins(self) -> int:
        return len(self.counts)

    def fine(self, unit: Reals) -> Integers:
        return fine_cells(unit[:, self.place], self.low, self.width)

    def codes(self, unit: Reals, bins: int) -> Integers:
        """Return the bin of each row, of ``bins`` that are as many times as wide."""
        codes: Integers = (self.cells * bins // self.bins)[self.fine(unit)]
        return codes

    def counts_of(self, bins: int) -> Reals:
        counts: Reals = self.counts.reshape(bins, -1).sum(axis=1)
        return counts


def fine_cells(column: Reals, low: float, width: float) -> Integers:
    cells: Integers = np.clip(np.floor((column - low) / width * FINE), 0, FINE - 1).astype(np.int64)
    return cells


def density(noisy: Reals, deviation: float, count: float) -> Reals:
    """Return the noisy counts of fine cells shrunken, at least 0, with a given sum."""
    coefficients, level = haar(noisy), haar_levels(len(noisy))
    least = deviation * np.where(level <= 3, 1.0, 2.7)
    large = np.where(np.abs(coefficients) > least, coefficients, 0.0)
    large[0] = count / math.sqrt(len(noisy))
    positive = np.maximum(inverse_haar(large), 0.0) + 1e-9 * count / len(noisy)
    shrunken: Reals = positive * count / positive.sum()
    return shrunken


def quantile_bins(counts: Reals, bins: int) -> tuple[Integers, Reals]:
    """Return the bin of each fine cell, of bins with about equal counts, and the bins' counts."""
    middle = (np.cumsum(counts) - counts / 2) / counts.sum()
    cells: Integers = np.minimum((middle * bins).astype(np.int64), bins - 1)
    return cells, np.bincount(cells, counts, bins).astype(np.float64)


@dataclass(frozen=True)
class Table:
    """What is added to both models in the bins of one feature, or in the cells of a grid of two."""

    features: tuple[int, ...]
    bins: tuple[int, ...]
    treatment: Reals
    outcome: Reals


@dataclass(frozen=True)
class PairFunction:
    """A function of two features with values in [−1, 1]; ``size`` times it has a mean square of about 1."""

    features: tuple[int, int]
    kinds: str
    """A letter for each: ``s`` above the median or not, ``t`` middle half or not, ``b`` both; ``r`` ranks of both."""

    @property
    def size(self) -> float:
        return 2.0 if self.kinds == "r" else 1.0


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
    tables: tuple[Table, ...] = ()
    functions: tuple[PairFunction, ...] = ()
    weights: Reals = field(default_factory=lambda: np.zeros((2, 0)))
    """Of the functions, in both models."""
    final: bool = False

    @property
    def scales(self) -> tuple[float, float]:
        """What the residuals of treatment and of outcome are cut at."""
        return OF_TREATMENT, OF_OUTCOME * self.spread

    def variances(self, chance: float) -> tuple[float, float]:
        """Return the variance of a row's residual of treatment, which is given, and of outcome."""
        return chance, self.spread**2

    def sides(self, features: Sequence[int], most: int) -> tuple[int, ...]:
        return tuple(min(most if len(features) == 1 else SIDE, self.features[place].bins) for place in features)

    def fitted(self, raw: Reals, unit: Reals) -> tuple[Reals, Reals]:
        """Return the probability of treatment, and the mean outcome of those who are not treated, of each row.

        ``raw`` has the columns of the lines in their units, ``unit`` those of the features on [−1, 1].
        """
        e, m = (np.full(len(raw), line[-1]) for line in (self.treatment, self.outcome))
        for place in range(2, raw.shape[1]):
            e += self.treatment[place - 2] * raw[:, place]
            m += self.outcome[place - 2] * raw[:, place]
        e = np.clip(e, LEAST_STEP, 1 - LEAST_STEP)
        for table in self.tables:
            codes = self.codes(unit, table.features, table.bins)
            e = np.clip(e + table.treatment[codes], LEAST_STEP, 1 - LEAST_STEP)
            m += table.outcome[codes]
        for function, (on_e, on_m) in zip(self.functions, self.weights.T, strict=True):
            if on_e or on_m:
                values = self.values(unit, function)
                e += on_e * values
                m += on_m * values
        if self.final:
            e = np.clip(e, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
            reach = MOST_FROM_MEAN * self.whole_spread
            m = np.clip(m, self.middle - reach, self.middle + reach)
        return e, m

    def codes(self, unit: Reals, features: Sequence[int], bins: Sequence[int]) -> Integers:
        codes = np.zeros(len(unit), dtype=np.int64)
        for feature, size in zip(features, bins, strict=True):
            codes = codes * size + self.features[feature].codes(unit, size)
        return codes

    def values(self, unit: Reals, function: PairFunction) -> Reals:
        both = [self.features[place] for place in function.features]
        if function.kinds == "r":
            one, other = (2 * (feature.codes(unit, feature.bins) + 0.5) / feature.bins - 1 for feature in both)
            return np.clip(1.5 * one * other, -1.0, 1.0)
        product = np.ones(len(unit))
        for feature, kind in zip(both, function.kinds, strict=True):
            bins = feature.bins
            codes = feature.codes(unit, bins)
            if kind in "sb":
                product *= np.where(codes >= bins // 2, 1.0, -1.0)
            if kind in "tb":
                product *= np.where((codes >= bins // 4) & (codes < bins - bins // 4), 1.0, -1.0)
        return product

    def residuals(self, raw: Reals, unit: Reals) -> Reals:
        """Return the residuals of treatment and outcome over what they are cut at, shape (n, 2)."""
        e, m = self.fitted(raw, unit)
        of_treatment, of_outcome = self.scales
        treatment = (raw[:, 1] - e) * np.minimum(1.0, of_treatment / np.maximum(e, 1 - e)) / of_treatment
        return np.column_stack([treatment, (raw[:, 0] - self.effect * raw[:, 1] - m) / of_outcome])

    def scores(self, raw: Reals, unit: Reals) -> tuple[Reals, Reals]:
        """Return the doubly robust score less ``effect``, and 1 where the probability is inside its limits."""
        e, m = self.fitted(raw, unit)
        a = raw[:, 1]
        inside = (e > LEAST_PROBABILITY) & (e < 1 - LEAST_PROBABILITY)
        return (raw[:, 0] - self.effect * a - m) * (a / e - (1 - a) / (1 - e)), inside.astype(np.float64)


def table_of(
    sums: Reals, deviations: Reals, variances: tuple[float, float], models: Models,
    features: tuple[int, ...], bins: tuple[int, ...], count: float,
) -> Table:  # fmt: skip
    """Return the table that noisy sums of both residuals by bins show, ``variances`` those of one row's residuals."""
    counts = np.ones(1)
    for feature, size in zip(features, bins, strict=True):
        counts = np.outer(counts, models.features[feature].counts_of(size) / count).ravel()
    cells = len(counts)
    counts = np.maximum(counts * count, LEAST_FULL * count / cells)
    steps = []
    for noisy, deviation, variance in zip(sums, deviations, variances, strict=True):
        whole = math.hypot(deviation, math.sqrt(count / cells * variance))
        if len(bins) == 1:
            shrunken = smoothed(noisy, whole, THRESHOLD, RISE)
        else:
            shrunken = smoothed_grid(noisy.reshape(bins), whole, THRESHOLD, FINER).ravel()
        steps.append(shrunken / counts)
    on_e, on_m = LARGEST_STEP[0], LARGEST_STEP[1] * models.spread
    return Table(features, bins, np.clip(steps[0], -on_e, on_e), np.clip(steps[1], -on_m, on_m))


def clear_weights(sums: Reals, deviations: Reals, variances: tuple[float, float], sizes: Reals, count: float) -> Reals:
    weights = []
    for noisy, deviation, variance in zip(sums, deviations, variances, strict=True):
        scaled = noisy * sizes
        clear = np.abs(scaled) > THRESHOLD * np.hypot(deviation * sizes, math.sqrt(count * variance))
        weights.append(np.where(clear, scaled / count, 0.0))
    weights[0] = np.clip(weights[0], -FROM_A_FUNCTION, FROM_A_FUNCTION)
    return np.array(weights) * sizes
