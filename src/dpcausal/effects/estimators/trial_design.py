"""Designs of a trial whose effect is one sum over rows: arms of public sizes, or public assignment probabilities.

*Sizes*: Σ_z W_z (ȳ_1z − ȳ_0z) = Σ_i ± W_z / n_az (y_i − c), with c the middle of the outcome's range.  Three quarters
of ε pay for that sum, the rest for noisy cells.  *Probabilities*: cells come first, and their means are the centres of
a score whose mean is the effect whatever the centres are.  Proofs and uses: ``trial_design.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.effects.cells.api import Paid
from dpcausal.effects.cells.corner_counts import GRID, NoisyCells, functionals, levels_of
from dpcausal.effects.cells.standardise import LEAST_COUNT, LEAST_EXACT, Sums
from dpcausal.effects.question import EffectQuestion
from dpcausal.errors import ParameterError
from dpcausal.mechanisms.additive import geometric_variance, laplace_scale
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity

SUM_SHARE = Fraction(3, 4)
"""Part of ε for the sum of a trial of public sizes."""
LEAST_PROBABILITY = 0.01
STEPS = 2**20
"""Where 0 lies in the range of a score is a multiple of 1/STEPS, so that both ends are exact."""
MARGIN = {"sizes": 1.0, "probabilities": 0.5}
"""So many deviations of its noise are added to the variance: a narrow interval by luck would not hold."""
MOST_OFF = 5.0
"""No interval where an arm is so many deviations away from the size or the probability that was given."""
MISSING = 4.0
"""Records count as left out where so many deviations of the noise show that they are."""
WRONG_SIZES = (
    "the arms are not of the sizes that were given, or rows have a missing value, and the estimate is off: give the "
    "sizes as randomised"
)
WRONG_PROBABILITIES = (
    "the arms' shares differ from the probabilities that were given by more than chance and noise explain: give the "
    "probabilities as randomised"
)


def assigned_sum(unit: Reals, weights: Reals, mass: Integers) -> Integers:
    """Return Σ of the rows' masses times weight in [−1, 1] and outcome in [0, 1], moved to [−1, 1]: one whole number.
    NaN counts as the middle of the range.  Masses of a unit sum to at most ``GRID``."""
    places = 2 * np.clip(np.nan_to_num(unit, nan=0.5), 0.0, 1.0) - 1
    terms: Integers = np.rint(mass * np.clip(weights, -1.0, 1.0) * places).astype(np.int64)
    return np.array([terms.sum()], dtype=np.int64)


def assigned_sum_sensitivity() -> Sensitivity:
    return Sensitivity(2 * GRID, Norm.L1, Relation.REPLACE_ONE, "assigned-sum", symmetric=True)


def centred_score(places: Reals, zero: float, mass: Integers) -> Integers:
    """Return Σ of the rows' masses times place, moved to within −zero and 1 − zero: one whole number. NaN counts as 0,
    ``zero`` is rounded down to a multiple of 1/``STEPS``.  Masses of a unit sum to at most ``GRID``."""
    below = math.floor(min(max(zero, 0.0), 1.0) * STEPS) / STEPS
    inside = np.clip(np.nan_to_num(places, nan=0.0), -below, 1.0 - below)
    return np.array([np.trunc(mass * inside).astype(np.int64).sum()], dtype=np.int64)


def centred_score_sensitivity() -> Sensitivity:
    return Sensitivity(GRID, Norm.L1, Relation.REPLACE_ONE, "centred-score", symmetric=True)


def noise_deviation(bound: int, loss: Paid) -> float:
    """Return the standard deviation, in masses of a unit, of the noise of one sum of such a sensitivity."""
    return math.sqrt(geometric_variance(laplace_scale(bound, loss))) / GRID if isinstance(loss, PureDP) else 0.0


def parse_array(value: Any) -> Reals:
    """Return numbers by level, and by stratum: of nested lists, or of text as ``150,350`` or ``60,90;80,40``. The array
    is empty where the value is neither."""
    try:
        if isinstance(value, str):
            rows = [[float(part) for part in row.split(",")] for row in value.split(";")]
            return np.array(rows[0] if len(rows) == 1 else rows, dtype=np.float64)
        return np.atleast_1d(np.array(value, dtype=np.float64))
    except (TypeError, ValueError):
        return np.zeros(0)


def _wrong(argument: str, rule: str, text: str) -> ParameterError:
    return ParameterError(f"{argument} must {text}", argument=argument, rule=rule)


def _shape(question: EffectQuestion) -> tuple[int, ...]:
    return tuple(len(levels_of(question.column(name))) for name in (question.treatment, *question.strata))


def _axes(question: EffectQuestion, cells: NoisyCells) -> list[int]:
    return [cells.by.index(name) for name in (question.treatment, *question.strata)]


@dataclass(frozen=True)
class SumEstimate:
    """An estimate from one sum over rows, in widths of the outcome's range, and what a row weighs in it."""

    estimate: float
    sampling: float
    noise: float
    """Variances."""
    weights: Reals
    """By arm and stratum, control first."""
    means: Reals
    variances: Reals
    """The largest that they may be, by arm and stratum."""
    reason: str
    """Why there is no interval; empty otherwise."""
    laplace: float = 0.0
    """Variance of a single number of Laplace noise whose long tails are counted."""


