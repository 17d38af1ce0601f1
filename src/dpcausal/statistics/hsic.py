"""HSIC and its square root with public kernels: exact values, proved sensitivities, proved rounding.

    HSIC_V = trace(KHLH)/m²

where:

* K_ij = k(x_i, x_j), L_ij = l(y_i, y_j) with k, l Laplacian, so 0 ≤ k ≤ 1, of public widths;
* H = I − 11ᵀ/m, m the public number of records.

Between neighbours both HSIC_V and its root move by at most √6 (m − 1)/m², but the root's margins are far larger:
score with ``root_hsic``.  A rounding error of 1e-13 in HSIC_V would be 3e-7 under the root, so the values are
computed to a proved error η(m) and the sensitivities, which apply to the *computed* numbers, include it.
A width, a range or a scaling taken from the data breaks every bound here.  Proofs: ``hsic.md``.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.errors import ParameterError
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity, Unit

Interval = tuple[float, float]

ROOT_SIX = Fraction(math.isqrt(6 * 10**40) + 1, 10**20)
"""√6, rounded up."""

STEPS = 2**30 - 1
"""Each public range is cut into this many steps; a record goes to the nearest end of a step."""


@dataclass(eq=False)
class Kernel:
    """A kernel with values in [0, 1], the most records it takes, its sums, and their proved error."""

    name: str
    most_records: int
    sums: Callable[[Integers, Integers, Fraction, Fraction], Sequence[Fraction]]
    rounding: Callable[[int], Fraction]
    """η(m): HSIC_V is within η(m) of the exact value before its one rounding to a float."""


def _laplacian_sums(x: Integers, y: Integers, x_rate: Fraction, y_rate: Fraction) -> Sequence[Fraction]:
    from dpcausal.statistics.laplacian_sums import kernel_sums  # which brings numba

    return kernel_sums(x, y, x_rate, y_rate)


LAPLACIAN = Kernel("Laplacian", 10_000_000, _laplacian_sums, lambda m: Fraction(m + 2, 2**94))
"""k(a, b) = exp(−|a − b|/width), in O(m log m)."""


def hsic(
    x: Reals, y: Reals, *, kernel: Kernel = LAPLACIAN, width_x: float, width_y: float, range_x: Interval,
    range_y: Interval,
) -> float:  # fmt: skip
    """Return HSIC_V = (1/m²) Σ_ij K_ij L_ij − (2/m³) Σ_i K_i· L_i· + K_·· L_·· / m⁴, in [0, 1/4], to within η(m).

    Values are clipped to their public range and rounded to a grid of 2³⁰ places in it, NaN to the middle.
    *Source*: Gretton et al. (2005); Kusner et al. (2016), eq. (4), whose score is this times m²/(m − 1)².
    """
    columns = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if columns[0].ndim != 1 or columns[0].shape != columns[1].shape:
        shapes = f"{columns[0].shape} and {columns[1].shape}"
        raise ParameterError(f"x and y must be one-dimensional and of one length, got shapes {shapes}")
    m = checked_size(len(columns[0]), kernel)
    intervals = checked_interval("range_x", range_x), checked_interval("range_y", range_y)
    widths = checked_positive("width_x", width_x), checked_positive("width_y", width_y)
    rates = [step(interval) / width for interval, width in zip(intervals, widths, strict=True)]
    pairs, rows, total_x, total_y = kernel.sums(
        _grid_places(columns[0], intervals[0]), _grid_places(columns[1], intervals[1]), rates[0], rates[1]
    )
    # In fractions: this difference of nearly equal numbers adds no error of its own.
    value = (pairs - 2 * rows / m + total_x * total_y / m**2) / m**2
    return float(max(value, Fraction(0)))


def root_hsic(
    x: Reals, y: Reals, *, kernel: Kernel = LAPLACIAN, width_x: float, width_y: float, range_x: Interval,
    range_y: Interval,
) -> float:  # fmt: skip
    return math.sqrt(hsic(x, y, kernel=kernel, width_x=width_x, width_y=width_y, range_x=range_x, range_y=range_y))


def root_hsic_sensitivity(m: int, *, kernel: Kernel = LAPLACIAN, unit: Unit = Unit.ROW) -> Sensitivity:
    """Return the sensitivity of ``root_hsic`` as computed: √6 (m − 1)/m² + 2 (√η(m) + 2⁻⁵²)."""
    exact = ROOT_SIX * Fraction(checked_size(m, kernel) - 1, m**2)
    return _sensitivity(exact + 2 * root_error(m, kernel), "root-hsic", unit)


def root_error(m: int, kernel: Kernel) -> Fraction:
    """Return the most that the float ``root_hsic`` can be from the exact root: |√a − √b| ≤ √|a − b|."""
    squared = kernel.rounding(m)
    return Fraction(math.isqrt(math.ceil(squared * 2**200)) + 1, 2**100) + Fraction(1, 2**52)


def _sensitivity(bound: Fraction, proof: str, unit: Unit) -> Sensitivity:
    return Sensitivity(bound, Norm.ABSOLUTE, Relation.REPLACE_ONE, proof, unit)


def _grid_places(values: Reals, interval: Interval) -> Integers:
    """Return each record's place on the grid 0, …, STEPS: a map of single records, so neighbours stay neighbours."""
    lower, upper = interval
    known = np.where(np.isnan(values), lower + (upper - lower) / 2, values)
    # A tiny value in a wide range underflows: harmless, and no error state of the caller's may show it.
    with np.errstate(under="ignore"):
        share = (np.clip(known, lower, upper) - lower) / (upper - lower)
        return np.rint(share * STEPS).astype(np.int64)


def step(interval: Interval) -> Fraction:
    return (Fraction(interval[1]) - Fraction(interval[0])) / STEPS


def checked_size(m: int, kernel: Kernel) -> int:
    if m < 2:
        raise ParameterError(f"HSIC needs at least 2 records, got {m}")
    if m > kernel.most_records:
        raise ParameterError(f"HSIC with {kernel.name} kernels takes at most {kernel.most_records} records, got {m}")
    return m


def checked_positive(name: str, value: float) -> Fraction:
    if not is_finite(value) or value <= 0:
        raise ParameterError(f"{name} must be a positive, finite number, got {value!r}")
    return Fraction(float(value))


def checked_interval(name: str, interval: Interval) -> Interval:
    if not (isinstance(interval, tuple) and len(interval) == 2 and all(map(is_finite, interval))):
        raise ParameterError(f"{name} must be a pair of finite numbers, got {interval!r}")
    lower, upper = float(interval[0]), float(interval[1])
    if not 0 < upper - lower < math.inf:
        raise ParameterError(f"{name} must rise, and by a finite length, got {interval!r}")
    return lower, upper


def is_finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating, np.integer)):
        return False
    return math.isfinite(value)


_ROOT_SIX_BELOW = Fraction(24494897427, 10**10)


def permuted_root_hsic_sensitivity(m: int, *, unit: Unit = Unit.ROW) -> Sensitivity:
    """Return that of ``root_hsic(x, y[π])`` for a fixed permutation π: 4 (m − 1)/m², and rounding."""
    own = Fraction(root_hsic_sensitivity(m).bound)
    # The same rounding part; √6 is taken off rounded down.
    bound = own + (4 - _ROOT_SIX_BELOW) * Fraction(m - 1, m**2)
    return _sensitivity(bound, "permuted-root-hsic", unit)
