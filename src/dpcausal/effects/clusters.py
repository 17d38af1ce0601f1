"""Inference by clusters: how much sums of scores by clusters vary, from one release whatever the number of clusters.

Clusters are in public groups by a hash of their names.  Of the sizes |S| of the groups' score sums, layers between
public ends are released: how much of them lies there.  A replaced row moves all layers together by what it moves two
groups.  Their weighted sum is Σ S², the variance of the sum of all scores if clusters are independent.

Proofs: ``clusters.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.codec import storable
from dpcausal.data.persons import GROUPS
from dpcausal.data.records import Rows
from dpcausal.effects.cells.corner_counts import GRID
from dpcausal.effects.cells.effect import robustness_limit
from dpcausal.effects.result import Effect, normal_reach
from dpcausal.mechanisms.additive import noise_variance, norm_of, whole_numbers
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP, NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity
from dpcausal.releases.saved import Form

Paid = PureDP | ZCDP | NoPrivacy | None
Sizes = tuple[float, float, float]
KNOWN: Sizes = (math.inf, math.inf, 0.0)
SHARE = Fraction(1, 8)
"""Of the loss, for the layers."""
SPREADS = 3.0
"""Scores are cut at so many of their spreads."""
LARGEST = 2**61
"""Layers end before it, in units of 1 / ``GRID``: each next end is twice as far."""
CLEAR, FARTHER, MORE = 4.0, 3.0, 4
"""Layers are summed up to where their variance stands out most from its noise, or that of independent rows does; then,
at most so many more, to that many times Σ S² / Σ |S|; and farther while the noise is little.  Further ones count where
the variance is so many deviations of the noise."""
LITTLE = 0.1
LEAST_GROUPS = 6.0
"""No interval where fewer groups of one size would vary so much, or may."""
SIZES, MOST_GROUPS, ONE_SIDED = Fraction(1, 5), 24, 2.0
"""Of the loss of the layers, the share for rows by groups; groups count up to so many, less so many deviations."""
FIRST_SIZE, OCCUPIED = 3, 2.5
"""Layers of sizes end at 2⁻³ of such a group's size, then at twice that, and so on; those above the first count where
they are so many deviations."""
TYPICAL, HIDDEN, MOST_HIDDEN, UNEVEN = 0.2, 2.0, 20.0, 4.0
"""A cluster's sum of cut scores is rarely more than this share of its rows.  Where noise may hide so many times as much
variance as is seen, or as its noise, what it may hide above that is added; no interval where it is so many times as
much.  So many times ``even_groups`` bound the groups."""
FEW = "about {:.0f} clusters vary as much as these, too few for an interval"
UNKNOWN = "the noise hides whether clusters are enough for an interval: more rows or a larger loss would show it"
UNSEEN = "the noise may hide most of the variance between clusters: more rows or a larger loss would show it"


def group_sums(scores: Reals, rows: Rows) -> Integers:
    """Return the sums of scores of [−1, 1] by the groups of their rows' clusters, in units of 1 / ``GRID``: exact."""
    groups = np.zeros(rows.n, dtype=np.int64) if rows.groups is None else rows.groups
    whole = np.rint(np.clip(np.nan_to_num(scores, nan=0.0), -1.0, 1.0) * rows.masses(GRID))
    return np.bincount(groups, whole, GROUPS).astype(np.int64)


def ends_of_layers(n: int) -> Integers:
    """Return where layers end, in units of 1 / ``GRID``: from half of what sums are by all groups, to n scores."""
    ends = [0, int(GRID * math.sqrt(n / GROUPS) / (2 * SPREADS))]
    while ends[-1] < min(n * GRID, LARGEST):
        ends.append(2 * ends[-1])
    return np.array(ends, dtype=np.int64)