@dataclass(frozen=True)
class SizedArms:
    """The public sizes of control and treated by strata, and the weight of a row of each in the difference."""

    levels: int
    pair: tuple[int, int]
    counts: Reals
    weights: Reals

    @classmethod
    def of(cls, question: EffectQuestion, sizes: Any, least: int = LEAST_EXACT) -> SizedArms:
        given, shape = parse_array(sizes), _shape(question)
        if given.shape != shape or not np.all((given == np.floor(given)) & (given >= 0) & (given <= question.n)):
            columns = ", ".join((question.treatment, *question.strata))
            raise _wrong("sizes", "shape", f"be whole numbers of shape {shape}: the rows of each level of {columns}, "
                         "in the schema's order")  # fmt: skip
        if given.sum() != question.n:
            raise _wrong("sizes", "sum", f"add up to the rows of the table, {question.n}, not to {given.sum():.0f}")
        pair = question.pair
        counts = given[list(pair)].reshape(2, -1)
        if counts.min() < least:
            raise _wrong("sizes", "minimum", f"be at least {least} for each arm in each stratum: adjust for fewer")
        totals = counts[1] if question.estimand == "att" else given.sum(axis=0).ravel()
        return cls(shape[0], pair, counts, totals / totals.sum() / counts)

    def row_weights(self) -> Reals:
        """Return the weight of a row by its arm and stratum, at most 1."""
        weights: Reals = np.zeros((self.levels, self.counts.shape[1]))
        weights[self.pair[0]], weights[self.pair[1]] = -self.weights[0], self.weights[1]
        weights /= self.weights.max()
        return weights

    def deviation(self, loss: Paid) -> float:
        return noise_deviation(2 * GRID, loss.part(SUM_SHARE)) * float(self.weights.max()) / 2

    def _sums(self, cells: NoisyCells, question: EffectQuestion) -> tuple[Sums, float, float]:
        value = question.value
        raw, noise = cells.sums(value, _axes(question, cells))
        N, T, Q = raw[:, list(self.pair)].reshape(3, 2, -1)
        read = functionals(value.degree)
        means = read.mean(axis=1)
        variances = ((read - means[:, None]) ** 2).sum(axis=1) * cells.variance
        known = np.zeros((2, 2))
        known[1, 1] = variances[1]
        deviation = math.sqrt(noise[0, 0] * N.shape[1])
        off = float(np.abs((N - self.counts).sum(axis=1)).max())
        deviations = off / deviation if deviation > 0 else math.inf if off > 1e-6 * question.n else 0.0
        T, Q = T - means[1] * (N - self.counts), Q - means[2] * (N - self.counts)
        return Sums(self.counts, T, Q, known), float(variances[2]), deviations

    def estimate(
        self, question: EffectQuestion, cells: NoisyCells, total: float, noise: float
    ) -> tuple[SumEstimate, Sums]:
        """Return the estimate: the mean of the sum and of the cells, weighted by the noise of both."""
        sums, square_noise, off = self._sums(cells, question)
        weights, means, sum_noise = self.weights, sums.T / sums.N, sums.noise[1, 1]
        by_cells = float((weights * sums.N * means * [[-1], [1]]).sum())
        cell_noise = sum_noise * (weights**2).sum()
        part = 1.0 if cell_noise == 0 else cell_noise / (cell_noise + noise**2)
        spread = sums.Q - (sums.T**2 - sum_noise) / sums.N
        degrees = sums.N / (sums.N - 1)
        sampling = float((weights**2 * spread * degrees).sum())
        margin = MARGIN["sizes"] * math.sqrt(float((weights**4 * (square_noise + 4 * means**2 * sum_noise)).sum()))
        most = float((weights**2 * sums.N * degrees).sum()) / 4
        return SumEstimate(
            estimate=part * total + (1 - part) * by_cells,
            noise=part**2 * noise**2 + (1 - part) ** 2 * float(cell_noise), weights=weights, means=means,
            sampling=min(max(sampling + margin, 0.0), most),
            variances=np.maximum(spread, 0.0) / sums.N + 2 * math.sqrt(square_noise) / sums.N,
            reason=WRONG_SIZES if off > MOST_OFF else "",
        ), sums  # fmt: skip


