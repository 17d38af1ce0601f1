"""Spearman's rho and Kendall's tau with public normalisers, as exact integers over exact integers.

The normaliser depends on m alone.  The tie-corrected coefficients of the common libraries divide by a term of
the data instead, and one record can move them by 2 at every m: they must never be released.  Proofs: ``rank.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpcausal.errors import ParameterError
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity, Unit

Column = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Calibration:
    """Constants (a, b) of the bounds a/(m + b) on the change of a score between neighbours."""

    spearman: tuple[int, int]
    kendall: tuple[int, int]


LEAST = Calibration(spearman=(6, 1), kendall=(4, 0))
"""The least constants: both are attained."""

ROUNDING = Fraction(1, 2**53)
"""Two correctly rounded numbers of [−1, 1] are at most this much further apart than the exact ones."""


def spearman(x: Column, y: Column) -> float:
    """Return Spearman's rho with midranks and a fixed normaliser, correctly rounded: in [−1, 1], signed.

    rho = 12 Σ (r_i − r̄)(s_i − s̄) / (m(m² − 1)), r_i and s_i the midranks of x_i and y_i, r̄ = s̄ = (m + 1)/2.  Only
    the order counts; NaN counts as one largest value, a constant column gives 0.  *Source*: Kusner et al. (2016),
    section 3.3, without the assumption that there are no ties.
    """
    return spearman_numerator(x, y) / _largest_spearman(len(x))


def spearman_numerator(x: Column, y: Column) -> int:
    """Return N = 4 Σ (r_i − r̄)(s_i − s̄), an exact integer for every m below 2³¹; rho = 3N / (m(m² − 1)).

    Doubled centred midranks are integers: R_i = 2(r_i − r̄) = #{x_j < x_i} − #{x_j > x_i}.
    """
    m = _common_length(x, y)
    R, S = _doubled_centred_ranks(x), _doubled_centred_ranks(y)
    # |R_i S_i| ≤ (m−1)²: a slice of this length sums within int64, and Python adds the slices exactly.
    slice_length = max(1, (2**63 - 1) // (m - 1) ** 2)
    return sum(
        int(np.dot(R[start : start + slice_length], S[start : start + slice_length]))
        for start in range(0, m, slice_length)
    )


def kendall(x: Column, y: Column) -> float:
    """Return Kendall's tau with a fixed normaliser (tau-a, tied pairs count 0), correctly rounded: in [−1, 1], signed.

    tau = (C − D) / (m(m − 1)/2), C and D the pairs that x and y order alike and opposite; NaN and constant columns as
    in ``spearman``.  *Source*: Kusner et al. (2016), section 3.3.
    """
    return kendall_numerator(x, y) / _pairs(len(x))


def kendall_numerator(x: Column, y: Column) -> int:
    """Return C − D, concordant minus discordant pairs, an exact integer in O(m log m)."""
    m = _common_length(x, y)
    x_codes, x_counts = _codes(x)
    y_codes, y_counts = _codes(y)
    both = x_codes * m + y_codes
    order = np.argsort(both)
    both_sorted = both[order]
    starts = np.flatnonzero(np.concatenate(([True], both_sorted[1:] != both_sorted[:-1])))
    # Sorted by x, then y, pairs tied in x ascend in y; a stable sort keeps pairs tied in y in place: neither is
    # an inversion, so the inversions are the discordant pairs.
    discordant = _inversions(np.argsort(y_codes[order], kind="stable"))
    untied = _pairs(m) - _tied_pairs(x_counts) - _tied_pairs(y_counts) + _tied_pairs(np.diff(starts, append=m))
    return untied - 2 * discordant


def spearman_sensitivity(m: int, calibration: Calibration = LEAST, unit: Unit = Unit.ROW) -> Sensitivity:
    """Return the sensitivity of ``spearman`` and of its absolute value: 6/(m + 1), and 2⁻⁵³ for rounding."""
    return _sensitivity(_bound(calibration.spearman, m) + ROUNDING, "spearman-rho", unit)


def spearman_numerator_sensitivity(
    m: int, calibration: Calibration = LEAST, unit: Unit = Unit.ROW
) -> Sensitivity:
    """Return the sensitivity of ``spearman_numerator`` and of its absolute value: the integer 2m(m − 1)."""
    return _sensitivity(int(_bound(calibration.spearman, m) * _largest_spearman(m)), "spearman-rho", unit)


def kendall_sensitivity(m: int, calibration: Calibration = LEAST, unit: Unit = Unit.ROW) -> Sensitivity:
    """Return the sensitivity of ``kendall`` and of its absolute value: 4/m, and 2⁻⁵³ for rounding."""
    return _sensitivity(_bound(calibration.kendall, m) + ROUNDING, "kendall-tau", unit)


def kendall_numerator_sensitivity(
    m: int, calibration: Calibration = LEAST, unit: Unit = Unit.ROW
) -> Sensitivity:
    """Return the sensitivity of ``kendall_numerator`` and of its absolute value: the integer 2(m − 1)."""
    return _sensitivity(int(_bound(calibration.kendall, m) * _pairs(m)), "kendall-tau", unit)


def _bound(constants: tuple[int, int], m: int) -> Fraction:
    if m < 2:
        raise ParameterError(f"a rank score needs at least 2 records, got {m}")
    return Fraction(constants[0], m + constants[1])


def _sensitivity(bound: Fraction | int, proof: str, unit: Unit) -> Sensitivity:
    return Sensitivity(bound, Norm.ABSOLUTE, Relation.REPLACE_ONE, proof, unit)


def _largest_spearman(m: int) -> int:
    return m * (m * m - 1) // 3


def _pairs(m: int) -> int:
    return m * (m - 1) // 2


def _common_length(x: Column, y: Column) -> int:
    shapes = np.shape(x), np.shape(y)
    if len(shapes[0]) != 1 or shapes[0] != shapes[1]:
        raise ParameterError(f"x and y must be one-dimensional and of one length, got {shapes[0]}, {shapes[1]}")
    if len(x) < 2:
        raise ParameterError(f"a rank score needs at least 2 records, got {len(x)}")
    return len(x)


def _codes(values: Column) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    _, codes, counts = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    return codes.astype(np.int64, copy=False), counts.astype(np.int64, copy=False)


def _doubled_centred_ranks(values: Column) -> npt.NDArray[np.int64]:
    codes, counts = _codes(values)
    less = np.cumsum(counts) - counts
    ranks: npt.NDArray[np.int64] = (2 * less + counts - len(codes))[codes]
    return ranks


def _tied_pairs(counts: npt.NDArray[np.int64]) -> int:
    return int(np.sum(counts * (counts - 1) // 2))


def _inversions(permutation: npt.NDArray[np.int64]) -> int:
    """Return the number of inversions of a permutation of 0, …, m−1 in O(m log m), without a loop over records.

    From the highest bit down, the numbers are split stably by the bit.  Before each split those that agree in
    all higher bits stand together, in blocks of known length, in their original order; a pair is counted at the
    first bit where it differs, if the one stands before the zero.
    """
    bits = max(1, (len(permutation) - 1).bit_length())
    # Padding with the numbers m, …, 2^bits − 1 in order adds no inversion and makes every block full.
    numbers = np.concatenate([permutation, np.arange(len(permutation), 2**bits)])
    total = 0
    for bit in reversed(range(bits)):
        half = 1 << bit
        is_zero = (numbers & half) == 0
        places = np.flatnonzero(is_zero)
        # The k-th zero of a block stands at place k + (number of ones before it).
        total += int(np.sum(places & (2 * half - 1))) - (len(numbers) // (2 * half)) * _pairs(half)
        zeros, ones = numbers[places], numbers[~is_zero]
        numbers = np.concatenate([zeros.reshape(-1, half), ones.reshape(-1, half)], axis=1).ravel()
    return total


Counts = npt.NDArray[np.int64]

GRID = 2**20
"""A stratum's term is counted in units of 1/GRID, rounded down: an integer statistic for integer noise."""


