"""The first draft of a study file: column names, declarations from what is typed, and the file's text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

from dpcausal.data.coding import is_writable
from dpcausal.data.source import Source
from dpcausal.errors import ParameterError

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
RANGE = re.compile(rf"({NUMBER})\s*(?:\.\.|to)\s*({NUMBER})")

QUESTIONS = """
# Each question is paid from the budget. Tasks: effect, ci_test, discover, direction, did, discontinuity, ...
# Arguments have the names of the Python functions. To add a question, remove the marks and fill it in.
# [[question]]
# name = "association"
# task = "ci_test"
# x = {x}
# y = {y}
# given = []
# epsilon = 0.5

# For the report: label = "...", unit = "...", source = "..." under a column, and
# [design]
# type = "randomised"
"""


NO_NAME = re.compile(
    r"(?i)[\W\d_]*|[-+]?(inf|infinity|nan)|[-+\d.,]+e[-+]?\d+|na|n/a|null|none|true|false|yes|no"
    r"|\d{4}-?\d\d-?\d\d[t ].*|\d{1,4}[-/. ]+(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[-/. ,]+\d{1,4}.*"
)
"""What a field of a record is, and hardly a column's name: nothing, a number, a date, a code of what is missing."""


def names_of(data: str | PathLike[str], header: bool = False) -> list[str]:
    """Return the names of a file's columns; of a text file, unless ``header``, only if they look like names.

    A file without a header has the first record in their place: nothing of it is quoted.  The first column may be
    nameless, as an index is.
    """
    from dpcausal.data.sources.files import TEXTS, file_source

    source: Source = file_source(data)
    names = list(source.names)
    of_text = fspath(data).lower().endswith(TEXTS)
    others = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
    single = of_text and len(names) == 1
    separator = next((label for mark, label in others.items() if single and mark in names[0]), None)
    if separator is not None:
        raise ParameterError(
            f"the first line of {fspath(data)!r} is one field with {separator} in it: separate fields of a CSV file "
            "by commas, of a TSV file by tabs"
        )
    if not all(map(is_writable, names)):
        raise ParameterError(
            f"the columns' names in {fspath(data)!r} are no UTF-8 text, or have control characters or line breaks: "
            "rename them, or save the file as UTF-8"
        )
    if not of_text:
        return names
    named = names[1:] if len(names) > 1 and not names[0] else names
    if not header and any(NO_NAME.fullmatch(name.strip()) for name in named):
        raise ParameterError(
            f"the first line of {fspath(data)!r} looks like a record: a field is empty, a number or a date; nothing "
            "of it is shown. Add a line with the columns' names; if these are their names, say --header"
        )
    return names


def declared(answer: str) -> dict[str, Any] | None:
    """Return the declaration that an answer means; ``None`` leaves the column out.

    Examples
    --------
    >>> declared("0..110"), declared("no, yes"), declared("0, 1"), declared("")
    ({'lower': 0.0, 'upper': 110.0}, {'levels': ['no', 'yes']}, {'levels': [0, 1]}, None)
    >>> declared("0..110; missing 999, .")
    {'lower': 0.0, 'upper': 110.0, 'missing': [999, '.']}
    """
    text, given, codes = answer.partition("; missing ")
    if given:
        column = declared(text)
        listed = [part.strip() for part in codes.split(",")]
        if column is None or not all(listed):
            raise ParameterError("Write the values first, then the codes: 0..110; missing 999, -9", rule="codes")
        return column | {"missing": [int(one) if re.fullmatch(r"[+-]?\d{1,18}", one) else one for one in listed]}
    text = text.strip()
    if not text:
        return None
    match = RANGE.fullmatch(text)
    if match is not None:
        lower, upper = float(match[1]), float(match[2])
        if not lower < upper:
            raise ParameterError("The first number must be below the second", rule="bounds")
        return {"lower": lower, "upper": upper}
    levels = [part.strip() for part in text.split(",")]
    if not all(levels) or len(set(levels)) < len(levels) or len(levels) < 2:
        text = "Need two numbers (0..52) or at least two categories (no, yes)"
        raise ParameterError(text, rule="declaration")
    if all(re.fullmatch(r"[+-]?\d{1,18}", level) for level in levels):
        return {"levels": [int(level) for level in levels]}
    return {"levels": levels}


def draft(
    data: str | PathLike[str], title: str, columns: Mapping[str, Mapping[str, Any]], *, person: str | None,
    epsilon: float, delta: float, file: str = "study.toml", question: Mapping[str, Any] | None = None,
) -> str:  # fmt: skip
    """Return the text of a study file."""
    name = fspath(data)
    stem = "".join(one if one.isalnum() or one in "_-" else "_" for one in file.removesuffix(".toml"))
    lines = [f"title = {_text(title)}", f"data = {_text(name)}"]
    lines += [f"person = {_text(person)}"] if person else []
    lines += [f"ledger = {_text(stem + '.ledger')}", f"budget = {{ epsilon = {epsilon!r}, delta = {delta!r} }}"]
    for column, declaration in columns.items():
        lines += ["", f"[columns.{_text(column)}]", *(f"{key} = {_value(value)}" for key, value in declaration.items())]
    if question:
        lines += ["", "[[question]]", *(f"{key} = {_value(value)}" for key, value in question.items())]
    first = [*columns, "x", "y"]
    return "\n".join(lines) + "\n" + QUESTIONS.format(file=file, x=_text(first[0]), y=_text(first[1]))


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_value(part) for part in value)}]"
    return _text(value) if isinstance(value, str) else repr(value)