def group_layers(sums: Integers, ends: Integers) -> Integers:
    """Return how much of the sums' sizes lies between each two ends: Σ_g clip(|S_g| − e_j, 0, e_{j+1} − e_j).

    *Guarantee*: ``group_layers_sensitivity(norm)``.
    """
    return np.asarray(np.clip(np.abs(sums)[:, None] - ends[:-1], 0, np.diff(ends)).sum(axis=0))


def group_layers_sensitivity(norm: Norm = Norm.L2) -> Sensitivity:
    """Return the sensitivity of ``group_layers``, 2 · ``GRID`` in l1 and in l2, whatever the groups and layers.

    Examples
    --------
    >>> group_layers_sensitivity().bound / GRID
    2.0
    """
    return Sensitivity(2 * GRID, norm, Relation.REPLACE_ONE, "group-layers", symmetric=True)


def shared(loss: Any, clustered: bool) -> tuple[Any, Any]:
    """Return what a loss leaves for the estimate, and what the layers have."""
    return (loss.part(1 - SHARE), loss.part(SHARE)) if clustered and loss is not None else (loss, loss)


@storable("ClusterVariance")
@dataclass(frozen=True)
class ClusterVariance:
    """How much the sum of scores varies between samples of clusters, in cut scores squared, with its noise's deviation.

    ``independent`` is what it would be of independent rows.  With 97.7 % confidence there are ``least_groups`` or more.
    So many groups of one size as ``even_groups`` would vary as much if what clusters have in common decided.  A cluster
    has at most about ``largest`` rows.  Noise may hide so much more variance as ``hidden``, in sums of that size, and
    that as many as ``most_groups`` vary so much.
    """

    variance: float
    noise: float
    groups: float
    independent: float
    least_groups: float = math.inf
    even_groups: float = math.inf
    largest: float = 0.0
    hidden: float = 0.0
    most_groups: float = 0.0

    @classmethod
    def of(
        cls, layers: Reals, ends: Reals, deviation: float, independent: float, sizes: Sizes = KNOWN
    ) -> ClusterVariance:  # fmt: skip
        """Return what noisy layers say, ends and all in cut scores."""
        weights = ends[:-1] + ends[1:]
        totals, squares = np.cumsum(layers), np.cumsum(layers * weights)
        noise = deviation * np.sqrt(np.cumsum(weights**2))
        known = (noise <= independent) | (squares > CLEAR * noise)
        known[0] = True
        best = int(np.argmax(np.where(known, squares / np.maximum(noise, 1e-300), -math.inf)))
        most = len(layers) - 1
        place = min(best + 1, most)
        while place < min(best + MORE, most) and ends[place + 1] * totals[place] < FARTHER * squares[place]:
            place += 1
        place = max([place, *np.flatnonzero(known & (noise <= LITTLE * squares)).tolist()])
        variance = cls._of(float(totals[place]), float(squares[place]), float(noise[place]), independent, sizes)
        farthest = float(totals[place]) + ONE_SIDED * deviation * math.sqrt(place + 1)
        most_groups = _even_groups(farthest, max(float(squares[place] - ONE_SIDED * noise[place]), independent))
        last = min(int(np.searchsorted(ends[1:], TYPICAL * sizes[2])), most)
        upper = float((squares + noise)[place + 1 : last + 1].max(initial=0.0))
        return replace(variance, most_groups=most_groups, hidden=max(upper - float(squares[place]), 0.0))

    @classmethod
    def exactly(cls, sums: Reals, independent: float, sizes: Sizes) -> ClusterVariance:
        return cls._of(float(np.abs(sums).sum()), float(sums @ sums), 0.0, independent, sizes)

    @classmethod
    def _of(cls, total: float, squares: float, noise: float, independent: float, sizes: Sizes) -> ClusterVariance:
        groups = _even_groups(total, max(squares, independent))
        return cls(squares, noise, groups, independent, *sizes, most_groups=groups)

    @classmethod
    def saved(cls, form: Form, sizes: tuple[int, ...]) -> tuple[ClusterVariance, ...]:
        """Return those of a saved release, of which there must be one of these numbers."""
        names = tuple(one.name for one in fields(cls))
        parts = form.parts("clusters") if form.has("clusters") else ()
        if len(parts) not in sizes:
            raise form.refuse("clusters")
        return tuple(cls(**{name: float(one.array(name)) for name in names}) for one in parts)

    def scaled(self, unit: float) -> ClusterVariance:
        """Return the same where a sum of 1 is so many of another unit."""
        square = unit**2
        return replace(self, variance=self.variance * square, noise=self.noise * square,
                       independent=self.independent * square, hidden=self.hidden * square)  # fmt: skip

    @property
    def few(self) -> str:
        """Why there is no interval; empty where clusters are enough."""
        if self.most_groups < LEAST_GROUPS:
            return FEW.format(self.groups)
        if min(self.groups, self.least_groups) < LEAST_GROUPS:
            return UNKNOWN
        return UNSEEN if self.hidden > MOST_HIDDEN * self._known else ""

    @property
    def _known(self) -> float:
        return max(self.variance, self.independent, self.noise)

    def error(self, standard_error: float, coverage: float) -> tuple[float, float]:
        """Return the standard error by clusters, of that of independent rows, and how many of it an interval reaches.

        A sum of 1 adds 1 to the estimate.
        """
        from scipy.special import stdtrit

        free = max(min(self.groups, UNEVEN * self.even_groups) - 2, 1.0)
        own = max(self.variance * (free + 2) / free, self.independent) + max(self.hidden - HIDDEN * self._known, 0.0)
        variance = max(standard_error**2 + own - self.independent, own)
        unsure = 2 * own**2 / free + self.noise**2
        degrees = max(2 * variance**2 / max(unsure, 1e-300), 1.0)
        return math.sqrt(variance), float(stdtrit(min(degrees, 1e9), 0.5 + coverage / 2))


