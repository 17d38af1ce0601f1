"""Pictures of answers as SVG: released and public numbers on fixed, honest scales, drawn without a plotting package."""

from __future__ import annotations

import math
from collections.abc import Callable
from hashlib import sha256
from html import escape
from typing import Any

from dpcausal.direction.result import Direction
from dpcausal.discovery.result import Discovery
from dpcausal.effects.result import Effect
from dpcausal.independence.result import Independence
from dpcausal.independence.result import said as words_of_p
from dpcausal.synthetic_control.result import SyntheticControl

WIDE, HIGH = 640, 150
LEFT, RIGHT = 20, 620
LEAST_P = 1e-12


def drawn(answer: Any) -> tuple[str, str] | None:
    """Return an answer's picture and what it shows in words; ``None`` if it has none."""
    pictures: dict[type[Any], Callable[[Any], tuple[str, str] | None]] = {
        Effect: _effect, Independence: _test, Direction: _counts, Discovery: _graph, SyntheticControl: _path,
    }  # fmt: skip
    draw = pictures.get(type(answer))
    return None if draw is None else draw(answer)


def budget_label(total: float, spent: float, unit: str) -> tuple[str, str]:
    """Return the budget drawn as a label: what was spent of it, and what is left."""
    share = 0.0 if total <= 0 else max(0.0, min(spent / total, 1.0))
    end = LEFT + share * (RIGHT - LEFT)
    words = f"{spent:.4g} of {total:.4g} {unit} spent, {max(total - spent, 0):.4g} left"
    parts = [
        f'<rect class="frame" x="{LEFT}" y="30" width="{RIGHT - LEFT}" height="34"/>',
        f'<rect class="one" x="{LEFT}" y="30" width="{end - LEFT:.1f}" height="34"/>',
        _text(LEFT, 20, f"Privacy budget, {unit}"), _text(LEFT, 86, words),
    ]  # fmt: skip
    return _svg(parts, words, 100), words


def _effect(found: Effect) -> tuple[str, str] | None:
    if found.estimate is None or found.interval is None:
        return None
    low, high = found.interval
    reach = max(abs(low), abs(high)) * 1.15 or 1.0
    noise = 1.96 * (found.noise_error or 0.0)

    def at(value: float) -> float:
        return LEFT + (max(-reach, min(reach, value)) / reach + 1) / 2 * (RIGHT - LEFT)

    words = f"effect {found.estimate:+.3g}, {found.coverage:.0%} interval {low:.3g} to {high:.3g}"
    parts = [
        _line(LEFT, 100, RIGHT, 100, "axis"), _line(at(0), 15, at(0), 100, "zero"),
        _line(at(low), 45, at(high), 45, "reach"),
        _line(at(found.estimate - noise), 75, at(found.estimate + noise), 75, "noise"),
        f'<circle class="one" cx="{at(found.estimate):.1f}" cy="45" r="7"/>',
        _text(at(low), 34, f"{low:.3g}", "middle"), _text(at(high), 34, f"{high:.3g}", "middle"),
        _text(RIGHT, 64, "sampling and noise", "end"), _text(RIGHT, 94, "noise alone", "end"),
        *(_text(at(tick), 118, f"{tick:.2g}", "middle") for tick in (-reach, 0, reach)),
        _text((LEFT + RIGHT) / 2, 140, f"effect of {found.treatment} on {found.outcome}", "middle"),
    ]  # fmt: skip
    return _svg(parts, words), words


def _test(found: Independence) -> tuple[str, str] | None:
    if found.pvalue is None:
        return None

    def at(p: float) -> float:
        return LEFT + -math.log10(max(p, LEAST_P)) / -math.log10(LEAST_P) * (RIGHT - LEFT)

    said = "dependence shown" if found.decision == "dependent" else "not decided: dependence not shown"
    words = f"{words_of_p(found.pvalue)}, level {found.alpha:g}: {said}"
    parts = [
        _line(LEFT, 80, RIGHT, 80, "axis"),
        f'<rect class="zone" x="{LEFT}" y="40" width="{at(found.alpha) - LEFT:.1f}" height="40"/>',
        _line(at(found.alpha), 30, at(found.alpha), 80, "zero"), _text(at(found.alpha), 24, f"level {found.alpha:g}"),
        f'<circle class="one" cx="{at(found.pvalue):.1f}" cy="60" r="8"/>',
        *(_text(at(tick), 98, f"{tick:g}", "middle") for tick in (1, 1e-3, 1e-6, 1e-9, 1e-12)),
        _text((LEFT + RIGHT) / 2, 124, f"p-value, {said}", "middle"),
    ]  # fmt: skip
    return _svg(parts, words), words


