"""Every mutant is killed by its audit, no right mechanism is flagged; false alarm of the file at most 1e-6."""

import pytest

from tests.registry.index import cases
from tests.registry.rows import ALARM, EACH, MOST_BLACK_BOXES

MUTANTS, CONTROLS = cases()


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_mutant_is_killed(name: str) -> None:
    case = MUTANTS[name]
    assert case.flagged(), f"the {case.kind} does not see it"
    print("= 1 mutants killed")


@pytest.mark.parametrize("name", sorted(CONTROLS))
def test_a_right_mechanism_is_not_flagged(name: str) -> None:
    case = CONTROLS[name]
    assert not case.flagged(), f"the {case.kind} flags it"
    print("= 1 right controls not flagged")


def test_there_are_enough_of_both_and_every_audit_has_both() -> None:
    assert len(MUTANTS) >= 30 and len(CONTROLS) >= 10
    kinds = {"falsifier", "grey box", "black box", "ledger"}
    assert {case.kind for case in MUTANTS.values()} == {case.kind for case in CONTROLS.values()} == kinds


def test_the_false_alarms_of_all_black_boxes_sum_to_what_is_stated() -> None:
    audits = sum(case.kind == "black box" for case in (*MUTANTS.values(), *CONTROLS.values()))
    assert audits <= MOST_BLACK_BOXES and audits * EACH <= ALARM
