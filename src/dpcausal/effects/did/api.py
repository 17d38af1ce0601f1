"""``did``: differences in differences for persons, each a whole path through the periods."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from dpcausal.core.method import Method, Run, SumsOverRows
from dpcausal.core.run import Task, public_task
from dpcausal.data.table import Table
from dpcausal.effects.clusters import shared
from dpcausal.effects.did.adjusted import AdjustedPaths
from dpcausal.effects.did.contrasts import LEAST_COUNT
from dpcausal.effects.did.doubly_robust import MOMENTS, SCORES, released_scores
from dpcausal.effects.did.question import DidQuestion
from dpcausal.effects.did.release import LEAST_RATIO, NoisyPaths
from dpcausal.effects.did.result import GroupTimeEffects
from dpcausal.effects.did.rounds import FIRST_TAIL, CohortSums, Rounds, deviation_of
from dpcausal.effects.moments import adaptive
from dpcausal.effects.moments.adaptive import HISTOGRAM, lines_radius, noise_of, tail_radius
from dpcausal.effects.question import CLUSTERED, independence_caveat
from dpcausal.errors import FenceError, InfeasibleError, LossError
from dpcausal.mechanisms.gate import book_exact
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, affordable_zcdp

SHAPING, CENTRES, LENGTHS = Fraction(1, 10), Fraction(1, 5), Fraction(1, 20)
"""Shares of ρ of the round that learns the shape of all steps, of that about each cohort's mean, and of how long rows
are in that; the last sums by cohort have what is left."""
LAST = 1 - HISTOGRAM - SHAPING - CENTRES - LENGTHS
MOST_WIDTH, LEAST_SIGNAL, SQUARES_SIGNAL = 10.0, 3.0, 8.0
"""Lines are learnt of cohorts so many times as large as the noise, squares count where they are so many times."""
LINEAR = (
    "right if changes without treatment are {} the covariates, or cohorts differ by odds that are exponential in them"
)

Paid = ApproxDP | ZCDP | NoPrivacy


@dataclass(frozen=True, kw_only=True)
class CohortQuery(SumsOverRows, Method[DidQuestion]):
    name: ClassVar[str] = "paths"
    about: ClassVar[str] = "noisy sums of paths by cohort"
    losses: ClassVar[tuple[type[Loss], ...]] = (ApproxDP, ZCDP)
    proofs: ClassVar[tuple[str, ...]] = ("scale-histograms", "ellipse-moments", "cohort-sums", "gaussian")
    needs_rows_in_memory: ClassVar[bool] = True

    squares: bool | None = None
    """Whether squares of numeric covariates count; ``None`` without covariates."""

    def proofs_of(self, question: DidQuestion, loss: Paid) -> tuple[str, ...]:
        return (*self.proofs, "group-layers") if question.table.spec.cluster else self.proofs

    def plan(self, question: DidQuestion, loss: Paid) -> CohortQuery:
        if loss.exact:
            return replace(self, squares=question.squares is not False) if question.adjust else self
        rho, _ = shared(affordable_zcdp(loss), question.table.spec.cluster is not None)
        d, n = len(question.design.times) - 1, question.table.n
        squares = bool(question.adjust and question.squares)
        if question.adjust and question.squares is None:
            squares = _suffices(question, rho, n, True, SQUARES_SIGNAL)
        columns = d + question.covariates(squares)
        try:
            for share in (HISTOGRAM, SHAPING):
                noise_of(columns, n, tail_radius(columns, FIRST_TAIL), rho.part(share))
            _deviation(question, tail_radius(columns, FIRST_TAIL), rho.part(CENTRES), n)
            _deviation(question, _radius(question, rho, n), rho.part(_last(question)), n)
        except FenceError:
            raise LossError(f"{loss} is too little for did: its noise could not be drawn") from None
        enough = n
        while not _suffices(question, rho, enough, squares):
            enough = math.ceil(enough * 1.1)
        if enough > n:
            raise InfeasibleError(
                f"{n} persons in {len(question.design.cohorts)} cohorts over {d + 1} periods at {loss} leave a cohort "
                f"in the noise, or intervals over {MOST_WIDTH:g} times as wide as without privacy: about {enough} "
                "persons would be enough, or a larger epsilon, fewer periods or fewer cohorts"
            )
        return replace(self, squares=squares) if question.adjust else self

    def caveats(self, question: DidQuestion, loss: Paid) -> tuple[str, ...]:
        two = len(question.design.times) == 2
        tested = "which no earlier period tests" if two else "which the test before it cannot show"
        given = ", given the covariates," if question.adjust else ""
        trends = f"right if cohorts would have moved alike{given} without treatment, {tested}"
        cluster = question.table.spec.cluster
        whose = independence_caveat(question.unit, True) if cluster is None else CLUSTERED.format(cluster)
        given = LINEAR.format("quadratic in" if self.squares else "linear in")
        return trends, *((given,) if question.adjust else ()), whose

    def release(self, run: Run[DidQuestion]) -> NoisyPaths:
        question, exact, cluster = run.question, run.loss.exact, run.question.table.spec.cluster
        if exact:
            book_exact("did", run.budget)
        steps, covariates, cohorts, rows = question.steps(bool(self.squares))
        rho, for_layers = (None, None) if exact else shared(affordable_zcdp(run.loss), cluster is not None)
        n = question.table.n
        rounds = Rounds(n, len(question.design.cohorts), cohorts, rows, run.budget, rho)
        if question.adjust:
            starts, control = question.design.starts, question.control
            sums, more = released_scores(rounds, steps, covariates, starts, control)
            adjusted: NoisyPaths = paths_of(question, sums, AdjustedPaths, control=control, **more)
            return adjusted
        shape = rounds.centred(rounds.shaped(steps, SHAPING), steps, CENTRES)
        radius = rounds.reach(shape, steps, _radius(question, rho, n) if rho else 1.0, LENGTHS, steps.shape[1])
        paths: NoisyPaths = paths_of(question, rounds.summed(shape, steps, radius, LAST))
        if cluster is None:
            return paths
        clusters = rounds.cluster_variances(paths, question.control, rounds.seen(shape, steps), for_layers)
        return replace(paths, cluster=cluster, control=question.control, clusters=clusters)


def paths_of(question: DidQuestion, sums: CohortSums, kind: Any = NoisyPaths, **more: Any) -> Any:
    shape, *others = sums
    return kind(
        question.names, question.table.n, question.design.times, question.design.cohorts, question.design.starts,
        question.bounds.width, shape.middle, shape.spread, *others, weighed=question.table.weighed, **more,
    )  # fmt: skip


def _last(question: DidQuestion) -> Fraction:
    return SCORES if question.adjust else LAST


def _radius(question: DidQuestion, rho: ZCDP, n: int) -> float:
    mu = math.sqrt(2 * rho.part(_last(question)).rho)
    radius = lines_radius if question.adjust else adaptive.paths_radius
    return radius(len(question.design.times) - 1, mu, n / len(question.design.cohorts))


def _deviation(question: DidQuestion, radius: float, loss: ZCDP, n: int) -> float:
    return deviation_of(len(question.design.cohorts), len(question.design.times) - 1, radius, loss, n)


def _suffices(question: DidQuestion, rho: ZCDP, n: int, squares: bool, signal: float = LEAST_SIGNAL) -> bool:
    size, radius = n / len(question.design.cohorts), _radius(question, rho, n)
    deviation = _deviation(question, radius, rho.part(_last(question)), n)
    if question.adjust:
        # Lines and weights are learnt, of moments that must exceed their noise.
        columns = len(question.design.times) - 1 + question.covariates(squares)
        longest = lines_radius(columns, math.sqrt(2 * rho.part(MOMENTS).rho), size)
        noise = _deviation(question, longest, rho.part(MOMENTS), n) * longest * math.sqrt(columns)
        if size < signal * noise:
            return False
    least = max(LEAST_COUNT, LEAST_RATIO * deviation * math.sqrt(2) / radius)
    return size >= least and 1 + deviation**2 / size <= MOST_WIDTH**2


@public_task
def did(
    table: Table, *, time: str, outcome: str, cohort: str, loss: Loss, control: str = "never", coverage: float = 0.95,
    never: Iterable[str | int | bool] | None = None, adjust: Iterable[str] | None = None, squares: bool | None = None,
    cluster: str | None = None, accept_large_epsilon: bool = False, refresh: bool = False,
) -> Task[GroupTimeEffects]:  # fmt: skip
    """Release differences in differences of persons: by cohort and period, the event study, the pre-trend test.

    Parameters
    ----------
    table : Table
        One row a person and period, made with ``person=``; its ledger pays, once.  Persons without a row in every
        period, or with two cohorts, are left out.  With ``weight=`` effects are those of the weighted persons; their
        intervals count weights as shares of the largest, which is never too narrow.
    time : str
        A column of levels, the periods: numbers, dates, months ("2001-03") or quarters ("2001Q2") are put in order of
        time; names have the declared order.
    outcome : str
        A bounded column.
    cohort : str
        A column of levels: when the person was first treated.  A number or date between two periods counts from the
        next one, after the last as never; before the second period persons are not compared.  One other level may mean
        never.  The answer names each such level.
    loss : Loss
        The most that the call may cost; ``ApproxDP`` or ``ZCDP``.
    control : str
        ``"never"``: against cohorts never treated; ``"not-yet"``: and those not treated yet.
    coverage : float
        Of the intervals, from 0.5 to 0.999.
    never : list of levels, optional
        Levels of ``cohort`` that mean never treated.  By default the one that is a word, as
        ``"never"``; name a number, as 0.
    cluster : str, optional
        A column that names each person's cluster, as of ``effect``, such as the state: the mean effect and the event
        study then have intervals by clusters, other answers none.
    adjust : list of str, optional
        Covariates, numbers or levels: cohorts are compared by doubly robust scores where trends are parallel given
        these.  A person's value in the first period counts.  ``control`` cannot be changed afterwards.
    squares : bool, optional
        Whether squares of numeric covariates count too, as trends may curve in them; by default where the number of
        persons and the loss are large enough.  The result's caveats say which.
    accept_large_epsilon, refresh : bool
        As of ``effect``.

    Returns
    -------
    GroupTimeEffects
        ``att``, ``event_study``, ``by_cohort``, ``pretrend``; ``release.did(control=...)`` is free.

    Notes
    -----
    *Guarantee*: the loss, under replace-one for every person with all rows; claims scale-histograms, ellipse-moments,
    cohort-sums, group-layers.  A person costs the same however many periods there are.
    *Source*: estimates of Callaway & Sant'Anna (2021); with covariates the improved doubly robust ones of Sant'Anna &
    Zhao (2020), as without privacy.  The sums are this library's.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcausal as dpc
    >>> from dpcausal.privacy.noise import generator_from_seed
    >>> person, year = np.divmod(np.arange(80_000), 4)
    >>> start = np.where(person % 2, 2, 9)
    >>> y = person % 7 + year + (year >= start) + generator_from_seed(1).normal(size=80_000)
    >>> schema = dpc.Schema({"year": dpc.Levels(range(4)), "start": dpc.Levels([2, 9]), "y": dpc.Bounded(-10, 20)})
    >>> frame = {"id": person, "year": year, "start": start, "y": y}
    >>> table = dpc.Table(frame, schema, dpc.Ledger.in_memory(dpc.ApproxDP(1, 1e-6), person="id"), person="id")
    >>> found = dpc.did(table, time="year", outcome="y", cohort="start", loss=dpc.ApproxDP(1, 1e-6))
    >>> abs(found.att.estimate - 1) < 0.3
    True
    """
    question = DidQuestion.of(table, time, outcome, cohort, control, coverage, never, adjust, cluster, squares)
    return question, CohortQuery()
