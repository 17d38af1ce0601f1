"""A first study file: the columns' names are read off the data, and nothing else; bounds and levels are asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

from dpcausal.data.cleaning import is_writable
from dpcausal.data.source import Source
from dpcausal.errors import ParameterError

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
RANGE = re.compile(rf"({NUMBER})\s*\.\.\s*({NUMBER})")

QUESTIONS = """
# Questions, each paid from the budget; arguments go by their Python names.  Tasks: direction, ci_test, discover,
# effect, synthetic_control, ...  Uncomment one, fill it in, and run: dpcausal plan {file}
# [[question]]
# name = "linked"
# task = "ci_test"
# x = {x}
# y = {y}
# given = []
# epsilon = 0.5
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
    from dpcausal.data.files import TEXTS, file_source

    source: Source = file_source(data)
    names = list(source.names)
    if not all(map(is_writable, names)):
        raise ParameterError(
            f"the columns' names in {fspath(data)!r} are no UTF-8 text, or have line breaks: save the file as UTF-8"
        )
    if not fspath(data).lower().endswith(TEXTS):
        return names
    others = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
    told = next((word for mark, word in others.items() if len(names) == 1 and mark in names[0]), None)
    if told is not None:
        raise ParameterError(
            f"the first line of {fspath(data)!r} is one field with {told} in it: fields of a CSV file are separated by "
            "commas, of a TSV file by tabs; save it so"
        )
    named = names[1:] if len(names) > 1 and not names[0] else names
    if not header and any(NO_NAME.fullmatch(name.strip()) for name in named):
        raise ParameterError(
            f"the first line of {fspath(data)!r} looks like a record: a field is empty, a number or a date; nothing "
            "of it is shown. Add a line with the columns' names; if these are their names, say --header"
        )
    return names


def declared(words: str) -> dict[str, Any] | None:
    """Return the declaration that an answer means; ``None`` leaves the column out.

    Examples
    --------
    >>> declared("0..110"), declared("no, yes"), declared("0, 1"), declared("")
    ({'lower': 0.0, 'upper': 110.0}, {'levels': ['no', 'yes']}, {'levels': [0, 1]}, None)
    >>> declared("0..110; missing 999, .")
    {'lower': 0.0, 'upper': 110.0, 'missing': [999, '.']}
    """
    text, given, codes = words.partition("; missing ")
    if given:
        column = declared(text)
        listed = [part.strip() for part in codes.split(",")]
        if column is None or not all(listed):
            raise ParameterError("write the bounds or levels first, then the codes: 0..110; missing 999, -9")
        return column | {"missing": [int(one) if re.fullmatch(r"[+-]?\d{1,18}", one) else one for one in listed]}
    text = text.strip()
    if not text:
        return None
    found = RANGE.fullmatch(text)
    if found is not None:
        lower, upper = float(found[1]), float(found[2])
        if not lower < upper:
            raise ParameterError("the first number must be below the second")
        return {"lower": lower, "upper": upper}
    levels = [part.strip() for part in text.split(",")]
    if not all(levels) or len(set(levels)) < len(levels) or len(levels) < 2:
        raise ParameterError("write two numbers as 0..110, or different levels as no, yes")
    if all(re.fullmatch(r"[+-]?\d{1,18}", level) for level in levels):
        return {"levels": [int(level) for level in levels]}
    return {"levels": levels}


def draft(
    data: str | PathLike[str], title: str, columns: Mapping[str, Mapping[str, Any]], *, person: str | None,
    epsilon: float, delta: float, file: str = "study.toml",
) -> str:  # fmt: skip
    """Return the text of a study file."""
    name = fspath(data)
    stem = re.sub(r"[^\w-]", "_", file.removesuffix(".toml"))
    lines = [f"title = {_text(title)}", f"data = {_text(name)}"]
    lines += [f"person = {_text(person)}"] if person else []
    lines += [f"ledger = {_text(stem + '.ledger')}", f"budget = {{ epsilon = {epsilon!r}, delta = {delta!r} }}"]
    for column, told in columns.items():
        lines += ["", f"[columns.{_text(column)}]", *(f"{key} = {_value(value)}" for key, value in told.items())]
    first = [*columns, "x", "y"]
    return "\n".join(lines) + "\n" + QUESTIONS.format(file=file, x=_text(first[0]), y=_text(first[1]))


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_value(part) for part in value)}]"
    return _text(value) if isinstance(value, str) else repr(value)
