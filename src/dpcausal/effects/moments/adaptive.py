"""The rounds that learn where the rows lie and in what shape, and the last release in that shape.

Each releases second moments of rows measured from a released middle in a released shape, how many were shortened, and
where to.  Proofs: ``adaptive.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.arrays import Integers, Mask, Reals
from dpcausal.data.records import Rows
from dpcausal.data.table import Table
from dpcausal.mechanisms.additive import gaussian, gaussian_scale
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity, Unit
from dpcausal.statistics.moments import clip_rows, grid_bits, squared_lengths, unpacked_matrix, upper_of

SHAPING = (Fraction(1, 10), Fraction(1, 4))
"""Shares of ρ of the rounds; the histograms have a twentieth, the last release the rest."""
HISTOGRAM = Fraction(1, 20)
LAST = 1 - HISTOGRAM - sum(SHAPING, Fraction(0))
TAIL, LAST_TAIL = 0.3, 0.1
"""Shares of normal rows that a round and the last release shorten."""
ONE_SIDED, LEAST_SEEN = 0.5, 5.0
"""What detects a skew of half of the rows that are shortened by so many deviations of noise and chance, sees the skews
that were tried."""
GROWTH = 1 / 3
"""Where noise does not bind, the last radius grows: R² ≥ μ √n / 3, so that nothing is shortened in the end."""
BLUR, TAKEN = 1.75, (0.6, 0.05)
"""The shape that rows are seen in is wider than they are by so many times the norm of its noise; of the last noise the
least direction loses so many norms, and so many more a column.  Measured."""
PATHS_GROWTH = 0.03
"""Likewise of paths: R² ≥ 0.03 μ² of a cohort's persons."""
LINES_GROWTH = 0.1
"""Likewise of paths with covariates, R² ≥ μ √size / 10: the noise of slopes is in R², and falls with persons and μ."""
SCALES = 48
"""Bins of ``scale_histograms``: the k-th holds |u| of [2^(−(k+1)/2), 2^(−k/2)), the last all below."""
WHOLE = 2**20
"""The mass of a unit in ``scale_histograms``, in integers."""


def scale_histograms(unit: Reals, mass: Integers) -> Integers:
    """Return for each column how many |u| lie between successive powers of 1/√2, shape (columns, ``SCALES``).

    ``unit``, shape (n, d), is in [−1, 1]; the ``mass`` of all rows of a unit is at most ``WHOLE``.

    *Guarantee*: ``scale_histograms_sensitivity(d)``.
    """
    halves, powers = np.frexp(unit)  # |u| = |half| · 2^power, 1/2 ≤ |half| < 1
    bins = np.clip(np.where(halves == 0, SCALES, (np.abs(halves) < math.sqrt(0.5)) - 2 * powers), 0, SCALES - 1)
    return np.stack([np.bincount(column, mass, SCALES) for column in bins.T]).astype(np.int64)


def scale_histograms_sensitivity(columns: int) -> Sensitivity:
    """Return the l2 sensitivity of ``scale_histograms``: √(2 · columns) · ``WHOLE``."""
    bound = math.nextafter(math.sqrt(2 * columns) * WHOLE, math.inf)
    return Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "scale-histograms", symmetric=True)


def whitened(unit: Reals, middle: Reals, inverse: Reals) -> Reals:
    """Return z with z_j = Σ_i inverse[j, i] (u_i − middle_i), each row from itself alone, one column after another."""
    moved = [unit[:, i] - middle[i] for i in range(unit.shape[1])]
    rows = np.zeros((len(unit), len(inverse)), order="F")
    for j in range(len(inverse)):
        for i, column in enumerate(moved):
            if inverse[j, i] != 0.0:
                rows[:, j] += inverse[j, i] * column
    return rows


def anchor(radius: float) -> float:
    """Return k, the constant beside a row: half the radius."""
    return radius / 2


def ellipse_bits(n: int, radius: float) -> int:
    return grid_bits(n, math.hypot(radius, anchor(radius)))


