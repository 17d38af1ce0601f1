"""The command ``dpcausal did``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpcausal.cli.ask import SaveOption, check_place, save
from dpcausal.cli.methods import Call, asks
from dpcausal.cli.shared import DataArgument, SchemaOption


@asks("did", dict, of_records=True)
def did_command(
    data: DataArgument,
    time: Annotated[str, typer.Option(help="A column of levels, the periods in order.")],
    outcome: Annotated[str, typer.Option(help="A bounded column.")],
    cohort: Annotated[str, typer.Option(help="The period in which a person was first treated; another level: never.")],
    schema: SchemaOption,
    call: Call,
    control: Annotated[str, typer.Option(help="never or not-yet treated: whom it is compared with.")] = "never",
    coverage: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    plot: Annotated[Path | None, typer.Option(help="File for the event study.")] = None,
    save_release: SaveOption = None,
) -> None:
    """How large is the effect on persons followed through periods (differences in differences)?"""
    from dpcausal import did

    for file in (plot, save_release):
        check_place(file)
    result = did(
        call.table(data, schema), time=time, outcome=outcome, cohort=cohort, control=control, coverage=coverage,
        **call.settings,
    )  # fmt: skip
    save(save_release, result)
    call.show(result)
    if plot is not None:
        result.plot().figure.savefig(plot)
