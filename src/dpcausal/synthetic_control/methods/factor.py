"""A factor model of the donors: their mean path and the covariance of their directions, once, predict any target.

For many donors.  After three releases everything is free: the low rank, the regression of the future on the past, and
the placebo residual of a donor, which then depends on its own row alone.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.core.method import Run
from dpcausal.mechanisms.additive import gaussian, gaussian_scale
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity, Unit
from dpcausal.synthetic_control.donor_rows import (
    FINE,
    FULL,
    Grid,
    TargetOnlyForecast,
    at_length,
    donor_free,
    ordered_sums,
    random_walk_error,
    squared_lengths,
    to_scale,
    within_radius,
)
from dpcausal.synthetic_control.method import MIXTURES, SyntheticMethod
from dpcausal.synthetic_control.placebo import Law, Missed, deviation_of, missed_by_own
from dpcausal.synthetic_control.question import Path, Plan, Treated, past_of

SHARES = {"radius": Fraction(1, 10), "mean": Fraction(3, 10), "directions": Fraction(3, 5)}
"""How the path's ρ is split."""
WITHIN = 0.8
"""The share of donors that the radius should hold."""
STEPS = 5
"""Noisy counts of the search for a radius, among 2⁵ candidates each √2 of the one before."""
LENGTH = 2**14
"""The length that a donor's direction has, in whole numbers."""
DIAGONAL, OFF = 5, 7
"""Weights of the entries on and off the diagonal: (7/5)² < 2, so the weighted triangle is no longer than 5 times the
whole symmetric matrix, and its noise is spread nearly as that of an isotropic symmetric matrix."""
FINENESS = 2.0**-24
"""Released slopes and loadings are rounded to it, so that another machine's solver gives the same numbers."""
PRIOR = 1.5
"""Periods that the common residual variance counts for in a unit's own."""
SWING = 0.35
"""The share of the squared difference expected of a unit, by what is released, from which on it counts as volatile."""
LEAST_HIDDEN = 1e-6
"""The variance of a past counts for no less, in squared units of the grid: without noise constant donors have none."""
GAP = 4.0
"""A factor is left out of a unit's own noise where its eigenvalue is above so many means of the smaller ones."""
NEAR, WALK_ERRORS = 0.9, 1.3
"""A target whose past lies within so many standard deviations of the released model is like its donors; of another the
path may be off by so many errors of a random walk of its own steps: measured."""
ALONG, SMOOTH = (1.8, 4.0), 1.0
"""It is less like them the more standard deviations it lies off along a factor, from the first to the second, or where
the mean squared step of what the factors leave is below so many times its variance, as of a walk and not of noise."""
OWN_TREND = (0.88, 0.92)
"""Confidences of a trend of the target's own from which on, and from which on in full, it adds to the error: measured.
The median interval of targets like their donors is 2 to 9 % wider by it; twelve periods do not show a slight trend."""


@dataclass(frozen=True, eq=False)
class FactorRelease:
    """The released model, in steps, of rows less their own last value before the start.

    ``directions`` is the mean product of donors' residual rows, each brought to length 1: symmetric, perhaps not
    positive, with noise of a standard deviation on a diagonal entry.  ``spread`` is the mean squared length that the
    radius and the mean leave to residual rows.
    """

    mean: Integers
    directions: Reals
    noise: float
    spread: float


def candidate_radii(periods: int, most: int) -> list[int]:
    """Return the candidate radii in steps, from 2⁻⁵ times √T errors of the targets' last values on, √2 apart."""
    unit = FINE * math.sqrt(periods)
    top = math.isqrt(periods * most * most)
    return [min(max(1, math.ceil(unit * 2 ** (place / 2 - 5))), top) for place in range(2**STEPS)]


def rows_within(squared: Integers, radius: int) -> int:
    return int((squared <= radius * radius).sum())


