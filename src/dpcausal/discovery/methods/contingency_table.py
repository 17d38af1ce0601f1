"""``"table"``: one noisy table of counts of all columns, and whatever is read off it.

Numbers without declared cuts are cut at noisy quartiles first, in a tenth of the loss, where the noise allows it.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from dpcausal.core.method import Run, SumsOverRows
from dpcausal.data.counts import JointCounts, counts_of
from dpcausal.discovery.methods.learned_cuts import (
    Cuts,
    Paid,
    deviation_of_round,
    learned_cuts,
    loss_after_cuts,
    uncut_columns,
)
from dpcausal.discovery.question import STRONG, DiscoveryQuestion, ScoreSearch, SearchOutcome, check_cells, too_few
from dpcausal.discovery.search.exact_score import MOST_COLUMNS, form_of
from dpcausal.errors import FenceError
from dpcausal.mechanisms.additive import noise_variance, norm_of, whole_numbers
from dpcausal.privacy.loss import ZCDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Query, Sensitivity
from dpcausal.releases.counts import Law, NoisyTable
from dpcausal.statistics.strata import contingency_sensitivity
from dpcausal.statistics.wald import strength_of_levels


class CellNoise(NamedTuple):
    law: Law
    sensitivity: Sensitivity
    variance: float


def cell_noise(loss: PureDP | ZCDP | NoPrivacy) -> CellNoise:
    law: Law = "geometric" if isinstance(loss, PureDP) else "discrete-gaussian" if isinstance(loss, ZCDP) else "exact"
    bound = contingency_sensitivity(norm_of(loss))
    return CellNoise(law, bound, noise_variance(bound, loss))


MOST_OF_ROWS = 0.02
"""The largest deviation of a round's counts, as a share of the rows, at which quartiles are learnt."""


@dataclass(frozen=True, kw_only=True)
class ContingencyTable(SumsOverRows, ScoreSearch):
    """One noisy table of counts of all columns; tests that know the noise, then the exact search for the best score.

    Parameters
    ----------
    search : str
        ``"score"`` or ``"pc"``; by default score up to 14 columns.
    max_order : int, optional
        Largest conditioning set, 0 to 8; by default 1 for the screen of a score search, 3 for pc, 2 beyond 14 columns.
    """

    name: ClassVar[str] = "table"
    about: ClassVar[str] = "one noisy table of counts"
    losses: ClassVar[tuple[type[Loss], ...]] = (PureDP, ZCDP)
    proofs: ClassVar[tuple[str, ...]] = ("contingency-table",)

    def usual_order(self, columns: int) -> int:
        if form_of(self.search, columns) == "score":
            return 1
        return 3 if columns <= MOST_COLUMNS else 2

    def check(self, question: DiscoveryQuestion) -> None:
        check_cells(question)

    def learns_cuts(self, question: DiscoveryQuestion, loss: Any) -> bool:
        columns = len(uncut_columns(question))
        try:
            return columns > 0 and deviation_of_round(columns, loss) <= MOST_OF_ROWS * question.n
        except FenceError:
            return False

    def loss_of_table(self, question: DiscoveryQuestion, loss: Paid) -> Paid:
        return loss_after_cuts(question, loss) if self.learns_cuts(question, loss) else loss

    def proofs_of(self, question: DiscoveryQuestion, loss: Any) -> tuple[str, ...]:
        learned = ("column-histograms",) if self.learns_cuts(question, loss) else ()
        return (*learned, *super().proofs_of(question, loss))

    def feasibility_note(self, question: DiscoveryQuestion, loss: PureDP | ZCDP | NoPrivacy) -> str:
        whole = cell_noise(self.loss_of_table(question, loss)).variance * math.prod(question.sizes)
        pairs = [strength_of_levels(a, b, question.n, whole / (a * b), STRONG) for a, b in question.pair_sizes]
        return too_few(pairs, question.n, self.terms(question.alpha, question.knowledge).alpha)

    def release(self, run: Run[DiscoveryQuestion]) -> SearchOutcome:
        question, names, cuts = run.question, run.question.names, Cuts()
        spent = self.loss_of_table(question, run.loss)
        if self.learns_cuts(question, run.loss):
            joint = JointCounts(run.data, names)
            cuts = learned_cuts(joint, question, run.budget, run.loss)
            # From here on the parts of numbers are functions of the noisy quartiles.
            sizes = [
                len(cuts[name]) + 1 if name in cuts else size for name, size in zip(names, question.sizes, strict=True)
            ]
            exact = joint.recut(cuts)([tuple(range(len(names)))])[0].reshape(sizes)
        else:
            exact = counts_of(run.data, names)
        noise = cell_noise(spent)
        counts = whole_numbers(Query(exact, noise.sensitivity, "table of counts"), run.budget, spent)
        released = NoisyTable(
            names, question.n, counts, noise.variance, noise.law, cut=tuple(question.bounded),
            cuts={name: tuple(own.tolist()) for name, own in cuts.items()},
            equal_parts=tuple(name for name in uncut_columns(question) if name not in cuts),
        )  # fmt: skip
        return self.searched(released, question)
