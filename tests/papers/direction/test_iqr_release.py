"""The interquartile scores as values: propose-test-release, corrected, and as printed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.direction.scores.anm import fit_halves
from dpcausal.errors import LossError, ParameterError, UnprovenError
from dpcausal.mechanisms.gate import Passage, recording_gate
from dpcausal.papers.direction.anm_test_privacy_iqr import QUARTER
from dpcausal.papers.direction.scores import SCORES
from tests.direction.neighbours import (
    ANSWERS,
    Rows,
    ask,
    faults,
    halves,
    new_row,
    quick,  # noqa: F401  (a fixture)
    replaced,
    some_rows,
)

LOSS = dpc.ApproxDP(2, 0.05)
TEST: dict[str, Any] = {"score": "iqr", "protect": "test"}
CALLS: dict[str, dict[str, Any]] = {
    "propose-test-release": TEST | {"method": dpc.papers.AnmTestPrivacyIqr(constants="corrected"), "loss": LOSS},
}
UNPROVEN: dict[str, Any] = TEST | {
    "published": True, "accept_unproven": True, "loss": dpc.ApproxDP(9, 0.03),
}  # fmt: skip


def rows(n: int = 60) -> Rows:
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, n)
    return np.column_stack([x, np.clip(1 + np.tanh(3 * x) + 0.2 * rng.standard_normal(n), -1, 3)])


def passed(data: Rows, **arguments: Any) -> tuple[list[Passage], dpc.Direction]:
    with recording_gate(lambda _, value: value) as recording:
        r = ask(data, **arguments)
    return recording.passages, r


def exact_scores(data: Rows) -> tuple[float, float]:
    train, test = halves(len(data))
    generator = np.random.default_rng(0)
    return SCORES["iqr"](fit_halves(data[:, 0], data[:, 1], train, test, (-1, 1), (-1, 3), generator))


# What passes the gate.


def test_events_sum_to_the_loss_exactly_and_there_are_as_many_as_values() -> None:
    passages, r = passed(rows(), **CALLS["propose-test-release"])
    assert len(passages) == 4
    assert sum(passage.event.loss.exact_epsilon for passage in passages) == LOSS.exact_epsilon
    assert sum(passage.event.loss.exact_delta for passage in passages) == LOSS.exact_delta
    assert r.guarantee.loss == LOSS


@pytest.mark.parametrize("name", CALLS)
def test_what_would_leave_without_noise_is_the_exact_score(name: str) -> None:
    data = rows(1200)
    _, r = passed(data, **CALLS[name])
    forward, backward = exact_scores(data)
    assert r.margin == pytest.approx(backward - forward, abs=0.02)
    assert r.cause == ("x" if backward >= forward else "y")
    assert r.p_sign is None
    assert r.scores == pytest.approx((forward, backward), abs=0.02)
    assert r.scores is not None and r.margin == r.scores[1] - r.scores[0]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", CALLS)
def test_no_replaced_test_row_brings_other_events_or_breaks_what_is_declared(name: str) -> None:
    rng = np.random.default_rng(5)
    _, test = halves(18)
    answers, pairs = list(ANSWERS.values()), 0
    for data in some_rows(rng, 18):
        for turn in range(5):
            neighbour = replaced(data, int(rng.choice(test)), new_row(rng, data))
            assert not faults(data, neighbour, answers[turn % 3], **CALLS[name])
            pairs += 1
    assert pairs >= 40


# Which way is taken.


def test_auto_takes_the_flip_distance_which_gives_no_scores() -> None:
    (passage,), r = passed(rows(), **TEST)
    assert passage.event.mechanism == "geometric" and r.method == "holdout" and r.margin_unit == "records"
    with pytest.raises(ParameterError, match="only which is smaller"):
        passed(rows(), release_scores=True, **TEST)


@pytest.mark.parametrize("name", CALLS)
def test_real_noise_runs_and_the_guarantee_names_claims_that_can_be_explained(name: str) -> None:
    arguments = {"loss": dpc.PureDP(1)} | CALLS[name]
    r = ask(rows(), **arguments)
    assert r.guarantee.private and r.guarantee.loss == arguments["loss"]
    assert r.guarantee.proofs[0] == "iqr-reach" and len(r.guarantee.proofs) >= 3
    for proof in r.guarantee.proofs:
        assert dpc.explain(proof)
    assert "NOT protected" in r.guarantee.caveats[0]
    assert any("a margin near 0 is no finding" in caveat for caveat in r.guarantee.caveats)
    assert r.p_sign is None


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "propose-test-release without delta": (
        CALLS["propose-test-release"] | {"loss": dpc.ApproxDP(1, 0)}, LossError, "delta above 0"
    ),
    "zCDP": (CALLS["propose-test-release"] | {"loss": dpc.ZCDP(1)}, LossError, "delta above 0"),
    "another score": (
        CALLS["propose-test-release"] | {"score": "hsic"}, ParameterError,
        "score='hsic' does not go with method 'ANM, test-set privacy, IQR'",
    ),
    "the printed algorithm without consent": (UNPROVEN | {"accept_unproven": False}, UnprovenError, "accept_unproven"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_answered_is_refused_before_data_is_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, error, rule = REFUSED[name]
    monkeypatch.setattr(dpc.Table, "rows", lambda *_: pytest.fail("the data was read"))
    with pytest.raises(error, match=rule):
        ask(rows(), **arguments)


def test_a_constant_table_has_no_answer_from_propose_test_release() -> None:
    with dpc.simulated_noise(1):
        r = ask(np.full((60, 2), 0.3), **CALLS["propose-test-release"])
        assert (r.cause, r.margin, r.scores) == (None, None, None)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
@pytest.mark.parametrize("name", CALLS)
def test_bounds_at_the_limit_are_answered(name: str, scale: float) -> None:
    rng = np.random.default_rng(3)
    schema = dpc.Schema({"x": dpc.Bounded(0, scale), "y": dpc.Bounded(-scale, scale)})
    for kind in (rng.uniform(0, scale, 40), np.full(40, scale), np.where(np.arange(40) % 2, 0.0, scale)):
        with dpc.simulated_noise(1):
            r = ask(np.column_stack([kind, kind[::-1]]), schema=schema, **CALLS[name])
        assert math.isfinite(r.margin or 0)


def test_four_parts_by_any_composition_theorem_would_be_no_larger() -> None:
    # The optimal theorem (Kairouz, Oh & Viswanath 2015): the least δ of four ε-DP releases at 4ε(1 − 1e-4) in all.
    for epsilon in (0.01, 0.25, 2.0):
        total = 4 * epsilon * (1 - 1e-4)
        least = (math.exp(4 * epsilon) - math.exp(total)) / (1 + math.exp(epsilon)) ** 4
        advanced = epsilon * math.sqrt(8 * math.log(1e6)) + 4 * epsilon * math.tanh(epsilon / 2)
        assert least > 1e-7 and advanced > 10 * epsilon
    parts = dpc.ApproxDP(0.3, 1e-6).part(QUARTER)
    assert 4 * parts.exact_epsilon == dpc.ApproxDP(0.3, 1e-6).exact_epsilon
    assert 4 * parts.exact_delta == dpc.ApproxDP(0.3, 1e-6).exact_delta


# As printed.


def test_the_printed_algorithm_runs_four_times_at_a_ninth_of_epsilon_and_is_stamped() -> None:
    passages, r = passed(rows(), **UNPROVEN)
    assert [passage.event.mechanism for passage in passages] == ["propose-test-release-published"] * 4
    assert all(passage.event.scale == pytest.approx(1.0) for passage in passages)  # 1/(9/9)
    assert sum(passage.event.loss.epsilon for passage in passages) == 9
    assert sum(passage.event.loss.exact_delta for passage in passages) == UNPROVEN["loss"].exact_delta
    assert not r.guarantee.private and r.guarantee.proofs == () and r.method == "ANM, test-set privacy, IQR"
    assert r.summary().startswith("NOT PRIVATE")


def test_a_printed_algorithm_that_declines_releases_no_direction() -> None:
    with dpc.simulated_noise(1):
        r = ask(np.zeros((60, 2)), **UNPROVEN)
    assert (r.cause, r.effect, r.margin, r.scores, r.p_sign) == (None,) * 5


def test_the_printed_algorithm_answers_where_the_distances_are_large() -> None:
    # 2,000 rows whose IQR keeps away from the edges of the proposed intervals; noise of scale 1, threshold 5.6.
    with dpc.simulated_noise(1):
        r = ask(rows(2000), **(UNPROVEN | {"loss": dpc.ApproxDP(9, 0.03)}))
    assert r.cause in ("x", "y") and r.scores is not None and r.margin == r.scores[1] - r.scores[0]


@pytest.mark.usefixtures("quick")
def test_the_grey_box_names_the_fault_of_the_printed_algorithm() -> None:
    # log IQR passes 0 from below: the second proposed interval misses the one IQR and holds the other well inside.
    train, test = halves(200)
    data = np.empty((200, 2))
    data[train] = 0.0
    place = np.arange(100)
    data[test, 0] = 0.0
    data[test, 1] = np.where(place < 50, 0.0, np.where(place < 75, 0.999, 1.001))
    neighbour = replaced(data, int(test[74]), np.array([0.0, 1.001]))
    found = faults(data, neighbour, **UNPROVEN)
    assert any("declared 1" in fault for fault in found)
    for answers in ANSWERS.values():
        for arguments in CALLS.values():
            assert not faults(data, neighbour, answers, **arguments)
