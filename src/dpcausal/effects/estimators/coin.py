"""``"coin"``: a trial in which each was assigned by a coin of known probability, as one sum of centred scores.

With π_az public, c_az the middles of the outcome by arm and stratum and d_z = c_1z − c_0z, the mean of

    φ = d_z + (y − c_1z)/π_1z of a treated row,  d_z − (y − c_0z)/π_0z of a control,  d_z of another

is the effect whatever the c are.  An eighth or more of ε buys noisy cells, whose means are the c; the rest the sum of
φ − r, r = Σ W_z d_z, whose reach follows from the c (claim ``centred-score``).  How many are in each arm is private.
Proof: ``coin.md``.
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
from dpcausal.effects.cells.corner_counts import GRID
from dpcausal.effects.cells.effect import arms_of
from dpcausal.effects.cells.release import NoisyCells
from dpcausal.effects.cells.standardise import LEAST_COUNT, LEAST_EXACT, Sums
from dpcausal.effects.cells.value import levels_of, value_of
from dpcausal.effects.estimators.stratified import sums_of
from dpcausal.effects.estimators.trial import TrialEstimate, parse_array
from dpcausal.effects.question import EffectMethod, EffectQuestion, SimulatedDesign
from dpcausal.effects.result import Effect
from dpcausal.errors import FenceError, InfeasibleError, LossError, ParameterError
from dpcausal.mechanisms.additive import geometric, laplace_scale
from dpcausal.privacy.loss import Loss, NoPrivacy, PureDP
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity
from dpcausal.releases.counts import geometric_variance

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

LEAST_CHANCE = 0.01
STEPS = 2**20
"""Where 0 lies in the reach of a score is a multiple of 1/STEPS, so that both ends are exact."""
MOST_NOISE = 0.25
"""Refused where the noise is predicted to be a larger part of the outcome's range."""
MARGIN = 0.5
"""So many deviations of its noise are added to the variance."""
ASTRAY = 5.0
"""No interval where the share of an arm is so many deviations, of coin and noise, from what was given."""
GONE = 4.0
"""Records count as left out where so many deviations of the noise say that they are."""

NO_GAIN = "by public numbers method 'stratified' has no wider an interval here, and estimates groups better"
OTHERWISE = "the arms' shares are not the probabilities that were given, by more than coin and noise explain"


def centred_score(places: Reals, zero: float, mass: Integers) -> Integers:
    """Return Σ of the rows' masses times place, moved to within −zero and 1 − zero: one whole number.

    Parameters
    ----------
    places : float array, shape (n,)
        Scores over their reach; what is no number counts as 0.
    zero : float
        Where 0 lies in the reach, from 0 to 1; taken down to a multiple of 1/``STEPS``.
    mass : int64 array, shape (n,)
        At most ``GRID`` a unit; 0 of what is left out.
    """
    below = math.floor(min(max(zero, 0.0), 1.0) * STEPS) / STEPS
    inside = np.clip(np.nan_to_num(places, nan=0.0), -below, 1.0 - below)
    return np.array([np.trunc(mass * inside).astype(np.int64).sum()], dtype=np.int64)


def centred_score_sensitivity() -> Sensitivity:
    """Return the sensitivity of ``centred_score``: ``GRID``, the whole reach of one score."""
    return Sensitivity(GRID, Norm.L1, Relation.REPLACE_ONE, "centred-score", symmetric=True)


