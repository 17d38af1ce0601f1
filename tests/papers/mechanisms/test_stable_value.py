"""Exact values leave only where no single record could have changed them, but for δ."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpcausal.errors import FenceError, LossError
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.papers.mechanisms.stable_value import stable_threshold, stable_value
from dpcausal.privacy.ledger import CallBudget, Ledger
from dpcausal.privacy.loss import ApproxDP, PureDP
from dpcausal.privacy.noise import simulated_noise
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity

LOSS = ApproxDP(1, 1e-6)


def granted(loss: Any, times: int = 1) -> CallBudget:
    whole = ApproxDP(loss.exact_epsilon * times, loss.exact_delta * times)
    return Ledger.in_memory(whole, accept_large_epsilon=True).charge(whole, task="test")


def query(answer: Any, bound: float = 1, norm: Norm = Norm.TESTED) -> Query:
    return Query(np.asarray(answer), Sensitivity(bound, norm, Relation.REPLACE_ONE, "training-ranks"), "scores")


def law(epsilon: float, at_least: int) -> float:
    """P(k ≥ t) for P(k) ∝ e^{−ε|k|}."""
    ratio = math.exp(-epsilon)
    return ratio**at_least / (1 + ratio) if at_least > 0 else 1 - ratio ** (1 - at_least) / (1 + ratio)


def held(epsilon: float, below: int) -> float:
    """P(k < t), which by symmetry is P(k ≥ 1 − t)."""
    return law(epsilon, 1 - below)


@pytest.mark.proves("stable-value")
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-9])
def test_the_exact_laws_keep_epsilon_and_delta_for_every_pair_of_distances(epsilon: float, delta: float) -> None:
    loss = ApproxDP(epsilon, delta)
    t = stable_threshold(loss)
    leaves = [law(epsilon, t - distance) for distance in range(t + 20)]
    stays = [held(epsilon, t - distance) for distance in range(t + 20)]
    for place in range(t + 19):
        # The same value at both, distances a step apart: pure ε, for "not stable" too.
        assert leaves[place + 1] <= math.exp(epsilon) * leaves[place] * (1 + 1e-9)
        assert stays[place] <= math.exp(epsilon) * stays[place + 1] * (1 + 1e-9)
    # Another value at a neighbour: at most one step from it, and the value may leave with δ only.
    assert max(leaves[:2]) <= delta


@pytest.mark.proves("stable-value")
def test_the_threshold_of_the_distance_to_instability_read_as_steps_passes_delta() -> None:
    loss = ApproxDP(2.0, math.exp(-19.9))
    assert law(2.0, stable_threshold(loss) - 1 - 1) > 5 * loss.delta


def test_values_leave_as_often_as_the_law_says() -> None:
    """False alarm below 1e-8: 6 standard deviations of 4,000 draws on either side."""
    t, runs = stable_threshold(LOSS), 4000
    with simulated_noise(5):
        allotment = granted(LOSS, 3 * runs)
        for distance in (t - 1, t, t + 1):
            left = [stable_value(query([float(distance), 0.25, -0.5]), allotment, LOSS) for _ in range(runs)]
            passed = [one for one in left if one is not None]
            assert abs(len(passed) / runs - law(1.0, t - distance)) < 6 * 0.5 / math.sqrt(runs)
            assert all(one.tolist() == [0.25, -0.5] for one in passed)


def test_a_distance_of_one_step_lets_nothing_leave() -> None:
    with simulated_noise(6):  # a draw lets something leave with probability up to δ
        allotment = granted(LOSS, 50)
        assert all(stable_value(query([1.0, 0.7]), allotment, LOSS) is None for _ in range(50))


def test_the_spend_is_booked_whatever_leaves() -> None:
    allotment = granted(LOSS)
    stable_value(query([0.0, 0.7]), allotment, LOSS)
    assert [event.loss for event in allotment.events] == [LOSS]


def test_a_recording_gate_answers_for_the_noisy_distance() -> None:
    for answers, leaves in (("low", False), ("high", True)):
        with recording_gate(answers) as recording:  # type: ignore[arg-type]
            released = stable_value(query([3.0, 0.7]), granted(LOSS), LOSS)
        assert (released is not None) is leaves
        assert recording.passages[0].event.mechanism == "stable-value"


def test_what_is_not_a_distance_and_values_is_refused() -> None:
    pair = [1.0, 0.5]
    for wrong in (query([1.0]), query(1.0), query([1, 2]), query(pair, bound=2), query(pair, norm=Norm.LINF)):
        with pytest.raises(FenceError, match="distance of sensitivity 1"):
            stable_value(wrong, granted(LOSS), LOSS)
    for loss in (PureDP(1), ApproxDP(1, 0)):
        with pytest.raises(LossError, match="delta above 0"):
            stable_value(query([1.0, 0.5]), granted(LOSS), loss)  # type: ignore[arg-type]
