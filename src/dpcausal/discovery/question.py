"""The question of a discovery: which columns cause which, and the base class of its methods."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar, Self

from dpcausal.core import validate as public
from dpcausal.core.method import Method, PlannedCall, TableQuestion
from dpcausal.data.counts import sizes_of
from dpcausal.data.schema import Bounded
from dpcausal.data.subgroups.predicate import check_varies
from dpcausal.data.table import Table
from dpcausal.discovery.knowledge import Knowledge
from dpcausal.discovery.result import Discovery
from dpcausal.discovery.search.exact_score import SCREEN_ALPHA, Search, form_of
from dpcausal.discovery.search.pc import Terms
from dpcausal.discovery.search.release_search import SearchResult, search, support, undecided_edges, without_noise
from dpcausal.discovery.support import graph_with_support, usual_redraws
from dpcausal.errors import FenceError, InfeasibleError, LossError, ParameterError, Setting
from dpcausal.privacy.budget import CallBudget
from dpcausal.releases.moments import NoisyMoments
from dpcausal.releases.release import Release
from dpcausal.result import Guarantee
from dpcausal.statistics.wald import Strength, chance_of

PLACES = ("the order of the rows", "the seed")
"""Public too where rows are assigned to blocks by their places."""

MOST_CELLS = 2**22
"""Cells of the largest table that is counted at all."""

MOST_COLUMNS = 400
MOST_NAMED = 40
LARGEST_ORDER = 8

SHARES = (35, 35, 20, 10)
"""Parts of a loss for the orders 0, 1, 2, 3; those of the orders that are run share the whole."""


@dataclass(frozen=True)
class SearchOutcome:
    result: SearchResult
    terms: Terms
    release: Release | None = None
    reported: str = ""
    """A replicated system's own report of its loss."""
    seeded: bool = False
    """Whether it drew public random numbers: their seed is in the result."""
    by_place: bool = False
    """Whether rows were assigned to blocks by position."""


