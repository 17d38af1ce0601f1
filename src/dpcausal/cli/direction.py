"""The commands ``dpcausal direction`` and ``dpcausal direction-all``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dpcausal.cli.options import Call, of, task_command
from dpcausal.cli.shared import DataArgument, SchemaOption, names_in

AlphaOption = Annotated[float, typer.Option(help="Level of a verdict's claims, and of an arrow by votes.")]


def _shares(texts: list[str] | None) -> dict[Any, Any] | None:
    """Return the shares of ``a,b=3`` and ``igci=3`` options."""
    from dpcausal.errors import ParameterError

    shares: dict[Any, Any] = {}
    for text in texts or []:
        name, _, amount = text.rpartition("=")
        names = names_in("--shares", [name]) if name else []
        key = names[0] if len(names) == 1 else tuple(names)
        try:
            share = float(amount)
        except ValueError:
            share = None
        if share is None or not names or key in shares:
            raise ParameterError("a share is written A,B=NUMBER or SCORE=NUMBER, each once")
        shares[key] = share
    return shares or None


@task_command("direction", of("direction"), of_records=True)
def direction_command(
    data: DataArgument,
    x: Annotated[str, typer.Argument(help="First column.")],
    y: Annotated[str, typer.Argument(help="Second column.")],
    schema: SchemaOption,
    call: Call,
    score: Annotated[
        str | None,
        typer.Option(help="lsnm, hsic, igci, igci-gaussian, igci-slope; a method of a paper has its own."),
    ] = None,
    alpha: AlphaOption = 0.1,
) -> None:
    """Which of two columns is the cause?"""
    from dpcausal.direction.api import direction

    arguments: dict[str, Any] = {"score": score, "alpha": alpha}
    call.show(direction(call.table(data, schema), x, y, **arguments, **call.settings))


@task_command("direction-all", of("direction"), of_records=True)
def direction_all_command(
    data: DataArgument,
    schema: SchemaOption,
    call: Call,
    pair: Annotated[
        list[str] | None, typer.Option(help="Two columns, as a,b; repeatable. By default all bounded columns.")
    ] = None,
    scores: Annotated[
        list[str] | None, typer.Option(help="Scores, as lsnm,igci; repeatable; by default one. Each is paid for.")
    ] = None,
    shares: Annotated[
        list[str] | None,
        typer.Option(help="a,b=3 or igci=3: pays that pair or score three times the others; repeatable."),
    ] = None,
    correction: Annotated[str, typer.Option(help="Of the arrows: holm, benjamini-hochberg or none.")] = "holm",
    alpha: AlphaOption = 0.1,
) -> None:
    """Which of two columns is the cause, for many pairs under one budget?"""
    from dpcausal.direction.many import direction_all

    named = [tuple(names_in("--pair", [each])) for each in pair] if pair else None
    arguments: dict[str, Any] = {
        "pairs": named, "scores": names_in("--scores", scores) or None,
        "shares": _shares(shares), "alpha": alpha, "correction": correction,
    }  # fmt: skip
    call.show(direction_all(call.table(data, schema), **arguments, **call.settings))
