"""The command ``dpcausal effect``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpcausal.cli.ask import SaveOption, check_place, save
from dpcausal.cli.methods import Call, asks
from dpcausal.cli.shared import DataArgument, SchemaOption, names_in
from dpcausal.errors import ParameterError

if TYPE_CHECKING:
    from dpcausal.cli.methods import Kinds


def ways() -> Kinds:
    from dpcausal.effects.methods import METHODS

    return METHODS


@asks("effect", ways, of_records=True)
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
    coverage: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    plot: Annotated[Path | None, typer.Option(help="File for the forest plot.")] = None,
    save_release: SaveOption = None,
) -> None:
    """How large is the effect of a treatment?"""
    from dpcausal.effects.ask import effect

    if bool(adjust) == trial:
        raise ParameterError("say --adjust for what causes both, or --trial where a lot drew the treatment")
    for file in (plot, save_release):
        check_place(file)
    result = effect(
        call.table(data, schema), treatment=treatment, outcome=outcome, adjust=names_in("--adjust", adjust),
        estimand=estimand, groups=groups, treated=treated, control=control, coverage=coverage, **call.settings,
    )  # fmt: skip
    save(save_release, result)  # first: whoever reads the lines may stop after the first
    call.show(result)
    if plot is not None:
        result.plot().figure.savefig(plot)