def ellipse_moments(
    rows: Reals, complete: Mask, radius: float, bits: int, weights: Reals | None = None, owners: Integers | None = None
) -> Reals:
    """Return Σ ww′ over complete rows, w = (z shortened to the radius, k); how many were shortened; their sum.

    In units of 4^(−bits): the entries of ``second_moments``, the number times R²/3, the sum times R/3.  ``weights`` is
    what part of its unit each row is, at most 1 in all of a unit, ``owners`` whose it is: a unit's sum is rounded once.

    *Guarantee*: ``ellipse_moments_sensitivity(radius, bits, d)``.
    """
    sums = ellipse_sums(rows, complete, radius, bits, weights, owners)
    return ellipse_answer(sums, rows.shape[1], radius, bits, weights is not None)


def ellipse_sums(
    rows: Reals, complete: Mask, radius: float, bits: int, weights: Reals | None = None, owners: Integers | None = None
) -> Integers:
    """Return whole numbers that add over rows, of which ``ellipse_answer`` makes the answer."""
    inside = clip_rows(rows, radius, bits) * complete[:, None]
    constant = np.trunc(math.ldexp(anchor(radius), bits)) * complete
    clipped = (squared_lengths(rows) > radius * radius) & complete
    if weights is None:
        grid = np.column_stack([inside, constant])
        return np.concatenate(
            [upper_of(grid.T @ grid), [float(clipped.sum())], inside[clipped].sum(axis=0)]
        ).astype(np.int64)

    def total(values: npt.NDArray[Any]) -> float:
        each = weights * values
        return float(np.rint(each if owners is None else np.bincount(owners, each)).sum())

    columns, (number, towards) = [*inside.T, constant], units_of(radius, bits)
    products = [total(one * one) for one in columns]
    products += [total(one * other) for i, one in enumerate(columns) for other in columns[i + 1 :]]
    return np.array(
        [*products, total(number * clipped), *(total(towards * column * clipped) for column in inside.T)]
    ).astype(np.int64)


def ellipse_answer(sums: Integers, columns: int, radius: float, bits: int, weighted: bool) -> Reals:
    """Return the answer; sums of weighted rows were multiplied before they were rounded."""
    number, towards = (1.0, 1.0) if weighted else units_of(radius, bits)
    answer = sums.astype(np.float64)
    answer[columns + 1 : -columns - 1] *= math.sqrt(2)
    answer[-columns - 1] *= number
    answer[-columns:] *= towards
    return answer


def units_of(radius: float, bits: int) -> tuple[float, float]:
    """Return what a shortened row counts in units of 4^(−bits), R²/3 cut, and the factor of its entries, R/3."""
    length = math.ldexp(radius, bits)
    return float(math.floor(length**2 / 3)), length / 3


def ellipse_moments_sensitivity(radius: float, bits: int, columns: int) -> Sensitivity:
    """Return the l2 sensitivity of ``ellipse_moments`` of d columns, 4^bits √(2(R² + k²)² + 2w²(1 + k²/R²) + w⁴/2R⁴).

    w = R²/3 is what a shortened row counts; rounding is added.

    Examples
    --------
    >>> round(float(ellipse_moments_sensitivity(1.0, 14, 3).bound) / 4**14, 4)
    1.8463
    """
    k2, w = (anchor(radius) / radius) ** 2, 1 / 3
    exact = math.sqrt(2 * (1 + k2) ** 2 + 2 * w**2 * (1 + k2) + w**4 / 2) * math.ldexp(radius, bits) ** 2
    entries = (columns + 1) * (columns + 2) // 2 + columns
    bound = exact * (1 + 2.0**-30) + 4 * math.sqrt(entries)
    return Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "ellipse-moments", symmetric=True)


@dataclass(frozen=True)
class Noise:
    """What one release of moments adds, from public numbers: σ of the diagonal, off it σ/√2, in units of z."""

    radius: float
    bits: int
    deviation: float

    @property
    def count(self) -> float:
        """Deviation of the number of shortened rows, and of each entry of the sum of their directions."""
        return 3 * self.deviation / self.radius**2

    def least_count(self, n: int) -> float:
        """Return what the number of kept rows is taken for at least: a tenth of all, or five deviations if less."""
        return min(n / 10, 1 + 5 * self.deviation / anchor(self.radius) ** 2)

    def variances(self, columns: int) -> Reals:
        k, size = anchor(self.radius), columns + 1
        variances = np.full((size, size), self.deviation**2 / 2)
        np.fill_diagonal(variances, self.deviation**2)
        variances[-1, :-1] /= k**2
        variances[:-1, -1] /= k**2
        variances[-1, -1] /= k**4
        return variances


