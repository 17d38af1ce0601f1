"""``did``: differences in differences for persons, each a whole path through the periods."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpcausal.core.method import Method, Run, SumsOverRows
from dpcausal.core.run import Task, public_task
from dpcausal.data.records import Rows
from dpcausal.data.table import Table
from dpcausal.effects.clusters import shared
from dpcausal.effects.did.clusters import with_clusters
from dpcausal.effects.did.contrasts import LEAST_COUNT
from dpcausal.effects.did.question import DidQuestion
from dpcausal.effects.did.release import (
    LEAST_RATIO,
    NoisyPaths,
    cohort_bits,
    cohort_sums,
    cohort_sums_sensitivity,
    factors,
)
from dpcausal.effects.did.result import GroupTimeEffects
from dpcausal.effects.moments import adaptive
from dpcausal.effects.moments.adaptive import (
    HISTOGRAM,
    SCALES,
    WHOLE,
    Shape,
    noise_of,
    scale_histograms,
    scale_histograms_sensitivity,
    tail_radius,
    whitened,
)
from dpcausal.effects.question import CLUSTERED, independence_caveat
from dpcausal.errors import FenceError, InfeasibleError, LossError
from dpcausal.mechanisms.additive import gaussian, gaussian_scale
from dpcausal.mechanisms.gate import book_exact
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, affordable_zcdp
from dpcausal.privacy.sensitivity import Query
from dpcausal.statistics.moments import unpacked_matrix

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SHAPING, CENTRES, LENGTHS = Fraction(1, 10), Fraction(1, 5), Fraction(1, 20)
"""Shares of ρ of the round that learns the shape of all steps, of that about each cohort's mean, and of how long rows
are in that; the last sums by cohort have what is left."""
LAST = 1 - HISTOGRAM - SHAPING - CENTRES - LENGTHS
FIRST_TAIL = 0.3
LONGER, CLEAR = 1.5, 4.0
"""Rows of a length count as more than normal ones where they are so many times as many, and more by so many deviations
of the noise: by chance alone in one of 600 calls."""
MOST_WIDTH = 10.0

Paid = ApproxDP | ZCDP | NoPrivacy


@dataclass(frozen=True, kw_only=True)
class CohortQuery(SumsOverRows, Method[DidQuestion]):
    name: ClassVar[str] = "paths"
    about: ClassVar[str] = "noisy sums of paths by cohort"
    losses: ClassVar[tuple[type[Loss], ...]] = (ApproxDP, ZCDP)
    proofs: ClassVar[tuple[str, ...]] = ("scale-histograms", "ellipse-moments", "cohort-sums", "gaussian")
    needs_rows_in_memory: ClassVar[bool] = True

    def proofs_of(self, question: DidQuestion, loss: Paid) -> tuple[str, ...]:
        return (*self.proofs, "group-layers") if question.table.spec.cluster else self.proofs

    def plan(self, question: DidQuestion, loss: Paid) -> CohortQuery:
        if loss.exact:
            return self
        rho, _ = shared(affordable_zcdp(loss), question.table.spec.cluster is not None)
        d, n = len(question.design.times) - 1, question.table.n
        try:
            for share in (HISTOGRAM, SHAPING):
                noise_of(d, n, tail_radius(d, FIRST_TAIL), rho.part(share))
            _deviation(question, tail_radius(d, FIRST_TAIL), rho.part(CENTRES), n)
            _deviation(question, _radius(question, rho, n), rho.part(LAST), n)
        except FenceError:
            raise LossError(f"{loss} is too little for did: its noise could not be drawn") from None
        enough = n
        while not _suffices(question, rho, enough):
            enough = math.ceil(enough * 1.1)
        if enough > n:
            raise InfeasibleError(
                f"{n} persons in {len(question.design.cohorts)} cohorts over {d + 1} periods at {loss} leave a cohort "
                f"in the noise, or intervals over {MOST_WIDTH:g} times as wide as without privacy: about {enough} "
                "persons would be enough, or a larger epsilon, fewer periods or fewer cohorts"
            )
        return self

    def caveats(self, question: DidQuestion, loss: Paid) -> tuple[str, ...]:
        two = len(question.design.times) == 2
        tested = "which no earlier period tests" if two else "which the test before it cannot show"
        trends = f"right if cohorts would have moved alike without treatment, {tested}"
        cluster = question.table.spec.cluster
        return trends, independence_caveat(question.unit, True) if cluster is None else CLUSTERED.format(cluster)

    def release(self, run: Run[DidQuestion]) -> NoisyPaths:
        if run.loss.exact:
            return self._without_noise(run)
        question, allotment = run.question, run.budget
        steps, cohorts, rows = question.steps()
        cluster, d, n = question.table.spec.cluster, steps.shape[1], question.table.n
        rho, for_layers = shared(affordable_zcdp(run.loss), cluster is not None)
        held = adaptive.StreamedRows.held(steps, rows)
        shape = adaptive.estimate_location_scale(held, d, n, allotment, rho, (SHAPING,))
        shape = Shape(np.tile(shape.middle, (len(question.design.cohorts), 1)), shape.spread)
        first = _summed(question, shape, steps, cohorts, rows, tail_radius(d, FIRST_TAIL), allotment, rho.part(CENTRES))
        shape = _about(first)
        seen, least = _seen(shape, steps, cohorts), _radius(question, rho, n)
        radius = _reach(shape, seen, rows, least, allotment, rho.part(LENGTHS))
        paths = _summed(question, shape, steps, cohorts, rows, radius, allotment, rho.part(LAST))
        if cluster is None:
            return paths
        return with_clusters(paths, cluster, question.control, seen, cohorts, rows, for_layers, allotment)

    def _without_noise(self, run: Run[DidQuestion]) -> NoisyPaths:
        question = run.question
        book_exact("did", run.budget)
        steps, cohorts, rows = question.steps()
        d, number = steps.shape[1], len(question.design.cohorts)
        masses = rows.included * (np.ones(len(steps)) if rows.weights is None else rows.weights)
        parts = [(steps[cohorts == cohort], masses[cohorts == cohort]) for cohort in range(number)]
        paths = _paths(
            question, Shape(np.zeros((number, d)), np.eye(d)), np.array([float(mass.sum()) for _, mass in parts]),
            np.stack([mass @ one for one, mass in parts]), np.stack([(one.T * mass) @ one for one, mass in parts]),
            0.0, 2 * math.sqrt(d), 0.0,
        )  # fmt: skip
        cluster = question.table.spec.cluster
        if cluster is None:
            return paths
        return with_clusters(paths, cluster, question.control, steps, cohorts, rows, None, run.budget)


def _summed(
    question: DidQuestion, shape: Shape, steps: Reals, cohorts: Integers, rows: Rows, radius: float,
    allotment: CallBudget, loss: ZCDP,
) -> NoisyPaths:  # fmt: skip
    n, d, number = question.table.n, steps.shape[1], len(question.design.cohorts)
    bits = cohort_bits(n, radius)
    seen = _seen(shape, steps, cohorts)
    claim = cohort_sums_sensitivity(number, d, radius, bits)
    sums = cohort_sums(cohorts, number, seen, rows.included, radius, bits, rows.weights)
    noisy = np.asarray(gaussian(Query(sums, claim, "sums of paths by cohort"), allotment, loss), dtype=np.float64)
    count, square = factors(radius, bits)
    by_cohort = noisy[:-1].reshape(number, -1)
    squares = np.stack([unpacked_matrix(row, d) for row in by_cohort[:, 1 + d :]]) / square * 4.0**-bits
    return _paths(
        question, shape, by_cohort[:, 0] / count, by_cohort[:, 1 : 1 + d] * 2.0**-bits, squares,
        float(noisy[-1]) * 2.0**-bits * 2 / radius, radius, _deviation(question, radius, loss, n),
    )  # fmt: skip


def _seen(shape: Shape, steps: Reals, cohorts: npt.NDArray[np.int64]) -> Reals:
    inverse = np.asarray(np.linalg.inv(shape.spread), dtype=np.float64)
    return whitened(steps - shape.middle[cohorts], np.zeros(steps.shape[1]), inverse)


def _reach(shape: Shape, seen: Reals, rows: Rows, least: float, allotment: CallBudget, loss: ZCDP) -> float:
    """Return the length to shorten to: at least so much, and the longest that more rows have than of normal ones.

    A noisy histogram of lengths shows it, in steps of √2: long tails cost noise and not the answer.
    """
    from scipy.special import chdtrc

    d = seen.shape[1]
    beyond = 2 * math.sqrt(d) * float(np.linalg.norm(np.linalg.inv(shape.spread), 2)) / least
    top = math.ldexp(least, max(math.ceil(math.log2(beyond)), 0))
    squared = np.zeros(len(seen))
    for column in seen.T:
        squared += column * column
    claim = scale_histograms_sensitivity(1)
    counts = scale_histograms(np.minimum(np.sqrt(squared) / top, 1.0)[:, None], rows.masses(WHOLE))
    noisy = np.asarray(gaussian(Query(counts, claim, "lengths"), allotment, loss), dtype=np.float64)[0] / WHOLE
    edges = top * 2.0 ** (-np.arange(SCALES + 1) / 2)
    edges[-1] = 0.0
    normal = max(float(noisy.sum()), 0.0) * np.diff(chdtrc(d, edges**2))
    noise = CLEAR * gaussian_scale(float(claim.bound), loss) / WHOLE
    full = np.flatnonzero(noisy > LONGER * normal + noise)
    return max(least, float(edges[full[0]])) if full.size else least


def _about(paths: NoisyPaths) -> Shape:
    d, number = len(paths.spread), len(paths.counts)
    # A cohort in the noise stays near the middle that it had: its mean is shrunk, not drawn.
    counts = np.maximum(paths.counts, 2 * paths.deviation)
    means = np.clip(paths.sums / counts[:, None], -paths.radius, paths.radius)
    total = max(float(paths.counts.sum()), float(counts.max()))
    within = (paths.squares - counts[:, None, None] * means[:, :, None] * means[:, None, :]).sum(axis=0)
    least = paths.deviation * paths.radius * math.sqrt(number * d) / total
    eigenvalues, vectors = np.linalg.eigh(within / total / adaptive.shrinkage(d, paths.radius))
    root = (vectors * np.sqrt(np.maximum(eigenvalues, least))) @ vectors.T
    return Shape(paths.middle + means @ paths.spread.T, paths.spread @ root)


def _paths(
    question: DidQuestion, shape: Shape, counts: Reals, sums: Reals, squares: Reals, lost: float, radius: float,
    deviation: float,
) -> NoisyPaths:  # fmt: skip
    return NoisyPaths(
        question.names, question.table.n, question.design.times, question.design.cohorts, question.design.starts,
        question.bounds.width, shape.middle, shape.spread, counts, sums, squares, lost, radius, deviation,
    )  # fmt: skip


def _radius(question: DidQuestion, rho: ZCDP, n: int) -> float:
    mu = math.sqrt(2 * rho.part(LAST).rho)
    return adaptive.paths_radius(len(question.design.times) - 1, mu, n / len(question.design.cohorts))


def _deviation(question: DidQuestion, radius: float, loss: ZCDP, n: int) -> float:
    bits = cohort_bits(n, radius)
    claim = cohort_sums_sensitivity(len(question.design.cohorts), len(question.design.times) - 1, radius, bits)
    return gaussian_scale(float(claim.bound), loss) * 2.0**-bits


def _suffices(question: DidQuestion, rho: ZCDP, n: int) -> bool:
    size, radius = n / len(question.design.cohorts), _radius(question, rho, n)
    deviation = _deviation(question, radius, rho.part(LAST), n)
    least = max(LEAST_COUNT, LEAST_RATIO * deviation * math.sqrt(2) / radius)
    return size >= least and 1 + deviation**2 / size <= MOST_WIDTH**2


@public_task
def did(
    table: Table, *, time: str, outcome: str, cohort: str, loss: Loss, control: str = "never", coverage: float = 0.95,
    never: Iterable[str | int | bool] | None = None, cluster: str | None = None, accept_large_epsilon: bool = False,
    refresh: bool = False,
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
        Levels of ``cohort`` that mean never treated, where that is not one level that is no period.
    cluster : str, optional
        A column that names each person's cluster, as of ``effect``, such as the state: the mean effect and the event
        study then have intervals by clusters, other answers none.
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
    *Source*: estimates of Callaway & Sant'Anna (2021), without covariates; the sums are this library's.

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
    return DidQuestion.of(table, time, outcome, cohort, control, coverage, never, cluster), CohortQuery()
