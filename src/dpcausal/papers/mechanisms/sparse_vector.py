"""The sparse vector: the place of the first of many answers that is above a threshold, for the price of one.

In a search all answers before the first "above" are "below", so what would be asked next is known in advance: the
whole list can be brought at once, and one call is one round.
"""

import math
from typing import Any

import numpy as np

from dpcausal.errors import FenceError, LossError
from dpcausal.mechanisms.additive import laplace_scale
from dpcausal.mechanisms.gate import Array, event_of, exact, release
from dpcausal.privacy import noise
from dpcausal.privacy.ledger import CallBudget
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Norm, Query


def first_above(query: Query, allotment: CallBudget, loss: PureDP | NoPrivacy, *, threshold: int) -> int | None:
    """Release the index of the first answer that is above a public threshold, both with noise; ``None`` if none is.

    first i with  f_i + ν_i ≥ t + ρ,  ρ ~ Geo(2Δ/ε),  ν_i ~ Geo(4Δ/ε) independent

    where f are integers in a public order, bounded in l∞ by one Δ.  Nothing else is reported: neither the noisy answer
    nor the noisy threshold, which a next round draws again.

    *Guarantee*: ε-DP, claim ``sparse-vector``.
    *Source*: Dwork & Roth (2014), Algorithm 1; Lyu, Su & Li (2017), Algorithm 1 with c = 1.
    """
    if len(query.shape) != 1 or query.shape[0] == 0 or not query.integral:
        raise FenceError(f"'{query.label}' must be one row of integers")
    if query.sensitivity.norm is not Norm.LINF:
        raise FenceError(f"'{query.label}' is bounded in {query.sensitivity.norm.value}, the search needs l-infinity")
    if allotment.exact:
        return _first_place(exact(query, allotment), threshold)
    if not isinstance(loss, PureDP):
        raise LossError("the sparse vector is paid for in PureDP")
    bound = math.ceil(query.sensitivity.bound)
    scale = laplace_scale(2 * bound, loss)
    # Half of ε for the threshold's Δ, half for the 2Δ of the answer that is found; halved and rounded down.
    half = math.nextafter(loss.epsilon / 2, 0)

    def draw(answer: Any) -> Array:
        bar = noise.add_geometric(np.array([threshold]), scale * _UP, sensitivity=bound, epsilon=half)
        noisy = noise.add_geometric(answer, 2 * scale * _UP, sensitivity=2 * bound, epsilon=half)
        return np.asarray(noisy >= bar[0])

    event = event_of("sparse-vector", query, loss, scale, bound=float(bound))
    released = release(query, allotment, event, draw)
    # A recording gate answers with numbers in the query's shape: they stand for the noisy answers.
    return (
        _first_place(released, threshold) if released.dtype != np.bool_ else _first_place(released.astype(np.int64), 1)
    )


_UP = 1 + 1e-12


def _first_place(answers: Any, threshold: int) -> int | None:
    above = np.flatnonzero(np.asarray(answers) >= threshold)
    return int(above[0]) if above.size else None
