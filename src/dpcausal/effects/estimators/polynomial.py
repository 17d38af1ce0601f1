"""Squares and products of what is adjusted for: where treatment and outcome go with one, no two lines show it.

They are taken about where a first round of the moments found the columns, in units of their spreads there, and stay the
same from where they are ``REACH``².  So each is a column like others: a function of the record alone, and of what was
released.  Of about normal columns they are near uncorrelated with these and with each other, so that the shape of all
is known before a further round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Self

import numpy as np
import numpy.typing as npt

from dpcausal.effects.estimators.aipw_scores import Design
from dpcausal.effects.moments.adaptive import Shape
from dpcausal.effects.moments.product import Product
from dpcausal.effects.moments.release import JointMoments

Reals = npt.NDArray[np.float64]
Pair = tuple[int, int]

REACH = 4.0
LEAST_OWN = 1e-6
"""Without noise a term is left out of which the other columns leave less than this share."""


def squares_of(design: Design) -> list[Pair]:
    """Return the numbers that are adjusted for, each with itself."""
    return [(place, place) for place in _adjusted(design) if design.codes[place] is None]


def products_of(design: Design) -> list[Pair]:
    """Return the pairs of columns that are adjusted for, but for two levels of one."""
    pairs = combinations(_adjusted(design), 2)
    return [(one, other) for one, other in pairs if design.sources[one] != design.sources[other]]


def _adjusted(design: Design) -> range:
    return range(2, len(design.sources))


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
        for column, (i, j) in zip(expanded.T[d:], self.pairs, strict=True):
            one, other = ((unit[:, k] - self.middle[k]) / (REACH * self.spread[k]) for k in (i, j))
            np.clip(one * other, -1.0, 1.0, out=column)
        return expanded

    def among(self, names: Sequence[str]) -> Self:
        """Return those whose names are among some."""
        left = [place for place, name in enumerate(self.names) if name in names]
        return replace(
            self, pairs=tuple(self.pairs[one] for one in left), names=tuple(self.names[one] for one in left)
        )

    def without_factor(self, names: Sequence[str], design: Design) -> list[str]:
        """Return names of columns without the products of a column that is not among them."""
        lost = {own for own, pair in zip(self.names, self.pairs, strict=True)
                if not {design.names[place] for place in pair} <= set(names)}  # fmt: skip
        return [name for name in names if name not in lost]

    def shape(self, shape: Shape) -> Shape:
        """Return the shape of all columns where those of the pairs are about normal, and uncorrelated."""
        d, size = len(shape.middle), len(shape.middle) + len(self.pairs)
        square = np.array([i == j for i, j in self.pairs], dtype=np.float64)
        spread = np.diag(np.append(np.zeros(d), 1 + (math.sqrt(2) - 1) * square)) / REACH**2
        spread[:d, :d] = shape.spread
        return Shape(np.append(shape.middle, square / REACH**2).reshape(size), spread)

    def products(self, design: Design) -> tuple[Product, ...]:
        """Return what each is, in the units of a design's columns."""
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
    """Return the moments without those after the first columns that keep all too near their noise.

    A yes or no that was declared as a number is one with its square.  Read off what was released alone.
    """
    while len(moments.names) > first and _clear(moments) < enough:
        without = (moments.among(moments.names[:place] + moments.names[place + 1 :])
                   for place in range(first, len(moments.names)))  # fmt: skip
        moments = max(without, key=_clear)
    return moments


def _clear(moments: JointMoments) -> float:
    """Return the signal to noise; without noise the least share that columns leave of each other, over the least."""
    if moments.deviation > 0:
        return moments.signal_to_noise
    mean = moments.sums[:-1, -1] / moments.count
    covariance = moments.spread @ (moments.sums[:-1, :-1] / moments.count - np.outer(mean, mean)) @ moments.spread.T
    deviations = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    return float(np.linalg.eigvalsh(covariance / np.outer(deviations, deviations))[0]) / LEAST_OWN
