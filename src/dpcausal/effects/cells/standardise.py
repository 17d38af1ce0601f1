"""Means of two arms at one common mix of strata, from noisy sums by cell, with the covariance of both.

    m_a = Σ_z w_z T_az / N_az,  w_z = W_z / Σ W,  W_z = N_0z + N_1z, or N_1z for the effect on the treated

where N, T, Q are noisy counts, sums and sums of squares of arm a and stratum z.  The covariance is that of the delta
method: with gradients g, h of a mean by N and T, a record's influence is g + h y in its cell, so that

    Cov = Σ_az (N g g′ + T (g h′ + h g′) + Q h h′) + noise

The influences sum to 0, as a mean does not change when all counts are doubled.

Where few records have an outcome, or few do not, limits are those of risks.  The risk of an arm is m = Σ w_z T_z / N_z;
its limits are Wilson's with the noise's variance beside that of sampling:

    (m − θ)² = c² (θ (1 − θ) / n + k (σ_TT − 2θ σ_NT + θ² σ_NN)),  1/n = Σ w²/N,  k = Σ (w/N)²

Those of both arms make the limits of a difference and of a ratio (the recovery of variances).  There are always limits,
so none is shown only where chance made an outcome look frequent.  *Source*: Wilson (1927), Newcombe (1998), Donner &
Zou (2012); the noise, this library.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcausal.arrays import Integers, Mask, Reals

LEAST_COUNT = 8
"""A stratum enters with at least so many records in each arm ..."""
LEAST_RATIO = 6.0
"""... and so many standard deviations of the noise in that count: a ratio of noisy numbers is biased below."""
LESS = 5.0
"""Near that limit errors of noise are those of cells smaller by so many deviations of the noise of their count, where
there is one stratum; of several each has its part of that, as noise lifts all at once as rarely."""
NEAR_LIMIT = 3.0
"""A stratum is left out by chance where its smaller count is within so many deviations below the limit."""
LEAST_EXACT = 1
"""Without noise a stratum enters with so many records in each arm."""
UNSEEN = 3
"""So many records at the far end a sample may miss with a chance of 0.05: it can be more skewed than it looks."""


def least_count(deviation: float) -> float:
    return max(LEAST_COUNT, LEAST_RATIO * deviation) if deviation > 0 else LEAST_EXACT


@dataclass(frozen=True)
class Sums:
    """Noisy counts, sums and sums of squares of values in units of their range, shape (2, strata), control first.
    ``noise`` is the noise covariance of (N, T) in a cell."""

    N: Reals
    T: Reals
    Q: Reals
    noise: Reals
    observed: Reals | None = None
    """Noisy counts of records with treatment and strata, whether or not they have an outcome; ``None``: N."""
    observed_noise: float = 0.0
    others: Reals | None = None
    """Noisy counts by strata of the population's records at other levels of the treatment, where it has some."""
    others_noise: float = 0.0

    @property
    def population_counts(self) -> Reals:
        return self.N if self.observed is None else self.observed

    def weights(self, treated_only: bool) -> Reals:
        if treated_only:
            return np.asarray(self.population_counts[1])
        both = self.population_counts.sum(axis=0)
        return np.asarray(both if self.others is None else both + np.maximum(self.others, 0.0))

    @property
    def supported(self) -> Mask:
        """The strata in which both arms can be distinguished from the noise."""
        enough = self.N.min(axis=0) >= least_count(math.sqrt(self.noise[0, 0]))
        return np.asarray(enough & (self.population_counts.min(axis=0) >= LEAST_RATIO * math.sqrt(self.observed_noise)))

    @property
    def ratio(self) -> float:
        """The least count of a supported stratum over the deviation of its noise; infinite without noise."""
        deviation = math.sqrt(self.noise[0, 0])
        counts = self.N[:, self.supported]
        return float(counts.min() / deviation) if counts.size and deviation > 0 else math.inf if counts.size else 0.0

    @property
    def left_out_by_chance(self) -> float:
        """The share of the strata near the limit or above that noise has put below it."""
        smaller, deviation = self.N.min(axis=0), math.sqrt(self.noise[0, 0])
        near = ~self.supported & (smaller >= least_count(deviation) - NEAR_LIMIT * deviation)
        return int(near.sum()) / max(int(near.sum() + self.supported.sum()), 1)

    def noise_inflation(self, treated_only: bool) -> Reals:
        """Return by how much more noise counts than noisy counts say: N / (N − less σ), up to 8 σ, and 1 from 16 σ on.

        Noise that lifts a count over the limit also makes it look larger than it is, and only those are shown.  What it
        has lifted lies little above the limit, however small the cell: the tail of Laplace noise is the same
        everywhere.
        """
        if self.noise[0, 0] == 0:
            return np.ones_like(self.N)
        weights, deviation = self.weights(treated_only), math.sqrt(self.noise[0, 0])
        less = LESS / float(weights.sum() ** 2 / (weights**2).sum())
        taken = less * np.clip(2 - self.N / max(8 * deviation, 1e-300), 0.0, 1.0) * deviation
        return np.asarray(self.N / (self.N - taken))

    def part(self, strata: Mask) -> Sums:
        observed, others = (None if one is None else one[..., strata] for one in (self.observed, self.others))
        N, T, Q = (one[:, strata] for one in (self.N, self.T, self.Q))
        return replace(self, N=N, T=T, Q=Q, observed=observed, others=others)

    def merged(self, parents: Integers) -> Sums:
        """Return those of coarser strata 0, 1, …; ``parents`` says to which each stratum belongs."""

        def merge(cells: Reals) -> Reals:
            return np.stack([np.bincount(parents, own) for own in cells])

        more = int(np.bincount(parents).max())
        observed = None if self.observed is None else merge(self.observed)
        others = None if self.others is None else merge(self.others[None])[0]
        N, T, Q = (merge(one) for one in (self.N, self.T, self.Q))
        noises = self.noise * more, observed, self.observed_noise * more
        return Sums(N, T, Q, *noises, others, self.others_noise * more)

    def variance(self, by_count: Reals, by_sum: Reals) -> float:
        """Return the variance, of sampling and noise, of a statistic with such derivatives by the counts and sums."""
        sampling = self.N * by_count**2 + 2 * self.T * by_count * by_sum + self.Q * by_sum**2
        (nn, nt), (_, tt) = self.noise
        noise = nn * by_count**2 + 2 * nt * by_count * by_sum + tt * by_sum**2
        return max(float(sampling.sum()), 0.0) + float(noise.sum())


