"""The command ``dpcausal did``."""

from __future__ import annotations

from typing import Annotated

import typer

from dpcausal.cli.options import Call, task_command
from dpcausal.cli.shared import DataArgument, SchemaOption


@task_command("did", of_records=True, files=("plot", "save_release"))
def did_command(
    data: DataArgument,
    time: Annotated[str, typer.Option(help="A column of levels, the periods.")],
    outcome: Annotated[str, typer.Option(help="A bounded column.")],
    cohort: Annotated[str, typer.Option(help="When a person was first treated; one level may mean never.")],
    schema: SchemaOption,
    call: Call,
    control: Annotated[str, typer.Option(help="never or not-yet treated: whom it is compared with.")] = "never",
    never: Annotated[list[str] | None, typer.Option(help="Levels of --cohort that mean never; repeatable.")] = None,
    coverage: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
) -> None:
    """How large is the effect on persons followed through periods (differences in differences)?"""
    from dpcausal import did

    call.show(did(
        call.table(data, schema), time=time, outcome=outcome, cohort=cohort, control=control, coverage=coverage,
        never=never or None, **call.settings,
    ))  # fmt: skip