def count_sensitivity() -> Sensitivity:
    """Return 1.  *Guarantee*: claim ``row-radius``, replace one donor."""
    return Sensitivity(1, Norm.ABSOLUTE, Relation.REPLACE_ONE, "row-radius", Unit.DONOR)


def release_radius(squared: Integers, candidates: list[int], allotment: CallBudget, loss: ZCDP | NoPrivacy) -> int:
    """Release a radius that about ``WITHIN`` of the rows keep: a binary search of ``STEPS`` noisy counts."""
    each = loss.part(Fraction(1, STEPS))
    low, high = 0, len(candidates) - 1
    for step in range(STEPS):
        middle = (low + high) // 2
        query = Query(rows_within(squared, candidates[middle]), count_sensitivity(), f"radius {step + 1}")
        enough = gaussian(query, allotment, each) >= WITHIN * len(squared)
        low, high = (low, middle) if enough else (min(middle + 1, high), high)
    return candidates[high]


def sum_sensitivity(radius: int) -> Sensitivity:
    """Return 2C, in l2.  *Guarantee*: claim ``clipped-sum``, replace one donor."""
    return Sensitivity(2 * radius, Norm.L2, Relation.REPLACE_ONE, "clipped-sum", Unit.DONOR)


def residual_products(rows: Integers) -> Integers:
    """Return the weighted upper triangle of Σ rr' as whole numbers: 5 times the diagonal, 7 times what is off it.

    Rows are directions, at most ``BLOCK`` of them: in floats each partial sum is a whole number below 2⁵³, so exact.
    """
    plain = rows.astype(np.float64)
    total = (plain.T @ plain).astype(np.int64)
    weighted = np.where(np.eye(len(total), dtype=bool), DIAGONAL * total, OFF * total)
    return weighted[np.triu_indices(len(total))]


def products_sensitivity() -> Sensitivity:
    """Return 5√2 L², rounded up, in l2.  *Guarantee*: claim ``direction-products``, replace one donor."""
    bound = math.isqrt(2 * DIAGONAL**2 * LENGTH**4) + 1
    return Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "direction-products", Unit.DONOR)


def symmetric_matrix(triangle: Reals, periods: int) -> Reals:
    matrix = np.zeros((periods, periods))
    matrix[np.triu_indices(periods)] = triangle
    matrix /= np.where(np.eye(periods, dtype=bool), DIAGONAL, OFF)
    return np.asarray(matrix + np.triu(matrix, 1).T)


def release_model(scaled: Reals, grid: Grid, allotment: CallBudget, loss: ZCDP | NoPrivacy) -> FactorRelease:
    """Release the model: a radius, the clipped mean, the products of residual directions."""
    n, periods = scaled.shape
    squared = np.concatenate([squared_lengths(rows) for rows in grid.blocks(scaled)])
    radius = release_radius(squared, candidate_radii(periods, grid.most), allotment, loss.part(SHARES["radius"]))
    total = sum(within_radius(rows, radius).sum(axis=0) for rows in grid.blocks(scaled))
    noisy = gaussian(Query(np.asarray(total), sum_sensitivity(radius), "mean"), allotment, loss.part(SHARES["mean"]))
    mean = np.clip(np.rint(noisy / n), -grid.most, grid.most).astype(np.int64)
    crossed = sum(residual_products(at_length(rows - mean, LENGTH)) for rows in grid.blocks(scaled))
    portion = loss.part(SHARES["directions"])
    triangle = gaussian(Query(np.asarray(crossed), products_sensitivity(), "directions"), allotment, portion)
    whole, moved = float(n) * LENGTH**2, float(np.sum(mean.astype(np.float64) ** 2))
    return FactorRelease(
        mean=mean,
        directions=symmetric_matrix(np.asarray(triangle, dtype=np.float64), periods) / whole,
        noise=deviation_of(products_sensitivity().bound, portion) / (DIAGONAL * whole),
        spread=max(0.6 * radius**2 - moved, 0.15 * radius**2),
    )


