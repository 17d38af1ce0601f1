"""``discontinuity``: what happens at a cutoff of a running number, from noisy sums by public bins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.core import validate as public
from dpcausal.core.method import Method, PlannedCall, Run, SumsOverRows, TableQuestion
from dpcausal.core.run import Task, public_task
from dpcausal.data.columns import exact_number, has_dates
from dpcausal.data.recoded import as_levels, counting_event
from dpcausal.data.schema import Bounded, Column, Levels
from dpcausal.data.subgroups.predicate import check_varies, codes_within, range_within
from dpcausal.data.table import Table
from dpcausal.effects.cells.api import FINE, CellSums, Paid, cell_variance, histogram, is_clear, noisy_cells, window
from dpcausal.effects.cells.corner_counts import value_of
from dpcausal.effects.question import independence_caveat
from dpcausal.effects.rdd.lines import line_within, sides
from dpcausal.effects.rdd.release import NoisyBins, check_lines
from dpcausal.effects.rdd.result import Discontinuity
from dpcausal.errors import InfeasibleError, ParameterError, SchemaError, Setting
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP, Loss, PureDP

BINS, LEAST_BINS, MOST_BINS = 12, 5, 100
RANGE_SHARES = tuple(Fraction(part, 100) for part in range(2, 11, 2))
"""Shares of the loss of a histogram that shows how far from the cutoff records lie: the least that is clear."""
LEAST_STRENGTH = 20.0
"""How far lines on whole sides must exceed their noise if rows lie evenly: noise then moves the jump, at the
widest bandwidth, by a twentieth of the outcome's range or less."""

SHARP = "right if nothing else that moves the outcome changes at the cutoff, and nobody could choose a side"
FUZZY = "the effect on those whom the cutoff moves, if it moves the outcome through the treatment alone"
EVEN = "records count as lying evenly within a bin: a running number of few values is declared as Levels"


