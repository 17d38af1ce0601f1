"""Kendall's tau and Spearman's rho within strata as published: Σ_s w_s c_s / √Σ_s w_s, about standard normal.

c_s is the coefficient of stratum s without correction for ties.  For comparison: no bound that falls with n holds for
tau (``docs/errata_discovery.md``); one holds for rho where the number of strata is public: ``published_rank.md``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.dependence.conditional_kendall import strata_rows
from dpcausal.dependence.rank import kendall, spearman_numerator
from dpcausal.errors import ParameterError
from dpcausal.privacy.neighbours import Relation
from dpcausal.privacy.sensitivity import Norm, Sensitivity

Column = npt.NDArray[np.float64]

ROUNDING = 2.0**-36
"""Above what rounding adds on two sides, of values below 10⁴."""


def kendall_weight(m: Any) -> Any:
    """Return w = 9m(m − 1)/(2(2m + 5)), the inverse variance of tau in a stratum of m records without ties.

    Examples
    --------
    >>> kendall_weight(10)
    16.2
    """
    return 9 * m * (m - 1) / (2 * (2 * m + 5))


def published_kendall(x: Column, y: Column, strata: Column) -> float:
    """Return Σ w_s tau_s / √Σ w_s, w the ``kendall_weight``; 0 where no stratum has two records.

    *Source*: Wang, Pang & Song (2020), Definition 6.

    Examples
    --------
    >>> line = np.arange(10.0)
    >>> published_kendall(line, line, np.zeros(10)) == 16.2**0.5
    True
    """
    parts = [(kendall_weight(len(rows)), rows) for rows in strata_rows(strata) if len(rows) > 1]
    total = math.fsum(weight for weight, _ in parts)
    if not parts:
        return 0.0
    return math.fsum(weight * kendall(x[rows], y[rows]) for weight, rows in parts) / math.sqrt(total)


def claimed_kendall_sensitivity(n: int, strata: int) -> Sensitivity:
    """Return the sensitivity of ``published_kendall`` as claimed, 9/(2√n): it does not hold.

    *Source*: Wang, Pang & Song (2020), Theorem 3.
    """
    bound = 4.5 / math.sqrt(n)
    return Sensitivity(bound, Norm.ABSOLUTE, Relation.REPLACE_ONE, "conditional-tau-published-unproven")


def published_spearman(x: Column, y: Column, strata: Column) -> float:
    """Return Σ w_s rho_s / √Σ w_s, w_s = n_s − 1; 0 where no stratum has two records.

    *Guarantee*: ``published_spearman_sensitivity(n, strata)``.
    *Source*: Wang, Pang & Song (2020), Definition 8.

    Examples
    --------
    >>> line = np.arange(10.0)
    >>> published_spearman(line, line, np.zeros(10))
    3.0
    """
    top, total = Fraction(0), 0
    for rows in strata_rows(strata):
        m = len(rows)
        if m > 1:
            top += Fraction(3 * spearman_numerator(x[rows], y[rows]), m * (m + 1))
            total += m - 1
    return float(top) / math.sqrt(total) if total else 0.0


def published_spearman_sensitivity(n: int, strata: int, published: bool = False) -> Sensitivity:
    """Return how far ``published_spearman`` moves: max(6, 10 − 48/(n + 3))/√(n − k) for k public strata.

    Parameters
    ----------
    n : int
        Number of records, above k.
    strata : int
        k.
    published : bool
        The constant of the paper, 31√k/√(n − k): larger, hence valid.

    Notes
    -----
    *Source*: ``published_rank.md``; Wang, Pang & Song (2020), Theorem 9, has 31√k.

    Examples
    --------
    >>> [round(float(published_spearman_sensitivity(1000, 16, whose).bound), 3) for whose in (False, True)]
    [0.317, 3.953]
    """
    if not 1 <= strata < n:
        raise ParameterError("the published coefficient needs more records than strata")
    steps = 31 * math.sqrt(strata) if published else max(6.0, 10 - 48 / (n + 3))
    bound = steps / math.sqrt(n - strata) * (1 + 1e-12) + ROUNDING
    return Sensitivity(bound, Norm.ABSOLUTE, Relation.REPLACE_ONE, "published-conditional-spearman")
