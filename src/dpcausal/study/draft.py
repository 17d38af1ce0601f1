"""The first draft of a study file: column names, declarations from what is typed, and the file's text."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date
from os import PathLike, fspath
from typing import Any

from dpcausal.data.coding import is_writable
from dpcausal.data.files.formats import DataFile, is_text
from dpcausal.data.schema import Schema
from dpcausal.data.toml_text import toml_in
from dpcausal.errors import ParameterError, SchemaError
from dpcausal.study.file import Approvers, Disclosure

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
RANGE = re.compile(rf"({NUMBER})\s*(?:\.\.|to|-|–)\s*({NUMBER})")
DECIMAL_COMMAS = re.compile(r"-?\d+(?:,\d+)?\s*(?:\.\.|to|-|–)\s*-?\d+(?:,\d+)?")
DATES = re.compile(r"(\d{4}-\d\d-\d\d)\s*(?:\.\.|to|–)\s*(\d{4}-\d\d-\d\d)")
INTEGER = re.compile(r"[+-]?\d{1,18}")

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
# delta = 5e-7   # where Gaussian noise is wanted: did, moments, discover, and effect adjusted for numbers without cuts

# For the report, what only a person can say: remove the marks of what you fill in. All keys: 'dpcausal schema'."""
HEAD = """\
# A study of dpcausal: edit it freely. What follows a # is a comment. All of it becomes public.
# 'dpcausal check' finds data problems (not private), 'plan' foresees accuracy, 'run' answers, 'report' writes.
"""
LEDGER = """\
# The ledger records what was spent of the budget: all that is ever published from these data.
# delta is about the probability that the guarantee fails: much smaller than 1/number of people."""
DELTA = "   # allows Gaussian noise; part of the budget's delta"
COLUMNS = """\
# Allowed values of each column, from the questionnaire or codebook and not from the data. A column may also have
# missing = [999], cuts = [18, 40], other = "elsewhere", spellings = { F = "f" }, label, unit, source."""
STOPPED = "# Stopped at step {} of the questions. Go on: dpcausal init --resume {}\n"
NO_NAME = re.compile(
    r"(?i)[\W\d_]*|[-+]?(inf|infinity|nan)|[-+\d.,]+e[-+]?\d+|na|n/a|null|none|true|false|yes|no"
    r"|\d{4}-?\d\d-?\d\d[t ].*|\d{1,4}[-/. ]+(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[-/. ,]+\d{1,4}.*"
)
"""What a field of a record is, and hardly a column's name: nothing, a number, a date, a code of what is missing."""


def names_of(data: str | PathLike[str], header: bool = False) -> list[str]:
    """Return the names of a file's columns; of a text file, unless ``header``, only if they look like names. A file
    without a header has the first record in their place: nothing of it is quoted.  The first column may be nameless, as
    an index is."""
    from dpcausal.data.files.opening import file_source

    names = list(file_source(data).names)
    if not all(map(is_writable, names)):
        raise ParameterError(
            f"the columns' names in {fspath(data)!r} have control characters, line breaks or another encoding: rename "
            "them, or name the encoding"
        )
    named = names[1:] if len(names) > 1 and not names[0] else names
    if is_text(data) and not header and any(NO_NAME.fullmatch(name.strip()) for name in named):
        raise ParameterError(
            f"the first line of {fspath(data)!r} looks like a record: a field is empty, a number or a date; nothing "
            "of it is shown. Add a line with the columns' names; if these are their names, say --header"
        )
    return names


