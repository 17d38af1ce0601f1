"""The command ``dpcausal plan``: of a study file, or of a task under stated assumptions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from dpcausal.cli.options import (
    build_method,
    described,
    method_options,
    of,
    parameter,
    plain_type,
    register,
    with_parameters,
)
from dpcausal.cli.shared import (
    DeltaOption,
    EpsilonOption,
    JsonOption,
    LargeOption,
    RhoOption,
    echo,
    exit_codes,
    loss_from,
)
from dpcausal.cli.study import end, show_plan
from dpcausal.errors import ParameterError

if TYPE_CHECKING:
    from dpcausal.planning.task_plan import TaskPlan
    from dpcausal.privacy.loss import Loss

TARGET = "The accuracy to reach: a chance, or half the width of an interval; n or epsilon is then sought."


def _plan(
    what: Annotated[str, typer.Argument(metavar="STUDY|TASK", help="A study file; or a task, as ci-test.")],
    n: Annotated[int | None, typer.Option("--n", help="Records: rows, persons or donors.")] = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    target: Annotated[float | None, typer.Option("--target", "--power", help=TARGET)] = None,
    plot: Annotated[Path | None, typer.Option(help="A picture of the accuracy, to this file.")] = None,
    over: Annotated[str, typer.Option(help="What the picture goes over: n or epsilon.")] = "n",
    accuracy: Annotated[bool, typer.Option(help="Of a study: say what accuracy to expect.")] = True,
    accept_large_epsilon: LargeOption = False,
    as_json: JsonOption = False,
    **assumed: Any,
) -> None:
    """What to expect, before anything is spent: of each question of a study, or of a task from public numbers."""
    from dpcausal.planning.registry import TASK_PLANS

    stated = {name: value for name, value in assumed.items() if value is not None}
    task = what.replace("-", "_")
    if task not in TASK_PLANS and (Path(what).suffix or Path(what).exists()):
        if stated or not all(one is None for one in (n, epsilon, delta, rho, target, plot)):
            raise ParameterError("a study file says all of it: its plan takes --no-accuracy and --json alone")
        return _of_study(Path(what), accuracy, as_json)
    from dpcausal.planning.plan import plan

    if task in TASK_PLANS:
        stated |= _method_of(TASK_PLANS[task], stated)
    loss: Loss | None = None if epsilon is None and rho is None else loss_from(epsilon, delta, rho)
    result = plan(task, n=n, loss=loss, accuracy=target, delta=delta if loss is None else None,
                 accept_large_epsilon=accept_large_epsilon, **stated)  # fmt: skip
    echo(result.to_json() if as_json else result.summary())
    if plot is not None:
        result.plot(over=over).figure.savefig(plot)
    return None


def _of_study(path: Path, accuracy: bool, as_json: bool) -> None:
    from dpcausal.study.study import Study

    study_plan = Study.open(path).plan(accuracy=accuracy)
    show_plan(study_plan, as_json)
    end(study_plan, {"answered", "to ask"})


def _method_of(kind: type[TaskPlan], stated: dict[str, Any]) -> dict[str, Any]:
    """Remove a method's options from the stated arguments, and return the method."""
    if not kind.methods:
        return {}
    kinds = of(kind.methods)()
    own = {field.name for one in kinds.values() for field in fields(one)} - {one.name for one in fields(kind)}
    options = {name: stated.pop(name) for name in own & stated.keys()}
    return {"method": build_method(kinds, stated.pop("method", "auto"), options)}


def _whole() -> Callable[..., None]:
    """Return the command with an option for each assumption of a task, and for each field of its methods."""
    from dpcausal.planning.registry import TASK_PLANS

    takers: dict[str, list[str]] = {}
    for task, kind in TASK_PLANS.items():
        for one in fields(kind):
            takers.setdefault(one.name, []).append(task)

    def run(**given: Any) -> None:
        with exit_codes():
            _plan(**given)

    own = [one for one in inspect.signature(_plan, eval_str=True).parameters.values() if one.name != "assumed"]
    assumed = [_option(name, TASK_PLANS[tasks[0]], tasks) for name, tasks in takers.items()]
    taken = {one.name for one in own} | takers.keys()  # a field of such a name is an assumption here
    rooms = [of(kind.methods)() for kind in TASK_PLANS.values() if kind.methods]
    options = {one.name: one for kinds in rooms for one in method_options(kinds) if one.name not in taken}
    parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*own, *assumed, *options.values())]
    return with_parameters(parameters, _plan.__doc__, run)


def _option(name: str, kind: type, tasks: list[str]) -> inspect.Parameter:
    plain = plain_type(get_type_hints(kind)[name])
    return parameter(name, plain | None, f"{described(kind, name)} Of {', '.join(tasks)}.", None)


register("plan", _plan.__doc__, _whole)