def noise_of(columns: int, n: int, radius: float, loss: ZCDP) -> Noise:
    bits = ellipse_bits(n, radius)
    bound = float(ellipse_moments_sensitivity(radius, bits, columns).bound)
    return Noise(radius, bits, gaussian_scale(bound, loss) * 4.0**-bits)


def tail_radius(columns: int, tail: float) -> float:
    """Return the length that a share of standard normal rows with that many columns is longer than."""
    from scipy.special import chdtri

    return math.sqrt(float(chdtri(columns, tail)))


def last_radius(columns: int, n: int, loss: ZCDP, tail: float = LAST_TAIL) -> float:
    """Return the length that rows of the last release are shortened to: public."""
    mu = math.sqrt(2 * loss.part(LAST).rho)
    return max(tail_radius(columns, tail), math.sqrt(GROWTH * mu * math.sqrt(n)))


def detectable_skew(n: int, noise: Noise) -> float:
    """Return by how many deviations a skew of half of the shortened rows would show, a tenth of all: public."""
    rows = LAST_TAIL * n
    return ONE_SIDED * rows / math.sqrt(noise.count**2 + rows)


def undetectable_tail(columns: int, n: int, loss: ZCDP) -> float:
    """Return the share of normal rows that the last release shortens, where slopes alone are read off it: public. More
    than a tenth where a skew would not be seen anyhow: intervals are then for rows said to be normal, whose slopes no
    shortening moves, and noise is less the shorter rows are.  At most a fifth, of two or three columns less: the fewer
    there are, the less shortened rows show of an error in the shape that they are seen in."""
    seen = detectable_skew(n, noise_of(columns, n, tail_radius(columns, LAST_TAIL), loss.part(LAST)))
    return LAST_TAIL * min(max(LEAST_SEEN / seen, 1.0), columns / 2, 2.0)


def predicted_signal(columns: int, n: int, loss: ZCDP) -> float:
    """Return by how many times the last moments exceed their noise, less what noise takes of their least
    direction: public, for rows that are about normal."""
    shape, signal = (
        n * shrinkage(columns, radius) / noise_of(columns, n, radius, loss.part(share)).deviation
        for radius, share in ((tail_radius(columns, TAIL), SHAPING[-1]), (last_radius(columns, n, loss), LAST))
    )
    norm = math.sqrt(2 * columns)
    return signal / norm / (1 + BLUR * norm / shape) - TAKEN[0] - TAKEN[1] * columns


def paths_radius(columns: int, mu: float, size: float) -> float:
    """Return the length that rows of paths are shortened to, where they are as normal ones, in cohorts of a size."""
    return max(tail_radius(columns, LAST_TAIL), math.sqrt(PATHS_GROWTH * size) * mu)


def lines_radius(columns: int, mu: float, size: float) -> float:
    """Return likewise the length of rows with covariates, whose squares give slopes."""
    return max(tail_radius(columns, LAST_TAIL), math.sqrt(LINES_GROWTH * mu * math.sqrt(size)))


def shrinkage(columns: int, radius: float) -> float:
    """Return what shortening leaves of a standard normal row's mean square."""
    from scipy.special import chdtr, chdtrc

    square = radius**2
    return float(chdtr(columns + 2, square) + square / columns * chdtrc(columns, square))


@dataclass(frozen=True)
class Shape:
    """Where rows lie: u = middle + H z, z about standard."""

    middle: Reals
    spread: Reals
    count: float = math.inf
    """How many rows count, as the release says that the shape is of."""


@dataclass(frozen=True)
class StreamedRows:
    """Rows of [−1, 1]^d, to be summed over: what is released of them are whole numbers that add over rows."""

    over: Callable[[Callable[[Reals, Rows], npt.NDArray[Any]]], npt.NDArray[Any]]
    weighted: bool
    """Whether a row may be a part of its unit."""

    @classmethod
    def of(cls, table: Table, names: Iterable[str], unit: Callable[[Rows], Reals]) -> StreamedRows:
        records = table.records(names, parts=True)
        weighted = table.weighed or table.unit is not Unit.ROW
        return cls(lambda kernel: records.sum(lambda rows: kernel(unit(rows), rows)), weighted)

    @classmethod
    def held(cls, unit: Reals, rows: Rows) -> StreamedRows:
        return cls(lambda kernel: kernel(unit, rows), rows.weights is not None)

    def with_terms(self, more: Callable[[Reals], Reals]) -> StreamedRows:
        over = self.over
        return StreamedRows(lambda kernel: over(lambda unit, rows: kernel(more(unit), rows)), self.weighted)


