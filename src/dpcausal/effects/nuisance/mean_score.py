"""The mean of doubly robust scores as released, and how far it may be off by what was cut and by limits."""

import math
from fractions import Fraction
from typing import NamedTuple, Self

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.data.records import Rows
from dpcausal.effects.cells.corner_counts import GRID
from dpcausal.effects.nuisance.fit import Fit
from dpcausal.effects.nuisance.models import Models
from dpcausal.effects.nuisance.residual_sums import (
    capped_squares,
    capped_squares_sensitivity,
    histograms,
    histograms_sensitivity,
    residual_sums,
    residual_sums_sensitivity,
)

SQUARES, COUNTS, SPREAD = (Fraction(percent, 100) for percent in (3, 6, 1))
"""Shares of ρ, for the spread of the scores before and after the cut, and for how many are beyond possible cuts."""
FIRST_CUT = 4.0
"""Squares of scores are cut at the squares of this many spreads that the lines predict."""
NEAREST, FARTHEST, CUTS, GROWS_FROM, LEAST_CUT = 4.0, 16.0, 5, 37_000.0, 3.6
"""From so many spreads to so many there are so many possible cuts, farther ones where n √(2ρ) is larger.  None is taken
that is nearer than so many spreads of the scores."""
EXPECTED_CUT, WITHOUT_NOISE = 5.0, 200.0
"""The cut, in spreads, that is predicted beforehand, and that without privacy."""
LEAST_OF_EXPECTED = 0.1
"""Scores spread at least by such a share of the variance that the lines predict."""
EXCESS, ONE_SIDED, CLEAR = 0.6, 0.6, 2.0
"""Scores beyond a cut in a heavy tail are so many times the cut farther on average.  Such a share of them is taken to
be on one side where noise hides it.  A difference of both sides is clear from so many deviations on."""
DOUBTED, SURE = 0.5, 2.0
"""Counts are taken for so many deviations less: for half of that where the nearest one is so many deviations."""
HEAVY, LIGHT, LEAST_POWER, RATIO = 3.0, 4.0, 1.5, 0.4
"""The share beyond falls with a power of the cut.  A tail is heavy up to the first power at the nearest cut, and light
from the second on.  No power is less.  Where noise hides it, such a share of those beyond a cut is beyond the next."""
OF_LIGHT, MARGIN = (0.2, 1.2), 1.1
"""Scores beyond a cut in a light tail are farther by one over the power less one, within these, with such a margin."""
TINY = 1e-12
OF_LIMITED = 40.0
"""So many times the share of records with a limited probability of treatment, times the difference of the effect by
the score and the slope, is the error that limits cause: measured."""

FEW, MANY, HIDDEN = 0.95, 0.85, 1.5
"""Few probabilities are limited where such a share of the records is inside the limits, many where it is less.  How
effects differ is taken for no less than so many times its noise where many are."""


class Tails(NamedTuple):
    """Where scores are cut, the share beyond, how much more of it is clearly on one side, and how far the cut may have
    moved the mean, were all beyond it on one side."""

    cut: float
    beyond: float
    skew: float
    taken: float

    @classmethod
    def of(cls, counts: Reals, deviation: float, cuts: Reals, noise: float, nearest: float) -> Self:
        """Return the cut whose predicted error is least, from noisy shares below, between and above −cuts and cuts, and
        the ``noise`` of the mean of scores that are cut at 1."""
        of_side = len(cuts)
        below, above = np.cumsum(counts[:of_side])[::-1], np.cumsum(counts[: -of_side - 1 : -1])[::-1]
        whole, more, unsure = below + above, np.abs(above - below), deviation * np.sqrt(2 * np.arange(of_side, 0, -1))
        times, powers = max(float(whole[0]), 0.0) / max(float(unsure[0]), TINY), tail_powers(whole, unsure, cuts)
        likely = np.maximum(whole - DOUBTED / (1 + (times / SURE) ** 2) * unsure, 0.0)
        light = MARGIN * likely * np.clip(1 / (powers - 1), *OF_LIGHT) * one_sided(more, whole, unsure)
        heavy = float(np.clip((LIGHT - powers[0]) / (LIGHT - HEAVY), 0, 1))
        biases = heavy * EXCESS * np.maximum(more - unsure, ONE_SIDED * likely) + (1 - heavy) * light
        first = min(int(np.searchsorted(cuts, nearest)), of_side - 1)
        place = first + int(np.argmin((cuts * np.hypot(noise, biases))[first:]))
        cut, clear = max(float(cuts[place]), nearest), max(float(more[place] - CLEAR * unsure[place]), 0.0)
        taken = float(heavy * EXCESS * likely[place] + (1 - heavy) * light[place])
        return cls(cut, float(np.clip(whole[place], 0, 1)), clear, cut * taken)


