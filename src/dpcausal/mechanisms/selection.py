"""Private selection: report noisy max, and the margin of a rank."""

import math
from fractions import Fraction
from functools import partial

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.errors import FenceError, LossError, ParameterError
from dpcausal.mechanisms.additive import laplace_scale
from dpcausal.mechanisms.gate import event_of, exact, release
from dpcausal.privacy import noise
from dpcausal.privacy.ledger import CallBudget
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity


def noisy_max(query: Query, allotment: CallBudget, loss: PureDP | NoPrivacy) -> int:
    """Release the index of a large score, bounded in l∞: argmax_i (u_i + z_i), z_i ~ Exp with MEAN 2Δ∞/ε.

    The distribution is that of permute-and-flip, which is never less accurate than the exponential mechanism
    P(i) ∝ exp(ε u_i / (2Δ∞)) at the same ε.  Without privacy: the first index of the largest score.

    *Guarantee*: ε-DP, claim ``noisy-max``.
    *Source*: McKenna & Sheldon (2020), permute-and-flip; Ding et al. (2021): exponential noise gives the same
    distribution.
    """
    if len(query.shape) != 1 or query.shape[0] == 0:
        raise FenceError(f"'{query.label}' must be one row of scores")
    if query.sensitivity.norm is not Norm.LINF:
        raise FenceError(f"'{query.label}' is bounded in {query.sensitivity.norm.value}, selection needs l-infinity")
    if allotment.exact:
        return int(np.argmax(exact(query, allotment)))
    if not isinstance(loss, PureDP):
        raise LossError("selection is paid for in PureDP")
    bound = math.ceil(query.sensitivity.bound) if query.integral else query.sensitivity.rounded_up
    scale = laplace_scale(2 * Fraction(bound), loss)
    draw = partial(noise.noisy_argmax, scale=scale, sensitivity=bound, epsilon=loss.epsilon)
    event = event_of("noisy-max", query, loss, scale, bound=float(bound))
    return int(release(query, allotment, event, draw))


ROUNDING = Fraction(1, 2**24)
_DRAW_ROUNDING = Fraction(1, 2**45)
"""Of the bound, for the rounding of statistics up to 2²⁵ times as large, and of random draws 40 times their scale."""


def margin_sensitivity(own: Sensitivity, copies: Sensitivity, epsilon: float = 1.0) -> Sensitivity:
    """Return the sensitivity of ``rank_margin``: Δ_0 + Δ_1, and 2⁻²⁴ + 2⁻⁴⁵/ε of it for rounding. ``own`` is that of
    T_0, ``copies`` that of each T_j for fixed random draws, which are as large as the margin's noise."""
    slack = ROUNDING + _DRAW_ROUNDING / Fraction(epsilon)
    bound = (Fraction(own.bound) + Fraction(copies.bound)) * (1 + slack)
    return Sensitivity(bound, Norm.ABSOLUTE, own.relation, "noisy-rank", own.unit)


def rank_margin(
    statistics: Reals, rank: int, scale: float, claim: Sensitivity, generator: PublicGenerator, label: str
) -> Query:
    """Return T_0 less the k-th largest of the T_j + z_j, hidden; z_j ~ Laplace(scale) are public random draws.

    With Laplace noise of the same scale on it, the margin is above 0 just if the noisy T_0 is among the k largest of
    all; large T speak against the null.  Claim ``noisy-rank``.  *Source*: Kim & Schrab (2023), section 3, whose noise
    is all secret.
    """
    copies = statistics[1:] + generator.laplace(scale=scale, size=len(statistics) - 1)
    if not 1 <= rank <= len(copies):
        raise ParameterError("the rank must be between 1 and the number of copies")
    return Query(float(statistics[0] - np.sort(copies)[-rank]), claim, label)
