"""Guarantees and results in words, JSON and frames."""

import dataclasses
import json
import sys
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import MissingDependencyError
from dpcausal.result import MEANS, Guarantee, Result, explain_terms, plain


class Colour(Enum):
    RED = "red"


@dataclasses.dataclass(frozen=True)
class Answer(Result):
    value: float
    several: tuple[float, ...]
    guarantee: Guarantee

    def headline(self) -> list[str]:
        return [f"The answer is {self.value:g}."]


def guarantee(ledger: dpc.Ledger | None = None, loss: Any = None, **options: Any) -> Guarantee:
    ledger = ledger or dpc.Ledger.in_memory(dpc.ApproxDP(5, 1e-3))
    allotment = ledger.charge(loss or dpc.PureDP(0.5), task="test", **options)
    return Guarantee.of(allotment, proofs=("laplace",), caveats=("the weather",), public=("n",))


def test_a_guarantee_says_what_was_allotted() -> None:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1), protect="test")
    found = guarantee(ledger, unit=dpc.Unit.TEST_ROW)
    assert found.loss == dpc.PureDP(0.5) and found.unit is dpc.Unit.TEST_ROW and found.private
    assert found.relation is dpc.Relation.REPLACE_ONE and found.ledger_head == ledger.head
    text = "\n".join(found.lines())
    for part in ("ε = 0.5", "replace-one", "row of the test half", "the weather", "laplace", ledger.head):
        assert part in text


@pytest.mark.parametrize(
    ("made", "first", "caveat"),
    [
        (lambda: guarantee(unproven=True), "stated loss ε = 0.5", "proof of the published variant fails"),
        (lambda: guarantee(dpc.Ledger.without_privacy(), dpc.NoPrivacy()), "exact answer", "no privacy"),
    ],
)
def test_what_is_not_private_says_so_first(made: Any, first: str, caveat: str) -> None:
    answer = Answer(3.5, (), made())
    lines = answer.details().splitlines()
    assert lines[0].startswith("NOT PRIVATE") and caveat in lines[0] and lines[1] == "The answer is 3.5."
    assert "NONE" in lines[2] and first in lines[2]


def test_a_private_answer_comes_first_and_simulated_noise_before_it() -> None:
    assert Answer(3.5, (), guarantee()).details().splitlines()[0] == "The answer is 3.5."
    with dpc.simulated_noise(3):
        answer = Answer(3.5, (), guarantee())
    assert "simulated" in answer.details().splitlines()[0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (dpc.PureDP(0.1), {"kind": "PureDP", "epsilon": 0.1}),
        (dpc.ApproxDP(1, 1e-6), {"kind": "ApproxDP", "epsilon": 1.0, "delta": 1e-6}),
        (dpc.ZCDP(0.5), {"kind": "ZCDP", "rho": 0.5}), (dpc.NoPrivacy(), {"kind": "NoPrivacy"}), (Colour.RED, "red"),
        (Fraction(1, 4), 0.25), (float("nan"), None), (float("-inf"), None), (np.float64("inf"), None),
        (np.int64(3), 3), (np.bool_(True), True), (np.array([[1.0, np.nan]]), [[1.0, None]]),
        ({1: (2, "x")}, {"1": [2, "x"]}), (frozenset({"b", "a"}), ["a", "b"]), (None, None), (True, True),
    ],
)  # fmt: skip
def test_values_become_those_of_json(value: object, expected: object) -> None:
    found = plain(value)
    assert found == expected and type(found) is type(expected)
    json.dumps(found, allow_nan=False)


def test_a_result_goes_to_json_and_a_frame() -> None:
    answer = Answer(float("nan"), (1.0, float("inf")), guarantee())
    assert json.loads(answer.to_json())["several"] == [1.0, None]
    frame = answer.to_frame()
    assert set(frame.columns) >= {"value", "loss", "unit", "private"} and "several" not in frame.columns
    assert frame.iloc[0]["loss"] == "PureDP(0.5)"


def test_a_frame_without_pandas_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r"dpcausal\[pandas\]"):
        Answer(1.0, (), guarantee()).to_frame()


def test_a_result_without_words_or_a_picture_says_so() -> None:
    class Silent(Result):
        pass

    with pytest.raises(TypeError, match="Silent has no headline"):
        Silent().headline()
    with pytest.raises(TypeError, match="Silent has no picture"):
        Silent().plot()


def test_a_word_that_not_everybody_knows_is_explained_where_it_stands_and_nowhere_else() -> None:
    assert explain_terms("nothing of that") == []
    for word in MEANS:
        (line,) = explain_terms(f"so and so many {word}")
        assert line.casefold().startswith(word.casefold())
