"""The command ``dpcausal init``: a study file from answers about each column; no value is read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpcausal.cli.program import app
from dpcausal.cli.shared import DataArgument, echo, exit_codes
from dpcausal.data.toml_text import shown

INTRODUCTION = """\
You will declare the allowed values of each column. They become public, so take them
from the questionnaire or codebook, not from the data.
  a number     lowest to highest      0..110  or  0 to 110
  a category   all values             no, yes
  skip         press Enter            the column will not be used
  missing      after the values       0..110; missing 999, -9
"""

BUDGETS = """
Total privacy budget for everything ever published from these data.
  ε = 0.5 strong   1 common   2 moderate   above 5 weak"""

TASKS = {"1": "effect", "2": "ci_test", "3": "discover", "4": ""}


@app.command("init")
def init_command(
    data: DataArgument,
    out: Annotated[Path, typer.Option(help="Study file to write; none is replaced.")] = Path("study.toml"),
    header: Annotated[
        bool, typer.Option("--header", help="The first line of a text file is its header, whatever it looks like.")
    ] = False,
) -> None:
    """Start a study: declare the public bounds of each column. Reads column names only."""
    with exit_codes():
        from dpcausal.data.sources.fingerprint import seen_from
        from dpcausal.errors import ParameterError
        from dpcausal.study.draft import draft, names_of
        from dpcausal.study.writing import write_new

        if out.exists():
            text, hint = f"{str(out)!r} exists already", "edit it, or choose another name with --out"
            raise ParameterError(text, argument="out", rule="exists", hint=hint)
        if not out.absolute().parent.is_dir():
            raise ParameterError(f"{str(out)!r} is not in a folder that exists", argument="out", rule="folder")
        names, path_in_study = names_of(data, header), seen_from(out.parent, data)
        echo(f"Reading column names only ({len(names)} columns). No values are read.\n\n{INTRODUCTION}")
        entries: dict[str, Any] = {"title": "Untitled", "columns": {}, "person": None, "epsilon": 1.0, "delta": 1e-6}
        try:
            _interview(names, entries)
        except typer.Abort:  # Ctrl-C or Ctrl-D: what was answered is not lost
            write_new(out, draft(path_in_study, file=out.name, **entries))
            echo(f"\nStopped. Your answers so far are in {out}; complete the file in an editor.", error=True)
            raise
        write_new(out, draft(path_in_study, file=out.name, **entries))
        questions = "1 question" if entries.get("question") else "no question yet: add one at its end"
        columns = f"{len(entries['columns'])} column{'s' * (len(entries['columns']) != 1)}"
        echo(f"\nWrote {out} ({columns}, {questions}). The ledger does not exist yet.")
        echo(f"Next: dpcausal check {out}    looks for data problems (for you only, not private)\n"
             f"      dpcausal plan {out}     shows the expected accuracy, free")  # fmt: skip


def _interview(names: list[str], entries: dict[str, Any]) -> None:
    from dpcausal.errors import LossError, ParameterError, nearest
    from dpcausal.privacy.checks import check_budget
    from dpcausal.privacy.loss import ApproxDP
    from dpcausal.study.draft import declared

    def ask(prompt: str, default: Any = "", kind: Any = str, visible: bool = False) -> Any:
        return typer.prompt(prompt, default=default, type=kind, show_default=visible)

    entries["title"] = typer.prompt("Title of the study")
    while person := ask("Which column identifies the person? [Enter: one row per person]"):
        if person in names:
            entries["person"] = person
            echo("  Each person is protected with all their rows.")
            break
        echo(f"  There is no column {person!r}{nearest(person, names)}")
    width = max((len(shown(name)) for name in names), default=0)
    for place, name in enumerate(names, start=1):
        while name != entries["person"]:
            try:
                column = declared(ask(f"[{place}/{len(names)}] {shown(name):{width}}"))
            except ParameterError as error:
                echo(f"      {error}. Try again.")
                continue
            if column is not None and not name:
                echo("      A column without a name cannot be used: it is left out.")
            elif column is not None:
                entries["columns"][name] = column
            break
    echo(BUDGETS)
    while True:
        epsilon = ask("Budget ε", 1.0, float, True)
        delta = ask("Budget δ, much smaller than 1/number of people", 1e-6, float, True)
        try:
            check_budget(ApproxDP(epsilon, delta))
        except LossError as error:
            echo(f"      {error}")
            continue
        entries["epsilon"], entries["delta"] = epsilon, delta
        break
    task = TASKS.get(ask("\nFirst question? 1 effect  2 association test  3 graph  4 none [4]", "4"), "")
    if task:
        entries["question"] = _question(task, list(entries["columns"]), entries["epsilon"])


def _question(task: str, columns: list[str], budget: float) -> dict[str, Any]:
    from dpcausal.errors import nearest

    def several(prompt: str, least: int, most: int) -> list[str]:
        while True:
            names = [name.strip() for name in typer.prompt(prompt, default="", show_default=False).split(",")]
            names = [name for name in names if name]
            wrong = next((name for name in names if name not in columns), None)
            if wrong is None and least <= len(names) <= most:
                return names
            missing = "" if wrong is None else f"There is no column {wrong!r}{nearest(wrong, columns)}"
            echo(f"      {missing or 'Another number of columns is needed.'}")

    one: dict[str, Any] = {"name": task.replace("_", "-"), "task": task}
    if task == "effect":
        one |= {"treatment": several("  Treatment", 1, 1)[0], "outcome": several("  Outcome", 1, 1)[0],
                "adjust": several("  Adjust for, as a,b [Enter: randomised]", 0, 40)}  # fmt: skip
        groups = several("  Results by group [Enter: none]", 0, 1)
        one |= {"groups": groups[0]} if groups else {}
    elif task == "ci_test":
        one |= {"x": several("  First column", 1, 1)[0], "y": several("  Second column", 1, 1)[0],
                "given": several("  Given, as a,b [Enter: none]", 0, 40)}  # fmt: skip
    else:
        one["columns"] = several("  Columns, as a,b [Enter: all]", 0, 40) or columns
    share = typer.prompt("  Share of the budget, ε", type=float, default=budget / 2)
    return one | {"epsilon": share}
