"""Pictures of answers as SVG: released and public numbers on fixed, honest scales, drawn without a plotting package."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from hashlib import sha256
from html import escape
from itertools import groupby
from typing import Any

from dpcausal.direction.result import Direction
from dpcausal.discovery.result import Discovery
from dpcausal.effects.result import Effect
from dpcausal.independence.result import Independence
from dpcausal.independence.result import pvalue_text as words_of_p
from dpcausal.synthetic_control.result import SyntheticControl

WIDE, HIGH = 360, 130
LEFT, RIGHT = 12, 348
LEAST_P = 1e-12
MOST = 24
"""Letters of a name in a picture; its words below hold the whole name.  A phone shows a picture at this very width."""


def drawn(answer: Any) -> tuple[str, str] | None:
    """Return an answer's picture and what it shows in words; ``None`` if it has none."""
    pictures: dict[type[Any], Callable[[Any], tuple[str, str] | None]] = {
        Effect: _effect, Independence: _test, Direction: _counts, Discovery: _graph, SyntheticControl: _path,
    }  # fmt: skip
    draw = pictures.get(type(answer))
    return None if draw is None else draw(answer)


def budget_label(total: float, loss: float, unit: str) -> tuple[str, str]:
    """Return the budget drawn as a label: what was spent of it, and what is left."""
    share = 0.0 if total <= 0 else max(0.0, min(loss / total, 1.0))
    words = f"{loss:.4g} of {total:.4g} {unit} spent, {max(total - loss, 0):.4g} left"
    parts = [
        f'<rect class="frame" x="{LEFT}" y="22" width="{RIGHT - LEFT}" height="24"/>',
        f'<rect class="one" x="{LEFT}" y="22" width="{share * (RIGHT - LEFT):.1f}" height="24"/>',
        _text(LEFT, 15, f"Privacy budget, {unit}"), _text(LEFT, 62, "0"), _text(RIGHT, 62, f"{total:.4g}", "end"),
    ]  # fmt: skip
    return _svg(parts, words, 68), words


def _effect(found: Effect) -> tuple[str, str] | None:
    if found.estimate is None or found.interval is None:
        return None
    low, high = found.interval
    reach = max(abs(low), abs(high)) * 1.15 or 1.0
    noise = 1.96 * (found.noise_error or 0.0)

    def at(value: float) -> float:
        return LEFT + (max(-reach, min(reach, value)) / reach + 1) / 2 * (RIGHT - LEFT)

    side = LEFT if low + high > 0 else RIGHT  # the words stand where the interval is not
    anchor = "start" if low + high > 0 else "end"
    words = f"effect {found.estimate:+.3g}, {found.coverage:.0%} interval {low:.3g} to {high:.3g}; noise alone " \
        f"±{noise:.3g}"  # fmt: skip
    parts = [
        _line(LEFT, 78, RIGHT, 78, "axis"), _line(at(0), 8, at(0), 78, "zero"),
        _line(at(low), 24, at(high), 24, "reach"),
        _line(at(found.estimate - noise), 54, at(found.estimate + noise), 54, "noise"),
        f'<circle class="one" cx="{at(found.estimate):.1f}" cy="24" r="6"/>',
        _text(side, 28, "sampling and noise", anchor), _text(side, 58, "noise alone", anchor),
        *(_text(at(tick), 95, f"{tick:.2g}", place)
          for tick, place in ((-reach, "start"), (0, "middle"), (reach, "end"))),
        _text((LEFT + RIGHT) / 2, 118, f"{_short(found.treatment)} on {_short(found.measured)}", "middle"),
    ]  # fmt: skip
    return _svg(parts, words), words


def _test(found: Independence) -> tuple[str, str] | None:
    if found.pvalue is None:
        return None

    def at(p: float) -> float:
        return LEFT + -math.log10(max(p, LEAST_P)) / -math.log10(LEAST_P) * (RIGHT - LEFT)

    said = "dependence shown" if found.decision == "dependent" else "not decided: dependence not shown"
    words = f"{words_of_p(found.pvalue)}, level {found.alpha:g}: {said}"
    right = at(found.alpha) > WIDE / 2
    parts = [
        _line(LEFT, 64, RIGHT, 64, "axis"),
        f'<rect class="zone" x="{LEFT}" y="28" width="{at(found.alpha) - LEFT:.1f}" height="36"/>',
        _line(at(found.alpha), 20, at(found.alpha), 64, "zero"),
        _text(at(found.alpha), 15, f"level {found.alpha:g}", "end" if right else "start"),
        f'<circle class="one" cx="{at(found.pvalue):.1f}" cy="46" r="7"/>',
        *(_text(at(tick), 82, f"{tick:g}", place) for tick, place in
          ((1, "start"), (1e-3, "middle"), (1e-6, "middle"), (1e-9, "middle"), (1e-12, "end"))),
        _text((LEFT + RIGHT) / 2, 108, f"p-value: {said}", "middle"),
    ]  # fmt: skip
    return _svg(parts, words, 118), words


