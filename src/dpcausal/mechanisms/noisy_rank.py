"""Where a statistic stands among copies of it: a decision by noisy statistics, and scores of ranks.

With T_0 and copies T_1, …, T_m that are exchangeable under a null, adding independent noise of one law to all of them
leaves them exchangeable, so "T_0 + noise is among the k largest" has probability k/(m + 1) at most.  Proofs:
``noisy_rank.md``.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpcausal.errors import ParameterError
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity

Reals = npt.NDArray[np.float64]


_ROUNDING = Fraction(1, 2**24)
_COINS_ROUNDING = Fraction(1, 2**45)
"""Of the bound, for the rounding of statistics up to 2²⁵ times as large, and of coins 40 times their scale."""


def margin_sensitivity(own: Sensitivity, copies: Sensitivity, epsilon: float = 1.0) -> Sensitivity:
    """Return the sensitivity of ``rank_margin``: Δ_0 + Δ_1, and 2⁻²⁴ + 2⁻⁴⁵/ε of it for rounding.

    ``own`` is that of T_0, ``copies`` that of each T_j for fixed coins, which are as large as the margin's noise.
    """
    slack = _ROUNDING + _COINS_ROUNDING / Fraction(epsilon)
    bound = (Fraction(own.bound) + Fraction(copies.bound)) * (1 + slack)
    return Sensitivity(bound, Norm.ABSOLUTE, own.relation, "noisy-rank", own.unit)


def rank_margin(
    statistics: Reals, rank: int, scale: float, claim: Sensitivity, generator: PublicGenerator, label: str
) -> Query:
    """Return T_0 less the k-th largest of the T_j + z_j, hidden; z_j ~ Laplace(scale) are public coins.

    With Laplace noise of the same scale on it, the margin is above 0 just if the noisy T_0 is among the k largest of
    all; large T speak against the null.  Claim ``noisy-rank``.  *Source*: Kim & Schrab (2023), section 3, whose noise
    is all secret.
    """
    copies = statistics[1:] + generator.laplace(scale=scale, size=len(statistics) - 1)
    if not 1 <= rank <= len(copies):
        raise ParameterError("the rank must be between 1 and the number of copies")
    return Query(float(statistics[0] - np.sort(copies)[-rank]), claim, label)


def rank_scores(statistics: Reals, bound: float, label: str, like: Sensitivity) -> Query:
    """Return the scores −|Q_c − T_0|/(2Δ), Q the statistics T_0, …, T_m from the largest down, hidden, sensitivity 1.

    Δ is at least the sensitivity of each statistic.  Claim ``rank-scores``.
    *Source*: Kalemaj, Kasiviswanathan & Ramdas (2024), Algorithm 2.
    """
    if not bound >= like.rounded_up:
        raise ParameterError("the bound of the scores must be at least the sensitivity of the statistics")
    ordered = np.sort(statistics)[::-1]
    scores = -np.abs(ordered - statistics[0]) / (2 * bound)
    return Query(scores, Sensitivity(1 + _ROUNDING, Norm.LINF, like.relation, "rank-scores", like.unit), label)
