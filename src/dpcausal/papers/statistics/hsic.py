"""HSIC with Gaussian kernels, HSIC itself instead of its root, and how far both move with every residual.

Only the published systems need these: the root with Laplacian kernels is ``dpcausal.statistics.hsic``.  The three sums
of HSIC_V are exact up to proved rounding, O(m²), tile by tile: six tiles of 256 × 256 float64 (3 MiB) and at most
twenty numbers per record, whatever m.  The order of all additions is written out here, so the rounding bound
(hsic-gaussian-rounding) relies on no library's summation; it does assume that numpy's float64 exp is within 8 units in
the last place, twice what numpy tests for.  Proofs: ``hsic.md`` here and there.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpcausal.errors import ParameterError
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity, Unit
from dpcausal.statistics import hsic as root
from dpcausal.statistics.hsic import LAPLACIAN, ROOT_SIX, Interval, Kernel

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

TILE = 256
"""Side of a tile: a power of two, for the halving sums."""


def kernel_sums(x: Codes, y: Codes, x_rate: Fraction, y_rate: Fraction) -> list[Fraction]:
    """Return [Σ_ij K_ij L_ij, Σ_i K_i· L_i·, K_··, L_··] of records on the grid; a rate is grid step over kernel width.

    K_ij = exp(−(x_i − x_j)² · x_rate² / 2), L_ij = exp(−(y_i − y_j)² · y_rate² / 2), K_i· = Σ_j K_ij
    """
    m = len(x)
    x_factor, y_factor = _factor(x_rate), _factor(y_rate)
    x_floats, y_floats = x.astype(np.float64), y.astype(np.float64)
    x_rows, y_rows, products = _RowSums(m), _RowSums(m), _RowSums(m)
    K, L = np.empty((TILE, TILE)), np.empty((TILE, TILE))
    for first in range(0, m, TILE):
        rows = slice(first, min(first + TILE, m))
        for second in range(first, m, TILE):
            columns = slice(second, min(second + TILE, m))
            _fill(K, x_floats[rows], x_floats[columns], x_factor)
            _fill(L, y_floats[rows], y_floats[columns], y_factor)
            x_rows.add(rows, _over_columns(K))
            y_rows.add(rows, _over_columns(L))
            pairs = _over_columns(K * L)
            products.add(rows, pairs)
            if second > first:
                x_rows.add(columns, _over_rows(K))
                y_rows.add(columns, _over_rows(L))
                products.add(rows, pairs)
    k, l_ = x_rows.rounded(), y_rows.rounded()
    return [Fraction(math.fsum(v)) for v in (products.rounded(), k * l_, k, l_)]


class _RowSums:
    """One running sum per record with its rounding error kept beside it (Neumaier's compensation by two-sum)."""

    def __init__(self, m: int) -> None:
        self.high, self.low = np.zeros(m), np.zeros(m)

    def add(self, at: slice, terms: Floats) -> None:
        before, terms = self.high[at], terms[: at.stop - at.start]
        total = before + terms
        taken = total - before
        self.low[at] += (before - (total - taken)) + (terms - taken)
        self.high[at] = total

    def rounded(self) -> Floats:
        return np.asarray(self.high + self.low)


def _factor(rate: Fraction) -> float:
    return float(min(rate * rate / 2, Fraction(2) ** 900))


def _fill(tile: Floats, rows: Floats, columns: Floats, factor: float) -> None:
    if len(rows) < TILE or len(columns) < TILE:
        tile.fill(0.0)
    part = tile[: len(rows), : len(columns)]
    np.subtract(rows[:, None], columns, out=part)
    np.multiply(part, part, out=part)
    np.multiply(part, -factor, out=part)
    # e^−350 = 1e-152 is 0 for us; from here on nothing underflows, under any floating-point error state.
    np.maximum(part, -350.0, out=part)
    np.exp(part, out=part)


def _over_columns(tile: Floats) -> Floats:
    half = tile
    while half.shape[1] > 1:
        middle = half.shape[1] // 2
        half = half[:, :middle] + half[:, middle:]
    return np.asarray(half[:, 0])


def _over_rows(tile: Floats) -> Floats:
    half = tile
    while half.shape[0] > 1:
        middle = half.shape[0] // 2
        half = half[:middle] + half[middle:]
    return np.asarray(half[0])


GAUSSIAN = Kernel("Gaussian", 50_000, kernel_sums, lambda m: Fraction(1, 2**45))
"""k(a, b) = exp(−(a − b)²/(2 width²)), in O(m²): half a second at m = 1e4, in 3 MiB and 160 m bytes."""


@dataclass(frozen=True)
class Calibration:
    slope: Fraction
    offset: Fraction
    proof: str


LEAST = Calibration(slope=ROOT_SIX, offset=ROOT_SIX, proof="hsic")
"""√6 (m − 1)/m²; the same bound holds for √HSIC_V, and there it is tight."""

LARGEST_SLOPE = Fraction(6065306598, 10**10)
"""e^(−1/2), rounded up: a Gaussian kernel of width s changes by at most e^(−1/2)/s per unit."""


def hsic_sensitivity(
    m: int, calibration: Calibration = LEAST, *, kernel: Kernel = LAPLACIAN, unit: Unit = Unit.ROW
) -> Sensitivity:
    """Return the sensitivity of ``hsic`` as computed: √6 (m − 1)/m² + 2 (η(m) + 2⁻⁵⁴), or the first part of a paper.

    Multiplying the score and the bound by m²/(m − 1)² gives the paper's units and the same privacy.
    """
    exact = (calibration.slope * root.checked_size(m, kernel) - calibration.offset) / m**2
    return _sensitivity(exact + 2 * _error(m, kernel), calibration.proof, unit)


def root_hsic_residual_sensitivity(
    m: int, shift: float, width: float, interval: Interval, *, unit: Unit = Unit.TRAINING_ROW
) -> Sensitivity:
    """Return how far ``root_hsic`` with Gaussian kernels moves when every y_i moves by at most ``shift``.

    (shift + 2 step)/width + 2 (√η(m) + 2⁻⁵²), step that of the grid of the public ``interval`` of y, ``width`` its
    kernel's. For residuals, ``shift`` is what one training record can do to the regression.  A Laplacian kernel is not
    smooth at 0 and has no such bound.
    """
    exact = _checked_shift(shift, interval) / root.checked_positive("width", width)
    error = root.root_error(root.checked_size(m, GAUSSIAN), GAUSSIAN)
    return _sensitivity(exact + 2 * error, "root-hsic-residuals", unit)


def hsic_residual_sensitivity(
    m: int, shift: float, width: float, interval: Interval, *, unit: Unit = Unit.TRAINING_ROW
) -> Sensitivity:
    """Return the same for ``hsic``: e^(−1/2) (shift + 2 step)/width + 2 (η(m) + 2⁻⁵⁴)."""
    exact = LARGEST_SLOPE * _checked_shift(shift, interval) / root.checked_positive("width", width)
    return _sensitivity(exact + 2 * _error(root.checked_size(m, GAUSSIAN), GAUSSIAN), "hsic-residuals", unit)


def _error(m: int, kernel: Kernel) -> Fraction:
    return kernel.rounding(m) + Fraction(1, 2**54)


def _checked_shift(shift: float, interval: Interval) -> Fraction:
    if not root.is_finite(shift) or shift < 0:
        raise ParameterError(f"shift must be a finite number, at least 0, got {shift!r}")
    return Fraction(float(shift)) + 2 * root.step(root.checked_interval("interval", interval))


def _sensitivity(bound: Fraction, proof: str, unit: Unit) -> Sensitivity:
    return Sensitivity(bound, Norm.ABSOLUTE, Relation.REPLACE_ONE, proof, unit)
