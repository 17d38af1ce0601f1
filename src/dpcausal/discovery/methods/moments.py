"""``"moments"``: noisy second moments of bounded columns, and tests of partial correlation that know the noise.

First the scale of each column, by noisy histograms that close in on its quartiles: a middle and a width in which it is
measured from then on.  Rows in these units, with a ½ beside them for the means, are truncated to a public length and
their second moments released.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from dpcausal.arrays import Integers, Mask, Reals
from dpcausal.core.method import Run, SumsOverRows
from dpcausal.data.records import Rows
from dpcausal.data.schema import Bounded, Levels
from dpcausal.data.table import Table
from dpcausal.discovery.methods.learned_cuts import LEAST_SHARE, PARTS, ROUNDS
from dpcausal.discovery.question import DiscoveryQuestion, ScoreSearch, SearchOutcome, of_numbers, too_few
from dpcausal.discovery.search.exact_score import form_of
from dpcausal.errors import SchemaError, Setting
from dpcausal.mechanisms.additive import gaussian, gaussian_scale
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, affordable_zcdp
from dpcausal.privacy.sensitivity import Query, Sensitivity
from dpcausal.releases.moments import NoisyMoments
from dpcausal.statistics.moments import (
    CONSTANT,
    clip_rows,
    grid_bits,
    scaled,
    second_moments_sensitivity,
    unpacked_matrix,
    upper_of,
)
from dpcausal.statistics.strata import histograms, histograms_sensitivity

LEAST_ERROR = 0.01
"""Of a share: columns are not quite normal."""

LEAST_SPREAD = 0.05
"""Of a column of two levels, 0 and 1."""

NARROWEST = 1 / PARTS**ROUNDS
_WIDTHS = np.append(2.0 ** np.arange(np.log2(NARROWEST), 0, 0.25), 1.0)
_MIDDLES = np.linspace(0.0, 1.0, 33)
_QUARTILE = 0.6744897501960817
"""Of a normal distribution, in its deviations."""

HEAPED, FAR = 0.1, 6.0
"""A column with more than this share of its values over so many widths from its middle is measured by its deviation."""

ALIKE = 0.6
"""Share of values in one part of the last round, three errors of it aside, that are taken for one value."""

SURE_ERRORS = 12.0
"""Errors of a bin's share that values away from the middle must exceed: the sum of a round's bins has three."""


class Scales(NamedTuple):
    middles: Reals
    widths: Reals
    complete: float
    varies: Mask
    """Whether the histograms show that a column varies; one that is constant but for few rows has no scale."""


def learned_scales(two_levels: Mask, n: int, deviation: float, count: Callable[[Reals], Reals]) -> Scales:
    """Return the scales of columns of values in [0, 1]. ``count`` gets cuts, shape (columns, cuts), and returns how
    many values are up to the first, from there to the second, and so on, with noise of that deviation."""
    columns = len(two_levels)
    sides = np.zeros((columns, 2))  # where the intervals around the quartiles begin
    histograms: list[tuple[Reals, Reals]] = []
    totals, fits = [], np.zeros((columns, 2))
    for step in range(ROUNDS):
        width = float(PARTS) ** -step
        inside = np.arange(PARTS + 1) if step else np.arange(1, PARTS)
        cuts = np.sort((sides[:, : 2 if step else 1, None] + inside * width / PARTS).reshape(columns, -1), axis=1)
        counts = count(cuts)
        total = np.maximum(counts.sum(axis=1), LEAST_SHARE * n)
        histograms.append((cuts, counts / total[:, None]))
        totals.append(total)
        error = max(deviation / float(np.mean(totals)), LEAST_ERROR)
        fits = np.array([_posterior_normal([(a[k], b[k]) for a, b in histograms], error) for k in range(columns)])
        quartiles = fits[:, :1] + fits[:, 1:] * np.array([-_QUARTILE, _QUARTILE])
        sides = np.floor(np.clip(quartiles, 0.0, 1 - NARROWEST) * PARTS / width) * width / PARTS
    present = np.clip(histograms[0][1][:, PARTS // 2 :].sum(axis=1), 0.0, 1.0)
    spread = np.maximum(np.sqrt(present * (1 - present)), LEAST_SPREAD)
    least = SURE_ERRORS * deviation / float(np.mean(totals))
    heaps = [
        _scale_of_heap([(a[k], b[k]) for a, b in histograms], middle, width, least)
        for k, (middle, width) in enumerate(fits.tolist())
    ]
    middles, widths = np.where(two_levels, [present, spread], np.array([heap[:2] for heap in heaps]).T)
    both = np.minimum(present, 1 - present) > max(LEAST_SPREAD**2, least)
    varies = np.where(two_levels, both, [heap[2] for heap in heaps])
    return Scales(middles, widths, float(np.mean(totals)), varies)


def _scale_of_heap(
    histograms: list[tuple[Reals, Reals]], middle: float, width: float, least: float
) -> tuple[float, float, bool]:
    """Return the middle and width that were fitted, or mean and deviation where most values are alike or in two heaps;
    and whether the column varies: it does not where most values are alike and the others are not sure."""
    alike = width <= 2 * NARROWEST and float(histograms[-1][1].max()) > ALIKE - least / 4
    shift, square = 0.0, 0.0
    for step, (cuts, shares) in enumerate(histograms):
        start, end = np.append(0.0, cuts), np.append(cuts, 1.0)
        if step:  # nothing shows where in the wide outer parts the values are: at their inner ends at least
            start[0], end[-1] = end[0], start[-1]
        far = np.where((start >= middle + FAR * width) | (end <= middle - FAR * width), shares, 0.0)
        away = (start + end) / 2 - middle
        if float(far.sum()) > max(LEAST_SHARE if alike else HEAPED, least) and float(far @ away**2) > square:
            shift, square = float(far @ away), float(far @ away**2)
    if not square:
        return middle, width, not alike
    return middle + shift, math.sqrt(max(square - shift**2, width**2)), True


def _posterior_normal(histograms: list[tuple[Reals, Reals]], error: float) -> tuple[float, float]:
    """Return the posterior means of a normal distribution's middle and, on its logarithm, width; flat priors."""
    from scipy.special import ndtr

    middles = np.unique(np.concatenate([_MIDDLES, *(cuts for cuts, _ in histograms)]))
    misfit = np.zeros((len(middles), len(_WIDTHS)))
    for cuts, shares in histograms:
        law = ndtr((cuts - middles[:, None, None]) / _WIDTHS[:, None])
        bins = np.diff(law, axis=2, prepend=0.0, append=1.0)
        misfit += ((bins - shares) ** 2).sum(axis=2) / (2 * error**2)
    weight = np.exp(misfit.min() - misfit)
    weight /= weight.sum()
    return float(weight.sum(axis=1) @ middles), float(np.exp(weight.sum(axis=0) @ np.log(_WIDTHS)))


