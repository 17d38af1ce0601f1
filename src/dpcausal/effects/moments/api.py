"""``moments``: noisy first and second moments of columns of numbers, whose regressions are then free."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dpcausal.core import validate as public
from dpcausal.core.method import Method, PlannedCall, Run, SumsOverRows, TableQuestion
from dpcausal.core.run import Task, public_task
from dpcausal.data.records import Rows
from dpcausal.data.schema import Bounded, Levels
from dpcausal.data.subgroups.predicate import check_varies
from dpcausal.data.table import Table
from dpcausal.effects.cells.effect import checked_names
from dpcausal.effects.moments.adaptive import (
    HISTOGRAM,
    LAST,
    SHAPING,
    StreamedRows,
    adaptive_moments,
    last_radius,
    noise_of,
    tail_radius,
    undetectable_tail,
)
from dpcausal.effects.moments.regression import forecast
from dpcausal.effects.moments.release import JointMoments
from dpcausal.effects.moments.sandwich import SANDWICH_SHARE, release_sandwich, rows_for_step, sandwich_noise
from dpcausal.errors import FenceError, InfeasibleError, LossError, ParameterError, SchemaError
from dpcausal.mechanisms.gate import book_exact
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, affordable_zcdp

MOST_COLUMNS = 40
LEAST_ROWS = 20
MOST_WIDTH = 10.0
"""Refused where the intervals would be so many times as wide as without privacy."""

Paid = ApproxDP | ZCDP | NoPrivacy


@dataclass(frozen=True)
class JointSums(TableQuestion[JointMoments]):
    """The first and second moments of some columns."""

    task: ClassVar[str] = "moments"

    names: tuple[str, ...]
    robust_for: tuple[str, tuple[str, ...]] | None = None
    """The regression whose spread about its line is released, too: outcome and regressors."""

    @classmethod
    def of(cls, table: Table, columns: Any, robust_for: Any) -> JointSums:
        """Return the question of checked arguments."""
        public.check_table(table, persons=True, weights=True)
        if isinstance(columns, str) or not isinstance(columns, Iterable):
            raise ParameterError("columns must be a list of column names")
        names = tuple(columns)
        for name in names:
            declared = public.column(table, name, "a regression")
            if not isinstance(declared, Bounded) and len(declared) != 2:
                raise SchemaError(f"column {name!r}: moments need Bounded columns or columns of two levels")
            check_varies(table.inside, name, declared)
        if len(set(names)) < len(names) or not 2 <= len(names) <= MOST_COLUMNS:
            raise ParameterError(f"moments need 2 to {MOST_COLUMNS} different columns, got {len(names)}")
        if table.n < LEAST_ROWS:
            raise ParameterError(f"moments need at least {LEAST_ROWS} rows, the table has {table.n}")
        if robust_for is not None:
            if not isinstance(robust_for, tuple) or len(robust_for) != 2:
                raise ParameterError("robust_for must be an outcome and a list of regressors")
            (outcome,), on = (
                checked_names("robust_for", [robust_for[0]], names),
                checked_names("robust_for", robust_for[1], names),
            )
            if not on or outcome in on:
                raise ParameterError("robust_for must be an outcome and at least one other column")
            robust_for = outcome, on
        return cls(table, names, robust_for)

    @property
    def outcomes(self) -> tuple[str, ...]:
        return self.names

    @property
    def levels(self) -> tuple[tuple[str, str, str], ...]:
        """Each column of two levels with its reference, which counts 0, and the level that counts 1."""
        named = ((name, self.column(name)) for name in self.names)
        return tuple((name, str(one.labels[0]), str(one.labels[1])) for name, one in named if isinstance(one, Levels))

    def parts(self, loss: ZCDP) -> tuple[ZCDP, ZCDP | None]:
        """Return what the moments have of a loss, and of the robust errors."""
        return (loss, None) if self.robust_for is None else (loss.part(1 - SANDWICH_SHARE), loss.part(SANDWICH_SHARE))

    def ranges(self) -> tuple[Any, Any]:
        """Return the middle and half the width of each column's range; two levels are 0 and 1."""
        columns = [self.table.schema.column(name) for name in self.names]
        bounds = [(one.midpoint, one.width / 2) if isinstance(one, Bounded) else (0.5, 0.5) for one in columns]
        middles, halves = np.array(bounds).T
        return middles, halves

    def detail(self) -> dict[str, Any]:
        robust_for = None if self.robust_for is None else [self.robust_for[0], *self.robust_for[1]]
        return {"columns": list(self.names), "robust_for": robust_for, **self.table.declared}

    def report(
        self, planned: PlannedCall[Any], released: JointMoments, allotment: CallBudget, seed: int | None
    ) -> JointMoments:
        return released.under(self.guarantee(planned, allotment))


