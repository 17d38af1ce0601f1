"""Propose-test-release: a value whose local bound holds far from the data's edge, released if that edge is far.

Two intervals are proposed for the value; a noisy test asks whether many records lie between the data and leaving one
of them; if so the value is released with noise for the interval's length, else nothing.  Proofs:
``propose_test_release.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcausal.errors import FenceError, LossError
from dpcausal.mechanisms.gate import Array, event_of, exact, release
from dpcausal.privacy import noise
from dpcausal.privacy.ledger import CallBudget
from dpcausal.privacy.loss import ApproxDP, NoPrivacy
from dpcausal.privacy.sensitivity import Norm, Query

_ROUND_UP = 1 + 1e-12


@dataclass(frozen=True)
class Calibration:
    """Whether the threshold 1 + b·log(1/δ) is in units of the noise's scale b = Δ/ε, or of 1."""

    mechanism: str
    in_scales: bool

    def threshold(self, scale: float, delta: float) -> float:
        """Return what a noisy distance must pass; rounded up."""
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
