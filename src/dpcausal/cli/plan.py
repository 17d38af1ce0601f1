"""The command ``dpcausal plan``: of a study file, or of a task under stated assumptions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from dpcausal.cli.options import (
    build_method,
    described,
    method_options,
    methods_of,
    parameter,
    plain_type,
    with_parameters,
)
from dpcausal.cli.program import register
from dpcausal.cli.shared import (
    BAD_INPUT,
    REFUSED,
    DeltaOption,
    EpsilonOption,
    JsonOption,
    LargeOption,
    RhoOption,
    check_place,
    echo,
    exit_codes,
    loss_from,
)
from dpcausal.errors import ParameterError, nearest

ABOUT = "Predict accuracy or sample size. Free."
TASKS = ("ci-test", "direction", "discover", "effect", "moments", "did", "synthetic-control")
"""The tasks of ``planning.registry``, known before it is loaded."""


def _study_plan(
    what: Annotated[str, typer.Argument(
        metavar="STUDY|TASK", help=f"A study file; or a task: {', '.join(TASKS)}. Its options: plan TASK --help.",
    )],
    accuracy: Annotated[bool, typer.Option(help="Also predict the accuracy, which takes some seconds.")] = True,
    verbose: Annotated[bool, typer.Option("--verbose", help="Also show delta, rho and all assumptions.")] = False,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    with exit_codes():
        if not (Path(what).suffix or Path(what).exists()):
            text = f"there is no task {what!r}{nearest(what, TASKS)}"
            raise ParameterError(text, argument="task", rule="choice", value=what)
        from dpcausal.study.study import Study

        plan = Study.open(what).plan(accuracy=accuracy)
        echo(plan.to_json() if as_json else plan.summary(verbose=verbose, path=what))
        end(plan, {"answered", "to ask"})


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
    from dpcausal.planning.plan import plan
    from dpcausal.planning.registry import TASK_PLANS

    task, stated = what.replace("-", "_"), {name: value for name, value in assumed.items() if value is not None}
    kind = TASK_PLANS[task]
    if kind.methods:
        kinds = methods_of(kind.methods)
        own = {field.name for one in kinds.values() for field in fields(one)} - {one.name for one in fields(kind)}
        options = {name: stated.pop(name) for name in own & stated.keys()}
        stated["method"] = build_method(kinds, stated.pop("method", "auto"), options)
    check_place(plot)
    loss = None if epsilon is None and rho is None else loss_from(epsilon, delta, rho)
    result = plan(task, n=n, loss=loss, accuracy=target, delta=delta if loss is None else None,
                  accept_large_epsilon=accept_large_epsilon, **stated)  # fmt: skip
    echo(result.to_json() if as_json else result.summary())
    if plot is not None:
        result.plot(over=over).figure.savefig(plot)


def end(plan: Any, well: set[str]) -> None:
    """Leave with a code that says whether something exceeds the budget, or is otherwise than well."""
    states = {one.state for one in plan.standings}
    if "beyond the budget" in states:
        raise typer.Exit(REFUSED)
    if states - well:
        raise typer.Exit(BAD_INPUT)


def _command(args: list[str]) -> Callable[..., None]:
    """Return the command of a study, or of the task that the arguments name, with that task's options alone."""
    task = next((one for one in args if one.replace("_", "-") in TASKS), None)
    if task is None:
        return _study_plan
    from dpcausal.planning.registry import TASK_PLANS

    kind = TASK_PLANS[task.replace("-", "_")]
    hints = get_type_hints(kind)
    own = [one for one in inspect.signature(_task_plan, eval_str=True).parameters.values() if one.name != "assumed"]
    own += [parameter(one.name, plain_type(hints[one.name]) | None, described(kind, one.name)) for one in fields(kind)]
    taken = {one.name for one in own}  # a method's option of such a name is an assumption here
    options = method_options(methods_of(kind.methods)) if kind.methods else []

    def run(**given: Any) -> None:
        with exit_codes():
            _task_plan(**given)

    return with_parameters([*own, *(one for one in options if one.name not in taken)], run)


register("plan", ABOUT, _command)
