"""What trials' methods have in common: an estimate from one sum over rows, reported with noisy cells."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.effects.cells.effect import MOST_SKEW, SKEWED, UNMEASURED, WIDE, WIDEST, e_value_fields
from dpcausal.effects.cells.release import NoisyCells
from dpcausal.effects.cells.standardise import UNSEEN, Sums, means, tail_quantile, third_cumulant
from dpcausal.effects.cells.value import value_of
from dpcausal.effects.question import EffectQuestion
from dpcausal.effects.result import Effect
from dpcausal.effects.unmeasured import robustness_limit, robustness_value

Reals = npt.NDArray[np.float64]


def parse_array(value: Any) -> Reals:
    """Return numbers by level, and by stratum: of nested lists, or of text as ``150,350`` or ``60,90;80,40``.

    What is none of both has no numbers.
    """
    try:
        if isinstance(value, str):
            rows = [[float(part) for part in row.split(",")] for row in value.split(";")]
            return np.array(rows[0] if len(rows) == 1 else rows, dtype=np.float64)
        return np.atleast_1d(np.array(value, dtype=np.float64))
    except (TypeError, ValueError):
        return np.zeros(0)


@dataclass(frozen=True)
class TrialEstimate:
    """An estimate and its variances, in widths of the outcome's range, and what a row of each arm weighs in it."""

    estimate: float
    sampling: float
    drowned: float
    """Variance of the noise."""
    weights: Reals
    """By arm and stratum, control first."""
    within: Reals
    wide: Reals
    """Means, and the most that variances may be, by arm and stratum."""
    reason: str
    """Why there is no interval; empty otherwise."""
    of_one: float = 0.0
    """Variance of a single number of Laplace noise whose long tails are counted."""

    def told(self, question: EffectQuestion, cells: NoisyCells, sums: Sums, method: str) -> Effect:
        """Return it as an effect in the outcome's unit, with the groups and the balance from the cells."""
        from scipy.special import ndtri

        found = cells.effect(
            treatment=question.treatment, outcome=question.outcome, adjust=question.adjust, groups=question.groups,
            estimand=question.estimand, treated=question.treated, control=question.control, coverage=question.coverage,
        )  # fmt: skip
        width = value_of(question.outcome, question.column(question.outcome)).width
        estimate, error = float(self.estimate) * width, math.sqrt(self.sampling + self.drowned)
        far = float(self.weights.max())
        third = min(
            far * self.sampling, third_cumulant(sums.N, self.within, self.wide, self.weights[1], self.weights[0])
        )
        skewed = max((third + more * far**3) / max(self.sampling + self.drowned + more * far**2, 1e-100) ** 1.5
                     for more in (0, UNSEEN))  # fmt: skip
        normal = float(ndtri(0.5 + question.coverage / 2))
        tails = (self.of_one / max(self.sampling + self.drowned, 1e-100)) ** 2  # Cornish & Fisher: its kurtosis is 3
        reach = float(normal + max(normal**3 - 3 * normal, 0.0) / 8 * tails) * error
        wide = max(tail_quantile(error**2, far, normal) / reach, 1.0) if skewed > MOST_SKEW and reach > 0 else 1.0
        reach *= wide
        reason = self.reason or (SKEWED if wide > 1 and reach > WIDEST else "")
        ends = None if reason else (estimate - reach * width, estimate + reach * width)
        told: dict[str, Any] = dict.fromkeys(UNMEASURED)
        adjusted = means(sums, question.estimand == "att")
        if ends is not None and adjusted.partial_r2 < 1:
            robust = robustness_value(adjusted.partial_r2)
            told |= {"robustness_value": robust, "robustness_value_limit": robustness_limit(robust, estimate, ends)}
            told |= e_value_fields(estimate, ends, math.sqrt(adjusted.spread) * width)
        return replace(
            found, estimate=estimate, interval=ends, interval_reason=reason, standard_error=error * width,
            noise_error=math.sqrt(self.drowned) * width, share_supported=1.0, **told, release=cells, method=method,
            signal_to_noise=math.inf if self.drowned == 0 else abs(self.estimate) / math.sqrt(self.drowned),
            notes=(*(note for note in found.notes if "supported" not in note and "as a normal one" not in note),
                   *((WIDE.format(wide),) if wide > 1 and ends is not None else ())),
        )  # fmt: skip