@dataclass(frozen=True, kw_only=True)
class MomentQuery(SumsOverRows, Method[JointSums]):
    """Noisy moments in the shape that rounds before it have learnt."""

    name: ClassVar[str] = "moments"
    about: ClassVar[str] = "noisy moments in a learnt shape"
    losses: ClassVar[tuple[type[Loss], ...]] = (ApproxDP, ZCDP)
    proofs: ClassVar[tuple[str, ...]] = ("scale-histograms", "ellipse-moments", "gaussian")

    def plan(self, question: JointSums, loss: Paid) -> MomentQuery:
        if not isinstance(loss, NoPrivacy):
            regressors = 0 if question.robust_for is None else len(question.robust_for[1])
            parts = question.parts(affordable_zcdp(loss))
            check_rounds(len(question.names), question.table.n, loss, *parts, regressors + 1)
        return self

    def caveats(self, question: JointSums, loss: Paid) -> tuple[str, ...]:
        if loss.exact:
            return ()
        rho, own = question.parts(affordable_zcdp(loss))
        wide = times_as_wide(len(question.names), question.table.n, rho)
        width = f"public numbers predict intervals {wide:.2g} times as wide as without privacy"
        caveats = [width] if wide > 1.5 else []
        if own is not None and (enough := rows_for_step(own)) > question.table.n:
            caveats.append(
                "the regression whose spread is released has intervals for errors said to be symmetric, or of one "
                f"distribution, alone: from about {enough:,} rows on it has them whatever the skew"
            )
        return tuple(caveats)

    def release(self, run: Run[JointSums]) -> JointMoments:
        question, names, ranges, n = run.question, run.question.names, run.question.ranges(), run.question.n
        units = _Units(names, *ranges)
        if run.loss.exact:
            book_exact("moments", run.budget)
            rows = question.table.parts(names)
            unit, own = units(rows), run.loss
            summed = StreamedRows.held(unit, rows)
            moments = JointMoments.without_noise(names, n, ranges, unit, rows)
        else:
            summed = StreamedRows.of(question.table, names, units)
            rho, own = question.parts(affordable_zcdp(run.loss))
            rounds = adaptive_moments(summed, len(names), n, run.budget, rho, undetectable_tail(len(names), n, rho))
            moments = JointMoments.of_rounds(names, n, ranges, rounds)
        moments = replace(moments, levels=question.levels)
        if question.robust_for is None or own is None:
            return moments
        return replace(moments, sandwich=release_sandwich(moments, question.robust_for, summed, run.budget, own))


@dataclass(frozen=True)
class _Units:
    """The rows of columns on [−1, 1]."""

    names: tuple[str, ...]
    middles: Any
    halves: Any

    def __call__(self, rows: Rows) -> Any:
        unit = np.stack([rows.values[name].astype(np.float64) for name in self.names], axis=1)
        return np.clip((unit - self.middles) / self.halves, -1.0, 1.0)


