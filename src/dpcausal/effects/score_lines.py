"""The two lines that a doubly robust score is made of, read off released moments, and a row's score by them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcausal.effects.cut import WIDER
from dpcausal.effects.joint_moments import JointMoments

Reals = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

OUTCOME, TREATMENT = 0, 1
LEAST_PROBABILITY = 0.05


@dataclass(frozen=True)
class Lines:
    """What the moments say, in units of the columns: lines of outcome and treatment, and where scores lie.

    ``error`` is that of the centre, ``weight`` that of a residual of the rarer arm at its mean probability.
    """

    outcome: Reals
    treatment: Reals
    centre: float
    spread: float
    error: float = 0.0
    weight: float = 2.0

    @property
    def lopsided(self) -> float:
        """Return how many times as far out, in spreads, scores of the rarer arm lie as in arms of one size."""
        return math.sqrt(max(self.weight - 1, 1.0))

    def farthest(self, middles: Reals, halves: Reals) -> float:
        """Return how far from the centre, in spreads, a score can lie by the ranges of the columns: no row is read."""

        def ends(slopes: Reals) -> tuple[float, float]:
            middle, half = float(slopes[:-1] @ middles[2:] + slopes[-1]), float(np.abs(slopes[:-1]) @ halves[2:])
            return middle - half, middle + half

        (low, high), chances = ends(self.outcome[1:]), np.array(ends(self.treatment))
        least, most = np.clip(chances, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        top, bottom = float(middles[OUTCOME] + halves[OUTCOME]), float(middles[OUTCOME] - halves[OUTCOME])
        control, treated = (max(top - low - more, high + more - bottom) for more in (0.0, float(self.outcome[0])))
        return max(treated / float(least), control / (1 - float(most)), 0.0) / self.spread

    def scores(self, raw: Reals) -> tuple[Reals, Mask]:
        """Return ψ, and whether the probability was cut, each row from itself alone, one column after another."""
        a, m, e = raw[:, TREATMENT], np.full(len(raw), self.outcome[-1]), np.full(len(raw), self.treatment[-1])
        for place in range(2, raw.shape[1]):
            m += self.outcome[place - 1] * raw[:, place]
            e += self.treatment[place - 2] * raw[:, place]
        effect = self.outcome[0]
        probability = np.clip(e, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        residual = raw[:, OUTCOME] - m - effect * a
        return effect + residual * (a / probability - (1 - a) / (1 - probability)), probability != e


def lines_of(moments: JointMoments, names: Sequence[str]) -> Lines:
    """Return the lines over columns of such names, 0 along those that the released moments do without, and where scores
    lie."""
    outcome, *others = moments.names
    first = moments.ols(outcome, others)
    second = moments.ols(others[0], others[1:]) if others[1:] else None
    mean = moments.mean(TREATMENT)
    spread = math.sqrt(max(moments.residual(outcome, others), 0.0))
    least = 1e-6 * float(moments.halves[OUTCOME])
    sharp = float(np.clip(mean, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY))
    of_treatment = {"intercept": mean} if second is None else {one.name: one.estimate for one in second.coefficients}
    of_outcome = {one.name: one.estimate for one in first.coefficients}
    treatment = np.array([of_treatment.get(name, 0.0) for name in (*names[2:], "intercept")])
    slopes = np.array([of_outcome.get(name, 0.0) for name in (*names[1:], "intercept")])
    wide = WIDER * max(spread, least) / math.sqrt(sharp * (1 - sharp))
    error = first.coefficients[0].standard_error
    return Lines(slopes, treatment, float(slopes[0]), wide, error, 1 / min(sharp, 1 - sharp))
