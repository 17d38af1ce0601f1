"""``min_probability``: an answer that is less sure than asked for names nobody, and nothing else of it changes."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.mechanisms.gate import recording_gate
from tests.direction.neighbours import CORRECTED, PUBLISHED, Rows, ask, table

WAYS: dict[str, dict[str, Any]] = {
    "votes": {"blocks": 5},
    **{name: way for name, way in (CORRECTED | PUBLISHED).items() if name != "iqr scores"},
}
"""Every way whose release carries a probability."""


def rows(n: int = 60) -> Rows:
    rng = np.random.default_rng(8)
    return np.column_stack([rng.uniform(-1, 1, n), rng.uniform(-1, 3, n)])


def answered(answer: float, **arguments: Any) -> dpc.Direction:
    with recording_gate(lambda event, value: np.full_like(value, answer)):
        return ask(rows(), **arguments)


@pytest.mark.parametrize("way", WAYS)
def test_the_same_release_is_decided_below_its_probability_and_undecided_above(way: str) -> None:
    free = answered(3, **WAYS[way])
    assert free.probability_correct is not None and free.cause is not None and not free.undecided
    # Five blocks cannot be surer than .953, and more is refused.
    for least in (0.501, 0.6, 0.75, 0.9, 0.95 if way == "votes" else 0.999):
        r = answered(3, **WAYS[way], min_probability=least)
        assert r.undecided == (free.probability_correct < least)
        same = dataclasses.replace(
            r, cause=free.cause, effect=free.effect, min_probability=None, guarantee=free.guarantee
        )
        assert same == free  # margin, probability and scores are as released
        assert (r.cause, r.effect) == ((None, None) if r.undecided else (free.cause, free.effect))


def test_exactly_the_threshold_decides() -> None:
    free = answered(4, blocks=5)
    assert free.probability_correct is not None
    assert not answered(4, blocks=5, min_probability=free.probability_correct).undecided
    assert answered(4, blocks=5, min_probability=float(np.nextafter(free.probability_correct, 1))).undecided


def test_an_undecided_answer_says_so_in_words_in_json_and_in_its_picture() -> None:
    r = answered(3, blocks=5, min_probability=0.95)
    first, second, _ = r.headline()
    assert first == "x and y: undecided (below 0.95)."
    assert second.startswith("Margin +1 votes; the noise leaves its sign right with probability 0.")
    shown = json.loads(r.to_json())
    assert (shown["cause"], shown["effect"], shown["margin"], shown["min_probability"]) == (None, None, 1.0, 0.95)
    assert r.plot().get_title().startswith("undecided: x, y  (noise leaves it right: 0.")


def test_a_threshold_takes_the_place_of_the_usual_word_of_doubt() -> None:
    assert "not decided" in answered(4, blocks=5).headline()[0]
    assert answered(4, blocks=5, min_probability=0.6).headline()[0] == "x -> y"


def test_the_ledger_notes_the_threshold_and_charges_the_same() -> None:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    for least in (None, 0.6):
        dpc.direction(table(rows(), ledger), "x", "y", loss=dpc.PureDP(0.5), min_probability=least)
    first, second = ledger.entries()
    assert (json.loads(first.detail)["min_probability"], json.loads(second.detail)["min_probability"]) == (None, 0.6)
    assert first.loss == second.loss and ledger.remaining.epsilon == 0


def test_without_noise_nothing_is_undecided() -> None:
    r = ask(rows(), loss=dpc.NoPrivacy(), min_probability=0.999)
    assert r.cause is not None and r.probability_correct is None


def test_what_a_single_answer_was_paid_is_what_its_call_cost() -> None:
    r = ask(rows(), loss=dpc.PureDP(0.5))
    assert r.spent == r.guarantee.loss == dpc.PureDP(0.5)
