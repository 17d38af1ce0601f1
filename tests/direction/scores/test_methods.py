"""Scores by name: what a block computes, and what is tried before anything is spent."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.direction import scores
from dpcausal.direction.scores import NAMES, anm, igci, of_block, rehearse, shared_fits
from dpcausal.privacy.noise import generator_from_seed


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, n)
    return x, np.clip(np.tanh(3 * x) + 0.2 * rng.laplace(size=n), -3, 3)


def test_a_name_stands_for_one_score() -> None:
    assert len(set(NAMES)) == len(NAMES) == 1 + len(anm.SCORES) + len(igci.SCORES)


@pytest.mark.parametrize("score", anm.SCORES)
def test_a_score_of_residuals_in_a_block_is_that_of_its_leave_one_out_residuals(score: str) -> None:
    x, y = rows(60)
    assert of_block(score, x, y, 5) == anm.SCORES[score](anm.fit_all(x, y, generator_from_seed(5)))


@pytest.mark.parametrize("score", igci.SCORES)
def test_a_score_of_columns_fits_nothing(score: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anm, "fit_all", lambda *_: pytest.fail("a regression was fitted"))
    x, y = rows(60)
    assert of_block(score, x, y, 5) == igci.SCORES[score](x, y)


def test_scores_of_one_block_share_its_fit_and_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[weakref.ref[Any]] = []
    fit = anm.fit_all

    def watched(*arguments: Any) -> Any:
        rest = fit(*arguments)
        fits.append(weakref.ref(rest))
        return rest

    x, y = rows(60)
    alone = {score: of_block(score, x, y, 5) for score in anm.SCORES}
    monkeypatch.setattr(anm, "fit_all", watched)
    with shared_fits():
        assert {score: of_block(score, x, y, 5) for score in anm.SCORES} == alone
        assert len(fits) == 1
        of_block("iqr", x, y, 6)
        of_block("iqr", y, x, 5)
        assert len(fits) == 3  # other coins, other rows
    gc.collect()
    assert [one() for one in fits] == [None] * 3
    of_block("iqr", x, y, 5)
    assert len(fits) == 4


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
