"""The jump at a cutoff, read off noisy bins: lines on either side, and an interval that counts their curvature.

A line fitted within a bandwidth h by weights that fall with the distance x, and in bins that noise outweighs, has the
intercept Σ ωᵢ yᵢ, Σ ωᵢ = 1, Σ ωᵢ xᵢ = 0.  Of a mean whose second derivative is at most M it is off by at most

    M ∫ |Σ ωᵢ (xᵢ − t)₊| dt

(Taylor's formula), whatever the mean is, so that an interval with the quantile of |N(bias/σ, 1)| for its factor holds:
Armstrong & Kolesár (2020).  σ counts sampling and noise; records of a bin lie evenly in it.
"""

import math
from dataclasses import dataclass

import numpy as np

from dpcausal.arrays import Mask, Reals
from dpcausal.effects.cells.corner_counts import functionals

LEAST_STRENGTH = 4.0
"""A line is fitted where the least eigenvalue of what it is solved by is so many deviations of its noise."""
LEAST_RECORDS = 30.0
"""And of this many records of like weight: of fewer, a mean may be skewed and its error is not known."""
LEAST_SPREAD = 1e-4
"""What a variance of the outcome, in the unit of its range, is taken for at least."""
DEGREE = 4
"""Of the polynomials whose second derivative is the curvature where none is declared."""


@dataclass(frozen=True)
class Score:
    """A sum of the outcome and the treatment: α y + β a, the outcome in the unit of its range."""

    outcome: float = 1.0
    treated: float = 0.0


@dataclass(frozen=True)
class SideFit:
    """The bins on one side of a cutoff, from the nearest on: distances of their ends, and N, T and Q by arms."""

    near: Reals
    far: Reals
    sums: Reals
    noise: Reals
    """Covariance of the noise of one bin's (N, T, Q) in one arm."""

    @property
    def middle(self) -> Reals:
        return (self.near + self.far) / 2

    @property
    def counts(self) -> Reals:
        return np.asarray(self.sums[..., 0].sum(axis=0), dtype=np.float64)

    def totals(self, score: Score) -> Reals:
        """Return Σ s of each bin."""
        return np.asarray(
            score.outcome * self.sums[..., 1].sum(axis=0) + score.treated * self.sums[1:, :, 0].sum(axis=0), np.float64
        )

    def squares(self, score: Score, about: Reals) -> Reals:
        """Return Σ (s − m)² of each bin."""
        variances = np.zeros(len(self.near))
        for arm, sums in enumerate(self.sums):
            less = score.treated * arm - about
            variances += less**2 * sums[:, 0] + 2 * score.outcome * less * sums[:, 1] + score.outcome**2 * sums[:, 2]
        return variances

    def spread(self) -> float:
        """Return the outcome's variance, in the unit of its range."""
        count, total = max(float(self.counts.sum()), 1.0), float(self.totals(Score()).sum())
        return float(self.squares(Score(), np.full(len(self.near), total / count)).sum()) / count

    def residual_noise(self, score: Score, about: Reals) -> Reals:
        """Return the variance of the noise of Σ (s − m) of each bin."""
        noise = np.zeros(len(self.near))
        for arm in range(len(self.sums)):
            parts = np.stack([score.treated * arm - about, np.full(len(about), score.outcome), 0 * about], axis=1)
            noise += np.einsum("ji,ik,jk->j", parts, self.noise, parts)
        return noise

    def powers(self, unit: float) -> Reals:
        """Return the mean of each power of distance over each bin, shape (bins, ``DEGREE`` + 1)."""
        near, far = self.near / unit, self.far / unit
        span = np.where(far > near, far - near, 1.0)
        return np.stack([
            np.where(far > near, (far ** (p + 1) - near ** (p + 1)) / ((p + 1) * span), near**p)
            for p in range(DEGREE + 1)
        ], axis=1)  # fmt: skip


def sides(
    lower: Reals, upper: Reals, sums: Reals, cutoff: float, hole: float, variance: float, degree: int
) -> tuple[SideFit, SideFit]:
    """Return the bins left and right of a cutoff, whose own value lies right; none that reaches into the hole."""
    noise = variance * functionals(degree) @ functionals(degree).T

    def side(near: Reals, far: Reals, inside: Mask) -> SideFit:
        places = np.flatnonzero(inside & (near >= hole))
        places = places[np.argsort(near[places])]
        return SideFit(near[places], far[places], sums[:, places], noise)

    left = side(cutoff - upper, cutoff - lower, (upper <= cutoff) & (lower < cutoff))
    return left, side(lower - cutoff, upper - cutoff, lower >= cutoff)