@dataclass(frozen=True)
class DiscoveryQuestion(TableQuestion[Discovery]):
    task: ClassVar[str] = "discover"

    public: ClassVar[tuple[str, ...]] = (*TableQuestion.public, "knowledge")

    names: tuple[str, ...]
    alpha: float | None
    knowledge: Knowledge

    @classmethod
    def of(cls, table: Table | Release, columns: object, knowledge: object, alpha: object) -> DiscoveryQuestion:
        if isinstance(table, Release):
            raise ParameterError("a release is asked again free, by its own method: release.discover(alpha=..., ...)")
        public.check_table(table, persons=True)
        names = _column_names(table, columns)
        if table.n < 2:
            raise ParameterError(f"a discovery needs at least 2 rows, the table has {table.n}")
        for name in names:
            check_varies(table.inside, name, public.column(table, name, "a discovery"))
        return cls(table, names, *checked_terms(names, alpha, knowledge))

    @property
    def related(self) -> tuple[str, ...]:
        return self.names

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many codes each column has: its levels, or the parts that it is cut into."""
        return sizes_of(self.table, self.names)

    @property
    def bounded(self) -> dict[str, Bounded]:
        return {name: one for name in self.names if isinstance(one := self.column(name), Bounded)}

    @property
    def pair_sizes(self) -> Iterator[tuple[int, int]]:
        """The numbers of codes of each pair of columns that have more than one."""
        return combinations(sorted(size for size in self.sizes if size > 1), 2)

    def detail(self) -> dict[str, Any]:
        many = len(self.names) > MOST_NAMED
        columns = [*self.names[:MOST_NAMED], "..."] if many else list(self.names)
        return {"columns": columns, "alpha": self.alpha, **self.table.declared}

    def report(
        self, planned: PlannedCall[Any], released: SearchOutcome, allotment: CallBudget, seed: int | None
    ) -> Discovery:
        guarantee = self.guarantee(planned, allotment, more=PLACES if released.by_place else ())
        return discovery_result(planned.method, released, guarantee, self.n, seed if released.seeded else None)


def discovery_result(
    method: Method[Any], outcome: SearchOutcome, guarantee: Guarantee, n: int, seed: int | None = None
) -> Discovery:
    result, release, terms = outcome.result, outcome.release, outcome.terms
    shares = result.support
    redraws = usual_redraws(len(result.graph.nodes), result.tests)
    if shares is None and redraws and release is not None and not without_noise(release):
        shares = support(release, terms, redraws)
    notes = [*_constant_notes(release), *_undecided_notes(result, release, terms)]
    copies = [
        f"{copy} is a copy of {own}, as far as the noise allows: an edge of {own} may be one of {copy}"
        for copy, own in sorted(result.copies.items())
    ]
    return Discovery(
        graph=graph_with_support(result.graph, shares, terms.knowledge), unpruned_graph=result.graph,
        method=method.name,
        settings=method.options(), terms=terms, margin=result.margin,
        untested=result.untested, copies=result.copies, support=shares, tests=result.tests, n=n,
        reported=outcome.reported, seed=seed,
        release=None if release is None else release.under(guarantee),
        guarantee=replace(guarantee, caveats=(*guarantee.caveats, *copies, *notes)),
    )  # fmt: skip


def _constant_notes(release: Release | None) -> list[str]:
    form = None if release is None else release.as_graph_release()
    if not isinstance(form, NoisyMoments) or form.varies.all():
        return []
    alike = [repr(name) for name, varies in zip(form.names, form.varies, strict=True) if not varies]
    return [
        f"nearly all values are alike in {_names_text(alike)}, as far as the noise shows: no edge there was tested; "
        "declare levels, or bounds nearer to where records lie"
    ]


def _undecided_notes(result: SearchResult, release: Release | None, terms: Terms) -> list[str]:
    undecided = {} if release is None else undecided_edges(release, terms)
    edges: dict[str, list[str]] = {}
    for edge in sorted(result.graph.skeleton - result.untested, key=sorted):
        if edge in undecided:
            edges.setdefault(undecided[edge], []).append(" - ".join(sorted(edge)))
    return [
        f"undecided: {_names_text(pairs)} may be linked by {name!r} alone, of which one part has most of the records; "
        f"declare cuts of {name!r}, or bounds nearer to where records lie" for name, pairs in sorted(edges.items())
    ]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class GraphSearch(Method[DiscoveryQuestion]):
    """One way to find a graph."""

    supports_no_privacy: ClassVar[bool] = True
    least_epsilon: ClassVar[Fraction] = Fraction(1, 10**9)
    usual_alpha: ClassVar[float] = 0.01
    later_alpha: ClassVar[float | None] = None
    """Default level of tests given two or more columns, where it is another: noise leaves those the least power."""
    cuts: ClassVar[bool] = True
    """Whether bounded columns are cut into parts."""

    max_order: int | None = None

    @abstractmethod
    def usual_order(self, columns: int) -> int:
        """Return the default of ``max_order`` for so many columns."""

    @property
    def order(self) -> int:
        return self.max_order or 0

    @property
    def shares(self) -> tuple[Fraction, ...]:
        parts = [SHARES[min(order, len(SHARES) - 1)] for order in range(self.order + 1)]
        return tuple(Fraction(part, sum(parts)) for part in parts)

    def filled(self, columns: int) -> Self:
        """Return the method with its options checked and filled for so many columns."""
        order = self.usual_order(columns) if self.max_order is None else self.max_order
        return replace(self, max_order=public.whole("max_order", order, 0, LARGEST_ORDER))

    def terms(self, alpha: float | None, knowledge: Knowledge) -> Terms:
        if alpha is None:
            return Terms("pc", self.usual_alpha, self.order, knowledge, self.later_alpha)
        return Terms("pc", alpha, self.order, knowledge)

    def plan(self, question: DiscoveryQuestion, loss: Any) -> Self:
        ready = self.filled(len(question.names))
        ready.check(question)
        try:
            ready.feasibility_note(question, loss)
        except FenceError:
            raise LossError(
                f"{loss} is too little for method {self.name!r} here: its noise could not be drawn"
            ) from None
        return ready

    def check(self, question: DiscoveryQuestion) -> None:
        """Refuse columns that the method cannot take."""

    def feasibility_note(self, question: DiscoveryQuestion, loss: Any) -> str:
        """Return in words what public numbers predict against an answer, from the noise that ``release`` will draw.

        Raises ``FenceError``, before anything is spent, if some of that noise could not be drawn.
        """
        return ""

    def learns_cuts(self, question: DiscoveryQuestion, loss: Any) -> bool:
        """Return whether bounded columns without declared cuts are cut at noisy quartiles: by public numbers."""
        return False

    def caveats(self, question: DiscoveryQuestion, loss: Any) -> tuple[str, ...]:
        notes = _cut_notes(question, self.learns_cuts(question, loss)) if self.cuts else ()
        return (*notes, self.feasibility_note(question, loss))

    def searched(self, released: Release, question: DiscoveryQuestion) -> SearchOutcome:
        terms = self.terms(question.alpha, question.knowledge)
        return SearchOutcome(search(released, terms), terms, released)


@dataclass(frozen=True, kw_only=True)
class ScoreSearch(GraphSearch):
    """A way to find a graph by its best score, or by PC."""

    search: Search = "auto"

    def filled(self, columns: int) -> Self:
        return replace(super().filled(columns), search=form_of(self.search, columns))

    def terms(self, alpha: float | None, knowledge: Knowledge) -> Terms:
        if self.search == "score":
            return Terms("score", SCREEN_ALPHA if alpha is None else alpha, self.order, knowledge)
        return super().terms(alpha, knowledge)


def checked_terms(names: tuple[str, ...], alpha: Any, knowledge: object) -> tuple[float | None, Knowledge]:
    """Return level and knowledge, checked; ``None`` means the method's level."""
    known = Knowledge() if knowledge is None else knowledge
    if not isinstance(known, Knowledge):
        raise ParameterError("knowledge must be a dpcausal Knowledge")
    known.check_names(names)
    return None if alpha is None else public.level(alpha), known