def conditional_kendall(x: Column, y: Column, strata: Column) -> float:
    """Return T = (2/n) Σ_s K_s / n_s, in (−1, 1): Kendall's tau within strata, each of equal values of ``strata``.

    K_s is concordant minus discordant pairs of stratum s, ties 0; n_s its number of records.  Under independence
    T · 1.5 √n is about standard normal where there are no ties.  In place of Definition 6 of Wang, Pang & Song (2020),
    which no O(1/√n) bound holds for.
    """
    n = _length(x, y, strata)
    total = Fraction(0)
    for rows in strata_rows(strata):
        if len(rows) > 1:
            total += Fraction(kendall_numerator(x[rows], y[rows]), len(rows))
    return float(2 * total / n)


def conditional_kendall_steps(x: Column, y: Column, strata: Column) -> int:
    """Return n · T in units of 1/GRID, each stratum's term rounded down: Σ_s ⌊2 · GRID · K_s / n_s⌋."""
    _length(x, y, strata)
    return sum(
        2 * GRID * kendall_numerator(x[rows], y[rows]) // len(rows) for rows in strata_rows(strata) if len(rows) > 1
    )


def table_kendall_steps(counts: Counts) -> int:
    """Return ``conditional_kendall_steps`` from a table of counts, shape (levels of x, levels of y, strata).

    Exact below n = 2³¹; levels are in their order.
    """
    sizes = counts.sum(axis=(0, 1))
    pairs = stratum_kendall_numerators(counts)
    return sum(
        2 * GRID * int(pair) // int(size) for pair, size in zip(pairs.tolist(), sizes.tolist(), strict=True) if size > 1
    )


