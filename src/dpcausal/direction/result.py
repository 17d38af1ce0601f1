"""The results of directions: verdict, favoured direction and cost of a pair, and many at one cost."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from dpcausal.codec import storable
from dpcausal.direction.block_counts import AT_LEAST, AT_MOST, DRAWN_WIDTH, arrow_bounds
from dpcausal.direction.block_decisions import SCALED
from dpcausal.errors import Advice, Setting
from dpcausal.mechanisms.blocks import blocks_moved
from dpcausal.plotting import axes, titled
from dpcausal.privacy.loss import Loss, PureDP
from dpcausal.privacy.sensitivity import Unit
from dpcausal.result import Guarantee, Result, plain


def unprotected_half(guarantee: Guarantee) -> list[str]:
    halves = {Unit.TEST_ROW: ("TEST", "training"), Unit.TRAINING_ROW: ("TRAINING", "test")}
    if guarantee.loss.exact or guarantee.unit not in halves:
        return []
    protected, other = halves[guarantee.unit]
    return [f"PROTECTS THE {protected} HALF ONLY: the rows of the {other} half are not protected."]


MEANING = {
    "model rejected": "Neither direction fits with additive noise: common cause, changing spread, feedback, selection.",
    "cannot distinguish": "Both directions fit: these rows cannot distinguish them. One quantity in two units fits "
    "both ways.",
    "no association detected": "No finding of independence: ruled out is a link that two blocks in five would show, "
    "as a correlation of about {seen:.2f}. A weaker one may be there: ci_test asks it of all rows.",
}
"""What a verdict that is no arrow says."""


@storable("Direction")
@dataclass(frozen=True)
class Direction(Result):
    """Which of two columns is the cause, as released.

    Attributes
    ----------
    verdict : str or None
        ``"a causes b"`` with the columns' names, ``"no association detected"``, ``"model rejected"``, ``"cannot
        distinguish"`` or ``"inconclusive"``; ``None`` from methods that only choose between the two directions.
    cause, effect : str or None
        The arrow; ``None`` unless the verdict is one, or, from ``majority-vote``, unless ``p_sign`` ≤ ``alpha``.
    favoured : str or None
        The column that the margin points at as the cause: a forced choice, no finding by itself.
    p_sign : float or None
        The p-value of the favoured direction under fair coin flips, noise included.
    margin : float or None
        Released; above 0 if it favours the first named column.  Its unit is ``margin_unit``.
    margin_unit : str
        ``"score"`` (difference of the two scores), ``"records"`` (how many records would have to change for the
        other direction to win) or ``"votes"`` (first minus second, over the blocks).
    counts : tuple of four int, or None
        The noisy numbers of blocks: associated, favouring the first column, first → second misfits, and the reverse.
    p_values : dict or None
        Of each claim that a verdict is made of; that of the favoured direction is two-sided.
    p_arrow : float or None
        Of the arrow that the margin points at: the largest of what it needs.
    scores : tuple of two floats, or None
        The released scores of (first causes second, second causes first), the smaller wins; ``None`` unless both
        were released.
    score, method : str
        As asked for, defaults filled.
    settings : dict
        The method's options as used, by name.
    columns : tuple of str
        The two columns in the order they were named.
    n : int
        Rows, public.
    seed : int
        Seed of the public randomness (splits, blocks, features).
    alpha : float
        The level of the verdict's claims.
    spent : Loss
        What this answer was paid; ``guarantee.loss`` is more where one call gave several.
    guarantee : Guarantee
        What the call cost and whom it protects.
    """

    verdict: str | None
    cause: str | None
    effect: str | None
    favoured: str | None
    p_sign: float | None
    margin: float | None
    margin_unit: Literal["score", "records", "votes"]
    counts: tuple[int, int, int, int] | None
    p_values: dict[str, float] | None = field(hash=False)
    p_arrow: float | None
    scores: tuple[float, float] | None
    score: str
    method: str
    settings: dict[str, Any] = field(hash=False)
    columns: tuple[str, str]
    n: int
    seed: int | None
    alpha: float
    spent: Loss
    guarantee: Guarantee

    @property
    def blocks(self) -> int | None:
        return self.settings.get("blocks")

    @property
    def rows_per_block(self) -> int | None:
        return self.settings.get("rows_per_block")

    @property
    def inconclusive(self) -> bool:
        """Whether nothing is said: the verdict is open, or, without one, no cause is named."""
        return self.cause is None if self.verdict is None else self.verdict == "inconclusive"

    def answer(self) -> str:
        """Return the arrow, or why there is none, in a few words."""
        first, second = self.columns
        if self.cause is not None:
            return f"{self.cause} -> {self.effect}"
        if self.margin is None:
            return f"{first} and {second}: no direction was released"
        where = f" in blocks of {self._rows()} rows" if self.verdict == "no association detected" else ""
        return f"{first} and {second}: {self.verdict or 'inconclusive'}{where}"

    def _rows(self) -> str:
        return f"{'at most ' if self.guarantee.unit is Unit.PERSON else ''}{self.rows_per_block}"

    @property
    def reason(self) -> str:
        """Why there is no direction; empty where there is one, or where the method gives no verdict."""
        if self.verdict is None or self.cause is not None:
            return ""
        if self.verdict in MEANING:
            whole = (self.rows_per_block or 1) * self.settings.get("share", 1.0)
            return MEANING[self.verdict].format(seen=min(1.0, DRAWN_WIDTH / math.sqrt(whole)))
        first, second = self.columns
        favoured, other = self.columns if self.favoured == first else (second, first)
        needs = {
            "linked": "that they are associated", f"{favoured} -> {other} fits": f"that {favoured} -> {other} fits",
            f"{other} -> {favoured} misfits": f"that {other} -> {favoured} misfits",
            "clear lean": f"that the blocks lean clearly to {favoured}",
        }  # fmt: skip
        pvalues = {claim_text: (self.p_values or {}).get(claim, 1.0) for claim, claim_text in needs.items()}
        listed = ", ".join(f"{claim_text} (p = {p:.2g})" for claim_text, p in pvalues.items() if p > self.alpha)
        return f"Inconclusive: {favoured} -> {other} needs what is not shown at level {self.alpha:g}: {listed}."

    def leaning(self) -> str:
        """Return the favoured direction and its p-value in words; empty where that is not known."""
        if self.favoured is None or self.p_sign is None:
            return ""
        p = "below .001" if self.p_sign < 0.001 else f"{self.p_sign:.3f}"
        return f"leans to {self.favoured} as the cause (sign test: p {p})"

    def headline(self) -> list[str]:
        first, second = self.columns
        level = "" if self.verdict is None else f" (α = {self.alpha:g})"
        lines = [*unprotected_half(self.guarantee), f"{self.answer().replace(' -> ', ' → ')}{level}."]
        lines += [self.reason.replace(" -> ", " → ")] if self.reason else []
        if self.counts is not None:
            linked, favouring, misfits, back = self.counts
            rows = (
                ("association", linked), (f"residuals dependent, {first} → {second}", misfits),
                (f"residuals dependent, {second} → {first}", back), (f"subsets favouring {first} as cause", favouring),
            )  # fmt: skip
            width = max(len(name) for name, _ in rows)
            lines += [f"  {name:{width}}  {count:>5} of {self.blocks} subsets" for name, count in rows]
            lines.append("The counts have noise and may exceed the number of subsets." if not self.spent.exact else "")
        elif self.leaning():
            lines.append(f"Best guess: {self.leaning()}.")
        return [line for line in lines if line]

    def warnings(self) -> list[str]:
        text = Advice("the evidence is too weak for a direction: use more subsets (", Setting("blocks"),
                      "), more rows or a larger ε")  # fmt: skip
        return [text] if self.verdict == "inconclusive" and self.counts is not None else []

    def technical(self) -> list[str]:
        lines = list[str]()
        first, second = self.columns
        if self.counts is not None:
            noisy = "counts" if self.spent.exact else "noisy counts"
            lines.append(f"In {self.blocks} blocks of {self._rows()} rows ({noisy}), level {self.alpha:g}.")
        if self.leaning():
            lines.append(f"It {self.leaning()}{'' if self.cause else ': no finding'}.")
        if self.counts is None and self.margin is not None:
            lines.append(f"Margin {self.margin:+.4g} {self.margin_unit}.")
        if self.scores is not None:
            forward, backward = self.scores
            each = f"{first} -> {second} {forward:.4g}, {second} -> {first} {backward:.4g}"
            lines.append(f"Scores, the smaller wins: {each}.")
        where = f"{self.blocks} block{'' if self.blocks == 1 else 's'}, " if self.blocks and not self.counts else ""
        model = ", location-scale noise" if self.settings.get("model") == SCALED else ""
        lines.append(f"Score {self.score}, {where}{self.n} {self.guarantee.records}, method {self.method}{model}.")
        if self.spent != self.guarantee.loss:
            lines.append(f"One of several answers of a call: it was paid {self.spent} of {self.guarantee.loss}.")
        return lines

    def plot(self, ax: Any = None) -> Any:
        """Draw the four noisy counts with what they are held against, or the released margin; the scale is fixed."""
        return (draw_margin if self.counts is None else draw_counts)(self, ax)


def draw_counts(one: Direction, ax: Any = None) -> Any:
    ax, (first, second), blocks = axes(ax, (6, 2.6)), one.columns, one.blocks or 1
    rows = ("linked", f"leans to {first}", f"{first} → {second} misfits", f"{second} → {first} misfits")
    epsilon = one.spent.epsilon / blocks_moved(one.guarantee.unit) if isinstance(one.spent, PureDP) else math.inf
    fits, clear_share = arrow_bounds(blocks, epsilon)
    shares = (AT_MOST, AT_LEAST), (1 - clear_share, 0.5, clear_share), (AT_MOST, fits), (AT_MOST, fits)
    for place, (count, marks) in enumerate(zip(one.counts or (), shares, strict=False)):
        ax.plot([0, blocks], [place, place], color="0.85", linewidth=6, solid_capstyle="butt", zorder=1)
        for mark in marks:
            ax.plot([mark * blocks] * 2, [place - 0.3, place + 0.3], color="0.4", linewidth=1, zorder=2)
        position = min(max(count, -0.1 * blocks), 1.1 * blocks)
        colour = "0.4" if one.inconclusive else "tab:blue"
        ax.plot([position], [place], "o", color=colour, fillstyle="none" if one.inconclusive else "full", zorder=3)
        ax.annotate(str(count), (position, place), (0, 7), textcoords="offset points", ha="center", fontsize=8)
    ax.set_xlim(-0.12 * blocks, 1.12 * blocks)
    ax.set_ylim(3.6, -0.6)
    ax.set_yticks(range(len(rows)), list(rows))
    marked = f"{AT_MOST:g} and {AT_LEAST:g}, of misfits {fits:.2g}, of the lean ½ and {clear_share:.2g}"
    ax.set_xlabel(f"noisy number of {blocks} blocks; strokes: shares of {marked}")
    return titled(ax, one.answer(), one.stamp())


def draw_margin(one: Direction, ax: Any = None) -> Any:
    ax, (first, second) = axes(ax), one.columns
    ax.axvline(0, color="0.6", linewidth=1)
    ax.axvspan(0, 1, color="tab:blue", alpha=0.07)
    ax.axvspan(-1, 0, color="tab:orange", alpha=0.07)
    if one.margin is not None:
        sign, p = (1 if one.margin >= 0 else -1), one.p_sign
        far = sign * (1.0 if p is None else min(1.0, -math.log10(max(p, 1e-3)) / 3))
        colour = "0.4" if one.inconclusive else "tab:blue" if sign > 0 else "tab:orange"
        style = ":" if one.inconclusive or p is None else "-"
        ax.plot([0, far], [0, 0], style, color=colour, linewidth=3, solid_capstyle="butt")
        ax.plot([far], [0], marker="o", color=colour, markersize=9, fillstyle="none" if one.inconclusive else "full")
    ax.set_xlim(-1.05, 1.05)
    ax.set_yticks([])
    ax.set_xticks([-1, -2 / 3, -1 / 3, 0, 1 / 3, 2 / 3, 1], [".001", ".01", ".1", "1", ".1", ".01", ".001"])
    ax.set_xlabel(f"p-value if noise alone decided\nleft: {second} is the cause,  right: {first}")
    return titled(ax, one.answer(), one.stamp())


@storable("DirectionSet")
@dataclass(frozen=True)
class DirectionSet(Result):
    """Directions of several pairs, or by several scores, released under one loss.

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
        return {**super().to_dict(), "arrows": plain(self.arrows)}

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
        answers = [one for one in many.directions if one.columns == pair]
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
