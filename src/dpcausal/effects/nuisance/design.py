"""The columns of a question's moments: outcome, treatment, confounders, and squares and products of these.

Squares and products are taken about where a first round of the moments found the columns, in units of their spreads
there, and stay the same from where they are ``REACH``².  So each is a column like others: a function of the record
alone, and of what was released.  Of about normal columns they are near uncorrelated with these and with each other, so
that the shape of all is known before a further round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import Self

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.data.coding import column_codes
from dpcausal.data.records import Rows
from dpcausal.data.schema import Bounded, Column
from dpcausal.effects.cells.corner_counts import levels_of
from dpcausal.effects.moments.adaptive import HISTOGRAM, LAST, LAST_TAIL, SHAPING, Shape, noise_of, tail_radius
from dpcausal.effects.moments.factors import Layout
from dpcausal.effects.moments.release import JointMoments
from dpcausal.effects.moments.released import Product
from dpcausal.effects.question import EffectQuestion
from dpcausal.errors import FenceError, LossError, ParameterError
from dpcausal.mechanisms.additive import gaussian_scale
from dpcausal.privacy.loss import ZCDP, Loss

Pair = tuple[int, int]
OUTCOME, TREATMENT, FIRST = 0, 1, 2
"""Places of the outcome, the treatment and the first confounder."""
REACH = 4.0
MOST_COLUMNS, ROWS_A_COLUMN = 40, 20
"""Without noise squares and products are among the columns where there are so many rows for each."""
MOST_TIMES = 1e6
"""So many times the epsilon are no advice: some numbers of rows and columns no loss helps."""
LEAST_OWN = 1e-6
"""Without noise a term is left out of which the other columns leave less than this share."""


@dataclass(frozen=True)
class Design:
    """The columns of the moments: name, middle and half width of the range, code of the level that is 1 (or None)."""

    names: tuple[str, ...]
    sources: tuple[str, ...]
    codes: tuple[int | None, ...]
    middles: Reals
    halves: Reals
    treatment: Column
    """Of a number the cut says which arm is which."""
    factors: tuple[tuple[str, ...], ...] = ()
    """Of columns of levels that come last, one for every level: the column that they are of, and the levels."""

    @classmethod
    def of(cls, question: EffectQuestion, by_factor: bool = False) -> Design:
        """Return the columns; ``by_factor``: those of more than two levels last, with a column for every level."""
        columns: list[tuple[str, str, int | None, float, float]] = []
        treated = question.pair[1]
        kinds = {name: question.column(name) for name in question.strata if by_factor}
        many = {name: levels_of(one) for name, one in kinds.items() if not isinstance(one, Bounded) and len(one) > 2}
        for name in (question.outcome, question.treatment, *question.strata):
            if name in many:
                continue
            column = question.column(name)
            if isinstance(column, Bounded) and name != question.treatment:
                columns.append((name, name, None, column.midpoint, column.width / 2))
                continue
            levels = levels_of(column)
            codes = [treated] if name == question.treatment else list(range(1, len(levels)))
            named = [name if len(levels) == 2 else f"{name} = {levels[code]}" for code in codes]
            columns += [(text, name, code, 0.5, 0.5) for text, code in zip(named, codes, strict=True)]
        factors = tuple((name, *map(str, levels)) for name, levels in many.items())
        columns += [(f"{name} = {level}", name, code, 0.5, 0.5)
                    for name, *levels in factors for code, level in enumerate(levels)]  # fmt: skip
        names, sources, all_codes, middles, halves = zip(*columns, strict=True)
        treatment = question.column(question.treatment)
        return cls(names, sources, all_codes, np.array(middles), np.array(halves), treatment, factors)

    @property
    def layout(self) -> Layout:
        sizes = tuple(len(one) - 1 for one in self.factors)
        return Layout(len(self.names) - sum(sizes), sizes)

    @property
    def ranges(self) -> tuple[Reals, Reals]:
        return self.middles, self.halves

    @property
    def numbers(self) -> list[int]:
        return [place for place, code in enumerate(self.codes) if code is None and place >= FIRST]

    @property
    def levels(self) -> list[list[int]]:
        """The places of the levels of each confounder that is no number."""
        places = [place for place, code in enumerate(self.codes) if code is not None and place >= FIRST]
        sources = dict.fromkeys(self.sources[place] for place in places)
        return [[place for place in places if self.sources[place] == source] for source in sources]

    @property
    def pairs(self) -> list[Pair]:
        """Pairs of confounders, except two levels of one column."""
        pairs = combinations(range(FIRST, len(self.sources)), 2)
        return [(one, other) for one, other in pairs if self.sources[one] != self.sources[other]]

    def rare(self, means: Reals) -> dict[int, float]:
        """Return the shares by places of levels whose typical rows would be shortened, by the ``means`` of a release;
        of a column whose first level is so rare, of all."""
        rare, longest = dict[int, float](), tail_radius(len(self.names), LAST_TAIL) ** 2 - len(self.names)
        for places in self.levels:
            shares, least = means[places], 1 / (1 + longest + len(places))
            rare |= {place: float(means[place]) for place in places if min(means[place], 1 - shares.sum()) < least}
        return rare

    def units(self, rows: Rows) -> Reals:
        arm = self.sources[TREATMENT]
        values = {**rows.values, arm: column_codes(rows.values[arm], self.treatment)}
        units = np.empty((len(values[arm]), len(self.sources)), order="F")
        for unit, source, code, middle, half in zip(
            units.T, self.sources, self.codes, self.middles, self.halves, strict=True
        ):
            np.subtract(values[source] if code is None else values[source] == code, middle, out=unit)
            np.clip(np.divide(unit, half, out=unit), -1.0, 1.0, out=unit)
        return units

    def raw(self, unit: Reals) -> Reals:
        """Return rows of [−1, 1] in the columns' units."""
        rows = np.empty(unit.shape, order="F")
        for row, column, middle, half in zip(rows.T, unit.T, self.middles, self.halves, strict=True):
            np.add(middle, np.multiply(half, column, out=row), out=row)
        return rows


