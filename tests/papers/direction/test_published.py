"""The paper's mechanisms with its constants, valid for ranks and HSIC, and its interquartile scores, which are not."""

import math
from typing import Any
from unittest import mock

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.direction.scores.anm import fit_halves
from dpcausal.errors import LossError, ParameterError, UnprovenError
from dpcausal.mechanisms.gate import Passage, recording_gate
from dpcausal.papers.direction import anm_test_privacy as published
from dpcausal.papers.direction.calculators import two_draws_tail
from dpcausal.papers.direction.holdout import SCORES, reaches
from tests.direction.neighbours import (
    PUBLISHED,
    Rows,
    ask,
    halves,
    quick,  # noqa: F401  (a fixture)
    )
from tests.direction.scores.test_anm import fitted, pair

LOSS = dpc.ApproxDP(2, 0.05)
TEST: dict[str, Any] = {"score": "iqr", "protect": "test"}
CORRECTED = TEST | {"method": dpc.papers.AnmTestPrivacyIqr(constants="corrected"), "loss": LOSS}
PRINTED = TEST | {"published": True, "accept_unproven": True, "loss": dpc.ApproxDP(9, 0.03)}


def rows(n: int = 60, turn: float = 1.0) -> Rows:
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, n)
    return np.column_stack([x, np.clip(1 + turn * np.tanh(3 * x) + 0.2 * rng.standard_normal(n), -1, 3)])


def passed(data: Rows, **arguments: Any) -> tuple[list[Passage], dpc.Direction]:
    with recording_gate(lambda event, value: value) as recording:
        r = ask(data, **arguments)
    return recording.passages, r


def test_log_spreads_are_those_of_numpy() -> None:
    rest = fitted(*pair(402))
    forward, backward = SCORES["variance"](rest)
    assert forward == pytest.approx(math.log(np.var(rest.x)) + math.log(np.var(rest.left_y)))
    assert backward == pytest.approx(math.log(np.var(rest.y)) + math.log(np.var(rest.left_x)))
    logs = []
    for values in (rest.x, rest.left_y, rest.y, rest.left_x):
        low, high = np.percentile(values, [25, 75], method="inverted_cdf")
        logs.append(math.log(high - low))
    assert SCORES["iqr"](rest) == pytest.approx((logs[0] + logs[1], logs[2] + logs[3]))
    assert [math.log(reach.iqr) for side in reaches(rest) for reach in side] == pytest.approx(logs)


@pytest.mark.parametrize(
    ("score", "constant"),
    [("spearman", lambda m: 30 / m), ("kendall", lambda m: 4 / m), ("hsic", lambda m: (12 * m - 11) / (m - 1) ** 2)],
)
def test_both_scores_are_noised_at_the_constants_of_theorems_1_and_3(score: str, constant: Any) -> None:
    (passage,), r = passed(rows(), **PUBLISHED[f"published {score}"])
    assert passage.bound == pytest.approx(2 * constant(30), rel=1e-8) and passage.bound >= 2 * constant(30)
    assert passage.event.scale == pytest.approx(2 * constant(30), rel=1e-8)  # of each draw, at ε = 1
    assert r.scores == tuple(passage.value.tolist()) and r.margin == r.scores[1] - r.scores[0]
    assert r.p_sign == pytest.approx(two_draws_tail(r.margin, passage.event.scale))


def test_the_published_hsic_is_the_trace_over_the_square_of_m_minus_1() -> None:
    with mock.patch.object(published, "_published_scores", wraps=published._published_scores) as scored:
        (passage,), _ = passed(rows(), **PUBLISHED["published hsic"])
    (rest, _) = scored.call_args.args

    def by_matrices(a: Rows, b: Rows, width_a: float, width_b: float) -> float:
        centre = np.eye(30) - 1 / 30
        left = np.exp(-np.abs(np.subtract.outer(a, a)) / width_a)
        right = np.exp(-np.abs(np.subtract.outer(b, b)) / width_b)
        return float(np.trace(left @ centre @ right @ centre)) / 29**2

    forward = by_matrices(rest.x, rest.left_y, rest.width_x, rest.width_left_y)
    backward = by_matrices(rest.y, rest.left_x, rest.width_y, rest.width_left_x)
    assert passage.value == pytest.approx([forward, backward], rel=1e-6)


