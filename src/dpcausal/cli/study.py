"""The commands of studies: ``dpcausal init``, ``run`` and ``report``."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcausal.cli.shared import BAD_INPUT, REFUSED, DataArgument, JsonOption, app, echo, exit_codes, printed_or
from dpcausal.data.toml_text import shown

if TYPE_CHECKING:
    from dpcausal.study.plan import StudyPlan

StudyArgument = Annotated[Path, typer.Argument(help="The study file.")]

REPORT = Path("report.html")

PROMPT = "  {name}: two numbers as 0..110, levels as no, yes; codes as 0..110; missing 999, -9; empty leaves it out"


@app.command("init")
def init_command(
    data: DataArgument,
    out: Annotated[Path, typer.Option(help="The study file to write; none is replaced.")] = Path("study.toml"),
    header: Annotated[
        bool, typer.Option("--header", help="The first line of a text file is its header, whatever it looks like.")
    ] = False,
) -> None:
    """Begin a study: asks for the public bounds of each column, and reads nothing but the columns' names."""
    with exit_codes():
        from dpcausal.data.sources.fingerprint import seen_from
        from dpcausal.errors import ParameterError
        from dpcausal.study.file import draft, names_of
        from dpcausal.study.writing import write_new

        if out.exists():
            raise ParameterError(f"{str(out)!r} is there already: edit it, or name another with --out")
        if not out.absolute().parent.is_dir():
            raise ParameterError(f"{str(out)!r} is not in a folder that exists")
        names, path_in_study = names_of(data, header), seen_from(out.parent, data)
        echo("What may stand in each column is public and yours to say; it is never read off the data.")
        entries: dict[str, Any] = {"title": "Untitled", "columns": {}, "person": None, "epsilon": 1.0, "delta": 1e-6}
        try:
            _interview(names, entries)
        except typer.Abort:  # Ctrl-C or Ctrl-D: what was answered is not lost
            write_new(out, draft(path_in_study, file=out.name, **entries))
            echo(f"\nNot finished: {out} holds what you answered; go on in it by hand.", error=True)
            raise
        write_new(out, draft(path_in_study, file=out.name, **entries))
        echo(f"Written: {out}. Add your questions at its end, then: dpcausal plan {out}")


def _interview(names: list[str], entries: dict[str, Any]) -> None:
    """Prompt for title, person, each column and the budget; repeat after a typing error."""
    from dpcausal.errors import LossError, ParameterError, nearest
    from dpcausal.privacy.checks import check_budget
    from dpcausal.privacy.loss import ApproxDP
    from dpcausal.study.file import declared

    entries["title"] = typer.prompt("Title, the question of the study")
    whose = f"Column that names whose a row is ({shown(', '.join(filter(None, names)))}; empty: a row is a person)"
    while person := typer.prompt(whose, default="", show_default=False):
        if person in names:
            entries["person"] = person
            break
        echo(f"    there is no column {person!r}{nearest(person, names)}")
    for name in names:
        while name != entries["person"]:
            try:
                column = declared(typer.prompt(PROMPT.format(name=shown(name)), default="", show_default=False))
            except ParameterError as error:
                echo(f"    {error}")
                continue
            if column is not None and not name:
                echo("    a column without a name cannot be asked about: it is left out")
            elif column is not None:
                entries["columns"][name] = column
            break
    while True:
        epsilon = typer.prompt("Budget, epsilon", type=float, default=1.0)
        delta = typer.prompt("and delta", type=float, default=1e-6)
        try:
            check_budget(ApproxDP(epsilon, delta))
        except LossError as error:
            echo(f"    {error}")
            continue
        entries["epsilon"], entries["delta"] = epsilon, delta
        return


@app.command("run")
def run_command(
    study: StudyArgument,
    refresh: Annotated[list[str] | None, typer.Option(help="A question to pay for anew, by name; repeatable.")] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Ask what the budget admits if it is not all.")] = False,
    new_ledger: Annotated[bool, typer.Option("--new-ledger", help="Make the ledger: its budget is a new one.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask the questions of a study.  Run again, it goes on where it was stopped, and pays for no answer twice."""
    with exit_codes():
        from dpcausal.study.study import Study

        plan = Study.open(study).run(
            refresh=refresh or (), partial=partial, new_ledger=new_ledger, progress=None if quiet else announce
        )
        with printed_or(f"what the ledger stores of these answers costs nothing: dpcausal report {study} writes it"):
            if as_json:
                show_plan(plan, as_json)
            else:
                echo("\n".join(answers(plan)))
                echo(f"Left of the budget: {plan.remaining}. The report: dpcausal report {study}")
        end(plan, {"answered"})


@app.command("schema")
def schema_command() -> None:
    """Print the JSON schema of a study file, for editors that complete and check TOML."""
    with exit_codes():
        from dpcausal.study.file import json_schema

        echo(json.dumps(json_schema(), indent=2))


@app.command("report")
def report_command(
    study: StudyArgument,
    out: Annotated[Path, typer.Option(help="The HTML file; Markdown and registry stand beside it.")] = REPORT,
) -> None:
    """Write the report of a study from its ledger: nothing is spent, no record is read."""
    with exit_codes():
        from dpcausal.study.study import Study

        path = Study.open(study).report(out.absolute())
        with printed_or(f"the report is written: {path}"):
            echo(path)


def announce(done: int, many: int, text: str) -> None:
    """Tell on standard error that a question was asked; where nobody reads it, the run goes on."""
    with suppress(OSError):
        echo(f"[{done}/{many}] {text}", error=True)


def answers(plan: StudyPlan) -> list[str]:
    """Return the answers, each under its question's name."""
    from dpcausal.study.report.content import released

    lines = []
    for one in plan.standings:
        lines += [f"{one.question.name}: {one.state}: {one.reason}."] if one.reason and one.answer is not None else []
        for answer in one.answer if isinstance(one.answer, tuple) else (one.answer,):
            if answer is not None:
                headline = answer.headline() if hasattr(answer, "headline") else released(answer)
                lines += [f"{one.question.name}: {headline[0]}", *(f"    {line}" for line in headline[1:])]
    return lines


def show_plan(plan: StudyPlan, as_json: bool) -> None:
    text = plan.summary().replace("partial=True", "--partial").replace("new_ledger=True", "--new-ledger")
    echo(plan.to_json() if as_json else text)


def end(plan: StudyPlan, well: set[str]) -> None:
    """Leave with a code that says whether something is beyond the budget, or stands otherwise than well."""
    states = {one.state for one in plan.standings}
    if "beyond the budget" in states:
        raise typer.Exit(REFUSED)
    if states - well:
        raise typer.Exit(BAD_INPUT)
