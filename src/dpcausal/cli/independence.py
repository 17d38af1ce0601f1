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
    names_in,
    show,
)
from dpcausal.independence.plan import ROUTES

METHODS = tuple(name for name, route in ROUTES.items() if "model_x" not in route.takes)
"""What can be asked in words: a law of x given z is a Python object."""


def _takers(option: str) -> str:
    """Return the methods that take an option, in words."""
    return ", ".join(name for name in METHODS if option in ROUTES[name].takes)


@app.command("ci-test")
def ci_test_command(
    data: Annotated[Path, typer.Argument(help="CSV with a header, or Parquet.")],
    x: Annotated[str, typer.Argument(help="A column, or several as a,b.")],
    y: Annotated[str, typer.Argument(help="A column, or several as a,b.")],
    schema: SchemaOption,
    ledger: LedgerOption,
    given: Annotated[
        list[str] | None, typer.Option(help="The columns z, as a,b; repeatable; none by default.")
    ] = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    method: Annotated[str, typer.Option(help=f"{', '.join(METHODS)}.")] = "gcm",
    alpha: Annotated[float, typer.Option(help="Level of the test.")] = 0.05,
    blocks: Annotated[
        int | None, typer.Option(help=f"Number of blocks, by default a public rule ({_takers('blocks')}).")
    ] = None,
    regression: Annotated[
        str | None, typer.Option(help=f"Inside blocks: additive or isotropic ({_takers('regression')}).")
    ] = None,
    resamples: Annotated[int | None, typer.Option(help=f"Permuted copies ({_takers('resamples')}).")] = None,
    strata: Annotated[int | None, typer.Option(help=f"Bins of each given number ({_takers('strata')}).")] = None,
    calibration: Annotated[
        str | None,
        typer.Option(help=f"corrected, or published: constants of the paper ({_takers('calibration')})."),
    ] = None,
    workers: Annotated[int | None, typer.Option(help=f"Threads over the blocks ({_takers('workers')}).")] = None,
    accept_large_epsilon: LargeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Is x still linked to y once z is known?"""
    with exit_codes():
        from dpcausal import Ledger, Schema, Table, ci_test
        from dpcausal.errors import ParameterError

        if method not in METHODS:
            told = f"{method} needs a model of x, which Python alone can give; " if method in ROUTES else ""
            raise ParameterError(f"{told}method must be one of {', '.join(METHODS)}")
        columns = names_in("x", [x]), names_in("y", [y]), names_in("--given", given)
        asked = loss_from(epsilon, delta, rho)
        with Ledger.open(ledger) as opened:
            table = Table(data, Schema.from_toml(schema), opened)
            chosen: dict[str, Any] = {"method": method, "calibration": calibration}
            result = ci_test(
                table, columns[0], columns[1], given=columns[2], loss=asked, alpha=alpha, blocks=blocks,
                regression=regression, resamples=resamples, strata=strata, workers=workers,
                accept_large_epsilon=accept_large_epsilon, **chosen,
            )  # fmt: skip
            show(result, opened, as_json)
