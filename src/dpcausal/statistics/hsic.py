"""HSIC and its square root with public kernels: exact values, proved sensitivities, proved rounding.

    HSIC_V = trace(KHLH)/m²

where:

* K_ij = k(x_i, x_j), L_ij = l(y_i, y_j) with k, l Laplacian or Gaussian, so 0 ≤ k ≤ 1, of public widths;
* H = I − 11ᵀ/m, m the public number of records.

Between neighbours both HSIC_V and its root move by at most √6 (m − 1)/m², but the root's margins are far larger:
score with ``root_hsic``.  A rounding error of 1e-13 in HSIC_V would be 3e-7 under the root, so the values are
computed to a proved error η(m) and the sensitivities, which apply to the *computed* numbers, include it.
A width, a range or a scaling taken from the data breaks every bound here.  Proofs: ``hsic.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpcausal.errors import ParameterError
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity, Unit

Column = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Kernel = Literal["laplacian", "gaussian"]
Interval = tuple[float, float]

ROOT_SIX = Fraction(math.isqrt(6 * 10**40) + 1, 10**20)
"""√6, rounded up."""


@dataclass(frozen=True)
class Calibration:
    """Constants of a bound (slope · m − offset)/m² on the change of HSIC_V between neighbours, and its claim."""

    slope: Fraction
    offset: Fraction
    proof: str


LEAST = Calibration(slope=ROOT_SIX, offset=ROOT_SIX, proof="hsic")
"""√6 (m − 1)/m²; the same bound holds for √HSIC_V, and there it is tight."""

STEPS = 2**30 - 1
"""Each public range is cut into this many steps; a record goes to the nearest end of a step."""

MOST_RECORDS = {"laplacian": 10_000_000, "gaussian": 50_000}
"""The Laplacian sums cost O(m log m), the Gaussian ones O(m²) time and bounded memory."""

LARGEST_SLOPE = Fraction(6065306598, 10**10)
"""e^(−1/2), rounded up: a Gaussian kernel of width s changes by at most e^(−1/2)/s per unit."""


def hsic(
    x: Column, y: Column, *, kernel: Kernel = "laplacian", width_x: float, width_y: float, range_x: Interval,
    range_y: Interval,
) -> float:  # fmt: skip
    """Return HSIC_V = trace(KHLH)/m², in [0, 1/4], to within η(m); the paper's score is this times m²/(m − 1)².

    HSIC_V = (1/m²) Σ_ij K_ij L_ij − (2/m³) Σ_i K_i· L_i· + K_·· L_·· / m⁴

    k(a, b) = exp(−|a − b|/width), or exp(−(a − b)²/(2 width²)).  Values are clipped to their range and rounded to the
    nearest of 2³⁰ equal places in it, NaN to the middle; widths and ranges are public, never taken from these records.
    Laplacian: O(m log m), 50 ms at m = 1e5.  Gaussian: O(m²), half a second at m = 1e4, in 3 MiB and 160 m bytes.
    *Source*: Gretton et al. (2005); Kusner et al. (2016), eq. (4).
    """
    columns = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if columns[0].ndim != 1 or columns[0].shape != columns[1].shape:
        shapes = f"{columns[0].shape} and {columns[1].shape}"
        raise ParameterError(f"x and y must be one-dimensional and of one length, got shapes {shapes}")
    m = _checked_size(len(columns[0]), kernel)
    intervals = _checked_interval("range_x", range_x), _checked_interval("range_y", range_y)
    widths = _checked_positive("width_x", width_x), _checked_positive("width_y", width_y)
    # The sums are imported here because the compiled ones bring numba.
    if kernel == "laplacian":
        from dpcausal.statistics.laplacian_sums import kernel_sums
    else:
        from dpcausal.statistics.gaussian_sums import kernel_sums
    rates = [_step(interval) / width for interval, width in zip(intervals, widths, strict=True)]
    pairs, rows, total_x, total_y = kernel_sums(
        _codes(columns[0], intervals[0]), _codes(columns[1], intervals[1]), rates[0], rates[1]
    )
    # In fractions: this difference of nearly equal numbers adds no error of its own.
    value = (pairs - 2 * rows / m + total_x * total_y / m**2) / m**2
    return float(max(value, Fraction(0)))


def root_hsic(
    x: Column, y: Column, *, kernel: Kernel = "laplacian", width_x: float, width_y: float, range_x: Interval,
    range_y: Interval,
) -> float:  # fmt: skip
    """Return √HSIC_V, in [0, 1/2]: the norm of the empirical cross-covariance of the two feature maps."""
    return math.sqrt(
        hsic(x, y, kernel=kernel, width_x=width_x, width_y=width_y, range_x=range_x, range_y=range_y)
    )


def root_hsic_sensitivity(m: int, *, kernel: Kernel = "laplacian", unit: Unit = Unit.ROW) -> Sensitivity:
    """Return the sensitivity of ``root_hsic`` as computed: √6 (m − 1)/m² + 2 (√η(m) + 2⁻⁵²).

    The rounding part is 0.0006 % of the first at m = 1e6 (Laplacian), 0.7 % at m = 50,000 (Gaussian).
    """
    exact = _bound(LEAST, _checked_size(m, kernel))
    return _sensitivity(exact + 2 * _root_error(m, kernel), "root-hsic", unit)


def hsic_sensitivity(
    m: int, calibration: Calibration = LEAST, *, kernel: Kernel = "laplacian", unit: Unit = Unit.ROW
) -> Sensitivity:
    """Return the sensitivity of ``hsic`` as computed: √6 (m − 1)/m² + 2 (η(m) + 2⁻⁵⁴), or the first part of a paper.

    Multiplying the score and the bound by m²/(m − 1)² gives the paper's units and the same privacy.
    """
    exact = _bound(calibration, _checked_size(m, kernel))
    return _sensitivity(exact + 2 * _error(m, kernel), calibration.proof, unit)


def root_hsic_residual_sensitivity(
    m: int, shift: float, width: float, interval: Interval, *, unit: Unit = Unit.TRAINING_ROW
) -> Sensitivity:
    """Return how far ``root_hsic`` with Gaussian kernels moves when every y_i moves by at most ``shift``.

    (shift + 2 step)/width + 2 (√η(m) + 2⁻⁵²), step that of the grid of the public ``interval`` of y, ``width`` its
    kernel's. For residuals, ``shift`` is what one training record can do to the regression.  A Laplacian kernel is not
    smooth at 0 and has no such bound.
    """
    exact = _checked_shift(shift, interval) / _checked_positive("width", width)
    return _sensitivity(
        exact + 2 * _root_error(_checked_size(m, "gaussian"), "gaussian"), "root-hsic-residuals", unit
    )


def hsic_residual_sensitivity(
    m: int, shift: float, width: float, interval: Interval, *, unit: Unit = Unit.TRAINING_ROW
) -> Sensitivity:
    """Return the same for ``hsic``: e^(−1/2) (shift + 2 step)/width + 2 (η(m) + 2⁻⁵⁴)."""
    exact = LARGEST_SLOPE * _checked_shift(shift, interval) / _checked_positive("width", width)
    return _sensitivity(exact + 2 * _error(_checked_size(m, "gaussian"), "gaussian"), "hsic-residuals", unit)


def rounding_error(m: int, kernel: Kernel) -> Fraction:
    """Return η(m): HSIC_V is within η(m) of the exact value before its one rounding to a float."""
    return Fraction(m + 2, 2**94) if kernel == "laplacian" else Fraction(1, 2**45)


def _error(m: int, kernel: Kernel) -> Fraction:
    return rounding_error(m, kernel) + Fraction(1, 2**54)


def _root_error(m: int, kernel: Kernel) -> Fraction:
    squared = rounding_error(m, kernel)
    return Fraction(math.isqrt(math.ceil(squared * 2**200)) + 1, 2**100) + Fraction(1, 2**52)


def _bound(calibration: Calibration, m: int) -> Fraction:
    return (calibration.slope * m - calibration.offset) / m**2


def _sensitivity(bound: Fraction, proof: str, unit: Unit) -> Sensitivity:
    return Sensitivity(bound, Norm.ABSOLUTE, Relation.REPLACE_ONE, proof, unit)


def _codes(values: Column, interval: Interval) -> Codes:
    """Return each record's place on the grid 0, …, STEPS: a map of single records, so neighbours stay neighbours."""
    lower, upper = interval
    known = np.where(np.isnan(values), lower + (upper - lower) / 2, values)
    # A tiny value in a wide range underflows: harmless, and no error state of the caller's may show it.
    with np.errstate(under="ignore"):
        share = (np.clip(known, lower, upper) - lower) / (upper - lower)
        return np.rint(share * STEPS).astype(np.int64)


