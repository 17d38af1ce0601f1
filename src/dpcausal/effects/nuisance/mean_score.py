"""The mean of doubly robust scores as released, and how far it may be off by what was cut and by limits."""

import math
from typing import NamedTuple

EXCESS = 0.6
"""Scores beyond the cut are taken to be so many times the cut farther on average."""
OF_LIMITED = 8.0
"""So many times the share of records with a limited probability of treatment, times the difference of the effect by
the score and the slope, is the error that limits cause: measured."""

FEW, MANY = 0.95, 0.85
"""Few probabilities are limited where such a share of the records is inside the limits, many where it is less."""


class MeanScore(NamedTuple):
    """The mean score less the slope, as released, what its error is made of, where scores are cut, and shares."""

    mean: float
    spread: float
    noise: float
    cut: float
    inside: float
    beyond: float
    clearly_beyond: float

    @property
    def taken(self) -> float:
        """How far the cut may have moved the mean."""
        return EXCESS * self.cut * self.beyond

    def limited(self, slope_noise: float) -> float:
        """Return how far limits of the probability may have moved the mean, if effects differ between records.

        The slope weighs effects by e(1 − e).  The score weighs them equally, but by less where e is limited.  So the
        difference of both measures how effects differ.  Its noise is taken off where few records are limited, and it is
        taken for no less than its noise where many are.
        """
        noise, few = math.hypot(self.noise, slope_noise), (self.inside - MANY) / (FEW - MANY)
        part = min(max(few, 0.0), 1.0)
        return OF_LIMITED * (1 - self.inside) * max(abs(self.mean) - part * noise, (1 - part) * noise)
