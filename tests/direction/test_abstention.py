"""``alpha`` and votes: a lean that coins may well show names nobody, and nothing else of the answer changes."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.mechanisms.gate import recording_gate
from tests.direction.neighbours import CORRECTED, PUBLISHED, Rows, ask, table


def rows(n: int = 60) -> Rows:
    rng = np.random.default_rng(8)
    return np.column_stack([rng.uniform(-1, 1, n), rng.uniform(-1, 3, n)])


def answered(answer: float, **arguments: object) -> dpc.Direction:
    with recording_gate(lambda event, value: np.full_like(value, answer)):
        return ask(rows(), **({"blocks": 5} | arguments))


@pytest.mark.parametrize("count", [-3, 0, 2, 3, 5, 9])
def test_the_same_release_names_a_cause_at_its_p_and_above_and_none_below(count: int) -> None:
    free = answered(count, alpha=0.999)
    assert free.p_sign is not None and free.favoured is not None
    for alpha in (0.001, 0.01, 0.1, 0.3, 0.9, min(free.p_sign, 0.999), float(np.nextafter(free.p_sign, 0))):
        r = answered(count, alpha=alpha)
        assert r.inconclusive == (r.cause is None) == (free.p_sign > alpha)
        assert (r.cause, r.favoured) == (None if r.inconclusive else free.favoured, free.favoured)
        same = dataclasses.replace(r, cause=free.cause, effect=free.effect, alpha=0.999, guarantee=free.guarantee)
        assert same == free  # margin and p are as released


@pytest.mark.parametrize("way", [*CORRECTED, *PUBLISHED])
def test_a_half_is_a_forced_choice_at_every_level(way: str) -> None:
    asked = {**CORRECTED, **PUBLISHED}[way]
    for alpha in (0.001, 0.9):
        with recording_gate(lambda event, value: np.full_like(value, 3)):
            r = ask(rows(), **asked, alpha=alpha)
        assert r.cause == r.favoured is not None and r.verdict is None
        assert any("forced choice" in caveat for caveat in r.guarantee.caveats)


def test_an_undecided_answer_says_so_in_words_in_json_and_in_its_picture() -> None:
    r = answered(3)
    assert "inconclusive" in r.headline()[0] and "+1 votes" in r.details() and r.cause is None
    shown = json.loads(r.to_json())
    assert (shown["cause"], shown["effect"], shown["favoured"], shown["margin"]) == (None, None, "x", 1.0)
    assert r.plot().get_title().startswith("x and y: inconclusive")


def test_the_ledger_notes_the_level_and_charges_the_same() -> None:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    for alpha in (0.1, 0.4):
        dpc.direction(table(rows(), ledger), "x", "y", loss=dpc.PureDP(0.5), alpha=alpha)
    first, second = ledger.entries()
    assert (json.loads(first.detail)["alpha"], json.loads(second.detail)["alpha"]) == (0.1, 0.4)
    assert first.loss == second.loss and ledger.remaining.epsilon == 0


def test_without_noise_a_score_is_never_undecided() -> None:
    r = ask(rows(), loss=dpc.NoPrivacy(), alpha=0.001)
    assert r.cause is not None and r.p_sign is None


def test_what_a_single_answer_was_paid_is_what_its_call_cost() -> None:
    r = ask(rows(), loss=dpc.PureDP(0.5))
    assert r.spent == r.guarantee.loss == dpc.PureDP(0.5)
