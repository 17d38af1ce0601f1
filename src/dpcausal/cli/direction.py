"""The commands ``dpcausal direction`` and ``dpcausal direction-all``."""

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
    show_answer,
)
from dpcausal.direction.methods import METHODS
from dpcausal.papers import DIRECTIONS

WAYS = {**METHODS, **DIRECTIONS}

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


@app.command("direction")
@takes_method(WAYS)
def direction_command(
    data: Annotated[Path, typer.Argument(help="CSV with a header, or Parquet.")],
    x: Annotated[str, typer.Argument(help="First column.")],
    y: Annotated[str, typer.Argument(help="Second column.")],
    schema: SchemaOption,
    ledger: LedgerOption,
    method: Any,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    score: Annotated[
        str | None,
        typer.Option(help="hsic, spearman, kendall, iqr; for everyone lsnm, also variance, igci[-gaussian|-slope]."),
    ] = None,
    protect: Annotated[str, typer.Option(help="everyone, or test or training: that half only.")] = "everyone",
    alpha: AlphaOption = 0.1,
    accept_large_epsilon: LargeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Which of two columns is the cause?"""
    with exit_codes():
        from dpcausal import direction

        asked, way = loss_from(epsilon, delta, rho), method.built()
        words: dict[str, Any] = {"score": score, "protect": protect}
        show_answer(
            data, schema, ledger, as_json,
            lambda table: direction(
                table, x, y, loss=asked, method=way, alpha=alpha,
                accept_large_epsilon=accept_large_epsilon, **words,
            ),
        )  # fmt: skip


@app.command("direction-all")
@takes_method(WAYS)
def direction_all_command(
    data: Annotated[Path, typer.Argument(help="CSV with a header, or Parquet.")],
    schema: SchemaOption,
    ledger: LedgerOption,
    method: Any,
    pair: Annotated[
        list[str] | None, typer.Option(help="Two columns, as a,b; repeatable. By default all bounded columns.")
    ] = None,
    scores: Annotated[
        list[str] | None, typer.Option(help="Scores, as lsnm,igci; repeatable; by default one. Each is paid for.")
    ] = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    protect: Annotated[str, typer.Option(help="everyone, or test or training: that half only.")] = "everyone",
    shares: Annotated[
        list[str] | None,
        typer.Option(help="a,b=3 or igci=3: pays that pair or score three times the others; repeatable."),
    ] = None,
    correction: Annotated[str, typer.Option(help="Of the arrows: holm, benjamini-hochberg or none.")] = "holm",
    alpha: AlphaOption = 0.1,
    accept_large_epsilon: LargeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Which of two columns is the cause, for many pairs under one budget?"""
    with exit_codes():
        from dpcausal import direction_all

        asked, way = loss_from(epsilon, delta, rho), method.built()
        named = [tuple(names_in("--pair", [each])) for each in pair] if pair else None
        asked_scores = names_in("--scores", scores) or None
        words: dict[str, Any] = {"pairs": named, "protect": protect, "shares": _shares(shares)}
        words["correction"] = correction
        show_answer(
            data, schema, ledger, as_json,
            lambda table: direction_all(
                table, loss=asked, scores=asked_scores, method=way, alpha=alpha,
                accept_large_epsilon=accept_large_epsilon, **words,
            ),
        )  # fmt: skip
