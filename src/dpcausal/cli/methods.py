"""``--method`` and the options of the methods, read off their fields: a new option of a method needs nothing here."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import wraps
from types import UnionType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from dpcausal.asking.method import Method
from dpcausal.errors import ParameterError

Kinds = Mapping[str, type[Method[Any, Any]]]


def takes_method(kinds: Kinds) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command ``--method`` and an option for each field of the methods that a word or number can fill.

    The command's function has a parameter ``method`` and gets the object.

    Parameters
    ----------
    kinds : mapping
        Methods by short name; "auto", the default, need not be among them: the task then chooses.
    """
    takers: dict[str, list[str]] = {}
    types: dict[str, Any] = {}
    helps: dict[str, str] = {}
    for name, kind in kinds.items():
        hints = get_type_hints(kind)
        for field in fields(kind):
            plain = _plain_type(hints[field.name])
            if plain is not None and name != "auto":
                takers.setdefault(field.name, []).append(name)
                types[field.name] = plain
                helps.setdefault(field.name, _described(kind, field.name))

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**arguments: Any) -> None:
            given = {name: arguments.pop(name) for name in types}
            command(**{**arguments, "method": _Asked(kinds, arguments["method"], given)})

        signature = inspect.signature(command, eval_str=True)
        parameters = [one for one in signature.parameters.values() if one.name != "method"]
        extra = [_parameter("method", str, f"{', '.join(dict.fromkeys(('auto', *kinds)))}.", "auto")]
        extra += [
            _parameter(name, plain | None, f"{helps[name]} Of {', '.join(takers[name])}.", None)
            for name, plain in types.items()
        ]
        setattr(run, "__signature__", signature.replace(parameters=[*parameters, *extra]))  # noqa: B010
        run.__annotations__ = {one.name: one.annotation for one in (*parameters, *extra)}
        del run.__wrapped__
        return run

    return decorate


class _Asked:
    """A method by the words of a command line; ``built`` makes it, inside the command's own handling of errors."""

    def __init__(self, kinds: Kinds, name: str, given: Mapping[str, Any]) -> None:
        self._kinds, self.name = kinds, name
        self.given = {name: value for name, value in given.items() if value not in (None, [])}

    def built(self) -> Any:
        """Return the method, its options filled; without options the short name, so that the task may choose."""
        kind = self._kinds.get(self.name)
        if kind is None and self.name != "auto":
            raise ParameterError(f"--method must be one of {', '.join(dict.fromkeys(('auto', *self._kinds)))}")
        known = set() if kind is None else {field.name for field in fields(kind)}
        for name in self.given:
            if name not in known:
                takers = [other for other, one in self._kinds.items() if name in {field.name for field in fields(one)}]
                told = " or ".join(dict.fromkeys(other for other in takers if other != "auto"))
                raise ParameterError(f"--{name.replace('_', '-')} goes with --method {told}")
        if kind is None or not self.given:
            return "auto" if kind is None or self.name == "auto" else kind()
        # One number given once is a number, several are the tuple to choose from.
        return kind(**{name: _one_or_several(value) for name, value in self.given.items()})


def _one_or_several(value: Any) -> Any:
    return (value[0] if len(value) == 1 else tuple(value)) if isinstance(value, list) else value


def _parameter(name: str, kind: Any, text: str, default: Any) -> inspect.Parameter:
    annotation = Annotated[kind, typer.Option(help=text)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _plain_type(hint: Any) -> Any:
    """Return what a command line can give for a field: a whole number, a number, a word, numbers; None for objects."""
    if hint is Any:
        return str
    if get_origin(hint) is Literal:
        return str
    if get_origin(hint) is UnionType or str(get_origin(hint)) == "typing.Union":
        parts = [part for part in get_args(hint) if part is not type(None)]
        if any(get_origin(part) is tuple for part in parts):
            return list[float]
        return str if str in parts else _plain_type(parts[0]) if len(parts) == 1 else None
    return hint if hint in (int, float, str, bool) else None


def _described(kind: type, name: str) -> str:
    """Return what a method's docstring says of a field, in its first sentence."""
    for base in kind.__mro__:
        text = inspect.cleandoc(base.__doc__ or "")
        found = re.search(rf"^(?:[\w, ]*\b)?{name}\b[\w, ]* : .*\n((?:    .*\n?)+)", text, re.MULTILINE)
        if found:
            words = " ".join(found[1].split())
            return words.split(". ")[0].split("; ")[0].rstrip(".").replace("``", "") + "."
    return ""
