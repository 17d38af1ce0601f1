"""Noisy sums of paths by cohort, and the differences in differences read off them: Callaway & Sant'Anna (2021).

    ATT(g, t) = E[y_t − y_(g−1) | cohort g] − E[y_t − y_(g−1) | controls]

for periods before treatment, too; averages over cohorts by their sizes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.codec import storable
from dpcausal.core import validate as public
from dpcausal.effects.cells.effect import MOST_SKEW
from dpcausal.effects.clusters import ClusterVariance
from dpcausal.effects.did.contrasts import (
    DRAWS,
    LEAST_COUNT,
    LEAST_VARIANCE,
    CohortContrasts,
    Pair,
    controls_of,
    taken_of_mean,
    widest,
)
from dpcausal.effects.did.result import NO_INTERVALS, GroupTimeEffects, PathEffect
from dpcausal.effects.did.robust import EventStudy
from dpcausal.effects.moments.adaptive import paths_radius, shrinkage
from dpcausal.effects.result import normal_reach
from dpcausal.errors import Advice, Setting
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.releases.release import Release
from dpcausal.releases.saved import Form

LEAST_RATIO = 6.0
"""A cohort enters with at least so many deviations of the noise of its number of persons; without noise with any."""
MOST_LOST = 0.2
"""No interval where shortening took 0.2 √n more than of normal rows: calibrated by measured coverage, not proved."""
SURE = 2.5
"""Deviations of the noise that an excess must have to be one: normal paths are so withheld in 1 %."""
MOST_BIAS = 2.5
"""A cohort enters if shortening biases its mean by at most so many standard errors; its errors then count the bias."""
LINE = 0.8
"""Of the level of the test before treatment the trend has four fifths: what most often goes wrong is one."""

NEVER_AS_OTHER = Setting(kind="Levels", options={"levels": ..., "other": "never"})
LOST = ": if a missing value means never treated, declare ", NEVER_AS_OTHER
EXTREME = "changes so much that winsorising biases its few persons' means: use more persons or a larger loss"
NOT_YET = Advice("the release asked again with ", Setting("control", "not-yet"), " compares with those treated later, "
                 "free")  # fmt: skip
CUT = "no intervals: too many outcome paths were winsorised, more than of normal ones, and skewed means may be biased"
ALONE = "no intervals: no cohort has two persons, of whom a variance could be taken"
LONG = "no intervals: some persons' changes are so large that means of so few persons may be skewed"


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
    weighed : bool
        Persons count by their weights.
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
    cluster: str = ""
    control: str = ""
    clusters: tuple[ClusterVariance, ...] = ()
    weighed: bool = False
    """The variances between clusters of the mean effect and of each event against a control."""

    def did(self, *, control: str = "never", coverage: float = 0.95) -> GroupTimeEffects:
        """Return the differences in differences by cohort and period, the event study, the pre-trend test: free.

        Parameters
        ----------
        control, coverage
            As of ``dpcausal.did``.
        """
        chosen = public.check_choice("control", control, ("never", "not-yet"))
        share = public.number("coverage", coverage, 0.5, 0.999)
        answer = staggered(self, chosen, share)
        return answer.by_clusters(self.cluster, self.control, self.clusters) if self.cluster else answer

    def event_study(self, control: str) -> EventStudy:
        """Return the mean effect and those of all events, with their covariance."""
        all_pairs = Comparisons.of(self, control)
        _, whole, of_events, _ = all_pairs.parts
        chosen = slice(whole.start, of_events.stop)
        after = [(self.counts[g], t - self.starts[g] + 1) for g, t in all_pairs.controls if t >= self.starts[g]]
        total = max(sum(count for count, _ in after), 1e-300)
        mean = sum(count * float(e) for count, e in after) / total
        events = [event for *_, event in all_pairs.names[chosen]]
        return EventStudy(
            events, [mean if event is None else event + 1.0 for event in events],
            all_pairs.contrasts.values[chosen], all_pairs.contrasts.covariance[chosen, chosen],
        )  # fmt: skip

    @property
    def count_noise(self) -> float:
        return self.deviation * math.sqrt(2) / self.radius if self.deviation else 0.0

    @property
    def lost_noise(self) -> float:
        return 2 * self.deviation / self.radius if self.deviation else 0.0

    @property
    def adjusted_for(self) -> tuple[str, ...]:
        return ()

    @property
    def enough(self) -> list[int]:
        """The cohorts with enough persons for the noise."""
        return [g for g in self.counted if g not in self.biased]

    @property
    def counted(self) -> list[int]:
        least = max(LEAST_COUNT, LEAST_RATIO * self.count_noise) if self.deviation > 0 else 1e-9
        return [g for g, count in enumerate(self.counts) if count >= least]

    @property
    def biased(self) -> list[int]:
        """The cohorts whose mean is so long that what shortening took of it is not known well."""
        lengths, sizes = np.linalg.norm(self.biases, axis=1), np.maximum(self.counts, 1.0)
        errors = np.hypot(sizes**-0.5, self.deviation / sizes)
        return [g for g in self.counted if lengths[g] > MOST_BIAS * errors[g]]

    @cached_property
    def biases(self) -> Reals:
        """What shortening took of each cohort's mean of rows z, shape (cohorts, d)."""
        means = self.sums / np.maximum(self.counts, 1.0)[:, None]
        taken = [taken_of_mean(mean, self.radius) if self.deviation > 0 and g in self.counted else 0.0
                 for g, mean in enumerate(means)]  # fmt: skip
        return np.asarray(means * np.array(taken)[:, None], dtype=np.float64)

    @property
    def shortened(self) -> bool:
        """Whether shortening took more than it does of normal rows of the same spread, by what noise allows."""
        n = max(float(self.counts.sum()), 1.0)
        normal = n * lost_of_normal(self.squares.sum(axis=0) / n, self.radius)
        return self.lost - normal > max(MOST_LOST * math.sqrt(n), SURE * self.lost_noise)

    def effects(self, counts: Any, sums: Any, controls: dict[Pair, list[int]]) -> dict[Pair, Any]:
        """Return ATT(g, t) of counts and sums by cohort, against the controls of each pair."""
        steps = self.width * (self.middle + (sums / counts[:, None]) @ self.spread.T)
        levels, effects = np.cumsum(np.hstack([np.zeros((len(counts), 1)), steps]), axis=1), dict[Pair, Any]()
        for (g, t), others in controls.items():
            change = levels[:, t] - levels[:, self.starts[g] - 1]
            effects[g, t] = change[g] - (counts[others] @ change[others]) / counts[others].sum()
        return effects

    def more_errors(self, controls: dict[Pair, list[int]]) -> tuple[Reals, Reals]:
        """Return of each pair the error of noise and of chance that the sums do not show."""
        counts = np.where([g in self.enough for g in range(len(self.counts))], self.counts, 1.0)
        estimates, whole = (self.effects(counts, sums, controls) for sums in
                        (self.sums, self.sums + counts[:, None] * self.biases))  # fmt: skip
        return np.array([abs(whole[pair] - estimates[pair]) for pair in controls]), np.zeros(len(controls))

    @classmethod
    def from_payload(cls, form: Form, names: tuple[str, ...], n: int) -> Self:
        times, cohorts = (form.texts(name, different=True) for name in ("times", "cohorts"))
        starts, g = form.wholes("starts", -1, len(cohorts)), len(cohorts)
        if max(starts) >= len(times) or form.size("radius") == 0:
            raise form.refuse("starts")
        d, own = cls._own_fields(form, names, len(times), starts)
        arrays = form.arrays({"middle": (g, d), "spread": (d, d), "counts": (g,), "sums": (g, d), "squares": (g, d, d)})
        return cls(names, n, times, cohorts, starts, form.size("width"), **arrays, **own,
                   lost=float(form.array("lost").reshape(-1)[0]), radius=form.size("radius"),
                   deviation=form.size("deviation"))  # fmt: skip

    @classmethod
    def _own_fields(
        cls, form: Form, names: tuple[str, ...], periods: int, starts: tuple[int, ...]
    ) -> tuple[int, dict[str, Any]]:
        """Return the number of columns of a row, and the fields that not all such releases have."""
        if len(names) != 3:
            raise form.refuse("starts")
        cluster, control = (form.text(name) if form.has(name) else "" for name in ("cluster", "control"))
        variances = ClusterVariance.saved(form, tuple(range(2 * periods)))
        return periods - 1, {"cluster": cluster, "control": control, "clusters": variances}