def check_cells(question: DiscoveryQuestion, tables: int = 1) -> None:
    cells = tables * math.prod(question.sizes)
    if cells > MOST_CELLS:
        raise InfeasibleError(
            f"a table of {len(question.names)} columns has more than {MOST_CELLS} cells, each with "
            "its own noise", argument="columns", rule="cells", value=cells,
            hint=("use ", Setting("method", "parities"), " with a delta, as 1e-6, or name fewer columns"),
        )  # fmt: skip


def _column_names(table: Table, columns: Any) -> tuple[str, ...]:
    if columns is None:
        names = table.schema.names
    elif isinstance(columns, str) or not isinstance(columns, Iterable):
        raise ParameterError("columns must be a list of column names")
    else:
        names = tuple(columns)
        for name in names:
            table.schema.column(name)
    if len(set(names)) != len(names) or not 2 <= len(names) <= MOST_COLUMNS:
        raise ParameterError(f"a discovery needs 2 to {MOST_COLUMNS} different columns, got {len(names)}")
    return names


def _cut_notes(question: DiscoveryQuestion, learned: bool) -> tuple[str, ...]:
    bounded = question.bounded
    named = [f"{name!r} into {len(one.cuts) + 1}" for name, one in bounded.items() if one.cuts is not None]
    others = [repr(name) for name, one in bounded.items() if one.cuts is None]
    lost = "what varies within a part is lost, and what it causes alike can look linked"
    notes = []
    if named:
        notes.append(f"bounded columns were cut into parts at their declared cuts: {_names_text(named)}; {lost}")
    if others and learned:
        notes.append(f"bounded columns were cut into four parts at noisy quartiles: {_names_text(others)}; {lost}")
    elif others:
        notes.append(
            f"bounded columns without cuts were cut into four parts of one width: {_names_text(others)}; {lost}; "
            "of a skewed column, or one in wide bounds, nearly all values can lie in one part: then its links are lost"
        )
    return tuple(notes)


def _names_text(names: list[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


STRONG = 0.5
"""Cramér's V, or a correlation, that counts as a strong edge."""


def of_numbers(n: int, variance: float) -> Strength:
    """Return it for a correlation whose noise has that variance: λ = atanh(½)² / (1/(n − 3) + v)."""
    return 1, math.atanh(STRONG) ** 2 / (1 / max(n - 3, 1) + variance)


def too_few(pairs: Iterable[Strength], n: int, alpha: float) -> str:
    """Return a caveat if even a strong edge of some pairs would sooner be missed than found; empty if not. A test of no
    power either at ``alpha``: the tests of larger sets have less."""
    kinds = Counter(pairs)
    missed = sum(times for strength, times in kinds.items() if chance_of(strength, alpha) < 0.5)
    if not missed:
        return ""
    return (
        f"{n} rows at this loss are too few: even a strong edge (coefficient {STRONG:g}) would sooner be missed than "
        f"found between {missed} of {kinds.total()} pairs of columns; a missing edge is no evidence there"
    )
