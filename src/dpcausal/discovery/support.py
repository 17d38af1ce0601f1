"""Support: the share of re-drawn noise in which an edge, or an arrow, appears; and its figure."""

from dataclasses import dataclass

from dpcausal.codec import storable
from dpcausal.discovery.graph import Arc, Cpdag, Edge
from dpcausal.discovery.knowledge import Knowledge
from dpcausal.discovery.search.exact_score import MOST_COLUMNS

ARROW_SUPPORT = 0.5
"""Least share of re-drawn noise in which an arrow must stand to be drawn as one: below, a line."""

REDRAWS, REDRAWS_WIDE = 40, 16
"""Draws for the support of a result, to the columns of an exact score search and beyond."""

LEAST_REDRAWS, MOST_TESTS = 8, 20_000
"""A search that takes so many tests in so few draws is not repeated unless it is asked for."""

FIRM = 0.5
"""Support from which on an edge is drawn solid."""

UNDECIDED = 0.49
"""Most support of an edge that a number may explain which nothing could separate it by."""

REDRAW_SEED = 8_215_049_346_517_203
"""Of the re-drawn noise: public, and of no use to whoever knows it, since nothing hidden is in what it is added to."""


CLEAR, DULL, SHARPER = 70.0, 0.2, 1.7
"""Rows' weight over noise above which searches overstate support; the power of their odds where noise hides much.

Fitted on generated and named networks.
"""


@storable("Support")
@dataclass(frozen=True)
class Support:
    """Shares of re-drawn noise in which an edge is tested and stands, and in which it is an arrow (cause, effect). An
    edge of whitened pairs has the mean of the shares of three searches, as ``calibrated_support``."""

    redraws: int
    edges: dict[Edge, float]
    arrows: dict[Arc, float]


def usual_redraws(columns: int, tests: int = 1) -> int:
    most = min(REDRAWS if columns <= MOST_COLUMNS else REDRAWS_WIDE, MOST_TESTS // max(tests, 1))
    return most if most >= LEAST_REDRAWS else 0


def calibrated_support(share: float, clearness: float, steepest: float, doubted: float) -> float:
    """Return about which share of such edges was right: searches overstate support where noise is small, and understate
    it where noise is large.

    (1 − doubted) odds(share)^p,  p = (w/70)² from 1 to the steepest,  w = Σ weight² over the deviation of an entry's
    noise.  odds(s) = s^k / (s^k + (1 − s)^k) with k from 1, where w is 70, to 1.7, where (w/70)² is 0.8 or less.
    ``doubted`` grows with how far columns determine others.
    """
    power = (clearness / CLEAR) ** 2
    sharper = 1 + (SHARPER - 1) * min(max(1 - power, 0.0) / DULL, 1.0)
    inside, outside = share**sharper, (1 - share) ** sharper
    return float((1 - doubted) * (inside / (inside + outside)) ** min(max(power, 1.0), steepest))


def graph_with_support(graph: Cpdag, shares: Support | None, known: Knowledge) -> Cpdag:
    """Return a graph whose arrows of little support are lines, but for those that knowledge asks for."""
    if shares is None:
        return graph
    weak = {
        (a, b) for a, b in graph.directed
        if shares.arrows.get((a, b), 0.0) < ARROW_SUPPORT and known.allows(b, a) and not known.joined(a, b)
    }  # fmt: skip
    return Cpdag(graph.nodes, graph.directed - weak, graph.undirected | {frozenset(arc) for arc in weak})
