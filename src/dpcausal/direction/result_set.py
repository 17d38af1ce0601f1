"""The result of many directions at one cost: each answer, the arrows that stand, a table and a picture."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, overload

from dpcausal.codec import storable
from dpcausal.direction.result import Direction, unprotected_half
from dpcausal.plotting import axes, titled
from dpcausal.privacy.loss import PureDP
from dpcausal.result import Guarantee, Result, plain

NAMED = "adjusted", "correction", "alpha", "pairs", "scores", "n", "seed", "guarantee"


@storable("DirectionSet")
@dataclass(frozen=True)
class DirectionSet(Result):
    """Directions of several pairs, or by several scores, released under one loss: a sequence of ``Direction``.

    Attributes
    ----------
    directions : tuple of Direction
        Pair by pair, score by score within a pair.  The ``guarantee`` of each is that of the whole call; ``spent`` is
        its own part.
    adjusted : tuple of float or None
        The p-value of each answer's arrow, adjusted for their number; ``None`` where a method has none.
    correction, alpha : str, float
        How, and the level at which an arrow stands.
    pairs : tuple of pairs of str
        In the order that was asked for.
    scores : tuple of str
        In the order that was asked for.
    n : int
        Rows, public.
    seed : int
        Seed of the public randomness that all answers share: the same splits, blocks and features.
    guarantee : Guarantee
        What all answers together cost.
    """

    directions: tuple[Direction, ...]
    adjusted: tuple[float | None, ...]
    correction: str
    alpha: float
    pairs: tuple[tuple[str, str], ...]
    scores: tuple[str, ...]
    n: int
    seed: int
    guarantee: Guarantee

    def __len__(self) -> int:
        return len(self.directions)

    def __iter__(self) -> Iterator[Direction]:
        return iter(self.directions)

    @overload
    def __getitem__(self, place: int) -> Direction: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Direction, ...]: ...

    def __getitem__(self, place: int | slice) -> Direction | tuple[Direction, ...]:
        return self.directions[place]

    @property
    def arrows(self) -> tuple[tuple[str, str], ...]:
        """(cause, effect) of every arrow that stands after the correction for their number."""
        pairs = zip(self.directions, self.adjusted, strict=True)
        significant = [one for one, adjusted in pairs if adjusted is not None and adjusted <= self.alpha]
        return tuple(dict.fromkeys((one.cause, one.effect) for one in significant if one.cause and one.effect))

    def headline(self) -> list[str]:
        lines = unprotected_half(self.guarantee)
        arrows = ", ".join(f"{cause} -> {effect}" for cause, effect in self.arrows) or "none"
        lines.append(
            f"{_count(len(self.pairs), 'pair')}, {_count(len(self.scores), 'score')}, {self.n} "
            f"{self.guarantee.records}. Arrows that stand at level {self.alpha:g} "
            f"(correction: {self.correction}): {arrows}."
        )
        for one, adjusted in zip(self.directions, self.adjusted, strict=True):
            p = "" if adjusted is None else f"; arrow: adjusted p {adjusted:.3f}"
            margin = "" if one.margin is None else f"{one.margin:+.4g} {one.margin_unit}"
            favoured = f", {one.leaning()}" if one.leaning() else ""
            blocks = f"; {_count(one.blocks, 'block')}" if one.blocks else ""
            paid = "" if one.spent.exact else f"; paid {one.spent}"
            lines.append(f"  {one.answer()}   {one.score}: {margin}{favoured}{p}{blocks}{paid}")
        return lines + self._disagreements()

    def _disagreements(self) -> list[str]:
        lines = []
        for pair in self.pairs:
            named = [one for one in self.directions if one.columns == pair and one.cause]
            if len({one.cause for one in named}) > 1:
                opinions = ", ".join(f"{one.score} says {one.cause} -> {one.effect}" for one in named)
                lines.append(f"Scores disagree: {opinions}. At least one is wrong, and the noise cannot say which.")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON's types."""
        parts = {name: plain(getattr(self, name)) for name in (*NAMED, "arrows")}
        return {"directions": [one.to_dict() for one in self.directions], **parts}

    def rows(self) -> list[dict[str, Any]]:
        """Return the answers, a row for each pair and score, in the order of ``directions``.

        As of ``Direction``, with ``adjusted``, ``inconclusive`` and ``epsilon``: the part that the answer alone was
        paid, where ``loss`` is what the whole call cost.
        """
        return [
            one.rows()[0] | {
                "adjusted": adjusted, "inconclusive": one.inconclusive,
                "epsilon": one.spent.epsilon if isinstance(one.spent, PureDP) else None,
            }
            for one, adjusted in zip(self.directions, self.adjusted, strict=True)
        ]  # fmt: skip

    def plot(self, ax: Any = None) -> Any:
        """Draw the graph of the pairs: arrows that stand, and the verdict beside each other pair."""
        return draw_graph(self, ax)


def draw_graph(many: DirectionSet, ax: Any = None) -> Any:
    names = list(dict.fromkeys(name for pair in many.pairs for name in pair))
    ax = axes(ax, (5, 5))
    turn = 2 * math.pi / max(len(names), 1)
    at = {name: (math.sin(turn * place), math.cos(turn * place)) for place, name in enumerate(names)}
    arrows = set(many.arrows)
    for pair in many.pairs:
        answers = [one for one in many if one.columns == pair]
        arrow = next((directed for directed in (pair, pair[::-1]) if directed in arrows), None)
        (x0, y0), (x1, y1) = (at[name] for name in arrow or pair)
        open_link = all(one.verdict == "no association detected" for one in answers)
        if arrow or not open_link:
            style = "-|>" if arrow else "-"
            look = {"arrowstyle": style, "shrinkA": 22, "shrinkB": 22, "color": "tab:blue" if arrow else "0.6"}
            look["linestyle"] = "-" if arrow else ":"
            ax.annotate("", (x1, y1), (x0, y0), arrowprops=look)
        if not arrow and not open_link:
            label = "/".join(dict.fromkeys(one.verdict or "no arrow" for one in answers if not one.cause)) or "no arrow"
            ax.text((x0 + x1) / 2, (y0 + y1) / 2, label, fontsize=7, color="0.4", ha="center", va="center")
    box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "0.5"}
    for name, (x, y) in at.items():
        ax.text(x, y, name, ha="center", va="center", bbox=box)
    ax.set_xlim(-1.4, 1.4)
    ax.set_ylim(-1.3, 1.3)
    ax.set_axis_off()
    return titled(
        ax, f"arrows at level {many.alpha:g} ({many.correction}); no line: no association detected", many.stamp()
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