@dataclass(frozen=True)
class RddQuestion(TableQuestion[Discontinuity]):
    task: ClassVar[str] = "discontinuity"

    running: str
    outcome: str
    cutoff: float
    treatment: str | None
    bins: int
    bandwidth: float | None
    curvature: float | None
    coverage: float
    at_cutoff: str | None

    @classmethod
    def of(
        cls, table: Any, running: Any, outcome: Any, cutoff: Any, treatment: Any, bins: Any, bandwidth: Any,
        curvature: Any, coverage: Any, at_cutoff: Any = "right", event: Any = None,
    ) -> RddQuestion:  # fmt: skip
        public.check_table(table, persons=True, weights=True)
        if table.missing != "drop":
            raise ParameterError(
                "discontinuity leaves out what is missing", argument="table", rule="missing",
                hint=("make the table with ", Setting("missing", "drop")),
            )  # fmt: skip
        named = (running, outcome, *(() if treatment is None else (treatment,)))
        number, summed, *arms = (public.column(table, name, "a discontinuity") for name in named)
        if len(set(named)) < len(named):
            raise ParameterError("running, outcome and treatment must be different columns")
        table = counting_event(table, outcome, event)
        value_of(outcome, summed)
        for name in named[1:]:
            check_varies(table.inside, name, table.schema.column(name))
        if treatment is not None:
            table = as_levels(table, treatment)
            arms = [table.schema.column(treatment)]
        if arms and not (isinstance(arms[0], Levels) and len(arms[0]) == 2):
            raise SchemaError("the treatment must be declared with two levels: untreated, treated")
        number_of_bins = public.whole("bins", bins, LEAST_BINS, MOST_BINS)
        lower, upper = _ends(running, number)
        written = exact_number
        if isinstance(number, Bounded):
            cutoff, written = number.number(cutoff), number.written
        if not public.is_number(cutoff) or not lower < cutoff < upper:
            ends = f"{written(lower)} and {written(upper)}"
            raise ParameterError(f"cutoff must lie between {ends}, the ends of {running!r}")
        near, bent = check_lines(bandwidth, upper - lower, curvature)
        question = cls(
            table, running, outcome, float(cutoff), treatment, number_of_bins, near, bent,
            public.number("coverage", coverage, 0.5, 0.999),
            None if public.check_choice("at_cutoff", at_cutoff, ("right", "left")) == "right" else "left",
        )  # fmt: skip
        starts = question.edges_within(question.ends)[0]
        left = int((starts < question.border).sum())
        if min(left, len(starts) - left) < LEAST_BINS:
            raise ParameterError(f"there must be {LEAST_BINS} values of {running!r} on each side of the cutoff")
        question._check_sides(number)
        return question

    def _check_sides(self, column: Column) -> None:
        inside, few = self.table.inside, False
        if isinstance(column, Levels):
            codes = codes_within(inside, self.running, len(column))
            left = sum(float(column.labels[code]) < self.border for code in codes)
            few = min(left, len(codes) - left) < LEAST_BINS
        else:
            low, high = range_within(inside, self.running, column)
            few = not low < self.border < high
        if few:
            raise ParameterError(
                f"the subgroup leaves too few values of {self.running!r} on one side of the cutoff: there is nothing "
                "to compare"
            )

    @property
    def border(self) -> float:
        """The least number on the right side: the cutoff, or the next one where that counts left."""
        return self.cutoff if self.at_cutoff is None else math.nextafter(self.cutoff, math.inf)

    @property
    def outcomes(self) -> tuple[str, ...]:
        return (self.outcome,)

    @property
    def related(self) -> tuple[str, ...]:
        return (self.outcome, *(() if self.treatment is None else (self.treatment,)))

    @property
    def caveats(self) -> tuple[str, ...]:
        side = "right" if self.at_cutoff is None else "left"
        return (f"records at the cutoff itself count to the {side}", *super().caveats)

    @property
    def ends(self) -> tuple[float, float]:
        return _ends(self.running, self.column(self.running))

    def edges_within(self, ends: tuple[float, float]) -> tuple[Reals, Reals]:
        """Return lower and upper ends of the bins between two ends: the values themselves of a column of levels."""
        column = self.column(self.running)
        if isinstance(column, Levels):
            values = np.array(column.labels, dtype=np.float64)
            return values, values
        # Fine next to the cutoff and wider away from it: any bandwidth has a like number of them.
        steps = (np.arange(1, self.bins) / self.bins) ** 2
        left = self.border - (self.border - ends[0]) * steps[::-1]
        right = self.border + (ends[1] - self.border) * steps
        inner = np.array([ends[0], *left, self.border, *right, ends[1]])
        return inner[:-1], inner[1:]

    def sums_within(self, ends: tuple[float, float]) -> CellSums:
        """Return the sums by arms and bins between two ends, and of what lies beyond an end that is no bound."""
        column = self.column(self.running)
        finer: tuple[tuple[str, Bounded], ...] = ()
        if isinstance(column, Bounded):
            lower, upper = self.edges_within(ends)
            cuts = [end for end in (*lower.tolist(), float(upper[-1])) if column.lower < end < column.upper]
            finer = ((self.running, Bounded(column.lower, column.upper, cuts)),)
        by = (*(() if self.treatment is None else (self.treatment,)), self.running)
        return CellSums.of(self.table, by, (self.outcome,), finer)

    def detail(self) -> dict[str, Any]:
        return {
            "running": self.running, "outcome": self.outcome, "treatment": self.treatment, "cutoff": self.cutoff,
            **self.table.declared,
        }  # fmt: skip

    def report(
        self, planned: PlannedCall[Any], released: NoisyBins, allotment: CallBudget, seed: int | None
    ) -> Discontinuity:
        return released.under(self.guarantee(planned, allotment)).discontinuity(
            bandwidth=self.bandwidth, curvature=self.curvature, coverage=self.coverage
        )


