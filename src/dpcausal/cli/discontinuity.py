"""The command ``dpcausal discontinuity``."""

from __future__ import annotations

from typing import Annotated

import typer

from dpcausal.cli.options import Call, task_command
from dpcausal.cli.shared import DataArgument, SchemaOption


@task_command("discontinuity", of_records=True, files=("plot", "save_release"))
def discontinuity_command(
    data: DataArgument,
    running: Annotated[str, typer.Option(help="The number that decides: bounded, or levels that are whole numbers.")],
    outcome: Annotated[str, typer.Option(help="A bounded column, or one of two levels.")],
    cutoff: Annotated[float, typer.Option(help="In the running number's unit.")],
    schema: SchemaOption,
    call: Call,
    treatment: Annotated[
        str | None, typer.Option(help="A column of two levels, where the cutoff moves it without deciding it.")
    ] = None,
    bins: Annotated[int, typer.Option(help="On each side of the cutoff.")] = 12,
    bandwidth: Annotated[float | None, typer.Option(help="How far from the cutoff records count.")] = None,
    curvature: Annotated[
        float | None, typer.Option(help="How large the second derivative of the mean outcome is at most.")
    ] = None,
    at_cutoff: Annotated[str, typer.Option(help="right or left: where records at the cutoff count.")] = "right",
    event: Annotated[str | None, typer.Option(help="Level of the outcome that is counted.")] = None,
    coverage: Annotated[float, typer.Option(help="Of the interval.")] = 0.95,
) -> None:
    """By how much does an outcome jump at a cutoff of a number (regression discontinuity)?"""
    from dpcausal import discontinuity

    call.show(discontinuity(
        call.table(data, schema), running=running, outcome=outcome, cutoff=cutoff, treatment=treatment, bins=bins,
        bandwidth=bandwidth, curvature=curvature, coverage=coverage, at_cutoff=at_cutoff, event=event,
        **call.settings,
    ))  # fmt: skip
