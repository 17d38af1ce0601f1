"""A noisy table of counts of x, y and the given levels, and a test that knows its noise: for few cells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.asking import public
from dpcausal.data.schema import Levels
from dpcausal.dependence.contingency import Counts, contingency, contingency_sensitivity
from dpcausal.dependence.wald import upper_tail, wald_test
from dpcausal.errors import ParameterError
from dpcausal.independence.columns import Rows, cells_of, values_of
from dpcausal.independence.law import LEAST_PVALUE
from dpcausal.independence.question import Hypothesis, PureTest, Released
from dpcausal.mechanisms.additive import geometric, laplace_scale
from dpcausal.mechanisms.gate import book_exact
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Query
from dpcausal.releases.table import geometric_variance

MOST_CELLS = 1_000_000
LEAST_ROWS = 20

DROWNED_CELLS = "most strata may be too small for their cells' noise, and then say nothing: fewer levels would say more"

MANY_CELLS = "with several levels and a small epsilon a true null can look dependent about twice as often as alpha says"


@dataclass(frozen=True, kw_only=True)
class NoisyCounts(PureTest):
    """A noisy table of counts, and in each stratum of it what x and y share beyond their margins."""

    name: ClassVar[str] = "counts"
    about: ClassVar[str] = "a noisy table of counts of levels"
    leaves_out: ClassVar[bool] = True
    private_ids: ClassVar[bool] = True
    uses_coins: ClassVar[bool] = False

    def claims(self, question: Hypothesis, spent: PureDP) -> tuple[str, ...]:
        return "contingency-table", "geometric"

    def settle(self, question: Hypothesis, spent: PureDP | NoPrivacy) -> Self:
        if len(question.x) != 1 or len(question.y) != 1 or not all(
            isinstance(column, Levels) for column in question.declared(question.names)
        ):
            raise ParameterError(f"method {self.name!r} takes one column x and one y, and levels only")
        if math.prod(self.shape(question)) > MOST_CELLS:
            raise ParameterError(f"method {self.name!r} takes at most {MOST_CELLS} cells")
        public.whole("the number of rows", question.n, LEAST_ROWS, 10**8)
        return self

    def caveats(self, question: Hypothesis, spent: PureDP | NoPrivacy) -> tuple[str, ...]:
        if spent.exact:
            return ()
        drowned = () if reaches(question.n, self.shape(question), spent.epsilon) else (DROWNED_CELLS,)
        return (*drowned, *((MANY_CELLS,) if question.pairs > 1 and spent.epsilon < 1 else ()))

    def shape(self, question: Hypothesis) -> tuple[int, int, int]:
        """Return the levels of x and of y and the strata."""
        x, y = (len(column) for column in question.declared((*question.x, *question.y)) if isinstance(column, Levels))
        return x, y, question.cells

    def table(self, rows: Rows, question: Hypothesis) -> Counts:
        """Return the counts of the rows kept."""
        codes = *(values_of(columns).astype(np.int64) for columns in (rows.x, rows.y)), cells_of(rows.given)
        return contingency([column[rows.kept] for column in codes], self.shape(question))

    def release(
        self, private: Rows, question: Hypothesis, spent: PureDP, coins: PublicGenerator, allotment: Allotment
    ) -> Released:
        bound = contingency_sensitivity()
        noisy = geometric(Query(self.table(private, question), bound, "table of counts"), allotment, spent)
        return _judged(noisy, geometric_variance(laplace_scale(bound.bound, spent)))

    def exact(self, private: Rows, question: Hypothesis, coins: PublicGenerator, allotment: Allotment) -> Released:
        book_exact("table of counts", allotment)
        return _judged(self.table(private, question), 0.0)


def reaches(n: int, shape: tuple[int, int, int], epsilon: float) -> bool:
    """Return whether strata of n/strata rows are large enough for their noise, as the test has it."""
    cells = shape[0] * shape[1]
    return n / shape[2] >= max(5 * cells, 3 * math.sqrt(8 / epsilon**2 * cells))


def _judged(counts: Any, variance: float) -> Released:
    found = wald_test(counts.astype(np.float64), variance)
    if found is None or not math.isfinite(found.statistic):
        return Released(0.0, 1.0)
    return Released(found.statistic, min(1.0, max(LEAST_PVALUE, upper_tail(found.statistic, found.freedom))))