def check_rounds(d: int, n: int, loss: ApproxDP | ZCDP, rho: ZCDP, own: ZCDP | None, terms: int) -> None:
    """Refuse, by public numbers, moments of d columns whose noise cannot be drawn, or makes intervals far too wide.

    ``own`` is what the spread about a line of that many ``terms`` has, if it is released.
    """
    try:
        for share in (HISTOGRAM, *SHAPING, LAST):
            noise_of(d, n, tail_radius(d, 0.3), rho.part(share))
        if own is not None:
            sandwich_noise(terms, n, own)
    except FenceError:
        raise LossError(f"{loss} is too little for moments: their noise could not be drawn") from None
    wide = times_as_wide(d, n, rho)
    if wide > MOST_WIDTH:
        enough = n
        while times_as_wide(d, enough, rho) > MOST_WIDTH:
            enough = math.ceil(enough * 1.1)
        raise InfeasibleError(
            f"{n} rows at {loss} make intervals {wide:.3g} times as wide as without privacy: about {enough} "
            f"rows would be enough, or {wide / MOST_WIDTH:.2g} times the epsilon, or fewer columns"
        )


def times_as_wide(columns: int, n: int, rho: ZCDP) -> float:
    """Return how many times as wide as without privacy intervals of slopes will be: public."""
    radius = last_radius(columns, n, rho, undetectable_tail(columns, n, rho))
    return forecast(columns, n, radius, math.sqrt(2 * rho.part(LAST).rho))


@public_task
def moments(
    table: Table, columns: Iterable[str], *, loss: Loss, robust_for: tuple[str, Iterable[str]] | None = None,
    accept_large_epsilon: bool = False, refresh: bool = False,
) -> Task[JointMoments]:  # fmt: skip
    """Release first and second moments of columns of numbers, to be asked for regressions again and again.

    Parameters
    ----------
    table : Table
        At least 20 rows; the table's ledger pays, once.
    columns : list of str
        2 to 40 bounded columns, or columns of two levels (0 and 1): outcome, treatment, what is adjusted for.  Products
        of columns are columns of their own.
    loss : Loss
        The most that the call may cost; ``ApproxDP`` or ``ZCDP``.
    robust_for : (str, list of str), optional
        One regression, outcome and regressors, whose spread about its line is released, too, for three tenths of the
        loss: ``ols`` of it then has intervals that are right where the spread goes with the regressors, of many rows
        whatever the skew, of fewer where errors are said to be symmetric.
    accept_large_epsilon : bool
        Consent to ε above 20.
    refresh : bool
        Of a table with a name: run again at a new privacy cost instead of returning the cached result.

    Returns
    -------
    JointMoments
        ``ols``, ``iv``, ``partial``, ``mediation`` and ``sensitivity`` of it are free; ``to_json()`` saves it.

    Notes
    -----
    *Guarantee*: the loss, under replace-one for every row, or person; claims scale-histograms and
    ellipse-moments.  Rounds learn where the rows lie and in what shape, so that wide bounds cost little; rows are
    shortened to a public length there.
    *Source*: the rounds follow the idea of CoinPress (Biswas, Dong, Kamath & Ullman 2020).

    Examples
    --------
    >>> import dpcausal as dpc
    >>> from dpcausal.privacy.noise import generator_from_seed
    >>> x, e = generator_from_seed(1).normal(size=(2, 20_000))
    >>> schema = dpc.Schema({"y": dpc.Bounded(-50, 50), "x": dpc.Bounded(-10, 10)})
    >>> table = dpc.Table({"y": 3 * x + e, "x": x}, schema, dpc.Ledger.in_memory(dpc.ApproxDP(1, 1e-6)))
    >>> fit = dpc.moments(table, ["y", "x"], loss=dpc.ApproxDP(1, 1e-6)).ols("y", ["x"], errors="homoscedastic")
    >>> abs(fit["x"].estimate - 3) < 0.1
    True
    """
    question = JointSums.of(table, columns, robust_for)
    return question, MomentQuery()
