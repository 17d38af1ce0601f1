"""The paper's mechanisms with its constants, valid for ranks and HSIC."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.mechanisms.gate import Passage, recording_gate
from dpcausal.papers.direction import anm_test_privacy as published
from dpcausal.papers.direction.calculators import two_draws_tail
from tests.direction.neighbours import PUBLISHED, Rows, ask


def rows(n: int = 60, turn: float = 1.0) -> Rows:
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, n)
    return np.column_stack([x, np.clip(1 + turn * np.tanh(3 * x) + 0.2 * rng.standard_normal(n), -1, 3)])


def passed(data: Rows, **arguments: Any) -> tuple[list[Passage], dpc.Direction]:
    with recording_gate(lambda event, value: value) as recording:
        r = ask(data, **arguments)
    return recording.passages, r


@pytest.mark.parametrize(
    ("score", "constant"),
    [("spearman", lambda m: 30 / m), ("kendall", lambda m: 4 / m), ("hsic", lambda m: (12 * m - 11) / (m - 1) ** 2)],
)
def test_both_scores_are_noised_at_the_constants_of_theorems_1_and_3(score: str, constant: Any) -> None:
    (passage,), _ = passed(rows(), **PUBLISHED[f"published {score}"])
    assert passage.bound == pytest.approx(2 * constant(30), rel=1e-8) and passage.bound >= 2 * constant(30)
    assert passage.event.scale == pytest.approx(2 * constant(30), rel=1e-8)  # of each draw, at ε = 1
    assert passage.value.shape == (2,)


def test_the_published_hsic_is_the_trace_over_the_square_of_m_minus_1(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = []
    honest = published._hsic_pair

    def keep(rest: Any) -> tuple[float, float]:
        kept.append(rest)
        return honest(rest)

    monkeypatch.setattr(published, "_hsic_pair", keep)
    (passage,), _ = passed(rows(), **PUBLISHED["published hsic"])
    (rest,) = kept

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


@pytest.mark.parametrize("score", ["spearman", "kendall", "hsic"])
def test_the_p_is_that_of_two_draws(score: str) -> None:
    (passage,), r = passed(rows(), **PUBLISHED[f"published {score}"])
    assert r.scores == tuple(passage.value.tolist()) and r.margin == r.scores[1] - r.scores[0]
    assert r.p_sign == pytest.approx(two_draws_tail(r.margin, passage.event.scale))
