"""Where scores are cut, told by noisy counts of how many lie far out, and what the cut may have taken."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpcausal.effects.corner_counts import functionals

Reals = npt.NDArray[np.float64]

NEAREST, FURTHER, FARTHEST = (2.5, 3.0), 3, 1.0
"""Multiples of the spread that scores may be cut at: these, and so many more up to that many √n over the noise's
deviation, where noise is nearly twice the sampling error."""
WIDER = 1.2
"""The spread of the scores is taken for so many times what the lines foretell."""
NET, LONG_TAIL, USUAL_TAIL, BOTH = 0.5, 1.0, 0.65, 1 / 12
"""Beyond a cut scores go on for so much of it, long tails for so much at most and usually so much, or as exponential
errors of the smaller arm, if that is farther; what is cut on either side cancels but for so much of it."""
LEAN, LONG, ALLOWED, EAGER = 1.8, 1.9, 1.5, 0.5
"""Tails are long where the two differ by so many deviations, or where so many lie beyond the second cut.  Others are
taken to differ by so many deviations less than counted; long ones, in choosing, by so many more."""


def cuts_of(n: int, deviation: float) -> Reals:
    """Return the multiples of the spread that scores may be cut at, in rising order: public.

    >>> cuts_of(10_000, 10.0).round(2).tolist()
    [2.5, 3.0, 4.48, 6.69, 10.0]
    """
    farthest = np.clip(FARTHEST * math.sqrt(n) / deviation, 1.1 * NEAREST[-1], 50.0)
    return np.concatenate([NEAREST, np.geomspace(NEAREST[-1], farthest, FURTHER + 1)[1:]])


def best_cut(cuts: Reals, far: Reals, deviations: tuple[float, float], weight: float) -> tuple[float, bool]:
    """Return the cut whose interval is foretold as the shortest, and whether the tails are long.

    Parameters
    ----------
    cuts : float array, shape (k,)
    far : float array, shape (2k + 1,)
        Noisy counts of scores below all, between each two and above all of −cuts and cuts.
    deviations : tuple of float
        Of the noise of a corner of the sum of scores, and of each of these counts.
    weight : float
        Spreads that exponential errors of the smaller arm go on for.
    """
    count, noise, widths = max(float(far.sum()), 1.0), functionals(2)[1] - functionals(2)[0] / 2, []
    below, above = np.cumsum(far[: len(cuts)])[::-1], np.cumsum(far[::-1][: len(cuts)])[::-1]
    unsure = [
        unsure_of(one, other, math.sqrt(len(cuts) - place) * deviations[1])
        for place, (one, other) in enumerate(zip(below, above, strict=True))
    ]
    long = abs(float(above[0] - below[0])) > LEAN * unsure[0] or float(above[1] + below[1]) > LONG * unsure[1]
    for cut, one, other, doubt in zip(cuts, below, above, unsure, strict=True):
        error = math.hypot(1 / WIDER / math.sqrt(count), 2 * cut * deviations[0] * math.sqrt(noise @ noise) / count)
        tail, doubts = (USUAL_TAIL, -EAGER) if long else (NET, ALLOWED)
        taken = taken_by(float(cut), (one, other), doubts * doubt, weight, tail)
        widths.append(1.96 * error + taken / count)
    return float(cuts[int(np.argmin(widths))]), long


def unsure_of(below: float, above: float, deviation: float) -> float:
    """Return the deviation of the difference of two noisy counts, that of chance added."""
    return math.sqrt(2 * deviation**2 + max(below + above, 0.0))


def taken_by(cut: float, beyond: tuple[float, float], unsure: float, weight: float, tail: float = NET) -> float:
    """Return how many spreads a cut may have taken from the sum of scores; so many scores are not told from none.

    >>> taken_by(3.0, (100.0, 100.0), 0.0, 1.0), taken_by(3.0, (0.0, 100.0), 20.0, 1.0)
    (50.0, 140.0)
    """
    below, above = beyond
    net = max(tail * cut, weight) * abs(above - below) - NET * cut * unsure
    return float(max(net, 0.0) + BOTH * cut * max(above + below - unsure, 0.0))
