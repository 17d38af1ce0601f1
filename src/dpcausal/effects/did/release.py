"""Noisy sums of persons' paths by cohort: differences in differences of any kind, however often, free."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpcausal.codec import storable
from dpcausal.core import validate as public
from dpcausal.effects.did.att import PathEffect, staggered
from dpcausal.effects.result import forest
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.releases.release import Release
from dpcausal.releases.saved import Form
from dpcausal.result import Guarantee, Result, ci_text, flat, p_text, plain, signed_text

Reals = npt.NDArray[np.float64]


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
    event_study : tuple of PathEffect
        By periods since treatment began; the period before it is 0 and left out.
    by_cohort : tuple of PathEffect
        ATT(g, t) for every cohort and period.
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
        Asked again free: ``did(control=..., coverage=...)``.
    guarantee : Guarantee
    share_counted : float
        Share of the persons, noisy, who have an outcome in every period and one cohort: the answer is about these.
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
    release: NoisyPaths
    guarantee: Guarantee
    share_counted: float = 1.0

    def headline(self) -> list[str]:
        whom = "never treated" if self.control == "never" else "not yet treated"
        whole = () if self.att is None else (("all periods", self.att),)
        rows = [*whole, *((one.name, one) for one in self.event_study)]
        width = max((len(name) for name, _ in rows), default=0)
        lines = [f"Effect of treatment on {self.outcome}, compared with persons {whom}, {self.n:,} persons"]
        lines += ["no result"] if self.att is None else []
        for name, one in rows:
            ends = ci_text(one.interval, self.coverage)
            lines.append(f"  {name:{width}}  {signed_text(one.estimate):>9}   {ends}")
        if self.pretrend is not None:
            lines.append(f"Parallel trends before treatment: {p_text(self.pretrend)} (small: they are doubtful).")
        return lines

    def warnings(self) -> list[str]:
        moved = self.pretrend is not None and self.pretrend < 1 - self.coverage
        text = "cohorts moved apart before treatment: do not rely on the effects above"
        return [*([text] if moved else []), *self.notes]

    def technical(self) -> list[str]:
        whom = "never treated" if self.control == "never" else "not yet treated"
        lines = [f"Effect on {self.outcome}, against the {whom}: " + ("no answer." if self.att is None else "")]
        for one in (*(() if self.att is None else (self.att,)), *self.event_study):
            ends = "no interval" if one.interval is None else f"{one.interval[0]:.4g} to {one.interval[1]:.4g}"
            band = "" if one.band is None else f", all at once {one.band[0]:.4g} to {one.band[1]:.4g}"
            lines.append(f"  {one.name}: {one.estimate:+.4g} ({self.coverage:.0%}: {ends}{band})")
        if self.trend is not None and self.trend.interval is not None:
            ends = f"{self.trend.interval[0]:.3g} to {self.trend.interval[1]:.3g}"
            lines.append(f"Before treatment cohorts moved apart by {self.trend.estimate:+.3g} a period ({ends}).")
        if self.pretrend is not None:
            remark = ": they moved apart before it, and the effects above are not to be believed"
            lines.append(
                f"Before treatment: p = {self.pretrend:.3g} that cohorts moved alike"
                f"{remark if self.pretrend < 1 - self.coverage else ''}."
            )
        whole = f"{self.share_counted:.0%} have an outcome in every period; the others are left out"
        return [*lines, *(f"Note: {note}." for note in self.notes), f"{self.n} persons. Of these {whole}."]

    def to_dict(self) -> dict[str, Any]:
        """Return all but the released numbers as JSON's types; those are ``release.to_dict()``."""
        payload = {name: value for name, value in vars(self).items() if name != "release"}
        for name in ("att", "trend"):
            payload[name] = None if payload[name] is None else vars(payload[name])
        for name in ("event_study", "by_cohort"):
            payload[name] = [vars(one) for one in payload[name]]
        return {name: plain(value) for name, value in payload.items()}

    def rows(self) -> list[dict[str, Any]]:
        """Return the mean effect, the event study, every cohort and period, and the trend before treatment."""
        parts = {"att": (self.att,), "event study": self.event_study, "cohort and period": self.by_cohort,
                 "trend": (self.trend,)}  # fmt: skip
        shared = {"outcome": self.outcome, "control": self.control, "coverage": self.coverage, "n": self.n}
        return [{"part": part, **flat(vars(one)), **shared} for part, ones in parts.items() for one in ones if one]

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean effect, and the event study with the intervals that hold all at once."""
        mean = [] if self.att is None else [("all", self.att.estimate, self.att.interval)]
        rows = [*mean, *((one.name, one.estimate, one.band) for one in self.event_study)]
        return forest(rows, ax, f"effect on {self.outcome}, by periods since it began", self.stamp())


@storable("NoisyPaths")
@dataclass(frozen=True, eq=False)
class NoisyPaths(Release):
    """Noisy counts, sums and squares by cohort of rows z; steps of a path are width · (its cohort's middle + spread z).

    Attributes
    ----------
    times : tuple of str
        The periods in order.
    cohorts : tuple of str
        Levels of the cohort's column.
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
        return GroupTimeEffects(
            **staggered(self, chosen == "never", share), outcome=self.names[1], control=chosen, coverage=share,
            n=self.n, release=self, guarantee=self.guarantee,
        )  # fmt: skip

    @property
    def count_noise(self) -> float:
        """Deviation of the noise of a count."""
        return self.deviation * math.sqrt(2) / self.radius

    @property
    def lost_noise(self) -> float:
        """Deviation of the noise of ``lost``."""
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

    def numbers(self) -> dict[str, Any]:
        names = ("middle", "spread", "counts", "sums", "squares")
        return {name: getattr(self, name).tolist() for name in names} | {
            "times": list(self.times), "cohorts": list(self.cohorts), "starts": list(self.starts),
            "width": self.width, "lost": self.lost, "radius": self.radius,
            "deviation": self.deviation,
        }  # fmt: skip

    @classmethod
    def from_payload(cls, form: Form, names: tuple[str, ...], n: int) -> Self:
        times, cohorts = (form.words(name, different=True) for name in ("times", "cohorts"))
        starts = form.wholes("starts", -1, len(cohorts))
        g, d = len(cohorts), len(times) - 1
        shapes = {"middle": (g, d), "spread": (d, d), "counts": (g,), "sums": (g, d), "squares": (g, d, d)}
        arrays: dict[str, Any] = {name: form.array(name) for name in shapes}
        for name, shape in shapes.items():
            if arrays[name].shape != shape:
                raise form.refuse(name)
        if len(names) != 3 or max(starts) >= len(times) or form.size("radius") == 0:
            raise form.refuse("starts")
        return cls(names, n, times, cohorts, starts, form.size("width"), **arrays,
                   lost=float(form.array("lost").reshape(-1)[0]), radius=form.size("radius"),
                   deviation=form.size("deviation"))  # fmt: skip