class Comparisons(NamedTuple):
    """What is compared: cohorts with enough persons, the controls of each pair, then means over pairs, all estimated.

    Of the ``names`` the first are of pairs, the next ``whole`` of all, the next of events and the last of cohorts.
    """

    enough: list[int]
    controls: dict[Pair, list[int]]
    names: list[tuple[str, str | None, str | None, int | None]]
    parts: tuple[slice, slice, slice, slice]
    contrasts: CohortContrasts

    @classmethod
    def of(cls, paths: NoisyPaths, control: str) -> Comparisons:
        enough, starts = paths.enough, paths.starts
        # Who is treated in the first period has no period before it to compare with.
        pairs = [(g, t) for g in enough if starts[g] > 0 for t in range(len(paths.times)) if t != starts[g] - 1]
        controls = {pair: controls_of(starts, enough, control == "never", pair) for pair in pairs}
        controls = {pair: those for pair, those in controls.items() if those}
        events = sorted({t - starts[g] for g, t in controls})
        after = [(g, t) for g, t in controls if t >= starts[g]]
        treated = list(dict.fromkeys(g for g, _ in after))
        means = [
            *([after] if after else []), *([(g, t) for g, t in controls if t - starts[g] == e] for e in events),
            *([(g, t) for g, t in after if g == c] for c in treated),
        ]  # fmt: skip
        names: list[tuple[str, str | None, str | None, int | None]] = [
            (f"{paths.cohorts[g]} in {paths.times[t]}", paths.cohorts[g], paths.times[t], t - starts[g])
            for g, t in controls
        ]
        names += ([("all", None, None, None)] if after else []) + [(f"{e:+d}", None, None, e) for e in events]
        names += [(paths.cohorts[g], paths.cohorts[g], None, None) for g in treated]
        ends = np.cumsum([0, len(controls), bool(after), len(events), len(treated)]).tolist()
        deviations = np.array([paths.count_noise, *[paths.deviation] * paths.sums.shape[1]])
        contrasts = CohortContrasts(
            lambda counts, sums: paths.effects(counts, sums, controls), paths.counts, paths.sums, paths.squares,
            deviations, enough, means, *paths.more_errors(controls),
        )  # fmt: skip
        first, whole, of_events, last = (slice(*both) for both in pairwise(ends))
        return cls(enough, controls, names, (first, whole, of_events, last), contrasts)


