"""Pictures of an effect: its groups as a forest, the balance of its arms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpcausal.plotting import axes, titled

if TYPE_CHECKING:
    from dpcausal.effects.rdd.estimate import Discontinuity
    from dpcausal.effects.result import Effect, Interval


def draw_forest(effect: Effect, ax: Any) -> Any:
    """Draw the effect and below it that of each group; a hollow point has no interval."""
    groups = [(one.group, one.estimate, one.interval) for one in effect.by_group]
    rows = [("all", effect.estimate, effect.interval), *groups]
    return forest(rows, ax, f"effect of {effect.treatment} on {effect.measured}", effect.stamp())


def forest(rows: Sequence[tuple[str, float | None, Interval | None]], ax: Any, label: str, stamp: str) -> Any:
    """Draw one estimate a row with its interval, the first apart."""
    ax = axes(ax, (6, 1.2 + 0.3 * len(rows)))
    ax.axvline(0, color="0.6", linewidth=1)
    for place, (_, estimate, interval) in enumerate(rows):
        colour = "tab:blue" if place == 0 else "0.3"
        if interval is not None:
            ax.plot(list(interval), [place, place], color=colour, linewidth=2, solid_capstyle="butt")
        if estimate is not None:
            ax.plot([estimate], [place], marker="s" if place == 0 else "o", color=colour,
                    fillstyle="none" if interval is None else "full")  # fmt: skip
    ax.set_yticks(range(len(rows)), [name for name, _, _ in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlabel(label)
    return titled(ax, stamp)


def draw_balance(effect: Effect, ax: Any) -> Any:
    """Draw how far treated and controls differ before the adjustment; the bars are twice the noise's deviation."""
    ax = axes(ax, (6, 1.2 + 0.25 * len(effect.balance)))
    ax.axvline(0, color="0.6", linewidth=1)
    for place, one in enumerate(effect.balance):
        ends = [one.difference - 2 * one.deviation, one.difference + 2 * one.deviation]
        ax.plot(ends, [place, place], color="0.6", linewidth=2, solid_capstyle="butt")
        ax.plot([one.difference], [place], marker="o", color="tab:blue")
    ax.set_yticks(range(len(effect.balance)), [one.name for one in effect.balance])
    ax.set_ylim(len(effect.balance) - 0.5, -0.5)
    ax.set_xlabel("treated less control, in standard deviations, before the adjustment")
    return titled(ax, effect.stamp())


def draw_bins(found: Discontinuity, ax: Any) -> Any:
    """Draw the mean outcome of each bin that noise does not hide, larger where there are more records."""
    ax = axes(ax, (6, 3.5))
    shown = [one for one in found.bins if one.mean is not None]
    most = max((one.count for one in shown), default=1.0)
    for one in shown:
        right = one.lower >= found.release.cutoff
        ax.plot([one.lower, one.upper], [one.mean, one.mean], color="0.7", linewidth=1)
        ax.plot([(one.lower + one.upper) / 2], [one.mean], marker="o", color="tab:blue" if right else "0.3",
                markersize=3 + 5 * (one.count / most) ** 0.5)  # fmt: skip
    ax.axvline(found.cutoff, color="0.6", linewidth=1, linestyle="--")
    ax.set_xlabel(found.running)
    ax.set_ylabel(f"mean {found.outcome}" if found.event is None else f"share of {found.measured}")
    return titled(ax, found.stamp())
