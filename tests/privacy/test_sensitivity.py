"""Sensitivity: bounds that cannot round down; Query: an answer that does not show."""

import copy
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcausal.errors import FenceError, HiddenAnswerError, ParameterError
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity, Unit, conditional_change


def bounded(bound: Any = 1.0, norm: Norm = Norm.L1, **options: Any) -> Sensitivity:
    return Sensitivity(bound, norm, Relation.REPLACE_ONE, "kendall-tau", **options)


@settings(deadline=None)
@given(st.fractions(min_value=Fraction(1, 10**200), max_value=10**200))
def test_the_float_of_a_bound_is_the_least_that_is_not_below_it(bound: Fraction) -> None:
    up = bounded(bound).rounded_up
    assert Fraction(up) >= bound
    assert Fraction(math.nextafter(up, 0)) < bound
    assert bounded(2**53 + 1).rounded_up == 2.0**53 + 2 and bounded(0.1).rounded_up == 0.1


def test_numpy_numbers_become_numbers_that_do_not_wrap() -> None:
    bound = bounded(np.int64(2**62)).bound
    assert type(bound) is int and Fraction(bound) * 10**30 == 2**62 * 10**30
    assert type(bounded(np.float32(0.5)).bound) is float
    assert type(bounded(np.float64(0.5)).bound) is float
    assert type(bounded(Fraction(1, 3)).bound) is Fraction


@pytest.mark.parametrize(
    "bound",
    [
        0, 0.0, -1, -1e-9, math.nan, math.inf, True, np.bool_(True), "1", None, 1j, np.float32("inf"), Fraction(0),
        Fraction(-1, 3), Fraction(1, 10**400), 10**400, 5e-324,
    ],
    ids=repr,
)  # fmt: skip
def test_a_bound_is_a_positive_finite_number(bound: Any) -> None:
    with pytest.raises(ParameterError):
        bounded(bound)


def test_a_bound_names_its_proof() -> None:
    with pytest.raises(ParameterError):
        Sensitivity(1, Norm.L1, Relation.REPLACE_ONE, "")
    assert bounded().unit is Unit.ROW
    with pytest.raises(AttributeError):
        bounded().bound = 0.5  # type: ignore[misc]


CANARY = 918273645.5
ANSWERS: dict[str, Any] = {
    "number": CANARY, "integer": 918273645, "vector": np.array([CANARY, 1.0]), "integers": np.array([[918273645], [7]]),
    "float32": np.float32(CANARY), "masked": np.ma.array([CANARY, 1.0], mask=[True, False]),
}  # fmt: skip


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_the_answer_does_not_show(answer: Any) -> None:
    query = Query(answer, bounded(), "margin")
    for text in (repr(query), str(query), f"{query}", f"{query!r:>3}", ascii(query), repr([query]), repr({"q": query})):
        assert "9182736" not in text and "918_273" not in text
        assert "margin" in text
    with pytest.raises(TypeError):
        vars(query)


def test_two_queries_are_equal_only_if_they_are_one() -> None:
    one, same = (Query(CANARY, bounded(), "margin") for _ in range(2))
    assert one != same and one == one
    assert one != CANARY and (one == CANARY) is False
    assert hash(one) != hash(same)
    with pytest.raises(TypeError):
        _ = one < same  # type: ignore[operator]
    for convert in (float, int, len, list, json.dumps):
        with pytest.raises(TypeError):
            convert(one)  # type: ignore[operator]
    assert np.asarray(one).dtype == object


def test_a_query_refuses_to_be_pickled_or_copied_or_to_tell_its_state() -> None:
    query = Query(CANARY, bounded(), "margin")
    for leave in (
        lambda: copy.copy(query), lambda: copy.deepcopy([query]), lambda: query.__reduce_ex__(4),
        lambda: query.__getstate__(), lambda: object.__reduce_ex__(query, 4),
    ):  # fmt: skip
        with pytest.raises(HiddenAnswerError) as refused:
            leave()
        assert "9182736" not in str(refused.value)


@pytest.mark.parametrize(
    "answer",
    [
        math.nan, math.inf, np.array([1.0, -math.inf]), np.longdouble("1e4000"), True, np.array([True]), "1", None, 1j,
        [None], {}, 2**63, 2**70, np.uint64(1), np.array([1.0], dtype=object), np.datetime64("2020-01-01"),
        np.timedelta64(1, "s"), np.ma.array([math.nan, 1.0], mask=[True, False]),
    ],
    ids=repr,
)  # fmt: skip
def test_an_answer_that_is_not_finite_or_not_a_number_is_refused_without_being_told(answer: Any) -> None:
    with pytest.raises(FenceError) as refused:
        Query(answer, bounded(), "margin")
    assert str(refused.value) == "the answer of 'margin' must be int64 or finite float64: a statistic is total"
    # The frame that raised holds no data.
    frame = refused.tb.tb_next
    assert frame is not None and frame.tb_next is None
    assert set(frame.tb_frame.f_locals) <= {"self", "sensitivity", "label", "hidden"}
    assert frame.tb_frame.f_locals["hidden"] is None


def test_the_answer_is_a_copy_of_what_was_given_and_its_shape_and_kind_are_public() -> None:
    array = np.array([1.0, 2.0])
    query = Query(array, bounded(), "margin")
    array[0] = 5.0
    assert query._answer.tolist() == [1.0, 2.0] and query.shape == (2,) and not query.integral
    with pytest.raises(ValueError, match="read-only"):
        query._answer[0] = 3.0


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32])
def test_integers_of_any_width_become_int64(dtype: Any) -> None:
    query = Query(np.array([np.iinfo(dtype).max]), bounded(), "counts")
    assert query.integral and query._answer.dtype == np.int64
    assert query._answer.tolist() == [np.iinfo(dtype).max]


CHANGES: dict[str, tuple[Norm, Any, Any, float]] = {
    "distances that move": (Norm.TESTED, [5, 7, 0.3], [4, 9, 0.3], 2.0),
    "a value beside distances of at most one": (Norm.TESTED, [1, 0, 0.0], [1, 1, 9.0], 1.0),
    "a value beside a distance of two on one side": (Norm.TESTED, [2, 0, 0.0], [1, 1, 9.0], 9.0),
    "a value beside one distance": (Norm.TESTED, [2, 0.0], [1, 0.5], 1.0),
    "an answer that is no number": (Norm.TESTED, [2, 2, math.nan], [2, 2, 0.0], math.inf),
    "answers of two shapes": (Norm.TESTED, [2, 2, 0.0], [2, 0.0], math.inf),
    "another norm": (Norm.L1, [2, 2.0], [2, 0.0], math.inf),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_change_is_what_the_condition_says(name: str) -> None:
    norm, one, other, change = CHANGES[name]
    assert conditional_change(one, other, norm) == conditional_change(np.array(other), np.array(one), norm) == change
