"""The command ``dpcausal effect``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpcausal.cli.methods import takes_method
from dpcausal.cli.shared import (
    DeltaOption,
    EpsilonOption,
    JsonOption,
    LargeOption,
    LedgerOption,
    RhoOption,
    SchemaOption,
    app,
    exit_codes,
    loss_from,
    names_in,
    show,
)
from dpcausal.effects.methods import METHODS


@app.command("effect")
@takes_method(METHODS)
def effect_command(
    data: Annotated[Path, typer.Argument(help="CSV with a header, or Parquet.")],
    treatment: Annotated[str, typer.Option(help="A column of levels.")],
    outcome: Annotated[str, typer.Option(help="A bounded column, or one of two levels.")],
    schema: SchemaOption,
    ledger: LedgerOption,
    method: Any,
    adjust: Annotated[
        list[str] | None, typer.Option(help="What causes both, as a,b; repeatable; none in a trial.")
    ] = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    groups: Annotated[str | None, typer.Option(help="A column whose levels are told apart.")] = None,
    estimand: Annotated[str, typer.Option(help="ate or att.")] = "ate",
    treated: Annotated[str | None, typer.Option(help="Level that is treated.")] = None,
    control: Annotated[str | None, typer.Option(help="Level that it is compared with.")] = None,
    coverage: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    plot: Annotated[Path | None, typer.Option(help="File for the forest plot.")] = None,
    release: Annotated[Path | None, typer.Option(help="File for the released numbers, to be asked again free.")] = None,
    accept_large_epsilon: LargeOption = False,
    as_json: JsonOption = False,
) -> None:
    """How large is the effect of a treatment?"""
    with exit_codes():
        from dpcausal import Ledger, Schema, Table, effect
        from dpcausal.errors import ParameterError

        for file in (plot, release):
            if file is not None and not file.absolute().parent.is_dir():
                raise ParameterError("--plot and --release name files in a folder that exists")

        asked, way, adjusted = loss_from(epsilon, delta, rho), method.built(), names_in("--adjust", adjust)
        with Ledger.open(ledger) as opened:
            result = effect(
                Table(data, Schema.from_toml(schema), opened), treatment=treatment, outcome=outcome, adjust=adjusted,
                loss=asked, estimand=estimand, groups=groups, treated=treated, control=control, coverage=coverage,
                method=way, accept_large_epsilon=accept_large_epsilon,
            )  # fmt: skip
            show(result, opened, as_json)
            if release is not None and result.release is not None:
                release.write_text(result.release.to_json(), encoding="utf-8")
            if plot is not None:
                result.plot().figure.savefig(plot)
