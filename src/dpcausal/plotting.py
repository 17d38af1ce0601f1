"""Pictures of released values, on matplotlib axes that the caller may give."""

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


def picture_formats() -> frozenset[str]:
    """Return the endings of pictures that can be written."""
    return frozenset(axes().figure.canvas.get_supported_filetypes())


def titled(ax: Any, *lines: str, **look: Any) -> Any:
    """Return the axes under a title, names on them as they stand: one with two dollar signs is no formula. Numbers that
    an axis writes by itself stay formulas."""
    from matplotlib.ticker import FixedLocator

    ax.set_title("\n".join(filter(None, lines)), **look)
    named = [axis for axis in (ax.xaxis, ax.yaxis) if isinstance(axis.get_major_locator(), FixedLocator)]
    labels = [label for axis in named for label in axis.get_ticklabels()]
    for text in (ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts, *labels):
        text.set_parse_math(False)
    return ax
