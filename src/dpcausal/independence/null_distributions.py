"""Null distributions of what is released: sums of clipped normal block terms with geometric noise; a normal with
Laplace noise.

A block's term is k = round(G · clip(z, ±c)) with z standard normal under the null, and what is released is
K + N, K the sum of M such terms, P(N = k) ∝ exp(−|k| ε/(2Gc)).  Its distribution is computed, not approximated.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.privacy.noise import PublicGenerator

STEPS_PER_UNIT = 100
"""G: terms are rounded to a hundredth of a standard deviation, and the distribution is that of the rounded ones."""

REACH, WIDE_REACH, FEW_BLOCKS = 75, 150, 8
"""G · c with c = 0.75, and 1.5 where there are fewer than eight blocks: a term beyond says no more.  A shift of the
scores moves the sum by P(|Z| < c) a block, and the noise is as c: where it rules, small c need fewer rows."""

MISSED = 0.04
"""The share of a level that may be lost to a noisy variance that is too low."""

LEAST_PVALUE = 1e-12
"""Below this the convolution's own rounding could count; a smaller p-value is given as this."""


def reach_of(blocks: int) -> int:
    return WIDE_REACH if blocks < FEW_BLOCKS else REACH


def block_term(z: float, reach: int = REACH) -> int:
    """Return a block's integer term of a standard score; 0 if it is not a number."""
    if math.isnan(z):
        return 0
    return round(min(max(z * STEPS_PER_UNIT, -reach), reach))


@lru_cache(maxsize=2)
def _one_term(reach: int) -> Reals:
    below = NormalDist().cdf
    edges = np.array([below((k + 0.5) / STEPS_PER_UNIT) for k in range(-reach, reach)])
    return np.diff(edges, prepend=0.0, append=1.0)


@lru_cache(maxsize=8)
def block_distribution(blocks: int) -> Reals:
    """Return P(K = k), k = −M·reach, …, M·reach, of the sum of M independent block terms under the null."""
    reach = reach_of(blocks)
    size = 2 * reach * blocks + 1
    length = 1 << (size - 1).bit_length()
    chances = np.maximum(np.fft.irfft(np.fft.rfft(_one_term(reach), length) ** blocks, length)[:size], 0)
    chances = (chances + chances[::-1]) / 2
    return np.asarray(chances / chances.sum())


def geometric_tail(least: Reals, scale: float) -> Reals:
    """Return P(N ≥ least) for integers and P(N = k) ∝ exp(−|k|/scale)."""
    ratio = math.exp(-1 / scale)
    up = np.exp(-np.abs(np.where(least > 0, least, 1 - least)) / scale) / (1 + ratio)
    return np.where(least > 0, up, 1 - up)


def block_pvalue(released: int, blocks: int, epsilon: float, two_sided: bool) -> float:
    """Return P(|K + N| ≥ |s|), or P(K + N ≥ s) if only large sums speak against the null."""
    if two_sided and released == 0:
        return 1.0
    least = abs(released) if two_sided else released
    most = reach_of(blocks) * blocks
    k = np.arange(-most, most + 1, dtype=np.float64)
    tails = geometric_tail(least - k, 2 * reach_of(blocks) / epsilon)
    p = float(block_distribution(blocks) @ tails) * (2 if two_sided else 1)
    return min(1.0, max(LEAST_PVALUE, p))


def upper_bound(noisy: float, scale: float, miss: float) -> float:
    """Return noisy + ⌈b ln(1/(2 miss))⌉ + 1, at least 0: the hidden count is above it with chance ``miss`` at most."""
    return max(0.0, noisy + math.ceil(scale * math.log(1 / (2 * miss))) + 1) if scale else noisy


def bounded_pvalue(value: float, scale: float, deviation: Callable[[float], float]) -> float:
    """Return the least level a at which |value| is significant where its deviation is only bounded from above. p = inf
    {a : P(|N + L| ≥ |value|) ≤ 0.96 a},  N ~ N(0, σ(0.04 a)²), L ~ Laplace(scale) where σ(m) is a bound that fails with
    probability m at most: at each a the test has level a, and as σ falls with m the regions of rejection are nested."""
    if not scale:  # without privacy the bound is the deviation
        return normal_laplace_pvalue(value, deviation(MISSED), scale)

    def significant(level: float) -> bool:
        sure = (1 - MISSED) * level
        return normal_laplace_pvalue(value, deviation(MISSED * level), scale) <= sure

    low, high = math.log(LEAST_PVALUE), 0.0
    if not significant(1.0):
        return 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if significant(math.exp(middle)) else (middle, high)
    return max(LEAST_PVALUE, math.exp(high))


