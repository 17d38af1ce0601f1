"""Values that are released where a noisy distance is large: propose-test-release, and exact values that are stable.

Two intervals are proposed for the value; a noisy test asks whether many records lie between the data and leaving one
of them; if so the value is released with noise for the interval's length, else nothing.  A value that no few replaced
records could have changed is released as it is.  Proofs: ``propose_test_release.md``.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcausal.errors import FenceError, LossError
from dpcausal.mechanisms.additive import laplace_scale
from dpcausal.mechanisms.gate import Array, event_of, exact, release
from dpcausal.privacy import noise
from dpcausal.privacy.ledger import CallBudget
from dpcausal.privacy.loss import ApproxDP, NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Norm, Query

_ROUND_UP = 1 + 1e-12


@dataclass(frozen=True)
class Calibration:
    mechanism: str
    in_scales: bool

    def threshold(self, scale: float, delta: float) -> float:
        return (1 - (scale if self.in_scales else 1.0) * math.log(delta)) * _ROUND_UP


CORRECTED = Calibration("propose-test-release", in_scales=True)
"""A distance of at most 1 passes with probability at most δ/2."""


def propose_test_release(query: Query, allotment: CallBudget, loss: ApproxDP | NoPrivacy) -> float | None:
    """Release a value with Laplace noise if a noisy distance to the edge of a proposed interval is large.

    R_j = A_j + Lap(b) for j = 1, 2;  v + Lap(b) if some R_j > 1 + b·log(1/δ);  else ``None``,  b = 2Δ/ε

    where A_j is the number of records that must change to move v out of the j-th proposed interval and Δ the length
    of the intervals; one will do, too.  The query is (A_1, A_2, v), with a sensitivity Δ ≥ 1 in ``Norm.TESTED``: each
    distance moves by at most Δ, and so does v unless all distances are at most 1 at both neighbours.

    *Guarantee*: (ε, δ)-DP, claim ``propose-test-release``.  Noise Lap(1/ε′) on two tests and a value costs (2ε′, δ),
    not (3ε′, δ), since it is not released which test was passed.
    *Source*: Dwork & Lei (2009); Kusner et al. (2016), appendix, Algorithm 1, corrected.
    """
    if len(query.shape) != 1 or not 2 <= query.shape[0] <= 3 or query.integral:
        raise FenceError(f"'{query.label}' must be one or two distances and a value")
    if query.sensitivity.norm is not Norm.TESTED or query.sensitivity.bound < 1:
        raise FenceError(f"'{query.label}' must have tested distances and a bound of at least 1")
    if allotment.exact:
        return float(exact(query, allotment)[-1])
    if not (isinstance(loss, ApproxDP) and loss.exact_delta > 0):
        raise LossError("propose-test-release is paid for in ApproxDP with delta above 0")
    return tested(query, allotment, loss, math.nextafter(loss.epsilon / 2, 0), loss.delta, CORRECTED)


def tested(
    query: Query, allotment: CallBudget, loss: ApproxDP, epsilon: float, delta: float, calibration: Calibration
) -> float | None:
    """Return the last of an answer, with noise, if one of those before it passes its test; all at ε and δ."""
    bound = query.sensitivity.rounded_up
    scale = noise.check_scale(bound / epsilon * _ROUND_UP)
    threshold = calibration.threshold(scale, delta)

    def noisy(value: float) -> float:
        return float(noise.add_laplace(np.asarray([value]), scale, sensitivity=bound, epsilon=epsilon)[0])

    def draw(answer: Array) -> float | None:
        for distance in answer[:-1].tolist():
            if noisy(distance) > threshold:
                return noisy(float(answer[-1]))
        return None

    event = event_of(calibration.mechanism, query, loss, scale, bound=bound)
    released: Any = release(query, allotment, event, draw)
    # A recording gate answers in the query's shape: its last entry stands for the value.
    return released if released is None else float(np.ravel(released)[-1])


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
