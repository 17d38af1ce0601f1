"""The distributions of noisy counts of blocks, and the p-values that they give: from public numbers, free.

A count is Binomial(M, π) plus noise, π the chance that a block of that size casts the bit.  It grows stochastically
with π, so a tail at π₀ is a p-value of "π is at most π₀", or at least.  Proof: ``verdict.md``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Tail = Callable[[Any], Any]
"""t ≥ 1 → P(Z ≥ t) of a symmetric whole-number noise Z, of one t or an array of them."""

AT_MOST, AT_LEAST, MOSTLY = 0.2, 0.4, 0.5
"""A claim that something shows in blocks rejects π ≤ the first, a claim that it does not rejects π ≥ the second, and a
claim that it shows in most of them rejects π ≤ the third."""

FULL, CLEAR = 50, 2 / 3
"""Blocks, ε times as many below 1, of which all must favour one side; the most of any number that is asked."""

DRAWN_WIDTH = 2.8
"""A correlation of so much over √b of Gaussian columns shows in about ``AT_LEAST`` of blocks of b rows: measured."""


def arrow_bounds(blocks: int, epsilon: float) -> tuple[float, float]:
    """Return the shares of blocks that an arrow is held against: the most with dependent residuals, the least that
    favour it.

    λ = M min(1, ε)/50 within ½ and ⅔,  φ = 1 − λ, at most 0.4

    Else 52 of 100 blocks would be an arrow where blocks are many: more rows would make a wrong arrow more certain.

    >>> arrow_bounds(20, 1.0), arrow_bounds(30, 1.0), [round(share, 2) for share in arrow_bounds(501, 0.1)]
    ((0.4, 0.5), (0.4, 0.6), [0.33, 0.67])
    """
    clear = min(max(blocks * min(1.0, epsilon) / FULL, 0.5), CLEAR)
    return min(AT_LEAST, 1 - clear), clear


def no_noise(t: Any) -> Any:
    return 0.0 * t


def geometric_tail(epsilon: float) -> Tail:
    return lambda t: np.exp(-epsilon * t) / (1 + math.exp(-epsilon))


def cube_tail(epsilon: float) -> Tail:
    """Return the tail of one entry of the cube's noise in four dimensions.

    P(Z ≥ t) = q^t/N Σ_{i≥0} q^i [(2(t + i) + 1)³ + i(24(t + i)² + 2)],  N = 1 + Σ_{r≥1} (64r³ + 16r) q^r
    """
    q, p = math.exp(-epsilon), -math.expm1(-epsilon)
    sums = 1 / p, q / p**2, q * (1 + q) / p**3, q * (1 + 4 * q + q * q) / p**4  # Σ i^k q^i
    whole = 1 + 64 * sums[3] + 16 * sums[1]

    def tail(t: Any) -> Any:
        t = np.asarray(t, dtype=np.float64)
        odd = 2 * t + 1
        terms = odd**3, 6 * odd**2 + 24 * t * t + 2, 12 * odd + 48 * t, 32
        return np.exp(-epsilon * t) * sum(a * b for a, b in zip(terms, sums, strict=True)) / whole

    return tail


SUMMED = 100_000
"""Most radii of the cube that a chance is summed over: beyond, 2,000 blocks drown in the noise."""


def cube_chance(slacks: tuple[float, ...], epsilon: float) -> float:
    """Return P(Z_i ≥ −s_i for all i) = (1/N) Σ_r q^r [V(r) − V(r − 1)],  V(r) = Π_i max(0, r + min(r, s_i) + 1)."""
    r = np.arange(min(SUMMED, math.ceil(60 / epsilon)) + 1.0)
    inside, whole = (
        np.diff(np.prod([np.maximum(0, r + np.minimum(r, s) + 1) for s in bounds], axis=0), prepend=0.0)
        for bounds in (slacks, (math.inf,) * len(slacks))
    )
    weights = np.exp(-epsilon * r)
    return float(inside @ weights / (whole @ weights))


@lru_cache(maxsize=64)
def _binomial_chances(blocks: int, chance: float) -> npt.NDArray[np.float64]:
    from scipy.stats import binom

    return np.asarray(binom.pmf(np.arange(blocks + 1), blocks, chance))


@dataclass(frozen=True)
class Counts:
    """Noisy counts of M blocks with noise of one distribution; ``epsilon`` is that of the cube's, infinite of none."""

    blocks: int
    tail: Tail
    epsilon: float = math.inf

    def at_least(self, count: int, chance: float) -> float:
        """Return P(B + Z ≥ count) for B ~ Binomial(M, chance): the p-value of "π is at most the chance"."""
        return self._sum(count, chance, 1)

    def at_most(self, count: int, chance: float) -> float:
        """Return P(B + Z ≤ count): the p-value of "π is at least the chance"."""
        return self._sum(count, chance, -1)

    @lru_cache(maxsize=4096)  # noqa: B019 - of released counts and public chances alone
    def _sum(self, count: int, chance: float, sign: int) -> float:
        beyond = sign * (count - np.arange(self.blocks + 1.0))
        tails = np.where(beyond >= 1, self.tail(np.maximum(beyond, 1)), 1 - self.tail(np.maximum(1 - beyond, 1)))
        return min(1.0, float(_binomial_chances(self.blocks, chance) @ tails))

    def sign_pvalue(self, count: int) -> float:
        """Return the two-sided p-value of fair coin flips: P(|B + Z − M/2| ≥ |count − M/2|)."""
        return min(1.0, 2 * self.at_least(max(count, self.blocks - count), 0.5))

    def clear(self, count: int) -> float:
        """Return the p-value of "no more blocks favour one side than an arrow needs"."""
        return max(self.sign_pvalue(count), self.at_least(max(count, self.blocks - count), self.bounds[1]))

    @property
    def bounds(self) -> tuple[float, float]:
        return arrow_bounds(self.blocks, self.epsilon)

    def chance(self, slacks: tuple[float, ...]) -> float:
        return float(min(slacks) >= 0) if math.isinf(self.epsilon) else cube_chance(slacks, self.epsilon)


def least_holding(holds: Callable[[int], bool], start: int = 0) -> int:
    """Return the least whole number from which on a rule holds, near the start or far on either side."""
    low, step = start, 1
    while holds(low):
        low, step = low - step, 2 * step
    high, step = low + 1, 1
    while not holds(high):
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
