"""Laplace noise scaled to a smooth bound: a private scale, larger where one record could move the value more.

    value + (S/α)·z,  z ~ Lap(1)

where S bounds what one record can move the value by, here and at every neighbour, and log S moves by at most β.  The
scale tells of the data, so it is shown nowhere: events carry α and β, which are public.  Proofs:
``smooth_sensitivity.md``.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dpcausal.errors import FenceError, LossError
from dpcausal.mechanisms.gate import Array, event_of, exact, release
from dpcausal.privacy import noise
from dpcausal.privacy.ledger import Allotment
from dpcausal.privacy.loss import ApproxDP, NoPrivacy
from dpcausal.privacy.sensitivity import Norm, Query

_ROUND_UP = 1 + 1e-12

_RESERVE = 2.0**-49
"""Taken off β: two scales, each rounded, differ by at most e^(β + 2⁻⁴⁹) where the bounds differ by e^β."""


_LEAST_SHARE = 2.0**-100
"""A smaller share of the largest bound counts as this one: so the least scale is public, and no data fails a draw."""


class Smoothness(NamedTuple):
    """How a loss is used: the scale is S/``alpha``, and log S may move by ``beta`` between neighbours."""

    alpha: float
    beta: float


def delta_needed(epsilon: float, alpha: float, beta: float) -> float:
    """Return the least δ at which the mechanism is (ε, δ)-DP, for α + β ≤ ε: exact.

    δ = ½(1 − e^{−β}) (e^{−(ε − α + β)/(e^β − 1)} + e^{−(ε + α + β)/(e^β − 1)})
    """
    growth = math.expm1(beta)
    return -math.expm1(-beta) / 2 * sum(math.exp(-(epsilon - side + beta) / growth) for side in (alpha, -alpha))


@lru_cache(maxsize=64)
def smoothness(loss: ApproxDP) -> Smoothness:
    """Return α = ε/2 and the largest β ≤ ε/2 that an (ε, δ) loss pays for, both rounded down.

    A smooth bound grows like 1/β and the scale like 1/(αβ): at the β that δ leaves, about (ε − α)/log(1/δ), the
    middle is best.  *Source*: claim ``smooth-laplace``; Nissim, Raskhodnikova & Smith (2007), Lemma 2.6, allows
    β = ε/(2 log(2/δ)), about two thirds of this.
    """
    if not (isinstance(loss, ApproxDP) and loss.exact_delta > 0):
        raise LossError("noise scaled to a smooth bound is paid for in ApproxDP with delta above 0")
    epsilon = math.nextafter(loss.epsilon, 0)
    alpha = math.nextafter(epsilon / 2, 0)
    allowed = loss.delta * (1 - 1e-9)  # outweighs the rounding of delta_needed
    low, high = 0.0, min(epsilon - alpha, 50.0)
    for _ in range(100):
        middle = (low + high) / 2
        if middle > 0 and delta_needed(epsilon, alpha, middle) <= allowed:
            low = middle
        else:
            high = middle
    if low <= 2 * _RESERVE:
        raise LossError("epsilon is too small for noise scaled to a smooth bound")
    return Smoothness(alpha, low - _RESERVE)


def smooth_laplace(query: Query, allotment: Allotment, loss: ApproxDP | NoPrivacy, *, largest: float) -> float:
    """Release a real value with Laplace noise of scale S/α, S its smooth bound.

    The query is (value, S); its sensitivity is ``Norm.SMOOTH`` with a bound of at most ``smoothness(loss).beta``:
    between neighbours the value moves by at most the smaller S, log S by at most β.  ``largest`` is a public number
    that S never passes, at most about 1e14·ε.  Neither S nor the scale is told, nor may anything computed from them be.

    *Guarantee*: (ε, δ)-DP, claim ``smooth-laplace``.  There is no pure variant: it needs noise with polynomial tails,
    which OpenDP does not draw.
    *Source*: Nissim, Raskhodnikova & Smith (2007); the exact δ is this library's.
    """
    if query.shape != (2,) or query.integral:
        raise FenceError(f"'{query.label}' must be a value and its smooth bound")
    if query.sensitivity.norm is not Norm.SMOOTH:
        raise FenceError(f"'{query.label}' is bounded in {query.sensitivity.norm.value}, not by a smooth bound")
    if allotment.exact:
        return float(exact(query, allotment)[0])
    if not isinstance(loss, ApproxDP):
        raise LossError("noise scaled to a smooth bound is paid for in ApproxDP")
    alpha, beta = smoothness(loss)
    if query.sensitivity.bound > beta:
        raise FenceError(f"'{query.label}': its bound is less smooth than the loss pays for")
    least = noise.check_scale(float(largest) * _LEAST_SHARE)
    noise.check_scale(float(largest) / alpha * _ROUND_UP)  # so that no data makes the draw fail

    def draw(answer: Array) -> Array:
        value, bound = answer.tolist()
        if not 0 < bound <= largest:
            raise FenceError("the smooth bound is not within its public range")
        bound = max(bound, least)
        scale = bound / alpha * _ROUND_UP
        return noise.add_laplace(np.asarray([value]), scale, sensitivity=bound, epsilon=alpha)

    # The scale is private: the event shows what is fixed, the noise per unit of S.
    event = event_of("smooth-laplace", query, loss, 1 / alpha)
    # A recording gate answers in the query's shape: its first entry stands for the value.
    return float(np.ravel(release(query, allotment, event, draw))[0])