@dataclass(frozen=True)
class Moments:
    """Noisy Σ (z, 1)(z, 1)′ over kept rows, how many were shortened and their directions' sum; their shape."""

    shape: Shape
    sums: Reals
    clipped: float
    towards: Reals
    noise: Noise


def final_moments(
    summed: StreamedRows, shape: Shape, n: int, allotment: CallBudget, loss: ZCDP, tail: float = LAST_TAIL
) -> Moments:
    d = len(shape.middle)
    noise = noise_of(d, n, last_radius(d, n, loss, tail), loss.part(LAST))
    return released(summed, shape, noise, allotment, loss.part(LAST))


def estimate_location_scale(
    summed: StreamedRows, d: int, n: int, allotment: CallBudget, loss: ZCDP, shaping: tuple[Fraction, ...] = SHAPING,
    first: Shape | None = None,
) -> Shape:  # fmt: skip
    """Release the histograms, unless there is a first shape, and the rounds, a share of the loss each."""
    shape = _first(summed, d, allotment, loss.part(HISTOGRAM)) if first is None else first
    for share in shaping:
        noise = noise_of(d, n, tail_radius(d, TAIL), loss.part(share))
        shape = _refined(released(summed, shape, noise, allotment, loss.part(share)), n)
    return shape


def _first(summed: StreamedRows, d: int, allotment: CallBudget, loss: ZCDP) -> Shape:
    """Return each column's root mean square about its middle of the range, from noisy histograms of its size."""
    claim = scale_histograms_sensitivity(d)
    deviation = gaussian_scale(float(claim.bound), loss) / WHOLE
    histograms = summed.over(lambda unit, rows: scale_histograms(unit, rows.masses(WHOLE)))
    counts = gaussian(Query(histograms, claim, "scales"), allotment, loss)
    noisy = np.asarray(counts, dtype=np.float64) / WHOLE
    # Bins that noise alone could have filled are taken as empty.
    full = np.where(noisy > 3 * deviation, noisy, 0.0)
    squares = 2.0 ** (-np.arange(SCALES))
    total = full.sum(axis=1)
    mean = np.where(total > 0, full @ squares / np.maximum(total, 1.0), 1.0)
    return Shape(np.zeros(d), np.diag(np.sqrt(mean)))


def released(
    summed: StreamedRows, shape: Shape, noise: Noise, allotment: CallBudget, loss: ZCDP,
    label: str = "moments in a learnt shape",
) -> Moments:  # fmt: skip
    d, radius, bits, middle = len(shape.middle), noise.radius, noise.bits, shape.middle
    inverse = np.asarray(np.linalg.inv(shape.spread), dtype=np.float64)
    sums = summed.over(
        lambda unit, rows: ellipse_sums(
            whitened(unit, middle, inverse), rows.included, radius, bits, rows.weights, rows.owners
        )
    )
    answer = ellipse_answer(sums, d, radius, bits, summed.weighted)
    claim = ellipse_moments_sensitivity(noise.radius, noise.bits, d)
    released = gaussian(Query(answer, claim, label), allotment, loss) * 4.0**-noise.bits
    sums = unpacked_matrix(released[: -d - 1], d + 1)
    k = anchor(noise.radius)
    sums[-1, :-1] /= k
    sums[:-1, -1] /= k
    sums[-1, -1] /= k**2
    unit_count = 3 / noise.radius**2
    return Moments(shape, sums, float(released[-d - 1]) * unit_count, released[-d:] * unit_count, noise)


def _refined(previous: Moments, n: int) -> Shape:
    d = len(previous.shape.middle)
    count = max(float(previous.sums[-1, -1]), previous.noise.least_count(n))
    mean = np.clip(previous.sums[:-1, -1] / count, -previous.noise.radius, previous.noise.radius)
    covariance = (previous.sums[:-1, :-1] / count - np.outer(mean, mean)) / shrinkage(d, previous.noise.radius)
    least = previous.noise.deviation * math.sqrt(2 * d) / count / 2
    eigenvalues, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    root = (vectors * np.sqrt(np.maximum(eigenvalues, 0.0) + least)) @ vectors.T
    return Shape(previous.shape.middle + previous.shape.spread @ mean, previous.shape.spread @ root, count)
