"""Figures of results as SVG: what ``Result.plot`` draws, with the same bytes for the same numbers."""

import io
import re
from collections.abc import Callable
from html import escape
from itertools import count
from typing import Any

from dpcausal.plotting import axes
from dpcausal.result import Result

REFERENCE = re.compile(r'url\(#([^)]*)\)| xlink:href="#([^"]*)"')
SETTINGS: Any = {"svg.hashsalt": "dpcausal", "svg.fonttype": "none", "font.size": 9, "font.family": "sans-serif"}
NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))


class Figures:
    """The figures of one page, whose ids are all different."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def of(self, result: Any, text: str, **options: Any) -> str:
        """Return a result's own plot; empty where it has none."""
        if not isinstance(result, Result):
            return ""
        return self.drawn(lambda ax: result.plot(ax, **options), text, None)

    def drawn(self, draw: Callable[[Any], Any], text: str, size: tuple[float, float] | None = (6, 2)) -> str:
        """Return what a function draws on axes; ``text`` says what it shows to whoever cannot see it."""
        import matplotlib

        with matplotlib.rc_context(SETTINGS):
            figure = draw(axes(None, size) if size else None).figure
            file = io.BytesIO()
            figure.savefig(file, format="svg", metadata=NO_METADATA, transparent=True)
        return self._inline(file.getvalue().decode(), text)

    def _inline(self, svg: str, text: str) -> str:
        """Return an SVG as part of a page: with a title, without a fixed size, its ids those of no other figure."""
        prefix, used = f"figure{next(self._numbers)}-", {one[1] or one[2] for one in REFERENCE.finditer(svg)}
        svg = re.sub(r' id="([^"]*)"', lambda one: f' id="{prefix}{one[1]}"' if one[1] in used else "", svg)
        svg = REFERENCE.sub(lambda one: f"url(#{prefix}{one[1]})" if one[1] else f' href="#{prefix}{one[2]}"', svg)
        head, inside = svg[svg.index("<svg") :].split(">", 1)
        head, label = re.sub(r' (width|height)="[^"]*"', "", head), escape(text)
        return f'{head} role="img" aria-label="{label}"><title>{label}</title>{inside}'


def draw_budget(ax: Any, shares: list[tuple[str, float]], total: float, symbol: str) -> Any:
    place = 0.0
    shades = ("#1f4e79", "#7fa6cf", "#b9d0e8")
    for number, (name, share) in enumerate(shares):
        ax.barh([0], [share], left=place, color=shades[number % len(shades)], edgecolor="white", height=0.5)
        room = share >= 0.016 * total * len(name)
        place += share
        if room or number == len(shares) - 1:
            start, side = (place - share, "left") if room else (place, "right")
            ax.text(start, 0.42, name, fontsize=8, ha=side, va="bottom")
    ax.barh([0], [max(total - place, 0)], left=place, color="white", edgecolor="0.4", height=0.5)
    ax.set_xlim(0, total)
    ax.set_ylim(-0.35, 0.95)
    ax.set_yticks([])
    ax.set_xlabel(f"privacy budget, {symbol}")
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    return ax