@dataclass(frozen=True, eq=False)
class Forecaster:
    """The regression of the future on the past that a released model implies, in steps.

    ``slopes`` (T0, m) are those of each later period; ``basis`` (k, T0) is orthonormal and holds the level and the
    factors of the past; ``rest`` is the variance that neither holds; ``loadings`` (k − 1, T) say how all periods go
    with these factors; ``covariance`` (T, T) is that of all periods, without what noise hides; ``swing`` divides calm
    from volatile units, by the mean square of the differences of their past; ``hidden`` is the standard deviation of
    the noise in a variance.
    """

    start: int
    mean: Reals
    slopes: Reals
    basis: Reals
    rest: float
    loadings: Reals
    covariance: Reals
    swing: float
    hidden: float

    @property
    def freedom(self) -> int:
        return max(self.start - len(self.basis), 0)

    def change(self, z: Reals) -> Reals:
        """Return the predicted future of rows less their last value, (n, T) to (n, m), bit for bit from each alone."""
        past = [z[:, t] - self.mean[t] for t in range(self.start)]
        return np.stack([ordered_sums(past, slopes) for slopes in self.slopes.T], axis=-1) + self.mean[self.start :]

    def distance(self, row: Integers) -> float:
        """Return how far a past lies from the mean, in standard deviations of the model: root mean square over T0 − 1.

        The last value before the start is 0 in every row.  Variances are taken for no less than their noise.
        """
        last = self.start - 1
        moved = row[:last].astype(np.float64) - self.mean[:last]
        return math.sqrt(max(float(moved @ self._weighed(moved)), 0.0) / last)

    def _weighed(self, moved: Reals) -> Reals:
        last = self.start - 1
        spread = self.covariance[:last, :last] + max(self.hidden, LEAST_HIDDEN) * np.eye(last)
        return np.asarray(np.linalg.solve(spread, moved))

    def trend_error(self, row: Integers) -> float:
        """Return by how much a line of the past's own may move the mean future off the forecast, in steps.

        The line is that of generalized least squares by the released covariance, times what its own residuals say of
        the variance.  It counts from ``OWN_TREND`` on: its size and its standard error, as the forecast misses it.
        """
        last, freedom = self.start - 1, self.start - 2
        moved = row[:last].astype(np.float64) - self.mean[:last]
        line = np.arange(len(self.mean), dtype=np.float64) - last
        past = line[:last]
        weights = self._weighed(past)
        information = float(past @ weights)
        slope = float(moved @ weights) / information
        left = moved - slope * past
        error = math.sqrt(max(float(left @ self._weighed(left)), LEAST_HIDDEN) / (freedom * information))
        confidence = Law(freedom).within(abs(slope) / error)
        counted = min(max((confidence - OWN_TREND[0]) / (OWN_TREND[1] - OWN_TREND[0]), 0.0), 1.0)
        missed = float(line[self.start :].mean() - line[: self.start] @ self.slopes.mean(axis=1))
        return counted * abs(missed) * (abs(slope) + error)

    def unlikeness(self, row: Integers) -> float:
        """Return how much a past is unlike the model, 0 to 1, by its distance, its factors and what these leave."""
        left = row[: self.start].astype(np.float64) - self.mean[: self.start]
        left, along = left - left.mean(), 0.0
        for direction in self.basis[1:]:
            score = float(left @ direction)
            spread = float(direction @ self.covariance[: self.start, : self.start] @ direction)
            along = max(along, abs(score) / math.sqrt(max(spread, FINENESS)))
            left = left - score * direction
        smooth = float(np.mean(np.diff(left) ** 2)) < SMOOTH * float(np.mean(left**2))
        if smooth or self.distance(row) > NEAR:
            return 1.0
        return min(max((along - ALONG[0]) / (ALONG[1] - ALONG[0]), 0.0), 1.0)

    def swings(self, rows: Integers) -> Reals:
        """Return (v − c)/(v + c), times 2 and cut at ±1, of each row's mean squared difference v before the start."""
        moved = np.diff(rows[:, : self.start], axis=1)
        squared = (moved * moved).sum(axis=1).astype(np.float64) / (self.start - 1)
        return np.asarray(np.clip(2 * ((squared - self.swing) / (squared + self.swing)), -1, 1))

    def measured(self, rows: Integers) -> tuple[Reals, Reals]:
        """Return each row's mean residual after the start and its own scale, bit for bit from the row alone."""
        columns = [rows[:, t].astype(np.float64) - self.mean[t] for t in range(rows.shape[1])]
        past, after = columns[: self.start], len(columns) - self.start
        missed = ordered_sums(columns[self.start :], np.full(after, 1 / after)) - ordered_sums(
            past, self.slopes.mean(axis=1)
        )
        left = list(past)
        for direction in self.basis:
            along = ordered_sums(past, direction)
            left = [column - along * float(part) for column, part in zip(left, direction, strict=True)]
        squared = np.zeros(len(rows))
        for column in left:
            squared += column * column
        own = squared if self.freedom else np.zeros(len(rows))
        return missed, np.sqrt((own + PRIOR * self.rest) / (self.freedom + PRIOR))


