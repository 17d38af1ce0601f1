"""The picture of a test: the released p-value beside the level."""

from __future__ import annotations

from typing import Any

from dpcausal.plots import axes, titled

LEAST = 1e-12


def draw(ax: Any, *, pvalue: float | None, alpha: float, decision: str, title: str, stamp: str) -> Any:
    """Draw a p-value on a logarithmic axis, left of the level if dependent, and return the axes."""
    ax = axes(ax)
    colour = "tab:red" if decision == "dependent" else "0.4"
    ax.set_xscale("log")
    ax.axvspan(LEAST, alpha, color="tab:red", alpha=0.07)
    ax.axvline(alpha, color="0.6", linewidth=1)
    if pvalue is None:
        ax.text(0.5, 0.5, "a decision only: no p-value was released", transform=ax.transAxes, ha="center", va="center")
    else:
        ax.plot([max(pvalue, LEAST)], [0], marker="o", color=colour, markersize=9)
    ax.set_xlim(LEAST, 1)
    ax.set_yticks([])
    ax.set_xlabel(f"released p-value; shaded: below the level {alpha:g}")
    return titled(ax, f"{title}: {decision}", stamp)


def draw_many(ax: Any, *, names: list[str], pvalues: tuple[float, ...], alpha: float, stamp: str) -> Any:
    """Draw a p-value a line on a logarithmic axis, and return the axes."""
    if ax is None:
        ax = axes()
        ax.figure.set_size_inches(6, 0.9 + 0.25 * len(names))
    ax.set_xscale("log")
    ax.axvspan(LEAST, alpha, color="tab:red", alpha=0.07)
    ax.axvline(alpha, color="0.6", linewidth=1)
    for place, pvalue in enumerate(pvalues):
        ax.plot([max(pvalue, LEAST)], [place], marker="o", color="tab:red" if pvalue <= alpha else "0.4")
    ax.set_xlim(LEAST, 1)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlabel(f"released p-values, adjusted; shaded: below the level {alpha:g}")
    return titled(ax, stamp)
