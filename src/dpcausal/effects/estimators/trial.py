"""``"trial"``: a trial whose arm sizes or assignment probabilities are known, as one noisy sum beside noisy cells.

Who was in which arm is protected like the rest.  Proofs: ``trial_design.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.core.method import Run, SumsOverRows
from dpcausal.data.coding import column_codes
from dpcausal.data.records import Rows
from dpcausal.data.schema import Bounded
from dpcausal.effects.cells.api import Paid, cell_variance, noisy_cells
from dpcausal.effects.cells.corner_counts import GRID, NoisyCells, levels_of
from dpcausal.effects.cells.effect import (
    MOST_SKEW,
    SKEWED,
    UNMEASURED,
    WIDE,
    WIDEST,
    robustness_value,
    unmeasured_fields,
)
from dpcausal.effects.cells.standardise import (
    LEAST_COUNT,
    LEAST_EXACT,
    UNSEEN,
    Sums,
    means,
    tail_quantile,
    third_cumulant,
)
from dpcausal.effects.estimators import trial_design as design
from dpcausal.effects.estimators.stratified import sums_of
from dpcausal.effects.estimators.trial_design import CentredScores, DrawnArms, SizedArms, SumEstimate
from dpcausal.effects.question import EffectMethod, EffectQuestion, SimulatedDesign
from dpcausal.effects.result import Effect, normal_reach
from dpcausal.errors import FenceError, InfeasibleError, LossError, ParameterError, Setting
from dpcausal.mechanisms.additive import geometric
from dpcausal.privacy.loss import Loss, NoPrivacy, PureDP
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Query

Codes = Callable[[Rows], tuple[Integers, Integers, Reals]]
MOST_NOISE = 0.25
"""Refused where the noise is predicted to be a larger part of the outcome's range."""
NO_GAIN = "by public numbers method 'stratified' has no wider an interval here: use it, it also estimates groups better"
IF_SIZES = (
    "right if arms have the sizes that were given and no outcome is missing: a row without one counts as the middle "
    "of the range"
)
IF_PROBABILITIES = "right if each was assigned independently, with the probabilities that were given"