@dataclass(frozen=True, kw_only=True)
class BinQuery(SumsOverRows, Method[RddQuestion]):
    name: ClassVar[str] = "bins"
    about: ClassVar[str] = "noisy sums by bins"
    losses: ClassVar[tuple[type[Loss], ...]] = (PureDP, ZCDP)
    proofs: ClassVar[tuple[str, ...]] = ("corner-counts",)

    def plan(self, question: RddQuestion, loss: Paid) -> BinQuery:
        variance = cell_variance(1, loss)
        strength = _predicted_strength(question, variance)
        if strength < LEAST_STRENGTH:
            n, more = question.table.n, LEAST_STRENGTH / strength
            raise InfeasibleError(
                f"{n} rows at {loss} predict lines at {strength:.2g} times their noise, of {LEAST_STRENGTH:g} needed: "
                f"about {math.ceil(n * more)} rows would be enough, or {more:.2g} times the epsilon, or fewer bins"
            )
        return self

    def caveats(self, question: RddQuestion, loss: Paid) -> tuple[str, ...]:
        even = (EVEN,) if isinstance(question.column(question.running), Bounded) else ()
        return SHARP if question.treatment is None else FUZZY, *even, independence_caveat(question.unit)

    def release(self, run: Run[RddQuestion]) -> NoisyBins:
        question = run.question
        ends, rest = _occupied(question, run.loss, run.budget)
        cells, (lower, upper) = noisy_cells(question.sums_within(ends), rest, run.budget), question.edges_within(ends)
        beyond = int(question.ends[0] < lower[0])
        counts = cells.counts if question.treatment is not None else cells.counts[None]
        counts = counts[:, beyond : beyond + len(lower)]
        names = (question.running, *question.related)
        arms = () if question.treatment is None else cells.levels[0]
        return NoisyBins(
            names, cells.n, question.border, lower, upper, cells.values[0], counts, cells.variance,
            question.at_cutoff or "right", arms, has_dates(question.column(question.running)),
        )  # fmt: skip


def _ends(running: str, column: Column) -> tuple[float, float]:
    if isinstance(column, Bounded):
        return column.lower, column.upper
    labels = column.labels
    numbers = column.other is None and all(public.is_number(label) for label in labels)
    if not numbers or list(labels) != sorted(labels):
        raise SchemaError(f"{running!r} must have bounds, or levels that are numbers in order, and no other level")
    return float(labels[0]), float(labels[-1])


def _occupied(question: RddQuestion, loss: Paid, allotment: CallBudget) -> tuple[tuple[float, float], Paid]:
    column = question.column(question.running)
    range_share = next((share for share in RANGE_SHARES if is_clear(question.n / 2, loss.part(share))), None)
    if not isinstance(column, Bounded) or range_share is None:
        return question.ends, loss
    sides, steps = (question.border - column.lower, column.upper - question.border), np.arange(1, FINE) / FINE
    cuts = [*(question.border - sides[0] * steps[::-1]), question.border, *(question.border + sides[1] * steps)]
    if not (np.diff([column.lower, *cuts, column.upper]) > 0).all():
        return question.ends, loss
    fine = Bounded(column.lower, column.upper, cuts)
    counts, noise = histogram(question.table, question.running, fine, loss.part(range_share), allotment)
    far = [window(side, noise, from_first=True)[1] / FINE for side in (counts[:FINE][::-1], counts[FINE:])]
    # An end that the bins would round to the cutoff, or to the bound, stays the bound.
    ends = question.border - sides[0] * far[0], question.border + sides[1] * far[1]
    ends = (column.lower if far[0] == 1 else ends[0], column.upper if far[1] == 1 else ends[1])
    lower, upper = question.edges_within(ends)
    is_distinct = bool((lower < upper).all())  # floats may not separate the ends of so narrow bins
    return ends if is_distinct else question.ends, loss.part(1 - range_share)


