"""The effect in one block of rows, and the noisy mean of many blocks' effects: three releases, pure ε.

A block's effect is θ = Σ r_i y_i / Σ r_i², where r is the treatment less its projection on 1, a series of the
confounders and, for everybody's effect, products of treatment and centred columns: a slope of least squares.  For the
effect weighed by e(1 − e) rows count by 1/(1 − h_i), h_i their leverage in the series.  The series is not penalised:
a penalty leaves a part of the confounding in the residuals of both.

Of the M blocks, a window that holds most effects is chosen (claim ``block-window``).  Effects, cut at a public
multiple of its half, are summed about its centre, and so are their squares (claim ``block-sum``).  With s the share
of normal effects that lie within, the mean is the centre and Σ u / M s, and

    V = Σ u² / M − (Σ u / M)²,   error² = (V / (M − 1) + noise²) / s²

counts sampling, whatever the blocks compute; a bias that all blocks share is not counted.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.mechanisms.additive import geometric, geometric_variance, laplace_scale
from dpcausal.mechanisms.blocks import block_sum, block_window, blocks_moved
from dpcausal.mechanisms.selection import noisy_max
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.sensitivity import Unit
from dpcausal.regression.smoother import Given, standardised

TERMS = ("lines", "curves", "products")
"""Each has the columns of those before it: numbers and levels; their squares and cubes; products of two."""
LEAST_MOVED = 0.5
"""Records' worth of treatment that what is adjusted for must leave; below, a block has no effect."""
MOST_LEVERAGE = 0.8
"""Of a row in the series, that its weight allows for."""
LEAST_LEFT = 5
"""Rows that a block must have beyond its columns."""
UNIT = 1 << 26
"""Steps of an answer in a width of the outcome's range."""
FINE = 1 << 20
"""Steps of a square in the largest."""
WINDOW, SUM, SQUARES = Fraction(25, 100), Fraction(55, 100), Fraction(20, 100)
PROOFS = ("block-window", "noisy-max", "block-sum", "geometric")
NARROWEST = 128
"""The narrowest window's half is the outcome's width over this and over the root of a block's rows."""
LEAST_REACH = 2.0
"""Answers are cut at so many halves from the centre, or at √ln M if that is more."""
LEAST_INSIDE = 0.8
"""Least share of the answers that are taken to lie within, where their mean is reported."""
LEAST_SPREAD = 0.1
"""Least variance of the cut answers, in squared halves."""
ASTRAY, ALL_CUT = 0.75, 0.85
"""No answer where the mean lies so many halves from the centre, or so large a part of the squares is the largest: the
window is not where the answers are."""


class Kinds(NamedTuple):
    """What is adjusted for: the number of numeric columns, and the levels of the others."""

    numbers: int
    levels: tuple[int, ...]

    def columns(self, terms: str) -> int:
        indicators = [size - 1 for size in self.levels]
        count = self.numbers + sum(indicators)
        if terms != TERMS[0]:
            count += 2 * self.numbers
        if terms == TERMS[2]:
            among = sum(one * other for one, other in combinations(indicators, 2))
            count += self.numbers * (self.numbers - 1) // 2 + self.numbers * sum(indicators) + among
        return count

    def modifiers(self, terms: str) -> int:
        return self.columns(TERMS[0]) + (self.numbers if terms != TERMS[0] else 0)


def series(given: Given, terms: str) -> Reals:
    """Return the columns of a series, shape (n, ``Kinds.columns``), without the constant."""
    Z, levels = standardised(given.numbers), given.indicators(1)
    columns = [Z, *levels]
    if terms != TERMS[0]:
        columns += [Z**2, Z**3]
    if terms == TERMS[2]:
        groups = [Z[:, [place]] for place in range(Z.shape[1])] + levels
        pairs = combinations(groups, 2)
        columns += [(one[:, :, None] * other[:, None, :]).reshape(len(one), -1) for one, other in pairs]
    return np.hstack(columns)


def modifiers(given: Given, terms: str) -> Reals:
    Z = standardised(given.numbers)
    columns = np.hstack([Z, *given.indicators(1), *([Z**2] if terms != TERMS[0] else [])])
    return np.asarray(columns - columns.mean(axis=0))


class Slope(NamedTuple):
    """The effect in a block, and its standard error, whatever the spread of the outcome is where."""

    effect: float
    error: float


def slope(treated: Reals, outcome: Reals, given: Given, terms: str, overlap: bool) -> Slope | None:
    """Return the effect in a block, the outcome in widths of its range; ``None`` where too little is left of it. With
    ``overlap`` everybody counts by how evenly those alike are treated, instead of each as one."""
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
    return U[:, values > 1e-7 * values[0]]


