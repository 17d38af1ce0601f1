"""Where scores are cut, chosen by noisy counts of how many are extreme, and what the cut may have taken.

A sum of scores that are cut costs noise as far as they reach, and loses what lies beyond.  What is lost is reported by
noisy counts between cuts: their skew, above less below, times how far beyond the cut it lies.  Up to an edge, the
fourth root of n spreads, which is farther where more scores are extreme, the interval allows for all of it that noise
and chance may hide, whatever its shape; beyond the edge for what the counts show.  Few records that lie there are
hidden by the noise of any such count, so the interval is one for the mean of scores that are cut at the edge, unless
bounds of the columns show that none can lie beyond it.  Where it is said that tails are short, only what plainly
favours is allowed for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]

NEAREST, INNER, OUTER, STEP = 2.5, 4, 2, 1.75
"""Multiples of the spread that scores may be cut at: so many from the nearest to the edge, and farther ones."""
WIDER = 1.2
"""The spread of the scores is taken for so many times what the lines predict."""
REACH, LEAST_SQUARE, HEAVY = 0.5, 0.6, 1.44
"""The last scores go on for so many of their cut.  The edge is farther where so many times the root mean square of
scores, in spreads, that within the nearest cut taken for so much, is above 1."""
SEEN, ESCAPED = 2.0, 2.5
"""Counts of one side of that many deviations move the edge beyond them, and beyond all cuts leave no interval."""
DOUBTED, DOUBTED_BEYOND = 0.5, 1.0
"""Of what the counts show inside and beyond the edge, so many deviations are taken for noise and chance."""
NEAR, NET, ALLOWED = 2, 0.5, 1.5
"""Of short tails: the number of cuts, how far they go on beyond one, and how much of their skew is doubted."""


class ClippingLoss(NamedTuple):
    """What a cut may have taken from the sum of scores, in spreads, and the deviation of what is hidden."""

    below: float
    above: float
    hidden: float

    @classmethod
    def of(cls, balance: float, hidden: float = 0.0) -> ClippingLoss:
        return cls(max(0.0, -balance), max(0.0, balance), hidden)


def detection_threshold(n: int) -> float:
    """Return how many spreads out tails of any shape are allowed for: public.

    A tail with a third moment has taken n/cut² there, no more than chance, √n, hides.

    >>> detection_threshold(10_000)
    10.0
    """
    return float(max(n**0.25, 1.3 * NEAREST))


def cuts_of(n: int) -> Reals:
    """Return the multiples of the spread that scores may be cut at, in rising order: public.

    >>> cuts_of(10_000).round(2).tolist()
    [2.5, 3.97, 6.3, 10.0, 17.5, 30.62]
    """
    inner = np.geomspace(NEAREST, detection_threshold(n), INNER)
    return np.concatenate([inner, inner[-1] * STEP ** np.arange(1, OUTER + 1)])


def times_as_wide(n: int, noise: float, short: bool, farthest: float = math.inf) -> float:
    """Return how many times as wide as without noise an interval about n scores is predicted: public.

    ``noise`` is the deviation of that of a sum of scores cut at 1; ``short``, whether it is said that tails are short;
    ``farthest``, how many spreads out a score can lie, if that is known.
    """
    return math.hypot(1.0, WIDER * min(NEAREST if short else detection_threshold(n), farthest) * noise / math.sqrt(n))


@dataclass(frozen=True)
class TailCounts:
    """Noisy counts of scores beyond each cut and before the next.

    Parameters
    ----------
    cuts : float array, shape (k,)
    far : float array, shape (2k + 1,)
        Counts below all, between each two and above all of −cuts and cuts.
    deviation : float
        Of the noise of each.
    farthest : float
        How extreme a score can lie by the bounds of the columns and the lines, both known.
    """

    cuts: Reals
    far: Reals
    deviation: float
    farthest: float = math.inf

    @property
    def count(self) -> float:
        return max(float(self.far.sum()), 1.0)

    def share_beyond(self, place: int) -> float:
        """Return the share of scores beyond the cut at a place."""
        return max(float(sum(side[place:].sum() for side in self.sides)), 0.0) / self.count

    @property
    def sides(self) -> tuple[Reals, Reals]:
        """Return the counts below and above, from the nearest cut outwards."""
        k, beyond = len(self.cuts), self.cuts >= self.farthest
        return np.where(beyond, 0.0, self.far[:k][::-1]), np.where(beyond, 0.0, self.far[-k:])

    @property
    def middles(self) -> Reals:
        """Return how extreme the scores of each count are taken to lie."""
        ends = np.append(self.cuts[1:], self.cuts[-1] * (1 + 2 * REACH))
        return np.asarray(np.minimum(self.cuts, self.farthest) + np.minimum(ends, self.farthest), np.float64) / 2

    def edge(self) -> int:
        """Return the place of the cut that is the edge."""
        below, above = self.sides
        square = float(self.middles[:INNER] ** 2 @ (below + above)[:INNER]) / self.count
        farther = max(HEAVY * math.sqrt(LEAST_SQUARE + max(square, 0.0)), 1.0)
        place = int(np.searchsorted(self.cuts, self.cuts[INNER - 1] * farther / math.sqrt(STEP)))
        seen = 1 + np.flatnonzero(np.maximum(below, above) > SEEN * self.deviation)
        whole = int(np.searchsorted(self.cuts, self.farthest))
        return min(max(place, INNER - 1, *seen.tolist()), len(self.cuts) - 1, whole)

    def unseen(self, place: int, reach: float) -> float:
        """Return how many scores may lie beyond the cut at a place: what counts show and so many deviations of noise.

        >>> TailCounts(np.array([2.0, 4.0]), np.array([0.0, 0.0, 900.0, 60.0, 40.0]), 6.0).unseen(1, 2.0)
        56.97...
        """
        count = max(float(sum(side[place:].sum() for side in self.sides)), 0.0)
        bins = 2 * int((self.cuts[place:] < self.farthest).sum())
        return count + reach * self.deviation * math.sqrt(bins)

    @property
    def beyond_last_threshold(self) -> bool:
        """Return whether more scores than noise would make lie beyond all cuts."""
        return max(float(side[-1]) for side in self.sides) > ESCAPED * self.deviation

    def taken(self, place: int, edge: int | None) -> ClippingLoss:
        """Return what the cut at a place may have taken; no edge means tails that are declared short.

        >>> tails = TailCounts(np.array([2.0, 4.0]), np.array([0.0, 0.0, 900.0, 60.0, 40.0]), 0.0)
        >>> tails.taken(1, None).above, tails.taken(1, 1).above
        (61.02..., 67.35...)
        """
        below, above = self.sides
        balance, cut = (above - below)[place:], float(self.cuts[place])
        unsure = 2 * self.deviation**2 + np.maximum(above + below, 0.0)[place:]
        if edge is None:
            return ClippingLoss.of(NET * cut * _beyond(float(balance.sum()), ALLOWED * math.sqrt(unsure.sum())))
        far = np.where(self.cuts[place:] < self.farthest, self.middles[place:] - cut, 0.0)
        inside = np.minimum(far, max(float(self.cuts[edge]) - cut, 0.0))
        hidden, outside = (math.sqrt(float(far**2 @ unsure)) for far in (inside, far - inside))
        near = ClippingLoss.of(_beyond(float(inside @ balance), DOUBTED * hidden), hidden)
        more = ClippingLoss.of(_beyond(float((far - inside) @ balance), DOUBTED_BEYOND * outside))
        return ClippingLoss(near.below + more.below, near.above + more.above, hidden)

    def best(self, noise: float, short: bool, arm_imbalance: float = 1.0) -> tuple[int, int | None]:
        """Return the place of the cut, none beyond the edge, whose interval is predicted to be shortest, and the
        edge's.

        Parameters
        ----------
        noise : float
            The deviation of the noise of a sum of scores that are cut at 1.
        short : bool
            Whether it is said that tails are short.
        lopsided : float
            How many times as extreme the rarer arm's scores lie as in arms of one size: short tails are not cut nearer.
        """
        first, edge, widths = 0, None if short else self.edge(), []
        if edge is None:
            nearest = int(np.argmin(np.abs(np.log(self.cuts / (NEAREST * arm_imbalance)))))
            first = min(nearest, max(len(self.cuts) - NEAR, 0))
        for place in range(first, len(self.cuts) if edge is None else edge + 1)[: NEAR if edge is None else None]:
            taken, chance = self.taken(place, edge), math.sqrt(self.count) / WIDER
            error = math.hypot(chance, min(float(self.cuts[place]), self.farthest) * noise, taken.hidden)
            widths.append(1.96 * error + taken.below + taken.above)
        return first + int(np.argmin(widths)), edge


def _beyond(number: float, doubt: float) -> float:
    return math.copysign(max(abs(number) - doubt, 0.0), number)
