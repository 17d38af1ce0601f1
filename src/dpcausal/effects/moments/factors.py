"""Columns of more than two levels among moments: a column a level, numbers about the means within levels.

A row lies in one level of a factor.  So all columns of a factor together lengthen it by one ``weight``, however many
levels there are and however rare they are.  Between two levels of a factor there is no product, and none is released.
Proofs: ``adaptive.md``, of a shape that is public or released.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.effects.moments import adaptive
from dpcausal.effects.moments.adaptive import LAST, SHAPING, Moments, Noise, Shape, StreamedRows, noise_of
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP

LENGTH = 0.5
"""Of the squared length that rows of numbers are shortened to, what all factors add.  Twice as much takes a twentieth
of the error of levels and adds a tenth to that of slopes."""
FLOOR, EXACT_FLOOR = 0.1, 1e-9
"""Levels of factors that determine each other, as far as the noise shows, leave no less of a direction than this."""
HIDDEN = 3.0
"""They determine each other where they leave less, within so many deviations of the noise."""
LEAST_COUNT = 2.0
"""A level counts as so many deviations of its number at least."""
QUANTILES = 4096
"""So many of the length of normal rows are taken to find what shortening leaves."""
RESOLVED, NEARLY = 4.0, 3.0
"""The coefficient of a level has an interval where its number, and that of its reference, is so many deviations.  Noise
may have lifted it there: just above, what noise in the number moves counts so many deviations more, and none so many
deviations further."""


@dataclass(frozen=True)
class Layout:
    """So many columns of numbers, then those of the levels of each factor."""

    numbers: int
    sizes: tuple[int, ...] = ()

    @property
    def columns(self) -> int:
        return self.numbers + sum(self.sizes)

    def levels(self, factor: int) -> list[int]:
        start = self.numbers + sum(self.sizes[:factor])
        return list(range(start, start + self.sizes[factor]))

    @property
    def never(self) -> np.ndarray:
        """Which products of two columns are 0 in every row, those of two levels of a factor: (columns, columns)."""
        never = np.zeros((self.columns, self.columns), dtype=np.bool_)
        for factor in range(len(self.sizes)):
            places = np.ix_(self.levels(factor), self.levels(factor))
            never[places] = ~np.eye(self.sizes[factor], dtype=np.bool_)
        return never

    def weight(self, radius: float) -> float:
        """Return the length of a factor's columns, of rows whose numbers are shortened to a radius."""
        return radius * math.sqrt(LENGTH / len(self.sizes))

    def radius(self, radius: float) -> float:
        """Return the length that whole rows are shortened to."""
        return radius * math.sqrt(1 + LENGTH) if self.sizes else radius

    def as_numbers(self, loss: ZCDP) -> ZCDP:
        """Return the loss at which the noise of the numbers alone would be as large: public."""
        return loss.part(1 / (1 + Fraction(LENGTH)) ** 2) if self.sizes else loss

    def last_radius(self, n: int, loss: ZCDP) -> float:
        """Return the length that numbers are shortened to in the last release: public."""
        tail = adaptive.undetectable_tail(self.numbers, n, loss)
        return adaptive.last_radius(self.numbers, n, loss, tail)

    def shrinkage(self, radius: float) -> float:
        """Return what shortening leaves of a number's mean square, where numbers are standard normal."""
        from scipy.special import chdtri

        if not self.sizes:
            return adaptive.shrinkage(self.numbers, radius)
        squares = chdtri(self.numbers, (np.arange(QUANTILES) + 0.5) / QUANTILES)
        left = np.minimum(1.0, self.radius(radius) ** 2 / (squares + LENGTH * radius**2))
        return float((squares * left).mean() / self.numbers)

    def level_noise(self, n: int, loss: ZCDP) -> float:
        """Return the norm of the last noise in the products of two factors' levels, of one size each, beside their
        numbers: from about 1 on two factors seem to determine each other. Public."""
        radius = self.last_radius(n, loss)
        noise = self.noise(n, radius, loss.part(LAST)).deviation / math.sqrt(2) / n / self.weight(radius) ** 2
        pairs = combinations(self.sizes, 2)
        return max((noise * (math.sqrt(a) + math.sqrt(b)) * math.sqrt(a * b) for a, b in pairs), default=0.0)

    def noise(self, n: int, radius: float, loss: ZCDP) -> Noise:
        return noise_of(self.columns, n, self.radius(radius), loss)

    def shape(self, numbers: Shape, within: Reals, weight: float) -> Shape:
        """Return the shape of rows whose numbers lie about ``within`` times the columns of levels, 0 or ``weight``.
        In units of its range a column of a level is -1 or 1."""
        spread = np.diag(np.full(self.columns, 2 / weight))
        spread[: self.numbers, : self.numbers] = numbers.spread
        spread[: self.numbers, self.numbers :] = within
        return Shape(np.append(numbers.middle, np.full(sum(self.sizes), -1.0)), spread)


