"""What public numbers foretell before anything is spent: whether an edge could show in the noise."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

STRONG = 0.5
"""Cramér's V, or a correlation, that counts as a strong edge."""

Strength = tuple[int, float]
"""Degrees of freedom and non-centrality λ of the noise-aware test of a pair that is strongly linked."""


def of_levels(a: int, b: int, n: int, variance: float) -> Strength:
    """Return it for columns of a and b levels at even margins, ``variance`` the noise in a cell of their table.

    λ = n² φ² / (n + v a b),  φ² = ¼ (min(a, b) − 1)
    """
    return (a - 1) * (b - 1), n**2 * STRONG**2 * (min(a, b) - 1) / (n + variance * a * b)


def of_numbers(n: int, variance: float) -> Strength:
    """Return it for a correlation whose noise has that variance: λ = atanh(½)² / (1/(n − 3) + v)."""
    return 1, math.atanh(STRONG) ** 2 / (1 / max(n - 3, 1) + variance)


def too_few(pairs: Iterable[Strength], n: int, alpha: float) -> str:
    """Return a caveat if even a strong edge of some pairs would sooner be missed than found; empty if not.

    A test of no power either at ``alpha``: the tests of larger sets have less.
    """
    kinds = Counter(pairs)
    missed = sum(times for strength, times in kinds.items() if _missed(strength, alpha))
    if not missed:
        return ""
    return (
        f"{n} rows at this loss are too few: even a strong edge (coefficient {STRONG:g}) would sooner be missed than "
        f"found between {missed} of {kinds.total()} pairs of columns; an edge not shown says nothing there"
    )


def _missed(strength: Strength, alpha: float) -> bool:
    from scipy.special import chdtri, chndtr

    freedom, noncentrality = strength
    bar = float(chdtri(freedom, alpha))
    # Far above the bar the series of the non-central law need not be summed.
    return noncentrality < 4 * (bar + 10) and float(chndtr(bar, freedom, noncentrality)) > 0.5
