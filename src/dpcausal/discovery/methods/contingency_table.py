"""``"table"``: one noisy table of counts of all columns, and whatever is read off it."""

import math
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, NamedTuple

from dpcausal.core.method import Run, SumsOverRows
from dpcausal.data.counts import counts_of
from dpcausal.discovery.question import STRONG, DiscoveryQuestion, ScoreSearch, SearchOutcome, check_cells, too_few
from dpcausal.discovery.search.exact_score import MOST_COLUMNS, form_of
from dpcausal.mechanisms.additive import gaussian, gaussian_scale, geometric, laplace_scale
from dpcausal.privacy.loss import ZCDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity
from dpcausal.releases.counts import Law, NoisyTable, geometric_variance
from dpcausal.statistics.strata import contingency_sensitivity
from dpcausal.statistics.wald import strength_of_levels


class CellNoise(NamedTuple):
    law: Law
    sensitivity: Sensitivity
    variance: float


def cell_noise(loss: PureDP | ZCDP | NoPrivacy) -> CellNoise:
    if isinstance(loss, PureDP):
        bound = contingency_sensitivity()
        return CellNoise("geometric", bound, geometric_variance(laplace_scale(bound.bound, loss)))
    bound = contingency_sensitivity(Norm.L2)
    law: Law = "discrete-gaussian" if isinstance(loss, ZCDP) else "exact"
    return CellNoise(law, bound, gaussian_scale(float(bound.bound), loss) ** 2)


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

    def feasibility_note(self, question: DiscoveryQuestion, loss: PureDP | ZCDP | NoPrivacy) -> str:
        whole = cell_noise(loss).variance * math.prod(question.sizes)
        levels = combinations(sorted(size for size in question.sizes if size > 1), 2)
        pairs = [strength_of_levels(a, b, question.n, whole / (a * b), STRONG) for a, b in levels]
        return too_few(pairs, question.n, self.terms(question.alpha, question.knowledge).alpha)

    def release(self, run: Run[DiscoveryQuestion]) -> SearchOutcome:
        question, spent = run.question, run.loss
        noise = cell_noise(spent)
        query = Query(counts_of(run.data, question.names), noise.sensitivity, "table of counts")
        mechanism = geometric if isinstance(spent, PureDP) else gaussian
        counts = mechanism(query, run.budget, spent)
        released = NoisyTable(question.names, question.n, counts, noise.variance, noise.law, cut=question.cut)
        return self.searched(released, question)
