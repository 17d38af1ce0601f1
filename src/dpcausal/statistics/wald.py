"""Tests of independence on noisy counts that know the noise: a Wald test of the residuals N − n p_x p_y by stratum.

Post-processing of released counts: nothing here sees data.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dpcausal.arrays import Mask, Reals

RIDGE = 1.0
"""Added to the variance of every residual: where a level is so rare that its residual is a matter of single records,
the normal approximation does not hold and the residual must not count."""


class Wald(NamedTuple):
    statistic: float
    freedom: int


Strength = tuple[int, float]
"""Degrees of freedom and non-centrality λ of the test of a pair that is associated."""


def strength_of_levels(a: int, b: int, n: int, variance: float, link: float) -> Strength:
    """Return λ = n² φ² / (n + v a b),  φ² = V² (min(a, b) − 1), at even margins of Cramér's V and noise v in a cell."""
    return (a - 1) * (b - 1), n**2 * link**2 * (min(a, b) - 1) / (n + variance * a * b)


def chance_of(strength: Strength, alpha: float) -> float:
    """Return the chance that the test finds it at a level."""
    from scipy.special import chdtri, chndtr

    freedom, noncentrality = strength
    bar = float(chdtri(freedom, alpha))
    # Far above the bar the series of the non-central distribution need not be summed.
    return 1.0 if noncentrality > 4 * (bar + 10) else 1 - float(chndtr(bar, freedom, noncentrality))


def upper_tails(statistics: Reals, freedom: int) -> Reals:
    from scipy.special import chdtrc

    return np.asarray(chdtrc(freedom, np.maximum(statistics, 0.0)))


def upper_tail(statistic: float, freedom: int) -> float:
    return float(upper_tails(np.asarray(statistic), freedom))


def usable_strata(counts: Reals, variance: float) -> Mask:
    """Return which strata carry weight: n_s ≥ max(5 k_x k_y, 3 √(v k_x k_y)), v the noise variance of one cell."""
    cells = counts.shape[0] * counts.shape[1]
    return np.asarray(counts.sum(axis=(0, 1)) >= max(5 * cells, 3 * math.sqrt(variance * cells)))


def wald_test(counts: Reals, variance: float) -> Wald | None:
    """Return the statistic for counts, shape (k_x, k_y, strata), whose cells have independent noise of a variance v.
    Σ_s R_s' V_s⁻¹ R_s,  R = N − n p_x p_yᵀ without the last levels, V = n (D_x ⊗ D_y) + v (L_x L_xᵀ ⊗ L_y L_yᵀ) + I,  D
    = diag(p) − p pᵀ,  L = I − p 1ᵀ;  ``None`` if no stratum is usable."""
    residuals = wald_residuals(counts, variance)
    return None if residuals is None else Wald(float(residuals.terms().sum()), residuals.residual.size)


class Residuals(NamedTuple):
    """Of the usable strata: which they are, R, V, and the share of V that is the rows' own and not the noise's."""

    usable: Mask
    residual: Reals
    covariance: Reals
    weight: Reals

    def terms(self) -> Reals:
        terms = np.zeros(self.usable.size)
        terms[self.usable] = quadratic_form(self.residual, self.covariance)
        return terms

    def pooled(self, copies: int = 1) -> Reals:
        """Return R' V⁻¹ R of the weighted sum over the strata, one for each of the copies, which are innermost."""
        strata, width = self.usable.size // copies, self.residual.shape[1]
        sums, spreads = np.zeros((copies, width)), np.zeros((copies, width, width))
        place = np.tile(np.arange(copies), strata)[self.usable]
        np.add.at(sums, place, self.weight[:, None] * self.residual)
        np.add.at(spreads, place, self.weight[:, None, None] ** 2 * self.covariance)
        return quadratic_form(sums, spreads + 1e-9 * np.eye(width))


def wald_residuals(counts: Reals, variance: float) -> Residuals | None:
    """Return the residuals of the usable strata; ``None`` if none is usable, or a column is constant."""
    usable = usable_strata(counts, variance)
    if counts.shape[0] < 2 or counts.shape[1] < 2 or not usable.any():
        return None
    totals, px, py, residual = _margins(np.moveaxis(counts[:, :, usable], -1, 0))
    vectors = residual.reshape(len(totals), -1)
    if counts.shape[:2] == (2, 2):
        a, b = px[:, 0], py[:, 0]
        own = (totals * a * (1 - a) * b * (1 - b))[:, None, None]
        covariance = own + (RIDGE + variance * (a**2 + (1 - a) ** 2) * (b**2 + (1 - b) ** 2))[:, None, None]
    else:
        (dx, lx), (dy, ly) = _basis_factors(px), _basis_factors(py)
        own = totals[:, None, None] * _kron(dx, dy)
        covariance = own + variance * _kron(lx, ly) + RIDGE * np.eye(vectors.shape[1])
    weight = np.trace(own, axis1=1, axis2=2) / np.trace(covariance, axis1=1, axis2=2)
    return Residuals(usable, vectors, covariance, weight)


