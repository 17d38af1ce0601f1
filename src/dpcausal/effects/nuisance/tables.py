"""What noisy sums of residuals show by bins of a feature, or by cells of a grid of two, shrunken as wavelets."""

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.effects.nuisance.features import Feature
from dpcausal.effects.nuisance.models import THRESHOLD, Models, Table
from dpcausal.effects.nuisance.residual_sums import smoothed, smoothed_grid
from dpcausal.privacy.noise import generator_from_seed

LARGEST_STEP = 0.6, 4.0
"""The most that one table changes the probability, and the outcome's model, in residual standard deviations."""
RISE, OF_GRIDS, FINER = 0.25, 1.5, 0.7
"""What is added to the threshold at each finer level of bins; that of grids, and what is added beyond the coarsest
details of one."""
LEAST_FULL = 0.3
"""A bin counts as holding at least such a share of what it would hold if all were alike."""
CORRELATED, MOST_CORRELATED = 0.6, 0.999
"""Two features count as independent where their correlation is less, and as correlated at most so much: measured."""
REFITS, SEED = 16, 4_806_215_937_702_311
"""So many refits with new noise, from a public seed, give the error of a table."""
NODES = 64
"""At so many quantiles of each bin of the first feature, shares of a grid's cells are averaged."""


def joint_shares(margins: Sequence[Reals], correlation: float) -> Reals | None:
    """Return the shares of the records in the cells of a grid, from the counts in the bins of both features: as of two
    normal scores with the released correlation.  None where it is small."""
    from scipy.special import ndtr, ndtri

    if abs(correlation) < CORRELATED:
        return None
    (first, second), slope = margins, float(np.clip(correlation, -MOST_CORRELATED, MOST_CORRELATED))
    rows, ends = first / first.sum(), ndtri(np.clip(np.cumsum(second) / second.sum(), 1e-12, 1.0))
    nodes = np.cumsum(rows)[:, None] - rows[:, None] * (np.arange(NODES) + 0.5) / NODES
    scores = ndtri(np.clip(nodes, 1e-12, 1 - 1e-12))
    below = ndtr((ends[:-1] - slope * scores[..., None]) / math.sqrt(1 - slope**2)).mean(axis=1)
    cells: Reals = rows[:, None] * np.diff(below, axis=1, prepend=0.0, append=1.0)
    return cells.ravel()


def table_of(
    sums: Reals, deviations: Reals, variances: tuple[float, float], models: Models, features: tuple[int, ...],
    bins: tuple[int, ...], count: float, correlation: float,
) -> Table:  # fmt: skip
    """Return the table that noisy sums of both residuals by bins show, ``variances`` those of one row's residuals,
    ``correlation`` that of two features, 0 of one.

    The mean square of the error that noise leaves in the probability is that of refits: the table's sums with new
    noise.
    """
    tails: Reals | float = 0.0
    if len(bins) == 1 and all(table.features != features for table in models.tables):
        tails, seen = tail_slopes(sums[1], models, features[0])
        sums = np.stack([sums[0], sums[1] - seen])
    margins = [models.features[feature].counts_of(size) for feature, size in zip(features, bins, strict=True)]
    shares = joint_shares(margins, correlation)
    counts = reduce(np.multiply.outer, [one / count for one in margins]).ravel() if shares is None else shares
    cells = len(counts)
    of_level = len(bins) == 1 and features[0] in models.by_mean
    counts = counts * count if of_level else np.maximum(counts * count, LEAST_FULL * count / cells)

    def learnt(noisy: Reals, model: int) -> Reals:
        deviation, variance = float(deviations[model]), variances[model]
        whole = math.hypot(deviation, math.sqrt(count / cells * variance))
        if of_level:
            clear = np.abs(noisy) > THRESHOLD * np.sqrt(deviation**2 + counts * variance)
            shrunken = np.where(clear, noisy, 0.0)
        elif len(bins) == 1:
            shrunken = smoothed(noisy, whole, THRESHOLD, RISE)
        else:
            shrunken = smoothed_grid(noisy.reshape(bins), whole, OF_GRIDS, FINER).ravel()
        most = (LARGEST_STEP[0], LARGEST_STEP[1] * models.spread)[model]
        return np.clip(shrunken / counts, -most, most)

    on_e, on_m = learnt(sums[0], 0), learnt(sums[1], 1)
    noise = generator_from_seed(SEED).standard_normal((REFITS, cells)) * deviations[0]
    refits = [learnt(on_e * counts + one, 0) - on_e for one in noise]
    error = float(np.average(np.square(refits).mean(axis=0), weights=counts)) if deviations[0] else 0.0
    if len(bins) == 1:
        on_e, on_m = (models.features[features[0]].sloped(one) for one in (on_e, on_m))
    return Table(features, bins, on_e, on_m + tails, np.asarray(deviations) * math.sqrt(cells), shares, error)


def tail_slopes(sums: Reals, models: Models, place: int) -> tuple[Reals, Reals]:
    """Return what the outcome's model adds in fine cells beyond the ends of its line, and that part of sums by bins.

    The slope is that which the sums show, between none and that of the line.
    """
    feature, bins = models.features[place], len(sums)
    ends = {column: own for column, *own in models.ends}
    added = np.zeros(len(feature.cells))
    if feature.place in ends:
        low, high, slope = ends[feature.place]
        for beyond in feature.beyond(low, high):
            along = np.bincount(feature.wider(bins), feature.density * beyond, bins)
            if squares := float(along @ along):
                added += beyond * min(max(float(along @ sums) / squares, min(slope, 0.0)), max(slope, 0.0))
    return added, np.bincount(feature.wider(bins), feature.density * added, bins).astype(np.float64)


def effect_by_bins(sums: Reals, deviation: float, spread: float, feature: Feature, count: float) -> Reals:
    """Return how far the effect is from its mean in the fine cells of a feature, from noisy sums by bins of scores with
    a ``spread``."""
    bins = len(sums)
    counts = np.maximum(feature.counts_of(bins), LEAST_FULL * count / bins)
    values = smoothed(sums, math.hypot(deviation, math.sqrt(count / bins) * spread), THRESHOLD, RISE) / counts
    values -= np.average(values, weights=counts)
    return feature.sloped(np.clip(values, -spread, spread))
