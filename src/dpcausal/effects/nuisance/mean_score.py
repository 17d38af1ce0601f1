"""The mean of doubly robust scores as released, and how far it may be off by what was cut and by limits."""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.data.records import Rows
from dpcausal.effects.cells.corner_counts import GRID
from dpcausal.effects.nuisance.fit import Fit
from dpcausal.effects.nuisance.models import Models
from dpcausal.effects.nuisance.residual_sums import (
    capped_squares,
    capped_squares_sensitivity,
    residual_sums,
    residual_sums_sensitivity,
)

SQUARES, COUNTS = Fraction(3, 100), Fraction(4, 100)
"""Shares of ρ, for the spread of the scores and for how many are beyond the cut."""
SPREADS_INSIDE, FIRST_CUT, GROWS_FROM = 7.0, 4.0, 2_200.0
"""Scores are cut at so many spreads, more where n √(2ρ) is larger; squares at the square of that many spreads that the
lines predict."""
LEAST_OF_EXPECTED = 0.1
"""Scores spread at least by such a share of the variance that the lines predict."""
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


def spreads_inside(fit: Fit) -> float:
    return SPREADS_INSIDE * math.pow(max(1.0, min(fit.size, 1e9) / GROWS_FROM), 0.25)


def mean_score(fit: Fit, models: Models, least_cut: float, share: Fraction) -> MeanScore:
    """Release the spread of the scores, then how many are beyond a cut, and, for a share of ρ, the mean of the cut
    ones."""
    expected = models.spread / math.sqrt(fit.chance)
    first, scores_of = FIRST_CUT * expected, fit.scores(models)

    def squares(unit: Reals, rows: Rows) -> Integers:
        scores, inside = scores_of(unit)
        return capped_squares(np.column_stack([np.minimum((scores / first) ** 2, 1.0), inside]), rows.masses(GRID))

    claim = capped_squares_sensitivity(2)
    (square, inside), _ = fit.release(fit.rows.over(squares), claim, "squares of scores", SQUARES)
    least = max(float(square) / fit.count * first**2, LEAST_OF_EXPECTED * expected**2)
    cut = max(spreads_inside(fit) * math.sqrt(least), least_cut)

    def beyond_and_mean(unit: Reals, rows: Rows) -> Integers:
        scores, mass = scores_of(unit)[0] / cut, rows.masses(GRID)
        beyond = np.column_stack([np.abs(scores) > 1, np.minimum(np.abs(scores), 1.0) ** 2])
        mean = residual_sums(np.zeros(len(unit), dtype=np.int64), 1, scores[:, None], mass)
        return np.append(capped_squares(beyond, mass), mean)

    beyond, mean = np.split(fit.rows.over(beyond_and_mean), [2])
    (far, square), loud = fit.release(beyond, claim, "scores beyond the cut", COUNTS)
    spread = math.sqrt(max(float(square) / fit.count * cut**2, least))
    noisy, noise = fit.release(mean, residual_sums_sensitivity(1), "scores", share)
    shares = (float(np.clip(one / fit.count, 0, 1)) for one in (inside, far, far - loud))
    return MeanScore(float(noisy[0]) * cut / fit.count, spread, noise * cut / fit.count, cut, *shares)