def checked_design(method: str, question: EffectQuestion, most: int = MOST_COLUMNS, by_factor: bool = False) -> Design:
    """Return the columns of a question; refuse a treatment of three levels, and more columns than ``most``."""
    if len(levels_of(question.column(question.treatment))) != 2:
        raise ParameterError(f"method {method!r} needs a treatment of two levels")
    design = Design.of(question, by_factor)
    if len(design.names) > most:
        raise ParameterError(
            f"method {method!r} takes at most {most} columns and levels, here are {len(design.names)}: adjust for "
            "fewer columns, or merge levels"
        )
    return design


def check_noise(loss: Loss, d: int, n: int, moments: ZCDP, bound: float, other: ZCDP) -> None:
    """Refuse a loss whose noise could not be drawn: that of moments of d columns, and of sums with an l2 bound."""
    try:
        for share in (HISTOGRAM, *SHAPING, LAST):
            noise_of(d, n, tail_radius(d, 0.3), moments.part(share))
        gaussian_scale(bound, other)
    except FenceError:
        raise LossError(f"{loss} is too little here: the noise could not be drawn") from None


def enough(n: int, signal: Callable[[int, float], float], least: float) -> tuple[int, float]:
    """Return how many rows at this loss, and how many times the epsilon at n rows, have at least such a signal."""
    rows, times = n, 1.0
    while signal(rows, 1.0) < least:
        rows = math.ceil(rows * 1.1)
    while times < MOST_TIMES and signal(n, times) < least:
        times *= 1.05
    return rows, times


def second_degree(design: Design, n: int, rho: ZCDP | None, affordable: Callable[[int], bool]) -> list[Pair]:
    """Return the squares and products, or the squares, that are columns too: public."""
    squares = [(place, place) for place in design.numbers]
    for pairs in ([*squares, *design.pairs], squares):
        size = len(design.names) + len(pairs)
        if size <= MOST_COLUMNS and (n >= ROWS_A_COLUMN * size if rho is None else affordable(size)):
            return pairs
    return []