def _step(interval: Interval) -> Fraction:
    return (Fraction(interval[1]) - Fraction(interval[0])) / STEPS


def _checked_size(m: int, kernel: Kernel) -> int:
    if kernel not in MOST_RECORDS:
        raise ParameterError(f"kernel must be 'laplacian' or 'gaussian', got {kernel!r}")
    if m < 2:
        raise ParameterError(f"HSIC needs at least 2 records, got {m}")
    if m > MOST_RECORDS[kernel]:
        raise ParameterError(f"HSIC with {kernel} kernels takes at most {MOST_RECORDS[kernel]} records, got {m}")
    return m


def _checked_positive(name: str, value: float) -> Fraction:
    if not _is_finite(value) or value <= 0:
        raise ParameterError(f"{name} must be a positive, finite number, got {value!r}")
    return Fraction(float(value))


def _checked_interval(name: str, interval: Interval) -> Interval:
    if not (isinstance(interval, tuple) and len(interval) == 2 and all(map(_is_finite, interval))):
        raise ParameterError(f"{name} must be a pair of finite numbers, got {interval!r}")
    lower, upper = float(interval[0]), float(interval[1])
    if not 0 < upper - lower < math.inf:
        raise ParameterError(f"{name} must rise, and by a finite length, got {interval!r}")
    return lower, upper


def _checked_shift(shift: float, interval: Interval) -> Fraction:
    if not _is_finite(shift) or shift < 0:
        raise ParameterError(f"shift must be a finite number, at least 0, got {shift!r}")
    return Fraction(float(shift)) + 2 * _step(_checked_interval("interval", interval))


def _is_finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating, np.integer)):
        return False
    return math.isfinite(value)


_ROOT_SIX_BELOW = Fraction(24494897427, 10**10)


def permuted_root_hsic_sensitivity(m: int, *, unit: Unit = Unit.ROW) -> Sensitivity:
    """Return the sensitivity of ``root_hsic(x, y[π])`` for a fixed permutation π: 4 (m − 1)/m², and rounding.

    *Source*: ``permuted_hsic.md``; Kim & Schrab (2023), Lemma 5, the same constant.
    """
    own = Fraction(root_hsic_sensitivity(m).bound)
    # The same rounding part; √6 is taken off rounded down.
    bound = own + (4 - _ROOT_SIX_BELOW) * Fraction(m - 1, m**2)
    return Sensitivity(bound, Norm.ABSOLUTE, Relation.REPLACE_ONE, "permuted-root-hsic", unit)
