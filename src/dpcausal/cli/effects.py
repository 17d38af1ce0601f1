"""The command ``dpcausal effect``."""

from __future__ import annotations

from typing import Annotated

import typer

from dpcausal.cli.options import Call, of, task_command
from dpcausal.cli.shared import DataArgument, SchemaOption, names_in
from dpcausal.errors import ParameterError


@task_command("effect", of("effects"), of_records=True, files=("plot", "save_release"))
def effect_command(
    data: DataArgument,
    treatment: Annotated[str, typer.Option(help="A column of levels.")],
    outcome: Annotated[str, typer.Option(help="A bounded column, or one of two levels.")],
    schema: SchemaOption,
    call: Call,
    adjust: Annotated[
        list[str] | None, typer.Option(help="What causes both, as a,b; repeatable.")
    ] = None,
    trial: Annotated[bool, typer.Option("--trial", help="A lot drew the treatment: nothing causes both.")] = False,
    groups: Annotated[str | None, typer.Option(help="A column whose levels are told apart.")] = None,
    estimand: Annotated[str, typer.Option(help="ate or att.")] = "ate",
    treated: Annotated[str | None, typer.Option(help="Level that is treated.")] = None,
    control: Annotated[str | None, typer.Option(help="Level that it is compared with.")] = None,
    event: Annotated[str | None, typer.Option(help="Level of the outcome that is counted.")] = None,
    coverage: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
) -> None:
    """How large is the effect of a treatment?"""
    from dpcausal.effects.api import effect

    if bool(adjust) == trial:
        raise ParameterError("say --adjust for what causes both, or --trial where a lot drew the treatment")
    call.show(effect(
        call.table(data, schema), treatment=treatment, outcome=outcome, adjust=names_in("--adjust", adjust),
        estimand=estimand, groups=groups, treated=treated, control=control, event=event, coverage=coverage,
        **call.settings,
    ))  # fmt: skip
