"""Pictures of released values, on matplotlib axes that the caller may give."""

from __future__ import annotations

from typing import Any

from dpcausal.errors import MissingDependencyError, ParameterError


def axes(ax: Any = None, size: tuple[float, float] = (6, 2)) -> Any:
    """Return the given axes, or new ones of a size in inches without touching the caller's current figure."""
    if ax is not None:
        if not hasattr(ax, "set_xlim"):
            raise ParameterError(
                f"ax must be matplotlib axes, got {type(ax).__name__}; to save a picture: picture = answer.plot(), "
                'then picture.figure.savefig("answer.png")'
            )
        return ax
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependencyError("matplotlib", "plot") from None
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure.subplots()


def without_math(ax: Any) -> Any:
    """Return the axes, names on them as they stand: one with two dollar signs is no formula.

    Numbers that an axis writes by itself stay formulas.
    """
    from matplotlib.ticker import FixedLocator

    named = [axis for axis in (ax.xaxis, ax.yaxis) if isinstance(axis.get_major_locator(), FixedLocator)]
    labels = [label for axis in named for label in axis.get_ticklabels()]
    for text in (ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts, *labels):
        text.set_parse_math(False)
    return ax


def draw_direction(
    ax: Any, *, columns: tuple[str, str], margin: float | None, unit: str, probability: float | None,
    undecided: bool = False, stamp: str = "",
) -> Any:  # fmt: skip
    """Draw a released margin as an arrow from 0 towards the cause, and return the axes; a stamp stands in the title."""
    ax = axes(ax)
    first, second = columns
    reach = 1.25 * abs(margin) if margin else 1.0
    ax.axvline(0, color="0.6", linewidth=1)
    ax.axvspan(0, reach, color="tab:blue", alpha=0.07)
    ax.axvspan(-reach, 0, color="tab:orange", alpha=0.07)
    if margin is None:
        title = "no direction was released"
    else:
        colour = "0.4" if undecided else "tab:blue" if margin >= 0 else "tab:orange"
        ax.plot([0, margin], [0, 0], color=colour, linewidth=3, solid_capstyle="butt")
        ax.plot([margin], [0], marker="o", color=colour, markersize=9)
        title = f"{first} → {second}" if margin >= 0 else f"{second} → {first}"
        title = f"undecided: {first}, {second}" if undecided else title
        if probability is not None:
            sure = "above .999" if probability > 0.999 else f"{probability:.3f}"
            title += f"  (noise leaves it right: {sure})"
    ax.set_xlim(-reach, reach)
    ax.set_yticks([])
    ax.set_xlabel(f"released margin ({unit})\nleft: {second} is the cause,  right: {first} is the cause")
    ax.set_title(f"{title}\n{stamp}" if stamp else title)
    return without_math(ax)


def draw_directions(ax: Any, *, rows: list[tuple[str, float | None, bool]], stamp: str = "") -> Any:
    """Draw for each row, a name, how sure one is of its first column, and whether it is undecided; return the axes.

    A row without a number is left empty.  An undecided one is grey, dotted and hollow.
    """
    is_new, ax = ax is None, axes(ax)
    if is_new:
        ax.figure.set_size_inches(6, 1.1 + 0.25 * len(rows))
    ax.axvline(0.5, color="0.6", linewidth=1)
    for place, (_, towards_first, undecided) in enumerate(rows):
        if towards_first is not None:
            colour = "0.4" if undecided else "tab:blue" if towards_first >= 0.5 else "tab:orange"
            style = ":" if undecided else "-"
            ax.plot([0.5, towards_first], [place, place], style, color=colour, linewidth=2, solid_capstyle="butt")
            ax.plot([towards_first], [place], marker="o", color=colour, fillstyle="none" if undecided else "full")
    ax.set_xlim(-0.03, 1.03)
    ax.set_yticks(range(len(rows)), [name for name, _, _ in rows])
    ax.invert_yaxis()
    words = "left: the second is the cause,  right: the first is\n(how sure the noise leaves one; grey: undecided)"
    ax.set_xlabel(words, loc="right")  # centred, it would leave the figure where the names are long
    ax.set_title(stamp)
    return without_math(ax)
