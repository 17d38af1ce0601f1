"""What ``stratified`` leaves unadjusted within the parts of numbers, from sums of residuals with fresh noise.

To the second order the difference is off by E[(e − ê)(m − m̂) / (e(1 − e))], where e is the probability of treatment
and m the mean outcome of a record, ê and m̂ those of its stratum.  Between the halves of the parts of one number this
is a sum of products: of the difference between two halves in the residuals of treatment, and in those of outcome.  The
noises of both are independent of each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcausal.arrays import Integers, Mask, Reals
from dpcausal.data.coding import bin_codes, column_codes, cuts_of, size_of
from dpcausal.data.records import Rows
from dpcausal.data.schema import Bounded
from dpcausal.effects.cells.api import Paid
from dpcausal.effects.cells.corner_counts import GRID, NoisyCells
from dpcausal.effects.nuisance.residual_sums import residual_sums, residual_sums_sensitivity
from dpcausal.effects.question import EffectQuestion
from dpcausal.mechanisms.additive import noise_variance, norm_of, whole_numbers
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.sensitivity import Query

Cut = tuple[str, Bounded]

SHARES = tuple(Fraction(percent, 100) for percent in (1, 2, 3, 4, 5, 6))
SMALL_ERROR, LARGEST_ERROR = 0.6, 0.06
"""The check has the least of these shares of the loss that is predicted to show the bias with an error of so much of
the estimate's sampling error; there is none where that of the largest share is more, in deviations of the outcome."""
SPREADS, LEAST_SPREAD = 1.25, 0.01
"""Residuals of the outcome are cut at so many of their standard deviations, which are at least a part of its range."""
MEASURED_SHARE = 1 / 2
"""The share of the bias that differences between halves show: of a jump at any place of a part, and 3/4 of a slope."""
LEAST_FULL = 0.5
"""A part is checked if it has such a share of the records that it would have if all had as many."""
CLEAR = 1.5
"""The interval is wider, on the side of the effect, by a bias that is so many of its errors, and by as many errors."""
CHANCE, SMALL_CHANCE = 0.2, 0.05
"""What is expected of e(1 − e), and the least that is reckoned with."""


@dataclass(frozen=True)
class PartBias:
    """The bias that varies within parts, and its error, in the unit of the outcome."""

    value: float
    error: float

    @property
    def allowances(self) -> tuple[float, float]:
        """Return by how much the interval is wider below and above.

        Where the estimate is too high the effect lies below it, and the upper end does not move.  A bias that exceeds
        ``CLEAR`` errors shows the wrong sign with a chance of at most 0.07.
        """
        if abs(self.value) <= CLEAR * self.error:
            return 0.0, 0.0
        wider = abs(self.value) + CLEAR * self.error
        return (wider, 0.0) if self.value > 0 else (0.0, wider)


def check_share(question: EffectQuestion, numbers: tuple[Cut, ...], loss: Paid) -> Fraction:
    """Return the share of the loss that the check has; 0 where it would show nothing."""
    if not numbers:
        return Fraction(0)
    n = question.table.expected
    errors = {share: _predicted_error(n, numbers, loss.part(share)) for share in SHARES}
    if errors[SHARES[-1]] > LARGEST_ERROR:
        return Fraction(0)
    small = SMALL_ERROR / math.sqrt(n * CHANCE)
    return next((share for share, error in errors.items() if error <= small), SHARES[-1])


def check_parts(
    question: EffectQuestion, numbers: tuple[Cut, ...], strata: Strata, loss: Paid, allotment: CallBudget
) -> PartBias:
    """Release how the sums of both residuals differ between the halves of parts of some numbers, and return the bias
    this shows."""
    of_each = loss.part(Fraction(1, len(numbers)))
    names = (question.treatment, *question.strata, question.outcome)
    value = spread = 0.0
    for name, column in numbers:
        middles = _middles(column)

        def sums(rows: Rows, name: str = name, column: Bounded = column, middles: Reals = middles) -> Integers:
            part = bin_codes(rows.values[name], column)
            side = np.where(rows.values[name] < middles[part], -1.0, 1.0)
            return residual_sums(part, len(middles), side[:, None] * strata.residuals(rows), rows.masses(GRID))

        answer = question.table.records(names, parts=True).sum(sums).reshape(2, -1)
        claim = residual_sums_sensitivity(2, norm_of(loss))
        noisy = whole_numbers(Query(answer, claim, "residuals by halves of parts"), allotment, of_each)
        bias, variance = strata.bias(name, np.asarray(noisy, dtype=np.float64) / GRID, _noise(of_each))
        value, spread = value + bias, spread + variance
    width = strata.outcome.width / MEASURED_SHARE
    return PartBias(value * width, math.sqrt(spread) * width)