CHUNK = 1 << 13
"""Rows that a processor's cache holds."""

LEAST_WIDTH = 1e-300
"""A width is at least so much, that a row is finite whatever the bounds are."""

SCALES_SHARE = Fraction(2, 5)
"""What the quartiles take of ρ; each round has as much as another."""

MOST_OF_ROWS = 0.09
"""The largest deviation of a round's counts, as a share of the rows, at which scales are learned (ten columns)."""

LENGTH_SHARE = 0.25
"""The squared length of a row as a part of its mean, where noise is above the error of sampling."""


class Noise(NamedTuple):
    """The releases of this many columns and rows: what they cost, their bounds, the deviations of their noise."""

    step: ZCDP | NoPrivacy
    bins: Sensitivity
    bin_deviation: float
    last: ZCDP | NoPrivacy
    radius: float
    bits: int
    moments: Sensitivity
    deviation: float
    """Of an entry of the row of moments, in the columns' units; off the diagonal of the matrix that over √2."""


def noise_of(columns: int, n: int, loss: ZCDP | NoPrivacy) -> Noise:
    step, last = loss.part(SCALES_SHARE / ROUNDS), loss.part(1 - SCALES_SHARE)
    bins, radius = histograms_sensitivity(columns), radius_of(columns, n, last)
    bits = grid_bits(n, radius)
    moments = second_moments_sensitivity(radius, bits, columns + 1)
    return Noise(
        step, bins, gaussian_scale(float(bins.bound), step),
        last, radius, bits, moments, gaussian_scale(float(moments.bound), last) * 4.0**-bits,
    )  # fmt: skip


