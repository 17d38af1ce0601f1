"""Copies: columns that the released numbers cannot distinguish from another column, as recoded levels.

Given one of two such columns nothing depends on the other, so that every test given a copy hides a true edge.  One of
them is searched, the first by name; the others have no edge but a line to it.  All of it is post-processing.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.discovery.graph import Cpdag
from dpcausal.discovery.knowledge import Knowledge
from dpcausal.discovery.search.pc import Edge, Terms
from dpcausal.releases.contrasts import NoisyContrasts
from dpcausal.releases.counts import NoisyTable
from dpcausal.releases.level_moments import NoisyWhitened
from dpcausal.releases.moments import NoisyMoments
from dpcausal.releases.release import Release
from dpcausal.releases.third_moments import NoisyTriples

COPY_TOLERANCE = 0.002
"""Share of what varies by which copies may differ beside the noise: of records, or of a correlation."""

DEVIATIONS = 3.0
"""Deviations of the noise within which a pair counts as a copy."""

LARGEST_NOISE = 0.1
"""Largest part of what varies that those deviations may be: above, copies cannot be detected."""


def copies_of(release: Release, terms: Terms) -> dict[str, str]:
    """Return each copy's original; a column with required arrows is no copy."""
    required = {name for arc in terms.knowledge.required for name in arc}
    originals: dict[str, str] = {}
    form = release.as_graph_release()
    place = form.names.index
    is_copy = IS_COPY.get(type(form))
    if is_copy is None:
        return {}
    for a, b in combinations(sorted(form.names), 2):
        x, y = sorted((place(a), place(b)))
        if not is_copy(form, x, y) or terms.knowledge.forbids_edge(a, b) or a in originals:
            continue
        if b not in required and b not in originals:
            originals[b] = a
        elif a not in required and b not in originals:
            originals[a] = b
    return {copy: own for copy, own in originals.items() if own not in originals}


def terms_without_copies(terms: Terms, copies: dict[str, str], names: tuple[str, ...]) -> Terms:
    if not copies:
        return terms
    known = terms.knowledge
    arcs = {arc for copy in copies for name in names if name != copy for arc in ((copy, name), (name, copy))}
    return replace(terms, knowledge=Knowledge(known.forbidden | arcs, known.required, known.tiers))


def lines_of(copies: dict[str, str]) -> frozenset[Edge]:
    return frozenset(frozenset(pair) for pair in copies.items())


def parts_of(copies: dict[str, str]) -> dict[str, float]:
    """Return what part of the support of an edge is that of the column itself, not of its copies. Of m columns that are
    one, the one that is searched has (1 + 1/m)/2: columns that are named first are causes more often than not."""
    return {own: (1 + 1 / (1 + number)) / 2 for own, number in Counter(copies.values()).items()}


def graph_with_copies(graph: Cpdag, copies: dict[str, str]) -> Cpdag:
    return Cpdag(graph.nodes, graph.directed, graph.undirected | lines_of(copies)) if copies else graph


def _is_copy_in_counts(release: NoisyTable | NoisyContrasts, x: int, y: int) -> bool:
    if release.sizes[x] != release.sizes[y] or release.sizes[x] < 2:
        return False
    if isinstance(release, NoisyTable):
        return one_column(release.margin((x, y)), release.margin_variance((x, y)))
    cells = release.cells((x, y))
    return cells is not None and one_column(cells[0], float((cells[1] ** 2).sum(axis=-1).mean()))


def one_column(counts: Reals, variance: float) -> bool:
    """Return whether noisy counts of two columns show no record off some matching of their levels. Their number may be
    0.002 of the records beside the most frequent level, and three deviations of its noise."""
    from scipy.optimize import linear_sum_assignment

    total, levels = float(counts.sum()), len(counts)
    error = DEVIATIONS * math.sqrt(variance * levels * (levels - 1))
    if total - float(counts.max(axis=1).sum()) > COPY_TOLERANCE * total + error:
        return False
    matched = counts[linear_sum_assignment(counts, maximize=True)]
    off, vary = total - float(matched.sum()), float(matched.sum() - matched.max())
    return vary > 0 and error <= LARGEST_NOISE * vary and off <= COPY_TOLERANCE * vary + error


def _is_copy_in_moments(release: NoisyMoments, x: int, y: int) -> bool:
    covariance = release.whole.covariance
    least = 2 * math.sqrt(release.variance)
    if min(covariance[x, x], covariance[y, y]) <= least or not (release.varies[x] and release.varies[y]):
        return False
    a, b = np.zeros((2, len(release.names)))
    a[x], b[y] = covariance[x, x] ** -0.5, covariance[y, y] ** -0.5
    # 1 − r = |a − b|²/2, and its noise that of (a − b)ᵀ C (a − b)/2.
    noise, _ = release.whole.variances(a - b, a - b)
    sign = math.copysign(1.0, covariance[x, y])
    error = DEVIATIONS * math.sqrt(release.variance * noise) / 2
    return error <= LARGEST_NOISE / 2 and 1 - sign * float(a @ covariance @ b) <= COPY_TOLERANCE + error


def _is_copy_in_pairs(release: NoisyWhitened, x: int, y: int) -> bool:
    levels = len(release.shares[x])
    alone = release.residual(x, y, ()) if levels == len(release.shares[y]) else None
    if alone is None or alone.strength < levels - 1.5:
        return False
    error = DEVIATIONS * release.entry_error(x, y)
    least = float(np.linalg.svd(release.covariance[release.block(x), release.block(y)], compute_uv=False)[-1])
    return error <= LARGEST_NOISE and least >= 1 - COPY_TOLERANCE - error


IS_COPY: dict[type[Release], Callable[[Any, int, int], bool]] = {
    NoisyTable: _is_copy_in_counts, NoisyContrasts: _is_copy_in_counts, NoisyMoments: _is_copy_in_moments,
    NoisyWhitened: _is_copy_in_pairs, NoisyTriples: _is_copy_in_pairs,
}  # fmt: skip