def forecaster(model: FactorRelease, start: int) -> Forecaster:
    """Return the regression: released numbers only, hence free.

    Eigenvalues w of the directions' covariance above s√(2T) are kept, s the noise on a diagonal entry, as
    √(w² − 2Ts²): of all functions of w that nearest to the covariance (Gavish & Donoho, 2017).  What is left is spread
    evenly: s_r².
    L = Σ (w − s_r²)₊ vv',  slopes = (L_pre,pre + s_r² I)⁻¹ L_pre,post.

    A unit's scale leaves out its level and the factors of the past, fewer than half of its periods: eigenvectors, of
    what L + s_r² I says of the past less its level, that stand out from those below.  The rest of them is common.
    """
    periods = len(model.mean)
    values, vectors = np.linalg.eigh((model.directions + model.directions.T) / 2)
    s = model.noise
    retained = values > max(s * math.sqrt(2 * periods), 0.0)
    shrunk = np.where(retained, np.sqrt(np.maximum(values * values - 2 * periods * s * s, 0)), 0)
    left = max(float(np.trace(model.directions)), 0.0) - float(shrunk.sum())
    # No smaller than a solve in floats can tell from 0 beside the largest eigenvalue; directions have length 1.
    floor = max(left / max(periods - int(retained.sum()), 1), 1e-11 * float(shrunk.max()), 1e-15)
    whole = (vectors * np.maximum(shrunk - floor, 0)) @ vectors.T + floor * np.eye(periods)
    slopes = np.linalg.solve(whole[:start, :start], whole[:start, start:])
    level = np.full((start, 1), 1 / math.sqrt(start))
    moved = np.eye(start) - level @ level.T
    values, vectors = np.linalg.eigh(moved @ whole[:start, :start] @ moved)
    values, vectors, factors = values[:0:-1], vectors[:, :0:-1], 0  # the least is the level's, 0
    while factors < (start - 1) // 2 and values[factors] > GAP * values[factors + 1 :].mean():
        factors += 1
    own, directions = float(values[factors:].mean()), vectors[:, :factors]
    largest = directions[np.argmax(np.abs(directions), axis=0), np.arange(factors)]
    directions = directions * np.where(largest < 0, -1.0, 1.0)
    loadings = (whole[:, :start] @ directions * np.sqrt(model.spread / values[:factors])).T
    rest = max(FINENESS * round(own / FINENESS), 1e-15) * model.spread
    basis = np.column_stack([level, directions]).T
    mean = model.mean.astype(np.float64)
    variances, neighbours = np.diag(whole)[:start], np.diag(whole, 1)[: start - 1]
    moved = float((variances[1:] + variances[:-1] - 2 * neighbours).sum()) / max(start - 1, 1)
    common = float((np.diff(mean[:start]) ** 2).sum()) / max(start - 1, 1)
    swing = max(FINENESS * round(moved / FINENESS), 1e-15) * model.spread + common
    return Forecaster(
        start, mean, _fine(slopes), _fine(basis), rest, _fine(loadings), _fine(whole * model.spread), SWING * swing,
        model.noise * model.spread,
    )  # fmt: skip


