"""The command ``dpcausal effect``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpcausal.cli.methods import Call, asks
from dpcausal.cli.shared import DataArgument, SchemaOption, names_in
from dpcausal.effects.methods import METHODS


@asks("effect", METHODS, of_records=True)
def effect_command(
    data: DataArgument,
    treatment: Annotated[str, typer.Option(help="A column of levels.")],
    outcome: Annotated[str, typer.Option(help="A bounded column, or one of two levels.")],
    schema: SchemaOption,
    call: Call,
    adjust: Annotated[
        list[str] | None, typer.Option(help="What causes both, as a,b; repeatable; none in a trial.")
    ] = None,
    groups: Annotated[str | None, typer.Option(help="A column whose levels are told apart.")] = None,
    estimand: Annotated[str, typer.Option(help="ate or att.")] = "ate",
    treated: Annotated[str | None, typer.Option(help="Level that is treated.")] = None,
    control: Annotated[str | None, typer.Option(help="Level that it is compared with.")] = None,
    coverage: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    plot: Annotated[Path | None, typer.Option(help="File for the forest plot.")] = None,
    release: Annotated[Path | None, typer.Option(help="File for the released numbers, to be asked again free.")] = None,
) -> None:
    """How large is the effect of a treatment?"""
    from dpcausal import effect
    from dpcausal.errors import ParameterError

    for file in (plot, release):
        if file is not None and not file.absolute().parent.is_dir():
            raise ParameterError("--plot and --release name files in a folder that exists")
    result = effect(
        call.table(data, schema), treatment=treatment, outcome=outcome, adjust=names_in("--adjust", adjust),
        estimand=estimand, groups=groups, treated=treated, control=control, coverage=coverage, **call.settings,
    )  # fmt: skip
    call.show(result)
    if release is not None and result.release is not None:
        release.write_text(result.release.to_json(), encoding="utf-8")
    if plot is not None:
        result.plot().figure.savefig(plot)