@dataclass(frozen=True)
class QuadraticTerms:
    """Products of pairs of columns: their names, and where each column lies and how far it spreads, in units of its
    range."""

    pairs: tuple[Pair, ...]
    names: tuple[str, ...]
    middle: Reals
    spread: Reals

    @classmethod
    def about(cls, shape: Shape, pairs: Sequence[Pair], design: Design) -> Self:
        """Return the products about a shape's middle, in units of its spreads."""
        of = design.names
        names = (f"{of[i]} squared" if i == j else f"{of[i]} times {of[j]}" for i, j in pairs)
        return cls(tuple(pairs), tuple(names), shape.middle, np.maximum(np.linalg.norm(shape.spread, axis=1), 1e-9))

    def __call__(self, unit: Reals) -> Reals:
        """Return rows of [−1, 1] with the products beside them, each row from itself alone."""
        d = unit.shape[1]
        expanded = np.empty((len(unit), d + len(self.pairs)), order="F")
        expanded[:, :d] = unit
        factors = self._factors(unit, self.pairs)
        for column, (i, j) in zip(expanded.T[d:], self.pairs, strict=True):
            np.clip(np.multiply(factors[i], factors[j], out=column), -1.0, 1.0, out=column)
        return expanded

    def raw(self, unit: Reals, design: Design, used: Sequence[int]) -> Reals:
        """Return some of the columns of rows on [−1, 1], in their units, in the places of all; the others are empty."""
        d, rows = unit.shape[1], np.empty((len(unit), unit.shape[1] + len(self.pairs)), order="F")
        factors = self._factors(unit, [self.pairs[place - d] for place in used if place >= d])
        for place in used:
            if place < d:
                np.multiply(unit[:, place], design.halves[place], out=rows[:, place])
                rows[:, place] += design.middles[place]
            else:
                i, j = self.pairs[place - d]
                np.clip(factors[i] * factors[j], -1.0, 1.0, out=rows[:, place])
        return rows

    def _factors(self, unit: Reals, pairs: Sequence[Pair]) -> dict[int, Reals]:
        return {k: (unit[:, k] - self.middle[k]) / (REACH * self.spread[k]) for k in {*chain(*pairs)}}

    def among(self, names: Sequence[str]) -> Self:
        left = [place for place, name in enumerate(self.names) if name in names]
        pairs, own = tuple(self.pairs[one] for one in left), tuple(self.names[one] for one in left)
        return replace(self, pairs=pairs, names=own)

    def without(self, names: Sequence[str], design: Design, lacking: set[str]) -> list[str]:
        """Return names of columns without the products with columns that are ``lacking``."""
        lost = {own for own, pair in zip(self.names, self.pairs, strict=True)
                if lacking & {design.names[place] for place in pair}}  # fmt: skip
        return [name for name in names if name not in lost]

    def shape(self, shape: Shape) -> Shape:
        """Return the shape of all columns where those of the pairs are about normal, and uncorrelated."""
        d = len(shape.middle)
        square = np.array([i == j for i, j in self.pairs], dtype=np.float64)
        spread = np.diag(np.append(np.zeros(d), 1 + (math.sqrt(2) - 1) * square)) / REACH**2
        spread[:d, :d] = shape.spread
        return Shape(np.append(shape.middle, square / REACH**2), spread)

    def products(self, design: Design) -> tuple[Product, ...]:
        middles, reaches = design.middles + design.halves * self.middle, REACH * design.halves * self.spread
        return tuple(
            Product(name, (design.names[i], design.names[j]), (float(middles[i]), float(middles[j])),
                    (float(reaches[i]), float(reaches[j])))
            for name, (i, j) in zip(self.names, self.pairs, strict=True)
        )  # fmt: skip

    def design(self, design: Design) -> Design:
        """Return the columns of a design and the products; a product's own range is [−1, 1]."""
        zeros = np.zeros(len(self.names))
        return replace(
            design, names=design.names + self.names, middles=np.append(design.middles, zeros),
            halves=np.append(design.halves, zeros + 1),
        )  # fmt: skip


def drop_weak_terms(moments: JointMoments, first: int, enough: float) -> JointMoments:
    """Return the moments without those after the first columns that keep all too near their noise. A yes or no that was
    declared as a number is one with its square.  Read off what was released alone."""
    while len(moments.names) > first and _signal(moments) < enough:
        without = (moments.among(moments.names[:place] + moments.names[place + 1 :])
                   for place in range(first, len(moments.names)))  # fmt: skip
        moments = max(without, key=_signal)
    return moments


def _signal(moments: JointMoments) -> float:
    # Without noise the least share that columns leave of each other, over the least.
    if moments.deviation > 0:
        return moments.signal_to_noise
    return float(np.linalg.eigvalsh(moments.correlation)[0]) / LEAST_OWN
