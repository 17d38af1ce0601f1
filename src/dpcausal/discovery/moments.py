"""``"moments"``: noisy second moments of bounded columns, and tests of partial correlation that know the noise.

Two releases.  A histogram of each column, 64 equal bins between its bounds, gives a middle and a width in which it is
measured from then on; rows in these units, with a 1 beside them for the means, are shortened to a public length and
their second moments released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from dpcausal.data.rows import Rows
from dpcausal.data.schema import Bounded, Levels
from dpcausal.data.table import Table
from dpcausal.dependence.contingency import histograms, histograms_sensitivity
from dpcausal.dependence.second_moments import (
    clip_rows,
    grid_bits,
    scaled,
    second_moments_sensitivity,
    unpacked,
    upper_of,
)
from dpcausal.discovery.foresight import of_numbers, too_few
from dpcausal.discovery.question import Graph, GraphSearch, Outcome, deviation_of, rho_of
from dpcausal.discovery.search import search
from dpcausal.errors import SchemaError
from dpcausal.mechanisms.additive import gaussian
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.call import gaussian_part
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Query, Sensitivity
from dpcausal.releases.moments import NoisyMoments

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

CHUNK = 1 << 13
"""Rows that a processor's cache holds."""

BINS = 64
LEAST_SHARE = 0.02
"""Least share of kept rows that a noisy count is taken for."""

HISTOGRAM_SHARE = Fraction(1, 10)
"""What the histograms take of ρ."""


class Noise(NamedTuple):
    """The two releases of so many columns and rows: what they cost, their bounds, the deviations of their noise."""

    first: ZCDP | NoPrivacy
    bins: Sensitivity
    bin_deviation: float
    second: ZCDP | NoPrivacy
    radius: float
    bits: int
    moments: Sensitivity
    deviation: float
    """Of an entry of the row of moments, in the columns' units; off the diagonal of the matrix that over √2."""


