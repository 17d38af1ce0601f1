"""Pages that are written from the code: every public name, every command, every key of a study file, every error."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

GROUPS = {
    "Data and budget": (
        "Schema", "Bounded", "Levels", "DataFile", "Table", "Panel", "Ledger", "PureDP", "ApproxDP", "ZCDP", "NoPrivacy",
    ),
    "Questions": (
        "effect", "did", "discontinuity", "ci_test", "ci_tests", "discover", "direction", "direction_all",
        "synthetic_control", "synthetic_controls", "average_effect",
    ),
    "Releases that are re-used for free": ("cells", "moments", "Release"),
    "Planning and studies": ("plan", "Plan", "Study", "explain", "simulated_noise"),
}  # fmt: skip
MODULES = {
    "methods": "Methods", "papers": "Published systems", "interop": "Graphs of other packages",
    "simulate": "Simulated data", "errors": "Errors",
}  # fmt: skip

OWN = ("dpcausal.simulate", "dpcausal.errors")
"""Modules of which only what they define is public."""


def write_all(folder: Path) -> None:
    """Write the reference into a folder that does not exist yet."""
    folder.mkdir()
    _write(folder / "index.md", names())
    _write(folder / "command.md", command())
    _write(folder / "study-file.md", study_keys())
    _write(folder / "errors.md", errors())


def names() -> list[str]:
    """Return the list of public names: tables that lead to a page for each."""
    import dpcausal as dpc

    grouped = {name for group in GROUPS.values() for name in group}
    rest = tuple(sorted(name for name in dpc.__all__ if name not in grouped and not inspect.ismodule(getattr(dpc, name))))
    page = ["# Reference", "", "```{toctree}", ":maxdepth: 1", "", "command", "study-file", "errors", "```", ""]
    for title, group in {**GROUPS, "Results and other types": rest}.items():
        page += [f"## {title}", "", *_summary("dpcausal", (name for name in group if hasattr(dpc, name)))]
    for module, title in MODULES.items():
        page += [f"## {title}", "", *_summary(f"dpcausal.{module}", _public(getattr(dpc, module)))]
    return page


def _public(module: Any) -> Iterable[str]:
    own = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    return sorted(
        name for name in own
        if (inspect.isclass(one := getattr(module, name)) or inspect.isfunction(one)) and one.__module__.startswith(module.__name__ if module.__name__ in OWN else "dpcausal")
    )  # fmt: skip


def _summary(module: str, names: Iterable[str]) -> list[str]:
    listed = [f"   {name}" for name in names]
    head = ["```{eval-rst}", f".. currentmodule:: {module}", "", ".. autosummary::", "   :toctree: names", "   :nosignatures:"]
    return [*head, "", *listed, "```", ""]


def command() -> list[str]:
    """Return every command with its arguments and options."""
    import typer
    from typer.main import get_command

    from dpcausal.cli import app

    page = ["# Command", "", "Run `dpcausal COMMAND --help` for the same text in a terminal. "
            "[Exit codes](errors.md#exit-codes).", ""]  # fmt: skip
    program = get_command(app)
    commands = {name: (program, one) for name, one in program.commands.items() if not one.hidden}
    groups = {name: one for name, (_, one) in commands.items() if hasattr(one, "commands")}
    for name, group in groups.items():
        del commands[name]
        commands |= {f"{name} {inner}": (group, one) for inner, one in group.commands.items() if not one.hidden}
    for name, (parent, one) in commands.items():
        context = typer.Context(one, info_name=name)
        page += [f"## `dpcausal {name}`", "", _plain(one.help), "", "| argument or option | meaning |", "|---|---|"]
        for parameter in one.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None:
                page.append(f"| `{_plain(record[0])}` | {_plain(record[1])} |")
        page.append("")
    return page


def _plain(text: str | None) -> str:
    return re.sub(r"\s+", " ", (text or "").replace("|", "/").replace("<", "&lt;")).strip()


TABLES = {
    "QuestionPart": "[[question]]", "DataPart": "[data]", "PanelPart": "[panel]", "Bounds": "bounds of [panel]",
}  # fmt: skip
"""How the tables of study.toml are written, where not as their part is called."""
COLUMN_KEYS = {
    "lower": ("number or date", "Lowest allowed value of a number or a date."),
    "upper": ("number or date", "Highest allowed value."),
    "cuts": ("list", "Bin edges of a number, where people of similar value are compared."),
    "levels": ("list", "All categories, instead of lower and upper; the last is the treated or counted one."),
    "period": ("string", "Of dates: month, quarter or year, which are then the categories."),
    "missing": ("list", "Codes of a missing value, such as [999, \"NA\"]."),
    "other": ("string", "Category for values that are not declared."),
    "spellings": ("table", "Other spellings of categories, such as { F = \"f\" }."),
    "label": ("string", "Name of the column in the report."),
    "meaning": ("string", "What the column holds, for the report."),
    "unit": ("string", "Unit of a number, for the report."),
    "source": ("string", "Where the bounds or categories come from, for the report."),
    "level_labels": ("table", "Names of categories in the report, such as { 1 = \"yes\" }."),
}


def study_keys() -> list[str]:
    """Return a table of all keys of study.toml: type, default, meaning, from its schema."""
    from dpcausal.study.file import StudyFile

    schema = StudyFile.model_json_schema()
    page = ["# Keys of study.toml", "", "## `[columns.NAME]`", "", "Allowed values of a column, and what the report says of it.", ""]
    page += ["| key | type | meaning |", "|---|---|---|"]
    page += [f"| `{key}` | {kind} | {meaning} |" for key, (kind, meaning) in COLUMN_KEYS.items()]
    for title, part in {"The file": schema, **schema["$defs"]}.items():
        needed = set(part.get("required", ()))
        heading = title if title == "The file" else f"`{TABLES.get(title, f'[{title.lower()}]')}`"
        page += ["", f"## {heading}", "", part.get("description", "").split("\n")[0], ""]
        page += ["| key | type | default | meaning |", "|---|---|---|---|"]
        for key, one in part.get("properties", {}).items():
            given = one.get("default")
            default = "required" if key in needed else "none" if given is None or isinstance(given, dict) else f"`{given!r}`"
            page.append(f"| `{key}` | {_type(one)} | {default} | {one.get('description', '')} |".replace("\n", " "))
    return page


def _type(one: dict[str, Any]) -> str:
    if "$ref" in one:
        name = one["$ref"].rpartition("/")[-1]
        return "table" if name == "Bounds" else f"table `{TABLES.get(name, f'[{name.lower()}]')}`"
    if "anyOf" in one:
        return " or ".join(dict.fromkeys(_type(part) for part in one["anyOf"] if part.get("type") != "null"))
    kind = one.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    return f"list of {_type(one['items'])}" if kind == "array" and "items" in one else str(kind).replace("object", "table")


def errors() -> list[str]:
    """Return a table of all errors: what each means, whose kind it is, and the command's exit code."""
    import dpcausal.errors as module

    page = ["# Errors and exit codes", "", "| error | meaning | kind of |", "|---|---|---|"]
    for name, one in vars(module).items():
        if inspect.isclass(one) and issubclass(one, (Exception, Warning)) and one.__module__ == module.__name__:
            kinds = ", ".join(f"`{base.__name__}`" for base in one.__bases__)
            page.append(f"| `{name}` | {(one.__doc__ or '').splitlines()[0]} | {kinds} |")
    table = CODES.read_text(encoding="utf-8").partition("## Exit codes")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("|")]
    return [*page, "", "## Exit codes", "", *(f"|{code}|{meaning}|" for code, meaning in rows)]


CODES = Path(__file__).parents[1] / "howto" / "troubleshooting.md"
"""The page that has the table of exit codes."""


def _write(page: Path, lines: list[str]) -> None:
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
