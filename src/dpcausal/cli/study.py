"""The commands of studies, ``check``, ``plan``, ``run``, ``report`` and ``schema``, and ``demo`` and ``explain``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from dpcausal.cli.options import build_method, method_options, methods_of, parameter, plain_type, with_parameters
from dpcausal.cli.program import app, register
from dpcausal.cli.shared import (
    BAD_INPUT,
    DATA,
    REFUSED,
    DeltaOption,
    EpsilonOption,
    JsonOption,
    LargeOption,
    RhoOption,
    check_picture,
    echo,
    exit_codes,
    loss_from,
    print_json,
    printed_or,
    short_fingerprint,
)
from dpcausal.cli.tasks import PersonOption, weight_of
from dpcausal.errors import ParameterError, nearest

if TYPE_CHECKING:
    from dpcausal.study.status import StudyPlan
    from dpcausal.study.study import Study

StudyArgument = Annotated[Path, typer.Argument(help="The study file.")]

REPORT, DEMO = Path("report.html"), Path("rand-study")


@app.command("check")
def check_command(
    data: Annotated[str, typer.Argument(metavar="STUDY|DATA", help=f"A study file; or {DATA}")],
    schema: Annotated[Path | None, typer.Option("--schema", help="TOML file of the columns, if not a study.")] = None,
    weight: Annotated[str | None, typer.Option("--weight", help="Survey weights: column=largest, as w=8.")] = None,
    person: PersonOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look for data problems (not private; do not publish)."""
    with exit_codes("toml" if schema is None else "command"):
        from dpcausal.data.schema import Schema
        from dpcausal.study.study import Study

        if schema is None and not data.endswith(".toml"):
            text = "name a study file, or the data and --schema FILE.toml"
            raise ParameterError(text, argument="data", rule="no-schema")
        if schema is None:
            check = Study.open(data).check()
        else:
            largest = None if weight is None else weight_of(weight)
            check = Schema.from_toml(schema).check(data, weight=largest, person=person)
        following = f"\nNext: dpcausal plan {data}" if schema is None and not check.notes else ""
        if as_json:
            print_json(check.to_dict())
        else:
            echo(f"{check.summary()}{following}")
        if check.notes:
            raise typer.Exit(1)


PLAN_ABOUT = "Predict accuracy or sample size. Free."
PLANNED = ("ci-test", "direction", "discover", "effect", "moments", "did", "synthetic-control")
"""The tasks of ``planning.plan``, known before it is loaded."""


