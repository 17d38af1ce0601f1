"""Pictures of directions, on scales that public numbers fix: of the counts, of a margin, of the graph of many pairs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dpcausal.direction.block_counts import AT_LEAST, AT_MOST, arrow_bounds
from dpcausal.mechanisms.blocks import blocks_moved
from dpcausal.plotting import axes, titled
from dpcausal.privacy.loss import PureDP

if TYPE_CHECKING:
    from dpcausal.direction.result import Direction
    from dpcausal.direction.result_set import Directions


def draw_counts(one: Direction, ax: Any = None) -> Any:
    """Draw the four noisy counts of M blocks between 0 and M, with the shares that they are held against."""
    ax, (first, second), blocks = axes(ax, (6, 2.6)), one.columns, one.blocks or 1
    rows = ("linked", f"leans to {first}", f"{first} → {second} misfits", f"{second} → {first} misfits")
    fits, leans = arrow_bounds(blocks, _epsilon(one))
    held = (AT_MOST, AT_LEAST), (1 - leans, 0.5, leans), (AT_MOST, fits), (AT_MOST, fits)
    for place, (count, marks) in enumerate(zip(one.counts or (), held, strict=False)):
        ax.plot([0, blocks], [place, place], color="0.85", linewidth=6, solid_capstyle="butt", zorder=1)
        for mark in marks:
            ax.plot([mark * blocks] * 2, [place - 0.3, place + 0.3], color="0.4", linewidth=1, zorder=2)
        # Noise may carry a count out of the picture: then it stands at its edge.
        shown = min(max(count, -0.1 * blocks), 1.1 * blocks)
        colour = "0.4" if one.undecided else "tab:blue"
        ax.plot([shown], [place], "o", color=colour, fillstyle="none" if one.undecided else "full", zorder=3)
        ax.annotate(str(count), (shown, place), (0, 7), textcoords="offset points", ha="center", fontsize=8)
    ax.set_xlim(-0.12 * blocks, 1.12 * blocks)
    ax.set_ylim(3.6, -0.6)
    ax.set_yticks(range(len(rows)), list(rows))
    shares = f"{AT_MOST:g} and {AT_LEAST:g}, of misfits {fits:.2g}, of the lean ½ and {leans:.2g}"
    ax.set_xlabel(f"noisy number of {blocks} blocks; strokes: shares of {shares}")
    return titled(ax, one.answer(), one.stamp())


def _epsilon(one: Direction) -> float:
    """Return the ε of one block."""
    spent = one.spent
    return spent.epsilon / blocks_moved(one.guarantee.unit) if isinstance(spent, PureDP) else math.inf


def draw_margin(one: Direction, ax: Any = None) -> Any:
    """Draw a forced choice as how easily coins, or noise alone, lean so far: 1 in the middle, .001 at the ends."""
    ax, (first, second) = axes(ax), one.columns
    ax.axvline(0, color="0.6", linewidth=1)
    ax.axvspan(0, 1, color="tab:blue", alpha=0.07)
    ax.axvspan(-1, 0, color="tab:orange", alpha=0.07)
    if one.margin is not None:
        sign, p = (1 if one.margin >= 0 else -1), one.p_coins
        far = sign * (1.0 if p is None else min(1.0, -math.log10(max(p, 1e-3)) / 3))
        colour = "0.4" if one.undecided else "tab:blue" if sign > 0 else "tab:orange"
        style = ":" if one.undecided or p is None else "-"
        ax.plot([0, far], [0, 0], style, color=colour, linewidth=3, solid_capstyle="butt")
        ax.plot([far], [0], marker="o", color=colour, markersize=9, fillstyle="none" if one.undecided else "full")
    ax.set_xlim(-1.05, 1.05)
    ax.set_yticks([])
    ax.set_xticks([-1, -2 / 3, -1 / 3, 0, 1 / 3, 2 / 3, 1], [".001", ".01", ".1", "1", ".1", ".01", ".001"])
    ax.set_xlabel(f"p by coins or noise alone\nleft: leans to {second} as the cause,  right: to {first}")
    return titled(ax, one.answer(), one.stamp())


def draw_graph(many: Directions, ax: Any = None) -> Any:
    """Draw the columns on a circle: arrows that stand in blue, linked pairs without one grey, with their verdicts."""
    names = list(dict.fromkeys(name for pair in many.pairs for name in pair))
    ax = axes(ax, (5, 5))
    turn = 2 * math.pi / max(len(names), 1)
    at = {name: (math.sin(turn * place), math.cos(turn * place)) for place, name in enumerate(names)}
    stand = set(many.arrows)
    for pair in many.pairs:
        answers = [one for one in many if one.columns == pair]
        arrow = next((found for found in (pair, pair[::-1]) if found in stand), None)
        (x0, y0), (x1, y1) = (at[name] for name in arrow or pair)
        open_link = all(one.verdict == "not linked" for one in answers)
        if arrow or not open_link:
            style = "-|>" if arrow else "-"
            look = {"arrowstyle": style, "shrinkA": 22, "shrinkB": 22, "color": "tab:blue" if arrow else "0.6"}
            look["linestyle"] = "-" if arrow else ":"
            ax.annotate("", (x1, y1), (x0, y0), arrowprops=look)
        if not arrow and not open_link:
            told = "/".join(dict.fromkeys(one.verdict or "no arrow" for one in answers if not one.cause)) or "no arrow"
            ax.text((x0 + x1) / 2, (y0 + y1) / 2, told, fontsize=7, color="0.4", ha="center", va="center")
    box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "0.5"}
    for name, (x, y) in at.items():
        ax.text(x, y, name, ha="center", va="center", bbox=box)
    ax.set_xlim(-1.4, 1.4)
    ax.set_ylim(-1.3, 1.3)
    ax.set_axis_off()
    return titled(ax, f"arrows at level {many.alpha:g} ({many.correction}); no line: not linked", many.stamp())
