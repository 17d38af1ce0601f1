"""``"whitened"``: noisy margins, then noisy second moments of whitened levels of truncated rows: for many columns.

A tenth of ρ pays for the margins; by these, levels that are lost in the noise are merged and the others are measured so
that each has variance one.  The rest of ρ pays for the second moments; any test given one column, and the additive part
of one given more, is read off them, and the search is free.  Numbers without declared cuts are cut at noisy quartiles
first, in a tenth of ρ.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import ClassVar, NamedTuple

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.core.method import Run, SumsOverRows
from dpcausal.data.counts import JointCounts
from dpcausal.data.schema import Bounded
from dpcausal.data.table import Table
from dpcausal.discovery.knowledge import Knowledge
from dpcausal.discovery.question import DiscoveryQuestion, GraphSearch, SearchOutcome, too_few
from dpcausal.discovery.search.pc import Terms
from dpcausal.errors import InfeasibleError
from dpcausal.mechanisms.additive import gaussian, gaussian_scale
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, affordable_zcdp
from dpcausal.privacy.sensitivity import Query
from dpcausal.releases.level_moments import NoisyWhitened
from dpcausal.statistics.level_moments import (
    MOST_ENTRIES,
    grid,
    merged_levels,
    row_entries,
    whitened_moments_sensitivity,
    whitened_sums,
)
from dpcausal.statistics.moments import scaled, unpacked_matrix
from dpcausal.statistics.strata import histograms_sensitivity
from dpcausal.statistics.wald import Strength

Cuts = dict[str, Reals]

CUTS_SHARE = Fraction(1, 10)
"""What the quartiles take of ρ, if there are any to learn; each round has as much as another."""

ROUNDS, PARTS = 4, 8
"""Rounds, and the parts of an interval in each."""

QUARTILES = np.array([0.25, 0.5, 0.75])

LEAST_SHARE = 0.02
"""Least share of the rows that the noisy number of kept ones is taken for."""

LEAST_GAP = 2.0**-14
"""Least distance of two cuts, and of a cut from a bound, as a part of the range."""


def uncut_columns(question: DiscoveryQuestion) -> dict[str, Bounded]:
    declared = {name: question.table.schema.column(name) for name in question.names}
    return {name: one for name, one in declared.items() if isinstance(one, Bounded) and one.cuts is None}


def part_of_round(loss: ZCDP | NoPrivacy) -> ZCDP | NoPrivacy:
    return loss.part(CUTS_SHARE / ROUNDS)


def loss_after_cuts(question: DiscoveryQuestion, loss: ZCDP | NoPrivacy) -> ZCDP | NoPrivacy:
    return loss.part(1 - CUTS_SHARE) if uncut_columns(question) else loss


def plan_cuts(question: DiscoveryQuestion, loss: ZCDP | NoPrivacy) -> None:
    """Try the noise of a round: ``FenceError`` if it could not be drawn."""
    if columns := uncut_columns(question):
        gaussian_scale(float(histograms_sensitivity(len(columns)).bound), part_of_round(loss))


def learned_cuts(
    joint: JointCounts, question: DiscoveryQuestion, allotment: CallBudget, loss: ZCDP | NoPrivacy
) -> Cuts:
    columns = uncut_columns(question)
    if not columns:
        return {}
    laws = {name: Law(column) for name, column in columns.items()}
    places, step = [(question.names.index(name),) for name in laws], part_of_round(loss)
    bound = histograms_sensitivity(len(laws))
    deviation = gaussian_scale(float(bound.bound), step)
    for width in float(PARTS) ** -np.arange(ROUNDS):
        cuts = {name: law.next_cuts(width) for name, law in laws.items()}
        exact = joint.recut(cuts)(places)
        noisy = gaussian(Query(np.concatenate(exact), bound, "quartiles"), allotment, step)
        parts = np.split(np.asarray(noisy, dtype=np.float64), np.cumsum([len(one) for one in exact])[:-1])
        for (name, law), counts in zip(laws.items(), parts, strict=True):
            law.add_histogram(cuts[name], counts, deviation, LEAST_SHARE * question.n)
    return {name: law.inside(law.quartiles()) for name, law in laws.items()}


class Law:
    def __init__(self, column: Bounded) -> None:
        self.column = column
        self._points: list[Reals] = []  # cut, share of the rows below it, weight

    def next_cuts(self, width: float) -> Reals:
        """Return the cuts of the next round, around each quartile a part of the range so wide."""
        lower, whole = self.column.lower, self.column.width
        places = (self.quartiles() - lower) / whole if self._points else np.zeros(1)
        sides = np.floor(np.clip(places, 0.0, 1 - width) / width) * width
        return self.inside(lower + whole * (sides[:, None] + width * np.arange(PARTS + 1) / PARTS).ravel())

    def inside(self, points: Reals) -> Reals:
        distinct = np.unique(points)
        return distinct[(distinct > self.column.lower) & (distinct < self.column.upper)]

    def add_histogram(self, cuts: Reals, counts: Reals, deviation: float, least: float) -> None:
        """Take in a histogram: a sum of k counts of m, as a share of all m, has the variance of a bridge."""
        total = max(float(counts.sum()), least)
        below = np.arange(1, len(counts))
        variance = below * (len(counts) - below) / len(counts) * (deviation / total) ** 2
        self._points.append(np.array([cuts, counts.cumsum()[:-1] / total, 1 / (variance + 1 / total**2)]))

    def quartiles(self) -> Reals:
        from scipy.optimize import isotonic_regression

        cuts, shares, weights = np.hstack(self._points)
        places, same = np.unique(cuts, return_inverse=True)
        weight = np.bincount(same, weights)
        share = isotonic_regression(np.bincount(same, weights * shares) / weight, weights=weight).x
        lower, whole = self.column.lower, self.column.width
        knots = np.concatenate([[lower], places, [self.column.upper]])
        rising = np.concatenate([[0.0], np.clip(share, 0.0, 1.0), [1.0]]) + 1e-9 * np.arange(len(knots))
        fractions = (np.interp(QUARTILES, rising, knots) - lower) / whole
        gaps = LEAST_GAP * np.arange(1, 4)
        fractions = np.clip(np.maximum.accumulate(fractions - gaps) + gaps, gaps, 1 - gaps[::-1])
        return np.asarray(lower + whole * fractions)


class Design(NamedTuple):
    """What the margins and the moments take of ρ, and the squared length of a row as a part of D, its mean."""

    margins: Fraction
    moments: Fraction
    length_share: float

    def parts(self, loss: ZCDP | NoPrivacy) -> tuple[ZCDP | NoPrivacy, ZCDP | NoPrivacy]:
        return loss.part(self.margins), loss.part(self.moments)


PAIRS = Design(Fraction(1, 10), Fraction(9, 10), 0.4)

EXACT_LENGTH_SHARE = 4.0
"""The squared length without noise."""

LATER_ALPHA = 0.03
"""Default level of tests given two or more columns, where noise leaves the least power."""


def squared_length(entries: int, loss: ZCDP | NoPrivacy, design: Design = PAIRS) -> float:
    return (design.length_share if isinstance(loss, ZCDP) else EXACT_LENGTH_SHARE) * entries


def moments_deviation(entries: int, n: int, loss: ZCDP | NoPrivacy, design: Design = PAIRS) -> float:
    """Return the deviation of the noise of an entry off the diagonal: not in units of the grid."""
    squared = squared_length(entries, loss, design)
    bound = float(whitened_moments_sensitivity(entries, squared, n).bound)
    return float(gaussian_scale(bound, loss) * 4.0 ** -grid(squared, n).bits / math.sqrt(2))


@dataclass(frozen=True, kw_only=True)
class Whitened(SumsOverRows, GraphSearch):
    """Noisy margins, then noisy second moments of whitened levels; strongest pairs first: for many columns.

    Parameters
    ----------
    max_order : int, optional
        Largest conditioning set, 0 to 8; by default 2.
    """

    name: ClassVar[str] = "whitened"
    about: ClassVar[str] = "noisy whitened pairs, strongest first"
    losses: ClassVar[tuple[type[Loss], ...]] = (ApproxDP, ZCDP)
    proofs: ClassVar[tuple[str, ...]] = ("column-histograms", "whitened-moments", "gaussian")
    usual_alpha: ClassVar[float] = 0.01
    learns_cuts: ClassVar[bool] = True
    design: ClassVar[Design] = PAIRS

    def usual_order(self, columns: int) -> int:
        return 2

    def terms(self, alpha: float | None, knowledge: Knowledge) -> Terms:
        return replace(super().terms(alpha, knowledge), later=LATER_ALPHA if alpha is None else None)

    def check(self, question: DiscoveryQuestion) -> None:
        if declared(question) > MOST_ENTRIES:
            raise InfeasibleError(
                f"the columns have {declared(question) - 1} levels beyond one each, above {MOST_ENTRIES - 1}: name "
                "fewer columns, or declare fewer levels"
            )

    def feasibility_note(self, question: DiscoveryQuestion, loss: ApproxDP | ZCDP | NoPrivacy) -> str:
        """Return it for even margins; the noise of every number of levels that may be retained is tried."""
        plan_cuts(question, affordable_zcdp(loss))
        first, second = self.design.parts(loss_after_cuts(question, affordable_zcdp(loss)))
        gaussian_scale(float(histograms_sensitivity(len(question.sizes)).bound), first)
        n, entries = question.n, declared(question)
        for retained in range(1, entries + 1):
            noise = moments_deviation(retained, n, second, self.design)
        # Rows of D entries at even margins have the squared length D, and are shortened alike.
        error = 1 / n + (noise / (n * min(1.0, squared_length(entries, second, self.design) / entries))) ** 2
        pairs: list[Strength] = [
            ((a - 1) * (b - 1), 0.25 * (a - 1) / error)
            for a, b in combinations(sorted(size for size in question.sizes if size > 1), 2)
        ]
        return too_few(pairs, n, self.terms(question.alpha, question.knowledge).alpha)

    def release(self, run: Run[DiscoveryQuestion]) -> SearchOutcome:
        question = run.question
        released = noisy_whitened(run.data, question, run.budget, affordable_zcdp(run.loss))
        return self.searched(released, question)


def declared(question: DiscoveryQuestion) -> int:
    return 1 + sum(size - 1 for size in question.sizes)


def noisy_whitened(
    private: Table, question: DiscoveryQuestion, allotment: CallBudget, loss: ZCDP | NoPrivacy, design: Design = PAIRS
) -> NoisyWhitened:
    (first, second), n = design.parts(loss_after_cuts(question, loss)), question.n
    joint = JointCounts(private, question.names)
    cuts = learned_cuts(joint, question, allotment, loss)
    # From here on the parts of numbers are functions of the noisy quartiles.
    joint = joint.recut(cuts)
    counts = joint([(place,) for place in range(len(question.names))])
    bound = histograms_sensitivity(len(counts))
    noisy = gaussian(Query(np.concatenate(counts), bound, "margins"), allotment, first)
    margins = np.split(np.asarray(noisy, dtype=np.float64), np.cumsum([len(one) for one in counts])[:-1])
    # From here on levels, shares and length are functions of the noisy margins.
    deviation = gaussian_scale(float(bound.bound), first)
    places, shares = zip(*(merged_levels(part, deviation) for part in margins), strict=True)
    entries = row_entries(shares)
    squared = squared_length(entries, second, design)
    sums = joint.over(lambda codes: whitened_sums(codes, places, shares, squared, n))
    exact = scaled(sums, entries)
    sensitivity = whitened_moments_sensitivity(entries, squared, n)
    released = gaussian(Query(exact, sensitivity, "whitened second moments"), allotment, second)
    return NoisyWhitened(
        names=question.names, n=n, places=places, shares=tuple(tuple(part.tolist()) for part in shares),
        matrix=unpacked_matrix(released, entries) * 4.0 ** -grid(squared, n).bits,
        deviation=moments_deviation(entries, n, second, design),
        cuts={name: tuple(own.tolist()) for name, own in cuts.items()}, cut=question.cut,
    )  # fmt: skip
