"""Scores by name: what a block computes, and what is tried before anything is spent."""

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.direction import scores
from dpcausal.direction.scores import NAMES, anm, of_block, rehearse
from dpcausal.privacy.noise import generator_from_seed
from tests.direction.neighbours import table


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, n)
    return x, np.clip(np.tanh(3 * x) + 0.2 * rng.laplace(size=n), -3, 3)


def test_the_score_of_residuals_in_a_block_is_that_of_its_leave_one_out_residuals() -> None:
    x, y = rows(60)
    assert of_block("hsic", x, y, 5) == anm.hsic_scores(anm.fit_all(x, y, generator_from_seed(5)))


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
    asked = table(np.column_stack(rows(60)), dpc.Ledger.in_memory(dpc.PureDP(1)))
    with pytest.raises(ImportError):
        dpc.direction(asked, "x", "y", score=score, loss=dpc.PureDP(1))
    assert not asked.ledger.entries()
