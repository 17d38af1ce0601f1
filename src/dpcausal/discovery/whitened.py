"""``"whitened"``: noisy margins, then noisy second moments of whitened levels of shortened rows: for many columns.

A tenth of ρ tells the margins; by these, levels that are lost in the noise are merged and the others are measured so
that each has variance one.  The rest of ρ tells the second moments; any test given one column, and the additive part of
one given more, is read off them, and the search is free.  Numbers without declared cuts are cut at noisy quartiles
first, in a tenth of ρ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import ClassVar, NamedTuple

import numpy as np

from dpcausal.data.table import Table
from dpcausal.data.tabulate import JointCounts
from dpcausal.dependence.contingency import histograms_sensitivity
from dpcausal.dependence.second_moments import scaled, unpacked
from dpcausal.dependence.wald import Strength
from dpcausal.dependence.whitened import (
    MOST_ENTRIES,
    grid,
    merged_levels,
    row_entries,
    whitened_moments_sensitivity,
    whitened_sums,
)
from dpcausal.discovery.cuts import beside_cuts, foresee_cuts, learned_cuts
from dpcausal.discovery.foresight import too_few
from dpcausal.discovery.knowledge import Knowledge
from dpcausal.discovery.pc import Terms
from dpcausal.discovery.question import Graph, GraphSearch, Outcome, deviation_of, rho_of
from dpcausal.discovery.search import search
from dpcausal.errors import InfeasibleError
from dpcausal.mechanisms.additive import gaussian
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.call import gaussian_part
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Query
from dpcausal.releases.whitened import NoisyWhitened


class Design(NamedTuple):
    """What the margins and the moments take of ρ, and the squared length of a row as a part of D, its mean."""

    margins: Fraction
    moments: Fraction
    shortened: float

    def parts(self, loss: ZCDP | NoPrivacy) -> tuple[ZCDP | NoPrivacy, ZCDP | NoPrivacy]:
        """Return what the margins and the moments take of a loss."""
        return loss.part(self.margins), loss.part(self.moments)


PAIRS = Design(Fraction(1, 10), Fraction(9, 10), 0.4)

EXACT_SHORTENED = 4.0
"""The squared length without noise."""

LATER_ALPHA = 0.03
"""Default level of tests given two or more columns, where noise leaves the least power."""


def squared_length(entries: int, loss: ZCDP | NoPrivacy, design: Design = PAIRS) -> float:
    """Return what the square of a row of so many entries is shortened to."""
    return (design.shortened if isinstance(loss, ZCDP) else EXACT_SHORTENED) * entries


def moments_deviation(entries: int, n: int, loss: ZCDP | NoPrivacy, design: Design = PAIRS) -> float:
    """Return the deviation of the noise of an entry off the diagonal: not in units of the grid."""
    squared = squared_length(entries, loss, design)
    bound = float(whitened_moments_sensitivity(entries, squared, n).bound)
    return float(deviation_of(bound, loss) * 4.0 ** -grid(squared, n).bits / math.sqrt(2))


@dataclass(frozen=True, kw_only=True)
class Whitened(GraphSearch[ApproxDP | ZCDP]):
    """Noisy margins, then noisy second moments of whitened levels; strongest pairs first: for many columns.

    Parameters
    ----------
    max_order : int, optional
        Largest conditioning set, 0 to 8; by default 2.
    """

    name: ClassVar[str] = "whitened"
    about: ClassVar[str] = "noisy whitened pairs, strongest first"
    leaves_out: ClassVar[bool] = True
    private_ids: ClassVar[bool] = True
    at_once: ClassVar[bool] = False
    uses_coins: ClassVar[bool] = False
    usual_alpha: ClassVar[float] = 0.01
    learns_cuts: ClassVar[bool] = True
    design: ClassVar[Design] = PAIRS

    def usual_order(self, columns: int) -> int:
        return 2

    def terms(self, alpha: float | None, knowledge: Knowledge) -> Terms:
        return replace(super().terms(alpha, knowledge), later=LATER_ALPHA if alpha is None else None)

    def pay(self, loss: Loss, question: Graph) -> tuple[ApproxDP | ZCDP | NoPrivacy, str]:
        return gaussian_part(loss, self.name)

    def check(self, question: Graph) -> None:
        if declared(question) > MOST_ENTRIES:
            raise InfeasibleError(
                f"the columns have {declared(question) - 1} levels beyond one each, above {MOST_ENTRIES - 1}: name "
                "fewer columns, or declare fewer levels"
            )

    def claims(self, question: Graph, spent: ApproxDP | ZCDP) -> tuple[str, ...]:
        return "column-histograms", "whitened-moments", "gaussian"

    def foresee(self, question: Graph, spent: ApproxDP | ZCDP | NoPrivacy) -> str:
        """Return it for even margins; the noise of every number of levels that may be kept is rehearsed."""
        foresee_cuts(question, rho_of(spent))
        first, second = self.design.parts(beside_cuts(question, rho_of(spent)))
        deviation_of(float(histograms_sensitivity(len(question.sizes)).bound), first)
        n, entries = question.n, declared(question)
        for kept in range(1, entries + 1):
            noise = moments_deviation(kept, n, second, self.design)
        # Rows of D entries at even margins have the squared length D, and are shortened alike.
        error = 1 / n + (noise / (n * min(1.0, squared_length(entries, second, self.design) / entries))) ** 2
        pairs: list[Strength] = [
            ((a - 1) * (b - 1), 0.25 * (a - 1) / error)
            for a, b in combinations(sorted(size for size in question.sizes if size > 1), 2)
        ]
        return too_few(pairs, n, self.terms(question.alpha, question.knowledge).alpha)

    def release(
        self, private: Table, question: Graph, spent: ApproxDP | ZCDP | NoPrivacy, coins: PublicGenerator,
        allotment: Allotment,
    ) -> Outcome:  # fmt: skip
        released = noisy_whitened(private, question, allotment, rho_of(spent))
        terms = self.terms(question.alpha, question.knowledge)
        return Outcome(search(released, terms), terms, released)


def declared(question: Graph) -> int:
    """Return D with all declared levels."""
    return 1 + sum(size - 1 for size in question.sizes)


def noisy_whitened(
    private: Table, question: Graph, allotment: Allotment, loss: ZCDP | NoPrivacy, design: Design = PAIRS
) -> NoisyWhitened:
    """Read the columns and release where numbers are cut, their margins, then their whitened second moments."""
    (first, second), n = design.parts(beside_cuts(question, loss)), question.n
    joint = JointCounts(private, question.names)
    cuts = learned_cuts(joint, question, allotment, loss)
    # From here on the parts of numbers are functions of the noisy quartiles.
    joint = joint.recut(cuts)
    counts = joint([(place,) for place in range(len(question.names))])
    bound = histograms_sensitivity(len(counts))
    noisy = gaussian(Query(np.concatenate(counts), bound, "margins"), allotment, first)
    margins = np.split(np.asarray(noisy, dtype=np.float64), np.cumsum([len(one) for one in counts])[:-1])
    # From here on levels, shares and length are functions of the noisy margins.
    deviation = deviation_of(float(bound.bound), first)
    places, shares = zip(*(merged_levels(part, deviation) for part in margins), strict=True)
    entries = row_entries(shares)
    squared = squared_length(entries, second, design)
    sums = joint.over(lambda codes: whitened_sums(codes, places, shares, squared, n))
    exact = scaled(sums, entries)
    sensitivity = whitened_moments_sensitivity(entries, squared, n)
    released = gaussian(Query(exact, sensitivity, "whitened second moments"), allotment, second)
    return NoisyWhitened(
        names=question.names, n=n, places=places, shares=tuple(tuple(part.tolist()) for part in shares),
        matrix=unpacked(released, entries) * 4.0 ** -grid(squared, n).bits,
        deviation=moments_deviation(entries, n, second, design),
        cuts={name: tuple(own.tolist()) for name, own in cuts.items()}, cut=question.cut,
    )  # fmt: skip