def staggered(paths: NoisyPaths, control: str, coverage: float) -> GroupTimeEffects:
    from scipy.special import chdtrc

    noisy, all_pairs = paths.deviation > 0, Comparisons.of(paths, control)
    enough, contrasts, (cells, whole, of_events, last) = all_pairs.enough, all_pairs.contrasts, all_pairs.parts
    dropped = [g for g in range(len(paths.cohorts)) if g not in enough and paths.starts[g] != 0]
    few = "has too few persons for the noise" if noisy else "has no persons"
    notes: tuple[str, ...] = tuple(
        Advice(f"cohort {paths.cohorts[g]} {EXTREME if g in paths.biased else few}; averages are without it",
               *(LOST if paths.starts[g] < 0 else ())) for g in dropped
    )  # fmt: skip
    lone = [paths.cohorts[g] for g in enough if paths.counts[g] < LEAST_VARIANCE]
    uncompared: str = ""
    if not all_pairs.controls:
        first = [(g, start) for g, start in enumerate(paths.starts) if start > 0 and g in enough]
        later = control == "never" and any(controls_of(paths.starts, enough, False, pair) for pair in first)
        free = (": ", NOT_YET) if later and not paths.adjusted_for else ()
        uncompared = Advice("no cohort can be compared: too few persons, or nobody is left untreated", *free)
        notes += (uncompared,)
    notes += _note_on_uncompared(paths, all_pairs)
    if lone and contrasts.pooled:
        notes += (f"cohorts of one person, {', '.join(lone)}, have the variance of the other cohorts",)
    alone = ALONE if lone and not contrasts.pooled else ""
    reason = CUT if paths.shortened else LONG if _long(paths, enough) else alone
    reach, has_intervals = normal_reach(coverage), not reason
    wide = np.zeros(len(all_pairs.names))
    for part in (cells, of_events, last):
        if part.stop > part.start:
            wide[part] = widest(contrasts.covariance[part, part], coverage)
    rows = []
    for place, (name, cohort, time, event) in enumerate(all_pairs.names):
        estimate, error = float(contrasts.values[place]), math.sqrt(float(contrasts.covariance[place, place]))
        ends, band = ((estimate - z * error, estimate + z * error) if has_intervals and z else None
                      for z in (reach, float(wide[place])))  # fmt: skip
        own = math.sqrt(float(contrasts.noise[place, place]))
        rows.append(PathEffect(name, cohort, time, event, estimate, error, own, ends, band))
    notes += (reason,) if reason else ()
    trend = _trend(contrasts, [t - paths.starts[g] + 1 for g, t in all_pairs.controls], reach, has_intervals)
    pretrend = None
    if trend is not None and has_intervals:
        before = [of_events.start + place for place, one in enumerate(rows[of_events]) if (one.event or 0) < 0]
        values, matrix = contrasts.values[before], contrasts.covariance[np.ix_(before, before)]
        moved = float(chdtrc(len(before), float(values @ np.linalg.pinv(matrix, hermitian=True) @ values)))
        line = float(chdtrc(1, (trend.estimate / max(trend.standard_error, 1e-300)) ** 2))
        pretrend = min(line / LINE, moved / (1 - LINE), 1.0)
    return GroupTimeEffects(
        outcome=paths.names[1], control=control, coverage=coverage, n=paths.n, release=paths, guarantee=paths.guarantee,
        att=rows[whole][0] if rows[whole] else None, event_study=tuple(rows[of_events]), by_cohort=tuple(rows[cells]),
        cohort_means=tuple(rows[last]), trend=trend, pretrend=pretrend, notes=notes, adjusted_for=paths.adjusted_for,
        share_counted=None if paths.weighed else float(np.clip(paths.counts.sum() / paths.n, 0.0, 1.0)),
        times=paths.times, interval_reason=reason.removeprefix(NO_INTERVALS) or uncompared,
        never=tuple(one for one, start in zip(paths.cohorts, paths.starts, strict=True) if start < 0),
        moved=tuple(f"{one} counts from {paths.times[start]}" if start else f"{one} has no period before it to compare"
                    for one, start in zip(paths.cohorts, paths.starts, strict=True)
                    if not start or (start > 0 and one != paths.times[start])),
    )  # fmt: skip