def _study_plan(
    what: Annotated[str, typer.Argument(
        metavar="STUDY|TASK", help=f"A study file; or a task: {', '.join(PLANNED)}. Its options: plan TASK --help.",
    )],
    accuracy: Annotated[bool, typer.Option(help="Also predict the accuracy: it takes seconds or minutes.")] = True,
    verbose: Annotated[bool, typer.Option("--verbose", help="Also show delta, rho and all assumptions.")] = False,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    with exit_codes("toml"):
        from dpcausal.study.study import Study

        plan = Study.open(what).plan(accuracy=accuracy)
        echo(plan.to_json() if as_json else plan.summary(verbose=verbose, path=what))
        _exit_by_states(plan, {"answered", "to ask"})


def _task_plan(
    what: Annotated[str, typer.Argument(metavar="TASK", help="The task.")],
    n: Annotated[int | None, typer.Option("--n", help="Records: rows, persons or control units.")] = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    target: Annotated[float | None, typer.Option(
        "--target", "--power", help="Accuracy to reach, a probability or a half-width; n or epsilon is then sought.",
    )] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a figure of the accuracy to this file.")] = None,
    over: Annotated[str, typer.Option(help="Horizontal axis of the figure: n or epsilon.")] = "n",
    accept_large_epsilon: LargeOption = False,
    as_json: JsonOption = False,
    **assumed: Any,
) -> None:  # fmt: skip
    from dpcausal.planning.plan import TASK_PLANS, plan

    task, stated = what.replace("-", "_"), {name: value for name, value in assumed.items() if value is not None}
    kind = TASK_PLANS[task]
    if kind.methods:
        kinds = methods_of(kind.methods)
        own = {field.name for one in kinds.values() for field in fields(one)} - {one.name for one in fields(kind)}
        options = {name: stated.pop(name) for name in own & stated.keys()}
        stated["method"] = build_method(kinds, stated.pop("method", "auto"), options)
    check_picture(plot)
    loss = None if epsilon is None and rho is None else loss_from(epsilon, delta, rho)
    result = plan(task, n=n, loss=loss, accuracy=target, delta=delta if loss is None else None,
                  accept_large_epsilon=accept_large_epsilon, **stated)  # fmt: skip
    echo(result.to_json() if as_json else result.summary())
    if plot is not None:
        result.plot(over=over).figure.savefig(plot)


def _refuse_task(what: str, **_: Any) -> None:
    with exit_codes():
        text = f"plan has no task {what!r}" + (nearest(what, PLANNED) or f"; it has {', '.join(PLANNED)}")
        raise ParameterError(text, argument="task", rule="choice", value=what)


def _exit_by_states(plan: Any, well: set[str]) -> None:
    states = {one.state for one in plan.questions}
    if "beyond the budget" in states:
        raise typer.Exit(REFUSED)
    if states - well:
        raise typer.Exit(BAD_INPUT)


def _plan_command(args: list[str]) -> Callable[..., None]:
    task = next((one for one in args if one.replace("_", "-") in PLANNED), None)
    what = next((one for one in args if not one.startswith("-")), "")
    own = [one for one in inspect.signature(_task_plan, eval_str=True).parameters.values() if one.name != "assumed"]
    if task is None:
        absent = what and not (Path(what).suffix or Path(what).exists())
        return with_parameters(own, _refuse_task) if absent else _study_plan
    from dpcausal.planning.plan import TASK_PLANS

    kind = TASK_PLANS[task.replace("-", "_")]
    hints = get_type_hints(kind)
    own += [parameter(one.name, plain_type(hints[one.name]) | None, one.metadata["text"]) for one in fields(kind)]
    taken = {one.name for one in own}  # a method's option of such a name is an assumption here
    options = method_options(methods_of(kind.methods)) if kind.methods else []

    def run(**given: Any) -> None:
        with exit_codes():
            _task_plan(**given)

    return with_parameters([*own, *(one for one in options if one.name not in taken)], run)


register("plan", PLAN_ABOUT, _plan_command)


@app.command("run")
def run_command(
    study: StudyArgument,
    refresh: Annotated[
        list[str] | None, typer.Option(help="Run this question again at a new cost; repeatable.")
    ] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Run what the budget allows if it is not all.")] = False,
    new_ledger: Annotated[bool, typer.Option("--new-ledger", help="Create the ledger, with a new budget.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Answer the questions of a study. Repeated runs cost nothing."""
    with exit_codes("toml"):
        from dpcausal.study.study import Study

        opened = Study.open(study)
        created = new_ledger and not opened.ledger_exists()
        plan = opened.run(
            refresh=refresh or (), partial=partial, new_ledger=new_ledger, progress=None if quiet else announce
        )
        with printed_or(f"what the ledger saved of these results costs nothing: dpcausal report {study} writes it"):
            if as_json:
                echo(plan.to_json())
            else:
                made = [f"Created {opened.file.ledger} with a budget of {opened.budget}."] if created else []
                echo("\n".join([*made, *answers(plan), "", *accounts(plan), f"Next: dpcausal report {study}"]))
        _exit_by_states(plan, {"answered"})


@app.command("schema")
def schema_command() -> None:
    """Print the JSON schema of a study file, for editors that complete and check TOML."""
    with exit_codes():
        import json

        from dpcausal.study.file import json_schema

        echo(json.dumps(json_schema(), indent=2))


@app.command("report")
def report_command(
    study: StudyArgument,
    out: Annotated[
        Path | None,
        typer.Option(help="HTML file; Markdown and the registry record go beside it. By default report.html, "
                          "or NAME.report.html if that is another study's.", show_default=False),
    ] = None,
) -> None:
    """Write the report of a study: two pages to sign and an appendix."""
    with exit_codes("toml"):
        from dpcausal.study.study import Study

        opened = Study.open(study)
        path = _written_report(opened, out)
        missing = opened.file.unfilled()
        with printed_or(f"the report is written: {path}"):
            echo(f"Wrote {path} (two pages and an appendix), with a .md and a .registry.yaml file beside it.")
            if missing:
                echo(f"{len(missing)} entries are empty and marked in the report: {', '.join(missing)}.")
            echo("Nothing was spent and no data were read.")
            echo(f"Next: open {path.name} in a browser, print it and have it signed")


def _written_report(opened: Study, out: Path | None) -> Path:
    try:
        return opened.report((out or REPORT).absolute())
    except ParameterError as error:
        if out is not None or error.rule != "another-study":
            raise
    return opened.report(Path(f"{opened.path.stem}.report.html").absolute())


@app.command("demo")
def demo_command(
    folder: Annotated[Path, typer.Option(help="Folder for the data, the study file and its report.")] = DEMO,
    as_json: JsonOption = False,
) -> None:
    """Run a whole study on public health data that come with statsmodels."""
    with exit_codes():
        from dpcausal.demo import compared, run

        plan, report = run(folder, announce)
        with printed_or(f"the study and its report are written: {report}"):
            if as_json:
                echo(plan.to_json())
                return
            echo("\n".join([*answers(plan), "", *accounts(plan), f"Study: {folder / 'study.toml'}", "",
                            *compared(plan), f"Report: {report}"]))  # fmt: skip


@app.command("explain")
def explain_command(
    proof: Annotated[str | None, typer.Argument(help="A claim named in a result's proofs; none: all names.")] = None,
) -> None:
    """Print a privacy claim with its proof, or the names of all claims."""
    with exit_codes():
        from dpcausal.claims import claims, explain

        if proof is not None and proof not in claims():
            _check_no_method(proof)
        echo("\n".join(sorted(claims())) if proof is None else explain(proof))


def _check_no_method(name: str) -> None:
    from dpcausal.privacy.loss import PureDP
    from dpcausal.study.tasks import TASKS

    kind = next((kinds[name] for _, kinds in TASKS.values() if name in kinds and name != "auto"), None)
    if kind is None:
        return
    try:
        proofs = f"its claims are {', '.join(kind().proofs_of(None, PureDP(1)))}"
    except (TypeError, AttributeError, ParameterError):
        proofs = "its claims depend on the question"
    text = f"{name} is a method: {proofs}; each result names its claims"
    raise ParameterError(text, argument="proof", rule="method", value=name)


def announce(done: int, many: int, text: str) -> None:
    """Show progress on standard error; where nobody reads it, the run goes on."""
    with suppress(OSError):
        echo(f"[{done}/{many}] {text}", error=True)


def answers(plan: StudyPlan) -> list[str]:
    width = max((len(one.question.name) for one in plan.questions), default=0)
    lines = []
    for one in plan.questions:
        first, *others = one.conclusions or [f"{one.state}: {one.reason}." if one.reason else f"{one.state}."]
        lines.append(f"{one.question.name:{width}}  {first}")
        lines += [f"{'':{width}}    {other}" for other in others]
        if one.reason and one.conclusions:
            lines.append(f"{'':{width}}    {one.state}: {one.reason}.")
    return lines


def accounts(plan: StudyPlan) -> list[str]:
    lines = [f"Spent {plan.account}. Repeating these questions is free."]
    lines += plan.refresh_advice
    if plan.head:
        short = short_fingerprint(plan.head)
        lines.append(f"Back up the ledger. Its fingerprint: {short} (full: dpcausal ledger show)")
    return lines