def _counts(found: Direction) -> tuple[str, str] | None:
    if found.counts is None or not found.blocks:
        return None
    first, second = found.columns
    named = (("linked", found.counts[0]), (f"{first} → {second} misfits", found.counts[2]),
             (f"{second} → {first} misfits", found.counts[3]))  # fmt: skip
    parts = []
    for place, (name, count) in enumerate(named):
        y = 20 + 36 * place
        wide = max(0.0, min(count / found.blocks, 1.0)) * 380
        parts += [
            f'<rect class="frame" x="240" y="{y}" width="380" height="22"/>',
            f'<rect class="one" x="240" y="{y}" width="{wide:.1f}" height="22"/>',
            _text(232, y + 16, f"{name} {count}", "end"),
        ]  # fmt: skip
    words = f"{found.answer()}; noisy counts of {found.blocks} blocks: " + ", ".join(f"{n} {c}" for n, c in named)
    parts += [_text(240, 142, "0"), _text(620, 142, f"{found.blocks} blocks", "end")]
    return _svg(parts, words), words


def _graph(found: Discovery) -> tuple[str, str]:
    nodes, high = found.graph.nodes, 360
    turns = [2 * math.pi * k / len(nodes) for k in range(len(nodes))]
    spots = {
        name: (WIDE / 2 + 220 * math.sin(turn), high / 2 - 130 * math.cos(turn))
        for name, turn in zip(nodes, turns, strict=True)
    }
    tip = "tip-" + sha256(str(found.graph).encode()).hexdigest()[:8]  # a page may hold several graphs
    parts = [f'<defs><marker id="{tip}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" '
             'orient="auto"><path class="tip" d="M0 0L10 5L0 10z"/></marker></defs>']  # fmt: skip
    arrows = {frozenset(arc) for arc in found.graph.arcs()}
    for a, b in [*found.graph.arcs(), *found.graph.edges()]:
        (x1, y1), (x2, y2) = spots[a], spots[b]
        gap = 26 / max(math.hypot(x2 - x1, y2 - y1), 1)
        ends = (x1 + gap * (x2 - x1), y1 + gap * (y2 - y1), x2 - gap * (x2 - x1), y2 - gap * (y2 - y1))
        parts.append(_line(*ends, "edge", f' marker-end="url(#{tip})"' if frozenset((a, b)) in arrows else ""))
    for name, (x, y) in spots.items():
        parts += [f'<circle class="node" cx="{x:.1f}" cy="{y:.1f}" r="6"/>', _text(x, y - 12, name, "middle")]
    return _svg(parts, f"causal graph: {found.graph}", high), f"causal graph: {found.graph}"


def _path(found: SyntheticControl) -> tuple[str, str]:
    high, past, m = 260, len(found.past), len(found.observed)
    series = {
        "observed": (0, [*found.past, *found.observed]), "without": (past, [*found.counterfactual]),
        "own": (past, [*found.donor_free_forecast]),
    }  # fmt: skip
    every = [float(value) for _, values in series.values() for value in values]
    low, top = min(every), max(every)

    def at(k: int, value: float) -> str:
        y = 20 + (top - value) / ((top - low) or 1) * 190
        return f"{LEFT + 40 + k / max(past + m - 1, 1) * (RIGHT - LEFT - 40):.1f},{y:.1f}"

    parts = [
        f'<polyline class="{name}" points="{" ".join(at(start + k, float(v)) for k, v in enumerate(values))}"/>'
        for name, (start, values) in series.items()
    ]
    cut = float(at(past, low).split(",")[0])
    parts += [
        _line(cut, 15, cut, 215, "zero"), _text(cut + 4, 226, f"from {found.times[0]}"), _text(4, 24, f"{top:.3g}"),
        _text(4, 210, f"{low:.3g}"),
        _text(LEFT, 250, "solid: observed; dashed: without the treatment; dotted: the target's own forecast"),
    ]  # fmt: skip
    words = f"{found.target}: mean effect {found.att:+.3g} from {found.times[0]} to {found.times[-1]}"
    return _svg(parts, words, high), words


def _svg(parts: list[str], words: str, high: int = HIGH) -> str:
    return (
        f'<svg viewBox="0 0 {WIDE} {high}" role="img" aria-label="{escape(words)}"><title>{escape(words)}</title>'
        + "".join(parts) + "</svg>"
    )  # fmt: skip


def _line(x1: float, y1: float, x2: float, y2: float, kind: str, more: str = "") -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"{more}/>'


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
