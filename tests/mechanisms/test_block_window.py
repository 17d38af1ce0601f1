"""The scores of windows over blocks' answers: a row moves each by two at most, and the best one holds the answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpcausal.errors import ParameterError
from dpcausal.mechanisms.blocks import INSIDE, assign_blocks, block_window
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.privacy.sensitivity import Query, Unit
from tests.conformance import check_claim

CENTRES, HALVES = np.array([-6, 0, 3, 8, 0]), np.array([2, 2, 2, 2, 9])


def query(rows: np.ndarray, scale: float = 9.0) -> Query:
    """Return the scores over three blocks, silent where their first column is low in the mean."""
    parts = assign_blocks(len(rows), 3, generator_from_seed(5))
    answers = [None if rows[part, 0].mean() < -0.8 else round(scale * float(rows[part, 0].sum())) for part in parts]
    return block_window(answers, CENTRES, HALVES, "windows")


def scores(rows: np.ndarray) -> Any:
    return query(rows)._answer


@pytest.mark.proves("block-window")
def test_no_replaced_row_moves_a_score_by_more_than_two_and_some_do() -> None:
    check_claim(scores, lambda m: query(np.zeros((m, 1))).sensitivity, sizes=(6, 13), columns=1, low=-1.0, high=1.0)


@pytest.mark.proves("block-window")
def test_a_block_that_speaks_silences_itself_or_turns_moves_what_its_halves_count() -> None:
    def of(*answers: int | None) -> Any:
        return block_window(answers, np.array([0]), np.array([1]), "windows")._answer[0]

    inside = round(2 * INSIDE * 3)
    assert of(-5, 5, 0) == -max(abs(2 - 3), abs(2 - inside)) and of(None, None, None) == -inside
    assert {abs(of(-5, 5, 0) - of(-5, 5, other)) for other in (-5, 5, None, 1)} <= {0, 1, 2}
    assert abs(of(0, 5, -5) - of(5, 5, -5)) == 2  # what is inside counts double


def test_the_best_window_is_about_the_middle_and_reaches_a_deviation() -> None:
    answers = np.rint(1000 * generator_from_seed(3).normal(size=4_000) + 500).astype(int).tolist()
    halves = np.repeat([125, 250, 500, 1000, 2000, 4000], 401)
    centres = np.tile(np.arange(-200, 201), 6) * 100
    found = block_window(answers, centres, halves, "windows")
    best = int(np.argmax(found._answer))
    assert abs(centres[best] - 500) <= 100 and halves[best] == 1000 and found.integral


def test_a_person_of_a_private_id_moves_two_blocks_and_windows_need_halves() -> None:
    of = {unit: block_window([1], CENTRES, HALVES, "windows", unit).sensitivity.bound for unit in Unit}
    assert of[Unit.PERSON] == 4 and of[Unit.ROW] == of[Unit.LISTED_PERSON] == 2
    for centres in (np.array([], dtype=np.int64), CENTRES[:2]):
        with pytest.raises(ParameterError, match="windows"):
            block_window([1], centres, HALVES, "windows")
