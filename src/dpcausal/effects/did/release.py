"""Noisy sums of paths by cohort, and the differences in differences read off them: Callaway & Sant'Anna (2021).

    ATT(g, t) = E[y_t − y_(g−1) | cohort g] − E[y_t − y_(g−1) | controls]

for periods before treatment, too; averages over cohorts by their sizes.  The covariance of all of them is that of the
delta method, whose gradients are those of complex steps: exact, as every answer is a ratio of sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpcausal.codec import storable
from dpcausal.core import validate as public
from dpcausal.effects.cells.effect import MOST_SKEW, few_count_note
from dpcausal.effects.did.result import GroupTimeEffects, PathEffect
from dpcausal.effects.moments.adaptive import paths_radius, shrinkage
from dpcausal.privacy.noise import PublicGenerator, generator_from_seed
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity
from dpcausal.releases.release import Release
from dpcausal.releases.saved import Form
from dpcausal.statistics.moments import clip_rows, grid_bits, scaled, second_moments

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

LEAST_COUNT, LEAST_RATIO, LEAST_VARIANCE = 30.0, 6.0, 2.0
"""A cohort enters with at least so many persons, and so many deviations of the noise of their number; without noise
with any, and with fewer than two persons its variance is that of the other cohorts."""
MOST_LOST = 0.2
"""No interval where shortening took 0.2 √n more than of normal rows: calibrated by measured coverage, not proved."""
SURE = 2.5
"""Deviations of the noise that an excess must have to be one: normal paths are so withheld in 1 %."""
DRAWS, LINE = 20_000, 0.8
"""Of the level of the test before treatment the trend has four fifths: what most often goes wrong is one."""

LOST = ": if a missing value is what says never treated, declare Levels([...], other='never')"
NOT_YET = "the release asked again with control='not-yet' compares with those treated later, free"
CUT = "no intervals: too much of the paths was shortened, more than of normal ones, and skewed means may be off"
ALONE = "no intervals: no cohort has two persons, of whom a variance could be taken"
LONG = "no intervals: some persons' steps are so long that means of so few persons may be skewed"


def entries_of(columns: int) -> int:
    return 1 + columns + columns * (columns + 1) // 2


def cohort_bits(n: int, radius: float) -> int:
    return grid_bits(n, radius)


def factors(radius: float, bits: int) -> tuple[float, float]:
    """Return what a person counts, and what a square is multiplied by, in units of 2^(−bits)."""
    length = math.ldexp(radius, bits)
    return float(math.floor(length / math.sqrt(2))), 1 / (math.sqrt(2) * length)


def cohort_sums(
    cohorts: Integers, number: int, rows: Reals, complete: Mask, radius: float, bits: int, weights: Reals | None = None
) -> Reals:
    """Return count, sums and squares of each cohort and last what was lost, as in ``cohort-sums``: units of 2^(−bits).

    ``cohorts`` has each person's cohort, ``rows``, shape (n, d), the person's row; only complete persons count, each
    with its weight in [0, 1].

    *Guarantee*: ``cohort_sums_sensitivity(number, d, radius, bits)``.
    """
    inside = clip_rows(rows, radius, bits)
    squared = np.zeros(len(rows))
    for column in rows.T:
        squared += column * column
    lost = np.trunc(math.ldexp(radius, bits) / 2 * np.clip(np.sqrt(squared) / radius - 1, 0.0, 1.0))
    count, square = factors(radius, bits)
    parts = []
    for cohort in range(number):
        here = complete & (cohorts == cohort)
        own, part = inside[here], None if weights is None else weights[here]
        sums = [_total(np.full(len(own), count), part), *(_total(column, part) for column in own.T)]
        parts += [np.array(sums), square * (second_moments(own) if part is None else _squares(own, part))]
    return np.concatenate([*parts, [_total(lost[complete], None if weights is None else weights[complete])]])


def _total(values: Reals, parts: Reals | None) -> float:
    return float(values.sum() if parts is None else np.rint(parts * values).sum())


def _squares(own: Reals, parts: Reals) -> Reals:
    upper = [(i, i) for i in range(own.shape[1])] + [*zip(*np.triu_indices(own.shape[1], 1), strict=True)]
    return scaled(np.array([_total(own[:, i] * own[:, j], parts) for i, j in upper]), own.shape[1])


def cohort_sums_sensitivity(number: int, columns: int, radius: float, bits: int) -> Sensitivity:
    """Return the l2 sensitivity of ``cohort_sums``: √4.25 · 2^bits · radius; rounding is added.

    Examples
    --------
    >>> round(float(cohort_sums_sensitivity(3, 2, 1.0, 16).bound) / 2**16, 3)
    2.062
    """
    bound = math.sqrt(4.25) * math.ldexp(radius, bits) * (1 + 2.0**-50) + 2 * math.sqrt(number * entries_of(columns))
    return Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "cohort-sums", symmetric=True)


@storable("NoisyPaths")
@dataclass(frozen=True, eq=False)
class NoisyPaths(Release):
    """Noisy counts, sums and squares by cohort of rows z; steps of a path are width · (its cohort's middle + spread z).

    Attributes
    ----------
    times, cohorts : tuple of str
        The periods in order, and the levels of the cohort's column.
    starts : tuple of int
        Of each cohort the place of its first treated period; −1 if it is never treated.
    width : float
        Of the outcome's range.
    middle, spread : float arrays, shapes (cohorts, d) and (d, d)
        Released: where steps of a cohort lie and in what shape; d is one less than the periods.
    counts, sums, squares : float arrays, shapes (cohorts,), (cohorts, d), (cohorts, d, d)
    lost : float
        Sum over all persons of what shortening took, as a share of the radius, at most 1 each.
    radius, deviation : float
        Rows z were shortened to the radius; σ of the noise of ``sums``.  0 without privacy.
    """

    kind: ClassVar[str] = "paths"

    times: tuple[str, ...]
    cohorts: tuple[str, ...]
    starts: tuple[int, ...]
    width: float
    middle: Reals
    spread: Reals
    counts: Reals
    sums: Reals
    squares: Reals
    lost: float
    radius: float
    deviation: float

    def did(self, *, control: str = "never", coverage: float = 0.95) -> GroupTimeEffects:
        """Return the differences in differences by cohort and period, the event study, the pre-trend test: free.

        Parameters
        ----------
        control : str
            ``"never"``, cohorts that are never treated, or ``"not-yet"``, these and all that are not treated yet.
        coverage : float
            Of the intervals, from 0.5 to 0.999.
        """
        chosen = public.check_choice("control", control, ("never", "not-yet"))
        share = public.number("coverage", coverage, 0.5, 0.999)
        return staggered(self, chosen, share)

    @property
    def count_noise(self) -> float:
        return self.deviation * math.sqrt(2) / self.radius

    @property
    def lost_noise(self) -> float:
        return 2 * self.deviation / self.radius

    def with_extra_noise(self, generator: PublicGenerator) -> Self:
        d, s = len(self.spread), self.deviation
        upper = np.triu(generator.normal(0, 1, self.squares.shape)) * s * self.radius
        squares = upper + np.triu(upper, 1).swapaxes(1, 2)
        squares[:, range(d), range(d)] *= math.sqrt(2)
        return replace(
            self, counts=self.counts + generator.normal(0, 1, self.counts.shape) * self.count_noise,
            sums=self.sums + generator.normal(0, 1, self.sums.shape) * s, squares=self.squares + squares,
            lost=self.lost + float(generator.normal(0, 1)) * self.lost_noise, deviation=math.sqrt(2) * s,
        )  # fmt: skip

    @classmethod
    def from_payload(cls, form: Form, names: tuple[str, ...], n: int) -> Self:
        times, cohorts = (form.texts(name, different=True) for name in ("times", "cohorts"))
        starts = form.wholes("starts", -1, len(cohorts))
        g, d = len(cohorts), len(times) - 1
        arrays = form.arrays(
            {"middle": (g, d), "spread": (d, d), "counts": (g,), "sums": (g, d), "squares": (g, d, d)}
        )
        if len(names) != 3 or max(starts) >= len(times) or form.size("radius") == 0:
            raise form.refuse("starts")
        return cls(names, n, times, cohorts, starts, form.size("width"), **arrays,
                   lost=float(form.array("lost").reshape(-1)[0]), radius=form.size("radius"),
                   deviation=form.size("deviation"))  # fmt: skip


def staggered(paths: NoisyPaths, control: str, coverage: float) -> GroupTimeEffects:
    from scipy.special import chdtrc, ndtri

    noisy, never_only = paths.deviation > 0, control == "never"
    least = max(LEAST_COUNT, LEAST_RATIO * paths.count_noise) if noisy else 1e-9
    enough = [g for g, count in enumerate(paths.counts) if count >= least]
    # Who is treated in the first period has no period before it to compare with.
    treated = [g for g in enough if paths.starts[g] > 0]
    pairs = [
        (g, t) for g in treated for t in range(len(paths.times))
        if t != paths.starts[g] - 1 and _controls(paths, enough, never_only, g, t)
    ]  # fmt: skip
    dropped = [g for g in range(len(paths.cohorts)) if g not in enough and paths.starts[g] != 0]
    few = "has too few persons for the noise" if noisy else "has no persons"
    notes = tuple(f"cohort {paths.cohorts[g]} {few}{LOST * (paths.starts[g] < 0)}" for g in dropped)
    lone = [paths.cohorts[g] for g in enough if paths.counts[g] < LEAST_VARIANCE]
    events = sorted({t - paths.starts[g] for g, t in pairs})
    after = [(g, t) for g, t in pairs if t >= paths.starts[g]]
    means = [*([after] if after else []), *([(g, t) for g, t in pairs if t - paths.starts[g] == e] for e in events)]
    contrasts = _CohortContrasts(paths, enough, never_only, pairs, means)
    if not pairs:
        later = never_only and any(_controls(paths, enough, False, g, paths.starts[g]) for g in treated)
        free = f": {NOT_YET}" if later else ""
        notes += (f"no cohort can be compared: too few persons, or nobody is left untreated{free}",)
    if lone and contrasts.pooled:
        notes += (f"cohorts of one person, {', '.join(lone)}, have the variance of the other cohorts",)
    reason = CUT if _skewed(paths) else LONG if _long(paths, enough) else ALONE if lone and not contrasts.pooled else ""
    reach, has_intervals = float(ndtri(0.5 + coverage / 2)), not reason
    first = len(pairs) + bool(after)
    wide = _widest(contrasts.covariance[first:, first:], coverage) if events else 0.0
    rows = []
    names: list[tuple[str, Any, Any, Any]] = [
        (f"{paths.cohorts[g]} in {paths.times[t]}", paths.cohorts[g], paths.times[t], t - paths.starts[g])
        for g, t in pairs
    ]
    names += ([("all", None, None, None)] if after else []) + [(f"{e:+d}", None, None, e) for e in events]
    for place, (name, cohort, time, event) in enumerate(names):
        estimate, error = float(contrasts.values[place]), math.sqrt(float(contrasts.covariance[place, place]))
        ends = (estimate - reach * error, estimate + reach * error) if has_intervals else None
        band = (estimate - wide * error, estimate + wide * error) if has_intervals and place >= first else None
        own = math.sqrt(float(contrasts.noise[place, place]))
        rows.append(PathEffect(name, cohort, time, event, estimate, error, own, ends, band))
    notes += ((reason,) if reason else ()) + few_count_note(float(paths.counts.sum()), paths.n)
    trend = _trend(contrasts, [t - paths.starts[g] + 1 for g, t in pairs], reach, has_intervals)
    pretrend = None
    if trend is not None and has_intervals:
        before = [first + place for place, event in enumerate(events) if event < 0]
        values, matrix = contrasts.values[before], contrasts.covariance[np.ix_(before, before)]
        whole = float(chdtrc(len(before), float(values @ np.linalg.pinv(matrix, hermitian=True) @ values)))
        line = float(chdtrc(1, (trend.estimate / max(trend.standard_error, 1e-300)) ** 2))
        pretrend = min(line / LINE, whole / (1 - LINE), 1.0)
    return GroupTimeEffects(
        outcome=paths.names[1], control=control, coverage=coverage, n=paths.n, release=paths, guarantee=paths.guarantee,
        att=rows[len(pairs)] if after else None, event_study=tuple(rows[first:]),
        by_cohort=tuple(rows[: len(pairs)]), trend=trend, pretrend=pretrend, notes=notes,
        share_counted=float(np.clip(paths.counts.sum() / paths.n, 0.0, 1.0)),
    )  # fmt: skip


def _trend(contrasts: _CohortContrasts, since: list[int], reach: float, has_interval: bool) -> PathEffect | None:
    """Return the common trend of cohorts before treatment, by generalised least squares.

    ``since`` has of each cohort and period how many periods it is from the last one before treatment.
    """
    before = [place for place, periods in enumerate(since) if periods < 0]
    if not before:
        return None
    line, block = np.array([since[place] for place in before]), np.ix_(before, before)
    weights = np.linalg.pinv(contrasts.covariance[block], hermitian=True) @ line
    weights /= max(float(weights @ line), 1e-300)
    estimate = float(weights @ contrasts.values[before])
    error, noise = (math.sqrt(weights @ matrix[block] @ weights) for matrix in (contrasts.covariance, contrasts.noise))
    ends = (estimate - reach * error, estimate + reach * error) if has_interval else None
    return PathEffect("trend", None, None, None, estimate, error, noise, ends, None)


def _controls(paths: NoisyPaths, enough: list[int], never_only: bool, g: int, t: int) -> list[int]:
    late = max(t, paths.starts[g] - 1)
    return [
        c for c in enough
        if paths.starts[c] == -1 or (not never_only and c != g and paths.starts[c] > late)
    ]  # fmt: skip


class _CohortContrasts:
    """All ATT(g, t), then their means, with their covariance and that of the noise."""

    def __init__(
        self, paths: NoisyPaths, enough: list[int], never_only: bool, pairs: list[tuple[int, int]],
        means: list[list[tuple[int, int]]],
    ) -> None:  # fmt: skip
        d, cohorts = len(paths.spread), len(paths.cohorts)
        place = {pair: order for order, pair in enumerate(pairs)}

        def answers(counts: Any, sums: Any) -> Any:
            steps = paths.width * (paths.middle + (sums / counts[:, None]) @ paths.spread.T)
            levels = np.cumsum(np.hstack([np.zeros((cohorts, 1)), steps]), axis=1)
            single = []
            for g, t in pairs:
                base, others = paths.starts[g] - 1, _controls(paths, enough, never_only, g, t)
                change = levels[:, t] - levels[:, base]
                single.append(change[g] - (counts[others] @ change[others]) / counts[others].sum())
            pooled = [
                sum(counts[g] * single[place[g, t]] for g, t in mean) / sum(counts[g] for g, _ in mean)
                for mean in means
            ]  # fmt: skip
            return np.array([*single, *pooled])

        counts = np.where([g in enough for g in range(cohorts)], paths.counts, 1.0)
        self.values = np.real(answers(counts, paths.sums)).astype(np.float64)
        size, step = len(self.values), 1e-200
        gradient = np.zeros((cohorts, size, 1 + d))
        for g in enough:
            for entry in range(1 + d):
                moved_counts, moved_sums = counts.astype(complex), paths.sums.astype(complex)
                if entry:
                    moved_sums[g, entry - 1] += 1j * step
                else:
                    moved_counts[g] += 1j * step
                gradient[g, :, entry] = np.imag(answers(moved_counts, moved_sums)) / step
        self.covariance, self.noise = np.zeros((size, size)), np.zeros((size, size))
        deviations = np.array([paths.count_noise, *[paths.deviation] * d])
        outer = {g: np.outer(paths.sums[g], paths.sums[g]) / paths.counts[g] for g in enough}
        several = [g for g in enough if paths.counts[g] >= LEAST_VARIANCE]
        self.pooled = bool(several)
        within = sum((paths.squares[g] - outer[g] for g in several), np.zeros((d, d)))
        within /= max(sum(paths.counts[g] - 1 for g in several), 1.0)
        for g in enough:
            count, sums, squares = paths.counts[g], paths.sums[g], paths.squares[g]
            if count < LEAST_VARIANCE:  # these and the next without noise alone
                squares = outer[g] + count * within
            elif count < LEAST_COUNT:  # an unbiased variance
                squares = squares + (squares - outer[g]) / (count - 1)
            matrix = np.block([[np.full((1, 1), count), sums[None]], [sums[:, None], squares]])
            eigenvalues, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
            root = gradient[g] @ (vectors * np.sqrt(np.maximum(eigenvalues, 0.0)))
            noise = gradient[g] * deviations
            self.covariance += root @ root.T + noise @ noise.T
            self.noise += noise @ noise.T


def _skewed(paths: NoisyPaths) -> bool:
    """Return whether shortening took more than it does of normal rows of the same spread, by what noise allows."""
    d, n = len(paths.spread), max(float(paths.counts.sum()), 1.0)
    # What is left of normal rows that are about as wide everywhere, undone.
    square = paths.squares.sum(axis=0) / n / shrinkage(d, paths.radius)
    spreads = np.sqrt(np.clip(np.linalg.eigvalsh((square + square.T) / 2), 0.1, 2.0))
    lengths = np.linalg.norm(generator_from_seed(3).normal(0, 1, (DRAWS, d)) * spreads, axis=1)
    normal = float(np.clip(lengths / paths.radius - 1, 0.0, 1.0).mean())
    return paths.lost - n * normal > max(MOST_LOST * math.sqrt(n), SURE * paths.lost_noise)


def _long(paths: NoisyPaths, enough: list[int]) -> bool:
    """Return whether a mean could be too skewed: its third cumulant is at most R times its variance.

    Asked only where rows were found to be longer than normal ones, which R was then made for.
    """
    sizes = np.array([paths.counts[g] for g in enough] or [math.inf])
    mu = math.sqrt(4.25) * paths.radius / paths.deviation if paths.deviation > 0 else math.inf
    if paths.radius < 1.2 * paths_radius(len(paths.spread), mu, paths.n / len(paths.cohorts)):
        return False
    skew = paths.radius / np.sqrt(sizes) / (1 + paths.deviation**2 / sizes) ** 1.5
    return bool((skew > MOST_SKEW).any())


def _widest(covariance: Reals, coverage: float) -> float:
    """Return the factor of the errors at which intervals for all hold at once: a quantile of the largest |t|."""
    errors = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    eigenvalues, vectors = np.linalg.eigh(covariance / np.outer(errors, errors))
    drawn = generator_from_seed(2).normal(0, 1, (DRAWS, len(errors))) * np.sqrt(np.maximum(eigenvalues, 0.0))
    return float(np.quantile(np.abs(drawn @ vectors.T).max(axis=1), coverage))
