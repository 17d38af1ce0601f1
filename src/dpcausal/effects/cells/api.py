"""``cells``: noisy counts, sums and sums of squares of numbers by cells, to be asked again free."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpcausal.core import validate as public
from dpcausal.core.method import Method, PlannedCall, Run, SumsOverRows, TableQuestion
from dpcausal.core.run import Task, public_task
from dpcausal.data.coding import bin_codes, size_of
from dpcausal.data.records import Rows
from dpcausal.data.schema import Bounded, Column
from dpcausal.data.table import Table
from dpcausal.effects.cells.corner_counts import GRID, corner_counts, corner_counts_sensitivity, corners
from dpcausal.effects.cells.release import NoisyCells
from dpcausal.effects.cells.value import COUNTS_ONLY, Value, levels_of, value_of
from dpcausal.errors import FenceError, InfeasibleError, LossError, ParameterError
from dpcausal.mechanisms.additive import gaussian, gaussian_scale, geometric, laplace_scale
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Norm, Query, Unit
from dpcausal.releases.counts import geometric_variance

MOST_CELLS = 2**22
MOST_ROWS, MOST_HELD = 2**34, 2**27

Integers = npt.NDArray[np.int64]
Paid = PureDP | ZCDP | NoPrivacy


@dataclass(frozen=True)
class CellSums(TableQuestion[NoisyCells]):
    """The sums of some numbers by the cells of some columns."""

    task: ClassVar[str] = "cells"

    by: tuple[str, ...]
    values: tuple[Value, ...]
    finer: tuple[tuple[str, Bounded], ...] = ()
    """Columns that are cut otherwise than the schema has them, by public numbers."""

    @classmethod
    def of(cls, table: Table, by: object, values: object, finer: tuple[tuple[str, Bounded], ...] = ()) -> CellSums:
        """Return the question of checked arguments."""
        public.check_table(table, persons=True, weights=True)
        named = _names("by", by, 1)
        numbers = _names("values", values, 0)
        if set(named) & set(numbers):
            raise ParameterError("a column makes cells or has sums, not both")
        declared = {name: public.column(table, name, "a sum") for name in (*named, *numbers)}
        chosen = tuple(value_of(name, declared[name]) for name in numbers) or (COUNTS_ONLY,)
        question = cls(table, named, chosen, finer)
        if question.entries > MOST_CELLS:
            raise InfeasibleError(f"these columns make more than {MOST_CELLS} noisy sums, the most: name fewer columns")
        if table.n > (MOST_ROWS if table.unit is Unit.ROW else MOST_HELD):
            raise InfeasibleError(f"sums by cells are exact up to {MOST_ROWS} rows, or {MOST_HELD} persons")
        return question

    @property
    def outcomes(self) -> tuple[str, ...]:
        return tuple(value.name for value in self.values if value.degree)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are summed."""
        return tuple(value.name for value in self.values)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Parts of each column of the cells."""
        return tuple(size_of(self.column(name)) for name in self.by)

    def column(self, name: str) -> Column:
        return dict(self.finer).get(name) or super().column(name)

    @property
    def entries(self) -> int:
        """How many noisy numbers are released."""
        return math.prod(self.sizes) * sum(value.degree + 1 for value in self.values)

    def detail(self) -> dict[str, Any]:
        return {"by": list(self.by), "values": list(self.names), **self.table.declared}

    def report(
        self, planned: PlannedCall[Any], released: NoisyCells, allotment: CallBudget, seed: int | None
    ) -> NoisyCells:
        return released.under(self.guarantee(planned, allotment))


@dataclass(frozen=True, kw_only=True)
class CellQuery(SumsOverRows, Method[CellSums]):
    """Counts, sums and sums of squares at the corners of cells; ``PureDP`` or ``ZCDP``."""

    name: ClassVar[str] = "cells"
    about: ClassVar[str] = "noisy sums by cells"
    losses: ClassVar[tuple[type[Loss], ...]] = (PureDP, ZCDP)
    proofs: ClassVar[tuple[str, ...]] = ("corner-counts",)

    def plan(self, question: CellSums, loss: Paid) -> CellQuery:
        cell_variance(len(question.values), loss)
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
    accept_large_epsilon : bool
        Consent to ε above 20.
    refresh : bool
        Of a table with a name: run again at a new privacy cost instead of returning the cached result.

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
    >>> found = released.effect(treatment="arm", outcome="y")
    >>> abs(found.estimate - 1) < 0.2, found.interval[0] < found.estimate < found.interval[1]
    (True, True)
    """
    question = CellSums.of(table, by, values)
    return question, CellQuery()