@dataclass(frozen=True)
class _Design:
    """The declared probabilities of all levels by stratum, and which two are compared."""

    pair: tuple[int, int]
    told: Reals
    """Shape (levels, strata)."""

    @classmethod
    def of(cls, question: EffectQuestion, probabilities: Any) -> _Design:
        levels = levels_of(question.column(question.treatment))
        strata = tuple(len(levels_of(question.column(name))) for name in question.strata)
        shape = (len(levels), *strata)
        told = parse_array(probabilities)
        if told.shape == (len(levels),):
            told = np.broadcast_to(told.reshape(-1, *[1] * len(strata)), shape)
        whole = told.shape == shape and bool(np.all((told >= 0) & (told <= 1)))
        if not whole or np.abs(told.sum(axis=0) - 1).max() > 1e-9:
            raise ParameterError(
                f"method 'coin' needs probabilities, one of each level of {question.treatment!r} in the schema's order "
                f"that add up to 1, or of shape {shape}: one list a level, by {', '.join(question.strata) or 'strata'}"
            )
        pair = arms_of(levels, question.treatment, question.treated, question.control)
        design = cls(pair, told.reshape(len(levels), -1))
        if design.chances.min() < LEAST_CHANCE:
            raise ParameterError(f"probabilities of both arms must be at least {LEAST_CHANCE:g}")
        return design

    @property
    def chances(self) -> Reals:
        """Of control and treated, by stratum."""
        found: Reals = self.told[list(self.pair)]
        return found

    def foretold(self, n: int, epsilon: float) -> tuple[Fraction, float, float]:
        """Return the part of ε for the scores, and the variances that it and ``stratified`` add: public, see
        ``coin.md``.

        For means at a quarter of the range and strata of one size.
        """
        p, strata = self.chances, self.chances.shape[1]
        reach = float(np.maximum(0.75 / p[1], 0.25 / p[0]).max() + np.maximum(0.25 / p[1], 0.75 / p[0]).max())
        by_scores = 2 * (reach / (n * epsilon)) ** 2
        of_mean = 5.5 * (strata / (n * epsilon * p)) ** 2
        by_centres = float((of_mean * (1 - p) / p).sum()) / (n * strata)
        by_squares = MARGIN * math.sqrt(2.84 * float((1 / (n * p) ** 4).sum())) / epsilon
        parts = [Fraction(part, 64) for part in range(16, 61)]
        added = [by_scores / part**2 + by_centres / (1 - part) ** 2 + by_squares / (1 - part) for part in parts]
        least = min(added)
        return parts[added.index(least)], least, float(of_mean.sum()) / strata**2

    def gains(self, n: int, loss: Paid) -> bool:
        """Return whether less noise is expected than by ``stratified``; without privacy there is nothing to gain."""
        if not isinstance(loss, PureDP):
            return True
        _, own, of_cells = self.foretold(n, loss.epsilon)
        return own <= of_cells

    def share(self, n: int, loss: Paid) -> Fraction:
        """Return the part of ε that the scores get."""
        return self.foretold(n, loss.epsilon)[0] if isinstance(loss, PureDP) else Fraction(1, 2)