def tail_powers(whole: Reals, unsure: Reals, cuts: Reals) -> Reals:
    """Return the powers of the cuts with which the shares beyond them fall, from noisy shares and their deviations."""
    some, nothing = np.maximum(whole, 0.0), [0.0]
    farther, hidden = np.concatenate([some[1:], nothing]), np.concatenate([unsure[1:], nothing])
    falls = (farther + RATIO * hidden) / np.maximum(some + unsure, TINY)
    falls[-1] = RATIO
    return np.asarray(np.maximum(-np.log(np.clip(falls, TINY, 1.0)) / math.log(cuts[1] / cuts[0]), LEAST_POWER))


def one_sided(more: Reals, whole: Reals, unsure: Reals) -> Reals:
    """Return how much more of the shares beyond is on one side: of noisy ones up to ``ONE_SIDED`` where noise hides it.

    ``more`` is the difference of both sides, ``whole`` their sum, ``unsure`` the deviation of the noise of either.
    """
    some = np.maximum(whole, TINY)
    clear = 1 / (1 + np.square(unsure / some / ONE_SIDED))
    seen = np.square(clear * np.minimum(more / some, 1.0))
    return np.asarray(np.minimum(np.sqrt(seen + ONE_SIDED**2 * (1 - clear)), 1.0))


class MeanScore(NamedTuple):
    """The mean score less the slope, as released, what its error is made of, where scores are cut, and shares."""

    mean: float
    spread: float
    noise: float
    tails: Tails
    inside: float

    def limited(self, slope_noise: float) -> float:
        """Return how far limits of the probability may have moved the mean, if effects differ between records.

        The slope weighs effects by e(1 − e).  The score weighs them equally, but by less where e is limited.  So the
        difference of both measures how effects differ.  Its noise is taken off where few records are limited, and it is
        taken for no less than ``HIDDEN`` times its noise where many are.
        """
        noise, few = math.hypot(self.noise, slope_noise), (self.inside - MANY) / (FEW - MANY)
        part = min(max(few, 0.0), 1.0)
        return OF_LIMITED * (1 - self.inside) * max(abs(self.mean) - part * noise, HIDDEN * (1 - part) * noise)


def mean_score(fit: Fit, models: Models, least_cut: float, share: Fraction) -> MeanScore:
    """Release the spread of the scores and how many are beyond possible cuts, then, for a share of ρ, the mean of the
    cut ones."""
    expected = models.spread / math.sqrt(fit.chance)
    first, scores_of, size = FIRST_CUT * expected, fit.scores(models), 2 * CUTS + 1
    cuts = expected * np.geomspace(NEAREST, FARTHEST * math.pow(max(1.0, min(fit.size, 1e9) / GROWS_FROM), 0.25), CUTS)
    ends, of_mean = np.append(-cuts[::-1], cuts), residual_sums_sensitivity(1)

    def squares_and_tails(unit: Reals, rows: Rows) -> Integers:
        (scores, inside), mass = scores_of(unit), rows.masses(GRID)
        squares = capped_squares(np.column_stack([np.minimum((scores / first) ** 2, 1.0), inside]), mass)
        return np.append(squares, histograms(np.searchsorted(ends, scores)[:, None], [size], mass))

    squares, tails = np.split(fit.rows.over(squares_and_tails), [2])
    (square, inside), _ = fit.release(squares, capped_squares_sensitivity(2), "squares of scores", SQUARES)
    counts, deviation = fit.release(tails, histograms_sensitivity(1), "scores beyond cuts", COUNTS)
    least = max(float(square) / fit.count * first**2, LEAST_OF_EXPECTED * expected**2)
    nearest = max(LEAST_CUT * math.sqrt(least) if fit.rho else WITHOUT_NOISE * expected, least_cut)
    noise = fit.noise_of(of_mean, share) / fit.count
    tails_of = Tails.of(counts / fit.count, deviation / fit.count, cuts, noise, nearest)
    cut = tails_of.cut

    def square_and_mean(unit: Reals, rows: Rows) -> Integers:
        scores, mass = scores_of(unit)[0][:, None] / cut, rows.masses(GRID)
        mean = residual_sums(np.zeros(len(unit), dtype=np.int64), 1, scores, mass)
        return np.append(capped_squares(np.minimum(np.abs(scores), 1.0) ** 2, mass), mean)

    square, mean = np.split(fit.rows.over(square_and_mean), [1])
    (square,), _ = fit.release(square, capped_squares_sensitivity(1), "squares of cut scores", SPREAD)
    spread = math.sqrt(max(float(square) / fit.count * cut**2, least))
    noisy, _ = fit.release(mean, of_mean, "scores", share)
    inside = float(np.clip(inside / fit.count, 0, 1))
    return MeanScore(float(noisy[0]) * cut / fit.count, spread, noise * cut, tails_of, inside)
