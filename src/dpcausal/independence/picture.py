"""The picture of a test: the released p-value beside the level."""

from __future__ import annotations

from typing import Any

from dpcausal.plots import axes

LEAST = 1e-12


def draw(ax: Any, *, pvalue: float | None, alpha: float, decision: str, title: str, stamp: str) -> Any:
    """Draw a p-value on a logarithmic axis, left of the level if dependent, and return the axes."""
    ax = axes(ax)
    colour = "tab:red" if decision == "dependent" else "0.4"
    ax.set_xscale("log")
    ax.axvspan(LEAST, alpha, color="tab:red", alpha=0.07)
    ax.axvline(alpha, color="0.6", linewidth=1)
    if pvalue is not None:
        ax.plot([max(pvalue, LEAST)], [0], marker="o", color=colour, markersize=9)
    ax.set_xlim(LEAST, 1)
    ax.set_yticks([])
    ax.set_xlabel(f"released p-value; shaded: below the level {alpha:g}")
    words = f"{title}: {decision}"
    ax.set_title(f"{words}\n{stamp}" if stamp else words)
    return ax
