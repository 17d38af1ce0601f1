"""The private conditional Kendall and Spearman tests: coefficients within strata, weighted as in Priv-PC.

Wang, Pang & Song (2020), Definition 6 and Theorem 3; the baseline of Kalemaj, Kasiviswanathan & Ramdas (2024).
Erratum: the sensitivity claimed for tau does not hold, so ``PrivKendall`` needs consent; rho has a proved constant
where the number of strata is public (``docs/errata_discovery.md``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dpcausal.dependence.published_rank import (
    claimed_kendall_sensitivity,
    published_kendall,
    published_spearman,
    published_spearman_sensitivity,
)
from dpcausal.independence.columns import Reals
from dpcausal.independence.question import Hypothesis
from dpcausal.independence.rank_tests import RankTest
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Sensitivity

AS_PUBLISHED = "the statistic and constant as published: for comparison"


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

    def caveats(self, question: Hypothesis, spent: PureDP | NoPrivacy) -> tuple[str, ...]:
        return (*super().caveats(question, spent), AS_PUBLISHED)
