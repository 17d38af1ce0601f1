"""p-values of many questions, adjusted for their number: made from released numbers, free."""

from collections.abc import Sequence
from typing import Literal

Correction = Literal["holm", "benjamini-hochberg", "none"]


def adjusted_pvalues(pvalues: Sequence[float], correction: str) -> list[float]:
    """Return p-values adjusted for their number, in the order given: reject where at most α.

    *Source*: Holm (1979); Benjamini & Hochberg (1995).

    >>> [round(p, 12) for p in adjusted_pvalues([0.01, 0.04, 0.03], "holm")]
    [0.03, 0.06, 0.06]
    >>> [round(p, 12) for p in adjusted_pvalues([0.01, 0.04, 0.03], "benjamini-hochberg")]
    [0.03, 0.04, 0.04]
    """
    m = len(pvalues)
    order = sorted(range(m), key=lambda place: pvalues[place])
    adjusted_values = list(pvalues)
    if correction == "holm":
        largest = 0.0
        for rank, place in enumerate(order):
            largest = max(largest, min(1.0, (m - rank) * pvalues[place]))
            adjusted_values[place] = largest
    elif correction == "benjamini-hochberg":
        least = 1.0
        for rank, place in reversed(list(enumerate(order, start=1))):
            least = min(least, m * pvalues[place] / rank)
            adjusted_values[place] = least
    return adjusted_values