class BlockAggregate(NamedTuple):
    """The mean of what blocks answer, in widths of the outcome's range; ``None`` where no window was found."""

    estimate: float | None
    sampling: float
    """Variance of the mean over the blocks."""
    noise: float
    """Deviation of the noise."""


def answer_of(effect: float) -> int:
    return round(min(max(effect, -1.0), 1.0) * UNIT)


def reach_of(blocks: int) -> float:
    """Return at how many halves from the centre answers are cut."""
    return max(LEAST_REACH, math.sqrt(math.log(max(blocks, 1))))


def candidate_windows(rows: float) -> tuple[Integers, Integers]:
    """Return centres and halves of all windows that may be chosen, for blocks of about so many rows: public. Halves
    shrink by √2, with centres a half apart over all that an effect can be."""
    least, halves = UNIT / (NARROWEST * math.sqrt(max(rows, 1.0))), list[int]()
    while not halves or halves[-1] / math.sqrt(2) >= max(least, 4):
        halves.append(round(UNIT * 2 ** (-len(halves) / 2)))
    places = [np.arange(-(UNIT // half) - 1, UNIT // half + 2) * half for half in halves]
    wide = [np.full(len(some), half) for some, half in zip(places, halves, strict=True)]
    return np.concatenate(places).astype(np.int64), np.concatenate(wide).astype(np.int64)


def noise_share(blocks: int, epsilon: float) -> float:
    """Return the deviation of the noise of the mean, in halves of the window: public."""
    return math.sqrt(8) * reach_of(blocks) / (blocks * float(SUM) * epsilon)


def block_mean(
    answers: Sequence[int | None], rows: float, unit: Unit, loss: PureDP, allotment: CallBudget
) -> BlockAggregate:
    """Release the mean of the blocks' answers, whole numbers in [−``UNIT``, ``UNIT``]; ``None`` of a block without one.

    Such a block adds nothing to the sum and the largest square: many of them widen the interval.

    *Guarantee*: ``loss`` as pure ε, claims block-window, noisy-max, block-sum, geometric; the three add up.
    """
    (centres, halves), blocks = candidate_windows(rows), len(answers)
    query = block_window(answers, centres, halves, "window of blocks' answers", unit)
    chosen = noisy_max(query, allotment, loss.part(WINDOW))
    centre, half = int(centres[chosen]), int(halves[chosen])
    reach = max(1, round(reach_of(blocks) * half))
    away = [None if one is None else min(max(one - centre, -reach), reach) for one in answers]
    total = block_sum([one or 0 for one in away], reach, "sum of blocks' answers", unit)
    squares = [FINE if one is None else one * one * FINE // (reach * reach) for one in away]
    of_squares = block_sum([one - FINE // 2 for one in squares], FINE // 2, "sum of blocks' squares", unit)
    mean = geometric(total, allotment, loss.part(SUM)) / blocks / reach
    square = geometric(of_squares, allotment, loss.part(SQUARES)) / blocks / FINE + 0.5
    noise, unsure = (
        math.sqrt(geometric_variance(laplace_scale(2 * steps * blocks_moved(unit), loss.part(share)))) / blocks / size
        for steps, share, size in ((reach, SUM, reach), (FINE // 2, SQUARES, FINE))
    )
    return aggregate_of(mean, square, noise, unsure, blocks, centre, half)


def share_inside(spread: float, steps: float) -> float:
    """Return the share of normal answers that lie within so many halves, from the variance of the cut ones, in halves.
    By so much less the mean of the cut answers moves than they do."""
    low, high = 0.2, 5.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        t = steps / middle
        inside = math.erf(t / math.sqrt(2))
        cut = middle**2 * (inside - t * math.sqrt(2 / math.pi) * math.exp(-t * t / 2)) + steps**2 * (1 - inside)
        low, high = (middle, high) if cut < spread else (low, middle)
    return max(math.erf(steps / low / math.sqrt(2)), LEAST_INSIDE)


def aggregate_of(
    mean: float, square: float, noise: float, unsure: float, blocks: int, centre: int, half: int
) -> BlockAggregate:
    """Return what three released numbers say: means and deviations in reaches, centre and half in steps."""
    steps = reach_of(blocks)
    astray = abs(mean) * steps > ASTRAY + 2 * noise * steps or square > ALL_CUT + unsure
    inside = share_inside((square - mean**2) * steps**2, steps)
    spread = min(max(square - mean**2 + unsure, LEAST_SPREAD / steps**2), 1.0)
    width = steps * half / UNIT / inside
    estimate = None if astray else min(max(centre / UNIT + mean * width, -1.0), 1.0)
    return BlockAggregate(estimate, spread / (blocks - 1) * width**2, noise * width)
