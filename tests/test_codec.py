"""Stored values come back as they were, and only registered classes are stored."""

import json
import os
import pkgutil
import re
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from typing import Any

import pytest

import dpcausal as dpc
from dpcausal.codec import _CLASSES, _TAGS, NotStorableError, decode, encode, storable
from dpcausal.result import Result


def test_a_file_names_no_class_from_outside_the_library() -> None:
    for name in ("Popen", "Path", "os", "Thread"):
        with pytest.raises(LookupError):
            decode({"kind": name, "fields": {}})
        with pytest.raises(LookupError):
            decode({"enum": name, "value": 1})
    assert os.path.exists("/")


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -0.0, 1e-320, "é", (1, (2.5,)), [1, [True]], frozenset({("a", "b"), ("b", "c")}), {1: 2, "1": 3},
     {frozenset("ab"): 0.5}, dpc.ZCDP(0.1), dpc.ApproxDP(1, 1e-9), dpc.Unit.PERSON, float("inf")],
)  # fmt: skip
def test_values_come_back_as_they_were(value: Any) -> None:
    back = decode(json.loads(json.dumps(encode(value), allow_nan=False)))
    assert back == value and type(back) is type(value) and repr(back) == repr(value)


@dataclass(frozen=True)
class Unregistered:
    penalty: float = 1.0


def test_a_class_without_a_tag_is_not_stored() -> None:
    with pytest.raises(NotStorableError):
        encode((1, Unregistered()))


def test_a_tag_names_one_class_for_good() -> None:
    with pytest.raises(RuntimeError):
        storable("Guarantee")(Unregistered)


@pytest.mark.parametrize("name", ["Guarantee", "Effect", "Direction"])
def test_a_stored_class_with_an_unknown_or_missing_field_is_refused(name: str) -> None:
    for stored in ({}, {"loss": None, "more": 1}):
        with pytest.raises(ValueError):
            decode({"kind": name, "fields": stored})
    with pytest.raises((TypeError, ValueError)):
        decode({"enum": name, "value": {}})


def test_every_result_and_every_class_in_its_fields_has_a_tag() -> None:
    for module in pkgutil.walk_packages(dpc.__path__, "dpcausal."):
        if ".engines" not in module.name:
            import_module(module.name)
    by_name = {cls.__name__: cls for cls in _TAGS}
    todo, seen = [Result], set[Any]()
    while todo:
        cls = todo.pop()
        todo += [sub for sub in cls.__subclasses__() if sub.__module__.startswith("dpcausal.")]
        if cls in seen or not is_dataclass(cls):
            continue
        seen.add(cls)
        if not cls.__subclasses__():
            assert cls in _TAGS, cls
        words = {word for field in fields(cls) for word in re.findall(r"\w+", str(field.type))}
        todo += [by_name[word] for word in words & by_name.keys()]
    assert len(seen) >= 15 and set(_TAGS.values()) == set(_CLASSES)