def test_the_published_rho_is_signed_and_tau_is_not() -> None:
    signs = [passed(rows(turn=turn), **PUBLISHED["published spearman"])[0][0].value for turn in (1.0, -1.0)]
    assert (np.concatenate(signs) < 0).any()
    (passage,), _ = passed(rows(turn=-1.0), **PUBLISHED["published kendall"])
    assert (passage.value >= 0).all()


def test_events_sum_to_the_loss_exactly_and_what_would_leave_without_noise_is_the_exact_score() -> None:
    data = rows(1200)
    passages, r = passed(data, **CORRECTED)
    assert len(passages) == 4
    assert sum(passage.event.loss.exact_epsilon for passage in passages) == LOSS.exact_epsilon
    assert sum(passage.event.loss.exact_delta for passage in passages) == LOSS.exact_delta
    train, test = halves(len(data))
    generator = np.random.default_rng(0)
    exact = SCORES["iqr"](fit_halves(data[:, 0], data[:, 1], train, test, (-1, 1), (-1, 3), generator))
    assert r.scores is not None and r.scores == pytest.approx(exact, abs=0.02)
    assert r.margin == r.scores[1] - r.scores[0] and r.cause == ("x" if exact[1] >= exact[0] else "y")
    assert r.p_sign is None and r.guarantee.loss == LOSS
    assert any("the rows of the training half are NOT protected" in caveat for caveat in r.guarantee.caveats)


def test_the_default_of_this_score_is_the_flip_distance_which_gives_no_scores() -> None:
    (passage,), r = passed(rows(), **TEST)
    assert passage.event.mechanism == "geometric" and r.method == "holdout" and r.margin_unit == "records"
    with pytest.raises(ParameterError):
        passed(rows(), release_scores=True, **TEST)


@pytest.mark.parametrize(
    ("changed", "error"),
    [(CORRECTED | {"loss": dpc.ApproxDP(1, 0)}, LossError), (CORRECTED | {"loss": dpc.ZCDP(1)}, LossError),
     (CORRECTED | {"score": "hsic"}, ParameterError), (PRINTED | {"accept_unproven": False}, UnprovenError)],
)  # fmt: skip
def test_what_cannot_be_answered_is_refused_before_data_is_read(
    changed: Any, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dpc.Table, "rows", lambda *_: pytest.fail("the data was read"))
    with pytest.raises(error):
        ask(rows(), **changed)


@pytest.mark.parametrize("arguments", [CORRECTED, PRINTED], ids=["corrected", "printed"])
def test_a_constant_table_has_no_answer_from_propose_test_release(arguments: Any) -> None:
    with dpc.simulated_noise(1):
        r = ask(np.zeros((60, 2)), **arguments)
    assert (r.cause, r.effect, r.margin, r.scores, r.p_sign) == (None,) * 5


def test_the_printed_algorithm_runs_four_times_at_a_ninth_of_epsilon_and_is_stamped() -> None:
    passages, r = passed(rows(), **PRINTED)
    assert [passage.event.mechanism for passage in passages] == ["propose-test-release-published"] * 4
    assert all(passage.event.scale == pytest.approx(1.0) for passage in passages)  # 1/(9/9)
    assert sum(passage.event.loss.epsilon for passage in passages) == 9
    assert sum(passage.event.loss.exact_delta for passage in passages) == PRINTED["loss"].exact_delta
    assert not r.guarantee.private and r.guarantee.proofs == () and r.summary().startswith("NOT PRIVATE")


def test_the_printed_algorithm_answers_where_the_distances_are_large() -> None:
    # 2,000 rows whose IQR keeps away from the edges of the proposed intervals; noise of scale 1, threshold 5.6.
    with dpc.simulated_noise(1):
        r = ask(rows(2000), **PRINTED)
    assert r.cause in ("x", "y") and r.scores is not None and r.margin == r.scores[1] - r.scores[0]
