"""``cells``: noisy counts, sums and sums of squares of numbers by cells, to be asked again free."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.core import validate as public
from dpcausal.core.method import Method, Run, SumsOverRows, TableQuestion
from dpcausal.core.run import Task, public_task
from dpcausal.data.coding import column_codes, size_of
from dpcausal.data.records import Rows
from dpcausal.data.schema import Bounded, Column
from dpcausal.data.table import Table
from dpcausal.effects.cells import corner_counts as corner
from dpcausal.effects.cells.corner_counts import GRID, NoisyCells, Value, levels_of, value_of
from dpcausal.errors import FenceError, InfeasibleError, LossError, ParameterError
from dpcausal.mechanisms.additive import noise_variance, norm_of, whole_numbers
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Query

MOST_CELLS = 2**22
MOST_ROWS = 2**34

FINE = 64
"""Bins of one width, of the declared bounds or of a side of a cutoff."""
SPARSE, NOISE, OUTSIDE = 0.02, 2.5, 0.08
"""The outer quarter of a range is left where it has so few of the records, or so many deviations of its noise; at most
so many records in all are left out."""
HIDDEN = 0.04
"""A histogram is released where two deviations of the noise of a quarter of its bins are at most so many records."""

Paid = PureDP | ZCDP | NoPrivacy


@dataclass(frozen=True)
class CellSums(TableQuestion[NoisyCells]):
    task: ClassVar[str] = "cells"

    by: tuple[str, ...]
    values: tuple[Value, ...]
    finer: tuple[tuple[str, Bounded], ...] = ()
    """Columns that are cut otherwise than the schema has them, by public numbers."""

    @classmethod
    def of(cls, table: Table, by: object, values: object, finer: tuple[tuple[str, Bounded], ...] = ()) -> CellSums:
        public.check_table(table, persons=True, weights=True)
        named, numbers = public.names("by", by, 1), public.names("values", values)
        if set(named) & set(numbers):
            raise ParameterError("a column makes cells or has sums, not both")
        declared = {name: public.column(table, name, "a sum") for name in (*named, *numbers)}
        chosen = tuple(value_of(name, declared[name]) for name in numbers) or (corner.COUNTS_ONLY,)
        question = cls(table, named, chosen, finer)
        if question.entries > MOST_CELLS:
            raise InfeasibleError(f"these columns make more than {MOST_CELLS} noisy sums, the most: name fewer columns")
        if table.n > MOST_ROWS:
            raise InfeasibleError(f"sums by cells are exact up to {MOST_ROWS} rows")
        return question

    @property
    def outcomes(self) -> tuple[str, ...]:
        return tuple(value.name for value in self.values if value.degree)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(value.name for value in self.values)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(size_of(self.column(name)) for name in self.by)

    def column(self, name: str) -> Column:
        return dict(self.finer).get(name) or super().column(name)

    @property
    def entries(self) -> int:
        return math.prod(self.sizes) * sum(value.degree + 1 for value in self.values)

    def detail(self) -> dict[str, Any]:
        return {"by": list(self.by), "values": list(self.names), **self.table.declared}


@dataclass(frozen=True, kw_only=True)
class CellQuery(SumsOverRows, Method[CellSums]):
    name: ClassVar[str] = "cells"
    about: ClassVar[str] = "noisy sums by cells"
    losses: ClassVar[tuple[type[Loss], ...]] = (PureDP, ZCDP)
    proofs: ClassVar[tuple[str, ...]] = ("corner-counts",)

    def plan(self, question: CellSums, loss: Paid) -> CellQuery:
        cell_variance(len(question.values), loss)  # refuses a loss whose noise cannot be drawn
        return self

    def caveats(self, question: CellSums, loss: Paid) -> tuple[str, ...]:
        return cut_note((name, question.column(name)) for name in question.by)

    def release(self, run: Run[CellSums]) -> NoisyCells:
        return noisy_cells(run.question, run.loss, run.budget)


@public_task
def cells(
    table: Table, *, by: Iterable[str], values: Iterable[str] = (), loss: Loss, accept_large_epsilon: bool = False,
    refresh: bool = False,
) -> Task[NoisyCells]:  # fmt: skip
    """Release counts, sums and sums of squares of numbers by cells, to be asked for effects again and again.

    Parameters
    ----------
    table : Table
        The table's ledger pays, once.
    by : list of str
        Columns of levels, or bounded ones that are cut at their ``cuts`` (or into four), that make the cells: the
        treatment, what is adjusted for, groups.
    values : list of str
        Bounded columns, or columns of two levels: outcomes.  Each more needs more noise.
    loss : Loss
        The most that the call may cost; ``PureDP`` (geometric noise) or ``ZCDP`` (Gaussian).
    accept_large_epsilon, refresh : bool
        As of ``effect``.

    Returns
    -------
    NoisyCells
        ``cells.effect(treatment=..., outcome=..., adjust=...)`` is free; ``to_json()`` saves it.

    Notes
    -----
    *Guarantee*: the loss, under replace-one for every row, or person; claim corner-counts.  Counts and squares are free
    beside the sums.
    A row that does not have one of the columns has no mass (see ``Table(missing=...)``).
    *Source*: this library.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcausal as dpc
    >>> arm = np.arange(4000) % 2
    >>> schema = dpc.Schema({"arm": dpc.Levels([0, 1]), "y": dpc.Bounded(0, 10)})
    >>> y = 4.0 + arm + 3 * np.sin(np.arange(4000))
    >>> table = dpc.Table({"arm": arm, "y": y}, schema, dpc.Ledger.in_memory(dpc.PureDP(1)))
    >>> released = dpc.cells(table, by=["arm"], values=["y"], loss=dpc.PureDP(1))
    >>> found = released.effect(treatment="arm", outcome="y", adjust=[])
    >>> abs(found.estimate - 1) < 0.2, found.interval[0] < found.estimate < found.interval[1]
    (True, True)
    """
    return CellSums.of(table, by, values), CellQuery()


def cut_note(columns: Iterable[tuple[str, Column]]) -> tuple[str, ...]:
    parts = ", ".join(f"{name!r} into {size_of(one)}" for name, one in columns if isinstance(one, Bounded))
    return (f"cut into parts: {parts}; what varies within a part is not adjusted for",) if parts else ()


def cell_variance(values: int, loss: Paid) -> float:
    """Return the variance of an entry's noise, in records; refuse a loss whose noise could not be drawn."""
    try:
        return noise_variance(corner.corner_counts_sensitivity(values, norm_of(loss)), loss) / GRID**2
    except FenceError:
        raise LossError(f"{loss} is too little for sums by cells: its noise could not be drawn") from None