def radius_of(columns: int, n: int, loss: ZCDP | NoPrivacy) -> float:
    """Return the public length that rows are shortened to, columns of about unit variance and the ½ beside them. R² = p
    + ¼ + 2 √(2p), two standard deviations of a χ² above its mean, where noise is small; elsewhere √(2ρn), at which
    noise is as large as the error of sampling, but at least a quarter of the mean, from where on less length has no
    less noise."""
    mean = columns + CONSTANT**2
    whole = mean + 2 * math.sqrt(2 * columns)
    if isinstance(loss, NoPrivacy):
        return math.sqrt(4 * whole)
    return math.sqrt(min(whole, max(LENGTH_SHARE * mean, math.sqrt(2 * loss.rho * n))))


@dataclass(frozen=True, kw_only=True)
class Moments(SumsOverRows, ScoreSearch):
    """Noisy second moments of bounded columns, or columns of two levels; the best score, or partial correlations.

    Parameters
    ----------
    search : str
        ``"score"`` or ``"pc"``; by default score up to 14 columns.
    max_order : int, optional
        Largest conditioning set, 0 to 8; by default 1 for the screen of a score search, 3 for pc.
    """

    name: ClassVar[str] = "moments"
    about: ClassVar[str] = "noisy second moments"
    losses: ClassVar[tuple[type[Loss], ...]] = (ApproxDP, ZCDP)
    proofs: ClassVar[tuple[str, ...]] = ("column-histograms", "second-moments", "gaussian")
    cuts: ClassVar[bool] = False

    def usual_order(self, columns: int) -> int:
        return 1 if form_of(self.search, columns) == "score" else 3

    def check(self, question: DiscoveryQuestion) -> None:
        declared = [question.table.schema.column(name) for name in question.names]
        if not all(isinstance(one, Bounded) or (isinstance(one, Levels) and len(one) == 2) for one in declared):
            text, hint = "moments need columns with bounds or with two levels", ("use ", Setting("method", "parities"))
            raise SchemaError(text, argument="columns", rule="column-kinds", hint=hint)

    def feasibility_note(self, question: DiscoveryQuestion, loss: ApproxDP | ZCDP | NoPrivacy) -> str:
        columns, n = len(question.names), question.n
        noise = noise_of(columns, n, affordable_zcdp(loss))
        if noise.bin_deviation > MOST_OF_ROWS * n:
            return f"{n} rows at this loss are too few to learn the scales of columns: a missing edge is no evidence"
        weight = min(1.0, noise.radius**2 / (columns + CONSTANT**2))
        variance = (noise.deviation / (n * weight)) ** 2 / 2
        pairs = [of_numbers(n, variance)] * math.comb(columns, 2)
        return too_few(pairs, n, self.terms(question.alpha, question.knowledge).alpha)

    def release(self, run: Run[DiscoveryQuestion]) -> SearchOutcome:
        question = run.question
        released = noisy_moments(run.data, question.names, run.budget, affordable_zcdp(run.loss))
        return self.searched(released, question)