@dataclass(frozen=True)
class ClusteredScores:
    """Scores less their mean, of which the estimate is the mean over so many rows, and how far they spread."""

    estimate: float
    spread: float
    count: float

    @classmethod
    def of(cls, effect: Effect, count: float, centre: float, spread: float) -> ClusteredScores:
        """Return those of an effect, by its error less that of noise; where it has none, about a centre and spread."""
        if effect.standard_error is not None and effect.noise_error is not None:
            own = effect.standard_error**2 - effect.noise_error**2
            spread = math.sqrt(max(own * count, 1e-6 * spread**2))
        return cls(centre, max(spread, 1e-150), count)

    @property
    def cut(self) -> float:
        return SPREADS * self.spread

    @property
    def unit(self) -> float:
        return self.cut / self.count

    def by_clusters(
        self, effect: Effect, over: Callable[[Callable[[Reals], Reals]], Integers], column: str, n: int, loss: Paid,
        budget: CallBudget,
    ) -> Effect:  # fmt: skip
        """Release the layers, and return an effect of which error and interval are those by clusters of a column.

        ``over`` sums by groups what it is given: how scores are centred and cut.
        """
        centre, cut = self.estimate, self.cut
        sums = over(lambda scores: (scores - centre) / cut)
        (between,) = release_variances(over(np.ones_like), [sums], [Fraction(1)], self.count, n, loss, budget)
        if effect.estimate is None or effect.standard_error is None:
            return replace(effect, cluster=column)
        few, (error, reach) = between.few, between.scaled(self.unit).error(effect.standard_error, effect.coverage)
        ends = None
        if effect.interval is not None and not few:
            more = reach * error - normal_reach(effect.coverage) * effect.standard_error
            ends = effect.interval[0] - more, effect.interval[1] + more
        robust = None if ends is None or effect.robustness_value is None else (
            robustness_limit(effect.robustness_value, effect.estimate, ends))  # fmt: skip
        return replace(
            effect, interval=ends, interval_reason=effect.interval_reason or few, standard_error=error,
            e_value_limit=None, robustness_value_limit=robust, risk_ratio=None, odds_ratio=None, cluster=column,
            clusters=between.groups,
        )  # fmt: skip


