"""Which units are targets is declared once for a ledger: a target's series is public, so in turn all would be."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import LedgerError

UNITS, PERIODS, ONE = 40, 6, dpc.PureDP(1)


def ask(
    ledger: dpc.Ledger, targets: Any, loss: Any = ONE, several: bool = False, texts: bool = False, **more: Any
) -> Any:
    names = [str(unit) if texts else unit for unit in range(UNITS)]
    frame = {"unit": np.repeat(names, PERIODS), "time": np.tile(np.arange(PERIODS), UNITS),
             "y": np.random.default_rng(1).uniform(-1, 1, UNITS * PERIODS)}  # fmt: skip
    panel = dpc.Panel(frame, unit="unit", time="time", outcome="y", target=targets, start=4, bounds=dpc.Bounded(-1, 1),
                      ledger=ledger)  # fmt: skip
    return (dpc.synthetic_controls if several else dpc.synthetic_control)(panel, loss=loss, force=True, **more)


@pytest.fixture
def ledger() -> dpc.Ledger:
    return dpc.Ledger.in_memory(dpc.PureDP(100), unit="unit", accept_large_epsilon=True)


def test_each_unit_in_turn_as_the_target_is_refused_and_nothing_is_spent(ledger: dpc.Ledger) -> None:
    ask(ledger, 0)
    for unit in range(1, UNITS):
        for targets, several in ((unit, False), ([0, unit], True)):
            with pytest.raises(LedgerError):
                ask(ledger, targets, several=several)
    with pytest.raises(LedgerError):
        ask(ledger, "0", texts=True)
    assert len(ledger.entries()) == 1 and ledger.verify().ok


def test_the_same_targets_are_answered_again_in_any_order_and_one_by_one(ledger: dpc.Ledger) -> None:
    ask(ledger, [3, 7], target=7)
    ask(ledger, [7, 3], target=3)
    ask(ledger, [np.int64(3), 7.0], several=True)
    with pytest.raises(LedgerError):
        ask(ledger, 7)
    assert len(ledger.entries()) == 3


def test_a_ledger_file_remembers_its_targets_and_every_result_says_so(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    with dpc.Ledger.create(path, budget=dpc.PureDP(100), unit="unit", accept_large_epsilon=True) as ledger:
        assert "no other targets" in ask(ledger, 5).details()
    with dpc.Ledger.open(path) as ledger:
        assert "targets of panels" in str([entry.to_dict() for entry in ledger.entries()])
        with pytest.raises(LedgerError):
            ask(ledger, 6)
        ask(ledger, 5)


def test_other_questions_on_the_same_ledger_and_exact_answers_declare_no_targets(ledger: dpc.Ledger) -> None:
    for detail in ({"targets": ["x"]}, {}):
        ledger.charge(ONE, task="something else", unit=dpc.Unit.DONOR, unit_column="unit", detail=detail)
        ask(ledger, 5)
    exact = dpc.Ledger.without_privacy()
    for unit in range(3):
        ask(exact, unit, dpc.NoPrivacy())
