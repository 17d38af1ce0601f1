"""Exact search for the DAG of the best score on a noisy table, or on noisy moments, the noise in the penalty.

On a table the score of a column x with parents P is

    LL − (log n / 2) · (dof + c v (Σ 1/N_xP − k_x Σ 1/N_P))

where LL = Σ N log(N_xP / N_P) over noisy counts, v is the noise variance of a cell of that margin, dof the number of
free parameters, and c v (…) takes out what noise adds to LL on average (c = 1/log n would be exactly that; c is set
larger, since the best of many sets is the one that noise favours).  *Source*: Silander & Myllymäki (2006) for the
dynamic programme; the penalty is this library's.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations
from typing import Literal

import numpy as np
import numpy.typing as npt

from dpcausal.core import validate as public
from dpcausal.discovery.graph import Arc, Cpdag, Edge
from dpcausal.discovery.knowledge import Knowledge
from dpcausal.discovery.search.orientation import close_under_meek
from dpcausal.discovery.search.pc import apply_knowledge
from dpcausal.errors import ParameterError, Setting
from dpcausal.releases.counts import NoisyTable
from dpcausal.releases.moments import NoisyMoments

NOISE_FACTOR = 0.3
"""c, tuned on networks that the benchmarks do not score."""

MOMENTS_PENALTY = 6.0
"""Of BIC's; tuned on ten columns, coefficients ½ to 1½, and on the benchmark's other networks."""

MOST_PARENTS, MOST_PARENTS_OF_MOMENTS = 3, 5
MOST_COLUMNS = 14
"""Columns beyond which the 2^d sets are too many: the PC graph is kept then."""

SCREEN_ALPHA = 0.05
"""Default level of the tests that screen pairs before the best score is sought."""

Search = Literal["auto", "score", "pc"]


def form_of(search: object, columns: int) -> Literal["score", "pc"]:
    chosen = public.check_choice("search", search, ("auto", "score", "pc"))
    if chosen == "score" and columns > MOST_COLUMNS:
        text = f"an exact score search takes at most {MOST_COLUMNS} columns"
        raise ParameterError(text, argument="search", rule="most-columns", value=columns, hint=Setting("search", "pc"))
    return "pc" if chosen == "pc" or columns > MOST_COLUMNS else "score"


def score_of_moments(moments: NoisyMoments) -> Callable[[int, Sequence[int]], float]:
    deviation, rows = math.sqrt(moments.variance), moments.rows
    covariance = moments.whole.covariance
    spread = np.diagonal(covariance)
    # A column whose variance is lost in the noise is taken as one of noise.
    least = max(2 * deviation, 1e-9 * float(spread.max()), 1e-300)
    root = np.sqrt(np.maximum(spread, least))
    values, vectors = np.linalg.eigh(covariance / np.outer(root, root))
    relative = deviation / float(np.median(root[moments.varies] ** 2)) if moments.varies.any() else 0.0
    whole = (vectors * np.maximum(values, 2 * relative + 1e-6)) @ vectors.T
    effective = max(1 / (1 / rows + relative**2), math.e)
    penalty = MOMENTS_PENALTY * math.log(effective) / 2

    @cache
    def volume(members: tuple[int, ...]) -> float:
        return float(np.linalg.slogdet(whole[np.ix_(members, members)])[1]) if members else 0.0

    def score(x: int, parents: Sequence[int]) -> float:
        above = tuple(sorted(parents))
        return effective / 2 * (volume(above) - volume(tuple(sorted((x, *above))))) - penalty * len(above)

    return score


def local_score(table: NoisyTable, x: int, parents: Sequence[int]) -> float:
    columns = tuple(sorted((x, *parents)))
    variance = table.margin_variance(columns)
    joint = np.moveaxis(table.margin(columns), columns.index(x), 0).reshape(table.sizes[x], -1)
    joint = np.maximum(joint, max(math.sqrt(variance), 1.0 if variance else 0.0))
    above = joint.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(joint > 0, joint * np.log(joint / above), 0.0)
    freedom = (joint.shape[0] - 1) * joint.shape[1]
    excess = 0.0
    if variance:
        excess = NOISE_FACTOR * variance * float((1 / joint).sum() - joint.shape[0] * (1 / above).sum())
    return float(terms.sum()) - math.log(max(table.n, 2)) / 2 * (freedom + excess)


@dataclass(frozen=True)
class LocalScores:
    """For each column its allowed parent sets with their scores, best first; columns are numbered."""

    names: tuple[str, ...]
    sets: tuple[tuple[tuple[float, int], ...], ...]  # (score, bit mask of the parents)


def local_scores(release: NoisyTable | NoisyMoments, candidates: Iterable[Edge], knowledge: Knowledge) -> LocalScores:
    """Score all parent sets of up to three columns, five of moments, among the candidates that knowledge allows. A
    required parent is in every set of its child, however many they are."""
    if isinstance(release, NoisyMoments):
        score, most = score_of_moments(release), MOST_PARENTS_OF_MOMENTS
    else:
        score, most = partial(local_score, release), MOST_PARENTS
    names = release.names
    joined = {frozenset(edge) for edge in candidates}
    scores_of_columns = []
    for x, name in enumerate(names):
        sure = [p for p, other in enumerate(names) if (other, name) in knowledge.required]
        free = [
            p
            for p, other in enumerate(names)
            if p != x and p not in sure and frozenset((name, other)) in joined and knowledge.allows(other, name)
        ]
        sets = []
        for size in range(max(most - len(sure), 0) + 1):
            for chosen in combinations(free, size):
                parents = [*sure, *chosen]
                sets.append((score(x, parents), sum(1 << p for p in parents)))
        scores_of_columns.append(tuple(sorted(sets, reverse=True)))
    return LocalScores(names, tuple(scores_of_columns))


def best_dag(scores: LocalScores, without: Edge | None = None) -> tuple[float, frozenset[Arc]] | None:
    """Return the best total score and its DAG, the pair ``without`` not joined; ``None`` if no DAG is allowed."""
    d = len(scores.names)
    banned = [0] * d
    if without is not None:
        a, b = (scores.names.index(name) for name in sorted(without))
        banned[a], banned[b] = 1 << b, 1 << a
    everything = (1 << d) - 1
    masks = np.arange(1 << d, dtype=np.int64)
    best = np.full(1 << d, -math.inf)
    best[0] = 0.0
    sink = np.zeros(1 << d, dtype=np.int64)
    local = np.stack([_best_within(scores.sets[x], banned[x], masks) for x in range(d)])
    size = np.bitwise_count(masks)
    for count in range(1, d + 1):
        rows = masks[size == count]
        options = np.full((d, len(rows)), -math.inf)
        for x in range(d):
            inside = (rows >> x) & 1 == 1
            rest = rows[inside] & ~(1 << x)
            options[x, inside] = best[rest] + local[x, rest]
        sink[rows] = options.argmax(axis=0)
        best[rows] = options.max(axis=0)
    if not math.isfinite(best[everything]):
        return None
    arcs: set[Arc] = set()
    left = everything
    while left:
        x = int(sink[left])
        left &= ~(1 << x)
        mask = next(m for _, m in scores.sets[x] if m & ~left == 0 and not m & banned[x])
        arcs |= {(scores.names[p], scores.names[x]) for p in range(d) if mask >> p & 1}
    return float(best[everything]), frozenset(arcs)


def _best_within(
    sets: Sequence[tuple[float, int]], banned: int, masks: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    values = np.full(len(masks), -math.inf)
    for score, members in sets:
        if not members & banned:
            values[members] = max(values[members], score)
    for bit in range(len(masks).bit_length() - 1):
        below = values.reshape(-1, 2, 1 << bit)  # masks without the bit, and with it
        np.maximum(below[:, 1], below[:, 0], out=below[:, 1])
    return values


def class_of(names: Sequence[str], dag: Iterable[Arc], knowledge: Knowledge) -> Cpdag:
    marks = Cpdag.from_dag(names, dag).marks()
    apply_knowledge(marks, knowledge)
    close_under_meek(marks, lambda a, b: not knowledge.allows(a, b))
    return Cpdag.of_marks(names, marks)
