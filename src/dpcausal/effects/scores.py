"""The scores of rows: of which columns, how many lie far out, and the corner counts of what is cut."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from dpcausal.data.coding import bin_codes
from dpcausal.data.rows import Rows
from dpcausal.data.schema import Bounded, Column
from dpcausal.effects.contrast import arms_of
from dpcausal.effects.corner_counts import GRID, corner_counts, corners, functionals
from dpcausal.effects.cut import Tails
from dpcausal.effects.noisy_cells import levels_of
from dpcausal.effects.question import Contrast
from dpcausal.effects.score_lines import Lines

Reals = npt.NDArray[np.float64]
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
    def of(cls, question: Contrast) -> Design:
        """Return the columns for a question: outcome, treatment, numbers as they are, one column a further level."""
        found: list[tuple[str, str, int | None, float, float]] = []
        treated = arms_of(
            levels_of(question.column(question.treatment)), question.treatment, question.treated, question.control
        )[1]
        for name in (question.outcome, question.treatment, *question.strata):
            column = question.column(name)
            if isinstance(column, Bounded) and name != question.treatment:
                found.append((name, name, None, column.midpoint, column.width / 2))
                continue
            levels = levels_of(column)
            codes = [treated] if name == question.treatment else list(range(1, len(levels)))
            named = [name if len(levels) == 2 else f"{name} = {levels[code]}" for code in codes]
            found += [(text, name, code, 0.5, 0.5) for text, code in zip(named, codes, strict=True)]
        names, sources, all_codes, middles, halves = zip(*found, strict=True)
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
    """The scores by groups: how many lie far out, and, once these are told, the corner counts of what is cut."""

    lines: Lines
    design: Design
    groups: str | None
    column: Column | None
    size: int
    cuts: Reals
    told: Reals = field(default_factory=lambda: np.zeros((0, 0)))
    """Noisy counts of scores by groups, below, between and above the cuts, and those of probabilities near 0 or 1."""
    deviation: float = 0.0
    place: int = 0
    edge: int | None = None

    @classmethod
    def of(cls, question: Contrast, lines: Lines, design: Design, cuts: Reals) -> Scores:
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
        told = replace(self, told=far.reshape(self.size, -1) / GRID, deviation=deviations[1])
        place, edge = told.tails(list(range(self.size))).best(noise_of_sum(deviations[0]), short, self.lines.lopsided)
        return replace(told, place=place, edge=edge)

    @property
    def reach(self) -> float:
        """Return how far from the centre scores are cut."""
        return min(float(self.cuts[self.place]), self.farthest) * self.lines.spread

    @property
    def farthest(self) -> float:
        """Return how far out, in spreads, a score can lie."""
        return self.lines.farthest(self.design.middles, self.design.halves) * (1 + 1e-9)

    @property
    def target(self) -> float | None:
        """Return where scores are cut of whose mean an interval is; ``None`` where that is the mean of all."""
        whole = self.edge is None or self.cuts[self.edge] >= self.farthest
        return None if whole else float(self.cuts[self.edge or 0]) * self.lines.spread

    @property
    def near_an_end(self) -> float:
        """Return the share of scores with a probability of treatment near 0 or 1."""
        return float(self.told[:, -1].sum()) / max(float(self.told.sum()), 1.0)

    def tails(self, groups: list[int]) -> Tails:
        """Return how many scores of some groups lie far out."""
        counts = self.told[groups].sum(axis=0)
        counts[len(self.cuts)] += counts[-1]
        return Tails(self.cuts, counts[:-1], math.sqrt(len(groups)) * self.deviation, self.farthest)

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