@dataclass(frozen=True, kw_only=True)
class RandomizedTrial(SumsOverRows, EffectMethod):
    """The effect in a trial whose arm sizes or assignment probabilities are known; ``PureDP``.

    Parameters
    ----------
    sizes : list
        Rows (or persons) of each level of the treatment in the schema's order, as 150,350. By strata, where some are
        named in ``adjust``, one list a level, as text 60,90;80,40.
    probabilities : list
        Of each level of the treatment in the schema's order, as 0.8,0.2. By strata, where they differ among those named
        in ``adjust``, one list a level, as text 0.8,0.7;0.2,0.3.

    Notes
    -----
    Give one of the two.  Probabilities need independent assignment of each row, sizes do not.
    """

    name: ClassVar[str] = "trial"
    about: ClassVar[str] = "one sum over a trial with known sizes or probabilities"
    losses: ClassVar[tuple[type[Loss], ...]] = (PureDP,)
    proofs: ClassVar[tuple[str, ...]] = ("corner-counts", "geometric")
    is_trial: ClassVar[bool] = True
    sizes: Any = None
    probabilities: Any = None

    def proofs_of(self, question: EffectQuestion, loss: PureDP | NoPrivacy) -> tuple[str, ...]:
        return ("assigned-sum" if self._sized else "centred-score", *self.proofs)

    def plan(self, question: EffectQuestion, loss: PureDP | NoPrivacy) -> RandomizedTrial:
        given = "sizes" if self._sized else "probabilities"
        if question.table.weighed:
            raise ParameterError(
                "method 'trial' has no proof for survey weights", argument="method", rule="weights",
                hint=("use ", Setting("method", "stratified"), ", or a table without ", Setting("weight")),
            )  # fmt: skip
        try:
            noise, least = (self._plan_sizes if self._sized else self._plan_probabilities)(question, loss)
        except FenceError:
            raise LossError(f"{loss} is too small for {question.n} rows: use a larger epsilon") from None
        if noise > MOST_NOISE:
            raise InfeasibleError(
                f"{least} at {loss} predict noise of up to {noise:.2g} of the outcome's range, and {MOST_NOISE:g} is "
                f"the most: use {noise / MOST_NOISE:.2g} times the epsilon, or as many times the rows",
                argument=given, rule="noise", value=noise,
            )  # fmt: skip
        if self._sized:
            return replace(self, sizes=design.parse_array(self.sizes).astype(np.int64).tolist())
        return replace(self, probabilities=design.parse_array(self.probabilities).tolist())

    @property
    def _sized(self) -> bool:
        if (self.sizes is None) is (self.probabilities is None):
            raise ParameterError(
                "method 'trial' needs sizes or probabilities, one of both", argument="sizes", rule="one of two",
                hint="give sizes where the arm sizes are known, else the assignment probabilities",
            )  # fmt: skip
        return self.sizes is not None

    def _plan_sizes(self, question: EffectQuestion, loss: Paid) -> tuple[float, str]:
        if question.table.inside:
            raise ParameterError(
                "sizes are those of all rows, and the arms of a subgroup have others",
                argument="sizes", rule="subgroup",
                hint=("use ", Setting("method", "stratified"), ", or make a table of the subgroup alone"),
            )  # fmt: skip
        arms = SizedArms.of(question, self.sizes, LEAST_EXACT if loss.exact else LEAST_COUNT)
        noise = arms.deviation(loss)
        cell_variance(1, loss.part(1 - design.SUM_SHARE))
        return noise, f"arms of {arms.counts.min():.0f}"

    def _plan_probabilities(self, question: EffectQuestion, loss: Paid) -> tuple[float, str]:
        if question.estimand != "ate":
            raise ParameterError(
                "probabilities need estimand 'ate', the average effect for all", argument="estimand", rule="choice",
                value=question.estimand, hint=("use ", Setting("estimand", "ate")),
            )  # fmt: skip
        arms, n = DrawnArms.of(question, self.probabilities), question.n
        if not isinstance(question.column(question.outcome), Bounded) and not arms.gains(n, loss):
            raise InfeasibleError(
                f"for {n} rows at {loss} method 'stratified' is as accurate by public numbers, and has limits also "
                "where few records have the outcome",
                argument="method", rule="no gain", hint=("use ", Setting("method", "stratified")),
            )  # fmt: skip
        share = arms.share(n, loss)
        noise = float((1 / arms.arms).sum(axis=0).max()) * design.noise_deviation(GRID, loss.part(share)) / n
        cell_variance(1, loss.part(1 - share))
        return noise, f"{n} rows and a probability of {arms.arms.min():g}"

    def caveats(self, question: EffectQuestion, loss: PureDP | NoPrivacy) -> tuple[str, ...]:
        if self._sized:
            return (IF_SIZES,)
        gains = DrawnArms.of(question, self.probabilities).gains(question.n, loss)
        return (IF_PROBABILITIES,) if gains else (IF_PROBABILITIES, NO_GAIN)

    def release(self, run: Run[EffectQuestion]) -> Effect:
        return (self._release_sized if self._sized else self._release_drawn)(run)

    def _release_sized(self, run: Run[EffectQuestion]) -> Effect:
        question, loss = run.question, run.loss
        arms = SizedArms.of(question, self.sizes)
        weights, codes = arms.row_weights(), row_codes(question)

        def added(rows: Rows) -> Integers:
            arm, place, unit = codes(rows)
            return design.assigned_sum(unit, weights[arm, place], rows.masses(GRID))

        query = Query(_total(question, added), design.assigned_sum_sensitivity(), "the difference of arms")
        total = float(geometric(query, run.budget, loss.part(design.SUM_SHARE))[0]) / GRID
        cells = noisy_cells(sums_of(question), loss.part(1 - design.SUM_SHARE), run.budget)
        estimate, sums = arms.estimate(question, cells, total * float(arms.weights.max()) / 2, arms.deviation(loss))
        return effect_of(question, cells, sums, estimate)

    def _release_drawn(self, run: Run[EffectQuestion]) -> Effect:
        question, loss = run.question, run.loss
        arms = DrawnArms.of(question, self.probabilities)
        share = arms.share(question.n, loss)
        cells = noisy_cells(sums_of(question), loss.part(1 - share), run.budget)
        centred, codes = CentredScores.of(arms, cells, question), row_codes(question)
        low, high = centred.ends
        width = high - low

        def added(rows: Rows) -> Integers:
            arm, place, unit = codes(rows)
            return design.centred_score(centred.scores(unit, arm, place) / width, -low / width, rows.masses(GRID))

        query = Query(_total(question, added), design.centred_score_sensitivity(), "the sum of centred scores")
        total = float(geometric(query, run.budget, loss.part(share))[0]) / GRID
        n, noise = centred.counted(question.n), design.noise_deviation(GRID, loss.part(share))
        return effect_of(question, cells, centred.sums, centred.estimate(total * width / n, noise * width / n, n))

    def simulated_design(self, n: int, strata: int, share: float, rng: PublicGenerator) -> SimulatedDesign:
        """Return n simulated records: arms in the proportions of ``sizes``, or drawn with ``probabilities``."""
        if self._sized:
            counts = _in_proportion(self.sizes, n, strata)
            arms, places = (np.repeat(axis.ravel(), counts.ravel()) for axis in np.indices(counts.shape))
            sizes = counts[:, 0] if strata == 1 else counts
            return SimulatedDesign(replace(self, sizes=sizes.tolist()), len(counts), arms, places)
        table = design.parse_array(self.probabilities)
        table = np.tile(table[:, None], (1, strata)) if table.ndim == 1 else table.reshape(len(table), -1)
        if table.shape[1:] != (strata,) or len(table) < 2 or np.abs(table.sum(axis=0) - 1).max() > 1e-9:
            raise _unplanned("probabilities", "with sum 1", strata)
        places = rng.integers(0, strata, n)
        below = np.cumsum(table, axis=0)[:-1, places]
        return SimulatedDesign(
            replace(self, probabilities=(table[:, 0] if strata == 1 else table).tolist()), len(table),
            (rng.random(n) >= below).sum(axis=0), places,
        )  # fmt: skip