def _counts(found: Direction) -> tuple[str, str] | None:
    if found.counts is None or not found.blocks:
        return None
    first, second = (_short(name, 14) for name in found.columns)
    named = (("linked", found.counts[0]), (f"{first} → {second} misfits", found.counts[2]),
             (f"{second} → {first} misfits", found.counts[3]))  # fmt: skip
    parts = []
    for place, (name, count) in enumerate(named):
        y = 20 + 44 * place
        wide = max(0.0, min(count / found.blocks, 1.0)) * (RIGHT - LEFT)
        parts += [
            _text(LEFT, y - 5, f"{name}: {count}"),
            f'<rect class="frame" x="{LEFT}" y="{y}" width="{RIGHT - LEFT}" height="18"/>',
            f'<rect class="one" x="{LEFT}" y="{y}" width="{wide:.1f}" height="18"/>',
        ]
    words = f"{found.answer()}; noisy counts of {found.blocks} blocks: " + ", ".join(f"{n} {c}" for n, c in named)
    parts += [_text(LEFT, 146, "0"), _text(RIGHT, 146, f"{found.blocks} blocks", "end")]
    return _svg(parts, words, 154), words


def _graph(found: Discovery) -> tuple[str, str]:
    nodes = found.graph.nodes
    high = 250 if len(nodes) < 7 else 340
    turns = [2 * math.pi * (k + 0.5) / len(nodes) for k in range(len(nodes))]
    spots = {
        name: (WIDE / 2 + 125 * math.sin(turn), high / 2 - (high / 2 - 36) * math.cos(turn))
        for name, turn in zip(nodes, turns, strict=True)
    }
    tip = "tip-" + sha256(str(found.graph).encode()).hexdigest()[:8]  # a page may hold several graphs
    parts = [f'<defs><marker id="{tip}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" '
             'orient="auto"><path class="tip" d="M0 0L10 5L0 10z"/></marker></defs>']  # fmt: skip
    arrows = {frozenset(arc) for arc in found.graph.arcs()}
    for a, b in [*found.graph.arcs(), *found.graph.edges()]:
        (x1, y1), (x2, y2) = spots[a], spots[b]
        gap = 12 / max(math.hypot(x2 - x1, y2 - y1), 1)
        ends = (x1 + gap * (x2 - x1), y1 + gap * (y2 - y1), x2 - gap * (x2 - x1), y2 - gap * (y2 - y1))
        parts.append(_line(*ends, "edge", f' marker-end="url(#{tip})"' if frozenset((a, b)) in arrows else ""))
    for name, (x, y) in spots.items():
        # A name stands outside the ring, and ends at the edge of the picture where it would be cut.
        told, down = _short(name, 16), 22 if y > high / 2 else -12
        half = len(told) * 4.2
        side = "start" if x < half else "end" if x > WIDE - half else "middle"
        place = 2 if side == "start" else WIDE - 2 if side == "end" else x
        parts += [f'<circle class="node" cx="{x:.1f}" cy="{y:.1f}" r="6"/>', _text(place, y + down, told, side)]
    return _svg(parts, f"causal graph: {found.graph}", high), f"causal graph: {found.graph}"


def _path(found: SyntheticControl) -> tuple[str, str]:
    past, m = len(found.past), len(found.observed)
    series = {
        "observed": (0, [*found.past, *found.observed]), "without": (past, [*found.counterfactual]),
        "own": (past, [*found.donor_free_forecast]),
    }  # fmt: skip
    every = [float(value) for _, values in series.values() for value in values if value == value]
    low, top = min(every), max(every)

    def at(k: int, value: float) -> str:
        y = 24 + (top - value) / ((top - low) or 1) * 150
        return f"{LEFT + k / max(past + m - 1, 1) * (RIGHT - LEFT):.1f},{y:.1f}"

    def lines(start: int, values: Sequence[float]) -> list[str]:
        """Return the points of each stretch of periods that have a value."""
        points = [at(start + k, float(v)) if v == v else "" for k, v in enumerate(values)]
        return [" ".join(stretch) for seen, stretch in groupby(points, bool) if seen]

    parts = [
        f'<polyline class="{name}" points="{points}"/>'
        for name, (start, values) in series.items()
        for points in lines(start, values)
    ]
    cut = float(at(past, low).split(",")[0])
    parts += [
        _line(cut, 20, cut, 178, "zero"), _line(LEFT, 178, RIGHT, 178, "axis"),
        _text(LEFT, 14, f"{top:.3g}"), _text(LEFT, 194, f"{low:.3g}, the lowest"),
        _text(RIGHT, 14, f"treated from {_short(str(found.times[0]), 12)}", "end"),
        _text(RIGHT, 194, f"to {_short(str(found.times[-1]), 12)}", "end"),
        _text(LEFT, 214, "solid: observed; dashed: without the treatment;"),
        _text(LEFT, 230, "dotted: the target's own forecast"),
    ]  # fmt: skip
    words = f"{found.target}: mean effect {found.att:+.3g} from {found.times[0]} to {found.times[-1]}"
    return _svg(parts, words, 238), words


def _short(name: str, most: int = MOST) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _svg(parts: list[str], words: str, high: int = HIGH) -> str:
    return (
        f'<svg viewBox="0 0 {WIDE} {high}" role="img" aria-label="{escape(words)}"><title>{escape(words)}</title>'
        + "".join(parts) + "</svg>"
    )  # fmt: skip


def _line(x1: float, y1: float, x2: float, y2: float, kind: str, more: str = "") -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"{more}/>'


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
