"""The three sums of HSIC_V for Gaussian kernels on an integer grid: exact up to proved rounding, O(m²), tile by tile.

Memory: six tiles of 256 × 256 float64 (3 MiB) and at most twenty numbers per record, whatever m.  The order of
all additions is written out here, so the rounding bound (``hsic.md``, hsic-gaussian-rounding) relies on no library's
summation; it does assume that numpy's float64 exp is within 8 units in the last place, twice what numpy tests for.
"""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

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
        sums: Floats = self.high + self.low
        return sums


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
    sums: Floats = half[:, 0]
    return sums


def _over_rows(tile: Floats) -> Floats:
    half = tile
    while half.shape[0] > 1:
        middle = half.shape[0] // 2
        half = half[:middle] + half[middle:]
    sums: Floats = half[0]
    return sums
