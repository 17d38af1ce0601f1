"""One ledger, one privacy unit: a spend of another is refused unpaid, and no protected unit is ever a target."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import LedgerError, ParameterError, Setting

UNITS: dict[str, dict[str, Any]] = {
    "rows": {}, "persons": {"person": "id"}, "listed persons": {"person": "id", "ids": "public"},
    "other persons": {"person": "doctor"}, "units": {"unit": "id"}, "other units": {"unit": "doctor"},
    "test half": {"protect": "test"}, "training half": {"protect": "training"},
}  # fmt: skip
N, T = 60, 8
FRAME = {"id": np.repeat(np.arange(N), T), "doctor": np.repeat(np.arange(N), T)[::-1].copy(),
         "t": np.tile(np.arange(T), N), "a": np.tile([0, 1], N * T // 2),
         "y": np.random.default_rng(1).random(N * T)}  # fmt: skip
SCHEMA = dpc.Schema({"a": dpc.Levels([0, 1]), "y": dpc.Bounded(0, 1), "t": dpc.Bounded(0, T)})
ONE = dpc.PureDP(1)


def ask(kind: str, ledger: dpc.Ledger) -> Any:
    """Ask a question whose unit this is."""
    whose = UNITS[kind]
    if "unit" in whose:
        panel = dpc.Panel(FRAME, unit=whose["unit"], time="t", outcome="y", target=0, start=6,
                          bounds=dpc.Bounded(0, 1), ledger=ledger)  # fmt: skip
        return dpc.synthetic_control(panel, loss=ONE, force=True, inference=False)
    if "protect" in whose:
        table = dpc.Table(FRAME, SCHEMA, ledger, missing="impute")
        method = {"test": dpc.papers.Holdout(), "training": dpc.papers.TrainingPrivacy()}[whose["protect"]]
        return dpc.direction(table, "y", "t", loss=ONE, score="hsic", method=method)
    return dpc.cells(dpc.Table(FRAME, SCHEMA, ledger, **whose), by=["a"], loss=ONE)


@pytest.mark.proves("one-unit")
@pytest.mark.parametrize("declared", UNITS)
def test_a_ledger_takes_its_own_unit_and_refuses_every_other_unpaid(declared: str, tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    dpc.Ledger.create(path, budget=dpc.PureDP(9), **UNITS[declared]).close()
    for asked in UNITS:
        with dpc.Ledger.open(path) as ledger:
            before = ledger.head
            if asked != declared:
                for call in (lambda ledger=ledger, asked=asked: ask(asked, ledger),
                             lambda asked=asked: dpc.Ledger.open_or_create(path, budget=ledger.budget, **UNITS[asked])):
                    with pytest.raises(LedgerError):
                        call()
                assert ledger.head == before
    with dpc.Ledger.open(path) as ledger:
        ask(declared, ledger)
        assert len(ledger.entries()) == 1 and ledger.protects.arguments == UNITS[declared]


def test_who_forgot_the_person_is_told_to_name_it_and_not_to_make_a_second_ledger() -> None:
    with pytest.raises(LedgerError) as refused:
        ask("rows", dpc.Ledger.in_memory(ONE, person="id"))
    assert refused.value.rule == "unit" and Setting("person", "id") in refused.value.hint


@pytest.mark.parametrize("wrong", [
    {"person": ""}, {"person": 5}, {"person": "a", "unit": "b"}, {"ids": "public"}, {"protect": "half"},
    {"person": "a", "protect": "test"}, {"unit": "u" * 201},
])  # fmt: skip
def test_what_declares_no_unit_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        dpc.Ledger.in_memory(ONE, **wrong)


def panel(ledger: dpc.Ledger, **changed: Any) -> dpc.Panel:
    words: dict[str, Any] = {"frame": FRAME, "unit": "id", "time": "t", "outcome": "y", "target": 0, "start": 6,
                             "bounds": dpc.Bounded(0, 1), "ledger": ledger} | changed  # fmt: skip
    return dpc.Panel(words.pop("frame"), **words)


def control(asked: dpc.Panel, **words: Any) -> Any:
    return dpc.synthetic_control(asked, loss=ONE, force=True, inference=False, **words)


@pytest.mark.proves("public-targets")
def test_a_targets_series_stands_once_and_more_outcomes_and_periods_may_follow() -> None:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(9), unit="id")
    early = {name: values[FRAME["t"] < 7] for name, values in FRAME.items()}
    control(panel(ledger, frame=early))
    control(panel(ledger))
    control(panel(ledger), start=4)
    control(panel(ledger, frame=FRAME | {"z": FRAME["y"] / 2}, outcome="z"))
    paid = len(ledger.entries())
    corrected = FRAME["y"].copy()
    corrected[2] += 0.01
    renamed = FRAME | {"id": (FRAME["id"] - 1) % N}  # another unit under the target's name
    for frame in (FRAME | {"y": corrected}, renamed):
        with pytest.raises(LedgerError):
            control(panel(ledger, frame=frame))
    with pytest.raises(LedgerError):
        control(panel(ledger, target=1))
    assert len(ledger.entries()) == paid == 4 and ledger.verify().ok


@pytest.mark.proves("public-targets")
def test_arrays_give_each_donor_no_turn_as_the_target_whatever_the_times() -> None:
    rows = FRAME["y"].reshape(N, T)
    ledger = dpc.Ledger.in_memory(dpc.PureDP(9), unit="id")

    def arrays(who: int, **words: Any) -> dpc.Panel:
        return dpc.Panel.from_arrays(np.delete(rows, who, axis=0), rows[who], bounds=dpc.Bounded(0, 1), ledger=ledger,
                                     unit="id", **({"start": 6} | words))  # fmt: skip

    control(arrays(0))
    control(arrays(0), start=4)
    for who, words in ((1, {}), (1, {"times": range(100, 108), "start": 106})):
        with pytest.raises(LedgerError):
            control(arrays(who, **words))
    with pytest.raises(LedgerError):
        control(panel(ledger))
    assert len(ledger.entries()) == 2
