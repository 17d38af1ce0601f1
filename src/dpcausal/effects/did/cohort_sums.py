"""Counts, sums and squares of persons' paths by cohort.

Proofs: ``cohort_sums.md``.
"""

import math

import numpy as np

from dpcausal.arrays import Integers, Mask, Reals
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity
from dpcausal.statistics.moments import clip_rows, scaled, second_moments, squared_lengths


def factors(radius: float, bits: int) -> tuple[float, float]:
    """Return what a person counts, and what a square is multiplied by, in units of 2^(−bits)."""
    length = math.ldexp(radius, bits)
    return float(math.floor(length / math.sqrt(2))), 1 / (math.sqrt(2) * length)


def cohort_sums(
    cohorts: Integers, number: int, rows: Reals, complete: Mask, radius: float, bits: int, weights: Reals | None = None
) -> Reals:
    """Return count, sums and squares of each cohort and last what was lost, as in ``cohort-sums``: units of 2^(−bits).

    ``cohorts`` has each person's cohort, ``rows``, shape (n, d), the person's row; only complete persons count, each
    with its weight in [0, 1].

    *Guarantee*: ``cohort_sums_sensitivity(number, d, radius, bits)``.
    """
    inside = clip_rows(rows, radius, bits)
    lost = np.trunc(math.ldexp(radius, bits) / 2 * np.clip(np.sqrt(squared_lengths(rows)) / radius - 1, 0.0, 1.0))
    count, square = factors(radius, bits)
    parts = []
    for cohort in range(number):
        here = complete & (cohorts == cohort)
        own, part = inside[here], None if weights is None else weights[here]
        sums = [_total(np.full(len(own), count), part), *(_total(column, part) for column in own.T)]
        parts += [np.array(sums), square * (second_moments(own) if part is None else _squares(own, part))]
    return np.concatenate([*parts, [_total(lost[complete], None if weights is None else weights[complete])]])


def _total(values: Reals, parts: Reals | None) -> float:
    return float(values.sum() if parts is None else np.rint(parts * values).sum())


def _squares(own: Reals, parts: Reals) -> Reals:
    upper = [(i, i) for i in range(own.shape[1])] + [*zip(*np.triu_indices(own.shape[1], 1), strict=True)]
    return scaled(np.array([_total(own[:, i] * own[:, j], parts) for i, j in upper]), own.shape[1])


def cohort_sums_sensitivity(number: int, columns: int, radius: float, bits: int) -> Sensitivity:
    """Return the l2 sensitivity of ``cohort_sums``: √4.25 · 2^bits · radius; rounding is added.

    Examples
    --------
    >>> round(float(cohort_sums_sensitivity(3, 2, 1.0, 16).bound) / 2**16, 3)
    2.062
    """
    entries = number * (1 + columns + columns * (columns + 1) // 2)
    bound = math.sqrt(4.25) * math.ldexp(radius, bits) * (1 + 2.0**-50) + 2 * math.sqrt(entries)
    return Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "cohort-sums", symmetric=True)
