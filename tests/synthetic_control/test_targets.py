"""Which units are targets is settled once for a ledger: a target's series is public, so in turn all would be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import LedgerError

UNITS, PERIODS, START = 40, 6, 4
ONE, UNIT = dpc.PureDP(1), dpc.Unit.DONOR


def panel(ledger: dpc.Ledger, target: Any, **arguments: Any) -> dpc.Panel:
    rows = np.random.default_rng(1).uniform(-1, 1, UNITS * PERIODS)
    frame = {"unit": np.repeat(np.arange(UNITS), PERIODS), "time": np.tile(np.arange(PERIODS), UNITS), "y": rows}
    return dpc.Panel(
        frame | arguments, unit="unit", time="time", outcome="y", target=target, start=START, bounds=dpc.Bounded(-1, 1),
        ledger=ledger,
    )  # fmt: skip


def ask(panel: dpc.Panel, loss: Any = ONE, **arguments: Any) -> Any:
    return dpc.synthetic_control(panel, loss=loss, force=True, **arguments)


def test_each_unit_in_turn_as_the_target_is_refused_and_nothing_is_spent() -> None:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(100), unit="unit", accept_large_epsilon=True)
    ask(panel(ledger, 0))
    for unit in range(1, UNITS):
        with pytest.raises(LedgerError, match="targets of panels"):
            ask(panel(ledger, unit))
        with pytest.raises(LedgerError, match="targets of panels"):
            dpc.synthetic_controls(panel(ledger, [0, unit]), loss=ONE, force=True)
    assert len(ledger.entries()) == 1 and ledger.verify().ok
    with pytest.raises(LedgerError):
        ask(panel(ledger, "0", unit=np.repeat([str(unit) for unit in range(UNITS)], PERIODS)))


def test_the_same_targets_are_answered_again_in_any_order_and_one_by_one() -> None:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(100), unit="unit", accept_large_epsilon=True)
    ask(panel(ledger, [3, 7]), target=7)
    ask(panel(ledger, [7, 3]), target=3)
    dpc.synthetic_controls(panel(ledger, [np.int64(3), 7.0]), loss=ONE, force=True)
    assert len(ledger.entries()) == 3
    with pytest.raises(LedgerError):
        ask(panel(ledger, 7))


def test_a_ledger_file_remembers_its_targets_and_says_so_in_every_result(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    with dpc.Ledger.create(path, budget=dpc.PureDP(100), unit="unit", accept_large_epsilon=True) as ledger:
        answer = ask(panel(ledger, 5))
    assert "no other targets" in answer.details() and "targets of panels" in str(ledger_of(path))
    with dpc.Ledger.open(path) as ledger:
        with pytest.raises(LedgerError, match="targets of panels"):
            ask(panel(ledger, 6))
        ask(panel(ledger, 5))


def ledger_of(path: Path) -> list[Any]:
    with dpc.Ledger.open(path, read_only=True) as ledger:
        return [entry.to_dict() for entry in ledger.entries()]


def test_other_questions_on_the_same_ledger_and_exact_answers_are_not_held_back() -> None:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(100), unit="unit", accept_large_epsilon=True)
    ledger.charge(ONE, task="something else", unit=UNIT, unit_column="unit", detail={"targets": ["x"]})
    ask(panel(ledger, 5))
    ledger.charge(ONE, task="something else", unit=UNIT, unit_column="unit")
    exact = dpc.Ledger.without_privacy()
    for unit in range(3):
        ask(panel(exact, unit), dpc.NoPrivacy())
