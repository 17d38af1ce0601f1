"""``"moments"``: noisy second moments of bounded columns, and tests of partial correlation that know the noise.

First the quartiles of each column, by noisy halving of its bounds: a middle and a width in which it is measured from
then on.  Rows in these units, with a ½ beside them for the means, are shortened to a public length and their second
moments released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from dpcausal.data.schema import Bounded, Levels
from dpcausal.data.table import Table
from dpcausal.dependence.contingency import Counts, histograms_sensitivity
from dpcausal.dependence.second_moments import (
    clip_rows,
    grid_bits,
    second_moments,
    second_moments_sensitivity,
    unpacked,
)
from dpcausal.discovery.foresight import of_numbers, too_few
from dpcausal.discovery.question import Graph, Outcome, ScoreSearch, deviation_of, gaussian_pay, rho_of
from dpcausal.discovery.scales import LEAST_SHARE, STEPS, learned
from dpcausal.discovery.score_search import form_of
from dpcausal.discovery.search import search
from dpcausal.errors import SchemaError
from dpcausal.mechanisms.additive import gaussian
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Query, Sensitivity
from dpcausal.releases.moments import NoisyMoments

Reals = npt.NDArray[np.float64]

SCALES_SHARE = Fraction(2, 5)
"""What the quartiles take of ρ; each step of the halving has as much as another."""

BESIDE = 0.5
"""The entry beside a row's columns."""

MOST_OF_ROWS = 0.15
"""The largest deviation of a step's counts, as a share of the rows, at which scales are learned (ten columns)."""

SHORTENED = 0.25
"""The squared length of a row as a part of its mean, where noise is above the error of sampling."""


class Noise(NamedTuple):
    """The releases of so many columns and rows: what they cost, their bounds, the deviations of their noise."""

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
    """Return the noise that a loss pays for."""
    step, last = loss.part(SCALES_SHARE / STEPS), loss.part(1 - SCALES_SHARE)
    bins, radius = histograms_sensitivity(columns), radius_of(columns, n, last)
    bits = grid_bits(n, radius)
    moments = second_moments_sensitivity(radius, bits, columns + 1)
    return Noise(
        step, bins, deviation_of(float(bins.bound), step),
        last, radius, bits, moments, deviation_of(float(moments.bound), last) * 4.0**-bits,
    )  # fmt: skip


def radius_of(columns: int, n: int, loss: ZCDP | NoPrivacy) -> float:
    """Return the public length that rows are shortened to, columns of about unit variance and the ½ beside them.

    R² = p + ¼ + 2 √(2p), two standard deviations of a χ² above its mean, where noise is small; elsewhere √(2ρn), at
    which noise is as large as the error of sampling, but at least a quarter of the mean, from where on less length has
    no less noise.
    """
    mean = columns + BESIDE**2
    whole = mean + 2 * math.sqrt(2 * columns)
    if isinstance(loss, NoPrivacy):
        return math.sqrt(4 * whole)
    return math.sqrt(min(whole, max(SHORTENED * mean, math.sqrt(2 * loss.rho * n))))


@dataclass(frozen=True, kw_only=True)
class Moments(ScoreSearch[ApproxDP | ZCDP]):
    """Noisy second moments of bounded columns, or columns of two levels; the best score, or partial correlations.

    Parameters
    ----------
    search : str
        ``"score"`` or ``"pc"``; by default score up to 14 columns.
    max_order : int, optional
        Largest conditioning set, 0 to 8; by default 0 for the screen of a score search, 3 for pc.
    """

    name: ClassVar[str] = "moments"
    about: ClassVar[str] = "noisy second moments"
    leaves_out: ClassVar[bool] = True
    private_ids: ClassVar[bool] = True
    uses_coins: ClassVar[bool] = False
    cuts: ClassVar[bool] = False

    def usual_order(self, columns: int) -> int:
        return 0 if form_of(self.search, columns) == "score" else 3

    def pay(self, loss: Loss, question: Graph) -> tuple[ApproxDP | ZCDP | NoPrivacy, str]:
        return gaussian_pay(loss, self.name)

    def check(self, question: Graph) -> None:
        declared = [question.table.schema.column(name) for name in question.names]
        if not all(isinstance(one, Bounded) or (isinstance(one, Levels) and len(one) == 2) for one in declared):
            raise SchemaError("moments need Bounded columns or columns of two levels: use method='parities' or 'table'")

    def claims(self, question: Graph, spent: ApproxDP | ZCDP) -> tuple[str, ...]:
        return "column-histograms", "second-moments", "gaussian"

    def foresee(self, question: Graph, spent: ApproxDP | ZCDP | NoPrivacy) -> str:
        columns, n = len(question.names), question.n
        noise = noise_of(columns, n, rho_of(spent))
        if noise.bin_deviation > MOST_OF_ROWS * n:
            return f"{n} rows at this loss are too few to tell the scales of columns: an edge not shown says nothing"
        weight = min(1.0, noise.radius**2 / (columns + BESIDE**2))
        variance = (noise.deviation / (n * weight)) ** 2 / 2
        pairs = [of_numbers(n, variance)] * math.comb(columns, 2)
        return too_few(pairs, n, self.terms(question.alpha, question.knowledge).alpha)

    def release(
        self, private: Table, question: Graph, spent: ApproxDP | ZCDP | NoPrivacy, coins: PublicGenerator,
        allotment: Allotment,
    ) -> Outcome:  # fmt: skip
        released = noisy_moments(private, question.names, allotment, rho_of(spent))
        terms = self.terms(question.alpha, question.knowledge)
        return Outcome(search(released, terms), terms, released)


def noisy_moments(
    table: Table, names: tuple[str, ...], allotment: Allotment, loss: ZCDP | NoPrivacy
) -> NoisyMoments:
    """Read the columns and release their scales and second moments."""
    n, p, noise, records = table.n, len(names), noise_of(len(names), table.n, loss), table.rows(names)
    declared = [table.schema.column(name) for name in names]
    lower = np.array([one.lower if isinstance(one, Bounded) else 0.0 for one in declared])
    width = np.array([one.width if isinstance(one, Bounded) else 1.0 for one in declared])
    numbers = np.stack([records.values[name][records.kept].astype(float) for name in names], axis=1)
    unit = np.clip((numbers - lower) / width, 0.0, 1.0)

    def counted(bins: Counts) -> Reals:
        return np.asarray(gaussian(Query(bins, noise.bins, "quartiles"), allotment, noise.step), dtype=np.float64)

    two = np.array([isinstance(one, Levels) for one in declared])
    scales = learned(unit, two, n, noise.bin_deviation, counted)
    rows = np.concatenate([(unit - scales.middles) / scales.widths, np.full((len(unit), 1), BESIDE)], axis=1)
    grid = second_moments(clip_rows(rows, noise.radius, noise.bits))
    released = gaussian(Query(grid, noise.moments, "second moments"), allotment, noise.last)
    moments = unpacked(released, p + 1) * 4.0**-noise.bits
    # Left-out rows are in no sum, shortened ones in part: the entry of the ½ says how much, and is not let be tiny.
    weight = max(float(moments[p, p]) / BESIDE**2, LEAST_SHARE * n)
    means = moments[:p, p] / (BESIDE * weight)
    return NoisyMoments(
        names=names, n=n, middles=tuple((lower + width * scales.middles).tolist()),
        widths=tuple((width * scales.widths).tolist()),
        covariance=moments[:p, :p] / weight - np.outer(means, means), variance=noise.deviation**2 / 2 / weight**2,
        count=None if table.missing == "impute" else min(scales.kept, n),
    )  # fmt: skip
