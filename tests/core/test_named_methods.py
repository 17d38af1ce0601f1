"""A method by its short name or as an object; a misplaced option names the object that takes it."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import dpcausal as dpc
from dpcausal.core.method import Method
from dpcausal.core.validate import choose_method, reject_misplaced_options
from dpcausal.errors import ParameterError


class Way(Method[Any]):
    def charge(self, loss: Any) -> Any:
        return loss, ""

    def claims(self, question: Any, spent: Any) -> tuple[str, ...]:
        return ()

    def release(self, *_: Any) -> Any:
        return None


@dataclass(frozen=True, kw_only=True)
class First(Way):
    name: ClassVar[str] = "first"

    blocks: int | None = None
    inside: Any = None


@dataclass(frozen=True, kw_only=True)
class Second(Way):
    name: ClassVar[str] = "second"

    width: float = 1.0


KNOWN: dict[str, type[Method[Any]]] = {"first": First, "second": Second}


def test_a_short_name_makes_the_object_and_an_object_is_taken_as_it_is() -> None:
    assert choose_method("second", Way, KNOWN) == Second()
    own = First(blocks=3)
    assert choose_method(own, Way, KNOWN) is own
    assert choose_method("auto", Way, {"auto": lambda: own, **KNOWN}) is own


@pytest.mark.parametrize("method", ["third", 3, None, Second, ["first"]])
def test_what_is_no_method_is_refused(method: Any) -> None:
    with pytest.raises(ParameterError, match="method must be"):
        choose_method(method, Way, KNOWN)


@pytest.mark.parametrize(
    ("method", "misplaced", "told"),
    [
        ("first", {"blocks": 4}, r"methods\.First\(blocks=4\)"),
        ("second", {"blocks": 4}, r"methods\.First\(blocks=4\)"),
        (Second(), {"width": [1]}, r"methods\.Second\(width=\.\.\.\)"),
        (3, {"width": "a"}, r"methods\.Second\(width='a'\)"),
        ("first", {"depth": 4}, "direction has no argument 'depth'"),
    ],
)
def test_a_misplaced_option_names_the_object_that_takes_it(method: Any, misplaced: Any, told: str) -> None:
    reject_misplaced_options({}, method, KNOWN, dpc.direction)
    with pytest.raises(ParameterError, match=told):
        reject_misplaced_options(misplaced, method, KNOWN, dpc.direction)


def test_a_method_inside_another_is_told_with_its_own_options() -> None:
    told = First(inside=Second(width=2.0)).options()
    assert told == {"blocks": None, "inside": {"method": "second", "width": 2.0}}