@dataclass(frozen=True, eq=False)
class Units:
    """Columns of kept rows, each on [0, 1]."""

    names: tuple[str, ...]
    lower: Reals
    width: Reals

    @classmethod
    def of(cls, table: Table, names: tuple[str, ...]) -> Units:
        declared = [table.schema.column(name) for name in names]
        bounds = [(one.lower, one.width) if isinstance(one, Bounded) else (0.0, 1.0) for one in declared]
        lower, width = np.array(bounds).T
        return cls(names, lower, width)

    def columns(self, rows: Rows, part: slice = slice(None)) -> Reals:
        """Return the columns of some rows, shape (columns, rows). In [0, 1] as they come: both steps round monotonely,
        and take a column's ends to 0 and 1."""
        complete = rows.included[part]
        columns = (rows.values[name][part][complete] for name in self.names)
        return np.stack([
            (column - lower) / width for column, lower, width in zip(columns, self.lower, self.width, strict=True)
        ])  # fmt: skip


def binned(units: Units, cuts: Reals, rows: Rows) -> Integers:
    """Return the histogram of each column between cuts of its own, a value at a cut below it."""
    codes = [np.searchsorted(own, column) for own, column in zip(cuts, units.columns(rows), strict=True)]
    return histograms(codes, cuts.shape[1] + 1)


def products(units: Units, radius: float, bits: int, rows: Rows) -> Integers:
    """Return the sums of products of rows in these units, shortened, on the grid."""
    total = np.zeros(2 * [len(units.names) + 1])  # of whole numbers, exact in any order
    for start in range(0, rows.n, CHUNK):
        unit = units.columns(rows, slice(start, start + CHUNK))
        shortened = clip_rows(np.column_stack([unit.T, np.full(unit.shape[1], CONSTANT)]), radius, bits)
        total += shortened.T @ shortened
    return upper_of(total).astype(np.int64)


def noisy_moments(table: Table, names: tuple[str, ...], allotment: CallBudget, loss: ZCDP | NoPrivacy) -> NoisyMoments:
    n, p, noise, records = table.n, len(names), noise_of(len(names), table.n, loss), table.records(names)
    units = Units.of(table, names)
    lower, width = units.lower, units.width
    two = np.array([isinstance(table.schema.column(name), Levels) for name in names])

    def count(cuts: Reals) -> Reals:
        query = Query(records.sum(partial(binned, units, cuts)), noise.bins, "quartiles")
        return np.asarray(gaussian(query, allotment, noise.step), dtype=np.float64)

    scales = learned_scales(two, n, noise.bin_deviation, count)
    # From here on middles, widths and the columns that vary are functions of the noisy histograms.
    spread = np.maximum(width * np.where(scales.varies, scales.widths, np.inf), LEAST_WIDTH)
    own = Units(names, lower + width * scales.middles, spread)
    grid = scaled(records.sum(partial(products, own, noise.radius, noise.bits)), p + 1)
    released = gaussian(Query(grid, noise.moments, "second moments"), allotment, noise.last)
    moments = unpacked_matrix(released, p + 1) * 4.0**-noise.bits
    # Left-out rows are in no sum, shortened ones in part: the entry of the ½ says how much, and is not let be tiny.
    weight = max(float(moments[p, p]) / CONSTANT**2, LEAST_SHARE * n)
    means = moments[:p, p] / (CONSTANT * weight)
    covariance = moments[:p, :p] / weight - np.outer(means, means)
    return NoisyMoments(
        names=names, n=n, middles=tuple((lower + width * scales.middles).tolist()),
        widths=tuple((width * scales.widths).tolist()),
        covariance=np.where(np.outer(scales.varies, scales.varies), covariance, 0.0),
        variance=noise.deviation**2 / 2 / weight**2,
        count=None if table.missing == "impute" else min(scales.complete, n),
        squared=None if isinstance(loss, NoPrivacy) else noise.radius**2,
    )  # fmt: skip
