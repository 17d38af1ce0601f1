"""The command ``dpcausal discover``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpcausal.cli.methods import takes_method
from dpcausal.cli.records import IdsOption, MissingOption, PersonOption, Records, WhereOption
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
from dpcausal.discovery.methods import METHODS
from dpcausal.papers import GRAPHS


@app.command("discover")
@takes_method({**METHODS, **GRAPHS})
def discover_command(
    data: Annotated[Path, typer.Argument(help="CSV with a header, or Parquet.")],
    schema: SchemaOption,
    ledger: LedgerOption,
    method: Any,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    columns: Annotated[
        list[str] | None, typer.Option(help="Columns of the graph, as a,b; repeatable; by default all.")
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Level of the tests.")] = None,
    forbid: Annotated[list[str] | None, typer.Option(help="CAUSE,EFFECT that cannot be; repeatable.")] = None,
    require: Annotated[list[str] | None, typer.Option(help="CAUSE,EFFECT that must be; repeatable.")] = None,
    redraws: Annotated[int, typer.Option(help="Draws of fresh noise for the support of the edges; 0 for none.")] = 50,
    form: Annotated[str, typer.Option("--format", help="text, dagitty, dot or graphml.")] = "text",
    where: WhereOption = None,
    person: PersonOption = None,
    ids: IdsOption = "private",
    missing: MissingOption = "drop",
    accept_large_epsilon: LargeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Which columns cause which?"""
    with exit_codes():
        from dpcausal import Knowledge, discover
        from dpcausal.errors import ParameterError

        texts = {"text": None, "dagitty": "to_dagitty", "dot": "to_dot", "graphml": "to_graphml"}
        if form not in texts or not 0 <= redraws <= 10_000:
            raise ParameterError("--format is text, dagitty, dot or graphml, --redraws a number from 0 to 10000")
        known = Knowledge(forbidden=_arrows(forbid), required=_arrows(require))
        chosen = names_in("--columns", columns) or None
        asked, way = loss_from(epsilon, delta, rho), method.built()
        with Records(person, ids, missing, where).opened(data, schema, ledger) as (table, opened):
            result = discover(
                table, loss=asked, method=way, columns=chosen, alpha=alpha, knowledge=known,
                accept_large_epsilon=accept_large_epsilon,
            )  # fmt: skip
            if redraws and result.release is not None:
                result = result.with_support(redraws)
            if texts[form] and not as_json:
                print(getattr(result.graph, str(texts[form]))(), end="")
            else:
                show(result, opened, as_json)


def _arrows(texts: list[str] | None) -> list[tuple[str, str]]:
    """Return the arrows of ``CAUSE,EFFECT`` options."""
    from dpcausal.errors import ParameterError

    arrows = []
    for text in texts or []:
        names = names_in("an arrow", [text])
        if len(names) != 2:
            raise ParameterError("an arrow is written CAUSE,EFFECT")
        arrows.append((names[0], names[1]))
    return arrows
