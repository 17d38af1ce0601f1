"""Options of the command from fields and docstrings: of methods, of plans, of the tasks' own arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from importlib import import_module
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from dpcausal.errors import ParameterError, nearest

if TYPE_CHECKING:
    from dpcausal.core.method import Method

    Kinds = Mapping[str, type[Method[Any]]]

METHODS_OF = {
    "direction": "dpcausal.direction.methods", "discovery": "dpcausal.discovery.methods",
    "effects": "dpcausal.effects.estimators", "independence": "dpcausal.independence.methods",
    "synthetic_control": "dpcausal.synthetic_control.methods",
}  # fmt: skip
"""Where a room has its methods."""

MODEL_X = "model_x"


def methods_of(room: str) -> Kinds:
    """Return what ``--method`` takes: a room's own methods, and those of the papers."""
    from dpcausal.papers import BY_TASK

    return {**import_module(METHODS_OF[room]).METHODS, **BY_TASK.get(room, {})}


def parameter(name: str, kind: Any, text: str, default: Any = None) -> inspect.Parameter:
    annotation = Annotated[kind, typer.Option(help=text)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def with_parameters(parameters: list[inspect.Parameter], run: Callable[..., None]) -> Callable[..., None]:
    """Return a function of any keywords as one of these parameters."""
    parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    setattr(run, "__signature__", inspect.Signature(parameters))  # noqa: B010
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def method_options(kinds: Kinds) -> list[inspect.Parameter]:
    takers: dict[str, list[str]] = {}
    types: dict[str, Any] = {}
    helps: dict[str, str] = {}
    for name, kind in kinds.items():
        hints = get_type_hints(kind)
        for field in fields(kind):
            plain = plain_type(hints[field.name])
            if plain is not None and name != "auto":
                takers.setdefault(field.name, []).append(name)
                types[field.name] = plain
                helps.setdefault(field.name, described(kind, field.name))
    return [
        parameter(name, plain | None, f"{helps[name]} Of {', '.join(takers[name])}.") for name, plain in types.items()
    ]


def method_parameters(kinds: Kinds) -> list[inspect.Parameter]:
    """Return ``--method`` and the options of its methods; none for a task with one method."""
    if not kinds:
        return []
    names = ", ".join(dict.fromkeys(("auto", *kinds)))
    return [parameter("method", str, f"{names}.", "auto"), *method_options(kinds)]


def build_method(kinds: Kinds, name_of_method: str, options: Mapping[str, Any]) -> Any:
    """Return the method, its options filled; without options the short name, so that the task may choose."""
    given = {name: value for name, value in options.items() if value is not None}
    kind = kinds.get(name_of_method)
    if kind is None and name_of_method != "auto":
        known_names = dict.fromkeys(("auto", *kinds))
        text = f"--method must be one of {', '.join(known_names)}{nearest(name_of_method, known_names)}"
        raise ParameterError(text, argument="method", rule="choice", value=name_of_method)
    known = set() if kind is None else {field.name for field in fields(kind)}
    for name in given:
        if name not in known:
            takers = [other for other, one in kinds.items() if name in {field.name for field in fields(one)}]
            methods = " or ".join(dict.fromkeys(other for other in takers if other != "auto"))
            text = f"--{name.replace('_', '-')} goes with --method {methods}"
            raise ParameterError(text, argument=name, rule="misplaced-option", value=given[name])
    if kind is None or not given:
        return "auto" if kind is None or name_of_method == "auto" else kind()
    return kind(**given | ({MODEL_X: _model_x(given[MODEL_X])} if MODEL_X in given else {}))


def _model_x(text: str) -> Any:
    from dpcausal.data.toml_text import toml_in

    if "=" not in text:
        return text
    try:
        return toml_in(f"model = {{ {text} }}", "--model-x")["model"]
    except ParameterError:
        examples = "'mean = { intercept = 1, age = 0.5 }, sd = 2', or 'table = [[0.9, 0.1], [0.4, 0.6]]', or fit"
        text = f"--model-x is written as {examples}"
        raise ParameterError(text, argument=MODEL_X, rule="model-x") from None


def plain_type(hint: Any) -> Any:
    """Return what a command line can give for a field: a whole number, a number, a word; None for objects."""
    if hint is Any:
        return str
    if get_origin(hint) is Literal:
        return str
    if get_origin(hint) is UnionType or str(get_origin(hint)) == "typing.Union":
        parts = [part for part in get_args(hint) if part is not type(None)]
        if any(getattr(part, "__name__", "") == "ModelX" for part in parts):
            return str
        return str if str in parts else plain_type(parts[0]) if len(parts) == 1 else None
    return hint if hint in (int, float, str, bool) else None


def described(owner: Any, name: str) -> str:
    """Return the first sentence that a docstring of numpydoc's form has about a field or argument."""
    for base in owner.__mro__ if isinstance(owner, type) else (owner,):
        text = inspect.cleandoc(base.__doc__ or "")
        match = re.search(rf"^(?:[\w, ]*\b)?{name}\b[\w, ]* : .*\n((?:    .*\n?)+)", text, re.MULTILINE)
        if match:
            sentence = " ".join(match[1].split()).split(". ")[0].split("; ")[0].rstrip(".").replace("``", "")
            return f"{sentence}."
    return ""
