"""``"assigned"``: a trial whose arms are of public sizes, so that the difference of means is one sum over rows.

With n_az rows of arm a in stratum z, public, W_z their share and c the middle of the outcome's range,

    Σ_z W_z (ȳ_1z − ȳ_0z) = Σ_i ± W_z / n_az (y_i − c)

Three quarters of ε pay for that sum (claim ``assigned-sum``), the rest for ``stratified``: variances, groups, balance,
and whether the arms are of the sizes that were given.  Who was treated is protected like the rest.  Proof:
``assigned.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpcausal.core.method import SumsOverRows
from dpcausal.core.run_context import Run
from dpcausal.data.coding import bin_codes
from dpcausal.data.records import Rows
from dpcausal.data.schema import Bounded, Column
from dpcausal.effects.cells.api import Paid, cell_variance, noisy_cells
from dpcausal.effects.cells.corner_counts import GRID, functionals
from dpcausal.effects.cells.effect import arms_of
from dpcausal.effects.cells.release import NoisyCells
from dpcausal.effects.cells.standardise import LEAST_COUNT, LEAST_EXACT, Sums
from dpcausal.effects.cells.value import levels_of, value_of
from dpcausal.effects.estimators.stratified import sums_of
from dpcausal.effects.estimators.trial import TrialEstimate, parse_array
from dpcausal.effects.question import EffectMethod, EffectQuestion, SimulatedDesign
from dpcausal.effects.result import Effect
from dpcausal.errors import FenceError, InfeasibleError, LossError, ParameterError, Setting
from dpcausal.mechanisms.additive import geometric, laplace_scale
from dpcausal.privacy.loss import Loss, NoPrivacy, PureDP
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity
from dpcausal.releases.counts import geometric_variance

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

DIFFERENCE = Fraction(3, 4)
MOST_NOISE = 0.25
"""Refused where the noise of the difference is a larger part of the outcome's range."""
MARGIN = 1.0
"""So many deviations of its noise are added to the variance: a narrow interval by luck would not hold."""
ASTRAY = 5.0
"""No interval where an arm is so many deviations of the noise away from the size that was given."""

OTHERWISE = "the arms are not of the sizes that were given, or rows have a missing value: the estimate is off"


def assigned_sum(unit: Reals, weights: Reals, mass: Integers) -> Integers:
    """Return Σ of the rows' masses times weight and place in the range, −1 to 1: one whole number.

    Parameters
    ----------
    unit : float array, shape (n,)
        In [0, 1]; what is no number counts as the middle.
    weights : float array, shape (n,)
        In [−1, 1], by the row's arm and stratum; 0 in other arms.
    mass : int64 array, shape (n,)
        At most ``GRID`` a unit; 0 of what is left out.
    """
    places = 2 * np.clip(np.nan_to_num(unit, nan=0.5), 0.0, 1.0) - 1
    terms: Integers = np.rint(mass * np.clip(weights, -1.0, 1.0) * places).astype(np.int64)
    return np.array([terms.sum()], dtype=np.int64)


def assigned_sum_sensitivity() -> Sensitivity:
    """Return the sensitivity of ``assigned_sum``: 2·``GRID``."""
    return Sensitivity(2 * GRID, Norm.L1, Relation.REPLACE_ONE, "assigned-sum", symmetric=True)


