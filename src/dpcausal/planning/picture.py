"""The picture of a plan: its accuracy over n or over ε."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dpcausal.plots import axes, titled
from dpcausal.privacy.loss import ZCDP

if TYPE_CHECKING:
    from dpcausal.planning.plan import Plan


def draw_plan(plan: Plan, ax: Any, over: str) -> Any:
    """Draw the curve with its range, and the plan on it; what no size reaches is left out."""
    ax = axes(ax, (6, 3.5))
    points = [row for row in plan.curve(over) if math.isfinite(row["high"])]
    rho = isinstance(plan.loss, ZCDP)

    def place(n: int, loss: Any) -> float:
        return float(n) if over == "n" else float(loss.rho if rho else loss.epsilon)

    along = [place(row["n"], row["loss"]) for row in points]
    ax.fill_between(along, [row["low"] for row in points], [row["high"] for row in points], color="tab:blue", alpha=0.2)
    ax.plot(along, [row["accuracy"] for row in points], color="tab:blue", marker=".")
    if math.isfinite(plan.accuracy):
        ax.plot([place(plan.n, plan.loss)], [plan.accuracy], color="tab:red", marker="o")
    ax.set_xscale("log")
    ticks = dict.fromkeys(along)
    ax.set_xticks(list(ticks), [f"{tick:,.4g}" if over == "epsilon" else f"{tick:,.0f}" for tick in ticks])
    ax.minorticks_off()
    ax.set_ylim(0, 1 if plan.assumed.more_is_better else None)
    ax.set_xlabel(plan.assumed.records if over == "n" else "rho" if rho else "epsilon")
    ax.set_ylabel(plan.goal)
    return titled(ax, f"{plan.task}, {plan.loss}" if over == "n" else f"{plan.task}, {plan.n} {plan.assumed.records}")