@dataclass(frozen=True)
class Line:
    """Weights of a line near the cutoff: of its intercept and its slope, and the worst bias of a unit of curvature."""

    side: SideFit
    intercept: Reals
    slope: Reals
    records: float
    """How many of like weight it relies on."""
    bias: float
    strength: float

    def jump(self, score: Score) -> tuple[float, float, float]:
        """Return the intercept, its variance by sampling, and that by noise."""
        totals = self.side.totals(score)
        about = float(self.intercept @ totals) + float(self.slope @ totals) * self.side.middle
        squares = self.side.squares(score, about)
        squared = self.intercept**2
        sampling = max(float(squared @ squares), 0.0) * self.records / (self.records - 2)
        noise = float(squared @ self.side.residual_noise(score, about))
        return float(self.intercept @ totals), sampling, noise


def line_within(
    side: SideFit, bandwidth: float, least: float = LEAST_STRENGTH, spread: float = math.inf
) -> Line | None:
    """Return the line of the records within a bandwidth, weighed by 1 − x/h; ``None`` where noise hides them. Noise is
    that of a bin, however few records it has.  So where the outcome's variance, ``spread``, is reported, records weigh
    less the fewer their bin would have if they lay evenly: not by the bin's own count, whose noise is its sum's."""
    near, far, x, counts = side.near, side.far, side.middle, side.counts

    def area(end: Reals) -> Reals:
        return np.where(end < bandwidth, end - end * end / (2 * bandwidth), bandwidth / 2)

    span = np.where(far > near, far - near, 1.0)
    kernel = np.where(far > near, (area(far) - area(near)) / span, np.maximum(1 - x / bandwidth, 0.0))
    if np.count_nonzero(kernel > 0) < 2:
        return None
    if math.isfinite(spread):
        even = max(float(counts.sum()), 1.0) * span / span.sum()
        kernel = kernel * even / (even + side.residual_noise(Score(), np.full(len(x), 0.5)) / max(spread, LEAST_SPREAD))
    moments = [float((kernel * counts * (x / bandwidth) ** power).sum()) for power in range(3)]
    matrix = np.array([moments[:2], moments[1:]])
    values, vectors = np.linalg.eigh(matrix)
    thin = vectors[0, 0] + vectors[1, 0] * x / bandwidth
    noise = math.sqrt(len(side.sums) * float(side.noise[0, 0] * (kernel**2 * thin**4).sum()))
    strength = float(values[0]) / noise if noise > 0 else math.inf
    records = moments[0] ** 2 / max(float((kernel**2 * counts).sum()), 1e-300)
    if values[0] <= 1e-9 * values[1] or strength < least or records < LEAST_RECORDS:
        return None
    inverse = np.linalg.inv(matrix)
    rows = np.stack([kernel, kernel * x / bandwidth])
    intercept, slope = inverse @ rows
    return Line(side, intercept, slope / bandwidth, records, _worst(side, intercept * counts), strength)


def _worst(side: SideFit, weights: Reals) -> float:
    near, far = side.near, side.far
    inner = [near + share * (far - near) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    points = np.unique(np.concatenate([[0.0], *inner]))
    over, under = np.maximum(far - points[:, None], 0.0), np.maximum(near - points[:, None], 0.0)
    span = np.where(far > near, far - near, 1.0)
    reached = np.where(far > near, (over**2 - under**2) / (2 * span), over)
    heights = np.abs(reached @ weights)
    return float(((heights[1:] + heights[:-1]) / 2) @ np.diff(points))


def bend(side: SideFit, score: Score) -> float:
    """Return the largest second derivative of the polynomial of fourth degree through a side's bins. A bin weighs by
    what sampling and noise leave of its mean."""
    unit = float(side.far.max())
    powers, counts, totals = side.powers(unit)[:, : len(side.near)], np.maximum(side.counts, 0.0), side.totals(score)
    middle = np.full(len(counts), totals.sum() / max(counts.sum(), 1.0))
    spread = max(float(side.squares(score, middle).sum()) / max(counts.sum(), 1.0), LEAST_SPREAD)
    weights = counts / (counts * spread + side.residual_noise(score, middle) + 1e-9)
    gram = (powers.T * (weights * counts)) @ powers
    gram += (1e-9 * np.trace(gram) + 1e-300) * np.eye(len(gram))
    fitted = np.linalg.solve(gram, powers.T @ (weights * totals))
    at = np.linspace(0.0, 1.0, 51)
    second = sum(p * (p - 1) * fitted[p] * at ** (p - 2) for p in range(2, len(fitted)))
    return float(np.abs(second).max()) / unit**2


def factor(bias: float, coverage: float) -> float:
    """Return the quantile of |N(b, 1)| at a level.

    Examples
    --------
    >>> round(factor(0, 0.95), 3), round(factor(5, 0.95) - 5, 3)
    (1.96, 1.645)
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr

    return float(brentq(lambda c: ndtr(c - bias) - ndtr(-c - bias) - coverage, 0.0, bias + 10))