@dataclass(frozen=True)
class _Arms:
    """The public sizes of control and treated by strata, and what a row of each weighs in the difference."""

    axis: int
    """Levels of the treatment."""
    pair: tuple[int, int]
    counts: Reals
    shares: Reals

    @classmethod
    def of(cls, question: EffectQuestion, sizes: Any, least: int = LEAST_EXACT) -> _Arms:
        levels = levels_of(question.column(question.treatment))
        strata = [len(levels_of(question.column(name))) for name in question.strata]
        told = parse_array(sizes)
        shape = (len(levels), *strata)
        if told.shape != shape or not np.all((told == np.floor(told)) & (told >= 0) & (told <= question.n)):
            raise ParameterError(
                f"method 'assigned' needs sizes, whole numbers of shape {shape}: rows of each level of "
                f"{', '.join((question.treatment, *question.strata))}, in the schema's order"
            )
        if told.sum() != question.n:
            raise ParameterError(f"sizes add up to {told.sum():.0f}, the table has {question.n}")
        pair = arms_of(levels, question.treatment, question.treated, question.control)
        counts = told[list(pair)].reshape(2, -1)
        if counts.min() < least:
            raise ParameterError(f"each arm needs {least} in each stratum by its size")
        weights = counts[1] if question.estimand == "att" else counts.sum(axis=0)
        return cls(len(levels), pair, counts, weights / weights.sum() / counts)

    def of_rows(self) -> Reals:
        """Return the weight of a row by its arm and stratum, at most 1."""
        found: Reals = np.zeros((self.axis, self.counts.shape[1]))
        found[self.pair[0]], found[self.pair[1]] = -self.shares[0], self.shares[1]
        found /= self.shares.max()
        return found

    def sums(self, cells: NoisyCells, question: EffectQuestion) -> tuple[Sums, float, float]:
        """Return noisy sums that know their counts, the noise of Σ y² of a cell, and how far counts are astray."""
        value = value_of(question.outcome, question.column(question.outcome))
        axes = [cells.by.index(name) for name in (question.treatment, *question.strata)]
        raw, noise = cells.sums(value, axes)
        N, T, Q = raw[:, list(self.pair)].reshape(3, 2, -1)
        read = functionals(value.degree)
        by = read.mean(axis=1)
        about = ((read - by[:, None]) ** 2).sum(axis=1) * cells.variance
        known = np.zeros((2, 2))
        known[1, 1] = about[1]
        deviation = math.sqrt(noise[0, 0] * N.shape[1])
        off = float(np.abs((N - self.counts).sum(axis=1)).max())
        astray = off / deviation if deviation > 0 else math.inf if off > 1e-6 * question.n else 0.0
        T, Q = T - by[1] * (N - self.counts), Q - by[2] * (N - self.counts)
        return Sums(self.counts, T, Q, known), float(about[2]), astray


@dataclass(frozen=True, kw_only=True)
class Assigned(SumsOverRows, EffectMethod):
    """The difference of means of a trial with arms of public sizes; ``PureDP``.

    Parameters
    ----------
    sizes : list
        Rows (or persons) of each level of the treatment in the schema's order, as 150,350. By strata, where some are
        named in ``adjust``, one list a level, as text 60,90;80,40.
    """

    name: ClassVar[str] = "assigned"
    about: ClassVar[str] = "one sum over the arms of a trial"
    losses: ClassVar[tuple[type[Loss], ...]] = (PureDP,)
    proofs: ClassVar[tuple[str, ...]] = ("assigned-sum", "corner-counts", "geometric")
    is_trial: ClassVar[bool] = True

    sizes: Any = None

    def plan(self, question: EffectQuestion, loss: PureDP | NoPrivacy) -> Assigned:
        if question.table.inside:
            raise ParameterError(
                "sizes are those of all rows, and the arms of a subgroup have others",
                argument="sizes", rule="subgroup",
                hint=("use ", Setting("method", "stratified"), ", or make a table of the subgroup alone"),
            )  # fmt: skip
        if question.table.weighed:
            raise ParameterError("method 'assigned' has no proof for survey weights")
        arms = _Arms.of(question, self.sizes, LEAST_EXACT if loss.exact else LEAST_COUNT)
        try:
            noise = _deviation(arms, loss)
            cell_variance(1, loss.part(1 - DIFFERENCE))
        except FenceError:
            raise LossError(f"{loss} is too little here: the noise could not be drawn") from None
        if noise > MOST_NOISE:
            raise InfeasibleError(
                f"arms of {arms.counts.min():.0f} at {loss} predict noise of {noise:.2g} of the outcome's range, "
                f"and {MOST_NOISE:g} is the most: {noise / MOST_NOISE:.2g} times the epsilon, or rows, would be enough"
            )
        return replace(self, sizes=parse_array(self.sizes).astype(np.int64).tolist())

    def caveats(self, question: EffectQuestion, loss: PureDP | NoPrivacy) -> tuple[str, ...]:
        return ("right if arms have the sizes that were given and no outcome is missing: a row without one counts "
                "as the middle of the range",)  # fmt: skip

    def release(self, run: Run[EffectQuestion]) -> Effect:
        question, spent = run.question, run.loss
        arms = _Arms.of(question, self.sizes)
        by, outcome = arms.of_rows(), question.outcome
        value = value_of(outcome, question.column(outcome))
        (treatment, arm), *strata = ((name, question.column(name)) for name in (question.treatment, *question.strata))

        def codes(rows: Rows, name: str, one: Column) -> Integers:
            found = rows.values[name]
            return bin_codes(found, one) if isinstance(one, Bounded) else found

        def added(rows: Rows) -> Integers:  # of public things alone: it goes to an engine's workers
            place = np.zeros(rows.n, dtype=np.int64)
            for name, one in strata:
                place = place * len(levels_of(one)) + codes(rows, name, one)
            treated = codes(rows, treatment, arm)
            unit = (rows.values[outcome].astype(np.float64) - value.lower) / value.width
            return assigned_sum(unit, by[treated, place], rows.masses(GRID))

        names = (treatment, outcome, *question.strata)
        total = question.table.records(names, parts=True).sum(added)
        query = Query(total, assigned_sum_sensitivity(), "the difference of arms")
        noisy = float(geometric(query, run.budget, spent.part(DIFFERENCE))[0]) / GRID
        cells = noisy_cells(sums_of(question), spent.part(1 - DIFFERENCE), run.budget)
        return _answer(question, arms, noisy * float(arms.shares.max()) / 2, _deviation(arms, spent), cells)

    def rehearsal(self, n: int, strata: int, share: float, rng: PublicGenerator) -> SimulatedDesign:
        """Return n simulated records in arms whose sizes are in the proportions of ``sizes``."""
        counts = _in_proportion(self.sizes, n, strata)
        arms, places = (np.repeat(axis.ravel(), counts.ravel()) for axis in np.indices(counts.shape))
        sizes = counts[:, 0] if strata == 1 else counts
        return SimulatedDesign(replace(self, sizes=sizes.tolist()), len(counts), arms, places)