def quadratic_form(vectors: Reals, matrices: Reals) -> Reals:
    if vectors.shape[1] == 1:
        return np.asarray(vectors[:, 0] ** 2 / matrices[:, 0, 0])
    return np.asarray((vectors * np.linalg.solve(matrices, vectors[:, :, None])[:, :, 0]).sum(axis=1))


def wald_tests_correlated(counts: Reals, factors: Reals, variances: Reals) -> list[Wald | None]:
    """Return the same for correlated noise, many tests of one shape along the first axis. The noise has covariance F Fᵀ
    over all cells, the factor F being (k_x, k_y, strata, r). V = blockdiag(n_s D_x ⊗ D_y) + A F Fᵀ Aᵀ + I,  A =
    blockdiag(L_x ⊗ L_y);  the variance, the mean one of a cell's noise, is for the choice of strata only."""
    tests: list[Wald | None] = [None] * len(counts)
    if min(counts.shape[1:3]) < 2:
        return tests
    cells = counts.shape[1] * counts.shape[2]
    usable = counts.sum(axis=(1, 2)) >= np.maximum(5 * cells, 3 * np.sqrt(variances * cells))[:, None]
    some = usable.any(axis=1)
    whole = some & usable.all(axis=1)
    places = np.flatnonzero(whole).tolist()
    for place, one in zip(places, _correlated_tests(counts[whole], factors[whole]) if places else (), strict=True):
        tests[place] = one
    for place in np.flatnonzero(some & ~whole).tolist():
        usable_here = usable[place]
        (tests[place],) = _correlated_tests(
            counts[place][None, :, :, usable_here], factors[place][None, :, :, usable_here]
        )
    return tests


def _correlated_tests(counts: Reals, factors: Reals) -> Iterator[Wald]:
    tests, strata = len(counts), counts.shape[3]
    stacked = np.ascontiguousarray(np.moveaxis(counts, 3, 1)).reshape(-1, *counts.shape[1:3])
    noise = np.moveaxis(factors, 3, 1).reshape(*stacked.shape, -1)
    totals, px, py, residual = _margins(stacked)
    residual = residual.reshape(tests, -1)
    # L applied along both axes: subtract p times the sum.
    moved = noise - px[:, :, None, None] * noise.sum(axis=1, keepdims=True)
    moved = moved - py[:, None, :, None] * moved.sum(axis=2, keepdims=True)
    moved = moved[:, :-1, :-1].reshape(*residual.shape, -1)
    blocks = (totals[:, None, None] * _kron(_basis_factors(px)[0], _basis_factors(py)[0])).reshape(tests, strata, -1)
    width = residual.shape[1] // strata
    covariance = moved @ moved.swapaxes(1, 2) + RIDGE * np.eye(residual.shape[1])
    for place in range(strata):
        own = slice(place * width, (place + 1) * width)
        covariance[:, own, own] += blocks[:, place].reshape(tests, width, width)
    statistics = residual[:, None] @ np.linalg.solve(covariance, residual[:, :, None])
    return (Wald(float(statistic), residual.shape[1]) for statistic in statistics.flat)


def _margins(tables: Reals) -> tuple[Reals, Reals, Reals, Reals]:
    """Return n, p_x, p_y and R of tables along the first axis. R goes by the sums as they are: a level that nobody has
    moves no other level's residual."""
    totals, x, y = tables.sum(axis=(1, 2)), tables.sum(axis=2), tables.sum(axis=1)
    expected = x[:, :, None] * y[:, None, :] / np.maximum(totals, 1.0)[:, None, None]
    return totals, level_shares(x), level_shares(y), (tables - expected)[:, :-1, :-1]


def level_shares(sums: Reals) -> Reals:
    """Return shares of the levels, each at least one record's worth, so that no variance is 0."""
    floored = np.maximum(sums, 1.0)
    return np.asarray(floored / floored.sum(axis=1, keepdims=True))


