"""Scores by name: what a block computes, and what is tried before anything is spent."""

from __future__ import annotations

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.direction import scores
from dpcausal.direction.scores import NAMES, anm, igci, of_block, rehearse
from dpcausal.privacy.noise import generator_from_seed


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, n)
    return x, np.clip(np.tanh(3 * x) + 0.2 * rng.laplace(size=n), -3, 3)


def test_a_name_stands_for_one_score() -> None:
    assert len(set(NAMES)) == len(NAMES) == 2 + len(igci.SCORES)


def test_the_score_of_residuals_in_a_block_is_that_of_its_leave_one_out_residuals() -> None:
    x, y = rows(60)
    assert of_block("hsic", x, y, 5) == anm.hsic_scores(anm.fit_all(x, y, generator_from_seed(5)))


@pytest.mark.parametrize("score", igci.SCORES)
def test_a_score_of_columns_fits_nothing(score: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anm, "fit_all", lambda *_: pytest.fail("a regression was fitted"))
    x, y = rows(60)
    assert of_block(score, x, y, 5) == igci.SCORES[score](x, y)


@pytest.mark.parametrize("score", NAMES)
def test_columns_that_change_places_change_the_scores(score: str) -> None:
    x, y = rows(60)
    assert of_block(score, x, y, 5)[::-1] == pytest.approx(of_block(score, y, x, 5), abs=1e-9)


@pytest.mark.parametrize("score", NAMES)
def test_a_missing_package_fails_before_anything_is_spent(score: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rehearse(score)

    def missing(*_: object, **__: object) -> None:
        raise ImportError("no compiler")

    monkeypatch.setattr(scores, "of_block", missing)
    x, y = rows(60)
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    schema = dpc.Schema({"x": dpc.Bounded(-3, 3), "y": dpc.Bounded(-3, 3)})
    with pytest.raises(ImportError):
        dpc.direction(dpc.Table(
            {"x": x, "y": y}, schema, ledger, missing="impute"
        ), "x", "y", score=score, loss=dpc.PureDP(1))  # type: ignore[arg-type]
    assert not ledger.entries()
