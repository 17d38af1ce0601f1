"""Pictures of a synthetic control: the target, which is public, and what was released.  No donor is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpcausal.plots import axes, titled

if TYPE_CHECKING:
    from dpcausal.synthetic_control.result import SyntheticControl

FEW = 8
"""Most labels on the time axis."""


def draw_path(answer: SyntheticControl, ax: Any = None) -> Any:
    """Draw the observed outcome, the counterfactual with its interval, and the donor-free forecast."""
    ax = axes(ax)
    start, m = len(answer.past), len(answer.observed)
    after = np.arange(start, start + m)
    seen = np.concatenate([answer.past, answer.observed])
    ax.plot(np.arange(start + m), seen, color="black", label="observed (public)")
    _path(ax, after, answer.counterfactual, "tab:blue", "-", "without the treatment (released)")
    _path(ax, after, answer.donor_free_forecast, "0.6", ":", f"own {answer.donor_free_rule} forecast (public)")
    if answer.interval is not None:
        half = (answer.interval[1] - answer.interval[0]) / 2
        low, high = answer.counterfactual - half, answer.counterfactual + half
        ax.fill_between(after, low, high, color="tab:blue", alpha=0.12, linewidth=0,
                        label=f"± the {answer.coverage:.0%} interval of the mean, not of each period")  # fmt: skip
    return _finish(ax, answer, "outcome")


def draw_gap(answer: SyntheticControl, ax: Any = None) -> Any:
    """Draw the effect in each period, the mean effect, and its interval."""
    ax = axes(ax)
    start, m = len(answer.past), len(answer.observed)
    after = np.arange(start, start + m)
    ax.axhline(0, color="0.6", linewidth=1)
    _path(ax, after, answer.effect, "tab:blue", "-", "effect (released)")
    ax.plot([after[0], after[-1]], [answer.att, answer.att], color="black", linewidth=1, label="mean effect (released)")
    if answer.interval is not None:
        ax.axhspan(*answer.interval, color="0.6", alpha=0.15, linewidth=0,
                   label=f"{answer.coverage:.0%} interval of the mean effect")  # fmt: skip
    return _finish(ax, answer, "effect")


def _path(ax: Any, places: Any, values: Any, colour: str, line: str, label: str) -> None:
    ax.plot(places, values, line, color=colour, marker="o" if len(places) == 1 else None, label=label)


def _finish(ax: Any, answer: SyntheticControl, label: str) -> Any:
    times = (*answer.past_times, *answer.times)
    ax.axvline(len(answer.past) - 0.5, color="0.4", linestyle="--", linewidth=1)
    places = np.unique(np.linspace(0, len(times) - 1, min(FEW, len(times))).round().astype(int))
    ax.set_xticks(places, [str(times[place]) for place in places])
    ax.set_ylabel(label)
    sure = "" if answer.pvalue is None else f", placebo p = {answer.pvalue:.3g}"
    ax.legend(fontsize="small")
    return titled(ax, f"{answer.target}: mean effect {answer.att:+.4g}{sure}", answer.stamp())
