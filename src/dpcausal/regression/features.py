"""Random Fourier features of one real column: φ(x) = (cos ω_1 x, …, cos ω_D x, sin ω_1 x, …, sin ω_D x) / √D.

ω_j is drawn from a normal law of standard deviation 1/width, by public randomness.  ‖φ(x)‖ = 1 for every x, because of
the pairs: a cosine with a random phase would reach √2.  E[φ(x)·φ(x')] is the Gaussian kernel exp(−(x − x')²/(2
width²)), but φ(x)·φ(x') itself can be negative, so a bound that asks for a kernel in [0, 1] does not hold for it.

The column is read on a grid of 1/512 of the width, so that a million rows have a few thousand different places and the
features are computed once for each.  That moves the kernel by at most 0.0012, far less than the features themselves do,
and costs no bound: φ of a place is a unit vector too.

*Source*: Rahimi & Recht (2007); the pairs, Sutherland & Schneider (2015); binned smoothing, Fan & Marron (1994).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcausal.errors import ParameterError
from dpcausal.privacy.noise import PublicGenerator

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

CHUNK_ROWS = 8192
"""Places whose features are in memory at a time: 13 MB at 100 pairs."""

PLACES_PER_WIDTH = 512
"""Places of the grid on one kernel width."""


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    """A map from real numbers to unit vectors: public frequencies ω, in radians per kernel width, and the width."""

    frequencies: Reals
    width: float

    @property
    def size(self) -> int:
        """Length of φ(x), 2D."""
        return 2 * int(self.frequencies.size)

    def __call__(self, values: Reals) -> Reals:
        """Return φ of each value, shape (n, 2D)."""
        return self._at(values / self.width)

    def places(self, values: Reals) -> tuple[Reals, Integers]:
        """Return the distinct places of the grid that the values fall on, in widths, and each value's place."""
        with np.errstate(over="ignore"):
            steps = np.rint(values / self.width * PLACES_PER_WIDTH)
        distinct, index = np.unique(steps, return_inverse=True)
        return distinct / PLACES_PER_WIDTH, index.astype(np.int64, copy=False)

    def chunks(self, places: Reals) -> Iterator[tuple[slice, Reals]]:
        """Yield slices of the places and φ there, at most ``CHUNK_ROWS`` at a time."""
        for start in range(0, places.size, CHUNK_ROWS):
            part = slice(start, min(start + CHUNK_ROWS, places.size))
            yield part, self._at(places[part])

    def _at(self, scaled: Reals) -> Reals:
        pairs = self.frequencies.size
        rows = np.empty((scaled.size, 2 * pairs))
        # An infinite angle has no cosine; the caller turns what is not finite into 0.
        with np.errstate(over="ignore", invalid="ignore"):
            angles = np.multiply.outer(scaled, self.frequencies)
            np.cos(angles, out=rows[:, :pairs])
            np.sin(angles, out=rows[:, pairs:])
        rows /= np.sqrt(pairs)
        return rows


def draw_features(pairs: int, width: float, generator: PublicGenerator) -> FourierFeatures:
    """Return features, from public randomness, whose inner product is the Gaussian kernel up to about 1/√D."""
    if pairs < 1:
        raise ParameterError(f"the number of pairs must be at least 1, got {pairs}")
    if not (np.isfinite(width) and width > 0):
        raise ParameterError("the kernel's width must be positive and finite")
    return FourierFeatures(generator.standard_normal(pairs), float(width))