@dataclass(frozen=True)
class _CentredScores:
    """What noisy cells and the declared probabilities show of the arms.

    The scores' centres, and the reach that follows.
    """

    design: _Design
    N: Reals
    T: Reals
    Q: Reals
    noise: Reals
    """Covariance of the noise of (N, T, Q), by arm and stratum in the last two axes."""
    everybody: Reals
    """Counts of all levels by stratum."""
    gone: bool
    """Whether the counts say clearly that some records are left out."""
    astray: float

    @classmethod
    def of(cls, design: _Design, cells: NoisyCells, question: EffectQuestion) -> _CentredScores:
        """Return them, the noise of counts taken down by what the coin is known to give: least squares."""
        value = value_of(question.outcome, question.column(question.outcome))
        raw, noise = cells.sums(value, [cells.by.index(name) for name in (question.treatment, *question.strata)])
        levels = raw.reshape(3, len(design.told), -1)
        arms = levels[:, list(design.pair)]
        total, p = levels[0].sum(axis=0), design.chances
        off = arms[0] - p * total
        spread = np.maximum(total, 0.0) * p * (1 - p) + noise[0, 0] * ((1 - p) ** 2 + (len(levels[0]) - 1) * p**2)
        spread = np.maximum(spread, 1e-9)
        along = noise[0][:, None, None] * (1 - p)
        N, T, Q = arms - along * off / spread
        left = noise[:, :, None, None] - along[:, None] * along[None] / spread
        lacking = question.n - float(total.sum())
        gone = lacking > GONE * math.sqrt(float(noise[0, 0]) * levels[0].size) + 1e-6 * question.n
        astray = float((np.abs(off) / np.sqrt(spread)).max())
        least = LEAST_COUNT if noise.any() else LEAST_EXACT
        return cls(design, np.maximum(N, least), T, Q, left, np.maximum(total, 0.0), gone, astray)

    @property
    def centres(self) -> Reals:
        return np.clip(self.T / self.N, 0.0, 1.0)

    @property
    def gaps(self) -> Reals:
        """Treated less control by stratum."""
        below, above = self.centres
        return np.asarray(above - below)

    @property
    def weights(self) -> Reals:
        return self.everybody / max(float(self.everybody.sum()), 1e-9)

    @property
    def first(self) -> float:
        """The effect by the centres alone."""
        return float(self.weights @ self.gaps)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest score less ``first``; 0 lies within."""
        (c0, c1), (p0, p1), d = self.centres, self.design.chances, self.gaps - self.first
        low = np.concatenate([d - c1 / p1, d - (1 - c0) / p0])
        high = np.concatenate([d + (1 - c1) / p1, d + c0 / p0])
        return min(float(low.min()), 0.0), max(float(high.max()), 0.0)

    def scores(self, unit: Reals, arm: Integers, place: Integers) -> Reals:
        """Return φ − r of rows by their outcome's place in the range, level and stratum."""
        weight, centre = np.zeros(self.design.told.shape), np.zeros(self.design.told.shape)
        for sign, code, of, by in zip((-1, 1), self.design.pair, self.centres, self.design.chances, strict=True):
            weight[code], centre[code] = sign / by, of
        found: Reals = (self.gaps - self.first)[place] + weight[arm, place] * (
            np.clip(np.nan_to_num(unit, nan=0.5), 0.0, 1.0) - centre[arm, place]
        )
        return found

    def counted(self, n: int) -> float:
        """Return how many records count."""
        return max(float(self.everybody.sum()), n / 4) if self.gone else float(n)

    def answer(self, moved: float, noise: float, n: float) -> TrialEstimate:
        """Return the estimate: what the centres say, moved by the scores as far as the noise of both says."""
        c, chances, W = self.centres, self.design.chances, self.weights
        (nn, nt, nq), (_, tt, tq), (_, _, qq) = self.noise
        of_mean = tt - 2 * c * nt + c * c * nn
        of_first = float((W**2 * of_mean / self.N**2).sum())
        part = 1.0 if of_first == 0 else of_first / (of_first + noise**2)
        by = 1 / (n * chances)
        squares = self.Q - 2 * c * self.T + c * c * self.N + 2 * of_mean / self.N
        unsure = np.sqrt(of_mean)
        of_squares = qq + 4 * c * c * tt + c**4 * nn - 4 * c * tq + 2 * c * c * nq - 4 * c**3 * nt
        sampling = float((by**2 * squares * self.N / (self.N - 1)).sum())
        sampling += MARGIN * math.sqrt(float((by**4 * of_squares).sum()))
        ends = self.everybody * chances * np.maximum(c, 1 - c) ** 2
        most = float((by**2 * np.minimum(self.N * c * (1 - c) + unsure + 2 * of_mean / self.N, ends)).sum())
        noise_of_gaps = (of_mean / self.N**2).sum(axis=0)
        between = max(float(W @ ((self.gaps - self.first) ** 2 - (1 - W) * noise_of_gaps)), 0.0) / n
        return TrialEstimate(
            estimate=self.first + part * moved, drowned=(part * noise) ** 2 + (1 - part) ** 2 * of_first,
            sampling=between + min(max(sampling, 0.0), most), weights=by, within=c,
            wide=np.maximum(squares, 0.0) / self.N + 2 * np.sqrt(of_squares) / self.N,
            of_one=(part * noise) ** 2, reason=OTHERWISE if self.astray > ASTRAY else "",
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Coin(SumsOverRows, EffectMethod):
    """The mean effect in a trial that assigned each by a coin of known probability; ``PureDP``.

    Parameters
    ----------
    probabilities : list
        Of each level of the treatment in the schema's order, as 0.8,0.2. By strata, where they differ among those named
        in ``adjust``, one list a level, as text 0.8,0.7;0.2,0.3.
    """

    name: ClassVar[str] = "coin"
    about: ClassVar[str] = "one score over a trial by coin"
    losses: ClassVar[tuple[type[Loss], ...]] = (PureDP,)
    proofs: ClassVar[tuple[str, ...]] = ("centred-score", "corner-counts", "geometric")
    is_trial: ClassVar[bool] = True

    probabilities: Any = None

    def plan(self, question: EffectQuestion, loss: PureDP | NoPrivacy) -> Coin:
        if question.table.weighed:
            raise ParameterError("method 'coin' has no proof for survey weights")
        if question.estimand != "ate":
            raise ParameterError("method 'coin' estimates the average effect for everybody: use estimand 'ate'")
        design, n = _Design.of(question, self.probabilities), question.n
        if _of_two_levels(question) and not design.gains(n, loss):
            raise InfeasibleError(
                f"for {n} rows at {loss} take method 'stratified': by public numbers it does as well, and of two "
                f"levels it "
                "has limits also where few records have the outcome"
            )
        share = design.share(n, loss)
        try:
            noise = float((1 / design.chances).sum(axis=0).max()) * _deviation(loss, share) / n
            cell_variance(1, loss.part(1 - share))
        except FenceError:
            raise LossError(f"{loss} is too little here: the noise could not be drawn") from None
        if noise > MOST_NOISE:
            raise InfeasibleError(
                f"{n} rows and a coin of {design.chances.min():g} at {loss} predict noise of up to {noise:.2g} of "
                f"the outcome's range, and {MOST_NOISE:g} is the most: {noise / MOST_NOISE:.2g} times the epsilon, or "
                "rows, would be enough"
            )
        return replace(self, probabilities=parse_array(self.probabilities).tolist())

    def caveats(self, question: EffectQuestion, loss: PureDP | NoPrivacy) -> tuple[str, ...]:
        told = "right if each was assigned by itself, with the probabilities that were given"
        gains = _Design.of(question, self.probabilities).gains(question.n, loss)
        return (told,) if gains else (told, NO_GAIN)

    def release(self, run: Run[EffectQuestion]) -> Effect:
        question, spent = run.question, run.loss
        design = _Design.of(question, self.probabilities)
        share = design.share(question.n, spent)
        cells = noisy_cells(sums_of(question), spent.part(1 - share), run.budget)
        centred = _CentredScores.of(design, cells, question)
        low, high = centred.ends
        outcome, value = question.outcome, value_of(question.outcome, question.column(question.outcome))
        named = tuple((name, question.column(name)) for name in (question.treatment, *question.strata))

        def codes(rows: Rows, name: str, one: Column) -> Integers:
            found = rows.values[name]
            return bin_codes(found, one) if isinstance(one, Bounded) else found

        def scored(rows: Rows) -> Integers:  # of public things alone: it goes to an engine's workers
            arm, *strata = (codes(rows, name, one) for name, one in named)
            place = np.zeros(rows.n, dtype=np.int64)
            for (_, one), code in zip(named[1:], strata, strict=True):
                place = place * len(levels_of(one)) + code
            unit = (rows.values[outcome].astype(np.float64) - value.lower) / value.width
            places = centred.scores(unit, arm, place) / (high - low)
            return centred_score(places, -low / (high - low), rows.masses(GRID))

        names = (question.treatment, outcome, *question.strata)
        total = question.table.records(names, parts=True).sum(scored)
        query = Query(total, centred_score_sensitivity(), "the sum of centred scores")
        noisy = float(geometric(query, run.budget, spent.part(share))[0]) / GRID
        n, reach = centred.counted(question.n), high - low
        found = centred.answer(noisy * reach / n, _deviation(spent, share) * reach / n, n)
        known = Sums(centred.N, centred.T, centred.Q, centred.noise[:2, :2].max(axis=(2, 3)))
        return found.told(question, cells, known, self.name)

    def rehearsal(self, n: int, strata: int, share: float, rng: PublicGenerator) -> SimulatedDesign:
        """Return n simulated records, each assigned with the declared probabilities."""
        told = parse_array(self.probabilities)
        told = np.tile(told[:, None], (1, strata)) if told.ndim == 1 else told.reshape(len(told), -1)
        if told.shape[1:] != (strata,) or len(told) < 2 or np.abs(told.sum(axis=0) - 1).max() > 1e-9:
            raise ParameterError(
                f"a plan of method 'coin' needs probabilities: of each level of the treatment, by {strata} strata"
            )
        places = rng.integers(0, strata, n)
        below = np.cumsum(told, axis=0)[:-1, places]
        return SimulatedDesign(
            replace(self, probabilities=(told[:, 0] if strata == 1 else told).tolist()), len(told),
            (rng.random(n) >= below).sum(axis=0), places,
        )  # fmt: skip


def _of_two_levels(question: EffectQuestion) -> bool:
    return not isinstance(question.column(question.outcome), Bounded)


def _deviation(loss: Paid, share: Fraction) -> float:
    if not isinstance(loss, PureDP):
        return 0.0
    return math.sqrt(geometric_variance(laplace_scale(GRID, loss.part(share)))) / GRID
