"""How the effect differs along the columns of the lines: the scores of a first pass, on these columns.

Where one effect holds for all, errors of the treatment's line move the mean score to the second order.  Where it does
not, they do so to the first, unless the outcome's line has an effect for each row.  So noisy sums of cut scores times
each column give its slopes, shrunken by their noise.  The released moments are of rows that are shortened, those of a
rare level most, and their products would make the slope of such a level several times too large.  So a level that is
rare has the mean and the variance of its share.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import chain

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.data.records import Rows
from dpcausal.effects.cells.corner_counts import GRID
from dpcausal.effects.moments.adaptive import StreamedRows
from dpcausal.effects.moments.released import line
from dpcausal.effects.nuisance.design import FIRST, REACH
from dpcausal.effects.nuisance.fit import Fit
from dpcausal.effects.nuisance.residual_sums import residual_sums, residual_sums_sensitivity
from dpcausal.effects.nuisance.scores import Nuisances
from dpcausal.statistics.moments import variance_roots

CUT = 4.0
"""Scores are cut at so many of their spreads."""
CLEAR = 0.05
"""Slopes are 0 where a test of that at such a level does not reject."""
LEAST_OWN = 1e-6
"""Least eigenvalue that is taken of the products of the columns, as a part of the largest."""
VARIES, IN_ALL = 2.4, 4.0
"""Beforehand the effect varies along each direction of the columns, by the spread of the scores over this number: this
shrinks slopes along nearly collinear columns.  For their error it varies so along all directions together."""


def with_effect_line(
    fit: Fit, rows: StreamedRows, lines: Nuisances, raw: Callable[[Reals], Reals], share: Fraction
) -> Nuisances:
    """Return the lines with slopes of the effect along the columns of ``rows``, which ``raw`` gives in their units."""
    from scipy.special import chdtri

    moments, (_, arm, *others) = fit.moments, fit.moments.names
    places, of_arm = [fit.whole.names.index(name) for name in others], line(moments, arm, tuple(others))
    middles = (moments.middles + moments.halves * moments.centre)[FIRST:]
    products = of_arm.moments[1:, 1:] / fit.count  # of the columns about these, and 1
    ranges = moments.halves[FIRST:] + np.abs(middles - moments.middles[FIRST:])
    spreads = np.maximum(variance_roots(products)[:-1], 1e-9 * ranges)
    products = _with_shares(products, middles, {others.index(one): share for one, share in fit.rare.items()
                                                if one in others})  # fmt: skip
    of_level = np.isin(places, list(chain(*fit.design.levels)))
    reaches, cut = np.where(of_level, ranges, np.minimum(ranges, REACH * spreads)), CUT * lines.spread

    def kernel(unit: Reals, held: Rows) -> Integers:
        columns = raw(unit)
        x = np.clip((columns[:, places] - middles) / reaches, -1.0, 1.0)
        scores = np.clip((lines.scores(columns)[0] - lines.centre) / cut, -1.0, 1.0)[:, None]
        along = np.column_stack([scores * x, scores])
        return residual_sums(np.zeros(len(x), dtype=np.int64), 1, along, held.masses(GRID))

    sums, deviation = fit.release(rows.over(kernel), residual_sums_sensitivity(len(places) + 1), "effect line", share)
    scales = np.append(reaches, 1.0)
    products = products / np.outer(scales, scales)
    eigenvalues, vectors = np.linalg.eigh(products)
    eigenvalues = np.maximum(eigenvalues, LEAST_OWN * eigenvalues[-1])
    along, noise = vectors.T @ sums.ravel() * cut / fit.count, deviation * cut / fit.count
    unsure = noise**2 + eigenvalues * lines.spread**2 / fit.count
    share_clear = max(0.0, 1 - float(chdtri(len(along), CLEAR)) / max(float(along**2 @ (1 / unsure)), 1e-300))
    root, varies = vectors / scales[:, None], eigenvalues * (lines.spread / VARIES) ** 2
    slopes = share_clear * (root @ (varies / (varies + unsure) / eigenvalues * along))
    varies = eigenvalues * (lines.spread / IN_ALL) ** 2 / len(along)
    of_columns = np.zeros(len(fit.whole.names) - FIRST + 1)
    of_columns[[place - FIRST for place in places]] = slopes[:-1]
    of_columns[-1] = slopes[-1] - float(slopes[:-1] @ middles)
    covariance = (root * (varies / (varies + unsure) * unsure / eigenvalues**2)) @ root.T
    return replace(lines, effect=of_columns, effect_covariance=covariance)


def _with_shares(products: Reals, middles: Reals, shares: dict[int, float]) -> Reals:
    """Return the products of columns about their middles, and 1, with the mean and variance that shares of levels have;
    correlations stay."""
    if not shares:
        return products
    size, places, share = max(float(products[-1, -1]), LEAST_OWN), list(shares), np.array(list(shares.values()))
    mean = products[:-1, -1] / size
    covariance = products[:-1, :-1] / size - np.outer(mean, mean)
    times, least = np.ones(len(mean)), LEAST_OWN * share * (1 - share)
    times[places] = np.sqrt(share * (1 - share) / np.maximum(np.diag(covariance)[places], least))
    mean[places] = share - middles[places]
    whole = np.append(mean, 1.0)
    whole = np.outer(whole, whole)
    whole[:-1, :-1] += covariance * np.outer(times, times)
    return np.asarray(whole * size, dtype=np.float64)
