"""The scores of rows, how many are extreme, where they are cut, and what the cut may have taken.

A sum of cut scores has less noise, and loses what lies beyond the cut.  Noisy counts between cuts estimate the loss:
their skew, above less below, times how far beyond the cut they lie.  Up to an edge, about the fourth root of n
spreads, the interval allows for all that noise and chance may hide; beyond it for what counts show.  So it is an
interval for the mean of scores that are cut at the edge, unless the bounds of the columns show that none can lie
beyond.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from dpcausal.arrays import Integers, Mask, Reals
from dpcausal.data.coding import column_codes
from dpcausal.data.records import Rows
from dpcausal.data.schema import Column
from dpcausal.effects.cells.corner_counts import GRID, corner_counts, corners, functionals, levels_of
from dpcausal.effects.moments.release import JointMoments
from dpcausal.effects.nuisance.design import FIRST, OUTCOME, TREATMENT, Design
from dpcausal.effects.question import EffectQuestion

LEAST_PROBABILITY = 0.05
NEAREST, INNER, OUTER, STEP = 2.5, 4, 2, 1.75
"""Multiples of the spread that scores may be cut at: so many from the nearest to the edge, and farther ones."""
WIDER = 1.2
"""The spread of the scores is taken for so many times what the lines predict."""
REACH, LEAST_SQUARE, HEAVY = 0.5, 0.6, 1.44
"""The last scores go on for so many of their cut.  The edge is farther where so many times the root mean square of
scores, in spreads, that within the nearest cut taken for so much, is above 1."""
SEEN, ESCAPED = 2.0, 2.5
"""Counts of one side of that many deviations move the edge beyond them, and beyond all cuts leave no interval."""
DOUBTED, DOUBTED_BEYOND = 0.5, 1.0
"""Of what the counts show inside and beyond the edge, so many deviations are taken for noise and chance."""
NEAR, NET, ALLOWED = 2, 0.5, 1.5
"""Of short tails: the number of cuts, how far they go on beyond one, and how much of their skew is doubted."""


FEW_IN_ARM = (
    "one arm has about {:.0%} of the records, as far as the noise shows, and an interval needs {:.0%}: method "
    "'stratified' needs fewer"
)
LIMITED = (
    "about {:.0%} of the records have an estimated probability of treatment below {:.2g} or above {:.2g}. They count "
    "with that limit: where effects differ, the estimate gives them too little weight"
)
NO_OVERLAP = (
    "{:.0%} of the records have an estimated probability of treatment below {:.2g} or above {:.2g}, and an interval "
    "allows {:.0%}: leave out strata whose treatment is nearly certain, or take method 'partially-linear'"
)


def overlap_reason(
    treated: float, inside: float, least_in_arm: float, least_inside: float, limit: float = LEAST_PROBABILITY
) -> str:
    """Return why overlap is too little for an interval, from the shares of treated and of probabilities inside."""
    smaller = min(treated, 1 - treated)
    if smaller <= least_in_arm:
        return FEW_IN_ARM.format(max(smaller, 0.0), least_in_arm)
    return "" if inside >= least_inside else NO_OVERLAP.format(1 - inside, limit, 1 - limit, 1 - least_inside)


@dataclass(frozen=True)
class Nuisances:
    """What the moments say, in units of the columns: lines of outcome and treatment, and where scores lie. ``error`` is
    that of the centre, ``weight`` that of a residual of the rarer arm at its mean probability."""

    outcome: Reals
    treatment: Reals
    centre: float
    spread: float
    error: float = 0.0
    weight: float = 2.0
    effect: Reals | None = None
    """Slopes and intercept of the effect less that of the outcome's line, along the same columns."""
    effect_covariance: Reals = field(default_factory=lambda: np.zeros((0, 0)))
    """Of these slopes, along the columns of the released moments about their middles, the constant last."""

    @property
    def arm_imbalance(self) -> float:
        """How many times as extreme, in spreads, scores of the rarer arm lie as in arms of one size."""
        return math.sqrt(max(self.weight - 1, 1.0))

    def farthest(self, middles: Reals, halves: Reals) -> float:
        """Return how far from the centre, in spreads, a score can lie by the ranges of the columns: no row is read."""

        def ends(slopes: Reals) -> tuple[float, float]:
            middle, half = (
                float(slopes[:-1] @ middles[FIRST:] + slopes[-1]),
                float(np.abs(slopes[:-1]) @ halves[FIRST:]),
            )
            return middle - half, middle + half

        (low, high), chances = ends(self.outcome[1:]), np.array(ends(self.treatment))
        least, most = np.clip(chances, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        top, bottom = float(middles[OUTCOME] + halves[OUTCOME]), float(middles[OUTCOME] - halves[OUTCOME])
        control, treated = (max(top - low - more, high + more - bottom) for more in (0.0, float(self.outcome[0])))
        more = 0.0 if self.effect is None else float(np.abs(ends(self.effect)).max())
        return (more + max((treated + more) / float(least), (control + more) / (1 - float(most)), 0.0)) / self.spread

    def scores(self, raw: Reals) -> tuple[Reals, Mask]:
        """Return ψ, and whether the probability was cut, each row from itself alone, one column after another."""
        a, (residual, e) = raw[:, TREATMENT], self.residuals(raw)
        probability = np.clip(e, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        effect: Reals | float = 0.0
        if self.effect is not None:
            effect = along(self.effect, raw)
            residual -= (a - probability) * effect
        weight = a / probability - (1 - a) / (1 - probability)
        return self.outcome[0] + effect + residual * weight, probability != e

    def residuals(self, raw: Reals) -> tuple[Reals, Reals]:
        """Return the outcome less its line, and the treatment's line."""
        m, e = along(self.outcome[1:], raw), along(self.treatment, raw)
        return raw[:, OUTCOME] - m - self.outcome[0] * raw[:, TREATMENT], e


def along(slopes: Reals, raw: Reals) -> Reals:
    """Return a line over the columns after outcome and treatment, its intercept last, one column after another."""
    fitted = np.full(len(raw), slopes[-1])
    for place in range(FIRST, raw.shape[1]):
        fitted += slopes[place - FIRST] * raw[:, place]
    return fitted


def lines_of(moments: JointMoments, names: Sequence[str]) -> Nuisances:
    """Return the lines over columns of such names, 0 along those that the released moments do without."""
    outcome, *others = moments.columns
    first = moments.ols(outcome, others)
    second = moments.ols(others[0], others[1:]) if others[1:] else None
    mean = moments.mean(TREATMENT)
    spread = math.sqrt(max(moments.residual(outcome, others), 0.0))
    least = 1e-6 * float(moments.halves[OUTCOME])
    sharp = float(np.clip(mean, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY))
    of_treatment = {"intercept": mean} if second is None else {one.name: one.estimate for one in second.coefficients}
    of_outcome = {one.name: one.estimate for one in first.coefficients}
    treatment = np.array([of_treatment.get(name, 0.0) for name in (*names[FIRST:], "intercept")])
    slopes = np.array([of_outcome.get(name, 0.0) for name in (*names[1:], "intercept")])
    wide = WIDER * max(spread, least) / math.sqrt(sharp * (1 - sharp))
    error = first.coefficients[0].standard_error
    return Nuisances(slopes, treatment, float(slopes[0]), wide, error, 1 / min(sharp, 1 - sharp))


@dataclass(frozen=True)
class Scores:
    """The scores by groups: how many are extreme, and, once these are reported, the corner counts of what is cut."""

    lines: Nuisances
    design: Design
    groups: str | None
    column: Column | None
    size: int
    cuts: Reals
    tail_counts: Reals = field(default_factory=lambda: np.zeros((0, 0)))
    """Noisy counts of scores by groups, below, between and above the cuts, and those of probabilities near 0 or 1."""
    deviation: float = 0.0
    place: int = 0
    edge: int | None = None

    @classmethod
    def of(cls, question: EffectQuestion, lines: Nuisances, design: Design, cuts: Reals) -> Scores:
        column = None if question.groups is None else question.column(question.groups)
        return cls(lines, design, question.groups, column, 1 if column is None else len(levels_of(column)), cuts)

    def far(self, unit: Reals, rows: Rows) -> Integers:
        """Return how many scores lie below all, between each two, and above all of −cuts and cuts, by groups; of those
        within the nearest, the ones with a probability of treatment near an end apart."""
        scores, outside = self.lines.scores(self.design.raw(unit))
        ends = np.concatenate([-self.cuts[::-1], self.cuts]) * self.lines.spread
        places = np.searchsorted(ends, scores - self.lines.centre)
        places = np.where(outside & (places == len(self.cuts)), len(ends) + 1, places)
        size, whole = len(ends) + 2, corners(np.zeros(rows.n), 0, rows.masses(GRID))
        return corner_counts(self._groups(rows) * size + places, size * self.size, rows.included, [whole]).ravel()

    def cut(self, far: Reals, deviations: tuple[float, float], short: bool) -> Scores:
        counted = replace(self, tail_counts=far.reshape(self.size, -1), deviation=deviations[1])
        place, edge = counted.tails(list(range(self.size))).best(
            noise_of_sum(deviations[0]), short, self.lines.arm_imbalance
        )
        return replace(counted, place=place, edge=edge)

    @property
    def reach(self) -> float:
        return min(float(self.cuts[self.place]), self.farthest) * self.lines.spread

    @property
    def farthest(self) -> float:
        """How extreme, in spreads, a score can lie."""
        return self.lines.farthest(self.design.middles, self.design.halves) * (1 + 1e-9)

    @property
    def target(self) -> float | None:
        """Where scores are cut of whose mean an interval is; ``None`` where that is the mean of all."""
        whole = self.edge is None or self.cuts[self.edge] >= self.farthest
        return None if whole else float(self.cuts[self.edge or 0]) * self.lines.spread

    @property
    def near_an_end(self) -> float:
        return float(self.tail_counts[:, -1].sum()) / max(float(self.tail_counts.sum()), 1.0)

    def tails(self, groups: list[int]) -> TailCounts:
        counts = self.tail_counts[groups].sum(axis=0)
        counts[len(self.cuts)] += counts[-1]
        return TailCounts(self.cuts, counts[:-1], math.sqrt(len(groups)) * self.deviation, self.farthest)

    def __call__(self, unit: Reals, rows: Rows) -> Integers:
        scores, _ = self.lines.scores(self.design.raw(unit))
        place = np.clip((scores - self.lines.centre) / (2 * self.reach) + 0.5, 0.0, 1.0)
        masses = corners(place, 2, rows.masses(GRID))
        return corner_counts(self._groups(rows), self.size, rows.included, [masses])

    def _groups(self, rows: Rows) -> Integers:
        if self.groups is None or self.column is None:
            return np.zeros(rows.n, dtype=np.int64)
        return column_codes(rows.values[self.groups], self.column)


def noise_of_sum(deviation: float) -> float:
    """Return the deviation of a sum of scores that are cut at 1, of that of a corner."""
    noise = functionals(2)[1] - functionals(2)[0] / 2
    return 2 * deviation * math.sqrt(float(noise @ noise))


class ClippingLoss(NamedTuple):
    """What a cut may have taken from the sum of scores, in spreads, and the deviation of what is hidden."""

    below: float
    above: float
    hidden: float

    @classmethod
    def of(cls, balance: float, hidden: float = 0.0) -> ClippingLoss:
        return cls(max(0.0, -balance), max(0.0, balance), hidden)


def detection_threshold(n: int) -> float:
    """Return how many spreads out tails of any shape are allowed for: public. A tail with a third moment has taken
    n/cut² there, no more than chance, √n, hides."""
    return float(max(n**0.25, 1.3 * NEAREST))


def cuts_of(n: int) -> Reals:
    """Return the multiples of the spread that scores may be cut at, in rising order: public.

    >>> cuts_of(10_000).round(2).tolist()
    [2.5, 3.97, 6.3, 10.0, 17.5, 30.62]
    """
    inner = np.geomspace(NEAREST, detection_threshold(n), INNER)
    return np.concatenate([inner, inner[-1] * STEP ** np.arange(1, OUTER + 1)])


def times_as_wide(n: int, noise: float, short: bool, farthest: float = math.inf) -> float:
    """Return how many times as wide as without noise an interval about n scores is predicted: public. ``noise`` is the
    deviation of that of a sum of scores cut at 1; ``short``, whether tails are declared short."""
    return math.hypot(1.0, WIDER * min(NEAREST if short else detection_threshold(n), farthest) * noise / math.sqrt(n))


@dataclass(frozen=True)
class TailCounts:
    """Noisy counts of scores beyond each cut and before the next."""

    cuts: Reals
    far: Reals
    """Counts below all, between each two and above all of −cuts and cuts, shape (2k + 1,)."""
    deviation: float
    farthest: float = math.inf
    """How extreme a score can lie by the bounds of the columns and the lines, both known."""

    @property
    def count(self) -> float:
        return max(float(self.far.sum()), 1.0)

    def share_beyond(self, place: int) -> float:
        return max(float(sum(side[place:].sum() for side in self.sides)), 0.0) / self.count

    @property
    def sides(self) -> tuple[Reals, Reals]:
        k, beyond = len(self.cuts), self.cuts >= self.farthest
        return np.where(beyond, 0.0, self.far[:k][::-1]), np.where(beyond, 0.0, self.far[-k:])

    @property
    def middles(self) -> Reals:
        """How extreme the scores of each count are taken to lie."""
        ends = np.append(self.cuts[1:], self.cuts[-1] * (1 + 2 * REACH))
        return np.asarray(np.minimum(self.cuts, self.farthest) + np.minimum(ends, self.farthest), np.float64) / 2

    def edge(self) -> int:
        below, above = self.sides
        square = float(self.middles[:INNER] ** 2 @ (below + above)[:INNER]) / self.count
        farther = max(HEAVY * math.sqrt(LEAST_SQUARE + max(square, 0.0)), 1.0)
        place = int(np.searchsorted(self.cuts, self.cuts[INNER - 1] * farther / math.sqrt(STEP)))
        seen = 1 + np.flatnonzero(np.maximum(below, above) > SEEN * self.deviation)
        whole = int(np.searchsorted(self.cuts, self.farthest))
        return min(max(place, INNER - 1, *seen.tolist()), len(self.cuts) - 1, whole)

    def unseen(self, place: int, reach: float) -> float:
        """Return how many scores may lie beyond the cut at a place: what counts show and so many deviations of noise.

        >>> TailCounts(np.array([2.0, 4.0]), np.array([0.0, 0.0, 900.0, 60.0, 40.0]), 6.0).unseen(1, 2.0)
        56.97...
        """
        count = max(float(sum(side[place:].sum() for side in self.sides)), 0.0)
        bins = 2 * int((self.cuts[place:] < self.farthest).sum())
        return count + reach * self.deviation * math.sqrt(bins)

    @property
    def beyond_last_threshold(self) -> bool:
        return max(float(side[-1]) for side in self.sides) > ESCAPED * self.deviation

    def taken(self, place: int, edge: int | None) -> ClippingLoss:
        """Return what the cut at a place may have taken; no edge means tails that are declared short.

        >>> tails = TailCounts(np.array([2.0, 4.0]), np.array([0.0, 0.0, 900.0, 60.0, 40.0]), 0.0)
        >>> tails.taken(1, None).above, tails.taken(1, 1).above
        (61.02..., 67.35...)
        """
        below, above = self.sides
        balance, cut = (above - below)[place:], float(self.cuts[place])
        unsure = 2 * self.deviation**2 + np.maximum(above + below, 0.0)[place:]
        if edge is None:
            return ClippingLoss.of(NET * cut * _beyond(float(balance.sum()), ALLOWED * math.sqrt(unsure.sum())))
        far = np.where(self.cuts[place:] < self.farthest, self.middles[place:] - cut, 0.0)
        inside = np.minimum(far, max(float(self.cuts[edge]) - cut, 0.0))
        hidden, outside = (math.sqrt(float(far**2 @ unsure)) for far in (inside, far - inside))
        near = ClippingLoss.of(_beyond(float(inside @ balance), DOUBTED * hidden), hidden)
        more = ClippingLoss.of(_beyond(float((far - inside) @ balance), DOUBTED_BEYOND * outside))
        return ClippingLoss(near.below + more.below, near.above + more.above, hidden)

    def best(self, noise: float, short: bool, arm_imbalance: float = 1.0) -> tuple[int, int | None]:
        """Return the place of the cut whose interval is predicted to be shortest, and the edge's; none is beyond that.
        ``noise`` is the deviation of the noise of a sum of scores that are cut at 1.  Short tails of an arm whose
        scores are ``arm_imbalance`` times as extreme are not cut nearer."""
        first, edge, widths = 0, None if short else self.edge(), []
        if edge is None:
            nearest = int(np.argmin(np.abs(np.log(self.cuts / (NEAREST * arm_imbalance)))))
            first = min(nearest, max(len(self.cuts) - NEAR, 0))
        for place in range(first, len(self.cuts) if edge is None else edge + 1)[: NEAR if edge is None else None]:
            taken, chance = self.taken(place, edge), math.sqrt(self.count) / WIDER
            error = math.hypot(chance, min(float(self.cuts[place]), self.farthest) * noise, taken.hidden)
            widths.append(1.96 * error + taken.below + taken.above)
        return first + int(np.argmin(widths)), edge


def _beyond(number: float, doubt: float) -> float:
    return math.copysign(max(abs(number) - doubt, 0.0), number)