def _in_proportion(sizes: Any, n: int, strata: int) -> Integers:
    """Return sizes of levels by strata that add up to n, in the proportions of those given: by largest remainders."""
    told = parse_array(sizes)
    fits = told.size > 0 and told.size == len(told) * strata
    if not fits or len(told) < 2 or not 0 < told.min() <= told.max() < math.inf:
        raise ParameterError(
            f"a plan of method 'assigned' needs sizes: of each level of the treatment, by {strata} strata"
        )
    shares = told.reshape(len(told), strata) * n / told.sum()
    counts: Integers = np.floor(shares).astype(np.int64)
    most = np.argsort(-(shares - counts), axis=None, kind="stable")[: n - int(counts.sum())]
    counts.ravel()[most] += 1
    return counts


def _deviation(arms: _Arms, loss: Paid) -> float:
    if not isinstance(loss, PureDP):
        return 0.0
    scale = laplace_scale(2 * GRID, loss.part(DIFFERENCE))
    return math.sqrt(geometric_variance(scale)) / GRID * float(arms.shares.max()) / 2


def _answer(question: EffectQuestion, arms: _Arms, sum_of_all: float, noise: float, cells: NoisyCells) -> Effect:
    sums, of_squares, astray = arms.sums(cells, question)
    shares, within = arms.shares, sums.T / sums.N
    other, other_noise = float((shares * sums.N * within * [[-1], [1]]).sum()), sums.noise[1, 1] * (shares**2).sum()
    first = 1.0 if other_noise == 0 else other_noise / (other_noise + noise**2)
    drowned = first**2 * noise**2 + (1 - first) ** 2 * float(other_noise)
    spread = sums.Q - (sums.T**2 - sums.noise[1, 1]) / sums.N
    degrees = sums.N / (sums.N - 1)
    sampling = float((shares**2 * spread * degrees).sum())
    unsure = math.sqrt(float((shares**4 * (of_squares + 4 * within**2 * sums.noise[1, 1])).sum()))
    most = float((shares**2 * sums.N * degrees).sum()) / 4
    return TrialEstimate(
        estimate=first * sum_of_all + (1 - first) * other, drowned=drowned, weights=shares, within=within,
        sampling=min(max(sampling + MARGIN * unsure, 0.0), most),
        wide=np.maximum(spread, 0.0) / sums.N + 2 * math.sqrt(of_squares) / sums.N,
        reason=OTHERWISE if astray > ASTRAY else "",
    ).told(question, cells, sums, "assigned")  # fmt: skip
