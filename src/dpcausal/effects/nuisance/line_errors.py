"""How far errors of the lines move the mean score, of all or of a group whose effect differs from the line's.

Where the probability is too large by d and the outcome's line by s, the mean score is off, up to signs, by

    E[d (s + Δ (1 − 2ê + d)) / (ê (1 − ê))]

Δ is the group's effect less the line's.  Errors are those of the noise of the moments, and of shortening: rows of a
small group are shortened, more so in the arm that lies farther from the line.  Places that represent the rows are
normal, in the shape of the released moments; of a rare level so many are at it as have it, since few errors that are
large there make a larger product than small ones everywhere.  All of it is read off what was released.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.data.coding import cuts_of
from dpcausal.data.schema import Bounded
from dpcausal.effects.moments.release import JointMoments
from dpcausal.effects.moments.released import Line, line
from dpcausal.effects.nuisance.design import FIRST, OUTCOME, TREATMENT
from dpcausal.effects.nuisance.fit import Fit
from dpcausal.effects.nuisance.scores import LEAST_PROBABILITY
from dpcausal.effects.question import EffectQuestion
from dpcausal.privacy.noise import generator_from_seed

PLACES = 200
MOST_RELATIVE = 0.75
"""No interval of a group where errors of the line are such a part of the probability of the rarer arm."""
MOST_FROM_MEAN, MOST_DIFFERENCE = 2.0, 3.0
"""The mean of a group lies within so many standard deviations of that of all rows; its effect within so many of the
outcome's residuals of the line's."""


@dataclass(frozen=True)
class LineErrors:
    """The treatment's line at the places of a group, and the mean products of the errors there of each line."""

    chances: Reals
    treatment: Reals
    outcome: Reals
    effect: Reals | float = 0.0
    """Likewise of the effect's line."""

    @property
    def relative(self) -> float:
        """How large errors of the probability are, as a part of that of the rarer arm."""
        rarer = np.minimum(self.chances, 1 - self.chances)
        return math.sqrt(float(np.mean(np.diag(self.treatment) / rarer**2)))

    def moves(self, difference: float) -> float:
        """Return the deviation of the mean score, if the group's effect differs so much from the line's."""
        weights, errors = 1 / (self.chances * (1 - self.chances)), self.treatment
        slopes = weights * (1 - 2 * self.chances)
        squares, own = difference**2 + self.effect, weights * np.diag(errors)
        of_both = weights @ (errors * self.outcome + 2 * squares * errors**2) @ weights
        of_one = slopes @ (errors * squares) @ slopes + own @ (np.zeros_like(errors) + squares) @ own
        return math.sqrt(max(float(of_both + of_one), 0.0)) / len(weights)