def noisy_power(mean: float, deviation: float, scale: float, farthest: float) -> float:
    """Return P(mean + N + L ≥ farthest) for independent N ~ N(0, deviation²) and L ~ Laplace(scale)."""
    tail = normal_laplace_pvalue(farthest - mean, deviation, scale) / 2
    return tail if farthest >= mean else 1 - tail


def level_power(mean: float, deviation: float, scale: float, level: float) -> float:
    """Return the power of the two-sided test of that level whose statistic has this mean."""
    farthest = farthest_of(lambda value: normal_laplace_pvalue(value, deviation, scale) <= level, deviation)
    return noisy_power(mean, deviation, scale, farthest)


def farthest_of(significant: Callable[[float], bool], step: float) -> float:
    """Return the least value from which on a rule holds, a multiple of a 2⁻²⁰ of some doubling of the step."""
    high = step
    while not significant(high):
        high *= 2
    low = 0.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if significant(middle) else (middle, high)
    return high


def normal_laplace_pvalue(value: float, deviation: float, scale: float) -> float:
    """Return P(|N + L| ≥ |value|) for independent N ~ N(0, deviation²) and L ~ Laplace(scale), in closed form. P(N + L
    ≥ s) = Φ(−s/σ) + ½ e^{σ²/(2b²)} (e^{−s/b} Φ(s/σ − σ/b) − e^{s/b} Φ(−s/σ − σ/b)) where σ is ``deviation`` > 0 and b
    is ``scale``, 0 without noise; evaluated in logarithms: nothing overflows."""
    from scipy.special import log_ndtr

    s = abs(value)
    if math.isinf(s):
        return LEAST_PVALUE
    shift = deviation / scale if scale else math.inf
    if shift > 1e6:  # the noise is nothing beside the spread
        up, down = 0.0, 0.0
    else:
        half = shift * shift / 2
        up = math.exp(min(0.0, half - s / scale + float(log_ndtr(s / deviation - shift))))
        down = math.exp(min(0.0, half + s / scale + float(log_ndtr(-s / deviation - shift))))
    p = 2 * (math.exp(float(log_ndtr(-s / deviation))) + (up - down) / 2)
    return min(1.0, max(LEAST_PVALUE, p))


BATCH = 250_000
"""Numbers permuted at a time."""

RESOLUTION = 1e-10
"""Statistics that differ by less than this share of the largest they can be are equal: sums in another order are."""


def score_of_rank(observed: float, copies: Reals, largest: float, generator: PublicGenerator) -> float:
    """Return Φ⁻¹(1 − u), u = (#{copies above} + U (#{copies equal} + 1)) / (number of copies + 1), U uniform. Ties are
    found on a grid of 1e-10 of ``largest``: rounding may not break them, as it treats rows and copies unlike."""
    places = np.rint(np.append(copies, observed) / (largest * RESOLUTION)) if largest > 0 else np.zeros(copies.size + 1)
    if not np.isfinite(places).all():
        return 0.0
    above, equal = int(np.sum(places[:-1] > places[-1])), int(np.sum(places[:-1] == places[-1]))
    u = (above + (1 - generator.random()) * (equal + 1)) / (copies.size + 1)
    return -NormalDist().inv_cdf(min(max(u, 2.0**-53), 1 - 2.0**-53))


def studentised_covariance(left: Reals, right: Reals) -> Reals:
    """Return Σ_i l_i r_i / √Σ_i (l_i r_i)² for each column of ``left`` with each of ``right``; 0 where 0/0."""
    turned = np.swapaxes(left, -1, -2)
    sums, squares = turned @ right, turned**2 @ right**2
    return np.where(squares > 0, sums / np.sqrt(np.maximum(squares, 1e-300)), 0.0)


def permutation_score(left: Reals, right: Reals, permutations: int, spread: float, generator: PublicGenerator) -> float:
    """Return the score of the studentised covariance of residuals among those of permuted rows of ``left``. Of several
    columns the largest absolute one counts.  ``spread``: its variance over that of permutations."""
    one = left.shape[1] == right.shape[1] == 1

    def summary(rows: Reals) -> Reals:
        each = studentised_covariance(rows, right)
        return each[..., 0, 0] if one else np.abs(each).max(axis=(-1, -2))

    observed = float(summary(left)) / math.sqrt(spread)
    copies = np.empty(permutations)
    at_once = max(1, BATCH // left.size)
    places = np.arange(left.shape[0])
    for start in range(0, permutations, at_once):
        size = min(at_once, permutations - start)
        order = generator.permuted(np.broadcast_to(places, (size, places.size)), axis=1)
        copies[start : start + size] = summary(left[order])
    return score_of_rank(observed, copies, math.sqrt(left.shape[0]), generator)
