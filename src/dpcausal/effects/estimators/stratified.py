"""``"stratified"``: an effect from noisy sums by treatment and strata, for a trial or few discrete columns."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from dpcausal.core import validate as public
from dpcausal.core.method import Run, SumsOverRows
from dpcausal.data.schema import Bounded
from dpcausal.effects.cells.api import (
    MOST_CELLS,
    SPARSE,
    CellSums,
    Paid,
    cell_variance,
    cut_note,
    equal_parts,
    histogram,
    is_clear,
    noisy_cells,
    window,
)
from dpcausal.effects.cells.corner_counts import cut_text
from dpcausal.effects.cells.effect import standardized_effect
from dpcausal.effects.cells.standardise import least_count
from dpcausal.effects.clusters import ClusteredScores, group_sums, shared
from dpcausal.effects.nuisance.part_check import Strata, check_parts, check_share
from dpcausal.effects.question import EffectMethod, EffectQuestion
from dpcausal.effects.result import Effect
from dpcausal.errors import InfeasibleError, ParameterError
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP, Loss, PureDP

FEWEST_PARTS, MOST_PARTS = 4, 128
OBSERVED = Fraction(1, 10)
"""Share of the loss of the counts of records that have treatment and strata, where these are the population."""
WINDOWS, ARMS = tuple(Fraction(part, 400) for part in range(1, 11)), Fraction(1, 100)
"""Shares of the loss of a histogram that shows where a number lies, the least that is clear; of the sizes of arms."""
QUARTERS, ROUNDS, MOST_FOR_WINDOWS = 4, 6, Fraction(3, 20)
"""Parts of a window that a histogram counts, how often it is narrowed while an outer one is nearly empty, and the share
of the loss that this may cost at most."""
TWICE = 3.0
"""An end moves back where two counts show more than so many deviations of the noise of their mean."""
LESSER = 0.56
"""By so many deviations of its noise the lesser of two alike numbers is expected to be too small."""
CLEAR, LEAST_DEVIATION = 45, 0.25
"""With four parts of each number, cells that exceed their noise by that many deviations leave room for more parts."""
BEYOND = 3
"""So many whole numbers beyond the ends have cuts too: their few records are left out, not taken for the last one."""
MOST_VALUES, LARGEST_WHOLE = 32, 10_000
"""A number may be whole where its bounds are, and leave room for so few values; the largest such bound."""
LIKE_WHOLE, NEAR_WHOLE, EXCEEDS = 0.15, 0.1, 1.15
"""It is whole where less of its records is farther than ``NEAR_WHOLE`` from a whole number.  Each value is a part of
its own where there are at most so many times as many values as parts."""
SPARE = 1.25
"""Cells that are alike and so many times the least that is shown give an interval in 0.8 of all draws or more."""

LEARNT = (
    "{} cut into parts of one width where released counts have records; what varies within a part is not adjusted for"
)
UNCHECKED = "with so few rows at this loss no check shows confounding within the parts of numbers: declare cuts"


@dataclass(frozen=True, kw_only=True)
class Stratified(SumsOverRows, EffectMethod):
    """Noisy counts, sums and squares by treatment and strata; the g-formula, its interval by the delta method.

    Parameters
    ----------
    population : str, optional
        Whose mean effect: ``"complete"``, the default, of records without missing values; ``"observed"``, of all
        records that have the treatment and what is adjusted for, which is right where outcomes are missing by these
        alone. Counts of those records then have a tenth of the loss.
    """

    name: ClassVar[str] = "stratified"
    about: ClassVar[str] = "noisy sums by strata"
    losses: ClassVar[tuple[type[Loss], ...]] = (PureDP, ZCDP)
    proofs: ClassVar[tuple[str, ...]] = ("corner-counts",)
    supports_clusters: ClassVar[bool] = True
    population: str | None = None

    def plan(self, question: EffectQuestion, loss: Paid) -> Stratified:
        if self.population is not None:
            public.check_choice("population", self.population, ("complete", "observed"))
        if question.cluster is not None and self._observed(question):
            raise ParameterError("the interval by clusters is of complete records: leave out population")
        sums_of(question)  # refuses more cells than are released
        deviation = _deviation(question, self._own(question, loss))
        if self._observed(question):
            deviation = max(deviation, math.sqrt(cell_variance(1, loss.part(OBSERVED))))
        least, mean = least_count(deviation), question.n / question.cells
        if mean < least and not loss.exact:
            raise InfeasibleError(
                f"{question.n} rows in {question.cells} cells of treatment and strata are {mean:.3g} a cell, and at "
                f"{loss} a cell needs {least:.3g} to be distinguished from the noise: if all cells are alike, at least "
                f"{_enough(loss, SPARE * least / mean)} or {math.ceil(SPARE * least * question.cells)} rows give an "
                "interval, and more where arms or strata are unequal; or adjust for fewer or coarser columns"
            )
        return self

    def proofs_of(self, question: EffectQuestion, loss: Paid) -> tuple[str, ...]:
        numbers = ("residual-sums",) if _cut_at_will(question) else ()
        return (*self.proofs, *numbers, *(("group-layers",) if question.cluster else ()))

    def caveats(self, question: EffectQuestion, loss: Paid) -> tuple[str, ...]:
        numbers, loss = _cut_at_will(question), self._own(question, loss)
        parts = _equal(numbers, _parts(question, loss, question.table.expected))
        unchecked = (UNCHECKED,) if numbers and not check_share(question, parts, loss) else ()
        if _range_share(question, loss) is not None:
            own = [name for name, _ in numbers]
            declared = cut_note((name, question.column(name)) for name in question.strata if name not in own)
            return (*declared, LEARNT.format(", ".join(map(repr, own))), *unchecked)
        cut = cut_note((name, dict(parts).get(name, question.column(name))) for name in question.strata)
        return (*cut, *unchecked)

    def release(self, run: Run[EffectQuestion]) -> Effect:
        question, allotment = run.question, run.budget
        learnt, rest = learnt_parts(question, self._own(question, run.loss), allotment)
        finer = learnt.columns
        varying = tuple(one for one in finer if one[0] not in learnt.constant_within)
        share = check_share(question, varying, rest)
        cells = noisy_cells(sums_of(question, finer), rest.part(1 - share), allotment)
        cells = replace(cells, cut=tuple(name for name in cells.cut if name not in learnt.single_values))
        strata = Strata(question, finer, cells)
        bias = check_parts(question, varying, strata, rest.part(share), allotment) if share else None
        if self._observed(question):
            by = (question.treatment, *question.strata)
            counted = noisy_cells(CellSums.of(question.table, by, (), finer), run.loss.part(OBSERVED), allotment)
            cells = replace(cells, observed=counted.counts[..., 0], observed_variance=counted.variance)
        within_parts = (0.0, 0.0) if bias is None else bias.allowances
        effect = standardized_effect(cells, **question.options, within_parts=within_parts)
        if varying and bias is None and UNCHECKED not in self.caveats(question, run.loss):  # too many parts were learnt
            effect = replace(effect, notes=(*effect.notes, UNCHECKED))
        effect = replace(effect, release=cells)
        if question.cluster is None:
            return effect
        width = strata.outcome.width
        middle = 0.0 if effect.estimate is None else effect.estimate / width
        scores = ClusteredScores.of(effect, strata.population, 0.0, width)
        records = question.table.records((question.treatment, *question.strata, question.outcome), parts=True)
        return scores.by_clusters(
            effect, lambda cut: records.sum(lambda rows: group_sums(cut(strata.scores(rows, middle) * width), rows)),
            question.cluster, question.n, shared(run.loss, True)[1], run.budget,
        )  # fmt: skip

    def _observed(self, question: EffectQuestion) -> bool:
        return self.population == "observed" and question.drops_missing

    def _own(self, question: EffectQuestion, loss: Paid) -> Paid:
        return loss.part(1 - OBSERVED) if self._observed(question) else shared(loss, question.cluster is not None)[0]


def sums_of(question: EffectQuestion, finer: tuple[tuple[str, Bounded], ...] = ()) -> CellSums:
    return CellSums.of(question.table, (question.treatment, *question.strata), (question.outcome,), finer)


@dataclass(frozen=True)
class LearntParts:
    """Numbers as they are cut; of which each part between the ends of the records has one whole number; and all."""

    columns: tuple[tuple[str, Bounded], ...]
    single_values: tuple[str, ...] = ()
    constant_within: tuple[str, ...] = ()


def learnt_parts(question: EffectQuestion, loss: Paid, allotment: CallBudget) -> tuple[LearntParts, Paid]:
    """Return where numbers without cuts are cut, and what is left of the loss: a part of it shows where records lie.

    Numbers are cut into parts of one width where released histograms have records, into more of them where the rarer
    arm, as released, leaves room for it.  A window is narrowed as long as an outer quarter of it is nearly empty: where
    bounds fit, one histogram of four parts is all that is paid.  A number of few whole values is cut between them: such
    a part has nothing to vary within.
    """
    numbers = _cut_at_will(question)
    share_of_windows = _range_share(question, loss)
    if share_of_windows is None:
        return LearntParts(_equal(numbers, _parts(question, loss, question.table.expected))), loss
    windows: dict[str, tuple[float, float]] = {}
    whole = []
    used = Fraction(0)
    for name, column in numbers:
        windows[name], histograms = learnt_window(question, name, column, loss.part(share_of_windows), allotment)
        used += histograms * share_of_windows
        if _may_be_whole(column, windows[name]):
            used += share_of_windows
            if has_whole_numbers(question, name, column, windows[name], loss.part(share_of_windows), allotment):
                whole.append(name)
    rest = loss.part(1 - used)
    parts = _parts(question, rest, question.table.expected)
    if parts > FEWEST_PARTS:
        arms = noisy_cells(CellSums.of(question.table, (question.treatment,), ()), loss.part(ARMS), allotment)
        levels, rest = arms.levels[0], loss.part(1 - used - ARMS)
        # As many as if every arm had as few as the rarer one.  The lesser of two that are alike is too small by LESSER.
        deviation = math.sqrt(arms.variance)
        rarer = max(float(arms.counts[list(question.pair), 0].min()) + LESSER * deviation, deviation)
        parts = _parts(question, rest, min(len(levels) * rarer, question.table.expected))
    columns, single, constant = [], [], []
    for name, column in numbers:
        most = min(EXCEEDS * parts, _most_parts(question)) if name in whole else 0
        if column.width + 1 <= most:
            windows[name] = column.lower, column.upper
            constant.append(name)
        if 1 < math.floor(windows[name][1]) - math.ceil(windows[name][0]) + 1 <= most:
            first, last = math.ceil(windows[name][0]) - BEYOND, math.floor(windows[name][1]) + BEYOND
            cuts = [value + 0.5 for value in range(first, last) if column.lower < value + 0.5 < column.upper]
            columns.append((name, Bounded(column.lower, column.upper, cuts=cuts)))
            single.append(name)
        else:
            columns.append((name, equal_parts(column, parts, windows[name])))
    return LearntParts(tuple(columns), tuple(single), tuple(constant)), rest


def learnt_window(
    question: EffectQuestion, name: str, column: Bounded, loss: Paid, allotment: CallBudget
) -> tuple[tuple[float, float], int]:
    """Return within which ends the records of a number lie, and by how many histograms, each of this loss.

    An outer quarter that looks nearly empty is left, and counted once more by the next histogram: where both counts
    together show more than noise, the end moves back.
    """
    ends = before = column.lower, column.upper
    left = 0.0, 0.0
    for number in range(1, ROUNDS + 1):
        parts, first = quarters(column, ends)
        counts, noise = histogram(question.table, name, parts, loss, allotment)
        inside, outside = counts[first : first + QUARTERS], (counts[:first].sum(), counts[first + QUARTERS :].sum())
        least = max(SPARSE * float(counts.sum()), TWICE * noise / math.sqrt(2))
        back = [new != old and (once + again) / 2 > least
                for new, old, once, again in zip(ends, before, left, outside, strict=True)]  # fmt: skip
        if any(back):
            low, high = (old if moved else new for new, old, moved in zip(ends, before, back, strict=True))
            ends = before = low, high
            continue
        low, high = window(inside, noise)
        if len(inside) < QUARTERS or high - low == QUARTERS:
            return ends, number
        left = float(outside[0] + inside[:low].sum()), float(outside[1] + inside[high:].sum())
        unit = (ends[1] - ends[0]) / QUARTERS
        ends, before = (ends[0] + unit * low, ends[0] + unit * high), ends
    return ends, ROUNDS


def _may_be_whole(column: Bounded, ends: tuple[float, float]) -> bool:
    bounds = float(column.lower), float(column.upper)
    few = 2 <= ends[1] - ends[0] < MOST_VALUES
    return few and all(one.is_integer() and abs(one) < LARGEST_WHOLE for one in bounds)


def has_whole_numbers(
    question: EffectQuestion, name: str, column: Bounded, ends: tuple[float, float], loss: Paid, allotment: CallBudget
) -> bool:
    """Return whether a histogram has few records away from whole numbers: of a continuous number most are."""
    values = range(math.ceil(ends[0]), math.floor(ends[1]) + 1)
    cuts = [value + side for value in values for side in (-NEAR_WHOLE, NEAR_WHOLE)]
    inside = [cut for cut in cuts if column.lower < cut < column.upper]
    counts, _ = histogram(question.table, name, Bounded(column.lower, column.upper, cuts=inside), loss, allotment)
    away = counts[1 if inside[0] > values[0] else 0 :: 2]
    return float(away.sum()) < LIKE_WHOLE * float(counts.sum())


def quarters(column: Bounded, ends: tuple[float, float]) -> tuple[Bounded, int]:
    """Return a column cut into quarters between two ends and what lies beyond, and the place of the first quarter."""
    inner = equal_parts(column, QUARTERS, ends)
    cuts = [*ends[:1], *(inner.cuts or ()), *ends[1:]]
    cuts = [cut for cut in cuts if column.lower < cut < column.upper]
    whole = len({cut_text(cut) for cut in cuts}) == len(cuts)
    if inner.cuts is None or not whole:
        return inner, 0
    return Bounded(column.lower, column.upper, cuts=cuts), int(ends[0] > column.lower)


def _cut_at_will(question: EffectQuestion) -> list[tuple[str, Bounded]]:
    named = ((name, question.column(name)) for name in question.adjust if name != question.groups)
    return [(name, one) for name, one in named if isinstance(one, Bounded) and one.cuts is None]


def _range_share(question: EffectQuestion, loss: Paid) -> Fraction | None:
    number = len(_cut_at_will(question))
    clear = (share for share in WINDOWS if number and share * (ROUNDS + 1) * number <= MOST_FOR_WINDOWS
             and is_clear(question.n, loss.part(share), QUARTERS))  # fmt: skip
    return next(clear, None)


def _parts(question: EffectQuestion, loss: Paid, records: float) -> int:
    """Return into how many parts each number is cut where so many records are evenly in all arms.

    Of d numbers in p parts each a bias falls like p⁻² or faster and the noise grows like p^(d/2)/n: p grows faster than
    the n^(2/(4 + d)) that keeps them in step, so that intervals hold, and cells empty no faster than they can bear.
    """
    number = len(_cut_at_will(question))
    clear = records / (question.cells * CLEAR * max(_deviation(question, loss), LEAST_DEVIATION))
    growth = min(2.5 / (4 + number), 0.9 / max(number, 1))
    return int(min(max(FEWEST_PARTS * clear**growth, FEWEST_PARTS), _most_parts(question)))


def _most_parts(question: EffectQuestion) -> float:
    """Return the most parts of each number that are released."""
    room = math.pow(MOST_CELLS / sums_of(question).entries, 1 / max(len(_cut_at_will(question)), 1))
    return min(FEWEST_PARTS * room, MOST_PARTS)


def _equal(numbers: list[tuple[str, Bounded]], parts: int) -> tuple[tuple[str, Bounded], ...]:
    return tuple((name, equal_parts(one, parts)) for name, one in numbers)


def _deviation(question: EffectQuestion, loss: Paid) -> float:
    return math.sqrt((question.value.degree + 1) * cell_variance(1, loss))


def _enough(loss: Paid, factor: float) -> str:
    if isinstance(loss, PureDP):
        return f"epsilon {loss.epsilon * factor:.3g}"
    return f"rho {loss.rho * factor**2:.3g}" if isinstance(loss, ZCDP) else "more rows"
