"""The printed propose-test-release: faithful, and unable to pass for private."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpcausal.errors import FenceError
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.mechanisms.propose_test_release import published_log_iqr
from dpcausal.privacy.ledger import Allotment, Ledger
from dpcausal.privacy.loss import ApproxDP
from dpcausal.privacy.neighbours import Relation
from dpcausal.privacy.noise import simulated_noise
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity

LOSS = ApproxDP(1, 1e-3)


def query(*answer: float) -> Query:
    claimed = Sensitivity(1, Norm.LINF, Relation.REPLACE_ONE, "iqr-published-unproven")
    return Query(np.asarray(answer, dtype=np.float64), claimed, "log IQR")


def granted(unproven: bool = True) -> Allotment:
    return Ledger.in_memory(ApproxDP(1000, 0.9)).allot(LOSS, task="test", unproven=unproven)


def released(answer: tuple[float, float, float], times: int, epsilon: float = 1.0) -> list[float | None]:
    with simulated_noise(5):
        return [
            published_log_iqr(query(*answer), granted(), LOSS, epsilon=epsilon, delta=1e-3) for _ in range(times)
        ]


def test_a_private_allotment_is_refused_and_pays_nothing() -> None:
    allotment = granted(unproven=False)
    assert allotment.private
    with pytest.raises(FenceError, match="unproven allotments only"):
        published_log_iqr(query(9, 9, 0), allotment, LOSS, epsilon=1, delta=1e-3)
    assert allotment.events == ()


def test_an_answer_of_another_shape_is_refused() -> None:
    with pytest.raises(FenceError, match="two distances and the log IQR"):
        published_log_iqr(query(9, 9), granted(), LOSS, epsilon=1, delta=1e-3)


def test_an_answer_leaves_as_often_as_the_threshold_lets_a_distance_pass() -> None:
    # P(some R_j > 1 + log(1/δ)), R_j = A_j + Lap(1/ε) independent; six standard errors of 2,000: 2e-9.
    threshold = 1 - math.log(1e-3)
    for distances in ((8.0, 0.0), (0.0, 8.0), (6.0, 7.0)):
        below = math.prod(
            1 - math.exp(-(threshold - a)) / 2 if threshold >= a else math.exp(-(a - threshold)) / 2 for a in distances
        )
        answers = released((*distances, 0.3), 2000)
        share = sum(answer is not None for answer in answers) / 2000
        assert abs(share - (1 - below)) < 6 * math.sqrt(below * (1 - below) / 2000)


def test_what_leaves_is_the_log_iqr_with_laplace_noise_of_scale_one_over_epsilon() -> None:
    # Mean absolute error of 2,000 Laplace draws of scale ¼; six standard errors: 2e-9.
    errors = [answer - 0.3 for answer in released((900.0, 0.0, 0.3), 2000, epsilon=4.0) if answer is not None]
    assert len(errors) == 2000
    assert abs(np.mean(np.abs(errors)) - 0.25) < 6 * 0.25 / math.sqrt(2000)
    assert abs(np.mean(errors)) < 6 * 0.25 * math.sqrt(2) / math.sqrt(2000)


def test_real_noise_runs_too_and_the_spend_is_booked() -> None:
    allotment = granted()
    answer = published_log_iqr(query(900, 900, 0.3), allotment, LOSS, epsilon=50.0, delta=1e-3)
    assert answer is not None and abs(answer - 0.3) < 1  # e^−50 otherwise
    (event,) = allotment.events
    assert event.mechanism == "propose-test-release-published" and event.loss == LOSS


def test_a_recording_gate_gets_a_number_back() -> None:
    with recording_gate("high"):
        assert published_log_iqr(query(1, 1, 1), granted(), LOSS, epsilon=1, delta=1e-3) == 10**6