def noise_of(columns: int, n: int, loss: ZCDP | NoPrivacy) -> Noise:
    """Return the noise that a loss pays for."""
    first, second = loss.part(HISTOGRAM_SHARE), loss.part(1 - HISTOGRAM_SHARE)
    bins, radius = histograms_sensitivity(columns), default_radius(columns)
    bits = grid_bits(n, radius)
    moments = second_moments_sensitivity(radius, bits, columns + 1)
    return Noise(
        first, bins, deviation_of(float(bins.bound), first),
        second, radius, bits, moments, deviation_of(float(moments.bound), second) * 4.0**-bits,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Moments(GraphSearch[ApproxDP | ZCDP]):
    """Noisy second moments of bounded columns, or columns of two levels; partial correlations.

    Parameters
    ----------
    max_order : int, optional
        Largest conditioning set, 0 to 8; by default 3.
    """

    name: ClassVar[str] = "moments"
    about: ClassVar[str] = "noisy second moments"
    at_once: ClassVar[bool] = False
    leaves_out: ClassVar[bool] = True
    private_ids: ClassVar[bool] = True
    uses_coins: ClassVar[bool] = False
    cuts: ClassVar[bool] = False

    def usual_order(self, columns: int) -> int:
        return 3

    def pay(self, loss: Loss, question: Graph) -> tuple[ApproxDP | ZCDP | NoPrivacy, str]:
        return gaussian_part(loss, self.name)

    def check(self, question: Graph) -> None:
        declared = [question.table.schema.column(name) for name in question.names]
        if not all(isinstance(one, Bounded) or (isinstance(one, Levels) and len(one) == 2) for one in declared):
            raise SchemaError("moments need Bounded columns or columns of two levels: use method='parities' or 'table'")

    def claims(self, question: Graph, spent: ApproxDP | ZCDP) -> tuple[str, ...]:
        return "column-histograms", "second-moments", "gaussian"

    def foresee(self, question: Graph, spent: ApproxDP | ZCDP | NoPrivacy) -> str:
        columns, n = len(question.names), question.n
        variance = (noise_of(columns, n, rho_of(spent)).deviation / n) ** 2 / 2
        pairs = [of_numbers(n, variance)] * math.comb(columns, 2)
        return too_few(pairs, n, self.terms(question.alpha, question.knowledge).alpha)

    def release(
        self, private: Table, question: Graph, spent: ApproxDP | ZCDP | NoPrivacy, coins: PublicGenerator,
        allotment: Allotment,
    ) -> Outcome:  # fmt: skip
        released = noisy_moments(private, question.names, allotment, rho_of(spent))
        terms = self.terms(question.alpha, question.knowledge)
        return Outcome(search(released, terms), terms, released)


def default_radius(columns: int) -> float:
    """Return the public length that rows are shortened to, p + 1 entries of about unit variance.

    R² = 1 + p + 2 √(2p): two standard deviations of a χ² above its mean, so that few rows are shortened.
    """
    return math.sqrt(1 + columns + 2 * math.sqrt(2 * columns))


@dataclass(frozen=True, eq=False)
class Units:
    """Columns of kept rows, each on [0, 1]."""

    names: tuple[str, ...]
    lower: Reals
    width: Reals

    @classmethod
    def of(cls, table: Table, names: tuple[str, ...]) -> Units:
        """Return those of a table: two levels are 0 and 1."""
        declared = [table.schema.column(name) for name in names]
        bounds = [(one.lower, one.width) if isinstance(one, Bounded) else (0.0, 1.0) for one in declared]
        lower, width = np.array(bounds).T
        return cls(names, lower, width)

    def columns(self, rows: Rows, part: slice = slice(None)) -> Reals:
        """Return the columns of some rows, shape (columns, rows)."""
        kept, whole = rows.kept[part], rows.values
        all_kept = bool(kept.all())
        found = np.empty((len(self.names), int(kept.sum())))
        for column, name in zip(found, self.names, strict=True):
            column[:] = whole[name][part] if all_kept else whole[name][part][kept]
        found -= self.lower[:, None]
        found /= self.width[:, None]
        return np.clip(found, 0.0, 1.0, out=found)

    def binned(self, rows: Rows) -> Integers:
        """Return the histogram of each column."""
        return histograms(np.minimum((self.columns(rows) * BINS).astype(np.int64), BINS - 1), BINS)


@dataclass(frozen=True, eq=False)
class Products:
    """The sums of products of rows in units of released widths about released middles, shortened, on the grid."""

    units: Units
    middles: Reals
    widths: Reals
    radius: float
    bits: int

    def __call__(self, rows: Rows) -> Integers:
        total = np.zeros(2 * [len(self.middles) + 1])  # of whole numbers, exact in any order
        for start in range(0, rows.n, CHUNK):
            unit = self.units.columns(rows, slice(start, start + CHUNK))
            both = np.empty((len(unit) + 1, unit.shape[1]))
            np.subtract(unit, self.middles[:, None], out=both[:-1])
            both[:-1] /= self.widths[:, None]
            both[-1] = 1.0
            grid = clip_rows(both.T, self.radius, self.bits)
            total += grid.T @ grid
        return upper_of(total).astype(np.int64)


def noisy_moments(
    table: Table, names: tuple[str, ...], allotment: Allotment, loss: ZCDP | NoPrivacy
) -> NoisyMoments:
    """Read the columns and release their histograms and second moments."""
    n, p, noise, records = table.n, len(names), noise_of(len(names), table.n, loss), table.records(names)
    units = Units.of(table, names)
    lower, width = units.lower, units.width
    counts = gaussian(Query(records.sum(units.binned), noise.bins, "histograms"), allotment, noise.first)
    middles, widths = scales(np.asarray(counts, dtype=np.float64), noise.bin_deviation)
    grid = scaled(records.sum(Products(units, middles, widths, noise.radius, noise.bits)), p + 1)
    released = gaussian(Query(grid, noise.moments, "second moments"), allotment, noise.second)
    moments = unpacked(released, p + 1) * 4.0**-noise.bits
    # Left-out rows are in no sum, so the entry of the constant is how many are kept; noise must not make it tiny.
    count = max(float(moments[p, p]), LEAST_SHARE * n)
    means = moments[:p, p] / count
    return NoisyMoments(
        names=names, n=n, middles=tuple((lower + width * middles).tolist()), widths=tuple((width * widths).tolist()),
        covariance=moments[:p, :p] / count - np.outer(means, means), variance=noise.deviation**2 / 2 / count**2,
        count=None if table.missing == "impute" else min(count, n),
    )  # fmt: skip


def scales(counts: Reals, deviation: float) -> tuple[Reals, Reals]:
    """Return a middle and a width of each column, of values in [0, 1], from noisy histograms."""
    # Bins that noise alone could have filled are taken as empty: two standard deviations.
    kept = np.where(counts > 2 * deviation, counts, 0.0)
    kept[kept.sum(axis=1) <= 0] = 1.0
    shares = kept / kept.sum(axis=1, keepdims=True)
    centres = (np.arange(BINS) + 0.5) / BINS
    middles = shares @ centres
    spread = np.sqrt(np.maximum((shares * (centres[None, :] - middles[:, None]) ** 2).sum(axis=1), 0.0))
    return middles, np.maximum(spread, 0.5 / BINS)