def factor_moments(rows: StreamedRows, layout: Layout, n: int, budget: CallBudget, loss: ZCDP) -> Moments:
    """Release the rounds and the last moments: where numbers lie, then where within levels, then all about that."""
    p = layout.numbers
    numbers = rows.with_terms(lambda unit: unit[:, :p])
    shape = adaptive.estimate_location_scale(numbers, p, n, budget, loss, SHAPING[:1])
    radius, part = adaptive.tail_radius(p, adaptive.TAIL), loss.part(SHAPING[1])
    weight = layout.weight(radius)
    noise = layout.noise(n, radius, part)
    whole = layout.shape(shape, np.zeros((p, sum(layout.sizes))), weight)
    seen = adaptive.released(rows, whole, noise, budget, part)
    within, spread = _within(seen, layout, radius, n)
    radius, part = layout.last_radius(n, loss), loss.part(LAST)
    own = layout.weight(radius)
    whole = layout.shape(Shape(shape.middle, shape.spread @ spread), shape.spread @ within * (weight / own), own)
    last = adaptive.released(rows, whole, layout.noise(n, radius, part), budget, part)
    last.sums[:-1, :-1][layout.never] = 0.0
    return last


def _within(seen: Moments, layout: Layout, radius: float, n: int) -> tuple[Reals, Reals]:
    """Return the means of numbers within levels, by the columns of levels, and the root of what varies there.  Factors
    are taken as independent of each other as far as noise may be what shows that they are not, and levels that are rare
    for their noise as nearer to the mean of all."""
    p, deviation = layout.numbers, seen.noise.deviation
    products = np.where(layout.never, 0.0, seen.sums[:-1, :-1])
    count = max(float(seen.sums[-1, -1]), seen.noise.least_count(n))
    of_levels, totals = products[p:, p:].copy(), np.maximum(np.diag(products)[p:], deviation)
    for one in range(len(layout.sizes)):
        for other in range(len(layout.sizes)):
            if one != other:
                left, right = (np.array(layout.levels(factor)) - p for factor in (one, other))
                products_of = np.outer(totals[left], totals[right])
                independent = products_of / ((totals[left].sum() + totals[right].sum()) / 2)
                away = of_levels[np.ix_(left, right)] - independent
                noise = deviation**2 / 2 * float((1 / products_of).sum())
                of_levels[np.ix_(left, right)] = (
                    independent + max(1 - noise / max(float((away**2 / products_of).sum()), 1e-300), 0.0) * away
                )
    of_levels[np.diag_indices(len(totals))] = totals
    along, lengths = level_directions(of_levels, layout.sizes, deviation, deviation)
    inverse = (along / np.maximum(lengths, FLOOR)) @ along.T
    within = products[:p, p:] @ inverse
    both = np.hstack([np.eye(p), -within])
    products[p:, p:] = of_levels
    # Noise moves the means within levels: what varies about them is more than what is left, by twice that.
    moved = deviation**2 * float(np.trace(inverse)) * np.eye(p)
    varies = (both @ products @ both.T + moved) / count / layout.shrinkage(radius)
    least = deviation * math.sqrt(2 * p) / count / 2
    eigenvalues, vectors = np.linalg.eigh((varies + varies.T) / 2)
    return within, (vectors * np.sqrt(np.maximum(eigenvalues, 0.0) + least)) @ vectors.T


