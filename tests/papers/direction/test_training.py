"""Training-set privacy: what one training row can move, what is released, and what is refused."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.direction.methods import choose_method
from dpcausal.direction.question import Columns, Pair
from dpcausal.errors import LossError, ParameterError
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.papers import TrainingPrivacy
from dpcausal.papers.direction import training
from dpcausal.papers.direction.training import default_penalty, training_sensitivity
from dpcausal.papers.statistics.hsic import hsic_residual_sensitivity
from dpcausal.papers.statistics.iqr import interquartile_range
from dpcausal.papers.statistics.stability import prediction_sensitivity
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.privacy.sensitivity import Unit
from tests.direction.neighbours import spelled

PAIR = dpc.simulate.anm_pair(400, seed=2)
BOTH = Columns(PAIR.columns["x"], PAIR.columns["y"], np.ones(400, dtype=np.bool_))
RANKS = dpc.ApproxDP(1, 1e-6)
SIZES = [(n, penalty) for n in (10, 1000, 10**6, 2**29) for penalty in (1e-5, 0.01, 0.3, 1.0)]


def ask(loss: Any = None, columns: Any = PAIR.columns, schema: dpc.Schema = PAIR.schema, **arguments: Any) -> Any:
    loss = dpc.PureDP(1) if loss is None else loss
    table = dpc.Table(columns, schema, dpc.Ledger.in_memory(loss, protect="training"), missing="impute")
    return dpc.direction(table, "x", "y", loss=loss, **spelled({"protect": "training", **arguments}))


def question(score: str = "hsic", method: Any = None, columns: Any = PAIR.columns) -> Pair:
    table = dpc.Table(columns, PAIR.schema, dpc.Ledger.in_memory(dpc.PureDP(10)), missing="impute")
    return Pair.of(table, "x", "y", score, 0.1, method or TrainingPrivacy())


def plan(**arguments: Any) -> Any:
    """Return the planned method of a call at ε = 1."""
    method = spelled({"protect": "training", **arguments})["method"]
    asked = question(method=method)
    return choose_method(method, asked, dpc.PureDP(1))[0].plan(asked, dpc.PureDP(1))


@pytest.mark.proves("training-difference")
def test_every_residual_moves_by_what_one_training_row_can_do_and_the_margin_by_its_bound() -> None:
    rng = np.random.default_rng(0)
    planned = plan(penalty=2.0)
    halves, setting = planned.halved(BOTH, question(), generator_from_seed(1)), planned.setting
    before = halves.residuals(*setting)
    margin = np.subtract(*training.root_scores(halves.x, halves.y, *before))
    bound = float(training_sensitivity(halves.n, halves.m, 2.0).bound)
    shift = float(prediction_sensitivity(halves.n, 2.0).bound)
    for _ in range(20):
        row = int(rng.integers(halves.n))
        x, y = halves.training_x.copy(), halves.training_y.copy()
        x[row], y[row] = rng.choice([-1.0, 1.0], 2)
        after = replace(halves, training_x=x, training_y=y).residuals(*setting)
        assert all(np.abs(a - b).max() <= shift for a, b in zip(before, after, strict=True))
        assert abs(margin - np.subtract(*training.root_scores(halves.x, halves.y, *after))) <= bound


@pytest.mark.proves("training-iqr")
def test_the_margin_of_ranges_has_the_sign_of_the_log_scores_difference() -> None:
    rng, iqr = np.random.default_rng(5), interquartile_range
    for _ in range(200):
        x, y, left_y, left_x = rng.normal(size=(4, 9)) * rng.uniform(0.1, 3, (4, 1))
        logs = math.log(iqr(y)) + math.log(iqr(left_x)) - math.log(iqr(x)) - math.log(iqr(left_y))
        margin = training.iqr_margin(x, y, left_y, left_x)
        assert np.sign(margin) == np.sign(logs)
        # The weights add up to one: the margin is no larger than the larger range.
        assert abs(margin) <= max(iqr(left_x), iqr(left_y))
    assert training.iqr_margin(np.zeros(9), np.zeros(9), x, y) == 0


@pytest.mark.proves("training-ranks")
@pytest.mark.proves("hsic-training-published")
@pytest.mark.parametrize(("n", "penalty"), SIZES)
def test_theorem_seven_is_above_what_is_proved_at_all_sizes(n: int, penalty: float) -> None:
    move = prediction_sensitivity(n, penalty)
    assert move.bound <= 8 / (n * penalty**1.5)  # Theorem 5, which the distance of Theorem 6 relies on
    for m in (2, 100, 50_000):
        proved = hsic_residual_sensitivity(m, move.rounded_up, training.SCORE_WIDTH, training.RESIDUAL_RANGE).bound
        assert (m / (m - 1)) ** 2 * proved < training.published_hsic_sensitivity(n, m, penalty).bound


@pytest.mark.proves("training-ranks")
@pytest.mark.parametrize("score", ["spearman", "kendall"])
def test_real_gaps_are_a_thousand_times_too_small_and_nothing_is_released(score: str) -> None:
    with recording_gate() as recording:
        ask(RANKS, score=score, published=True)
    assert recording.passages[0].value[0] == 1
    with dpc.simulated_noise(1):  # with probability up to δ something is released
        assert ask(RANKS, score=score, published=True).cause is None


def test_rank_scores_that_are_stable_leave_exactly() -> None:
    with recording_gate("high") as recording:
        answer = ask(RANKS, score="kendall", published=True)
    assert answer.scores == (1e6, 1e6) and answer.settings["penalty"] == 1.0
    assert recording.passages[0].event.mechanism == "stable-value"


@pytest.mark.parametrize(
    "way",
    [{}, {"release_scores": True}, {"score": "iqr"}, {"score": "iqr", "release_scores": True}, {"published": True},
     {"published": True, "score": "spearman", "loss": RANKS}],
)  # fmt: skip
def test_a_training_row_is_protected_at_the_whole_loss_and_a_caveat_says_who_is_not(way: Any) -> None:
    with recording_gate("low") as recording:
        result = ask(**way)
    assert sum(passage.event.loss.exact_epsilon for passage in recording.passages) == 1  # type: ignore[union-attr]
    assert result.guarantee.unit is Unit.TRAINING_ROW and result.guarantee.loss.exact_epsilon == 1
    assert any("the rows of the test half are NOT protected" in caveat for caveat in result.guarantee.caveats)
    assert result.settings["penalty"] is not None and result.settings["width"] == training.WIDTH
    assert all(map(math.isfinite, result.scores or ()))


def test_columns_are_scaled_by_their_public_bounds_and_by_nothing_else() -> None:
    x = PAIR.columns["x"]
    halves = plan().halved(BOTH, question(), generator_from_seed(1))
    (lower, upper), _ = question().ranges
    both = np.sort(np.concatenate([halves.training_x, halves.x]))
    assert both == pytest.approx(np.sort(2 * (x - lower) / (upper - lower) - 1))
    # Another unit of both columns: the same answer at the gate.
    milli = {name: values * 1000 for name, values in PAIR.columns.items()}
    bounds = {name: PAIR.schema[name] for name in ("x", "y")}
    schema = dpc.Schema({name: dpc.Bounded(one.lower * 1000, one.upper * 1000) for name, one in bounds.items()})  # type: ignore[union-attr]
    values = []
    for columns, declared in ((PAIR.columns, PAIR.schema), (milli, schema)):
        with recording_gate() as recording:
            ask(columns=columns, schema=declared)
        values.append(float(recording.passages[0].value))
    assert values[0] == pytest.approx(values[1], abs=1e-6)


def test_the_default_penalty_falls_with_rows_and_epsilon_and_stays_in_its_range() -> None:
    sizes = ((10, 1.0), (8000, 1.0), (8000, 2.0), (80_000, 1.0), (10**9, 1.0))
    rules = [default_penalty(n, epsilon) for n, epsilon in sizes]
    assert rules == sorted(rules, reverse=True)
    assert rules[0] == rules[1] == 1 and rules[-1] == 0.01
    assert plan().penalty == default_penalty(200, 1.0)


def test_more_test_rows_than_gaussian_kernels_take_are_refused_and_those_of_ranges_are_not() -> None:
    columns = dict.fromkeys("xy", np.zeros(100_003))
    with pytest.raises(ParameterError, match=r"0\.5001"):
        TrainingPrivacy().plan(question(columns=columns), dpc.PureDP(1))
    assert TrainingPrivacy().plan(question("iqr", columns=columns), dpc.PureDP(1)).training_share == 0.5


def many(n: int) -> Pair:
    """Return a question about more rows than any table here has."""
    return type("Many", (Pair,), {"n": n})(*vars(question("iqr")).values())


REFUSALS: list[tuple[type[Exception], Any, dict[str, Any]]] = [
    *((ParameterError, plan, wrong) for wrong in (
        {"penalty": 0}, {"penalty": (0.5, 1.0)}, {"penalty": True}, {"width": 0.001}, {"width": math.nan},
        {"training_share": 1.0}, {"penalty": 1.5, "published": True})),
    # more training rows than their sums are exact for
    (ParameterError, TrainingPrivacy().plan, {"question": many(2**31), "loss": dpc.PureDP(1)}),
    (ParameterError, ask, {"score": "spearman"}), (LossError, ask, {"score": "kendall", "published": True}),
    (LossError, ask, {"loss": dpc.PureDP(1e-9), "penalty": 1e-5, "published": True}),
]  # fmt: skip


@pytest.mark.parametrize(("error", "call", "wrong"), REFUSALS)
def test_what_is_out_of_range_has_no_score_or_no_noise_is_refused_before_the_spend(
    error: type[Exception], call: Any, wrong: dict[str, Any]
) -> None:
    with pytest.raises(error):
        call(**wrong)