@dataclass(frozen=True)
class DrawnArms:
    pair: tuple[int, int]
    table: Reals
    """Shape (levels, strata)."""

    @classmethod
    def of(cls, question: EffectQuestion, probabilities: Any) -> DrawnArms:
        given, shape = parse_array(probabilities), _shape(question)
        if given.shape == shape[:1]:
            given = np.broadcast_to(given.reshape(-1, *[1] * len(question.strata)), shape)
        valid = given.shape == shape and bool(np.all((given >= 0) & (given <= 1)))
        if not valid or np.abs(given.sum(axis=0) - 1).max() > 1e-9:
            columns = ", ".join(question.strata) or "strata"
            raise _wrong("probabilities", "shape", f"be one number for each level of {question.treatment!r} in the "
                         f"schema's order, with sum 1, or shape {shape}: one list a level, by {columns}")  # fmt: skip
        design = cls(question.pair, given.reshape(shape[0], -1))
        if design.arms.min() < LEAST_PROBABILITY:
            raise _wrong("probabilities", "minimum", f"be at least {LEAST_PROBABILITY:g} for both arms")
        return design

    @property
    def arms(self) -> Reals:
        return self.table[list(self.pair)]

    def predicted(self, n: int, epsilon: float) -> tuple[Fraction, float, float]:
        """Return the part of ε for the scores, and the variances that it and ``stratified`` add: public. For means at a
        quarter of the range and strata of one size; see ``trial_design.md``."""
        p, strata = self.arms, self.arms.shape[1]
        width = float(np.maximum(0.75 / p[1], 0.25 / p[0]).max() + np.maximum(0.25 / p[1], 0.75 / p[0]).max())
        of_scores = 2 * (width / (n * epsilon)) ** 2
        of_mean = 5.5 * (strata / (n * epsilon * p)) ** 2
        of_centres = float((of_mean * (1 - p) / p).sum()) / (n * strata)
        of_squares = MARGIN["probabilities"] * math.sqrt(2.84 * float((1 / (n * p) ** 4).sum())) / epsilon
        parts = [Fraction(part, 64) for part in range(16, 61)]
        added = [of_scores / part**2 + of_centres / (1 - part) ** 2 + of_squares / (1 - part) for part in parts]
        least = min(added)
        return parts[added.index(least)], least, float(of_mean.sum()) / strata**2

    def gains(self, n: int, loss: Paid) -> bool:
        """Return whether less noise is expected than by ``stratified``; true without privacy."""
        if not isinstance(loss, PureDP):
            return True
        _, own, of_cells = self.predicted(n, loss.epsilon)
        return own <= of_cells

    def share(self, n: int, loss: Paid) -> Fraction:
        return self.predicted(n, loss.epsilon)[0] if isinstance(loss, PureDP) else Fraction(1, 2)


