"""The grey-box comparison names each kind of fault at once, and lets a right mechanism stand."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dpcausal import Ledger, PureDP
from dpcausal.audit import compare
from dpcausal.mechanisms.additive import geometric, laplace
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity

DATA, NEIGHBOUR = [0, 0, 1, 1], [0, 1, 1, 1]


def count(values: list[int], bound: float = 1, label: str = "count") -> int:
    allotment = Ledger.in_memory(PureDP(1)).charge(PureDP(1), task="count")
    claim = Sensitivity(bound, Norm.L1, Relation.REPLACE_ONE, "test")
    return int(geometric(Query(sum(values), claim, label), allotment, PureDP(1)))


def fails(values: list[int], least: int) -> None:
    if sum(values) > least:
        raise ValueError("too many")


@pytest.mark.parametrize("answers", ["low", "high", lambda event, value: np.asarray(0)])
def test_a_right_count_stands(answers: Any) -> None:
    audit = compare(lambda: count(DATA), lambda: count(NEIGHBOUR), answers=answers)
    assert not audit.violated and audit.ratio == 1 and audit.passages == 1


FAULTS: dict[str, tuple[Callable[[list[int]], Any], str]] = {
    "a sum beyond its bound": (lambda values: count([0, 3 * (sum(values) - 2)]), "moves by 3, declared 1"),
    "a bound from the data": (lambda values: count(values, bound=1 + sum(values)), "declared differently"),
    "a skipped stratum": (lambda values: count(values) if sum(values) > 2 else None, "passages"),
    "an error on one side": (lambda values: fails(values, 2), "no error"),
    "nothing brought to the gate": (lambda values: fails(values, 0), "nothing was compared"),
    "an exact number beside the noisy one": (
        lambda values: (count(values), {"rows": len(values), "mean": np.mean(values)}), "returned differs"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(fault: str) -> None:
    call, words = FAULTS[fault]
    audit = compare(lambda: call(DATA), lambda: call(NEIGHBOUR))
    assert audit.violated and words in audit.faults[0]


def test_a_vector_is_compared_in_its_norm() -> None:
    def pair(values: list[float]) -> object:
        allotment = Ledger.in_memory(PureDP(1)).charge(PureDP(1), task="pair")
        claim = Sensitivity(1.5, Norm.L1, Relation.REPLACE_ONE, "test")
        return laplace(Query(np.asarray(values), claim, "pair"), allotment, PureDP(1))

    assert compare(lambda: pair([0.0, 0.0]), lambda: pair([1.0, 1.0])).violated
    assert not compare(lambda: pair([0.0, 0.0]), lambda: pair([0.75, 0.75])).violated


def test_a_durable_ledger_does_not_serve_a_recording(tmp_path) -> None:
    with Ledger.create(tmp_path / "study.ledger", budget=PureDP(1)) as ledger:
        audit = compare(lambda: ledger.charge(PureDP(0.1), task="x"), lambda: None)
        assert audit.violated and "LedgerError" in audit.faults[0]
        assert math.isclose(ledger.remaining.epsilon or 0, 1)


@dataclass(frozen=True)
class Answer:
    noisy: int
    beside: Any


@pytest.mark.parametrize(
    ("one", "other"), [(0.0, -0.0), (2**60, 2**60 + 1), (Answer(1, [1]), Answer(1, [2])), (1, 1.0)]
)
def test_what_a_dataclass_holds_beside_the_answer_is_compared_to_the_last_bit(one: Any, other: Any) -> None:
    for a, b, violated in ((one, other, True), (other, one, True), (one, one, False)):
        audit = compare(lambda a=a: Answer(count(DATA), a), lambda b=b: Answer(count(NEIGHBOUR), b))
        assert audit.violated is violated


@pytest.mark.parametrize("public", [float("nan"), None, "text", np.array([1.0, np.nan]), [1, (2.5, True)], object()])
def test_the_same_public_words_beside_an_answer_stand(public: object) -> None:
    assert not compare(lambda: (count(DATA), public), lambda: (count(NEIGHBOUR), public)).violated
