"""Noise scaled to a private smooth bound: the exact delta, the law that is drawn, and nothing of the scale shown."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from dpcausal.audit import audit_samples, compare
from dpcausal.errors import FenceError, LossError
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.mechanisms.smooth_sensitivity import Smoothness, delta_needed, smooth_laplace, smoothness
from dpcausal.privacy.ledger import Allotment, Ledger
from dpcausal.privacy.loss import ApproxDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.neighbours import Relation
from dpcausal.privacy.noise import simulated_noise
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity

LOSS = ApproxDP(1, 0.04)
BETA = smoothness(LOSS).beta


def query(value: float, bound: float, beta: float = BETA, norm: Norm = Norm.SMOOTH) -> Query:
    return Query(np.array([value, bound]), Sensitivity(beta, norm, Relation.REPLACE_ONE, "smooth-median"), "median")


def granted(loss: Loss = LOSS, times: int = 1) -> Allotment:
    whole = ApproxDP(loss.epsilon * times, loss.delta * times)  # type: ignore[union-attr]
    return Ledger.in_memory(whole).allot(whole, task="test")


def released(value: float, bound: float, times: int) -> Any:
    """Return outputs, twenty from an allotment: the δ of more would not sum to a loss."""
    hidden, outputs = query(value, bound), []
    with simulated_noise(3):
        for _ in range(times // 20):
            allotment = granted(times=20)
            outputs += [smooth_laplace(hidden, allotment, LOSS, largest=1e3) for _ in range(20)]
    return np.array(outputs)


def least_delta(epsilon: float, move: float, bounds: tuple[float, float], alpha: float) -> float:
    """The hockey-stick divergence of two Laplace laws, by the trapezoidal rule on a fine grid between the kinks."""
    b, c = bounds[0] / alpha, bounds[1] / alpha
    o = np.unique(np.concatenate([np.linspace(-80 * max(b, c), 80 * max(b, c), 60_001), [0.0, move]]))
    p, q = np.exp(-np.abs(o) / b) / (2 * b), np.exp(-np.abs(o - move) / c) / (2 * c)
    return float(np.trapezoid(np.maximum(0, p - math.exp(epsilon) * q), o))


# The curve.


@pytest.mark.proves("smooth-laplace")
@pytest.mark.parametrize(("epsilon", "alpha", "beta"), [(1, 0.5, 0.3), (1, 0.5, 0.05), (1, 0.2, 0.8), (2, 1.5, 0.5)])
def test_the_delta_is_that_of_the_worst_pair_and_no_pair_needs_more(epsilon: float, alpha: float, beta: float) -> None:
    claimed = delta_needed(epsilon, alpha, beta)
    assert least_delta(epsilon, 1.0, (math.exp(beta), 1.0), alpha) == pytest.approx(claimed, rel=1e-3, abs=1e-9)
    for ratio in np.linspace(-beta, beta, 9):
        for move in (0.0, 0.3, 0.7, 1.0):
            here, there = (math.exp(ratio), 1.0) if ratio >= 0 else (1.0, math.exp(-ratio))
            assert least_delta(epsilon, move, (here, there), alpha) <= claimed * (1 + 1e-3) + 1e-9


@pytest.mark.proves("smooth-laplace")
def test_the_delta_rises_with_beta_so_that_bisection_finds_the_largest() -> None:
    for epsilon in (0.01, 1.0, 5.0):
        curve = [delta_needed(epsilon, epsilon / 2, beta) for beta in np.linspace(1e-3, 1, 200) * epsilon / 2]
        assert np.all(np.diff(curve) >= 0)


@pytest.mark.proves("smooth-laplace")
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 20.0])
@pytest.mark.parametrize("delta", [1e-18, 1e-6, 0.01, 0.5])
def test_a_loss_pays_for_its_smoothness_and_for_no_more(epsilon: float, delta: float) -> None:
    alpha, beta = smoothness(ApproxDP(epsilon, delta))
    assert beta > 0 and alpha + beta <= epsilon
    assert delta_needed(epsilon, alpha, beta) <= delta
    if beta < 0.49 * epsilon:
        assert delta_needed(epsilon, alpha, beta * 1.001) > delta


def test_the_textbook_allows_less() -> None:
    # Nissim, Raskhodnikova & Smith (2007): beta = epsilon / (2 log(2/delta)) at the same alpha.
    for delta in (1e-9, 1e-6, 1e-3):
        textbook = 1 / (2 * math.log(2 / delta))
        assert 1.3 < smoothness(ApproxDP(1, delta)).beta / textbook < 2.2


# The draw.


@pytest.mark.proves("smooth-laplace")
def test_what_leaves_is_the_value_with_laplace_noise_of_the_bound_over_alpha() -> None:
    # Mean absolute error of 4,000 Laplace draws; six standard errors: 2e-9.
    for value, bound in ((0.3, 2.0), (-5.0, 0.01)):
        errors = released(value, bound, 4_000) - value
        scale = bound / smoothness(LOSS).alpha
        assert abs(np.mean(np.abs(errors)) / scale - 1) < 6 / math.sqrt(4_000)
        assert abs(np.mean(errors)) < 6 * scale * math.sqrt(2 / 4_000)


@pytest.mark.proves("smooth-laplace")
def test_at_the_worst_pair_the_claim_holds_and_a_beta_too_large_is_refuted() -> None:
    wide, narrow = (0.0, math.exp(BETA * (1 - 1e-9))), (1.0, 1.0)
    first, second = released(*wide, 12_000), released(*narrow, 12_000)
    audit = audit_samples(first, second, claimed=1.0, delta=0.04, false_alarm=1e-8)
    assert not audit.violated, audit.summary()
    for grown in (5.0, 8.0):  # log S moves by 5 or 8 times beta
        first = released(0.0, math.exp(BETA * grown), 12_000)
        assert audit_samples(first, second, claimed=1.0, delta=0.04, false_alarm=1e-8).violated


def test_real_noise_runs_too_and_survives_a_tiny_bound() -> None:
    loss = ApproxDP(1, 1e-6)
    for bound in (1e-200, 1e-12, 0.5):
        answer = smooth_laplace(query(0.25, bound, smoothness(loss).beta), granted(loss), loss, largest=1.0)
        assert abs(answer - 0.25) < 200 * bound + 1e-15  # e^−100 otherwise


def test_a_bound_of_a_tiny_share_of_its_limit_counts_as_that_share() -> None:
    loss = ApproxDP(1, 1e-6)
    for bound in (5e-324, 1e-299):
        with simulated_noise(1):
            hidden = query(0.0, bound, smoothness(loss).beta)
            answer = smooth_laplace(hidden, granted(loss), loss, largest=1.0)
        assert 1e-33 < abs(answer) < 1e-28


# What may be shown.


def test_neither_the_bound_nor_the_scale_is_in_the_event_the_ledger_or_the_repr() -> None:
    ledger = Ledger.in_memory(LOSS)
    allotment = ledger.allot(LOSS, task="test")
    hidden = query(0.123456789, 0.0777777)
    smooth_laplace(hidden, allotment, LOSS, largest=1.0)
    shown = json.dumps([event.to_dict() for event in allotment.events]) + repr(hidden) + repr(allotment)
    shown += repr([entry.to_dict() for entry in ledger.entries()])
    scale = 0.0777777 / smoothness(LOSS).alpha
    for number in (0.123456789, 0.0777777, scale, math.log(0.0777777)):
        assert f"{number:.4g}"[1:] not in shown and repr(number) not in shown


def test_events_are_the_same_whatever_the_bound_is() -> None:
    def run(value: float, bound: float) -> float:
        return smooth_laplace(query(value, bound), granted(), LOSS, largest=1e3)

    for answers in ("low", "high"):
        assert not compare(lambda: run(0.0, 1.0), lambda: run(0.9, math.exp(0.9 * BETA)), answers=answers).violated
    assert compare(lambda: run(0.0, 1.0), lambda: run(0.0, math.exp(1.1 * BETA))).violated
    assert compare(lambda: run(0.0, 1.0), lambda: run(1.1, 1.0)).violated


def test_a_recording_gate_gets_a_number_back() -> None:
    with recording_gate("high") as recording:
        loss = ApproxDP(1, 0.04)
        allotment = Ledger.in_memory(loss).allot(loss, task="test")
        assert smooth_laplace(query(0.0, 1.0), allotment, loss, largest=2.0) == 10**6
    (passage,) = recording.passages
    assert passage.event.mechanism == "smooth-laplace" and passage.bound == BETA
    assert passage.event.scale == pytest.approx(2) and passage.event.norm == "smooth"


def test_without_privacy_the_exact_value_leaves_and_not_its_bound() -> None:
    allotment = Ledger.without_privacy().allot(NoPrivacy(), task="test")
    assert smooth_laplace(query(0.3, 2.0), allotment, NoPrivacy(), largest=3.0) == 0.3


# Refusals.


def test_a_bound_that_is_less_smooth_than_paid_for_or_no_smooth_bound_is_refused_before_anything_is_spent() -> None:
    allotment = granted()
    wrong = (
        query(0.0, 1.0, beta=BETA * 1.001),
        query(0.0, 1.0, norm=Norm.LINF),
        Query(np.array([0.0]), Sensitivity(BETA, Norm.SMOOTH, Relation.REPLACE_ONE, "x"), "median"),
        Query(np.array([0, 1]), Sensitivity(BETA, Norm.SMOOTH, Relation.REPLACE_ONE, "x"), "median"),
    )
    for each in wrong:
        with pytest.raises(FenceError):
            smooth_laplace(each, allotment, LOSS, largest=2.0)
    with pytest.raises(FenceError, match="noise scale"):
        smooth_laplace(query(0.0, 1.0), allotment, LOSS, largest=1e15)
    assert allotment.events == ()


@pytest.mark.parametrize("bound", [0.0, -1.0, 2.5])
def test_a_bound_outside_its_public_range_draws_nothing_and_is_not_told(bound: float) -> None:
    with pytest.raises(FenceError, match="not within its public range") as raised:
        smooth_laplace(query(0.0, bound), granted(), LOSS, largest=2.0)
    assert str(bound) not in str(raised.value)


@pytest.mark.parametrize("loss", [PureDP(1), ApproxDP(1, 0), NoPrivacy()])
def test_a_loss_without_delta_is_refused(loss: Loss) -> None:
    with pytest.raises(LossError, match="ApproxDP"):
        smoothness(loss)  # type: ignore[arg-type]
    with pytest.raises(LossError, match="ApproxDP"):
        smooth_laplace(query(0.0, 1.0), granted(), loss, largest=2.0)  # type: ignore[arg-type]


def test_alpha_is_half_of_epsilon_and_a_tiny_epsilon_is_refused() -> None:
    assert smoothness(ApproxDP(1, 0.9)) == Smoothness(pytest.approx(0.5), pytest.approx(0.5))
    with pytest.raises(LossError, match="too small"):
        smoothness(ApproxDP(1e-15, 1e-6))
