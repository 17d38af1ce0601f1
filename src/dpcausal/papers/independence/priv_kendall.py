"""The private conditional Kendall and Spearman tests: Σ_s w_s c_s / √Σ_s w_s over strata, about standard normal.

Wang, Pang & Song (2020), Definitions 6 and 8, Theorems 3 and 9; the baseline of Kalemaj, Kasiviswanathan & Ramdas
(2024).  c_s is the coefficient of stratum s without correction for ties.
Erratum: no bound that falls with n holds for tau, so ``PrivKendall`` needs consent; rho has a proved one where the
number of strata is public (``priv_kendall.md``, ``docs/appendix/errata-discovery.md``).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpcausal.arrays import Reals
from dpcausal.errors import ParameterError
from dpcausal.independence.methods.kendall import RankTest
from dpcausal.independence.question import IndependenceQuestion
from dpcausal.papers.statistics.rank import kendall, spearman_numerator
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity
from dpcausal.statistics.rank import strata_rows

ROUNDING = 2.0**-36
"""Above what rounding adds on two sides, of values below 10⁴."""

AS_PUBLISHED = "the statistic and constant as published: for comparison"


def kendall_weight(m: Any) -> Any:
    """Return w = 9m(m − 1)/(2(2m + 5)), the inverse variance of tau in a stratum of m records without ties."""
    return 9 * m * (m - 1) / (2 * (2 * m + 5))


def published_kendall(x: Reals, y: Reals, strata: Reals) -> float:
    """Return Σ w_s tau_s / √Σ w_s, w the ``kendall_weight``: Definition 6; 0 where no stratum has two records."""
    parts = [(kendall_weight(len(rows)), rows) for rows in strata_rows(strata) if len(rows) > 1]
    if not parts:
        return 0.0
    total = math.fsum(weight for weight, _ in parts)
    return math.fsum(weight * kendall(x[rows], y[rows]) for weight, rows in parts) / math.sqrt(total)


def claimed_kendall_sensitivity(n: int, strata: int) -> Sensitivity:
    """Return the sensitivity of ``published_kendall`` as claimed in Theorem 3, 9/(2√n): it does not hold."""
    bound = 4.5 / math.sqrt(n)
    return Sensitivity(bound, Norm.ABSOLUTE, Relation.REPLACE_ONE, "conditional-tau-published-unproven")


def published_spearman(x: Reals, y: Reals, strata: Reals) -> float:
    """Return Σ w_s rho_s / √Σ w_s, w_s = n_s − 1: Definition 8; 0 where no stratum has two records."""
    top, total = Fraction(0), 0
    for rows in strata_rows(strata):
        m = len(rows)
        if m > 1:
            top += Fraction(3 * spearman_numerator(x[rows], y[rows]), m * (m + 1))
            total += m - 1
    return float(top) / math.sqrt(total) if total else 0.0


def published_spearman_sensitivity(n: int, strata: int, published: bool = False) -> Sensitivity:
    """Return how far ``published_spearman`` moves: max(6, 10 − 48/(n + 3))/√(n − k) for k public strata.

    ``published``: the constant of Theorem 9, 31√k/√(n − k): larger, hence valid.
    """
    if not 1 <= strata < n:
        raise ParameterError("the published coefficient needs more records than strata")
    steps = 31 * math.sqrt(strata) if published else max(6.0, 10 - 48 / (n + 3))
    bound = steps / math.sqrt(n - strata) * (1 + 1e-12) + ROUNDING
    return Sensitivity(bound, Norm.ABSOLUTE, Relation.REPLACE_ONE, "published-conditional-spearman")


@dataclass(frozen=True, kw_only=True)
class PrivKendall(RankTest):
    """Kendall's tau within strata with the claimed sensitivity: not private; options as in ``Kendall``."""

    name: ClassVar[str] = "Kendall of Priv-PC"

    @property
    def unproven(self) -> str:
        return "conditional Kendall's tau"

    def statistic(self, x: Reals, y: Reals, strata: Any) -> float:
        return published_kendall(x, y, strata)

    def sensitivity(self, rows: int, strata: int) -> Sensitivity:
        return claimed_kendall_sensitivity(rows, strata)

    def deviation(self, rows: int, strata: int) -> float:
        return 1.0


@dataclass(frozen=True, kw_only=True)
class PrivSpearman(RankTest):
    """Spearman's rho within strata with the printed constant; options as in ``Kendall``."""

    name: ClassVar[str] = "Spearman of Priv-PC"

    def statistic(self, x: Reals, y: Reals, strata: Any) -> float:
        return published_spearman(x, y, strata)

    def sensitivity(self, rows: int, strata: int) -> Sensitivity:
        return published_spearman_sensitivity(rows, strata, published=True)

    def deviation(self, rows: int, strata: int) -> float:
        return 1.0

    def caveats(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> tuple[str, ...]:
        return (*super().caveats(question, loss), AS_PUBLISHED)