def parents_of(sizes: Sequence[int], axes: Sequence[int], first: int) -> Integers:
    """Return the coarser stratum of each stratum: along some axes two neighbours together, ``first`` of them alone."""
    places = np.indices(sizes).reshape(len(sizes), -1)
    for axis in axes:
        places[axis] = np.where(places[axis] < first, places[axis], first + (places[axis] - first) // 2)
    return np.asarray(np.ravel_multi_index(tuple(places), tuple(sizes)))


@dataclass(frozen=True)
class ArmMeans:
    values: Reals
    covariance: Reals
    noise: Reals
    spread: float
    """Variance of the outcome within arms and strata."""
    partial_r2: float
    """Share of the variance within strata that the arms explain."""
    skew: float
    """The most that the skewness of the difference can be, by counts, means, variances and the range."""
    far: float
    """The most that a record at the far end of the range moves the difference."""
    slopes: Reals
    """Derivatives of the difference by counts and sums, shape (2, 2, strata)."""


def tail_quantile(variance: float, far: float, reach: float) -> float:
    """Return half an interval that holds whatever the skew within a range, where a normal one reaches so many errors.
    Bernstein's inequality for sums of records that each move it by at most ``far``, one more of which than were seen is
    in the variance: of a distribution of which a sample shows none, three and a half such records, 0.03 of all samples,
    are in."""
    from scipy.special import log_ndtr

    log = -float(log_ndtr(-reach))
    linear = far * log / 3
    return linear + math.sqrt(linear**2 + 2 * log * (variance + far**2))


def means(sums: Sums, treated_only: bool, left_out: float = 0.0) -> ArmMeans:
    """Return the standardised means of strata that are all supported, at least one. ``left_out`` is the share of such
    strata that noise has put below the limit.  Of those above it noise has lifted as many, which draws their means to
    the middle of the range: the noise allows for that."""
    N, T, Q = sums.N, sums.T, sums.Q
    # Of strata that only an answer without noise has: unbiased variances, and of one record that of all other cells.
    squares = np.maximum(Q - T**2 / N, 0.0)
    pooled, spare = float(squares.sum()), float((N - 1).sum())
    if spare < 1:  # one record in each cell: the variance within arms
        pooled, spare = float((Q.sum(axis=1) - T.sum(axis=1) ** 2 / N.sum(axis=1)).sum()), float(N.sum() - 2)
    pooled /= max(spare, 1.0)
    Q = Q + np.where(N < 2, pooled, np.where(N < LEAST_COUNT, squares / np.maximum(N - 1, 1.0), 0.0))
    weights = sums.weights(treated_only)
    total = float(weights.sum())
    within = T / N
    values = within @ weights / total
    by_count, by_sum, by_weight = (np.zeros((2, *N.shape)) for _ in range(3))
    for arm in (0, 1):
        by_sum[arm, arm] = weights / (total * N[arm])
        by_count[arm, arm] = -by_sum[arm, arm] * within[arm]
        by_weight[arm, 1] = (within[arm] - values[arm]) / total
        by_weight[arm, 0] = 0.0 if treated_only else by_weight[arm, 1]
    own = by_count
    by_count = by_count + by_weight
    cross = np.einsum("iaz,jaz,az->ij", by_count, by_sum, T)
    sampling = (
        np.einsum("iaz,jaz,az->ij", by_count, by_count, N) + cross + cross.T
        + np.einsum("iaz,jaz,az->ij", by_sum, by_sum, Q)
    )  # fmt: skip
    both = np.stack([by_count if sums.observed is None else own, by_sum])
    inflated, deviation = both * sums.noise_inflation(treated_only), math.sqrt(sums.noise[0, 0])
    near = np.clip(2 - N / max(8 * deviation, 1e-300), 0.0, 1.0) ** 2
    drawn = left_out * deviation * (weights / total * near * (0.5 - within) / N).sum(axis=1)
    noise = np.einsum("siaz,tjaz,st->ij", inflated, inflated, sums.noise) + np.outer(drawn, drawn)
    if sums.observed is not None:  # records without an outcome have a part in the mix of strata alone
        missing = np.maximum(sums.observed - N, 0.0)
        sampling = sampling + np.einsum("iaz,jaz,az->ij", by_weight, by_weight, missing)
        noise = noise + sums.observed_noise * np.einsum("iaz,jaz->ij", by_weight, by_weight)
    if sums.others is not None:  # so have those of other arms
        moved = by_weight[:, 0]
        sampling = sampling + np.einsum("iz,jz,z->ij", moved, moved, np.maximum(sums.others, 0.0))
        noise = noise + sums.others_noise * moved @ moved.T
    # Noisy squares can fall below those of the means: the sampling variance is at least 0 in every direction.
    eigenvalues, vectors = np.linalg.eigh((sampling + sampling.T) / 2)
    sampling = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
    balance = N.prod(axis=0) / N.sum(axis=0)
    gap = float(balance @ (within[1] - within[0]))
    residual = max(float((Q - T**2 / N).sum()), 0.0)
    explained = gap**2 / float(balance.sum())
    share = explained / (explained + residual) if explained + residual > 0 else 0.0
    covariance = sampling + noise
    variance = float(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    # What the noise may have taken from a variance is given back: else those samples would be shown that look too tame.
    most = np.maximum(Q / N - within**2, 0.0) + 2 * math.sqrt(sums.noise[0, 0]) / N
    third = third_cumulant(N, within, most, by_sum[1, 1], by_sum[0, 0])
    far = float((np.maximum(within, 1 - within) * np.array([by_sum[0, 0], by_sum[1, 1]])).max())
    more = third + UNSEEN * far**3, variance + UNSEEN * far**2
    skew = max(cumulant / max(spread, 1e-100) ** 1.5 for cumulant, spread in ((third, variance), more))
    slopes = both[:, 1] - both[:, 0]
    return ArmMeans(values, covariance, noise, residual / float(N.sum()), share, skew, far, slopes)


def third_cumulant(N: Reals, means: Reals, variances: Reals, treated: Reals, control: Reals) -> float:
    """Return the most that the third cumulant of the difference can be away from 0. On [0, 1] with mean m and variance
    v a third central moment is at most v (1 − m − v/(1 − m)), with some of the mass at 1, and at least v (v/m − m),
    with some of it at 0."""
    m = np.clip(means, 1e-12, 1 - 1e-12)
    v = np.minimum(variances, m * (1 - m))
    most, least = v * (1 - m - v / (1 - m)), v * (v / m - m)
    up, down = N[1] * treated**3, N[0] * control**3
    ends = float(up @ most[1] - down @ least[0]), float(up @ least[1] - down @ most[0])
    return max(abs(end) for end in ends)


ENOUGH = 60
"""So many records with the outcome in each arm, and without, are enough for normal limits: those cover 0.94 there."""


@dataclass(frozen=True)
class Risk:
    """A risk and its limits, within 0 and 1; its variance, and what the weights of the strata add to that."""

    value: float
    low: float
    high: float
    variance: float
    beyond: float
    rarer: float
    """Records with the outcome, or without, whichever are fewer, were all of one stratum."""

    def with_weights(self, reach: float) -> Risk:
        below = math.hypot(self.value - self.low, reach * math.sqrt(self.beyond))
        above = math.hypot(self.high - self.value, reach * math.sqrt(self.beyond))
        low, high = max(self.value - below, 0.0), min(self.value + above, 1.0)
        return replace(self, low=low, high=high, beyond=0.0)

    def complement(self) -> Risk:
        return replace(self, value=1 - self.value, low=1 - self.high, high=1 - self.low)


def risks(sums: Sums, adjusted: ArmMeans, treated_only: bool, reach: float) -> tuple[Risk, Risk]:
    weights = sums.weights(treated_only)
    weights = weights / weights.sum()
    (nn, nt), (_, tt) = sums.noise
    both, inflation = [], sums.noise_inflation(treated_only)
    for arm in (0, 1):
        of_count = weights / sums.N[arm]
        inflated = of_count * inflation[arm]
        share, sampling, noise = sums.T[arm] / sums.N[arm], float(weights @ of_count), float(inflated @ inflated)
        m, p = float(np.clip(adjusted.values[arm], 0.0, 1.0)), np.clip(share, 0.0, 1.0)
        fixed = float(weights * of_count @ (p * (1 - p)) + inflated**2 @ (tt - 2 * p * nt + p * p * nn))
        square = 1 + reach**2 * (sampling - noise * nn)
        middle = m + reach**2 * (sampling / 2 - noise * nt)
        root = math.sqrt(max(middle**2 - square * (m * m - reach**2 * noise * tt), 0.0))
        low, high = max(min((middle - root) / square, m), 0.0), min(max((middle + root) / square, m), 1.0)
        beyond = max(float(adjusted.covariance[arm, arm]) - fixed, 0.0)
        both.append(Risk(m, low, high, fixed, beyond, min(m, 1 - m) / sampling))
    return both[0], both[1]


def difference(control: Risk, treated: Risk, variance: float, reach: float) -> tuple[float, float]:
    """Return the limits of the difference; its variance counts that both arms have the same weights."""
    gap = treated.value - control.value
    rest = reach * math.sqrt(max(variance - control.variance - treated.variance, 0.0))
    below = math.hypot(treated.value - treated.low, control.high - control.value, rest)
    above = math.hypot(treated.high - treated.value, control.value - control.low, rest)
    return gap - below, gap + above


def ratio(control: Risk, treated: Risk, reach: float) -> tuple[float | None, tuple[float, float]]:
    """Return the ratio of risks, none of a control risk of 0, and its limits; the upper one may be infinite."""
    one, zero = treated.with_weights(reach), control.with_weights(reach)
    estimate = one.value / zero.value if zero.value > 0 else None
    return estimate, _limits((one.low, one.value, one.high), (zero.low, zero.value, zero.high))


def odds_ratio(control: Risk, treated: Risk, reach: float) -> tuple[float | None, tuple[float, float]]:
    """Return the ratio of odds, likewise: of the rarer of having the outcome and not."""
    one, zero = treated, control
    if treated.value + control.value > 1:
        one, zero = control.complement(), treated.complement()
    above, below = (
        tuple(p / (1 - p) if p < 1 else math.inf for p in (risk.low, risk.value, risk.high))
        for risk in (one.with_weights(reach), zero.with_weights(reach))
    )
    estimate = above[1] / below[1] if below[1] > 0 and above[1] < math.inf else None
    return estimate, _limits(above, below)


def _limits(above: tuple[float, ...], below: tuple[float, ...]) -> tuple[float, float]:
    (a_low, a, a_high), (b_low, b, b_high) = above, below
    product = a * b
    low = high = 0.0
    if a_low > 0 and b_high < math.inf:
        gained, lost = a_low * (2 * a - a_low), b_high * (2 * b - b_high)
        low = gained / (product + math.sqrt(max(product**2 - gained * lost, 0.0)))
    if b_low <= 0 or a_high == math.inf:
        return low, math.inf
    gained, lost = a_high * (2 * a - a_high), b_low * (2 * b - b_low)
    high = (product + math.sqrt(max(product**2 - gained * lost, 0.0))) / lost
    return low, high
