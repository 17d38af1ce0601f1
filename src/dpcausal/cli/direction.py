"""The commands ``dpcausal direction`` and ``dpcausal direction-all``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpcausal.cli.shared import (
    DeltaOption,
    EpsilonOption,
    JsonOption,
    LargeOption,
    LeastOption,
    LedgerOption,
    RhoOption,
    SchemaOption,
    app,
    exit_codes,
    loss_from,
    names_in,
    show,
)

PenaltyOption = Annotated[
    list[float] | None, typer.Option(help="λ of protected regressions; several times: one is chosen, and charged.")
]
WidthOption = Annotated[list[float] | None, typer.Option(help="Their kernel's width; several times: as for λ.")]


def _one_or_several(values: list[float] | None) -> float | tuple[float, ...] | None:
    """Return a number given once as itself, several as the tuple to choose from."""
    return (values[0] if len(values) == 1 else tuple(values)) if values else None


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
def direction_command(
    data: Annotated[Path, typer.Argument(help="CSV with a header, or Parquet.")],
    x: Annotated[str, typer.Argument(help="First column.")],
    y: Annotated[str, typer.Argument(help="Second column.")],
    schema: SchemaOption,
    ledger: LedgerOption,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    score: Annotated[
        str, typer.Option(help="hsic, spearman, kendall, iqr; for everyone also variance, igci[-gaussian|-slope].")
    ] = "hsic",
    protect: Annotated[str, typer.Option(help="everyone, or test or training: that half only.")] = "everyone",
    method: Annotated[str, typer.Option(help="auto, or for everyone blocks or joint; see the documentation.")] = "auto",
    blocks: Annotated[int | None, typer.Option(help="Odd number of blocks; by default a public rule.")] = None,
    penalty: PenaltyOption = None,
    width: WidthOption = None,
    release_scores: Annotated[bool, typer.Option(help="With one half protected: release both scores.")] = False,
    min_probability: LeastOption = None,
    accept_large_epsilon: LargeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Which of two columns is the cause?"""
    with exit_codes():
        from dpcausal import Ledger, Schema, Table, direction

        asked = loss_from(epsilon, delta, rho)
        with Ledger.open(ledger) as opened:
            table = Table(data, Schema.from_toml(schema), opened)
            chosen: dict[str, Any] = {"score": score, "protect": protect, "method": method}
            result = direction(
                table, x, y, loss=asked, blocks=blocks, release_scores=release_scores,
                penalty=_one_or_several(penalty), width=_one_or_several(width),
                min_probability=min_probability, accept_large_epsilon=accept_large_epsilon, **chosen,
            )  # fmt: skip
            show(result, opened, as_json)


@app.command("direction-all")
def direction_all_command(
    data: Annotated[Path, typer.Argument(help="CSV with a header, or Parquet.")],
    schema: SchemaOption,
    ledger: LedgerOption,
    pair: Annotated[
        list[str] | None, typer.Option(help="Two columns, as a,b; repeatable. By default all bounded columns.")
    ] = None,
    scores: Annotated[
        list[str] | None, typer.Option(help="Scores, as hsic,igci; repeatable; hsic by default. Each is paid for.")
    ] = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    protect: Annotated[str, typer.Option(help="everyone, or test or training: that half only.")] = "everyone",
    method: Annotated[str, typer.Option(help="auto, or for everyone blocks or joint; see the documentation.")] = "auto",
    blocks: Annotated[int | None, typer.Option(help="Odd number of blocks; by default a public rule.")] = None,
    penalty: PenaltyOption = None,
    width: WidthOption = None,
    shares: Annotated[
        list[str] | None,
        typer.Option(help="a,b=3 or igci=3: pays that pair or score three times the others; repeatable."),
    ] = None,
    min_probability: LeastOption = None,
    accept_large_epsilon: LargeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Which of two columns is the cause, for many pairs under one budget?"""
    with exit_codes():
        from dpcausal import Ledger, Schema, Table, direction_all

        asked = loss_from(epsilon, delta, rho)
        named = [tuple(names_in("--pair", [each])) for each in pair] if pair else None
        asked_scores = names_in("--scores", scores) or ["hsic"]
        with Ledger.open(ledger) as opened:
            table = Table(data, Schema.from_toml(schema), opened)
            chosen: dict[str, Any] = {"pairs": named, "protect": protect, "method": method, "shares": _shares(shares)}
            result = direction_all(
                table, loss=asked, scores=asked_scores, blocks=blocks, penalty=_one_or_several(penalty),
                width=_one_or_several(width), min_probability=min_probability,
                accept_large_epsilon=accept_large_epsilon, **chosen,
            )  # fmt: skip
            show(result, opened, as_json)
