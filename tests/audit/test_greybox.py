"""The grey-box comparison names each kind of fault at once, and lets a right mechanism stand."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dpcausal.audit import compare
from dpcausal.mechanisms.additive import geometric, laplace
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity

DATA, NEIGHBOUR = [0, 0, 1, 1], [0, 1, 1, 1]


def count(values: list[int], bound: int = 1, label: str = "count") -> int:
    allotment = Ledger.in_memory(PureDP(1)).charge(PureDP(1), task="count")
    claim = Sensitivity(bound, Norm.L1, Relation.REPLACE_ONE, "test")
    return int(geometric(Query(sum(values), claim, label), allotment, PureDP(1)))


@pytest.mark.parametrize("answers", ["low", "high", lambda event, value: np.asarray(0)])
def test_a_right_count_stands(answers: object) -> None:
    audit = compare(lambda: count(DATA), lambda: count(NEIGHBOUR), answers=answers)  # type: ignore[arg-type]
    assert not audit.violated and audit.ratio == 1 and audit.passages == 1


def test_a_sum_beyond_its_bound_is_named() -> None:
    audit = compare(lambda: count([0, 0]), lambda: count([0, 3]))
    assert audit.violated and "moves by 3, declared 1" in audit.faults[0]


def test_a_bound_from_the_data_is_named() -> None:
    def bounded_by_data(values: list[int]) -> int:
        return count(values, bound=1 + sum(values))

    audit = compare(lambda: bounded_by_data(DATA), lambda: bounded_by_data(NEIGHBOUR))
    assert "declared differently" in audit.faults[0]


def test_a_skipped_stratum_is_named() -> None:
    def skips_empty(values: list[int]) -> None:
        if sum(values) > 2:
            count(values)

    assert "passages" in compare(lambda: skips_empty(DATA), lambda: skips_empty(NEIGHBOUR)).faults[0]


def test_an_error_on_one_side_only_is_named() -> None:
    def raises(values: list[int]) -> None:
        if sum(values) > 2:
            raise ValueError("too many")

    assert "no error" in compare(lambda: raises(DATA), lambda: raises(NEIGHBOUR)).faults[0]


def test_calls_that_bring_nothing_to_the_gate_are_no_proof() -> None:
    def broken() -> None:
        raise ValueError("a slip in the test")

    assert "nothing was compared" in compare(broken, broken).faults[0]


def test_a_vector_is_compared_in_its_norm() -> None:
    def pair(values: list[float]) -> object:
        allotment = Ledger.in_memory(PureDP(1)).charge(PureDP(1), task="pair")
        claim = Sensitivity(1.5, Norm.L1, Relation.REPLACE_ONE, "test")
        return laplace(Query(np.asarray(values), claim, "pair"), allotment, PureDP(1))

    assert compare(lambda: pair([0.0, 0.0]), lambda: pair([1.0, 1.0])).violated
    assert not compare(lambda: pair([0.0, 0.0]), lambda: pair([0.75, 0.75])).violated


def test_a_durable_ledger_does_not_serve_a_recording(tmp_path) -> None:
    ledger = Ledger.create(tmp_path / "study.ledger", budget=PureDP(1))
    with ledger:
        audit = compare(lambda: ledger.charge(PureDP(0.1), task="x"), lambda: None)
        assert audit.violated and "LedgerError" in audit.faults[0]
        assert math.isclose(ledger.remaining.epsilon or 0, 1)


def test_an_exact_number_beside_the_noisy_one_is_named() -> None:
    def with_exact(values: list[int]) -> tuple[int, dict[str, object]]:
        return count(values), {"rows": len(values), "mean": np.mean(values)}

    assert "returned differs" in compare(lambda: with_exact(DATA), lambda: with_exact(NEIGHBOUR)).faults[0]
    assert not compare(lambda: with_exact(DATA), lambda: with_exact(DATA[::-1])).violated


@dataclass(frozen=True)
class PublicTableInfo:
    noisy: int
    beside: Any


@pytest.mark.parametrize(
    ("one", "other"), [(0.0, -0.0), (2**60, 2**60 + 1), (PublicTableInfo(1, [1]), PublicTableInfo(1, [2])), (1, 1.0)]
)
def test_what_a_dataclass_holds_beside_the_answer_is_compared_to_the_last_bit(one: Any, other: Any) -> None:
    for a, b in ((one, other), (other, one)):
        audit = compare(lambda a=a: PublicTableInfo(count(DATA), a), lambda b=b: PublicTableInfo(count(NEIGHBOUR), b))
        assert "returned differs" in audit.faults[0]
    assert not compare(
        lambda: PublicTableInfo(count(DATA), one), lambda: PublicTableInfo(count(NEIGHBOUR), one)
    ).violated


@pytest.mark.parametrize("public", [float("nan"), None, "text", np.array([1.0, np.nan]), [1, (2.5, True)], object()])
def test_the_same_public_words_beside_an_answer_stand(public: object) -> None:
    assert not compare(lambda: (count(DATA), public), lambda: (count(NEIGHBOUR), public)).violated
