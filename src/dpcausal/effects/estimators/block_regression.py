"""The effect in one block of rows: residuals of treatment and outcome, swept by a series of what is adjusted for.

    θ = Σ r_i y_i / Σ r_i²

where r is the treatment less its projection on 1, the columns of the series and, for everybody's effect, the products
of treatment and centred columns; so θ is the slope of the treatment in a least squares line of the outcome on them all.
For the effect weighed by e(1 − e) rows count by 1/(1 − h_i), h_i their leverage in the series: what a series of many
columns takes of a row's treatment would else be missing in its weight.
The series is not penalised: a penalty leaves a part of the confounding in the residuals of both.

Nothing here is private: it belongs inside a block whose answer is bounded and paid for.  It is total.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from dpcausal.regression.smoother import Given, standardised

Reals = npt.NDArray[np.float64]

TERMS = ("lines", "curves", "products")
"""Each has the columns of those before it: numbers and levels; their squares and cubes; products of two."""

LEAST_MOVED = 0.5
"""Records' worth of treatment that what is adjusted for must leave; below, a block has nothing to say."""
MOST_LEVERAGE = 0.8
"""Of a row in the series, that its weight allows for."""
LEAST_LEFT = 5
"""Rows that a block must have beyond its columns."""


@dataclass(frozen=True)
class Kinds:
    """What is adjusted for: the number of numeric columns, and the levels of the others."""

    numbers: int
    levels: tuple[int, ...]

    def columns(self, terms: str) -> int:
        """Return the number of columns of a series."""
        indicators = [size - 1 for size in self.levels]
        count = self.numbers + sum(indicators)
        if terms != TERMS[0]:
            count += 2 * self.numbers
        if terms == TERMS[2]:
            among = sum(one * other for one, other in combinations(indicators, 2))
            count += self.numbers * (self.numbers - 1) // 2 + self.numbers * sum(indicators) + among
        return count

    def modifiers(self, terms: str) -> int:
        """Return the number of columns that the effect may change along."""
        return self.columns(TERMS[0]) + (self.numbers if terms != TERMS[0] else 0)


def series(given: Given, terms: str) -> Reals:
    """Return the columns of a series, shape (n, ``Kinds.columns``), without the constant."""
    Z, levels = standardised(given.numbers), _indicators(given)
    columns = [Z, *levels]
    if terms != TERMS[0]:
        columns += [Z**2, Z**3]
    if terms == TERMS[2]:
        groups = [Z[:, [place]] for place in range(Z.shape[1])] + levels
        pairs = combinations(groups, 2)
        columns += [(one[:, :, None] * other[:, None, :]).reshape(len(one), -1) for one, other in pairs]
    return np.hstack(columns)


def modifiers(given: Given, terms: str) -> Reals:
    """Return the columns that the effect may change along, each of mean 0."""
    Z = standardised(given.numbers)
    columns = np.hstack([Z, *_indicators(given), *([Z**2] if terms != TERMS[0] else [])])
    centred: Reals = columns - columns.mean(axis=0)
    return centred


def _indicators(given: Given) -> list[Reals]:
    return [
        (codes[:, None] == np.arange(1, size)).astype(np.float64)
        for codes, size in zip(given.levels.T, given.sizes, strict=True)
    ]


@dataclass(frozen=True)
class Slope:
    """The effect in a block, and its standard error, whatever the spread of the outcome is where."""

    effect: float
    error: float


def slope(treated: Reals, outcome: Reals, given: Given, terms: str, overlap: bool) -> Slope | None:
    """Return the effect in a block, or nothing where it has nothing to say.

    Parameters
    ----------
    treated, outcome : float arrays, shape (n,)
        0 and 1; in widths of the outcome's range.
    given : Given
        What is adjusted for.
    terms : str
        Of ``TERMS``.
    overlap : bool
        Whether everybody counts by how evenly those alike are treated, instead of each as one.
    """
    n = len(treated)
    if n <= LEAST_LEFT:
        return None
    basis = _basis([np.ones((n, 1)), series(given, terms)])
    A, y = (one - basis @ (basis.T @ one) for one in (treated, outcome))
    weighed = A / (1 - np.minimum((basis**2).sum(axis=1), MOST_LEVERAGE)) if overlap else A
    if not overlap and not given.empty:
        basis = _basis([np.ones((n, 1)), series(given, terms), treated[:, None] * modifiers(given, terms)])
        A, y = (one - basis @ (basis.T @ one) for one in (A, y))
        weighed = A
    left, squares = n - basis.shape[1] - 1, float(weighed @ A)
    if left < LEAST_LEFT or not squares >= LEAST_MOVED:
        return None
    effect = float(weighed @ y) / squares
    spread = float(((weighed * (y - effect * A)) ** 2).sum()) * n / left
    return Slope(effect, math.sqrt(spread) / squares) if math.isfinite(effect) else None


def _basis(columns: Sequence[Reals]) -> Reals:
    Z = np.hstack(columns)
    size = np.sqrt((Z**2).sum(axis=0))
    U, values, _ = np.linalg.svd(Z[:, size > 0] / size[size > 0], full_matrices=False)
    basis: Reals = U[:, values > 1e-7 * values[0]]
    return basis