class Strata:
    """The probability of treatment and the mean outcomes by strata, and the residuals of records from them."""

    def __init__(self, question: EffectQuestion, numbers: tuple[Cut, ...], cells: NoisyCells) -> None:
        self.question, (self.outcome,) = question, cells.values
        self.columns = {name: dict(numbers).get(name, question.column(name)) for name in question.strata}
        sums = cells.arms(self.outcome, 0, question.pair, [cells.by.index(name) for name in self.columns])
        N, self.supported = np.maximum(sums.N, 1.0), sums.supported
        self.records, self.means = N.sum(axis=0), sums.T / N
        self.probability = np.where(self.supported, N[1] / self.records, 0.5)
        self.count = max(float(self.records[self.supported].sum()), 1.0)
        everybody = sums.weights(False)
        self.inverse = np.where(self.supported, everybody / N, 0.0)
        self.population = max(float(everybody[self.supported].sum()), 1.0)
        chances = self.records * self.probability * (1 - self.probability)
        self.chance = max(float(chances[self.supported].sum()) / self.count, SMALL_CHANCE)
        variance = max(float((sums.Q - N * self.means**2)[:, self.supported].sum()) / self.count, 0.0)
        error = math.sqrt(self.supported.sum() * 2 * cells.variance) / self.count
        self.arm_scale = float(np.maximum(self.probability, 1 - self.probability)[self.supported].max(initial=0.5))
        self.scale = min(SPREADS * math.sqrt(max(variance + error, LEAST_SPREAD**2)), 1.0)
        self.variances = self.chance / self.arm_scale**2, variance / self.scale**2

    def residuals(self, rows: Rows) -> Reals:
        """Return those of treatment and outcome, 0 of a record of no supported stratum or another arm."""
        place, treated, counts, of_outcome = self._stratum_arm_inclusion_residual(rows)
        of_arm: Reals = treated - self.probability[place]
        both = np.column_stack([of_arm / self.arm_scale, of_outcome / self.scale])
        return np.asarray(both * counts[:, None])

    def scores(self, rows: Rows, effect: float) -> Reals:
        """Return how far each record's score is from an effect, in units of the range; its mean is the estimate."""
        place, treated, counts, of_outcome = self._stratum_arm_inclusion_residual(rows)
        gaps, arm = self.means[1] - self.means[0], treated.astype(np.int64)
        of_arm = np.where(treated, 1.0, -1.0) * self.inverse[arm, place] * of_outcome * counts
        return np.asarray((gaps[place] - effect + of_arm) * self.supported[place])

    def _stratum_arm_inclusion_residual(self, rows: Rows) -> tuple[Integers, Mask, Mask, Reals]:
        place = np.zeros(rows.n, dtype=np.int64)
        for name, column in self.columns.items():
            place = place * size_of(column) + column_codes(rows.values[name], column)
        control, treated = (rows.values[self.question.treatment] == code for code in self.question.pair)
        unit = np.clip((rows.values[self.question.outcome] - self.outcome.lower) / self.outcome.width, 0.0, 1.0)
        residual = unit - self.means[treated.astype(np.int64), place]
        return place, treated, self.supported[place] & (treated | control), residual

    def bias(self, name: str, noisy: Reals, noise: float) -> tuple[float, float]:
        """Return the sum of the products of both residuals' sums in the parts of a number, and its variance."""
        sizes, axis = [size_of(column) for column in self.columns.values()], list(self.columns).index(name)
        parts = np.moveaxis(self.records.reshape(sizes), axis, 0).reshape(sizes[axis], -1).sum(axis=1)
        full = parts >= LEAST_FULL * parts.mean()
        own, size = noisy[:, full], parts[full]
        of_arm, of_outcome = (noise**2 + size * variance for variance in self.variances)
        weight = self.arm_scale * self.scale / (size * self.count * self.chance)
        least = float((weight**2 * of_arm * of_outcome).sum())
        seen = float((weight**2 * (own[0] ** 2 * of_outcome + own[1] ** 2 * of_arm)).sum()) - least
        return float((weight * own[0] * own[1]).sum()), max(seen, least)


def _middles(column: Bounded) -> Reals:
    """Return the middles of the parts of a column, an outermost one as wide as the others."""
    cuts = cuts_of(column)
    width = cuts[1] - cuts[0] if len(cuts) > 1 else column.width / 2
    return np.asarray(cuts[0] + width * (np.arange(len(cuts) + 1) - 0.5))


def _noise(loss: Paid) -> float:
    return math.sqrt(noise_variance(residual_sums_sensitivity(2, norm_of(loss)), loss)) / GRID


def _predicted_error(n: float, numbers: tuple[Cut, ...], loss: Paid) -> float:
    noise, variance = _noise(loss.part(Fraction(1, len(numbers)))), 0.0
    for _, column in numbers:
        parts = size_of(column)
        products = (noise**2 + n / parts * CHANCE) * (noise**2 + n / parts / SPREADS**2)
        variance += parts * products * (SPREADS * parts / (n**2 * CHANCE)) ** 2
    return math.sqrt(variance)
