"""Noisy second moments of bounded columns, and tests of partial correlation that know the noise.

Two releases.  A histogram of each column, 64 equal bins between its bounds, gives a middle and a width in which it is
measured from then on; rows in these units, with a 1 beside them for the means, are shortened to a public length and
their second moments released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.data.schema import Bounded
from dpcausal.data.table import Table
from dpcausal.dependence.contingency import histograms, histograms_sensitivity
from dpcausal.dependence.second_moments import (
    clip_rows,
    grid_bits,
    second_moments,
    second_moments_sensitivity,
    unpacked,
)
from dpcausal.discovery.pc import Verdict
from dpcausal.mechanisms.additive import gaussian, gaussian_scale
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import ZCDP, NoPrivacy
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Query

Reals = npt.NDArray[np.float64]

BINS = 64
HISTOGRAM_SHARE = 10
"""The histograms take a tenth of ρ."""

PROOFS = ("column-histograms", "second-moments", "gaussian")


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """The released statistic of ``method="moments"``.

    Attributes
    ----------
    names : tuple of str
    middles, widths : tuple of float
        Each column was measured as (x − middle) / width.
    covariance : float array, shape (p, p)
        Noisy covariance in these units.
    variance : float
        Variance of an off-diagonal entry's noise; a diagonal one's is twice that.
    n : int
        Rows, public.
    """

    names: tuple[str, ...]
    middles: tuple[float, ...]
    widths: tuple[float, ...]
    covariance: Reals
    variance: float
    n: int
    method: str = "moments"

    def partial_correlation(self, x: int, y: int, given: tuple[int, ...]) -> tuple[float, float] | None:
        """Return the noisy partial correlation and its variance under independence; ``None`` if it is not defined.

        var = 1/(n − |S| − 3) + s² (|P_x|² |P_y|² + (P_x · P_y)²) / (P_xx P_yy)

        where P is the inverse of the noisy covariance of x, y and S, P_x its row, s² the noise variance.
        """
        members = [x, y, *given]
        matrix = self.covariance[np.ix_(members, members)]
        if self.n - len(given) - 3 < 1:
            return None
        smallest = float(np.linalg.eigvalsh(matrix)[0])
        # Too near singular for its noise, or for floats: no partial correlation can be read off.
        if not smallest > max(2 * math.sqrt(self.variance), 1e-9 * float(np.trace(matrix))):
            return None
        inverse = np.linalg.inv(matrix)
        a, b = inverse[0], inverse[1]
        correlation = -a[1] / math.sqrt(a[0] * b[1])
        noise = self.variance * float((a @ a) * (b @ b) + (a @ b) ** 2) / float(a[0] * b[1])
        return float(np.clip(correlation, -1 + 1e-12, 1 - 1e-12)), 1 / (self.n - len(given) - 3) + noise

    def asker(self, alpha: float, later: float | None = None) -> Any:
        """Return the pruner: Fisher's z with the noise in its variance; ``later``: the level given two or more."""
        from scipy.special import ndtr

        place = {name: number for number, name in enumerate(self.names)}

        def ask(x: str, y: str, given: tuple[str, ...]) -> Verdict:
            found = self.partial_correlation(place[x], place[y], tuple(place[z] for z in given))
            if found is None:
                return Verdict(None)
            pvalue = float(2 * ndtr(-abs(math.atanh(found[0])) / math.sqrt(found[1])))
            return Verdict(pvalue > (alpha if later is None or len(given) < 2 else later), pvalue)

        return ask

    def redrawn(self, generator: PublicGenerator) -> NoisyMoments:
        """Return the covariance with fresh noise of the same law on top, its variance declared."""
        p = len(self.names)
        noise = generator.normal(0, math.sqrt(self.variance), (p, p))
        upper = np.triu(noise, 1)
        fresh = upper + upper.T + np.diag(math.sqrt(2) * np.diagonal(noise))
        return NoisyMoments(
            self.names, self.middles, self.widths, self.covariance + fresh, 2 * self.variance, self.n
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the released numbers as plain lists."""
        return {
            "method": self.method, "names": list(self.names), "middles": list(self.middles),
            "widths": list(self.widths), "covariance": self.covariance.tolist(), "variance": self.variance, "n": self.n,
        }  # fmt: skip


def default_radius(columns: int) -> float:
    """Return the public length that rows are shortened to, p + 1 entries of about unit variance.

    R² = 1 + p + 2 √(2p): two standard deviations of a χ² above its mean, so that few rows are shortened.
    """
    return math.sqrt(1 + columns + 2 * math.sqrt(2 * columns))


def release(table: Table, names: tuple[str, ...], allotment: Allotment, loss: ZCDP | NoPrivacy) -> NoisyMoments:
    """Read the columns and release their histograms and second moments."""
    columns = table.columns(names)
    declared = [table.schema.column(name) for name in names]
    with np.errstate(all="ignore"):  # a warning of overflow would depend on the rows
        unit = np.stack(
            [
                (columns[name] - one.lower) / one.width if isinstance(one, Bounded) else columns[name].astype(float)
                for name, one in zip(names, declared, strict=True)
            ],
            axis=1,
        )
        unit = np.clip(unit, 0.0, 1.0)
        middles, widths = _scales(unit, allotment, _share(loss, 1, HISTOGRAM_SHARE))
        rows = np.concatenate([(unit - middles) / widths, np.ones((len(unit), 1))], axis=1)
        p = len(names)
        radius = default_radius(p)
        bits = grid_bits(table.n, radius)
        sensitivity = second_moments_sensitivity(radius, bits, p + 1)
        query = Query(second_moments(clip_rows(rows, radius, bits)), sensitivity, "second moments")
    rest = _share(loss, HISTOGRAM_SHARE - 1, HISTOGRAM_SHARE)
    moments = unpacked(gaussian(query, allotment, rest), p + 1) * 4.0**-bits
    # A row of the vector has one standard deviation; an off-diagonal entry of the matrix is that over √2.
    deviation = 0.0 if isinstance(rest, NoPrivacy) else gaussian_scale(sensitivity.bound, rest) * 4.0**-bits
    count = max(float(moments[p, p]), 0.5 * table.n)
    means = moments[:p, p] / count
    covariance = moments[:p, :p] / count - np.outer(means, means)
    lower = np.array([one.lower if isinstance(one, Bounded) else 0.0 for one in declared])
    width = np.array([one.width if isinstance(one, Bounded) else 1.0 for one in declared])
    return NoisyMoments(
        names=names,
        middles=tuple((lower + width * middles).tolist()),
        widths=tuple((width * widths).tolist()),
        covariance=covariance,
        variance=deviation**2 / 2 / count**2,
        n=table.n,
    )


def _share(loss: ZCDP | NoPrivacy, part: int, whole: int) -> ZCDP | NoPrivacy:
    return loss if isinstance(loss, NoPrivacy) else ZCDP(loss.exact_rho * part / whole)


def _scales(unit: Reals, allotment: Allotment, loss: ZCDP | NoPrivacy) -> tuple[Reals, Reals]:
    """Release histograms and return a middle and a width of each column, of values in [0, 1]."""
    bins = np.minimum((unit * BINS).astype(np.int64), BINS - 1)
    query = Query(histograms(list(bins.T), BINS), histograms_sensitivity(unit.shape[1]), "histograms")
    noisy = np.asarray(gaussian(query, allotment, loss), dtype=np.float64)
    deviation = 0.0 if isinstance(loss, NoPrivacy) else gaussian_scale(query.sensitivity.bound, loss)
    # Bins that noise alone could have filled are taken as empty: two standard deviations.
    kept = np.where(noisy > 2 * deviation, noisy, 0.0)
    kept[kept.sum(axis=1) <= 0] = 1.0
    shares = kept / kept.sum(axis=1, keepdims=True)
    centres = (np.arange(BINS) + 0.5) / BINS
    middles = shares @ centres
    spread = np.sqrt(np.maximum((shares * (centres[None, :] - middles[:, None]) ** 2).sum(axis=1), 0.0))
    return middles, np.maximum(spread, 0.5 / BINS)


