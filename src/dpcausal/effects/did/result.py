"""The result of ``did``: effects by cohort and period, the event study, and whether trends were parallel before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dpcausal.codec import storable
from dpcausal.core import validate as public
from dpcausal.effects.clusters import ClusterVariance
from dpcausal.effects.did.robust import RobustEffects, robust_effects
from dpcausal.effects.result import DARK, Interval
from dpcausal.errors import ParameterError
from dpcausal.plotting import axes, titled
from dpcausal.releases.release import Release
from dpcausal.result import Guarantee, Result, ci_text, flat_row, interval_text, p_text, percent_text, signed_text

NO_INTERVALS = "no intervals: "
OTHERS = "intervals by clusters are of the mean effect and the event study alone, each by itself"
OTHER_CONTROL = "the variance between clusters was released for the control {!r} alone"
MOST_TIMES = 12
"""So many periods are printed; of more, the first two and the last."""


@storable("PathEffect")
@dataclass(frozen=True)
class PathEffect:
    """One effect: its interval, and the ``band`` that holds all of its kind at once: events, cells or cohorts."""

    name: str
    cohort: str | None
    time: str | None
    event: int | None
    """Periods since the treatment began, −1 the one before."""
    estimate: float
    standard_error: float
    noise_error: float
    interval: Interval | None
    band: Interval | None


def _clustered(row: PathEffect, variance: ClusterVariance | None = None, coverage: float = 0.0) -> PathEffect:
    if variance is None:
        return replace(row, interval=None, band=None)
    error, reach = variance.error(row.standard_error, coverage)
    has_interval = row.interval is not None and not variance.few
    ends = (row.estimate - reach * error, row.estimate + reach * error) if has_interval else None
    return replace(row, standard_error=error, interval=ends, band=None)


@storable("Staggered")
@dataclass(frozen=True, eq=False)
class GroupTimeEffects(Result):
    """Differences in differences, as released.

    Attributes
    ----------
    outcome : str
    control : str
        ``"never"`` or ``"not-yet"``.
    att : PathEffect or None
        The mean effect over cohorts and treated periods, by persons; ``None``: see ``notes``.
    estimate, interval, standard_error, noise_error
        Those of ``att``.
    interval_reason : str
        Why ``att`` has no interval; empty if it has one.
    event_study : tuple of PathEffect
        By periods since treatment began; the period before it is 0 and left out.
    by_cohort : tuple of PathEffect
        ATT(g, t) for every cohort and period.
    cohort_means : tuple of PathEffect
        The mean over each cohort's treated periods.
    adjusted_for : tuple of str
    trend : PathEffect or None
        By how much a period cohorts moved apart before treatment, the same for all of them: from every cohort and
        period by generalised least squares.
    pretrend : float or None
        p-value of the test that cohorts moved alike before treatment, by that trend and, for a fifth of the level, by
        all effects before treatment in the event study; ``None`` without such periods or intervals.
    coverage : float
    notes : tuple of str
    n : int
        Persons, public.
    release : Release
        ``did(control=..., coverage=...)`` re-uses it free.
    guarantee : Guarantee
    share_counted : float or None
        Share of the persons, noisy, who have an outcome in every period and one cohort: the answer is about these.
        ``None`` if persons have weights, whose sums do not show it.
    times, never : tuple of str
        The periods in order of time, and the cohorts that count as never treated.
    moved : tuple of str
        How cohorts that are no period, or the first one, count.
    cluster, clusters : str; float or None
        The column whose clusters errors are by, and about how many vary as much; empty: by persons.
    """

    named = ("part", "name", "cohort", "time", "event", "estimate", "interval_low", "interval_high")

    outcome: str
    control: str
    att: PathEffect | None
    event_study: tuple[PathEffect, ...]
    by_cohort: tuple[PathEffect, ...]
    trend: PathEffect | None
    pretrend: float | None
    coverage: float
    notes: tuple[str, ...]
    n: int
    release: Release
    guarantee: Guarantee
    share_counted: float | None = 1.0
    interval_reason: str = field(default="", kw_only=True)
    cohort_means: tuple[PathEffect, ...] = ()
    adjusted_for: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    cluster: str = ""
    clusters: float | None = None

    @property
    def estimate(self) -> float | None:
        """That of ``att``."""
        return None if self.att is None else self.att.estimate

    @property
    def interval(self) -> Interval | None:
        """That of ``att``."""
        return None if self.att is None else self.att.interval

    @property
    def standard_error(self) -> float | None:
        """That of ``att``."""
        return None if self.att is None else self.att.standard_error

    @property
    def noise_error(self) -> float | None:
        """That of ``att``."""
        return None if self.att is None else self.att.noise_error

    def by_clusters(self, cluster: str, control: str, variances: Sequence[ClusterVariance]) -> GroupTimeEffects:
        """Return the answer with intervals by clusters, of the mean effect and each event against one control."""
        whole = () if self.att is None else (self.att,)
        known = variances if self.control == control else ()
        rows = tuple(_clustered(row, known[place] if place < len(known) else None, self.coverage)
                     for place, row in enumerate((*whole, *self.event_study)))  # fmt: skip
        reasons: dict[str, list[str]] = {}
        for row, variance in zip(rows, known, strict=False):
            if variance.few:
                reasons.setdefault(variance.few, []).append("all periods" if row is rows[0] and whole else row.name)
        few = tuple(f"no interval of {', '.join(names)}: {reason}" for reason, names in reasons.items())
        other = OTHER_CONTROL.format(control)
        reason = self.interval_reason or ((variances[0].few if known and whole else "") if known else other)
        answer = self.without_intervals(OTHERS if known else other)
        return replace(
            answer, att=rows[0] if whole else None, interval_reason=reason,
            event_study=rows[len(whole) :], notes=(*few, *answer.notes),
            trend=None, pretrend=None, cluster=cluster, clusters=known[0].groups if known else None,
        )  # fmt: skip

    def without_intervals(self, reason: str) -> GroupTimeEffects:
        event_study, by_cohort, cohort_means = (
            tuple(map(_clustered, rows)) for rows in (self.event_study, self.by_cohort, self.cohort_means)
        )
        return replace(
            self, att=self.att and _clustered(self.att), event_study=event_study, by_cohort=by_cohort,
            cohort_means=cohort_means, notes=(*self.notes, reason), interval_reason=reason.removeprefix(NO_INTERVALS),
        )  # fmt: skip

    def headline(self) -> list[str]:
        whom = "never treated" if self.control == "never" else "not yet treated"
        subgroup = self.guarantee.subgroup
        who = f"persons with {subgroup}" if subgroup else f"{self.n:,} persons"
        if self.share_counted is not None and self.share_counted < 0.95 and not subgroup:
            who = f"about {percent_text(self.share_counted)} of {who}, with an outcome in every period"
        whole = () if self.att is None else (("all periods", self.att),)
        rows = [*whole, *((one.name, one) for one in self.event_study)]
        width = max((len(name) for name, _ in rows), default=0)
        given = f", adjusted for {', '.join(self.adjusted_for)}" if self.adjusted_for else ""
        lines = [f"Effect of treatment on {self.outcome}{given}, compared with persons {whom}, {who}"]
        if self.times:
            inner = [*self.times[:2], "…", self.times[-1]] if len(self.times) > MOST_TIMES else self.times
            never = f"; never treated: {', '.join(self.never)}" if self.never else ""
            lines.append(f"Periods in order: {', '.join(inner)}{never}.")
        lines += [f"Cohorts: {'; '.join(self.moved)}."] if self.moved else []
        lines += ["no result"] if self.att is None else []
        for name, one in rows:
            ends = ci_text(one.interval, self.coverage)
            lines.append(f"  {name:{width}}  {signed_text(one.estimate, one.interval):>9}   {ends}")
        if self.pretrend is not None:
            lines.append(f"Parallel trends before treatment: {p_text(self.pretrend)} (a small p-value makes them "
                         "doubtful).")  # fmt: skip
        if self.clusters is not None:
            lines.append(f"Inference by {self.cluster} (about {self.clusters:.0f} clusters).")
        return lines

    def warnings(self) -> list[str]:
        moved = self.pretrend is not None and self.pretrend < 1 - self.coverage
        text = "cohorts moved apart before treatment: do not rely on the effects above"
        return [*([text] if moved else []), *self.notes]

    def technical(self) -> list[str]:
        lines = [f"{one.name}: {100 * self.coverage:g} % band for all periods at once {interval_text(one.band)}."
                 for one in self.event_study if one.band is not None]  # fmt: skip
        if self.trend is not None and self.trend.interval is not None:
            slope, ends = signed_text(self.trend.estimate), ci_text(self.trend.interval, self.coverage)
            lines.append(f"Before treatment the difference of cohorts changed by {slope} a period ({ends}).")
        share = "" if self.share_counted is None else f": {self.share_counted:.0%}"
        return [*lines, f"Only persons with an outcome in every period count{share}."]

    def rows(self) -> list[dict[str, Any]]:
        parts = {"att": (self.att,), "event study": self.event_study, "cohort and period": self.by_cohort,
                 "cohort": self.cohort_means, "trend": (self.trend,)}  # fmt: skip
        shared = {"outcome": self.outcome, "control": self.control, "coverage": self.coverage, "n": self.n}
        return [{"part": part, **flat_row(vars(one)), **shared} for part, ones in parts.items() for one in ones if one]

    def robust_trends(self, mbar: float | Iterable[float] = (0.5, 1.0, 2.0)) -> RobustEffects:
        """Return the effects where trends need not be parallel: free.

        Parameters
        ----------
        mbar : float or list of float
            Relative magnitudes: after treatment the difference of trends changes per period by at most so many times
            its largest change between two periods before.

        Returns
        -------
        RobustEffects
            Of the mean effect and of each event: bounds, and an interval that holds the effect.

        Notes
        -----
        *Source*: the assumption of Rambachan & Roth (2023).  The interval is the union of those of each change before
        treatment in both directions: it covers at least as often as it says.
        """
        if self.cluster:
            text = "trends that are not parallel have no intervals by clusters"
            raise ParameterError(text, argument="cluster", rule="robust")
        listed = mbar if isinstance(mbar, Iterable) else [mbar]
        numbers = tuple(public.number("mbar", one, 0.0, 1e6) for one in listed)
        release: Any = self.release
        about = {"outcome": self.outcome, "coverage": self.coverage, "n": self.n, "guarantee": self.guarantee}
        shown = self.att is not None and self.att.interval is not None
        return robust_effects(release.event_study(self.control), numbers, about, shown)

    def plot(self, ax: Any = None) -> Any:
        """Draw the event study: each effect with its interval, and thin lines that hold all effects at once."""
        ax = axes(ax, (6, 3.6))
        ax.axhline(0, color="0.5", linewidth=1, linestyle=":")
        ax.axvline(-0.5, color="0.5", linewidth=1, linestyle="--")
        ax.plot([-1], [0.0], marker="o", color=DARK, fillstyle="none")
        for one in self.event_study:
            for ends, width in ((one.band, 1), (one.interval, 3)):
                if ends is not None:
                    ax.plot([one.event] * 2, list(ends), color=DARK, linewidth=width, solid_capstyle="butt")
            ax.plot([one.event], [one.estimate], marker="o", color=DARK,
                    fillstyle="none" if one.interval is None else "full")  # fmt: skip
        ax.set_xticks([-1, *(one.event or 0 for one in self.event_study)])
        ax.set_xlabel("periods since treatment began")
        ax.set_ylabel(f"effect on {self.outcome}")
        return titled(ax, self.stamp())
