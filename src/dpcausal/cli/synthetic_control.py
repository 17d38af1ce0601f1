"""The command ``dpcausal synthetic-control``."""

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
    app,
    exit_codes,
    loss_from,
    show,
)
from dpcausal.papers import CONTROLS
from dpcausal.synthetic_control.methods import METHODS


@app.command("synthetic-control")
@takes_method({**METHODS, **CONTROLS})
def synthetic_control_command(
    data: Annotated[Path, typer.Argument(help="Long CSV with a header, or Parquet: a row for each unit and time.")],
    unit: Annotated[str, typer.Option(help="Column of the units.")],
    time: Annotated[str, typer.Option(help="Column of the times.")],
    outcome: Annotated[str, typer.Option(help="Column of the outcome.")],
    target: Annotated[str, typer.Option(help="The treated unit; its own series is not protected.")],
    start: Annotated[str, typer.Option(help="The first treated period.")],
    lower: Annotated[float, typer.Option(help="Public lower bound of the outcome.")],
    upper: Annotated[float, typer.Option(help="Public upper bound of the outcome.")],
    ledger: LedgerOption,
    method: Any,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    coverage: Annotated[float, typer.Option(help="Nominal coverage of the interval.")] = 0.9,
    plan: Annotated[bool, typer.Option("--plan", help="Say what it would cost and whether it can work.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Run although the donors would add little but noise.")] = False,
    accept_large_epsilon: LargeOption = False,
    as_json: JsonOption = False,
) -> None:
    """What would have happened without the intervention?"""
    with exit_codes():
        from dpcausal import Bounded, Ledger, Panel, plan_synthetic_control, synthetic_control

        asked = loss_from(epsilon, delta, rho)
        with Ledger.open(ledger) as opened:
            panel = Panel(data, unit=unit, time=time, outcome=outcome, target=_named(target, data), start=start,
                          bounds=Bounded(lower, upper), ledger=opened)  # fmt: skip
            chosen: dict[str, Any] = {"method": method.built(), "coverage": coverage}
            if plan:
                print(plan_synthetic_control(panel, loss=asked, **chosen))
                return
            result = synthetic_control(
                panel, loss=asked, force=force, accept_large_epsilon=accept_large_epsilon, **chosen
            )
            show(result, opened, as_json)


def _named(target: str, data: Path) -> str | int:
    """Return a unit's name as the file holds it: all names in a CSV are texts."""
    return target if data.suffix.lower() == ".csv" or not target.lstrip("+-").isdigit() else int(target)
