"""The scores of rows: of which columns, how many are extreme, and the corner counts of what is cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from dpcausal.data.coding import bin_codes
from dpcausal.data.records import Rows
from dpcausal.data.schema import Bounded, Column
from dpcausal.effects.cells.corner_counts import GRID, corner_counts, corners, functionals
from dpcausal.effects.cells.value import levels_of
from dpcausal.effects.estimators.clipping import WIDER, TailCounts
from dpcausal.effects.moments.release import JointMoments
from dpcausal.effects.question import EffectQuestion

Reals = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

OUTCOME, TREATMENT = 0, 1
LEAST_PROBABILITY = 0.05


@dataclass(frozen=True)
class Nuisances:
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
    def arm_imbalance(self) -> float:
        """Return how many times as extreme, in spreads, scores of the rarer arm lie as in arms of one size."""
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


def lines_of(moments: JointMoments, names: Sequence[str]) -> Nuisances:
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
    return Nuisances(slopes, treatment, float(slopes[0]), wide, error, 1 / min(sharp, 1 - sharp))


Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Design:
    """The columns of the moments: name, middle and half width of the range, code of the level that is 1 (or None)."""

    names: tuple[str, ...]
    sources: tuple[str, ...]
    codes: tuple[int | None, ...]
    middles: Reals
    halves: Reals
    treatment: Column
    """A number as which arm is which by its cut."""

    @classmethod
    def of(cls, question: EffectQuestion) -> Design:
        """Return the columns for a question: outcome, treatment, numbers as they are, one column a further level."""
        columns: list[tuple[str, str, int | None, float, float]] = []
        treated = question.pair[1]
        for name in (question.outcome, question.treatment, *question.strata):
            column = question.column(name)
            if isinstance(column, Bounded) and name != question.treatment:
                columns.append((name, name, None, column.midpoint, column.width / 2))
                continue
            levels = levels_of(column)
            codes = [treated] if name == question.treatment else list(range(1, len(levels)))
            named = [name if len(levels) == 2 else f"{name} = {levels[code]}" for code in codes]
            columns += [(text, name, code, 0.5, 0.5) for text, code in zip(named, codes, strict=True)]
        names, sources, all_codes, middles, halves = zip(*columns, strict=True)
        treatment = question.column(question.treatment)
        return cls(names, sources, all_codes, np.array(middles), np.array(halves), treatment)

    @property
    def ranges(self) -> tuple[Reals, Reals]:
        """The middles and half widths."""
        return self.middles, self.halves

    def units(self, rows: Rows) -> Reals:
        """Return the rows on [−1, 1]."""
        values, arm = dict(rows.values), self.sources[1]
        if isinstance(self.treatment, Bounded):
            values[arm] = bin_codes(values[arm], self.treatment)
        columns = [
            values[source].astype(np.float64) if code is None else (values[source] == code).astype(np.float64)
            for source, code in zip(self.sources, self.codes, strict=True)
        ]
        return np.clip((np.stack(columns, axis=1) - self.middles) / self.halves, -1.0, 1.0)


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
        scores, outside = self.lines.scores(self.design.middles + self.design.halves * unit)
        ends = np.concatenate([-self.cuts[::-1], self.cuts]) * self.lines.spread
        places = np.searchsorted(ends, scores - self.lines.centre)
        places = np.where(outside & (places == len(self.cuts)), len(ends) + 1, places)
        size, whole = len(ends) + 2, corners(np.zeros(rows.n), 0, rows.masses(GRID))
        return corner_counts(self._groups(rows) * size + places, size * self.size, rows.kept, [whole]).ravel()

    def cut(self, far: Reals, deviations: tuple[float, float], short: bool) -> Scores:
        """Return these cut where the noisy counts say."""
        counted = replace(self, tail_counts=far.reshape(self.size, -1) / GRID, deviation=deviations[1])
        place, edge = counted.tails(list(range(self.size))).best(
            noise_of_sum(deviations[0]), short, self.lines.arm_imbalance
        )
        return replace(counted, place=place, edge=edge)

    @property
    def reach(self) -> float:
        """Return how far from the centre scores are cut."""
        return min(float(self.cuts[self.place]), self.farthest) * self.lines.spread

    @property
    def farthest(self) -> float:
        """Return how extreme, in spreads, a score can lie."""
        return self.lines.farthest(self.design.middles, self.design.halves) * (1 + 1e-9)

    @property
    def target(self) -> float | None:
        """Return where scores are cut of whose mean an interval is; ``None`` where that is the mean of all."""
        whole = self.edge is None or self.cuts[self.edge] >= self.farthest
        return None if whole else float(self.cuts[self.edge or 0]) * self.lines.spread

    @property
    def near_an_end(self) -> float:
        """Return the share of scores with a probability of treatment near 0 or 1."""
        return float(self.tail_counts[:, -1].sum()) / max(float(self.tail_counts.sum()), 1.0)

    def tails(self, groups: list[int]) -> TailCounts:
        """Return how many scores of some groups are extreme."""
        counts = self.tail_counts[groups].sum(axis=0)
        counts[len(self.cuts)] += counts[-1]
        return TailCounts(self.cuts, counts[:-1], math.sqrt(len(groups)) * self.deviation, self.farthest)

    def __call__(self, unit: Reals, rows: Rows) -> Integers:
        scores, _ = self.lines.scores(self.design.middles + self.design.halves * unit)
        place = np.clip((scores - self.lines.centre) / (2 * self.reach) + 0.5, 0.0, 1.0)
        masses = corners(place, 2, rows.masses(GRID))
        return corner_counts(self._groups(rows), self.size, rows.kept, [masses])

    def _groups(self, rows: Rows) -> Integers:
        if self.groups is None or self.column is None:
            return np.zeros(rows.n, dtype=np.int64)
        codes = rows.values[self.groups]
        return bin_codes(codes, self.column) if isinstance(self.column, Bounded) else codes


def noise_of_sum(deviation: float) -> float:
    """Return the deviation of a sum of scores that are cut at 1, of that of a corner."""
    noise = functionals(2)[1] - functionals(2)[0] / 2
    return 2 * deviation * math.sqrt(float(noise @ noise))