@dataclass(frozen=True)
class CentredScores:
    """The scores' centres and range, from noisy cells and the probabilities."""

    design: DrawnArms
    N: Reals
    T: Reals
    Q: Reals
    noise: Reals
    """Covariance of the noise of (N, T, Q), by arm and stratum in the last two axes."""
    totals: Reals
    """Counts of all levels by stratum."""
    missing: bool
    """Whether the counts say clearly that some records are left out."""
    off: float
    """By how many deviations the arms' shares differ from the probabilities."""
    centres: Reals
    weights: Reals
    """Of the strata."""
    first: float
    """The effect by the centres alone."""
    beyond: Reals
    """The effect by the centres in each stratum, less ``first``."""

    @classmethod
    def of(cls, design: DrawnArms, cells: NoisyCells, question: EffectQuestion) -> CentredScores:
        """Return them; counts have less noise by least squares, as the arms' probabilities are known."""
        value = question.value
        raw, noise = cells.sums(value, _axes(question, cells))
        levels = raw.reshape(3, len(design.table), -1)
        arms = levels[:, list(design.pair)]
        total, p = levels[0].sum(axis=0), design.arms
        off = arms[0] - p * total
        variance = np.maximum(total, 0.0) * p * (1 - p) + noise[0, 0] * ((1 - p) ** 2 + (len(levels[0]) - 1) * p**2)
        variance = np.maximum(variance, 1e-9)
        along = noise[0][:, None, None] * (1 - p)
        N, T, Q = arms - along * off / variance
        rest = noise[:, :, None, None] - along[:, None] * along[None] / variance
        missing = question.n - float(total.sum()) > (
            MISSING * math.sqrt(float(noise[0, 0]) * levels[0].size) + 1e-6 * question.n
        )
        deviations = float((np.abs(off) / np.sqrt(variance)).max())
        least = LEAST_COUNT if noise.any() else LEAST_EXACT
        N, totals = np.maximum(N, least), np.maximum(total, 0.0)
        centres, weights = np.clip(T / N, 0.0, 1.0), totals / max(float(totals.sum()), 1e-9)
        gaps = np.asarray(centres[1] - centres[0])
        first = float(weights @ gaps)
        return cls(design, N, T, Q, rest, totals, missing, deviations, centres, weights, first, gaps - first)

    @property
    def sums(self) -> Sums:
        return Sums(self.N, self.T, self.Q, self.noise[:2, :2].max(axis=(2, 3)))

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest score less ``first``; 0 lies within."""
        (c0, c1), (p0, p1), d = self.centres, self.design.arms, self.beyond
        low = np.concatenate([d - c1 / p1, d - (1 - c0) / p0])
        high = np.concatenate([d + (1 - c1) / p1, d + c0 / p0])
        return min(float(low.min()), 0.0), max(float(high.max()), 0.0)

    def scores(self, unit: Reals, arm: Integers, place: Integers) -> Reals:
        """Return φ − r of rows by their outcome's place in the range, level and stratum."""
        weight, centre = np.zeros(self.design.table.shape), np.zeros(self.design.table.shape)
        for sign, code, c, p in zip((-1, 1), self.design.pair, self.centres, self.design.arms, strict=True):
            weight[code], centre[code] = sign / p, c
        return self.beyond[place] + weight[arm, place] * (
            np.clip(np.nan_to_num(unit, nan=0.5), 0.0, 1.0) - centre[arm, place]
        )

    def counted(self, n: int) -> float:
        return max(float(self.totals.sum()), n / 4) if self.missing else float(n)

    def estimate(self, mean_score: float, noise: float, n: float) -> SumEstimate:
        """Return the estimate: that of the centres, moved by the scores by the ratio of the noise of both."""
        c, p, W = self.centres, self.design.arms, self.weights
        (nn, nt, nq), (_, tt, tq), (_, _, qq) = self.noise
        of_mean = tt - 2 * c * nt + c * c * nn
        of_first = float((W**2 * of_mean / self.N**2).sum())
        part = 1.0 if of_first == 0 else of_first / (of_first + noise**2)
        weights = 1 / (n * p)
        squares = self.Q - 2 * c * self.T + c * c * self.N + 2 * of_mean / self.N
        of_squares = qq + 4 * c * c * tt + c**4 * nn - 4 * c * tq + 2 * c * c * nq - 4 * c**3 * nt
        sampling = float((weights**2 * squares * self.N / (self.N - 1)).sum())
        sampling += MARGIN["probabilities"] * math.sqrt(float((weights**4 * of_squares).sum()))
        ends = self.totals * p * np.maximum(c, 1 - c) ** 2
        most = np.minimum(self.N * c * (1 - c) + np.sqrt(of_mean) + 2 * of_mean / self.N, ends)
        of_gaps = (of_mean / self.N**2).sum(axis=0)
        between = max(float(W @ (self.beyond**2 - (1 - W) * of_gaps)), 0.0) / n
        return SumEstimate(
            estimate=self.first + part * mean_score, noise=(part * noise) ** 2 + (1 - part) ** 2 * of_first,
            sampling=between + min(max(sampling, 0.0), float((weights**2 * most).sum())), weights=weights, means=c,
            variances=np.maximum(squares, 0.0) / self.N + 2 * np.sqrt(of_squares) / self.N,
            laplace=(part * noise) ** 2, reason=WRONG_PROBABILITIES if self.off > MOST_OFF else "",
        )  # fmt: skip
