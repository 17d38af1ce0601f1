"""The result of a discovery: a graph, the support of its edges, the privacy cost and the released numbers."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from dpcausal.codec import storable
from dpcausal.core import validate as public
from dpcausal.discovery.adjustment import adjustment_sets
from dpcausal.discovery.copies import lines_of
from dpcausal.discovery.graph import Cpdag, Edge
from dpcausal.discovery.search.pc import Terms
from dpcausal.discovery.search.release_search import support, without_noise
from dpcausal.discovery.support import FIRM, Support, graph_with_support
from dpcausal.errors import ParameterError, Setting
from dpcausal.plotting import axes, titled
from dpcausal.releases.level_moments import NoisyWhitened
from dpcausal.releases.release import Release
from dpcausal.result import Guarantee, Result, plain


@storable("Discovery")
@dataclass(frozen=True, eq=False)
class Discovery(Result):
    """A causal graph as it was found from released numbers.

    Attributes
    ----------
    graph : Cpdag
        ``graph.directed``, ``graph.undirected``, ``graph.skeleton``.  An arrow that is present in less than half of
        re-drawn noise is a line.
    unpruned_graph : Cpdag or None
        The graph before that, up to Markov equivalence; ``None`` in answers that were kept before arrows became lines.
    method : str
        As asked for, ``"auto"`` resolved.
    settings : dict
        The method's options as used, by name.
    terms : Terms
        How the numbers were searched; ``search`` (``"score"`` or ``"pc"``), ``alpha``, ``alpha_per_order`` (the level
        given two or more columns, if it is another), ``max_order`` and ``knowledge`` show its parts.
    margin : dict from pairs of names to float
        How far each edge is from falling out, in ``margin_unit``: ``"nats"`` (log-likelihood units) of score, or
        ``"powers of ten"`` between a test's level and its p-value, the least of all tests; empty where the method
        releases decisions only.
    untested : frozenset of pairs
        Pairs of which no test was made: for want of counts, of which the graph says nothing, or because knowledge
        requires them: these are edges, without support, and without an arrow but from knowledge.
    copies : dict from str to str
        Of each column that the released numbers cannot distinguish from another, by the first of these by name: a line
        joins them, and an edge of one may be one of the other.
    support : Support or None
        Shares of re-drawn noise in which each edge and arrow is tested and stands, of edges of ``whitened`` and
        ``triples`` the mean of the shares of three searches, calibrated on generated and published networks, and less
        where a column of the edge has copies; at most 0.49 where a number with most records in one of four equal parts
        may link the ends alone; ``None`` without noise, where the method releases decisions only, or where the search
        takes over 2,500 tests.
    tests : int
        Tests made.
    n : int
        Rows, public.
    reported : str
        What a replicated system reports of its own loss, in words; empty otherwise.
    seed : int or None
        Seed of the public randomness, where a method has one partition of the rows or a replica's noise.
    release : Release or None
        The released numbers: ``result.release.discover(...)`` costs nothing, ``to_json()`` saves them.
    guarantee : Guarantee
        What was spent and whom it protects.
    """

    named = ("from", "to", "directed", "margin", "support", "arrow_support", "tested", "copy", "weak")

    graph: Cpdag
    method: str
    settings: dict[str, Any]
    terms: Terms
    margin: dict[Edge, float]
    untested: frozenset[Edge]
    support: Support | None
    tests: int
    n: int
    reported: str
    seed: int | None
    release: Release | None
    guarantee: Guarantee
    unpruned_graph: Cpdag | None = None
    copies: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def _pointed(self) -> Cpdag:
        return self.unpruned_graph or self.graph

    @property
    def _of_three(self) -> bool:
        return isinstance(self.release, NoisyWhitened)

    search = property(attrgetter("terms.search"))
    alpha = property(attrgetter("terms.alpha"))
    alpha_per_order = property(attrgetter("terms.later"))
    max_order = property(attrgetter("terms.max_order"))
    knowledge = property(attrgetter("terms.knowledge"))

    @property
    def margin_unit(self) -> str:
        return "nats" if self.terms.search == "score" else "powers of ten"

    def with_support(self, redraws: int = 100) -> Discovery:
        """Return the result with its support from another number of draws of fresh noise; it costs nothing.

        Parameters
        ----------
        redraws : int
            From 1 to 10,000.

        Raises
        ------
        ParameterError
            The method releases decisions only, so there is nothing to draw again.
        """
        public.whole("redraws", redraws, 1, 10_000)
        if self.release is None:
            raise ParameterError(f"{self.method} releases decisions only: there are no numbers to draw again")
        shares = support(self.release, self.terms, redraws)
        return dataclasses.replace(
            self, support=shares, graph=graph_with_support(self._pointed, shares, self.knowledge)
        )

    def effects(self, *, treatment: str, outcome: str, adjust: str = "ida", **options: Any) -> tuple[Any, ...]:
        """Return the ``Effect`` by each set that the graph leaves open to adjust for: free, from its release.

        Parameters
        ----------
        treatment, outcome : str
        adjust : str
            ``"ida"``: the treatment's causes in each member of the class, one effect each; ``"earlier"``: all columns
            of earlier tiers.  A missing arrow is never an effect of 0.
        options
            As of ``release.effect``: ``estimand``, ``treated``, ``control``, ``coverage``, ``groups``.

        Notes
        -----
        The truth lies in one of the intervals if the graph is right; that it was found in the same numbers is not
        counted.
        """
        sets = adjustment_sets(self.graph, self.knowledge, treatment, outcome, adjust, self._pointed)
        effect = getattr(self.release, "effect", None)
        if effect is None:
            text = f"method {self.method!r} releases no table that has effects"
            hint = "use ", Setting("method", "table"), "; of numbers, a release of moments has discover and effect"
            raise ParameterError(text, argument="method", rule="effects", value=self.method, hint=hint)
        return tuple(effect(treatment=treatment, outcome=outcome, adjust=one, **options) for one in sets)

    def edges(self) -> list[dict[str, Any]]:
        """Return one record an edge: its ends, whether directed, margin, support, whether tested, of a copy, or weak.

        A weak edge has a support below 0.5: pictures draw it dotted.

        ``arrow_support`` is that of the arrow from the first to the second, where noise was drawn again.
        """
        records = []
        for place, (a, b) in enumerate((*self.graph.arcs(), *self.graph.edges())):
            edge, share, arrow = frozenset((a, b)), None, None
            if self.support is not None and edge not in self.untested | lines_of(self.copies):
                share, arrow = self.support.edges.get(edge, 0.0), self.support.arrows.get((a, b), 0.0)
            records.append({
                "from": a, "to": b, "directed": place < len(self.graph.directed), "margin": self.margin.get(edge),
                "support": share, "arrow_support": arrow, "tested": edge not in self.untested,
                "copy": edge in lines_of(self.copies), "weak": share is not None and share < FIRM,
            })  # fmt: skip
        return records

    def headline(self) -> list[str]:
        rows = sorted(self.edges(), key=lambda row: -(row["support"] or 0.0))
        known = {True: "your knowledge", False: "from the data"}
        names = [f"{row['from']} {'→' if row['directed'] else '–'} {row['to']}" for row in rows]
        width = max((len(name) for name in names), default=0)
        lines = [f"Causal graph of {len(self.graph.nodes)} columns ({self.n:,} {self.guarantee.records}): "
                 f"{len(rows)} {'edge' if len(rows) == 1 else 'edges'}."]  # fmt: skip
        for name, row in zip(names, rows, strict=True):
            parts = [] if row["support"] is None else [f"stable in {row['support']:.0%}"]
            parts += ["weak"] if row["weak"] else []
            given = self.knowledge.joined(row["from"], row["to"]) or not self.knowledge.allows(row["to"], row["from"])
            parts.append(f"direction: {known[given]}" if row["directed"] else "direction unknown")
            lines.append(f"  {name:{width}}   {'   '.join(parts)}")
        missing = len(self.graph.nodes) * (len(self.graph.nodes) - 1) // 2 - len(rows)
        pairs = "1 pair" if missing == 1 else f"{missing} pairs"
        return [*lines, f"Not shown: {pairs} without a detected edge. This is not evidence of independence."]

    def warnings(self) -> list[str]:
        weak = [row for row in self.edges() if row["weak"]]
        untested = len(self.untested - self.graph.skeleton)
        return [text for text, holds in (
            (f"{len(weak)} edges vanish in most redraws of the noise, or are undecided: do not rely on them", weak),
            (f"{untested} pairs could not be tested at this noise: use fewer columns or a larger ε", untested),
        ) if holds]  # fmt: skip

    def technical(self) -> list[str]:
        lines = []
        for row in self.edges():
            sign = "->" if row["directed"] else "--"
            notes = [f"margin {row['margin']:.3g} {self.margin_unit}"] if row["margin"] is not None else []
            notes += self._support_texts(row) if row["support"] is not None else []
            notes += ["weak"] if row["weak"] else []
            if not row["tested"]:
                notes.append("required, not tested")
            lines.append(f"{row['from']} {sign} {row['to']}" + (f"   ({', '.join(notes)})" if notes else ""))
        edges = len(lines)
        if not lines:
            lines.append("No edge shown.")
        lines.append(
            f"{len(self.graph.nodes)} columns, {edges} {'edge' if edges == 1 else 'edges'}, {self.n} "
            f"{self.guarantee.records}, method {self.method}, search {self.search}, "
            f"{self.tests} {'test' if self.tests == 1 else 'tests'} at level {self.alpha:g}."
        )
        untested = len(self.untested - self.graph.skeleton)
        if untested:
            pairs = "pair" if untested == 1 else "pairs"
            lines.append(f"Nothing is said of {untested} {pairs} that noise left untested.")
        lines.append(
            "A missing edge may be weak, or lost in the noise; pairs that only a third column links, as in "
            "an exclusive or, are not seen."
        )
        if self.release is not None and (note := self.release.as_graph_release().graph_notes()):
            lines.append(note)
        if self.support is not None and self.graph.skeleton:
            lines.append("Shares of re-drawn noise count the noise alone: no chances that an edge or arrow is right.")
            if self._of_three:
                lines.append(
                    "Support of an edge: about the share of such edges that was right in generated and published "
                    "networks; below 0.8 no closer than 0.2, and on a single network it may be far lower."
                )
        if self.support is None and self.release is not None and not without_noise(self.release):
            lines.append("The search was not repeated with fresh noise, which shows arrows that noise may make.")
        if self.reported:
            lines.append(f"Loss that the replicated system reports of itself: {self.reported}.")
        return lines

    def _support_texts(self, row: dict[str, Any]) -> list[str]:
        a, b = row["from"], row["to"]
        texts = [f"support {row['support']:.0%}" if self._of_three else f"in {row['support']:.0%} of re-drawn noise"]
        for tail, head in ((a, b), (b, a)):
            if (tail, head) in self._pointed.directed:
                known = self.knowledge.joined(a, b) or not self.knowledge.allows(head, tail)
                share = 0.0 if self.support is None else self.support.arrows.get((tail, head), 0.0)
                texts.append("arrow as you know" if known else f"arrow to {head} in {share:.0%}")
        return texts

    def to_dict(self) -> dict[str, Any]:
        return {
            "graph": self.graph.to_dict(), "unpruned_graph": self._pointed.to_dict(), "edges": plain(self.edges()),
            "method": self.method, "settings": plain(self.settings), "search": self.search, "alpha": self.alpha,
            "later_alpha": self.alpha_per_order, "max_order": self.max_order,
            "knowledge": {
                "forbidden": sorted(list(arc) for arc in self.knowledge.forbidden),
                "required": sorted(list(arc) for arc in self.knowledge.required),
                "tiers": [list(tier) for tier in self.knowledge.tiers],
            },
            "untested": sorted(sorted(edge) for edge in self.untested), "copies": dict(self.copies),
            "margin_unit": self.margin_unit, "tests": self.tests, "n": self.n,
            "reported": self.reported,
            "seed": self.seed, "guarantee": self.guarantee.to_dict(),
        }  # fmt: skip

    rows = edges

    def plot(self, ax: Any = None) -> Any:
        """Draw the graph in layers; the widths of the edges show their support, or their margins."""
        width = "share of re-drawn noise in which the edge appears" if self.support else "margin of the edge"
        width = "support of the edge by three searches" if self.support and self._of_three else width
        return draw_graph(ax, graph=self.graph, edges=self.edges(), width=width, stamp=self.stamp())


def positions(graph: Cpdag) -> dict[str, tuple[float, float]]:
    """Return the places of nodes in layers: each lies below its parents in one DAG of the class, apart nodes on top.
    Within a layer nodes are ordered by the mean place of their parents."""
    import networkx

    dag = networkx.DiGraph(list(graph.a_dag() or graph.directed))
    dag.add_nodes_from(graph.nodes)
    acyclic = networkx.is_directed_acyclic_graph(dag)
    layers = list(networkx.topological_generations(dag)) if acyclic else [graph.nodes]
    place: dict[str, float] = {}
    height: dict[str, float] = {}
    for level, generation in enumerate(layers):
        above = {node: sorted(dag.predecessors(node)) for node in graph.nodes if node in generation}
        row = sorted(above, key=lambda node: sum(place.get(p, 0.5) for p in above[node]) / max(len(above[node]), 1))
        place |= {node: (number + 1) / (len(row) + 1) for number, node in enumerate(row)}
        height |= dict.fromkeys(row, 1 - (level + 0.5) / len(layers))
    return {node: (place[node], height[node]) for node in place}


def draw_graph(ax: Any, *, graph: Cpdag, edges: list[dict[str, Any]], width: str, stamp: str) -> Any:
    """Draw a graph and return the axes: arrows, lines where the direction is open, dotted if weak, dashed if untested.
    The width of an edge shows the share of re-drawn noise in which it appears, or else how far its margin goes;
    ``width`` says which."""
    ax = axes(ax, (6, 4.5))
    place = positions(graph)
    for row in edges:
        if not row["tested"]:
            strength = 0.0
        elif row["support"] is not None:
            strength = row["support"]
        else:
            strength = 0.5 if row["margin"] is None else min(max(row["margin"], 0.0) / 10, 1.0)
        arrow = {
            "arrowstyle": "-|>" if row["directed"] else "-", "linewidth": 0.6 + 3 * strength, "color": "tab:blue",
            "linestyle": "--" if not row["tested"] else ":" if row["weak"] else "-", "alpha": 0.35 + 0.6 * strength,
            "shrinkA": 14, "shrinkB": 14, "mutation_scale": 14,
        }  # fmt: skip
        ax.annotate("", xy=place[row["to"]], xytext=place[row["from"]], arrowprops=arrow)
    for node, (x, y) in place.items():
        ax.text(
            x, y, node.replace("$", r"\$"), ha="center", va="center",
            bbox={"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": "0.5"},
        )  # fmt: skip
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_axis_off()
    return titled(ax, f"width: {width}", stamp, fontsize="small")
