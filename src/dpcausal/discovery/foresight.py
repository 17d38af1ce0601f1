"""What public numbers foretell before anything is spent: whether an edge could show in the noise."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from dpcausal.dependence.wald import Strength, chance_of

STRONG = 0.5
"""Cramér's V, or a correlation, that counts as a strong edge."""


def of_numbers(n: int, variance: float) -> Strength:
    """Return it for a correlation whose noise has that variance: λ = atanh(½)² / (1/(n − 3) + v)."""
    return 1, math.atanh(STRONG) ** 2 / (1 / max(n - 3, 1) + variance)


def too_few(pairs: Iterable[Strength], n: int, alpha: float) -> str:
    """Return a caveat if even a strong edge of some pairs would sooner be missed than found; empty if not.

    A test of no power either at ``alpha``: the tests of larger sets have less.
    """
    kinds = Counter(pairs)
    missed = sum(times for strength, times in kinds.items() if chance_of(strength, alpha) < 0.5)
    if not missed:
        return ""
    return (
        f"{n} rows at this loss are too few: even a strong edge (coefficient {STRONG:g}) would sooner be missed than "
        f"found between {missed} of {kinds.total()} pairs of columns; an edge not shown says nothing there"
    )
