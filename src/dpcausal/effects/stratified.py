"""``"cells"``: an effect from noisy sums by treatment and strata, for a trial or few discrete columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dpcausal.data.table import Table
from dpcausal.effects.cells import CellSums, Paid, cell_claims, cell_variance, noisy_cells, pay_cells
from dpcausal.effects.question import Contrast, EffectMethod
from dpcausal.effects.result import Effect
from dpcausal.effects.standardise import LEAST_COUNT, LEAST_RATIO
from dpcausal.errors import InfeasibleError
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import ZCDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.noise import PublicGenerator


@dataclass(frozen=True, kw_only=True)
class Stratified(EffectMethod[PureDP | ZCDP]):
    """Noisy counts, sums and squares by treatment and strata; the g-formula, its interval by the delta method."""

    name: ClassVar[str] = "cells"
    about: ClassVar[str] = "noisy sums by strata"
    at_once: ClassVar[bool] = False
    uses_coins: ClassVar[bool] = False

    def pay(self, loss: Loss, question: Contrast) -> tuple[Paid, str]:
        return pay_cells(loss)

    def settle(self, question: Contrast, spent: Paid) -> Stratified:
        sums = sums_of(question)
        deviation = math.sqrt((sums.values[0].degree + 1) * cell_variance(1, spent))
        least, mean = max(LEAST_COUNT, LEAST_RATIO * deviation), question.n / question.cells
        if mean < least:
            raise InfeasibleError(
                f"{question.n} rows in {question.cells} cells of treatment and strata are {mean:.3g} a cell, and at "
                f"{spent} a cell needs {least:.3g} to be told from the noise: give {_enough(spent, least / mean)} or "
                f"{math.ceil(least * question.cells)} rows, or adjust for fewer or coarser columns"
            )
        return self

    def claims(self, question: Contrast, spent: PureDP | ZCDP) -> tuple[str, ...]:
        return cell_claims(spent)

    def caveats(self, question: Contrast, spent: Paid) -> tuple[str, ...]:
        from dpcausal.data.schema import Bounded

        cut = [name for name in question.strata if isinstance(question.column(name), Bounded)]
        return (f"{', '.join(cut)}: cut into parts; what varies within a part is not adjusted for",) if cut else ()

    def release(
        self, private: Table, question: Contrast, spent: Paid, coins: PublicGenerator, allotment: Allotment
    ) -> Effect:
        return noisy_cells(sums_of(question), spent, allotment).effect(
            treatment=question.treatment, outcome=question.outcome, adjust=question.adjust, groups=question.groups,
            estimand=question.estimand, treated=question.treated, control=question.control,
            coverage=question.coverage,
        )  # fmt: skip

    def exact(self, private: Table, question: Contrast, coins: PublicGenerator, allotment: Allotment) -> Effect:
        return self.release(private, question, NoPrivacy(), coins, allotment)


def sums_of(question: Contrast) -> CellSums:
    return CellSums.of(question.table, (question.treatment, *question.strata), (question.outcome,))


def _enough(spent: Paid, factor: float) -> str:
    """Return the loss at which the noise is smaller by a factor."""
    if isinstance(spent, PureDP):
        return f"epsilon {spent.epsilon * factor:.3g}"
    return f"rho {spent.rho * factor**2:.3g}" if isinstance(spent, ZCDP) else "more rows"
