"""Spearman's rho and Kendall's tau with public normalisers, and steps of tau within strata, as exact integers.

The normaliser depends on m alone.  The tie-corrected coefficients of the common libraries divide by a term of
the data instead, and one record can move them by 2 at every m: they must never be released.

The signed flip distance z says which of two scores wins, and how many records away it is from losing: the first wins if
and only if z ≥ 0.  One replaced record moves z by at most 1, so one draw of integer noise on it releases winner and
confidence together.  Proofs: ``rank.md``.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpcausal.arrays import Reals
from dpcausal.errors import ParameterError
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity, Unit
from dpcausal.statistics.rank import checked_length, codes_of, kendall_numerator, pairs_of, strata_rows

Counts = npt.NDArray[np.int64]

GRID = 2**20
"""A stratum's term is counted in units of 1/GRID, rounded down: an integer statistic for integer noise."""


@dataclass(frozen=True)
class Calibration:
    spearman: tuple[int, int]
    kendall: tuple[int, int]


LEAST = Calibration(spearman=(6, 1), kendall=(4, 0))
"""The least constants: both are attained."""

ROUNDING = Fraction(1, 2**53)
"""Two correctly rounded numbers of [−1, 1] are at most this much further apart than the exact ones."""


def spearman(x: Reals, y: Reals) -> float:
    """Return Spearman's rho with midranks and a fixed normaliser, correctly rounded: in [−1, 1], signed.

    rho = 12 Σ (r_i − r̄)(s_i − s̄) / (m(m² − 1)), r_i and s_i the midranks of x_i and y_i, r̄ = s̄ = (m + 1)/2.  Only
    the order counts; NaN counts as one largest value, a constant column gives 0.  *Source*: Kusner et al. (2016),
    section 3.3, without the assumption that there are no ties.
    """
    return 3 * spearman_numerator(x, y) / (len(x) * (len(x) ** 2 - 1))


def spearman_numerator(x: Reals, y: Reals) -> int:
    """Return N = 4 Σ (r_i − r̄)(s_i − s̄), an exact integer for every m below 2³¹; rho = 3N / (m(m² − 1)).

    Doubled centred midranks are integers: R_i = 2(r_i − r̄) = #{x_j < x_i} − #{x_j > x_i}.
    """
    m = checked_length(x, y)
    R, S = _doubled_centred_ranks(x), _doubled_centred_ranks(y)
    # |R_i S_i| ≤ (m−1)²: a slice of this length sums within int64, and Python adds the slices exactly.
    slice_length = max(1, (2**63 - 1) // (m - 1) ** 2)
    return sum(
        int(np.dot(R[start : start + slice_length], S[start : start + slice_length]))
        for start in range(0, m, slice_length)
    )


def kendall(x: Reals, y: Reals) -> float:
    """Return Kendall's tau with a fixed normaliser (tau-a, tied pairs count 0), correctly rounded: in [−1, 1], signed.

    tau = (C − D) / (m(m − 1)/2), C and D the pairs that x and y order alike and opposite; NaN and constant columns as
    in ``spearman``.  *Source*: Kusner et al. (2016), section 3.3.
    """
    return kendall_numerator(x, y) / pairs_of(len(x))


def spearman_sensitivity(m: int, calibration: Calibration = LEAST, unit: Unit = Unit.ROW) -> Sensitivity:
    """Return the sensitivity of ``spearman`` and of its absolute value: 6/(m + 1), and 2⁻⁵³ for rounding."""
    return _sensitivity(_bound(calibration.spearman, m) + ROUNDING, "spearman-rho", unit)


def kendall_sensitivity(m: int, calibration: Calibration = LEAST, unit: Unit = Unit.ROW) -> Sensitivity:
    """Return the sensitivity of ``kendall`` and of its absolute value: 4/m, and 2⁻⁵³ for rounding."""
    return _sensitivity(_bound(calibration.kendall, m) + ROUNDING, "kendall-tau", unit)


def kendall_numerator_sensitivity(m: int, calibration: Calibration = LEAST, unit: Unit = Unit.ROW) -> Sensitivity:
    """Return the sensitivity of ``kendall_numerator`` and of its absolute value: the integer 2(m − 1)."""
    return _sensitivity(int(_bound(calibration.kendall, m) * pairs_of(m)), "kendall-tau", unit)


def _bound(constants: tuple[int, int], m: int) -> Fraction:
    if m < 2:
        raise ParameterError(f"a rank score needs at least 2 records, got {m}")
    return Fraction(constants[0], m + constants[1])


def _sensitivity(bound: Fraction | int, proof: str, unit: Unit) -> Sensitivity:
    return Sensitivity(bound, Norm.ABSOLUTE, Relation.REPLACE_ONE, proof, unit)


def _doubled_centred_ranks(values: Reals) -> npt.NDArray[np.int64]:
    codes, counts = codes_of(values)
    less = np.cumsum(counts) - counts
    return np.asarray((2 * less + counts - len(codes))[codes])


def conditional_kendall_steps(x: Reals, y: Reals, strata: Reals) -> int:
    """Return n · T in units of 1/GRID, each stratum's term rounded down: Σ_s ⌊2 · GRID · K_s / n_s⌋."""
    checked_length(x, y, strata)
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
    # Records with both codes larger, less those with a larger x and a smaller y.
    larger_x = np.cumsum(counts[::-1], axis=0)[::-1]
    larger_x = np.concatenate([larger_x[1:], np.zeros_like(larger_x[:1])], axis=0)
    up_to_y = np.cumsum(larger_x, axis=1)
    total = up_to_y[:, -1:]
    above = (total - up_to_y) - np.concatenate([np.zeros_like(up_to_y[:, :1]), up_to_y[:, :-1]], axis=1)
    return np.asarray((counts * above).sum(axis=(0, 1)), dtype=np.int64)


def conditional_kendall_steps_sensitivity(binary: bool = False) -> Sensitivity:
    """Return the sensitivity of the integer steps, each of many statistics at once: 6 · GRID + 1, 4 · GRID + 1."""
    return Sensitivity((4 if binary else 6) * GRID + 1, Norm.LINF, Relation.REPLACE_ONE, "conditional-kendall-steps")


def signed(first_wins: bool, distance: int) -> int:
    """Return z = d − 1 if the first wins, z = −d if the second does, d ≥ 1 the flip distance.

    At neighbours with the same winner d differs by at most 1; it is 1 at both of two with different winners.
    """
    return distance - 1 if first_wins else -distance


def signed_margin(first: int, second: int, bound: int) -> int:
    """Return the signed flip distance of two integer scores, the smaller of which wins: z = ⌊(s₂ − s₁)/(2Δ)⌋.

    Equal scores are a win of the first; Δ is ``bound``, by which one replaced record moves each score at most.  The
    distance to the other winner is d = ⌊(s₂ − s₁)/(2Δ)⌋ + 1 if the first wins, ⌈(s₁ − s₂)/(2Δ)⌉ if not.
    """
    if bound < 1:
        raise ParameterError(f"the bound of an integer score must be at least 1, got {bound}")
    # Python integers: in floats (s₂ − s₁)/(2Δ) can round across an integer, and neighbours then differ by 2.
    return (int(second) - int(first)) // (2 * int(bound))


def flip_sensitivity(proof: str = "signed-flip-distance", unit: Unit = Unit.ROW) -> Sensitivity:
    """Return the sensitivity 1 of a signed flip distance; ``proof`` is the claim that the distance relies on."""
    return Sensitivity(1, Norm.ABSOLUTE, Relation.REPLACE_ONE, proof, unit)
