"""Null laws of what is released: sums of clipped normal block terms with geometric noise; a normal with Laplace noise.

A block's term is k = round(G · clip(z, ±c)) with z standard normal under the null, and what is released is
K + N, K the sum of M such terms, P(N = k) ∝ exp(−|k| ε/(2Gc)).  Its law is computed, not approximated.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]

STEPS_PER_UNIT = 100
"""G: terms are rounded to a hundredth of a standard deviation, and the law is that of the rounded ones."""

REACH = 150
"""G · c with c = 1.5: a term beyond one and a half standard deviations says no more than that."""

LEAST_PVALUE = 1e-12
"""Below this the convolution's own rounding could count; a smaller p-value is given as this."""


def term(z: float) -> int:
    """Return a block's integer term of a standard score; 0 if it is not a number.

    Examples
    --------
    >>> [term(z) for z in (0.1234, -3.0, float("inf"), float("nan"))]
    [12, -150, 150, 0]
    """
    if math.isnan(z):
        return 0
    return round(min(max(z * STEPS_PER_UNIT, -REACH), REACH))


@lru_cache(maxsize=1)
def _one_term() -> Reals:
    """Return P(k), k = −REACH, …, REACH, of one block's term under the null."""
    below = NormalDist().cdf
    edges = np.array([below((k + 0.5) / STEPS_PER_UNIT) for k in range(-REACH, REACH)])
    return np.diff(edges, prepend=0.0, append=1.0)


@lru_cache(maxsize=8)
def block_law(blocks: int) -> Reals:
    """Return P(K = k), k = −M·REACH, …, M·REACH, of the sum of M independent block terms under the null.

    Examples
    --------
    >>> law = block_law(3)
    >>> law.size, round(float(law.sum()), 12)
    (901, 1.0)
    """
    size = 2 * REACH * blocks + 1
    length = 1 << (size - 1).bit_length()
    law = np.fft.irfft(np.fft.rfft(_one_term(), length) ** blocks, length)[:size]
    law = np.maximum(law, 0)
    law = (law + law[::-1]) / 2
    return np.asarray(law / law.sum())


def geometric_tail(least: Reals, scale: float) -> Reals:
    """Return P(N ≥ least) for integers and P(N = k) ∝ exp(−|k|/scale).

    Examples
    --------
    >>> geometric_tail(np.array([-1.0, 0.0, 1.0]), 1.0).round(4)
    array([0.9011, 0.7311, 0.2689])
    """
    ratio = math.exp(-1 / scale)
    up = np.exp(-np.abs(np.where(least > 0, least, 1 - least)) / scale) / (1 + ratio)
    return np.where(least > 0, up, 1 - up)


def block_pvalue(released: int, blocks: int, epsilon: float, two_sided: bool) -> float:
    """Return the probability, under the null, of a released sum at least as extreme.

    p = P(|K + N| ≥ |s|), or P(K + N ≥ s) if only large sums speak against the null.

    Parameters
    ----------
    released : int
        s = the sum of the blocks' terms, with noise of scale 2 · REACH/ε.
    blocks : int
        M.
    epsilon : float
        ε of the release.
    two_sided : bool
        Whether small sums speak against the null too.

    Examples
    --------
    >>> block_pvalue(0, 8, 1.0, True), block_pvalue(3000, 8, 1.0, True) < 0.001
    (1.0, True)
    """
    if two_sided and released == 0:
        return 1.0
    least = abs(released) if two_sided else released
    reach = REACH * blocks
    k = np.arange(-reach, reach + 1, dtype=np.float64)
    tails = geometric_tail(least - k, 2 * REACH / epsilon)
    p = float(block_law(blocks) @ tails) * (2 if two_sided else 1)
    return min(1.0, max(LEAST_PVALUE, p))


def normal_laplace_pvalue(value: float, deviation: float, scale: float) -> float:
    """Return P(|N + L| ≥ |value|) for independent N ~ N(0, deviation²) and L ~ Laplace(scale), in closed form.

    P(N + L ≥ s) = Φ(−s/σ) + ½ e^{σ²/(2b²)} (e^{−s/b} Φ(s/σ − σ/b) − e^{s/b} Φ(−s/σ − σ/b))

    where σ is ``deviation`` > 0 and b is ``scale`` > 0; evaluated in logarithms, so that nothing overflows.

    Examples
    --------
    >>> round(normal_laplace_pvalue(1.959964, 1.0, 1e-6), 6), round(normal_laplace_pvalue(3.0, 1e-6, 1.0), 6)
    (0.05, 0.049787)
    """
    from scipy.special import log_ndtr

    s = abs(value)
    if math.isinf(s):
        return LEAST_PVALUE
    shift = deviation / scale
    if shift > 1e6:  # the noise is nothing beside the spread
        up, down = 0.0, 0.0
    else:
        half = shift * shift / 2
        up = math.exp(min(0.0, half - s / scale + float(log_ndtr(s / deviation - shift))))
        down = math.exp(min(0.0, half + s / scale + float(log_ndtr(-s / deviation - shift))))
    p = 2 * (math.exp(float(log_ndtr(-s / deviation))) + (up - down) / 2)
    return min(1.0, max(LEAST_PVALUE, p))
