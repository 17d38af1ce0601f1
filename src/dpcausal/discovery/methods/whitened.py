"""``"whitened"``: noisy margins, then noisy second moments of whitened levels of truncated rows: for many columns.

A tenth of ρ pays for the margins; by these, levels that are lost in the noise are merged and the others are measured so
that each has variance one.  The rest of ρ pays for the second moments; any test given one column, and the additive part
of one given more, is read off them, and the search is free.  Numbers without declared cuts are cut at noisy quartiles
first, in a tenth of ρ.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.core.method import Run, SumsOverRows
from dpcausal.data.counts import JointCounts
from dpcausal.data.table import Table
from dpcausal.discovery.methods.learned_cuts import deviation_of_round, learned_cuts, loss_after_cuts, uncut_columns
from dpcausal.discovery.question import DiscoveryQuestion, GraphSearch, SearchOutcome, too_few
from dpcausal.errors import InfeasibleError
from dpcausal.mechanisms.additive import gaussian, gaussian_scale
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, affordable_zcdp
from dpcausal.privacy.sensitivity import Query
from dpcausal.releases.level_moments import NoisyWhitened
from dpcausal.statistics.level_moments import (
    MOST_ENTRIES,
    features,
    grid,
    merged_levels,
    row_entries,
    whitened_moments_sensitivity,
    whitened_sums,
)
from dpcausal.statistics.moments import scaled, unpacked_matrix
from dpcausal.statistics.strata import histograms_sensitivity
from dpcausal.statistics.wald import Strength


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

MOST_INDUCED, MOST_LONGER, QUANTILES = 0.02, 64.0, 32
"""The squared length of rows grows, up to so many times, while shortening alone links two columns with a non-centrality
above the first number times the root of the degrees of freedom."""


def squared_length(entries: int, loss: ZCDP | NoPrivacy, design: Design = PAIRS) -> float:
    return (design.length_share if isinstance(loss, ZCDP) else EXACT_LENGTH_SHARE) * entries


def row_length(shares: Sequence[Reals], n: int, loss: ZCDP | NoPrivacy, design: Design = PAIRS) -> float:
    """Return the squared length of rows with these shares: the usual one, or the least at which shortening links no two
    columns by more than tests would find.

    A row's weight is min(1, L / Σ a),  a the squared length of a column's functions: where rows have few entries, and
    levels are not even, it links columns that are independent.
    """
    entries = row_entries(shares)
    usual = squared = squared_length(entries, loss, design)
    functions = [features(p) for p in shares]
    lengths = [np.square(own).sum(axis=1) for own in functions]
    skews = [float(np.linalg.norm((p * a) @ own)) for p, a, own in zip(shares, lengths, functions, strict=True)]
    x, y = np.argsort(skews)[-2:] if len(shares) > 1 else (0, 0)
    freedom = (len(shares[x]) - 1) * (len(shares[y]) - 1)
    if x == y or not freedom:
        return usual
    others = [k for k in range(len(shares)) if k not in (x, y)]
    spread = sum(float(shares[k] @ np.square(lengths[k] - (len(shares[k]) - 1))) for k in others)
    rest = 1.0 + _gamma_quantiles(sum(len(shares[k]) - 1 for k in others), spread)
    both = np.add.outer(np.add.outer(lengths[x], lengths[y]), rest)
    joint = np.outer(shares[x], shares[y])
    while squared < MOST_LONGER * usual:
        cells = joint * np.minimum(1.0, squared / both).mean(axis=2)
        total = float(cells.sum())
        cells /= total
        link = functions[x].T @ (cells - np.outer(cells.sum(axis=1), cells.sum(axis=0))) @ functions[y]
        error = 1 / (n * total) + (moments_deviation(entries, n, loss, squared) / (n * total)) ** 2
        if float(np.square(link).sum()) <= MOST_INDUCED * math.sqrt(freedom) * error:
            break
        squared *= math.sqrt(2)
    return squared


def _gamma_quantiles(mean: float, variance: float) -> Reals:
    from scipy.special import gammaincinv

    if variance <= 1e-9 * max(mean, 1.0) ** 2:
        return np.full(QUANTILES, mean)
    middles = (np.arange(QUANTILES) + 0.5) / QUANTILES
    return np.asarray(gammaincinv(mean**2 / variance, middles) * variance / mean)


def moments_deviation(entries: int, n: int, loss: ZCDP | NoPrivacy, squared: float) -> float:
    """Return the deviation of the noise of an entry off the diagonal: not in units of the grid."""
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
    later_alpha: ClassVar[float | None] = 0.03
    design: ClassVar[Design] = PAIRS

    def usual_order(self, columns: int) -> int:
        return 2

    def learns_cuts(self, question: DiscoveryQuestion, loss: Any) -> bool:
        return True

    def check(self, question: DiscoveryQuestion) -> None:
        if declared(question) > MOST_ENTRIES:
            raise InfeasibleError(
                f"the columns have {declared(question) - 1} levels beyond one each, above {MOST_ENTRIES - 1}: name "
                "fewer columns, or declare fewer levels"
            )

    def feasibility_note(self, question: DiscoveryQuestion, loss: ApproxDP | ZCDP | NoPrivacy) -> str:
        """Return it for even margins; the noise of every number of levels that may be retained is tried."""
        if columns := uncut_columns(question):
            deviation_of_round(len(columns), affordable_zcdp(loss))
        first, second = self.design.parts(loss_after_cuts(question, affordable_zcdp(loss)))
        gaussian_scale(float(histograms_sensitivity(len(question.sizes)).bound), first)
        n, entries = question.n, declared(question)
        for retained in range(1, entries + 1):
            usual = squared_length(retained, second, self.design)
            noise = moments_deviation(retained, n, second, usual)
            moments_deviation(retained, n, second, MOST_LONGER * usual * math.sqrt(2))
        # Rows of D entries at even margins have the squared length D, and are shortened alike.
        error = 1 / n + (noise / (n * min(1.0, squared_length(entries, second, self.design) / entries))) ** 2
        pairs: list[Strength] = [((a - 1) * (b - 1), 0.25 * (a - 1) / error) for a, b in question.pair_sizes]
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
    squared = row_length(shares, n, second, design)
    sums = joint.over(lambda codes: whitened_sums(codes, places, shares, squared, n))
    exact = scaled(sums, entries)
    sensitivity = whitened_moments_sensitivity(entries, squared, n)
    released = gaussian(Query(exact, sensitivity, "whitened second moments"), allotment, second)
    return NoisyWhitened(
        names=question.names, n=n, places=places, shares=tuple(tuple(part.tolist()) for part in shares),
        matrix=unpacked_matrix(released, entries) * 4.0 ** -grid(squared, n).bits,
        deviation=moments_deviation(entries, n, second, squared),
        cuts={name: tuple(own.tolist()) for name, own in cuts.items()}, cut=tuple(question.bounded),
    )  # fmt: skip
