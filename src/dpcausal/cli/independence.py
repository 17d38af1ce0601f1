"""The command ``dpcausal ci-test``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

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
    show,
)


@app.command("ci-test")
def ci_test_command(
    data: Annotated[Path, typer.Argument(help="CSV with a header, or Parquet.")],
    x: Annotated[str, typer.Argument(help="A column, or several as a,b.")],
    y: Annotated[str, typer.Argument(help="A column, or several as a,b.")],
    schema: SchemaOption,
    ledger: LedgerOption,
    given: Annotated[str, typer.Option(help="The columns z, as a,b; none by default.")] = "",
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    method: Annotated[
        str, typer.Option(help="gcm, gcm-weighted, gcm-scalar, gcm-smooth, kendall, spearman, test-of-tests, hsic.")
    ] = "gcm",
    alpha: Annotated[float, typer.Option(help="Level of the test.")] = 0.05,
    blocks: Annotated[int | None, typer.Option(help="Number of blocks; by default a public rule.")] = None,
    regression: Annotated[str | None, typer.Option(help="Inside blocks: additive or isotropic.")] = None,
    accept_large_epsilon: LargeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Is x still linked to y once z is known?"""
    with exit_codes():
        from dpcausal import Ledger, Schema, Table, ci_test

        asked = loss_from(epsilon, delta, rho)
        with Ledger.open(ledger) as opened:
            table = Table(data, Schema.from_toml(schema), opened)
            chosen: dict[str, Any] = {"method": method}
            result = ci_test(
                table, x.split(","), y.split(","), given=given.split(",") if given else [], loss=asked, alpha=alpha,
                blocks=blocks, regression=regression, accept_large_epsilon=accept_large_epsilon, **chosen,
            )  # fmt: skip
            show(result, opened, as_json)