def _predicted_strength(question: RddQuestion, variance: float) -> float:
    """Return by how many times lines on whole sides would exceed their noise if rows were spread evenly: public."""
    if variance == 0:
        return math.inf
    lower, upper = question.edges_within(question.ends)
    span = upper - lower if (upper > lower).all() else np.ones(len(lower))
    arms = 1 if question.treatment is None else 2
    sums = np.zeros((arms, len(lower), 3))
    sums[0, :, 0] = question.table.n * span / span.sum()
    degree = value_of(question.outcome, question.column(question.outcome)).degree
    strengths = []
    for side in sides(lower, upper, sums, question.border, 0.0, variance, degree):
        line = line_within(side, float(side.far.max()) * 1.0001, least=0.0)
        strengths.append(0.0 if line is None else line.strength)
    return max(min(strengths), 1e-12)


@public_task
def discontinuity(
    table: Table, *, running: str, outcome: str, cutoff: float, loss: Loss, treatment: str | None = None,
    bins: int = BINS, bandwidth: float | None = None, curvature: float | None = None, coverage: float = 0.95,
    at_cutoff: str = "right", event: str | int | bool | None = None,
    accept_large_epsilon: bool = False, refresh: bool = False,
) -> Task[Discontinuity]:  # fmt: skip
    """Release by how much an outcome jumps at a cutoff of a running number (regression discontinuity).

    Parameters
    ----------
    table : Table
        Its ledger pays, once.  Rows that have a missing value are left out.
    running : str
        The number that decides: bounded, or levels that are numbers in order where it takes few values.
    outcome : str
        A bounded column, or one of two levels.
    cutoff : float
        In the running number's unit.
    loss : Loss
        The most that the call may cost; ``PureDP`` (geometric noise) or ``ZCDP`` (Gaussian).
    treatment : str, optional
        A column of two levels, the second treated, where the cutoff moves who is treated without deciding it.
    bins : int
        On each side, 5 to 100: the j-th ends at the share (j/bins)² of the side.  A small part of the loss shows how
        far from the cutoff records lie, and a side ends there.  Levels have their own bins.
    bandwidth, curvature : float, optional
        How far records count, and how large the second derivative of the mean outcome is at most on either side, in the
        outcome's unit over that of the running number squared.  Both public; free to ask again otherwise.
    coverage : float
        Of the interval, from 0.5 to 0.999.
    at_cutoff : str
        The side on which records at the cutoff itself count: ``"right"``, with those above, or ``"left"``, with those
        below, as where who has up to so many points is treated.
    event : level, optional
        Of an outcome of two levels the one whose frequency is compared; by default the last.
    accept_large_epsilon, refresh : bool
        As of ``effect``.

    Returns
    -------
    Discontinuity
        ``estimate``, ``interval``, ``density``; ``release.discontinuity(bandwidth=..., curvature=...)`` is free.

    Raises
    ------
    InfeasibleError
        Noise would hide the lines: says how many rows would be enough; nothing was spent.

    Notes
    -----
    *Guarantee*: the loss, under replace-one for every row, or person; claim corner-counts.  Bandwidth, curvature and
    the test of bunching are read off the noisy bins.
    *Source*: intervals of Armstrong & Kolesár (2020), the noise counted; the sums are this library's.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcausal as dpc
    >>> from dpcausal.privacy.noise import generator_from_seed
    >>> rng = generator_from_seed(1)
    >>> income = 100 * rng.random(20_000)
    >>> score = 30 + 0.2 * income - 5 * (income >= 40) + 4 * rng.normal(size=20_000)
    >>> schema = dpc.Schema({"income": dpc.Bounded(0, 100), "score": dpc.Bounded(0, 80)})
    >>> table = dpc.Table({"income": income, "score": score}, schema, dpc.Ledger.in_memory(dpc.PureDP(1)))
    >>> found = dpc.discontinuity(table, running="income", outcome="score", cutoff=40, loss=dpc.PureDP(1))
    >>> abs(found.estimate + 5) < 4, found.interval[1] > found.interval[0]
    (True, True)
    """
    question = RddQuestion.of(
        table, running, outcome, cutoff, treatment, bins, bandwidth, curvature, coverage, at_cutoff, event
    )
    return question, BinQuery()