def stratum_kendall_numerators(counts: Counts) -> Counts:
    """Return K_s of each stratum of a table of counts, shape (levels of x, levels of y, strata)."""
    # Records with both codes larger, less those with a larger x and a smaller y.
    larger_x = np.cumsum(counts[::-1], axis=0)[::-1]
    larger_x = np.concatenate([larger_x[1:], np.zeros_like(larger_x[:1])], axis=0)
    up_to_y = np.cumsum(larger_x, axis=1)
    total = up_to_y[:, -1:]
    above = (total - up_to_y) - np.concatenate([np.zeros_like(up_to_y[:, :1]), up_to_y[:, :-1]], axis=1)
    return np.asarray((counts * above).sum(axis=(0, 1)), dtype=np.int64)


def conditional_kendall_sensitivity(n: int, binary: bool = False, one_stratum: bool = False) -> Sensitivity:
    """Return the sensitivity of T: max(4 − 4/n, 6 − 16/(n + 1))/n, below 6/n; for two-valued x and y below 4/n.

    With one public stratum, which all rows are in or stand alone, it is (4 − 4/n)/n.
    For all strata, their number and sizes included; 2⁻⁵² is added for rounding.
    """
    if n < 2:
        raise ParameterError(f"a rank score needs at least 2 records, got {n}")
    inside = 4 - Fraction(4, n)
    across = 4 - Fraction(8, n + 1) if binary else max(inside, 6 - Fraction(16, n + 1))
    steps = inside if one_stratum and not binary else across
    return Sensitivity(
        steps / n + Fraction(1, 2**52), Norm.ABSOLUTE, Relation.REPLACE_ONE, "conditional-kendall", symmetric=True
    )


def conditional_kendall_steps_sensitivity(binary: bool = False) -> Sensitivity:
    """Return the sensitivity of the integer steps, each of many statistics at once: 6 · GRID + 1, 4 · GRID + 1."""
    return Sensitivity(
        (4 if binary else 6) * GRID + 1, Norm.LINF, Relation.REPLACE_ONE, "conditional-kendall-steps"
    )


def _length(x: Column, y: Column, strata: Column) -> int:
    shapes = {np.shape(x), np.shape(y), np.shape(strata)}
    if len(shapes) != 1 or len(np.shape(x)) != 1 or len(x) < 2:
        raise ParameterError("x, y and strata must be one-dimensional, of one length of at least 2")
    return len(x)


def strata_rows(strata: Column) -> list[npt.NDArray[np.int64]]:
    """Return the positions of each stratum's records."""
    _, codes = np.unique(strata, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