def cut_note(columns: Iterable[tuple[str, Column]]) -> tuple[str, ...]:
    """Return in words into how many parts numbers are cut, if any are."""
    parts = ", ".join(f"{name!r} into {size_of(one)}" for name, one in columns if isinstance(one, Bounded))
    return (f"cut into parts: {parts}; what varies within a part is not adjusted for",) if parts else ()


def is_cut_at_will(column: Column) -> bool:
    return isinstance(column, Bounded) and column.cuts is None


def cell_variance(values: int, loss: Paid) -> float:
    """Return the variance of an entry's noise, in records; refuse a loss whose noise could not be drawn."""
    try:
        if isinstance(loss, PureDP):
            scale = laplace_scale(corner_counts_sensitivity(values).bound, loss)
            return geometric_variance(scale) / GRID**2
        if isinstance(loss, ZCDP):
            return (gaussian_scale(corner_counts_sensitivity(values, Norm.L2).bound, loss) / GRID) ** 2
    except FenceError:
        raise LossError(f"{loss} is too little for sums by cells: its noise could not be drawn") from None
    return 0.0


def noisy_cells(question: CellSums, loss: Paid, allotment: CallBudget) -> NoisyCells:
    """Read the columns and release their sums by cells."""
    table, values = question.table, question.values
    names = tuple(value.name for value in values if value.degree)
    by = tuple((name, question.column(name)) for name in question.by)
    number, entries = math.prod(question.sizes), sum(value.degree + 1 for value in values)

    def counted(rows: Rows) -> Integers:
        columns, mass = rows.values, rows.masses(GRID)
        place = np.zeros(rows.n, dtype=np.int64)
        for name, column in by:
            place *= size_of(column)
            place += bin_codes(columns[name], column) if isinstance(column, Bounded) else columns[name]
        masses = [
            corners(np.clip((columns[one.name] - one.lower) / one.width, 0.0, 1.0) if one.degree else np.zeros(rows.n),
                    one.degree, mass)
            for one in values
        ]  # fmt: skip
        return corner_counts(place, number, rows.kept, masses).ravel()

    counts = table.records((*question.by, *names), parts=True).sum(counted).reshape(number, entries)
    norm = Norm.L1 if isinstance(loss, PureDP) else Norm.L2
    query = Query(counts, corner_counts_sensitivity(len(values), norm), "sums by cells")
    noisy = geometric(query, allotment, loss) if isinstance(loss, PureDP) else gaussian(query, allotment, loss)
    return NoisyCells(
        names=(*question.by, *names), n=table.n, by=question.by,
        levels=tuple(levels_of(column) for _, column in by), values=values,
        counts=np.asarray(noisy, dtype=np.float64).reshape(*question.sizes, -1) / GRID,
        variance=cell_variance(len(values), loss),
        cut=tuple(name for name in question.by if is_cut_at_will(table.schema.column(name))),
    )  # fmt: skip


def _names(what: str, names: Any, least: int) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ParameterError(f"{what} must be a list of column names")
    listed = tuple(names)
    if not all(isinstance(name, str) for name in listed) or len(set(listed)) < len(listed) or len(listed) < least:
        raise ParameterError(f"{what} must be a list of at least {least} different column names")
    return listed