def _fine(values: Reals) -> Reals:
    return np.rint(values / FINENESS) * FINENESS


@dataclass(frozen=True, kw_only=True)
class Factor(SyntheticMethod):
    """A factor model of the donors, released once for all targets: for many donors, ``ZCDP`` or ``ApproxDP``."""

    name: ClassVar[str] = "factor"
    about: ClassVar[str] = "a factor model of the donors"
    losses: ClassVar[tuple[type[Loss], ...]] = (ApproxDP, ZCDP)
    shared: ClassVar[bool] = True
    has_placebos: ClassVar[bool] = True
    proofs: ClassVar[tuple[str, ...]] = ("row-radius", "clipped-sum", "direction-products")

    def grid(self, question: Treated) -> Grid:
        """Return the steps, from all targets' pasts."""
        panel, after = question.panel, question.periods - question.before
        sizes = [donor_free(past_of(panel, target), after, question.places).last_error for target in question.targets]
        return Grid.of(sizes, question.before, question.periods)

    def expected_noise(self, question: Treated, target: Any, free: TargetOnlyForecast, base: Any) -> float | None:
        """Return that of the mean, of rows twice as long as the target's own changes.

        A FenceError if some noise would pass the largest scale that is drawn.
        """
        if not isinstance(base, ZCDP):
            return None
        gaussian_scale(products_sensitivity().bound, base.part(SHARES["directions"]))
        longest = candidate_radii(question.periods, self.grid(question).most)[-1]
        gaussian_scale(2 * longest, base.part(SHARES["mean"]))
        gaussian_scale(1, base.part(SHARES["radius"] / STEPS))
        radius = 2 * free.last_error * math.sqrt(question.periods)
        return gaussian_scale(2 * radius, base.part(SHARES["mean"])) / question.panel.n

    def mixtures(self, free: TargetOnlyForecast) -> tuple[float, ...]:
        return MIXTURES

    def begun(self, plan: Plan, run: Run[Treated]) -> Any:
        """Release the model, and keep the donors."""
        base: Any = plan.base
        grid = self.grid(run.question)
        return run.data, grid, release_model(run.data, grid, run.budget, base.part(plan.path))

    def path(self, begun: Any, plan: Plan, run: Run[Treated]) -> Path:
        question, (scaled, grid, model) = run.question, begun
        fitted = forecaster(model, plan.start)
        y = to_scale(question.panel.series(plan.target), question.panel.bounds)
        own = grid.rows(y[None])

        def missed(rows: Integers) -> Missed:
            control, scales = fitted.measured(rows)
            return Missed(control, missed_by_own(rows, plan.start, question.places), scales, fitted.swings(rows))

        fit, far = float(fitted.measured(own)[1][0]), fitted.distance(own[0])
        walk = WALK_ERRORS * random_walk_error(own[0, : plan.start].astype(np.float64), plan.after)
        own_error = max(walk * fitted.unlikeness(own[0]), fitted.trend_error(own[0])) * grid.step
        return Path(
            values=y[question.before - 1] + fitted.change(own.astype(np.float64))[0] * grid.step, noise=None,
            loadings=fitted.loadings * grid.step, level=fitted.mean * grid.step,
            covariance=fitted.covariance * grid.step**2, donors=Missed.joined(map(missed, grid.blocks(scaled))),
            own=missed(own), fit=fit * grid.step, distance=far, weights=np.full(len(scaled), FULL), step=grid.step,
            own_error=own_error, total=float(len(scaled)), law=Law(max(fitted.freedom, 1)),
        )  # fmt: skip
