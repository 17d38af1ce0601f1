"""The laws of noisy counts of blocks, and the p-values that they give: from public numbers, free.

A count is Binomial(M, π) plus noise, π the chance that a block of so many rows casts the bit.  It grows stochastically
with π, so a tail at π₀ is a p-value of "π is at most π₀", or at least.  Proof: ``verdict.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Tail = Callable[[int], float]
"""t ≥ 1 → P(Z ≥ t) of a symmetric whole-number noise Z."""

AT_MOST, AT_LEAST = 0.2, 0.4
"""A claim that something shows in blocks rejects π ≤ the first, a claim that it does not rejects π ≥ the second."""


def no_noise(t: int) -> float:
    return 0.0


def geometric_tail(epsilon: float) -> Tail:
    """Return the tail of P(k) ∝ e^{−ε|k|}: q^t/(1 + q), q = e^{−ε}."""
    return lambda t: math.exp(-epsilon * t) / (1 + math.exp(-epsilon))


def cube_tail(epsilon: float) -> Tail:
    """Return the tail of one entry of the cube's noise in four dimensions.

    P(Z ≥ t) = q^t/N Σ_{i≥0} q^i [(2(t + i) + 1)³ + i(24(t + i)² + 2)],  N = 1 + Σ_{r≥1} (64r³ + 16r) q^r

    >>> round(cube_tail(1.0)(1), 4), round(cube_tail(1e-6)(2_000_000), 4)
    (0.4375, 0.2594)
    """
    q, p = math.exp(-epsilon), -math.expm1(-epsilon)
    sums = 1 / p, q / p**2, q * (1 + q) / p**3, q * (1 + 4 * q + q * q) / p**4  # Σ i^k q^i
    whole = 1 + 64 * sums[3] + 16 * sums[1]

    def tail(t: int) -> float:
        odd = 2 * t + 1
        terms = odd**3, 6 * odd**2 + 24 * t * t + 2, 12 * odd + 48 * t, 32
        return math.exp(-epsilon * t) * sum(a * b for a, b in zip(terms, sums, strict=True)) / whole

    return tail


@lru_cache(maxsize=64)
def _binomial(blocks: int, chance: float) -> npt.NDArray[np.float64]:
    from scipy.stats import binom

    return np.asarray(binom.pmf(np.arange(blocks + 1), blocks, chance))


@dataclass(frozen=True)
class Counts:
    """Noisy counts of M blocks with noise of one law."""

    blocks: int
    tail: Tail

    def at_least(self, count: int, chance: float) -> float:
        """Return P(B + Z ≥ count) for B ~ Binomial(M, chance): the p-value of "π is at most the chance"."""
        return self._sum(count, chance, 1)

    def at_most(self, count: int, chance: float) -> float:
        """Return P(B + Z ≤ count): the p-value of "π is at least the chance"."""
        return self._sum(count, chance, -1)

    def _sum(self, count: int, chance: float, sign: int) -> float:
        beyond = (sign * (count - m) for m in range(self.blocks + 1))
        tails = np.array([self.tail(t) if t >= 1 else 1 - self.tail(1 - t) for t in beyond])
        return min(1.0, float(_binomial(self.blocks, chance) @ tails))

    def coins(self, count: int) -> float:
        """Return the two-sided p-value of fair coins: P(|B + Z − M/2| ≥ |count − M/2|)."""
        return min(1.0, 2 * self.at_least(max(count, self.blocks - count), 0.5))
