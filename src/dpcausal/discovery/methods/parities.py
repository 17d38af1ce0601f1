"""``"parities"``: noisy contrasts, released order by order for the tests that are still needed: for many columns.

A test of x and y given S needs the contrasts of all subsets of {x, y} ∪ S.  At each order those that are missing are
released together, with a fixed share of ρ, whatever their number: the cost is known before the data is read.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpcausal.core.method import Run, SumsOverRows
from dpcausal.data.counts import JointCounts, counts_of, margins_of, sizes_of
from dpcausal.data.table import Table
from dpcausal.discovery.copies import copies_of, graph_with_copies, terms_without_copies
from dpcausal.discovery.pvalues import MOST_CELLS, GraphTest
from dpcausal.discovery.question import STRONG, DiscoveryQuestion, GraphSearch, SearchOutcome, too_few
from dpcausal.discovery.search.pc import Test, find_skeleton
from dpcausal.discovery.search.release_search import by_tests
from dpcausal.mechanisms.additive import gaussian, gaussian_scale
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, affordable_zcdp
from dpcausal.privacy.sensitivity import Query
from dpcausal.releases.contrasts import Columns, NoisyContrasts
from dpcausal.statistics.contrasts import ROUNDING, contrast_of, contrasts_sensitivity
from dpcausal.statistics.wald import strength_of_levels

MOST_JOINT = 2**20
"""Largest table of all columns that is counted once, for all sets; no larger than the number of rows."""


@dataclass(frozen=True, kw_only=True)
class Parities(SumsOverRows, GraphSearch):
    """Noisy contrasts (parities, of two levels) of sets of columns, order by order: for many columns.

    Parameters
    ----------
    max_order : int, optional
        Largest conditioning set, 0 to 8; by default 2.  The orders up to it share the loss.
    """

    name: ClassVar[str] = "parities"
    about: ClassVar[str] = "noisy contrasts, order by order"
    losses: ClassVar[tuple[type[Loss], ...]] = (ApproxDP, ZCDP)
    proofs: ClassVar[tuple[str, ...]] = ("contrasts", "gaussian")
    later_alpha: ClassVar[float | None] = 0.03

    def usual_order(self, columns: int) -> int:
        return 2

    def feasibility_note(self, question: DiscoveryQuestion, loss: ApproxDP | ZCDP | NoPrivacy) -> str:
        """Return it for the first release, were all pairs in it; later ones have no more sets than there are."""
        sizes, rho = question.sizes, affordable_zcdp(loss)
        varied = [column for column, size in enumerate(sizes) if size > 1]
        for order, share in enumerate(self.shares):
            sets = sum(math.comb(len(varied), size) for size in range(1, order + 3))
            # No set moves by more than √2, and has at most so many cells whose sums are rounded.
            largest = math.sqrt(2 * sets) * (1 + 1e-9) + 2 * math.sqrt(sets * MOST_CELLS) * question.n * ROUNDING
            gaussian_scale(largest, rho.part(share))
        pairs = [chosen for size in (1, 2) for chosen in combinations(varied, size)]
        if not pairs:
            return ""
        bound = float(contrasts_sensitivity(sizes, pairs, question.n).bound)
        deviation = gaussian_scale(bound, rho.part(self.shares[0]))
        strengths = [strength_of_levels(a, b, question.n, deviation**2, STRONG) for a, b in question.pair_sizes]
        return too_few(strengths, question.n, self.terms(question.alpha, question.knowledge).alpha)

    def release(self, run: Run[DiscoveryQuestion]) -> SearchOutcome:
        question, names, known = run.question, run.question.names, run.question.knowledge
        terms = self.terms(question.alpha, question.knowledge)
        losses = [affordable_zcdp(run.loss).part(share) for share in self.shares]
        # What lacks a column is left out of every sum; then the number of the others is not n, and is released.
        counted = run.data.missing != "impute"
        joint, cut = joint_of(run.data, names), tuple(question.bounded)
        releaser = Releaser(names, question.n, question.sizes, joint, run.budget, losses, counted, cut)
        free = [pair for pair in combinations(names, 2) if not (known.forbids_edge(*pair) or known.joined(*pair))]
        releaser.begin(0, [(x, y, ()) for x, y in free])
        copies = copies_of(releaser.noisy, terms)
        alone = terms_without_copies(terms, copies, names)
        ask = GraphTest(releaser.noisy, alone)
        skeleton = find_skeleton(names, ask, alone, lambda order, tests, _: releaser.begin(order, tests), ask.together)
        result = by_tests(names, skeleton, alone)
        return SearchOutcome(
            replace(result, graph=graph_with_copies(result.graph, copies), copies=copies), terms, releaser.noisy
        )


@dataclass
class Releaser:
    """The contrasts as they are released, order by order; ``joint`` counts private records."""

    names: tuple[str, ...]
    n: int
    sizes: tuple[int, ...]
    joint: Callable[[Sequence[Columns]], list[npt.NDArray[np.int64]]] = field(repr=False)
    allotment: CallBudget
    losses: Sequence[ZCDP | NoPrivacy]
    """Of each order."""
    counted: bool
    """Whether the number of rows goes with the first contrasts."""
    cut: tuple[str, ...] = ()
    noisy: NoisyContrasts = field(init=False)

    def __post_init__(self) -> None:
        self.noisy = NoisyContrasts(self.names, self.n, self.sizes, {}, {}, cut=self.cut)

    def begin(self, order: int, tests: list[Test]) -> None:
        batch = self._missing(tests)
        if not batch:
            return
        with_count = self.counted and not self.noisy.values
        sensitivity = contrasts_sensitivity(self.sizes, batch, self.n, with_count)
        deviation = gaussian_scale(float(sensitivity.bound), self.losses[order])
        tables = [
            counts.reshape([self.sizes[i] for i in members])
            for members, counts in zip(batch, self.joint(batch), strict=True)
        ]
        values = [contrast_of(counts) for counts in tables]
        if with_count:
            values.append(np.array([float(tables[0].sum())]))
        query = Query(np.concatenate(values), sensitivity, f"contrasts of order {order}")
        released = gaussian(query, self.allotment, self.losses[order])
        ends = np.cumsum([value.size for value in values])
        parts = np.split(released, ends[:-1])
        if with_count:
            parts[-1] = np.clip(parts[-1], 1.0, self.n)
        for members, value in zip([*batch, ()][: len(parts)], parts, strict=True):
            self.noisy.values[members] = value
            self.noisy.deviations[members] = deviation

    def _missing(self, tests: list[Test]) -> list[Columns]:
        place = {name: number for number, name in enumerate(self.names)}
        needed: set[Columns] = set()
        for x, y, given in tests:
            columns = tuple(sorted((place[x], place[y], *(place[z] for z in given))))
            if math.prod(self.sizes[i] for i in columns) > MOST_CELLS:
                continue
            needed |= {
                chosen for size in range(1, len(columns) + 1) for chosen in combinations(columns, size)
                if min(self.sizes[i] for i in chosen) > 1
            }  # fmt: skip
        return sorted(needed - set(self.noisy.values), key=lambda members: (len(members), members))


def joint_of(table: Table, names: tuple[str, ...]) -> Callable[[Sequence[Columns]], list[npt.NDArray[np.int64]]]:
    if math.prod(sizes_of(table, names)) > min(MOST_JOINT, table.n):
        return JointCounts(table, names)
    joint = counts_of(table, names)
    return lambda sets: margins_of(joint, sets)
