"""``"cells"``: an effect from noisy sums by treatment and strata, for a trial or few discrete columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dpcausal.data.schema import Bounded
from dpcausal.data.table import Table
from dpcausal.effects.cells import CellSums, Paid, cell_claims, cell_variance, cut_note, noisy_cells, pay_cells
from dpcausal.effects.noisy_cells import cut_text, value_of
from dpcausal.effects.question import Contrast, EffectMethod
from dpcausal.effects.result import Effect
from dpcausal.effects.standardise import least_count
from dpcausal.errors import InfeasibleError
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import ZCDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.noise import PublicGenerator

FEWEST_PARTS, MOST_PARTS = 4, 128
CLEAR, LEAST_DEVIATION = 32, 0.25
"""With four parts of each number, cells of so many deviations of their noise leave room for more parts."""


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
        deviation = _deviation(question, spent)
        least, mean = least_count(deviation), question.n / question.cells
        if mean < least and not spent.exact:
            raise InfeasibleError(
                f"{question.n} rows in {question.cells} cells of treatment and strata are {mean:.3g} a cell, and at "
                f"{spent} a cell needs {least:.3g} to be told from the noise: give {_enough(spent, least / mean)} or "
                f"{math.ceil(least * question.cells)} rows, or adjust for fewer or coarser columns"
            )
        return self

    def claims(self, question: Contrast, spent: PureDP | ZCDP) -> tuple[str, ...]:
        return cell_claims(spent)

    def caveats(self, question: Contrast, spent: Paid) -> tuple[str, ...]:
        finer = dict(finer_cuts(question, spent))
        return cut_note((name, finer.get(name, question.column(name))) for name in question.strata)

    def release(
        self, private: Table, question: Contrast, spent: Paid, coins: PublicGenerator, allotment: Allotment
    ) -> Effect:
        return noisy_cells(sums_of(question, finer_cuts(question, spent)), spent, allotment).effect(
            treatment=question.treatment, outcome=question.outcome, adjust=question.adjust, groups=question.groups,
            estimand=question.estimand, treated=question.treated, control=question.control,
            coverage=question.coverage,
        )  # fmt: skip

    def exact(self, private: Table, question: Contrast, coins: PublicGenerator, allotment: Allotment) -> Effect:
        return self.release(private, question, NoPrivacy(), coins, allotment)


def sums_of(question: Contrast, finer: tuple[tuple[str, Bounded], ...] = ()) -> CellSums:
    return CellSums.of(question.table, (question.treatment, *question.strata), (question.outcome,), finer)


def finer_cuts(question: Contrast, spent: Paid) -> tuple[tuple[str, Bounded], ...]:
    """Return the numbers without cuts that are adjusted for, cut finer where public numbers leave room for it.

    Of d numbers in p parts each a bias falls like p⁻² and the noise grows like p^(d/2)/n: p grows faster than the
    n^(2/(4 + d)) that keeps them in step, so that intervals hold, and cells empty no faster than they can bear.
    """
    named = ((name, question.column(name)) for name in question.adjust if name != question.groups)
    numbers = [(name, one) for name, one in named if isinstance(one, Bounded) and one.cuts is None]
    clear = question.table.expected / (question.cells * CLEAR * max(_deviation(question, spent), LEAST_DEVIATION))
    growth = min(2.5 / (4 + len(numbers)), 0.9 / max(len(numbers), 1))
    parts = int(min(FEWEST_PARTS * clear**growth, MOST_PARTS))
    return () if parts <= FEWEST_PARTS else tuple((name, _cut(one, parts)) for name, one in numbers)


def _cut(column: Bounded, parts: int) -> Bounded:
    """Return a column cut into parts of one width, or as it is where their ends cannot be told apart in words."""
    cuts = [column.lower + column.width * part / parts for part in range(1, parts)]
    told = {cut_text(cut) for cut in cuts}
    inside = column.lower < cuts[0] and cuts[-1] < column.upper
    return Bounded(column.lower, column.upper, cuts=cuts) if inside and len(told) == len(cuts) else column


def _deviation(question: Contrast, spent: Paid) -> float:
    """Return the deviation of the noise of a cell's count."""
    value = value_of(question.outcome, question.column(question.outcome))
    return math.sqrt((value.degree + 1) * cell_variance(1, spent))


def _enough(spent: Paid, factor: float) -> str:
    """Return the loss at which the noise is smaller by a factor."""
    if isinstance(spent, PureDP):
        return f"epsilon {spent.epsilon * factor:.3g}"
    return f"rho {spent.rho * factor**2:.3g}" if isinstance(spent, ZCDP) else "more rows"