def declaration_of(answer: str) -> dict[str, Any] | None:
    """Return the declaration that an answer means; ``None`` leaves the column out.

    Examples
    --------
    >>> declaration_of("0..110"), declaration_of("m/f"), declaration_of("0, 1"), declaration_of("")
    ({'lower': 0.0, 'upper': 110.0}, {'levels': ['m', 'f']}, {'levels': [0, 1]}, None)
    >>> declaration_of("0-110; cuts 18, 40; missing 999, .")
    {'lower': 0.0, 'upper': 110.0, 'cuts': [18, 40], 'missing': [999, '.']}
    >>> declaration_of("2019-01-01 to 2019-12-31; by month")["period"]
    'month'
    """
    text, *more = (part.strip() for part in answer.split(";"))
    extra = dict[str, Any]()
    for part in more:
        key, _, listed = part.partition(" ")
        values = [one.strip() for one in listed.split(",")]
        if key not in ("missing", "cuts", "by") or not text or not all(values):
            raise ParameterError("Write the values first, then the codes: 0..110; missing 999, -9", rule="codes")
        extra |= {"period": listed.strip()} if key == "by" else {key: [_number_or_text(one) for one in values]}
    if not text:
        return None
    if (days := DATES.fullmatch(text)) is not None:
        try:
            first, last = map(date.fromisoformat, days.groups())
            Schema({"date": {"lower": first, "upper": last} | extra})
        except (ValueError, SchemaError):
            raise ParameterError("Write two dates: 2019-01-01 to 2019-12-31; by month", rule="bounds") from None
        return {"lower": first, "upper": last} | extra
    match = RANGE.fullmatch(text)
    if match is not None:
        lower, upper = float(match[1]), float(match[2])
        if not lower < upper:
            raise ParameterError("The first number must be below the second", rule="bounds")
        return {"lower": lower, "upper": upper} | extra
    if DECIMAL_COMMAS.fullmatch(text):
        raise ParameterError("Write two numbers with decimal points: 70.5..220", rule="bounds")
    levels = [part.strip() for part in text.split("," if "," in text else "/")]
    if not all(levels) or len(set(levels)) < len(levels) or len(levels) < 2 or "cuts" in extra:
        text = "Need two numbers (0..52), two dates (2019-01-01 to 2019-12-31) or at least two categories (no, yes)"
        raise ParameterError(text, rule="declaration")
    if all(INTEGER.fullmatch(level) for level in levels):
        return {"levels": [int(level) for level in levels]} | extra
    return {"levels": levels} | extra


def _number_or_text(text: str) -> int | float | str:
    if INTEGER.fullmatch(text):
        return int(text)
    return float(text) if re.fullmatch(NUMBER, text) else text


def draft(
    data: str | DataFile, title: str, columns: Mapping[str, Mapping[str, Any]], *, person: str | None,
    epsilon: float, delta: float, file: str = "study.toml", question: Mapping[str, Any] | None = None,
    design: Mapping[str, Any] | None = None, step: int | None = None,
) -> str:  # fmt: skip
    """Return the text of a study file; ``step``: that at which its questions were stopped."""
    stem = "".join(one if one.isalnum() or one in "_-" else "_" for one in file.removesuffix(".toml"))
    form = data.options if isinstance(data, DataFile) else {}
    head = HEAD if step is None else HEAD + STOPPED.format(step, file)
    lines = [*head.splitlines(), "", f"title = {_text(title)}", *([] if form else [f"data = {_text(fspath(data))}"])]
    lines += [f"person = {_text(person)}"] if person else []
    lines += ["", *LEDGER.splitlines(), f"ledger = {_text(stem + '.ledger')}"]
    lines += [f"budget = {{ epsilon = {epsilon!r}, delta = {delta!r} }}"]
    tables: list[tuple[str, Mapping[str, Any] | None]] = [("[data]", {"file": fspath(data), **form} if form else None)]
    tables += [("[design]", design), *((f"[columns.{_text(name)}]", one) for name, one in columns.items())]
    tables += [("[[question]]", question)]
    for name, table in tables:
        lines += ["", COLUMNS] if name.startswith("[columns") and COLUMNS not in lines else []
        lines += ["", name] if table else []
        lines += [f"{key} = {_value(value)}{DELTA if key == 'delta' else ''}" for key, value in (table or {}).items()]
    first = [*columns, "x", "y"]
    return "\n".join([*lines, QUESTIONS.format(x=_text(first[0]), y=_text(first[1])), *_report_parts()]) + "\n"


PARTS = {
    "treatment": "Treatment", "outcome": "Outcome", "adjust": "Adjusted for", "groups": "By group", "x": "First column",
    "y": "Second column", "given": "Given", "columns": "Columns",
}  # fmt: skip
"""Arguments of the questions of ``init``, as its summary names them."""
MOST_LEVELS = 6