def _note_on_uncompared(paths: NoisyPaths, all_pairs: Comparisons) -> tuple[str, ...]:
    starts, number = paths.starts, len(paths.times)
    treated = {(g, t) for g in all_pairs.enough if starts[g] > 0 for t in range(starts[g], number)}
    missing = treated - set(all_pairs.controls)
    if not missing or missing == treated:
        return ()
    periods = ", ".join(paths.times[t] for t in sorted({t for _, t in missing}))
    cohorts = sorted({g for g, _ in missing} - {g for g, _ in treated - missing})
    without = f" and without cohort {', '.join(paths.cohorts[g] for g in cohorts)}" if cohorts else ""
    return (f"nobody is left untreated in {periods}: the mean effect is without these periods{without}",)


def _trend(contrasts: CohortContrasts, since: list[int], reach: float, has_interval: bool) -> PathEffect | None:
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


def lost_of_normal(square: Reals, radius: float) -> float:
    d = len(square)
    # What is left of normal rows that are about as wide everywhere, undone.
    if not d:
        return 0.0
    square = square / shrinkage(d, radius)
    spreads = np.sqrt(np.clip(np.linalg.eigvalsh((square + square.T) / 2), 0.1, 2.0))
    lengths = np.linalg.norm(generator_from_seed(3).normal(0, 1, (DRAWS, d)) * spreads, axis=1)
    return float(np.clip(lengths / radius - 1, 0.0, 1.0).mean())


def _long(paths: NoisyPaths, enough: list[int]) -> bool:
    """Return whether a mean could be too skewed: its third cumulant is at most R times its variance.

    Asked only where rows were found to be longer than normal ones, which R was then made for.
    """
    sizes = np.maximum([paths.counts[g] for g in enough] or [math.inf], 1.0)
    mu = math.sqrt(4.25) * paths.radius / paths.deviation if paths.deviation > 0 else math.inf
    if paths.radius < 1.2 * paths_radius(len(paths.spread), mu, paths.n / len(paths.cohorts)):
        return False
    skew = paths.radius / np.sqrt(sizes) / (1 + paths.deviation**2 / sizes) ** 1.5
    return bool((skew > MOST_SKEW).any())
