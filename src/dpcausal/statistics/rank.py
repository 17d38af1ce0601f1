"""Kendall's tau within strata with a public normaliser, as exact integers over exact integers.

The normaliser depends on m alone.  The tie-corrected coefficients of the common libraries divide by a term of
the data instead, and one record can move them by 2 at every m: they must never be released.  Proofs: ``rank.md``.
"""

from fractions import Fraction

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.errors import ParameterError
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity

SHORT = 64
"""Up to so many records, comparing all pairs takes less time than a sort."""


def kendall_numerator(x: Reals, y: Reals) -> int:
    """Return C − D, concordant minus discordant pairs, an exact integer in O(m log m)."""
    m = checked_length(x, y)
    x_codes, x_counts = codes_of(x)
    y_codes, y_counts = codes_of(y)
    if m <= SHORT:
        x_order, y_order = (np.sign(np.subtract.outer(codes, codes)) for codes in (x_codes, y_codes))
        return int(np.vdot(x_order, y_order)) // 2
    both = x_codes * m + y_codes
    order = np.argsort(both)
    both_sorted = both[order]
    starts = np.flatnonzero(np.concatenate(([True], both_sorted[1:] != both_sorted[:-1])))
    # Sorted by x, then y, pairs tied in x ascend in y; a stable sort keeps pairs tied in y in place: neither is
    # an inversion, so the inversions are the discordant pairs.
    discordant = _inversion_count(np.argsort(y_codes[order], kind="stable"))
    untied = pairs_of(m) - _tied_pairs(x_counts) - _tied_pairs(y_counts) + _tied_pairs(np.diff(starts, append=m))
    return untied - 2 * discordant


def pairs_of(m: int) -> int:
    return m * (m - 1) // 2


def checked_length(*columns: Reals) -> int:
    shapes = {np.shape(column) for column in columns}
    if len(shapes) != 1 or len(np.shape(columns[0])) != 1 or len(columns[0]) < 2:
        raise ParameterError("columns of a rank score must be one-dimensional, of one length of at least 2")
    return len(columns[0])


def codes_of(values: Reals) -> tuple[Integers, Integers]:
    """Return the place of each value among the distinct ones, and how often each of those occurs."""
    _, codes, counts = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    return codes.astype(np.int64, copy=False), counts.astype(np.int64, copy=False)


def _tied_pairs(counts: Integers) -> int:
    return int(np.sum(counts * (counts - 1) // 2))


def _inversion_count(permutation: Integers) -> int:
    """Return the number of inversions of a permutation of 0, …, m−1 in O(m log m), without a loop over records. From
    the highest bit down, numbers are split stably by the bit; a pair counts at the first bit where it differs."""
    bits = max(1, (len(permutation) - 1).bit_length())
    # Padding with the numbers m, …, 2^bits − 1 in order adds no inversion and makes every block full.
    numbers = np.concatenate([permutation, np.arange(len(permutation), 2**bits)])
    total = 0
    for bit in reversed(range(bits)):
        half = 1 << bit
        is_zero = (numbers & half) == 0
        places = np.flatnonzero(is_zero)
        # The k-th zero of a block stands at place k + (number of ones before it).
        total += int(np.sum(places & (2 * half - 1))) - (len(numbers) // (2 * half)) * pairs_of(half)
        zeros, ones = numbers[places], numbers[~is_zero]
        numbers = np.concatenate([zeros.reshape(-1, half), ones.reshape(-1, half)], axis=1).ravel()
    return total


def conditional_kendall(x: Reals, y: Reals, strata: Reals) -> float:
    """Return T = (2/n) Σ_s K_s / n_s, in (−1, 1): Kendall's tau within strata of equal values of ``strata``. Under
    independence T · 1.5 √n is about standard normal where there are no ties.  In place of Definition 6 of Wang, Pang &
    Song (2020), for which no O(1/√n) bound holds."""
    n = checked_length(x, y, strata)
    total = Fraction(0)
    for rows in strata_rows(strata):
        if len(rows) > 1:
            total += Fraction(kendall_numerator(x[rows], y[rows]), len(rows))
    return float(2 * total / n)


def conditional_kendall_sensitivity(n: int, binary: bool = False, one_stratum: bool = False) -> Sensitivity:
    """Return max(4 − 4/n, 6 − 16/(n + 1))/n, below 6/n; of two-valued x and y below 4/n; of one stratum (4 − 4/n)/n."""
    if n < 2:
        raise ParameterError(f"a rank score needs at least 2 records, got {n}")
    inside = 4 - Fraction(4, n)
    across = 4 - Fraction(8, n + 1) if binary else max(inside, 6 - Fraction(16, n + 1))
    steps = inside if one_stratum and not binary else across
    return Sensitivity(
        steps / n + Fraction(1, 2**52), Norm.ABSOLUTE, Relation.REPLACE_ONE, "conditional-kendall", symmetric=True
    )


def strata_rows(strata: Reals) -> list[Integers]:
    _, codes = np.unique(strata, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