def understood(entries: Mapping[str, Any]) -> list[str]:
    """Return what the answers of ``init`` mean: the question, who is protected, the budget, and what is to be edited.

    Examples
    --------
    >>> asked = {"task": "ci_test", "x": "a", "y": "b", "given": [], "epsilon": 0.5}
    >>> columns = {"a": {"levels": [0, 1]}, "b": {"levels": [0, 1], "label": "l", "source": "s"}}
    >>> print("\\n".join(understood({"question": asked, "columns": columns, "person": None, "epsilon": 1.0,
    ...                              "delta": 1e-6, "design": None})))
    Task          ci_test
    First column  a: 0, 1
    Second column b: 0, 1
    Given         nothing
    Protected     each row
    Budget        ε = 1, δ = 1e-06 in all; ε = 0.5 for this question
    To edit       label and source of a; [disclosure] and [approvers] for the report
    """
    question, columns, person = entries["question"] or {}, entries["columns"], entries["person"]
    rows = [("Task", question.get("task", "none yet: add a question at the end of the file"))]
    for key, title in PARTS.items():
        if key in question:
            names = question[key] if isinstance(question[key], list) else [question[key]]
            rows.append((title, "; ".join(_declared_text(name, columns[name], key) for name in names) or "nothing"))
    if (design := entries["design"]) is not None:
        within = f" within {', '.join(design['within'])}" if design.get("within") else ""
        rows.append(("Design", f"{design['type']}{within}"))
    rows.append(("Protected", f"each person with all their rows (column {person})" if person else "each row"))
    spent = [f"{symbol} = {question[key]:g}" for key, symbol in (("epsilon", "ε"), ("delta", "δ")) if key in question]
    one = f"; {', '.join(spent)} for this question" if spent else ""
    rows.append(("Budget", f"ε = {entries['epsilon']:g}, δ = {entries['delta']:g} in all{one}"))
    bare = [name for name, column in columns.items() if not {"label", "source"} <= column.keys()]
    parts = [f"label and source of {', '.join(bare)}"] if bare else []
    rows.append(("To edit", "; ".join([*parts, "[disclosure] and [approvers] for the report"])))
    return [f"{title:13} {text}" for title, text in rows]


def _declared_text(name: str, column: Mapping[str, Any], part: str) -> str:
    if "levels" not in column:
        ends = (f"{end:g}" if isinstance(end, float) else str(end) for end in (column["lower"], column["upper"]))
        return f"{name}: {' to '.join(ends)}"
    levels = [str(level) for level in column["levels"]]
    if part == "treatment":
        return f"{name}: {levels[-1]} is treated, {levels[0]} is not"
    more = f" and {len(levels) - MOST_LEVELS} more" if len(levels) > MOST_LEVELS else ""
    return f"{name}: {', '.join(levels[:MOST_LEVELS])}{more}"


def _report_parts() -> Iterator[str]:
    for name, part in (("disclosure", Disclosure), ("approvers", Approvers)):
        yield f"# [{name}]"
        yield from (f'# {key} = ""   # {one.description}' for key, one in part.model_fields.items())


def resumed(text: str, name: str) -> tuple[DataFile, dict[str, Any], int]:
    """Return the data file, the answers and the next step of a study file whose questions were stopped."""
    study, step = toml_in(text, name), re.search(r"^# Stopped at step (\d{1,4}) ", text, re.MULTILINE)
    written = {"title", "data", "person", "ledger", "budget", "columns", "question", "design"}
    if step is None or not study.keys() <= written or not {"title", "data", "budget"} <= study.keys():
        text = f"{name!r} is no study whose questions were stopped"
        raise ParameterError(text, argument="resume", rule="resume", hint="complete it in an editor")
    data = study["data"] if isinstance(study["data"], dict) else {"file": study["data"]}
    file = DataFile(data.pop("file"), **data)
    questions = study.get("question", [None])
    entries = {
        "title": study["title"],
        "columns": study.get("columns", {}),
        "person": study.get("person"),
        **study["budget"],
        "question": questions[0],
        "design": study.get("design"),
        "dates": file.dates,
    }
    return file, entries, int(step[1])  # fmt: skip


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_value(part) for part in value)}]"
    return _text(value) if isinstance(value, str) else str(value) if isinstance(value, date) else repr(value)
