"""PrivCRT: the noisy rank of a statistic among those of copies of x.

Kalemaj, Kasiviswanathan & Ramdas (2024), Algorithm 2, with exact residuals of x.
Erratum: none against privacy; the level of its p-value is not proved (``docs/appendix/errata-independence.md``).
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.core import validate as public
from dpcausal.core.method import Run
from dpcausal.errors import ParameterError
from dpcausal.independence.methods.crt_decision import GlobalCrt
from dpcausal.independence.question import IndependenceQuestion, Released
from dpcausal.mechanisms.selection import ROUNDING, noisy_max
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity

RESAMPLES = 19
"""As in the paper: with more copies its noisy maximum loses power."""

NO_LEVEL = "the p-value's level is not proved: it is that of the published method"


def published_resample_bound(penalty: float) -> float:
    """Return C' = 4 (1 + √2/√λ + 2√2/λ^{3/2} + 2/λ) of Lemma 4.5: larger than what is proved, hence valid."""
    return float(4 * (1 + math.sqrt(2 / penalty) + 2 * math.sqrt(2) / penalty**1.5 + 2 / penalty))


def rank_scores(statistics: Reals, bound: float, label: str, like: Sensitivity) -> Query:
    """Return the scores −|Q_c − T_0|/(2Δ), Q the statistics T_0, …, T_m from the largest down, hidden, sensitivity 1.

    Δ is at least the sensitivity of each statistic.  Claim ``rank-scores``.
    *Source*: Kalemaj, Kasiviswanathan & Ramdas (2024), Algorithm 2.
    """
    if not bound >= like.rounded_up:
        raise ParameterError("the bound of the scores must be at least the sensitivity of the statistics")
    ordered = np.sort(statistics)[::-1]
    scores = -np.abs(ordered - statistics[0]) / (2 * bound)
    return Query(scores, Sensitivity(1 + ROUNDING, Norm.LINF, like.relation, "rank-scores", like.unit), label)


@dataclass(frozen=True, kw_only=True)
class PrivCrt(GlobalCrt):
    """A noisy rank among copies.

    Parameters
    ----------
    constants : str
        ``"published"``: scores for the paper's Lemma 4.5; ``"corrected"`` for the smaller bound that is proved here.
    model_x, resamples, penalty, width
        As in ``CrtDecision``; 19 copies by default.
    """

    name: ClassVar[str] = "PrivCRT"
    about: ClassVar[str] = "a noisy rank among copies"
    proofs: ClassVar[tuple[str, ...]] = ("resample-product-sum", "residual-rounding", "rank-scores", "noisy-max")
    default_resamples: ClassVar[int] = RESAMPLES

    constants: Literal["published", "corrected"] = "published"

    def plan(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> Self:
        public.check_choice("constants", self.constants, ("published", "corrected"))
        return super().plan(question, loss)

    def caveats(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> tuple[str, ...]:
        return (*super().caveats(question, loss), NO_LEVEL)

    def release(self, run: Run[IndependenceQuestion]) -> Released:
        each = self.sensitivity(run.question)
        bound = each.rounded_up
        if self.constants == "published":
            bound = max(bound, published_resample_bound(self.penalty or 0))
        statistics = self.statistics(run.data, run.question, run.rng)
        place = noisy_max(rank_scores(statistics, bound, "scores of ranks", each), run.budget, run.loss)
        return Released(float(place), (1 + place) / statistics.size)
