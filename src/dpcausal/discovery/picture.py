"""A picture of a graph in layers, causes above effects, on matplotlib axes that the caller may give."""

from __future__ import annotations

from typing import Any

from dpcausal.discovery.graph import Cpdag
from dpcausal.discovery.orient import extend
from dpcausal.plots import axes, titled


def layers(graph: Cpdag) -> list[list[str]]:
    """Return the nodes in layers: each lies below its parents in one DAG of the class, apart nodes on top.

    Within a layer nodes are ordered by the mean place of their parents.
    """
    arcs = extend(graph.marks()) or frozenset(graph.directed)
    parents = {node: sorted(a for a, b in arcs if b == node) for node in graph.nodes}
    depth: dict[str, int] = {}
    left = list(graph.nodes)
    while left:
        ready = [node for node in left if all(parent in depth for parent in parents[node])]
        for node in ready or left[:1]:  # a cycle cannot be laid out: its first node is placed as it is
            depth[node] = 1 + max((depth[p] for p in parents[node] if p in depth), default=-1)
            left.remove(node)
    rows: list[list[str]] = []
    place: dict[str, float] = {}
    for level in range(max(depth.values(), default=-1) + 1):
        row = [node for node in graph.nodes if depth[node] == level]
        row.sort(key=lambda node: sum(place.get(p, 0.5) for p in parents[node]) / max(len(parents[node]), 1))
        for number, node in enumerate(row):
            place[node] = (number + 1) / (len(row) + 1)
        rows.append(row)
    return rows


def positions(graph: Cpdag) -> dict[str, tuple[float, float]]:
    """Return a place in the unit square for each node."""
    rows = layers(graph)
    return {
        node: ((number + 1) / (len(row) + 1), 1 - (level + 0.5) / len(rows))
        for level, row in enumerate(rows)
        for number, node in enumerate(row)
    }


def draw_graph(ax: Any, *, graph: Cpdag, edges: list[dict[str, Any]], width: str, stamp: str) -> Any:
    """Draw a graph and return the axes: arrows, lines where the direction is open, dotted if weak, dashed if untested.

    The width of an edge shows the share of re-drawn noise in which it stands, or else how far its margin goes;
    ``width`` says which.
    """
    ax = axes(ax, (6, 4.5))
    place = positions(graph)
    for row in edges:
        if not row["tested"]:
            strength = 0.0
        elif row["support"] is not None:
            strength = row["support"]
        else:
            strength = 0.5 if row["margin"] is None else min(max(row["margin"], 0.0) / 10, 1.0)
        arrow = {
            "arrowstyle": "-|>" if row["directed"] else "-", "linewidth": 0.6 + 3 * strength, "color": "tab:blue",
            "linestyle": "--" if not row["tested"] else ":" if row["weak"] else "-", "alpha": 0.35 + 0.6 * strength,
            "shrinkA": 14, "shrinkB": 14, "mutation_scale": 14,
        }  # fmt: skip
        ax.annotate("", xy=place[row["to"]], xytext=place[row["from"]], arrowprops=arrow)
    for node, (x, y) in place.items():
        ax.text(
            x, y, node.replace("$", r"\$"), ha="center", va="center",
            bbox={"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": "0.5"},
        )  # fmt: skip
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_axis_off()
    return titled(ax, f"width: {width}", stamp, fontsize="small")
