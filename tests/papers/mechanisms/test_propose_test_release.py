"""Propose-test-release: corrected it keeps (ε, δ); as printed it is faithful, and unable to pass for private."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpcausal.audit import compare
from dpcausal.errors import FenceError, LossError
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.papers.direction.anm_test_privacy_iqr import PRINTED, published_log_iqr
from dpcausal.papers.mechanisms.propose_test_release import CORRECTED, propose_test_release
from dpcausal.privacy.ledger import CallBudget, Ledger
from dpcausal.privacy.loss import ApproxDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.noise import simulated_noise
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity

LOSS = ApproxDP(1, 1e-3)


def query(*answer: float) -> Query:
    claimed = Sensitivity(1, Norm.LINF, Relation.REPLACE_ONE, "iqr-published-unproven")
    return Query(np.asarray(answer, dtype=np.float64), claimed, "log IQR")


def granted(unproven: bool = True) -> CallBudget:
    return Ledger.in_memory(ApproxDP(1000, 0.9), accept_large_epsilon=True).charge(LOSS, task="test", unproven=unproven)


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


# Corrected.


def proposed(*answer: float, bound: float = 1.0, norm: Norm = Norm.TESTED) -> Query:
    claimed = Sensitivity(bound, norm, Relation.REPLACE_ONE, "log-iqr-proposal")
    return Query(np.asarray(answer, dtype=np.float64), claimed, "log IQR")


def above(gap: float) -> float:
    """P(Lap(1) > gap), true in both tails."""
    return math.exp(-gap) / 2 if gap >= 0 else 1 - math.exp(gap) / 2


def chances(distances: tuple[float, float], epsilon: float, delta: float) -> tuple[float, float]:
    """P(an answer) and P(none): some A + Lap(2/ε) > 1 + (2/ε) log(1/δ), straight from the definition."""
    gaps = [(1 - each) * epsilon / 2 + math.log(1 / delta) for each in distances]
    one, other = (above(gap) for gap in gaps)
    return one + other - one * other, math.prod(above(-gap) for gap in gaps)


@pytest.mark.proves("propose-test-release")
@pytest.mark.parametrize("delta", [0.1, 1e-3, 1e-6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_an_answer_and_no_answer_keep_their_shares_of_epsilon_at_all_neighbouring_distances(
    epsilon: float, delta: float
) -> None:
    # An answer leaves ε/2 for the value's own noise; "no answer" may use all of ε; both are nearly attained.
    threshold = 1 + 2 / epsilon * math.log(1 / delta)
    places = np.unique(np.round(np.linspace(0, 2.5 * threshold, 25)))
    answer, none = 0.0, 0.0
    for a in places:
        for b in places:
            here = chances((a, b), epsilon, delta)
            for da in (-1, 0, 1):
                for db in (-1, 0, 1):
                    there = chances((max(0.0, a + da), max(0.0, b + db)), epsilon, delta)
                    answer = max(answer, math.log(here[0] / there[0]))
                    none = max(none, math.log(here[1] / there[1]))
    assert 0.9 * epsilon / 2 < answer <= epsilon / 2 * (1 + 1e-9)
    assert 0.9 * epsilon < none <= epsilon * (1 + 1e-9)


@pytest.mark.proves("propose-test-release")
@pytest.mark.parametrize("delta", [0.1, 1e-3, 1e-6, 1e-15])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 20.0])
def test_where_no_cell_is_shared_an_answer_comes_with_probability_at_most_delta(epsilon: float, delta: float) -> None:
    # One record from leaving each cell: the two tests share δ, to within its square.
    assert 0.97 * delta < chances((1, 1), epsilon, delta)[0] <= delta * (1 + 1e-9)
    at_printed = above(-math.log(delta) * epsilon / 2)  # one test; the noise here is Lap(2/ε)
    assert (2 * at_printed > delta) == (epsilon < 2)


@pytest.mark.proves("propose-test-release")
def test_the_library_answers_as_often_and_as_near_as_the_formulas_say() -> None:
    # 3,000 runs; six standard errors: 2e-9.
    loss, whole = ApproxDP(2, 1e-3), ApproxDP(2 * 3000, 0.9)
    for distances in ((8.0, 0.0), (6.0, 9.0), (30.0, 30.0)):
        with simulated_noise(5):
            answers = []
            for _ in range(10):
                allotment = Ledger.in_memory(whole, accept_large_epsilon=True).charge(whole, task="test")
                answers += [propose_test_release(proposed(*distances, 0.3), allotment, loss) for _ in range(300)]
        errors = np.array([answer - 0.3 for answer in answers if answer is not None])
        share, _ = chances(distances, 2, 1e-3)
        assert abs(len(errors) / 3000 - share) < 6 * math.sqrt(share * (1 - share) / 3000) + 1e-12
        assert abs(np.mean(np.abs(errors)) - 1) < 6 / math.sqrt(len(errors))  # Lap(2/ε) = Lap(1)


def test_the_thresholds_differ_by_the_factor_that_is_missing_in_print() -> None:
    assert CORRECTED.threshold(10.0, 1e-6) == pytest.approx(1 + 10 * math.log(1e6))
    assert PRINTED.threshold(10.0, 1e-6) == pytest.approx(1 + math.log(1e6))


def test_one_distance_will_do_and_real_noise_runs() -> None:
    loss = ApproxDP(20, 1e-3)
    answers = (50.0, 0.3), (50.0, 50.0, 0.3)
    for answer in answers:
        allotment = Ledger.in_memory(loss, accept_large_epsilon=True).charge(loss, task="test")
        value = propose_test_release(proposed(*answer), allotment, loss)
        assert value is not None and abs(value - 0.3) < 3  # e^−30 otherwise
        (event,) = allotment.events
        assert (event.mechanism, event.loss, event.norm) == ("propose-test-release", loss, "tested")


def test_the_grey_box_lets_a_value_jump_where_both_distances_are_one_and_nowhere_else() -> None:
    def run(*answer: float) -> float | None:
        allotment = Ledger.in_memory(LOSS, accept_large_epsilon=True).charge(LOSS, task="test")
        return propose_test_release(proposed(*answer), allotment, LOSS)

    assert not compare(lambda: run(1, 0, -5.0), lambda: run(1, 1, 9.0)).violated
    assert compare(lambda: run(2, 1, -5.0), lambda: run(1, 1, 9.0)).violated
    assert compare(lambda: run(9, 7, 0.0), lambda: run(9, 9, 0.0)).violated


def test_without_privacy_the_exact_value_leaves() -> None:
    allotment = Ledger.without_privacy().charge(NoPrivacy(), task="test")
    assert propose_test_release(proposed(0, 0, 0.3), allotment, NoPrivacy()) == 0.3


@pytest.mark.parametrize(
    "wrong", [proposed(1, 1, 1, 1), proposed(1), proposed(1, 1, norm=Norm.LINF), proposed(1, 1, bound=0.5)]
)
def test_an_answer_that_is_no_proposal_is_refused_before_anything_is_spent(wrong: Query) -> None:
    allotment = Ledger.in_memory(LOSS, accept_large_epsilon=True).charge(LOSS, task="test")
    with pytest.raises(FenceError):
        propose_test_release(wrong, allotment, LOSS)
    assert allotment.events == ()


@pytest.mark.parametrize("loss", [PureDP(1), ApproxDP(1, 0), NoPrivacy()])
def test_a_loss_without_delta_is_refused(loss: Loss) -> None:
    with pytest.raises(LossError, match="ApproxDP with delta above 0"):
        propose_test_release(
            proposed(9, 9, 0), Ledger.in_memory(LOSS, accept_large_epsilon=True).charge(LOSS, task="test"), loss
        )  # type: ignore[arg-type]