def noisy_cells(question: CellSums, loss: Paid, allotment: CallBudget) -> NoisyCells:
    table, values, names = question.table, question.values, question.outcomes
    by = tuple((name, question.column(name)) for name in question.by)
    number, entries = math.prod(question.sizes), sum(value.degree + 1 for value in values)

    def counted(rows: Rows) -> Integers:
        columns, mass = rows.values, rows.masses(GRID)
        place = np.zeros(rows.n, dtype=np.int64)
        for name, column in by:
            place *= size_of(column)
            place += column_codes(columns[name], column)
        masses = [
            corner.corners(
                (columns[one.name] - one.lower) / one.width if one.degree else np.zeros(rows.n), one.degree, mass
            )
            for one in values
        ]
        return corner.corner_counts(place, number, rows.included, masses).ravel()

    counts = table.records((*question.by, *names), parts=True).sum(counted).reshape(number, entries)
    query = Query(counts, corner.corner_counts_sensitivity(len(values), norm_of(loss)), "sums by cells")
    noisy = whole_numbers(query, allotment, loss)
    return NoisyCells(
        names=(*question.by, *names), n=table.n, by=question.by,
        levels=tuple(levels_of(column) for _, column in by), values=values,
        counts=np.asarray(noisy, dtype=np.float64).reshape(*question.sizes, -1) / GRID,
        variance=cell_variance(len(values), loss),
        cut=tuple(name for name in question.by
                  if isinstance(column := table.schema.column(name), Bounded) and column.cuts is None),
    )  # fmt: skip


def equal_parts(column: Bounded, parts: int, window: tuple[float, float] | None = None) -> Bounded:
    """Return a column cut into parts of one width within a window, or as it is where text cannot distinguish the ends.
    What lies outside the window belongs to its outermost parts."""
    lower, upper = (column.lower, column.upper) if window is None else window
    cuts = [lower + (upper - lower) * part / parts for part in range(1, parts)]
    labels = {corner.cut_text(cut) for cut in cuts}
    inside = parts > 1 and column.lower < cuts[0] and cuts[-1] < column.upper
    return Bounded(column.lower, column.upper, cuts=cuts) if inside and len(labels) == len(cuts) else column


def is_clear(n: float, loss: Paid, bins: int = FINE) -> bool:
    try:
        return 2 * math.sqrt(bins / 4 * cell_variance(1, loss)) <= HIDDEN * n
    except LossError:  # so little that its noise could not be drawn
        return False


def histogram(table: Table, name: str, column: Bounded, loss: Paid, allotment: CallBudget) -> tuple[Reals, float]:
    """Release how many records lie in each part of a column; return also the deviation of the noise."""
    question = CellSums.of(table, (name,), (), ((name, column),))
    cells = noisy_cells(question, loss, allotment)
    return np.asarray(cells.counts[..., 0], dtype=np.float64), math.sqrt(cells.variance)


def window(counts: Reals, deviation: float, from_first: bool = False) -> tuple[int, int]:
    """Return the first bin of the records and the one after the last: outer quarters are left while nearly empty. With
    ``from_first`` only those at the end are."""
    low, high, out = 0, len(counts), 0.0
    total = max(float(counts.sum()), 1.0)
    while high - low > 1:
        size = max((high - low) // 4, 1)
        ends = [(float(counts[high - size : high].sum()), 0, size)]
        if not from_first:
            ends.append((float(counts[low : low + size].sum()), size, 0))
        few, below, above = min(ends)
        out += max(few, 0.0)
        if few > max(SPARSE * total, NOISE * math.sqrt(size) * deviation) or out > OUTSIDE * total:
            break
        low, high = low + below, high - above
    return low, high
