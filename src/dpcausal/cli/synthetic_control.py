"""The command ``dpcausal synthetic-control``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dpcausal.cli.options import Call, of, task_command
from dpcausal.cli.shared import DATA, echo


@task_command("synthetic-control", of("synthetic_control"))
def synthetic_control_command(
    data: Annotated[str, typer.Argument(metavar="DATA", help=f"A row for each unit and time: {DATA}")],
    unit: Annotated[str, typer.Option(help="Column of the units.")],
    time: Annotated[str, typer.Option(help="Column of the times.")],
    outcome: Annotated[str, typer.Option(help="Column of the outcome.")],
    target: Annotated[str, typer.Option(help="The treated unit; its own series is not protected.")],
    start: Annotated[str, typer.Option(help="The first treated period.")],
    lower: Annotated[float, typer.Option(help="Public lower bound of the outcome.")],
    upper: Annotated[float, typer.Option(help="Public upper bound of the outcome.")],
    call: Call,
    treated: Annotated[
        str, typer.Option(help="Rule of all treated units: none is a donor, panels of one ledger share it.")
    ] = "",
    times: Annotated[
        str, typer.Option(help="All periods in order, with commas between, where their order is not known.")
    ] = "",
    placebo: Annotated[str, typer.Option(help="Ask as if the treatment had begun at this earlier period.")] = "",
    coverage: Annotated[float, typer.Option(help="Nominal coverage of the interval.")] = 0.9,
    plan: Annotated[bool, typer.Option("--plan", help="Say what it would cost and whether it can work.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Run although the donors would add little but noise.")] = False,
) -> None:
    """What would have happened without the intervention?"""
    from dpcausal.data.panels.panel import Panel
    from dpcausal.data.schema import Bounded
    from dpcausal.synthetic_control.api import plan_synthetic_control, synthetic_control

    panel = Panel(data, unit=unit, time=time, outcome=outcome, target=_named(target, data), start=start,
                  bounds=Bounded(lower, upper), ledger=call.ledger, name=call.name, treated=treated,
                  times=[time.strip() for time in times.split(",")] if times else None)  # fmt: skip
    arguments: dict[str, Any] = {"start": placebo or None, "coverage": coverage}
    if plan:
        settings = {name: call.settings[name] for name in ("loss", "method")}
        echo(plan_synthetic_control(panel, **arguments, **settings))
    else:
        call.show(synthetic_control(panel, force=force, **arguments, **call.settings))


def _named(target: str, data: str) -> str | int:
    """Return a unit's name as the data hold it: all names in a CSV are texts."""
    from dpcausal.data.sources.files import TEXTS
    from dpcausal.data.sources.stat_packages import READERS

    texts = data.lower().endswith((*TEXTS, *READERS))
    return target if texts or not target.lstrip("+-").isdigit() else int(target)