def level_directions(products: Reals, sizes: tuple[int, ...], least: float, ridge: float = 0.0) -> tuple[Reals, Reals]:
    """Return U and the lengths l of Σ dd′ of columns of levels, each number at least ``least``: its inverse is
    U diag(1/l) U′.

    All levels of a factor less all of another are 0 in every row: the inverse is 0 along that.
    """
    numbers = np.maximum(np.diag(products), least) + ridge
    roots = np.sqrt(numbers)
    scaled = products / np.outer(roots, roots)
    np.fill_diagonal(scaled, 1.0)
    starts = np.cumsum([0, *sizes])
    null = np.zeros((len(roots), len(sizes) - 1))
    for place in range(len(sizes) - 1):
        null[: sizes[0], place] = roots[: sizes[0]]
        after = slice(starts[place + 1], starts[place + 2])
        null[after, place] = -roots[after]
    basis = np.linalg.qr(null, mode="complete")[0][:, null.shape[1] :]
    eigenvalues, vectors = np.linalg.eigh(basis.T @ scaled @ basis)
    return np.asarray((basis @ vectors) / roots[:, None]), np.asarray(eigenvalues)


def split_inverse(
    rows: Reals, sums: Reals, sizes: tuple[int, ...], deviation: float, noise_of: Callable[[Reals], Reals]
) -> tuple[Reals, Reals]:
    """Return the inverse of moments of levels, ``rows`` of columns z, and the part of it along which levels determine
    each other, as far as the noise shows: ``noise_of`` a vector of z is its covariance in the product with it."""
    least = LEAST_COUNT * deviation * float((rows**2).max()) or EXACT_FLOOR * float(sums[-1, -1])
    along, lengths = level_directions(rows @ sums[:-1, :-1] @ rows.T, sizes, least)
    columns = np.append(along.T @ rows, np.zeros((len(lengths), 1)), axis=1)
    noise = np.sqrt([one @ noise_of(one) @ one for one in columns])
    lost = lengths < np.clip(HIDDEN * noise, EXACT_FLOOR, FLOOR)
    along = along / np.sqrt(np.where(lost, FLOOR if deviation else EXACT_FLOOR, lengths))
    return along @ along.T, along[:, lost] @ along[:, lost].T


def level_names(factors: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(f"{one[0]} = {level}" for one in factors for level in one[1:])


@dataclass(frozen=True)
class Contrasts:
    """The coefficients that a regression reports: slopes, levels less the reference of their factor, the intercept.

    ``of_columns``, shape (coefficients, columns of the line), makes them of the line's own.
    """

    names: tuple[str, ...]
    references: tuple[str | None, ...]
    of_columns: Reals
    bases: tuple[tuple[str, str], ...]

    @classmethod
    def of(
        cls, regressors: Sequence[str], factors: Sequence[tuple[str, ...]], reference: Mapping[str, str]
    ) -> Contrasts:  # fmt: skip
        by_name = {name: levels for name, *levels in factors}
        columns = [(name, "") for name in regressors if name not in by_name]
        columns += [(name, level) for name, levels in by_name.items() for level in levels]
        bases = {name: reference.get(name, levels[0]) for name, levels in by_name.items()}
        columns += [] if bases else [("", "")]
        own = dict(zip(columns, np.eye(len(columns)), strict=True))
        reported: list[tuple[str, str | None, Reals]] = []
        for name in regressors:
            if name in bases:
                base = own[name, bases[name]]
                reported += [(f"{name} = {level}", bases[name], own[name, level] - base)
                         for level in by_name[name] if level != bases[name]]  # fmt: skip
            else:
                reported.append((name, None, own[name, ""]))
        intercept = sum((own[one] for one in bases.items()), np.zeros(len(columns))) if bases else own["", ""]
        names, references, rows = zip(*reported, ("intercept", None, intercept), strict=True)
        return cls(names, references, np.array(rows), tuple(bases.items()))