def release_variances(
    sizes: Integers, sums: Iterable[Integers], shares: Sequence[Fraction], count: float, n: int, loss: Paid,
    budget: CallBudget,
) -> list[ClusterVariance]:  # fmt: skip
    """Release the variance between clusters of sums of cut scores by groups, each for its share of the loss.

    ``sizes`` are the rows by groups, about ``count`` in all.  Sums and sizes are in units of 1 / ``GRID``; sizes count
    in ``MOST_GROUPS``-ths of all rows.  Without privacy all is known.
    """
    exact, full = loss is None or isinstance(loss, NoPrivacy), max(int(GRID * count / MOST_GROUPS), 1 << FIRST_SIZE)
    for_layers, for_sizes = (None, None) if loss is None else (loss.part(1 - SIZES), loss.part(SIZES))
    units = np.append(0.0, 2.0 ** np.arange(-FIRST_SIZE, math.ceil(math.log2(MOST_GROUPS)) + 1))
    filled, deviation = _released_layers(sizes, (units * full).astype(np.int64), "rows by clusters", for_sizes, budget)
    groups = _groups_of_sizes(filled / full, units, deviation / full, full / GRID)
    ends, independent, variances = ends_of_layers(n), count / SPREADS**2, []
    for one, share in zip(sums, shares, strict=True):
        if for_layers is None or exact:
            variances.append(ClusterVariance.exactly(one / GRID, independent, groups))
            continue
        layers, deviation = _released_layers(one, ends, "score sums by clusters", for_layers.part(share), budget)
        variances.append(ClusterVariance.of(layers / GRID, ends / GRID, deviation / GRID, independent, groups))
    return variances


def _even_groups(total: float, squares: float) -> float:
    """Return K of K normal sums of one spread: (Σ |S|)² = K Σ S² · 2 / π."""
    return float(np.clip(math.pi / 2 * max(total, 0.0) ** 2 / max(squares, 1e-300), 1.0, GROUPS))


def _groups_of_sizes(filled: Reals, ends: Reals, deviation: float, unit: float) -> Sizes:
    """Return how many groups of size 1 the rows fill, less what noise may add; how many of one size have as much of
    Σ s⁴ for their Σ s², as sums vary if what clusters have in common decides; and the largest size, in rows, that a
    cluster has or that noise may hide."""
    whole = FIRST_SIZE + 1
    least = float(filled[:whole].sum()) - ONE_SIDED * deviation * math.sqrt(whole)
    known = np.where(filled > OCCUPIED * deviation, filled, 0.0)
    known[0] = max(float(filled[0]), 1e-9)
    squares = float(known @ (ends[1:] + ends[:-1]))
    even = squares**2 / float(known @ (np.diff(ends**4) / np.diff(ends)))
    last = int(np.flatnonzero(known)[-1])
    widths = np.diff(ends)  # of one cluster, or of half the rows
    one, half = filled + deviation >= widths, filled + ONE_SIDED * deviation >= MOST_GROUPS / 2 * widths / ends[1:]
    hidden = float(ends[1:][one | half].max(initial=0.0))
    return least, even, unit * max(float(min(ends[last] + known[last], ends[last + 1])), hidden)


def _released_layers(sums: Integers, ends: Integers, name: str, loss: Paid, budget: CallBudget) -> tuple[Reals, float]:
    if loss is None or isinstance(loss, NoPrivacy):
        return group_layers(sums, ends).astype(np.float64), 0.0
    claim = group_layers_sensitivity(norm_of(loss))
    noisy = whole_numbers(Query(group_layers(sums, ends), claim, name), budget, loss)
    return np.asarray(noisy, dtype=np.float64), math.sqrt(noise_variance(claim, loss))
