"""Release of an exact value where it is stable: where no few replaced records could have changed it."""

from __future__ import annotations

import math

import numpy as np

from dpcausal.errors import FenceError, LossError
from dpcausal.mechanisms.additive import laplace_scale
from dpcausal.mechanisms.gate import Array, event_of, release
from dpcausal.privacy import noise
from dpcausal.privacy.ledger import CallBudget
from dpcausal.privacy.loss import ApproxDP, PureDP
from dpcausal.privacy.sensitivity import Norm, Query


def stable_threshold(loss: ApproxDP) -> int:
    """Return t = 1 + ⌈log(1/δ)/ε⌉: a distance of 1 passes it with probability below δ."""
    return 1 + math.ceil(math.log(1 / loss.delta) / loss.epsilon * (1 + 1e-12))


def stable_value(query: Query, allotment: CallBudget, loss: ApproxDP) -> Array | None:
    """Return the exact values, or ``None`` for "not stable".

    The values if A + k ≥ 1 + ⌈log(1/δ)/ε⌉, P(k) ∝ e^{−ε|k|}

    where A, a lower bound on the records that must be replaced to change the values, is a whole number that moves by
    at most 1 between neighbours, and is at most 1 wherever a neighbour has other values.  The query is A, then the
    values, with sensitivity 1 as ``Norm.TESTED``.

    *Guarantee*: (ε, δ)-DP, claim ``stable-value``.
    *Source*: Dwork & Roth (2014), Algorithm 13 and Theorem 7.3, with geometric noise; their distance is A − 1.
    """
    claim = query.sensitivity
    if len(query.shape) != 1 or query.shape[0] < 2 or query.integral or (claim.bound, claim.norm) != (1, Norm.TESTED):
        raise FenceError(f"'{query.label}' must be a distance of sensitivity 1 and the values")
    if not (isinstance(loss, ApproxDP) and loss.exact_delta > 0):
        raise LossError("a stable value is paid for in ApproxDP with delta above 0")
    scale = laplace_scale(1, PureDP(loss.exact_epsilon))
    threshold = stable_threshold(loss)

    def draw(answer: Array) -> Array | None:
        distance = np.asarray([int(answer[0])], dtype=np.int64)
        noisy = noise.add_geometric(distance, scale, sensitivity=1, epsilon=loss.epsilon)
        return answer[1:].copy() if noisy[0] >= threshold else None

    event = event_of("stable-value", query, loss, scale, bound=1.0)
    released = release(query, allotment, event, draw)
    if released is None or len(released) < query.shape[0]:
        return released
    # A recording gate answers in the query's shape: its first entry stands for the noisy distance.
    return released[1:] if released[0] >= threshold else None
