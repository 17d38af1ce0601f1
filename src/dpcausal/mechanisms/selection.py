"""Private selection: report noisy max, and the exponential mechanism, which it never loses to."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np

from dpcausal.errors import FenceError, LossError
from dpcausal.mechanisms.additive import laplace_scale
from dpcausal.mechanisms.gate import event_of, exact, release
from dpcausal.privacy import noise
from dpcausal.privacy.ledger import Allotment
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Norm, Query


def noisy_max(query: Query, allotment: Allotment, loss: PureDP | NoPrivacy) -> int:
    """Release the index of a large score, bounded in l∞: argmax_i (u_i + z_i), z_i ~ Exp with MEAN 2Δ∞/ε.

    The law is that of permute-and-flip, which is never less accurate than the exponential mechanism
    P(i) ∝ exp(ε u_i / (2Δ∞)) at the same ε.  Without privacy: the first index of the largest score.

    *Guarantee*: ε-DP, claim ``noisy-max``.
    *Source*: McKenna & Sheldon (2020), permute-and-flip; Ding et al. (2021): exponential noise has the same law.
    """
    return _select(query, allotment, loss, "noisy-max")


def exponential(query: Query, allotment: Allotment, loss: PureDP | NoPrivacy) -> int:
    """Release the index of a large score by the exponential mechanism, P(i) ∝ exp(ε u_i / (2Δ∞)).

    Drawn with Gumbel noise of scale 2Δ∞/ε.  For replications and where the law itself is needed; ``noisy_max`` is at
    least as accurate at the same ε.  *Guarantee*: ε-DP, claim ``exponential``.
    *Source*: McSherry & Talwar (2007), Theorem 6.
    """
    return _select(query, allotment, loss, "exponential")


def _select(query: Query, allotment: Allotment, loss: PureDP | NoPrivacy, mechanism: str) -> int:
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
    gumbel = mechanism == "exponential"
    draw = partial(noise.noisy_argmax, scale=scale, sensitivity=bound, epsilon=loss.epsilon, gumbel=gumbel)
    event = event_of(mechanism, query, loss, scale, bound=float(bound))
    return int(release(query, allotment, event, draw))
