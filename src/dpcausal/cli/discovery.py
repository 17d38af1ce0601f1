"""The command ``dpcausal discover``."""

from __future__ import annotations

from typing import Annotated

import typer

from dpcausal.cli.options import Call, of, task_command
from dpcausal.cli.release import KnowledgeOption, knowledge_in
from dpcausal.cli.shared import DataArgument, SchemaOption, names_in


@task_command("discover", of("discovery"), of_records=True, files=("save_release",))
def discover_command(
    data: DataArgument,
    schema: SchemaOption,
    call: Call,
    columns: Annotated[
        list[str] | None, typer.Option(help="Columns of the graph, as a,b; repeatable; by default all.")
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Level of the tests.")] = None,
    forbid: Annotated[list[str] | None, typer.Option(help="CAUSE,EFFECT that cannot be; repeatable.")] = None,
    require: Annotated[list[str] | None, typer.Option(help="CAUSE,EFFECT that must be; repeatable.")] = None,
    redraws: Annotated[int | None, typer.Option(help="Draws of fresh noise for the support of the edges.")] = None,
    knowledge: KnowledgeOption = None,
    form: Annotated[str, typer.Option("--format", help="text, dagitty, dot or graphml.")] = "text",
) -> None:
    """Which columns cause which?"""
    from dpcausal.discovery.api import discover
    from dpcausal.discovery.knowledge import Knowledge
    from dpcausal.errors import ParameterError

    texts = {"text": None, "dagitty": "to_dagitty", "dot": "to_dot", "graphml": "to_graphml"}
    if form not in texts or not (redraws is None or 1 <= redraws <= 10_000):
        raise ParameterError("--format is text, dagitty, dot or graphml, --redraws a number from 1 to 10000")
    stated = Knowledge() if knowledge is None else knowledge_in(knowledge)
    known = Knowledge(
        [*stated.forbidden, *_arrows(forbid)], [*stated.required, *_arrows(require)], stated.tiers
    )
    chosen = names_in("--columns", columns) or None
    table = call.table(data, schema)
    result = discover(table, columns=chosen, alpha=alpha, knowledge=known, **call.settings)
    if result.release is not None:
        call.save(result)  # before the support, which takes a while
        with call.rescued(result):
            result = result.with_support(redraws) if redraws else result
    writer = texts[form]
    call.show(result, writer and getattr(result.graph, writer)().rstrip("\n"))


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
