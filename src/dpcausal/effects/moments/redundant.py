"""Columns that others determine, or that are constant, as far as released moments show: lines do without them.

The slope of a treatment is the same with such a column as without, but the moments with it have a direction that is
noise alone.  What is read here was released; nothing is drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from dpcausal.effects.moments.released import ReleasedMoments
from dpcausal.statistics.moments import variance_roots

Released = TypeVar("Released", bound=ReleasedMoments)

NOISE, OWN = 3.0, 0.05
"""A column is redundant if what others leave of it is within so many deviations of its noise, and that is at most such
a share of its variance; constant if its variance is."""
NEAR, CLEAR = 0.004, 5.0
"""No interval where others leave less of a column and moments are nearer to their noise: shortening takes the few
records that differ.  Measured."""

REDUNDANT = (
    "other columns determine {}, or it is constant, as far as the noise shows: the lines do without it, which moves no "
    "effect if that is so"
)
COLLINEAR = "others determine {}, or it is constant, as far as the noise shows: leave it out of the regression"
NEARLY = (
    "other columns nearly determine {!r}, as dummies do of which few records have none: leave it out, or merge the "
    "rare level with another"
)


@dataclass(frozen=True)
class _Own:
    """What others leave of a column, its variance, and the deviation of the noise of both."""

    left: float
    variance: float
    noise_left: float
    noise: float

    @property
    def constant(self) -> bool:
        return self.variance <= NOISE * self.noise

    @property
    def redundant(self) -> bool:
        within = self.left <= NOISE * self.noise_left
        return self.constant or (within and self.left + NOISE * self.noise_left <= OWN * self.variance)


def _own(moments: ReleasedMoments, place: int, first: int) -> _Own:
    others = [other for other in range(first, len(moments.names)) if other != place]
    units = moments.halves[:, None] * moments.spread
    covariance = moments.covariance
    contrast = np.zeros(len(units))
    contrast[place] = 1.0
    if others:
        among = covariance[np.ix_(others, others)]
        sizes = variance_roots(among)
        inverse = np.linalg.pinv(among / np.outer(sizes, sizes), hermitian=True, rcond=1e-9) / np.outer(sizes, sizes)
        contrast[others] = -inverse @ covariance[others, place]
    along, alone = units.T @ contrast, units[place]
    noise = moments.deviation / moments.count
    return _Own(
        float(contrast @ covariance @ contrast), float(covariance[place, place]), noise * float(along @ along),
        noise * float(alone @ alone),
    )  # fmt: skip


def is_constant(moments: ReleasedMoments, place: int) -> bool:
    """Return whether a column is constant as far as the noise shows."""
    unit = moments.halves[place] * moments.spread[place]
    variance = float(moments.covariance[place, place])
    return variance <= NOISE * moments.deviation / moments.count * float(unit @ unit)


def without_redundant(moments: Released, first: int, enough: float) -> tuple[Released, tuple[str, ...]]:
    """Return the moments without redundant columns from the first that may go on, and these columns. None go unless
    without them the moments have enough signal to noise."""
    reduced, gone = moments.within(), []
    while moments.deviation > 0 and reduced.signal_to_noise < CLEAR:
        places = range(first, len(reduced.names))
        named = [reduced.names[place] for place in places if _own(reduced, place, first).redundant]
        tried = [reduced.among([one for one in reduced.names if one != name]) for name in named]
        if not tried:
            break
        best = max(range(len(tried)), key=lambda place: tried[place].signal_to_noise)
        gone.append(named[best])
        reduced = tried[best]
    if not gone or reduced.signal_to_noise < enough:
        return moments, ()
    factors = [one[0] for one in moments.factors]
    return moments.among([*reduced.names, *factors]) if factors else reduced, tuple(gone)


def nearly(moments: ReleasedMoments, first: int) -> str:
    """Return the column that others nearly determine though noise does not hide what is left; empty if none does."""
    if not moments.deviation > 0 or moments.signal_to_noise >= CLEAR:
        return ""
    shares = {}
    for place in range(first, len(moments.names)):
        own = _own(moments, place, first)
        shares[moments.names[place]] = 1.0 if own.constant else own.left / own.variance
    name = min(shares, key=lambda one: shares[one], default="")
    return name if name and shares[name] < NEAR else ""


def redundant_note(gone: Sequence[str]) -> tuple[str, ...]:
    return (REDUNDANT.format(", ".join(map(repr, gone))),) if gone else ()