def line_errors(
    fit: Fit, question: EffectQuestion, differences: Sequence[float], of_effect: Reals
) -> list[LineErrors | None]:
    """Return the errors of the lines among all rows or in each group, whose effects differ so much from the line's;
    ``None`` where the lines do without the group's own column.  ``of_effect`` is the covariance of the slopes of the
    effect's line."""
    moments = fit.moments
    outcome, arm, *others = moments.names
    lines = line(moments, arm, tuple(others)), line(moments, outcome, (arm, *others))
    among = [fit.whole.names.index(name) for name in others]
    middles = _middles(moments)
    places, counts = list[Reals](), list[float]()
    for unit, count in _places(fit, question):
        places.append(np.column_stack([fit.columns(unit)[:, among] - middles[FIRST:], np.ones(PLACES)]))
        counts.append(count)
    moved = _moved_by_shortening(moments, lines, places, counts, differences)
    products = [one.noise(moments)[-len(own) :, -len(own) :] + np.outer(own, own)
                for one, own in zip(lines, moved, strict=True)]  # fmt: skip
    errors = list[LineErrors | None]()
    for rows, count in zip(places, counts, strict=True):
        chances = np.clip(middles[TREATMENT] + rows @ lines[0].slopes, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        treatment, response = (rows @ one @ rows.T for one in products)
        errors.append(LineErrors(chances, treatment, response, rows @ of_effect @ rows.T) if count else None)
    return errors


def _middles(moments: JointMoments) -> Reals:
    return moments.middles + moments.halves * moments.centre


def _places(fit: Fit, question: EffectQuestion) -> Iterator[tuple[Reals, float]]:
    """Yield places on [−1, 1] for all rows, or for each group and about how many rows it has; 0 where its own column is
    left out."""
    moments, design, groups = fit.moments, fit.design, question.groups
    named = [name for name in design.names[FIRST:] if name in moments.names]
    rows, known = [moments.names.index(name) for name in named], [design.names.index(name) for name in named]
    lift = np.zeros((len(named) + 1, len(moments.sums)))
    lift[:-1, :-1], lift[-1, -1] = moments.spread[rows], 1.0
    sums, centre = lift @ moments.sums @ lift.T, moments.centre[rows]
    mean = sums[:-1, -1] / moments.count
    values, along = np.linalg.eigh(sums[:-1, :-1] / moments.count - np.outer(mean, mean))
    root = along * np.sqrt(np.maximum(values, 0.0))
    about = generator_from_seed(1).standard_normal((PLACES, len(named))) @ root.T
    reach = MOST_FROM_MEAN * np.sqrt((root**2).sum(axis=1))

    def around(middle: Reals) -> Reals:
        unit = np.zeros((PLACES, len(design.names)), order="F")
        unit[:, known] = np.clip(centre + np.clip(middle, mean - reach, mean + reach) + about, -1.0, 1.0)
        for levels in design.levels:
            at_rare_levels(unit, levels, fit)
        return unit

    if groups is None:
        yield around(mean), moments.count
        return
    column = question.column(groups)
    if isinstance(column, Bounded):
        own = design.names.index(groups)
        whole = around(mean)[:, own] * design.halves[own] + design.middles[own]
        for low, high in pairwise([column.lower, *cuts_of(column), column.upper]):
            unit = around(mean)
            unit[:, own] = (np.clip(whole, low, high) - design.middles[own]) / design.halves[own]
            share = float(((whole >= low) & (whole < high)).mean())
            yield unit, max(share * moments.count, 1.0) if groups in named else 0.0
        return
    codes = {design.codes[known[place]]: place for place in range(len(named)) if design.sources[known[place]] == groups}
    total = {code: (sums[place] + (centre[place] + 1) * sums[-1]) / 2 for code, place in codes.items()}
    total[0] = sums[-1] - sum(total.values())
    for code in range(1 + sum(source == groups for source in design.sources)):
        with_own = code in total and len(codes) > 0
        sum_of_rows = total[code if with_own else 0]
        count = max(float(sum_of_rows[-1]), 1.0)
        unit = around(sum_of_rows[:-1] / count)
        for level, place in codes.items():
            unit[:, known[place]] = 1.0 if level == code else -1.0
        yield unit, count if with_own else 0.0


def at_rare_levels(unit: Reals, levels: Sequence[int], fit: Fit) -> None:
    """Put as many places at each rare level of a column as its share: those that lie nearest, no place at two."""
    left = np.ones(PLACES, dtype=np.bool_)
    for place in levels:
        if (share := fit.rare.get(fit.design.names[place])) is not None:
            in_order = np.argsort(np.where(left, -unit[:, place], np.inf), kind="stable")
            nearest = in_order[: max(round(share * PLACES), 1)]
            unit[:, place], left[nearest] = -1.0, False
            unit[nearest[:, None], levels] = -1.0
            unit[nearest, place] = 1.0


def _moved_by_shortening(
    moments: JointMoments, lines: tuple[Line, Line], places: Sequence[Reals], counts: Sequence[float],
    differences: Sequence[float],
) -> tuple[Reals, Reals]:  # fmt: skip
    """Return how far shortening moves the slopes of both lines, that of the treatment left out: of rows at the places,
    half above and half below the outcome's line of their group and arm."""
    middle, spread = _middles(moments)[TREATMENT], math.sqrt(lines[1].residual)
    others, mass = np.concatenate(places), np.repeat(counts, PLACES)
    difference = np.repeat(np.clip(differences, -MOST_DIFFERENCE * spread, MOST_DIFFERENCE * spread), PLACES)
    chances = np.clip(middle + others @ lines[0].slopes, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    rows, masses = list[Reals](), list[Reals]()
    for treated in (0.0, 1.0):
        arm = np.full(len(others), treated - middle)
        mean = np.column_stack([arm, others]) @ lines[1].slopes + difference * (treated - chances)
        rows += [np.column_stack([mean + off, arm, others]) for off in (-spread, spread)]
        masses += 2 * [mass * (chances if treated else 1 - chances)]
    whole, root = np.concatenate(rows), np.sqrt(np.concatenate(masses))
    units = np.linalg.lstsq(moments.spread, (whole[:, :-1] / moments.halves).T, rcond=None)[0]
    short = np.minimum(1.0, moments.radius / np.maximum(np.linalg.norm(units, axis=0), 1e-9))
    shortened = whole * np.where(np.arange(whole.shape[1]) < whole.shape[1] - 1, short[:, None], 1.0)

    def slopes(rows: Reals, place: int) -> Reals:
        weighted = rows * root[:, None]
        fitted = np.linalg.lstsq(weighted[:, place + 1 :], weighted[:, place], rcond=None)[0]
        return np.asarray(fitted[FIRST - place - 1 :], dtype=np.float64)

    treatment, response = (slopes(shortened, place) - slopes(whole, place) for place in (TREATMENT, OUTCOME))
    return treatment, response
