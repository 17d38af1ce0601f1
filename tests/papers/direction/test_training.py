"""Training-set privacy: what one training row can move, and what is released."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import LossError, ParameterError
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.papers.direction import anm_training_privacy as published
from dpcausal.papers.direction import stable, training
from dpcausal.papers.statistics.hsic import hsic_residual_sensitivity
from dpcausal.papers.statistics.iqr import interquartile_range
from dpcausal.papers.statistics.stability import prediction_sensitivity
from dpcausal.privacy.sensitivity import Norm, Unit
from tests.conformance import search
from tests.direction.neighbours import spelled
from tests.registry.training import LARGE, RANGES, SHIFT, N, apart, of_published, of_ranges, of_ranks

PAIR = dpc.simulate.anm_pair(600, seed=4)
RANKS = dpc.ApproxDP(1, 1e-6)


def ask(loss: Any = None, columns: Any = PAIR.columns, **arguments: Any) -> dpc.Direction:
    loss = dpc.PureDP(1) if loss is None else loss
    table = dpc.Table(columns, PAIR.schema, dpc.Ledger.in_memory(loss, protect="training"), missing="impute")
    return dpc.direction(table, "x", "y", loss=loss, **spelled({"protect": "training", **arguments}))


@pytest.mark.proves("training-iqr")
def test_ranges_of_residuals_move_by_twice_the_regression_and_reach_it() -> None:
    assert float(training.iqr_sensitivity(N, LARGE).bound) == pytest.approx(2 * SHIFT)
    bound = training.iqr_sensitivity(N, LARGE).bound
    moves = apart(None, 1, None, None)
    assert abs(of_ranges(moves) - of_ranges(1 - moves)) > 0.99 * bound
    assert search(of_ranges, bound, sizes=(1,), evaluations=300, **RANGES).ratio <= 1


@pytest.mark.proves("training-iqr")
def test_the_margin_of_ranges_has_the_sign_of_the_log_scores_difference() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        x, y, left_y, left_x = rng.normal(size=(4, 9)) * rng.uniform(0.1, 3, (4, 1))
        iqr = interquartile_range
        logs = math.log(iqr(y)) + math.log(iqr(left_x)) - math.log(iqr(x)) - math.log(iqr(left_y))
        margin = training.iqr_margin(x, y, left_y, left_x)
        assert np.sign(margin) == np.sign(logs)
        # The weights add up to one: the margin is no larger than the larger range.
        assert abs(margin) <= max(iqr(left_x), iqr(left_y))
    flat = np.zeros(9)
    assert training.iqr_margin(flat, flat, x, y) == 0


@pytest.mark.proves("training-ranks")
def test_the_steps_to_another_order_move_by_one_and_warn_of_every_change() -> None:
    # At these gaps the order cannot change; "stable ranks by gaps between values" is the control where it can.
    assert search(of_ranks, 1, sizes=(1,), evaluations=300, norm=Norm.TESTED, **RANGES).ratio == 1


@pytest.mark.proves("training-ranks")
def test_the_published_distance_allows_for_more_than_a_row_can_do() -> None:
    for n in (10, 1000, 10**6, 2**29):
        for penalty in (1e-5, 0.01, 0.3, 1.0):
            move = prediction_sensitivity(n, penalty).bound
            assert move <= 8 / (n * penalty**1.5)


@pytest.mark.proves("training-ranks")
def test_real_gaps_are_a_thousand_times_too_small_and_nothing_is_released() -> None:
    for score in ("spearman", "kendall"):
        with recording_gate() as recording:
            ask(RANKS, score=score, published=True)
        (passage,) = recording.passages
        assert passage.value[0] == 1
        with dpc.simulated_noise(1):  # with probability up to δ something is released
            assert ask(RANKS, score=score, published=True).cause is None


def test_rank_scores_that_are_stable_leave_exactly() -> None:
    with recording_gate("high") as recording:
        answer = ask(RANKS, score="kendall", published=True)
    assert answer.scores == (1e6, 1e6) and answer.settings["penalty"] == 1.0
    assert recording.passages[0].event.mechanism == "stable-value"


@pytest.mark.proves("hsic-training-published")
def test_theorem_seven_is_kept_and_thousands_of_times_too_large() -> None:
    bound = published.published_hsic_sensitivity(N, 12, 1.0).bound
    assert 1e-3 < search(of_published, bound, sizes=(1,), evaluations=300, **RANGES).ratio < 0.01


@pytest.mark.proves("hsic-training-published")
def test_theorem_seven_is_above_what_is_proved_at_all_sizes() -> None:
    for n in (4, 1000, 10**6, 2**29):
        for m in (2, 100, 50_000):
            for penalty in (1e-5, 0.01, 1.0):
                shift = prediction_sensitivity(n, penalty).rounded_up
                proved = hsic_residual_sensitivity(m, shift, stable.SCORE_WIDTH, stable.RESIDUAL_RANGE).bound
                assert (m / (m - 1)) ** 2 * proved < published.published_hsic_sensitivity(n, m, penalty).bound


WAYS: dict[str, dict[str, Any]] = {
    "hsic": {},
    "hsic scores": {"release_scores": True},
    "iqr": {"score": "iqr"},
    "iqr scores": {"score": "iqr", "release_scores": True},
    "published hsic": {"published": True},
    "published ranks": {"published": True, "score": "spearman", "loss": RANKS},
}


@pytest.mark.parametrize("way", sorted(WAYS))
def test_a_training_row_is_protected_and_the_first_caveat_says_who_is_not(way: str) -> None:
    result = ask(**WAYS[way])
    assert result.guarantee.unit is Unit.TRAINING_ROW and result.guarantee.private
    assert "test half" in result.guarantee.caveats[0] and "NOT protected" in result.guarantee.caveats[0]
    assert result.summary().startswith("PROTECTS THE TRAINING HALF ONLY")
    assert result.method.split(",")[0] in ("training", "ANM")
    assert result.settings["penalty"] is not None and result.settings["width"] == stable.WIDTH


@pytest.mark.parametrize("way", sorted(WAYS))
def test_the_whole_loss_is_spent_and_no_more(way: str) -> None:
    with recording_gate() as recording:
        result = ask(**WAYS[way])
    spent = sum(passage.event.loss.exact_epsilon for passage in recording.passages)  # type: ignore[union-attr]
    assert spent == result.guarantee.loss.exact_epsilon == 1  # type: ignore[union-attr]


def test_an_easy_pair_is_told_at_a_moderate_loss() -> None:
    """n = 4,000, ε = 4, seeded noise: a smoke test of usefulness, not of privacy."""
    right = 0
    for seed in range(6):
        pair = dpc.simulate.anm_pair(4000, mechanism="quadratic", noise="uniform", seed=seed)
        ledger = dpc.Ledger.in_memory(dpc.PureDP(4), protect="training")
        table = dpc.Table(pair.columns, pair.schema, ledger, missing="impute")
        with dpc.simulated_noise(seed):
            r = dpc.direction(
                table, "x", "y", loss=dpc.PureDP(4),
                method=dpc.papers.TrainingPrivacy(penalty=0.1),
            )  # fmt: skip
            right += r.cause == "x"
    assert right >= 5


def test_released_ranges_below_the_least_count_as_it() -> None:
    with recording_gate("low"):
        result = ask(score="iqr", release_scores=True)
    assert result.scores is not None and all(map(math.isfinite, result.scores))


def test_what_has_no_route_is_refused_and_the_message_says_where_it_goes() -> None:
    with pytest.raises(ParameterError, match="it takes hsic, iqr"):
        ask(score="spearman")
    with pytest.raises(ParameterError, match="it takes hsic, iqr"):
        ask(score="variance")
    with pytest.raises(LossError, match="delta above 0"):
        ask(score="kendall", published=True)


def test_published_noise_that_cannot_be_drawn_is_refused_before_the_spend() -> None:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1), protect="training")
    cache_key = dpc.Table({"x": np.linspace(0, 1, 40), "y": np.linspace(1, 0, 40)}, SMALL, ledger, missing="impute")
    with pytest.raises(LossError, match="larger penalty"):
        dpc.direction(
            cache_key, "x", "y", loss=dpc.PureDP(1e-9),
            method=dpc.papers.AnmTrainingPrivacy(penalty=1e-5),
        )
    assert not ledger.entries()


SMALL = dpc.Schema({"x": dpc.Bounded(0, 1), "y": dpc.Bounded(0, 1)})
