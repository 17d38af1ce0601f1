"""TOML as users write it: read whole, or refused by a sentence that quotes nothing but its place."""

import re
import tomllib
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from dpcausal.errors import DpCausalError, ParameterError

DEEPEST = 20
"""Tables and lists may stand so deep in each other."""

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""What moves a terminal's cursor, colours its text or turns its direction: line breaks and tabs are not among them."""


_LONG_KEY = re.compile(r"(?:[\w-]{1,200}[ \t]*\.[ \t]*){50}")


def text_of(path: str | PathLike[str], hint: str = "", error: type[DpCausalError] = ParameterError) -> str:
    """Return the text of a file; ``hint`` says how to make one that is not there."""
    # A bare number would be taken for a file descriptor, and that file closed after reading.
    if not isinstance(path, (str, PathLike)) or not isinstance(fspath(path), str):
        raise error("the path of a file of text must be text or a path")
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        rule, text = "no-file", f"there is no file {fspath(path)!r}"
    except (OSError, ValueError):  # a ValueError: no UTF-8, or a path that no file can have
        rule, text, hint = "encoding", f"{fspath(path)!r} cannot be read as a text file in UTF-8", ""
    raise error(text, argument=fspath(path), rule=rule, hint=hint)


def toml_in(text: str, what: str, error: type[DpCausalError] = ParameterError) -> dict[str, Any]:
    """Return the tables of a text; ``what`` names it where it is refused.

    >>> toml_in("a = [1, 2]", "the text")
    {'a': [1, 2]}
    """
    rule, read = "", dict[str, Any]()
    try:
        if _LONG_KEY.search(text):  # the parser takes minutes for it
            raise RecursionError
        read = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        place = re.search(r"\(at [^()]*\)$", str(problem))  # the rest may quote the text
        rule = f"is not TOML {'' if place is None else place[0]}".rstrip()
    except ValueError:  # a number or date that Python does not hold
        rule = "is not TOML: it has a number that is too long, or a date that there is not"
    except RecursionError:
        rule = _DEEP
    rule = rule or _rule_broken(read)
    if rule:
        raise error(f"{what} {rule}")
    return read


_DEEP = f"nests tables or lists more than {DEEPEST} deep"


def _rule_broken(read: dict[str, Any]) -> str:
    level: list[Any] = [read]
    for _ in range(DEEPEST):
        parts: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                parts += [*one, *one.values()]
            elif isinstance(one, list):
                parts += one
        if any(isinstance(one, str) and CONTROL.search(one) for one in parts):
            return "has a name or text with a control character: leave it out"
        level = [one for one in parts if isinstance(one, (dict, list))]
    return _DEEP if level else ""


def escaped(text: str) -> str:
    r"""Return a text as a terminal can show it: control characters as their numbers, which JSON reads back.

    >>> escaped("\x1b[31mred")
    '\\u001b[31mred'
    """
    return CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
