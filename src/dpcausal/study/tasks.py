"""The tasks by name, and how a question of a study file becomes a call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dpcausal.core.method import Method
from dpcausal.data.panels.panel import Panel
from dpcausal.data.subgroups.predicate import parse_predicates
from dpcausal.data.table import Table
from dpcausal.direction.api import direction, direction_all
from dpcausal.direction.methods import METHODS as DIRECTIONS
from dpcausal.discovery.api import discover
from dpcausal.discovery.knowledge import Knowledge
from dpcausal.discovery.methods import METHODS as GRAPHS
from dpcausal.effects.api import effect
from dpcausal.effects.cells.api import cells
from dpcausal.effects.did.api import did
from dpcausal.effects.estimators import METHODS as EFFECTS
from dpcausal.effects.moments.api import moments
from dpcausal.effects.rdd.api import discontinuity
from dpcausal.errors import ParameterError, nearest
from dpcausal.independence.api import ci_test, ci_tests
from dpcausal.independence.methods import METHODS as TESTS
from dpcausal.synthetic_control.api import synthetic_control, synthetic_controls
from dpcausal.synthetic_control.methods import METHODS as CONTROLS

if TYPE_CHECKING:
    from dpcausal.study.file import QuestionPart

Kinds = Mapping[str, type[Method[Any]]]

TASKS: dict[str, tuple[Callable[..., Any], Kinds]] = {
    "direction": (direction, DIRECTIONS), "direction_all": (direction_all, DIRECTIONS), "ci_test": (ci_test, TESTS),
    "ci_tests": (ci_tests, TESTS), "discover": (discover, GRAPHS), "effect": (effect, EFFECTS), "cells": (cells, {}),
    "moments": (moments, {}), "did": (did, {}), "discontinuity": (discontinuity, {}),
    "synthetic_control": (synthetic_control, CONTROLS),
    "synthetic_controls": (synthetic_controls, CONTROLS),
}  # fmt: skip
"""Every task that a study may ask: the function of the library, and its methods by short name."""

PANELS = ("synthetic_control", "synthetic_controls")
OWN = ("table", "panel", "loss", "method", "refresh", "misplaced", "accept_unproven")
ALSO = {"first": "x", "second": "y"}
"""What a study may call an argument as well."""


def check(question: QuestionPart) -> None:
    """Refuse a task or arguments that there are not, before any data is opened."""
    if question.task not in TASKS:
        raise ParameterError(f"task must be one of {', '.join(TASKS)}{nearest(question.task, TASKS)}")
    function, _ = TASKS[question.task]
    parameters = {name: one for name, one in inspect.signature(function).parameters.items() if name not in OWN}
    given = {_python_name(name, parameters) for name in question.arguments}
    unknown = sorted(given - set(parameters))
    if unknown:
        meant = nearest(unknown[0], parameters) or f"; it takes {', '.join(parameters)}"
        raise ParameterError(f"{question.task} has no argument {unknown[0]!r}{meant}")
    lacking = [name for name, one in parameters.items() if one.default is inspect.Parameter.empty and name not in given]
    if lacking:
        raise ParameterError(f"{question.task} needs {', '.join(ALSO.get(name, name) for name in lacking)}")


def ask(question: QuestionPart, subject: Table | Panel, refresh: bool = False) -> Any:
    function, _ = TASKS[question.task]
    if (question.task in PANELS) != isinstance(subject, Panel):
        raise ParameterError(f"{question.task} is asked of {'a [panel]' if question.task in PANELS else '[columns]'}")
    if question.where is not None:
        if isinstance(subject, Panel):
            raise ParameterError("a panel has no subgroups: leave where out")
        for column, arguments in parse_predicates(question.where):
            subject = subject.where(column, **arguments)
    parameters = inspect.signature(function).parameters
    arguments = {
        _python_name(name, parameters): _argument_value(name, value) for name, value in question.arguments.items()
    }
    if "method" in parameters:
        arguments["method"] = method_of(question)
    return function(subject, **arguments, loss=question.loss(), refresh=refresh)


def _python_name(name: str, parameters: Any) -> str:
    other = {alias: python for python, alias in ALSO.items()}.get(name, name)
    return other if name not in parameters and other in parameters else name


def _argument_value(name: str, value: Any) -> Any:
    if name == "knowledge":
        return knowledge_of(value)
    return [tuple(pair) for pair in value] if name in ("pairs", "hypotheses") and isinstance(value, list) else value


def knowledge_of(groups: Any, place: str = "knowledge") -> Knowledge:
    """Return background knowledge from text, which others wrote at a ``place``."""
    groups = groups if isinstance(groups, dict) else {"": groups}
    lists = all(isinstance(group, list) and all(isinstance(one, list) for one in group) for group in groups.values())
    if set(groups) - {"tiers", "forbidden", "required"} or not lists:
        text = f"{place} must hold tiers, forbidden and required, each a list of lists of names"
        raise ParameterError(text, argument="knowledge", rule="knowledge")
    return Knowledge(**{name: [tuple(part) for part in group] for name, group in groups.items()})


def method_of(question: QuestionPart) -> Any:
    given, kinds = question.method, TASKS[question.task][1]
    if isinstance(given, str):
        return given
    options = dict(given)
    name = options.pop("name", None)
    if not isinstance(name, str) or name not in kinds:
        raise ParameterError(f"method: name must be one of {', '.join(kinds)}")
    fitting = {key: tuple(one) if isinstance(one, list) else one for key, one in options.items()}
    known = set(inspect.signature(kinds[name]).parameters)
    unknown = sorted(set(fitting) - known)
    if unknown:
        raise ParameterError(f"method {name} has no option {unknown[0]!r}{nearest(unknown[0], known)}")
    return kinds[name](**fitting)
