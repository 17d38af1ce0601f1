"""Propose-test-release for the log interquartile range, as printed: for replication, with no proof that holds."""

from __future__ import annotations

import math

import numpy as np

from dpcausal.errors import FenceError
from dpcausal.mechanisms.gate import Array, release
from dpcausal.privacy import noise
from dpcausal.privacy.events import Event
from dpcausal.privacy.ledger import Allotment
from dpcausal.privacy.loss import ApproxDP
from dpcausal.privacy.sensitivity import Query


def published_log_iqr(
    query: Query, allotment: Allotment, loss: ApproxDP, *, epsilon: float, delta: float
) -> float | None:
    """Return a noisy log IQR, or ``None`` for the printed algorithm's ⊥.

    R_j = A_j + Lap(1/ε) for j = 1, 2;  log IQR + Lap(1/ε) if some R_j > 1 + log(1/δ), in order;  else ⊥

    where A_j is the number of records that must change to move the IQR out of the j-th proposed interval.

    NOT PRIVATE AS CLAIMED: the second interval may miss the IQR, so that one record moves A_2 by hundreds; the
    threshold lacks the factor 1/ε.  It runs on unproven allotments only.

    Parameters
    ----------
    query : Query
        Real, shape (3,): A_1, A_2 and log IQR, with the sensitivity 1 that the paper claims for each.
    allotment : Allotment
        Granted as unproven.
    loss : ApproxDP
        The share of the call's claimed loss that is booked.
    epsilon, delta : float
        The ε and δ of the printed algorithm.

    Notes
    -----
    *Guarantee*: none.
    *Source*: Kusner et al. (2016), appendix, Algorithm 1, after Dwork & Lei (2009).
    """
    if query.shape != (3,):
        raise FenceError(f"'{query.label}' must be the two distances and the log IQR")
    if allotment.private:
        raise FenceError("the printed propose-test-release has no proof and runs on unproven allotments only")
    scale = (1 / epsilon) * (1 + 1e-12)
    threshold = 1 - math.log(delta)

    def noisy(value: float) -> float:
        return float(noise.add_laplace(np.asarray([value]), scale, sensitivity=1.0, epsilon=epsilon)[0])

    def draw(answer: Array) -> float | None:
        for distance in answer[:2].tolist():
            if noisy(distance) > threshold:
                return noisy(float(answer[2]))
        return None

    event = Event(
        mechanism="propose-test-release-published",
        label=query.label,
        loss=loss,
        sensitivity=float(query.sensitivity.bound),
        norm=query.sensitivity.norm.value,
        scale=scale,
        proof=query.sensitivity.proof,
    )
    released = release(query, allotment, event, draw)
    # A recording gate answers in the query's shape: its last entry stands for the log IQR.
    return released if released is None else float(np.ravel(released)[-1])