def row_codes(question: EffectQuestion) -> Codes:
    """Return the function from rows to arm, stratum and outcome in [0, 1]. It holds public things alone: it goes to an
    engine's workers."""
    outcome, value = question.outcome, question.value
    columns = tuple((name, question.column(name)) for name in (question.treatment, *question.strata))

    def codes(rows: Rows) -> tuple[Integers, Integers, Reals]:
        arm, *strata = (column_codes(rows.values[name], column) for name, column in columns)
        place = np.zeros(rows.n, dtype=np.int64)
        for (_, column), code in zip(columns[1:], strata, strict=True):
            place = place * len(levels_of(column)) + code
        return arm, place, (rows.values[outcome].astype(np.float64) - value.lower) / value.width

    return codes


def _total(question: EffectQuestion, added: Any) -> Any:
    names = (question.treatment, question.outcome, *question.strata)
    return question.table.records(names, parts=True).sum(added)


def _unplanned(argument: str, kind: str, strata: int) -> ParameterError:
    return ParameterError(
        f"{argument} must be numbers {kind} in a plan: one for each level of the treatment, by {strata} strata",
        argument=argument, rule="shape",
    )  # fmt: skip


def _in_proportion(sizes: Any, n: int, strata: int) -> Integers:
    """Return sizes of levels by strata that add up to n, in the proportions of those given: by largest remainders."""
    given = design.parse_array(sizes)
    fits = given.size > 0 and given.size == len(given) * strata
    if not fits or len(given) < 2 or not 0 < given.min() <= given.max() < math.inf:
        raise _unplanned("sizes", "above 0", strata)
    shares = given.reshape(len(given), strata) * n / given.sum()
    counts: Integers = np.floor(shares).astype(np.int64)
    most = np.argsort(-(shares - counts), axis=None, kind="stable")[: n - int(counts.sum())]
    counts.ravel()[most] += 1
    return counts


def effect_of(question: EffectQuestion, cells: NoisyCells, sums: Sums, one: SumEstimate) -> Effect:
    """Return an estimate as an effect in the outcome's unit, with the groups and the balance of the cells."""
    by_cells, width = cells.effect(**question.options), question.value.width
    variance, largest = one.sampling + one.noise, float(one.weights.max())
    estimate, error = float(one.estimate) * width, math.sqrt(variance)
    third = min(
        largest * one.sampling, third_cumulant(sums.N, one.means, one.variances, one.weights[1], one.weights[0])
    )
    skewness = max((third + unseen * largest**3) / max(variance + unseen * largest**2, 1e-100) ** 1.5
                   for unseen in (0, UNSEEN))  # fmt: skip
    normal = normal_reach(question.coverage)
    kurtosis = (one.laplace / max(variance, 1e-100)) ** 2  # Cornish & Fisher: that of a Laplace number is 3
    half = float(normal + max(normal**3 - 3 * normal, 0.0) / 8 * kurtosis) * error
    wider = max(tail_quantile(error**2, largest, normal) / half, 1.0) if skewness > MOST_SKEW and half > 0 else 1.0
    half *= wider
    reason = one.reason or (SKEWED if wider > 1 and half > WIDEST else "")
    interval = None if reason else (estimate - half * width, estimate + half * width)
    fields: dict[str, Any] = dict.fromkeys(UNMEASURED)
    adjusted = means(sums, question.estimand == "att")
    if interval is not None and adjusted.partial_r2 < 1:
        robust = robustness_value(adjusted.partial_r2)
        fields |= unmeasured_fields(robust, estimate, interval, math.sqrt(adjusted.spread) * width)
    return replace(
        by_cells, estimate=estimate, interval=interval, interval_reason=reason, standard_error=error * width,
        noise_error=math.sqrt(one.noise) * width, share_supported=1.0, **fields, release=cells, method="trial",
        signal_to_noise=math.inf if one.noise == 0 else abs(one.estimate) / math.sqrt(one.noise),
        notes=(*(note for note in by_cells.notes if "supported" not in note and "as a normal one" not in note),
               *((WIDE.format(wider),) if wider > 1 and interval is not None else ())),
    )  # fmt: skip