def _basis_factors(p: Reals) -> tuple[Reals, Reals]:
    levels = p.shape[1]
    eye = np.eye(levels)
    d = p[:, :, None] * eye - p[:, :, None] * p[:, None, :]
    # (I − p1ᵀ)(I − 1pᵀ) = I − p1ᵀ − 1pᵀ + k ppᵀ
    ll = eye - p[:, :, None] - p[:, None, :] + levels * p[:, :, None] * p[:, None, :]
    return d[:, :-1, :-1], ll[:, :-1, :-1]


def _kron(a: Reals, b: Reals) -> Reals:
    strata, m, k = a.shape[0], a.shape[1], b.shape[1]
    return np.asarray(np.einsum("sij,skl->sikjl", a, b).reshape(strata, m * k, m * k))


WITHIN = 0.1
"""Least κ: what is left may be two to three times as much before a test at a usual level finds it."""

LEAST_OF_PARTS = 1e-3
"""Share of the records below which a part is taken for an empty one."""


def left_by_parts(counts: Reals, cut: Sequence[int], usable: Mask, variance: float) -> float:
    """Return the non-centrality that cut columns leave a test of noisy counts, shape (k_x, k_y, sizes of the given).

    Two columns that depend on a number z, and on nothing else together, are still associated given the part that z lies
    in.  In a part the covariance of their levels is about κ d_x d_yᵀ, where d is the difference of the shares of the
    levels between a part and the next, and κ the variance of z within a part over the squared distance of their means.

    λ = Σ_s n_s w_s (Σ_j κ_j φ_x φ_y)²,  φ² = Σ_l d_l² / p̄_l,  w_s = n_s / (n_s + v k_x k_y),  over usable strata s and
    the given columns j that are cut; p̄ is the mean of the two strata's shares, v the noise variance of a cell.
    """
    totals = np.where(usable, np.maximum(counts.sum(axis=(0, 1)), 1.0), 1.0)
    sides = []
    for axis in (1, 0):
        floored = np.maximum(counts.sum(axis=axis), 1.0)
        sides.append(floored / floored.sum(axis=0))
    left = np.zeros(totals.shape)
    for axis in cut:
        records = np.where(usable, totals, 0.0).sum(axis=tuple(other for other in range(totals.ndim) if other != axis))
        within = within_parts(records).reshape([-1 if place == axis else 1 for place in range(totals.ndim)])
        left += within * np.sqrt(largest_step(sides[0], axis, usable) * largest_step(sides[1], axis, usable))
    weight = totals / (totals + variance * counts.shape[0] * counts.shape[1])
    return float((totals * weight * left**2)[usable].sum())


def within_parts(records: Reals) -> Reals:
    """Return κ of each part of a number from the records in all: as of a normal number, cut where these are.

    κ is its variance within a part over the squared distance of the part's mean from the nearest other, at least 0.1.
    """
    from scipy.special import ndtri

    known = records > LEAST_OF_PARTS * max(float(records.sum()), 1.0)
    within = np.full(len(records), WITHIN)
    if known.sum() < 2:
        return within
    mass = records[known] / records[known].sum()
    ends = ndtri(np.concatenate([[0.0], mass.cumsum()[:-1], [1.0]]))
    heights = np.exp(-(ends**2) / 2) / math.sqrt(2 * math.pi)
    means = -np.diff(heights) / mass
    variances = 1 - np.diff(np.nan_to_num(ends, posinf=0.0, neginf=0.0) * heights) / mass - means**2
    distances = np.diff(means, prepend=-np.inf, append=np.inf)
    within[known] = np.maximum(variances / np.minimum(distances[:-1], distances[1:]) ** 2, WITHIN)
    return within


def largest_step(shares: Reals, axis: int, usable: Mask) -> Reals:
    """Return φ² of each stratum against the next on either side along an axis of the strata, the larger one."""
    largest = np.zeros(usable.shape)
    moved, known = np.moveaxis(shares, axis + 1, -1), np.moveaxis(usable, axis, -1)
    both, room = known[..., 1:] & known[..., :-1], np.moveaxis(largest, axis, -1)
    one, other = moved[..., :-1], moved[..., 1:]
    step = np.where(both, ((one - other) ** 2 / (one + other)).sum(axis=0) * 2, 0.0)
    room[..., :-1] = step
    room[..., 1:] = np.maximum(room[..., 1:], step)
    return largest
