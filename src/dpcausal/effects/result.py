"""The result of a question about a size: the effect, how sure, for whom, and what could explain it away."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from dpcausal.codec import storable
from dpcausal.plotting import axes, titled
from dpcausal.releases.release import UNSTATED, Release
from dpcausal.result import (
    Guarantee,
    Result,
    ci_text,
    decimals_of,
    flat_row,
    interval_text,
    number_text,
    percent_text,
    signed_text,
)

Interval = tuple[float, float]
Intervals = tuple[Interval, ...]
NEARLY_ALL, MOSTLY = 0.99, 0.95
"""Strata with a smaller share of the records are said not to hold all of them.  A note gives the share of limited
probabilities of treatment if fewer records are inside the limits."""
STRATA, LIMITS = ("stratified", "trial"), ("aipw", "boosted-aipw")
"""Methods that leave out strata with too few of an arm, and those that limit the probability of treatment."""
ROUNDS_TO_ALL, CLEAR_MISSING = 0.995, 3.0
"""A larger share of the records is printed as 100 %.  Records are missing if so many deviations of the noise are."""
DARK, LIGHT, NORMAL_95 = "#1f4e79", "#c07020", 1.96


@storable("Ratio")
@dataclass(frozen=True)
class Ratio:
    """A ratio of risks or odds, with an interval or the reason why there is none. The upper end may be infinite, where
    the risk of the controls may be 0; then there may be no estimate either."""

    estimate: float | None
    interval: Interval | None
    reason: str = ""


@storable("GroupEffect")
@dataclass(frozen=True)
class GroupEffect:
    """The effect in one group; ``share_supported`` is that of the group's records."""

    group: str
    estimate: float | None
    interval: Interval | None
    reason: str
    share_supported: float


@storable("Balance")
@dataclass(frozen=True)
class Balance:
    """How often a level, or how large a number, is among treated and controls before anything is adjusted for.
    ``difference`` is in the pooled standard deviation; ``deviation`` is that of its noise, infinite where noise hides
    an arm, ``standard_error`` that of sampling and noise, ``None`` where it is not known."""

    name: str
    treated: float
    control: float
    difference: float
    deviation: float
    standard_error: float | None = None


@storable("FitCheck")
@dataclass(frozen=True)
class FitCheck:
    """Whether the two models fit, from fresh noise: p-values of that hypothesis for treatment and outcome.
    ``correction`` is the bias that curvature leaves in the mean score, ``error`` its standard error; ``tail`` the
    largest sum of the outcome's residuals in an outermost bin, in deviations."""

    correction: float
    error: float
    treatment_pvalue: float
    outcome_pvalue: float
    tail: float

    @property
    def text(self) -> str:
        return (f"Curvature left: {self.correction:+.3g} ± {self.error:.2g} (bias, standard error). The models fit: "
                f"treatment p = {self.treatment_pvalue:.2g}, outcome p = {self.outcome_pvalue:.2g}.")  # fmt: skip


@storable("Effect")
@dataclass(frozen=True, eq=False, kw_only=True)
class Effect(Result):
    """How much a treatment changes an outcome, as released.

    Attributes
    ----------
    treatment, outcome : str
    treated, control : str
        The levels that are compared.
    estimand : str
        ``"ate"``, everybody's mean effect; ``"att"``, that of the treated; ``"slope"``, of a linear model;
        ``"ate-winsorized"``, everybody's on outcomes that are winsorised far from their line; ``"overlap"``, weighed by
        e(1 − e), e the probability of treatment.
    adjusted_for : tuple of str
    estimate : float or None
        Mean outcome if treated less that if not, in the outcome's unit.  ``None``: see ``interval_reason``.
    interval : tuple of two floats, or None
        It counts sampling and noise.  ``None``: see ``interval_reason``.
    interval_reason : str
        Why there is none; empty if there is.
    coverage : float
    standard_error, noise_error : float or None
        Of the estimate; the part that the noise alone has.
    mean_treated, mean_control : float or None
        Mean outcome with everybody (or every treated) treated, or not.
    risk_ratio, odds_ratio : Ratio or None
        Of an outcome of two levels.
    signal_to_noise : float
        Ratio of the numbers behind the estimate to their noise.
    share_supported : float
        Of ``"stratified"``, share of the records, or of the treated for ``"att"``, noisy, in strata that have enough of
        both arms: the estimate is about these.  Of ``"aipw"`` and ``"boosted-aipw"``, share of the records, noisy,
        with an estimated probability of treatment inside its limits; the others count with the limit.
    e_value, e_value_limit : float or None
        The risk ratios that an unmeasured cause would need to explain away the estimate, and the interval.
    robustness_value, robustness_value_limit : float or None
        Share of treatment and outcome that an unmeasured cause would have to explain to bring the estimate, and the
        nearest limit of the interval, to 0.
    by_group : tuple of GroupEffect
    balance : tuple of Balance
    notes : tuple of str
        What released numbers say against the answer.
    method : str
    settings : dict
    n : int
        Rows, public.
    release : Release or None
        The released numbers; of cells ``effect.release.effect(...)`` costs nothing.  ``to_json()`` saves them.
    guarantee : Guarantee
    cut : float or None
        Of ``"ate-winsorized"``: an outcome counts at most so far from its line, times the probability of its arm.
    event : str or None
        The level of an outcome of two levels whose frequency is compared.
    population : str
        Whose mean effect it is: ``"complete"`` records, ``"observed"``, all with treatment and confounders, whether or
        not their outcome is known, or ``"imputed"``, all records.
    share_counted : float or None
        Share of the records, noisy, that have a value of each column that is used; ``None`` of weights, of a subgroup
        and where it was not released or noise hides whether values are missing.
    fit_check : FitCheck or None
        Of method ``"boosted-aipw"``: whether its models fit.
    cluster : str
        The column whose clusters error and interval are by; empty: by rows, or persons.
    clusters : float or None
        About how many clusters of one size would vary as much: noisy, fewer where their sizes or effects differ.
    bounds_note : str
        That released sums show most records at the outcome's bounds; empty where they do not show it.
    """

    treatment: str
    outcome: str
    treated: str
    control: str
    estimand: str
    adjusted_for: tuple[str, ...]
    estimate: float | None
    interval: Interval | None = None
    interval_reason: str = ""
    coverage: float
    standard_error: float | None = None
    noise_error: float | None = None
    mean_treated: float | None = None
    mean_control: float | None = None
    risk_ratio: Ratio | None = None
    odds_ratio: Ratio | None = None
    signal_to_noise: float
    share_supported: float = 1.0
    e_value: float | None = None
    e_value_limit: float | None = None
    robustness_value: float | None = None
    robustness_value_limit: float | None = None
    by_group: tuple[GroupEffect, ...] = ()
    balance: tuple[Balance, ...] = ()
    notes: tuple[str, ...] = ()
    method: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    n: int
    release: Release | None = None
    guarantee: Guarantee = UNSTATED
    cut: float | None = None
    event: str | None = None
    population: str = "complete"
    share_counted: float | None = None
    fit_check: FitCheck | None = None
    cluster: str = ""
    clusters: float | None = None
    bounds_note: str = ""

    @property
    def measured(self) -> str:
        """What the means are of: the outcome, or how often it has the level that is counted."""
        return self.outcome if self.event is None else f"{self.outcome} = {self.event}"

    def brief(self) -> str:
        ends = ci_text(self.interval, self.coverage)
        return f"{self.treatment} on {self.measured}: {signed_text(self.estimate, self.interval)} ({ends})"

    def headline(self) -> list[str]:
        who = f"{self.n:,} {self.guarantee.records}" if not self.guarantee.subgroup else (
            f"{self.guarantee.records} with {self.guarantee.subgroup}")  # fmt: skip
        share = self.share_supported if self.is_partly_supported and self.method in STRATA else 1.0
        share *= self.share_counted or 0.0 if self._lacks_records else 1.0
        if share < 1:
            who = f"about {percent_text(share)} of {who}"
        if self.population == "imputed":
            who += ", missing values imputed"
        whom = {
            "att": ", among the treated", "slope": ", in a linear model", "overlap": ", in the overlap population",
            "ate-winsorized": ", with winsorised outcomes",
        }.get(self.estimand, "")  # fmt: skip
        arms = self.mean_treated is not None and self.mean_control is not None
        rows = [("everyone", self.estimate, self.interval, self.interval_reason)]
        rows += [(f"  {one.group}", one.estimate, one.interval, one.reason) for one in self.by_group]
        width = max(len(row[0]) for row in rows)
        lines = [f"Effect of {self.treatment} ({self.treated} vs {self.control}) on {self.measured}, {who}{whom}"]
        if arms:
            lines.append(f"{'':{width + 42}}{f'mean if {self.treated}':>12}  {f'if {self.control}':>8}")
        for place, (name, estimate, interval, _) in enumerate(rows):
            ends = ci_text(interval, self.coverage)
            means = ""
            if arms and place == 0:
                means = "  ".join(f"{number_text(mean or 0.0, decimals_of(interval)):>{wide}}"
                                  for mean, wide in ((self.mean_treated, 12), (self.mean_control, 8)))  # fmt: skip
            lines.append(f"{name:{width}}  {signed_text(estimate, interval):>9}   {ends:28}{means}".rstrip())
        errors = "" if self.standard_error is None else f"Standard error {number_text(self.standard_error)}"
        noise = "" if self.noise_error is None else f" (privacy noise {number_text(self.noise_error)}, squares add up)"
        lines.append(f"{errors}{noise}{'. ' if errors else ''}Adjusted for {self.adjusted_text} ({self.method}).")
        if self.cluster and self.clusters is not None:
            about = "" if self.interval is None else f" (about {self.clusters:.0f} clusters)"
            lines.append(f"Inference by {self.cluster}{about}.")
        return [*lines, *self.sensitivity()]

    @property
    def is_partly_supported(self) -> bool:
        """Whether the estimate leaves out strata with more than 1 % of the records, or limits the probability of
        treatment of more than 5 %."""
        least = NEARLY_ALL if self.method == "stratified" else MOSTLY
        return self.estimate is not None and self.share_supported < least

    @property
    def _lacks_records(self) -> bool:
        if self.share_counted is None or self.share_counted >= ROUNDS_TO_ALL:
            return False
        noise = getattr(self.release, "count_deviation", 0.0)
        return bool(self.missing_text) or self.n * (1 - self.share_counted) > CLEAR_MISSING * noise

    @property
    def missing_text(self) -> str:
        """How many records have a missing value in a column that is used; empty where at most 5 % have one."""
        if self.share_counted is None or self.share_counted >= 0.95:
            return ""
        share = percent_text(1 - self.share_counted)
        return (f"about {share} of the {self.guarantee.records} have a missing value in a column that is used: the "
                "estimate is for the others")  # fmt: skip

    @property
    def adjusted_text(self) -> str:
        """What is adjusted for, the column of the groups apart."""
        group = self.by_group[0].group.partition(" = ")[0] if self.by_group else ""
        others = ", ".join(name for name in self.adjusted_for if name != group)
        if group not in self.adjusted_for:
            return others or "nothing (unadjusted difference)"
        return f"{others}, within each group of {group}" if others else f"{group}, unadjusted within its groups"

    def sensitivity(self) -> list[str]:
        """Return how strong a confounder would have to be; nothing where the interval contains 0."""
        if self.e_value is None or self.interval is None or self.interval[0] <= 0 <= self.interval[1]:
            return []
        return [f"Sensitivity: a confounder would need risk ratios of at least {number_text(self.e_value)} with both "
                "treatment and outcome to explain the estimate (not in a randomised trial)."]  # fmt: skip

    def warnings(self) -> list[str]:
        reasons = [f"no confidence interval: {self.interval_reason}"] if self.interval is None else []
        return [*reasons, *filter(None, [self.bounds_note]), *self.notes]

    def technical(self) -> list[str]:
        records = {"complete": "complete records", "observed": "all records with treatment and confounders"}
        whom = f" among {self.guarantee.subgroup}" if self.guarantee.subgroup else ""
        population = records.get(self.population, "all records") + whom
        of_them = "in strata with enough of both arms" if self.method in STRATA else (
            "with a probability of treatment inside its limits")  # fmt: skip
        share = f", {percent_text(self.share_supported)} of them {of_them}" if self.method in STRATA + LIMITS else ""
        lines = [f"Method {self.method}; estimand {self.estimand}; {population}{share}; signal to noise "
                 f"{self.signal_to_noise:.3g}."]  # fmt: skip
        for name, ratio in (("Risk ratio", self.risk_ratio), ("Odds ratio", self.odds_ratio)):
            if ratio is not None and ratio.interval is not None:
                estimate = "without an estimate" if ratio.estimate is None else f"{ratio.estimate:.3g}"
                lines.append(f"{name} {estimate}, {ratio.interval[0]:.3g} to {ratio.interval[1]:.3g}.")
        lines += [f"{one.group}: no interval, {one.reason}." for one in self.by_group if one.interval is None]
        sensitivity = (("E-value", self.e_value, self.e_value_limit),
                       ("Robustness value", self.robustness_value, self.robustness_value_limit))  # fmt: skip
        for name, value, limit in sensitivity:
            if value is not None:
                of_limit = "" if limit is None else f" (of the interval: {limit:.3g})"
                lines.append(f"{name} {value:.3g}{of_limit}.")
        return lines if self.fit_check is None else [*lines, self.fit_check.text]

    def rows(self) -> list[dict[str, Any]]:
        (whole,) = super().rows()
        shared = ("treatment", "outcome", "treated", "control", "estimand", "coverage", "method", "n")
        groups = ({name: whole[name] for name in shared} | flat_row(vars(one)) for one in self.by_group)
        return [{"group": "all"} | whole, *(one | {"interval_reason": one.pop("reason")} for one in groups)]

    def plot(self, ax: Any = None, *, names: Mapping[str, str] | None = None, label: str = "") -> Any:
        """Draw the effect and its groups with their intervals.

        ``names`` are labels of groups, ``label`` is that of the axis.
        """
        groups = [((names or {}).get(one.group, one.group), one.estimate, one.interval) for one in self.by_group]
        rows = [("all", self.estimate, self.interval), *groups]
        label = label or f"effect of {self.treatment} on {self.measured}"
        return forest(rows, ax, label, self.stamp(), noise=self.noise_error)


def forest(
    rows: Sequence[tuple[str, float | None, Interval | None]], ax: Any, label: str, stamp: str,
    noise: float | None = None,
) -> Any:  # fmt: skip
    """Draw one estimate a row with its interval and, at the right, both as numbers; the first is bold. A hollow point
    has no interval.  Under the first, a thin line is what the privacy noise alone makes."""
    ax = axes(ax, (6, 0.9 + 0.3 * len(rows)))
    ax.axvline(0, color="0.5", linewidth=1, linestyle=":")
    for place, (_, estimate, interval) in enumerate(rows):
        if interval is not None:
            ax.plot(list(interval), [place, place], color=DARK, linewidth=3 if place == 0 else 2, solid_capstyle="butt")
        if estimate is not None:
            ax.plot([estimate], [place], marker="s" if place == 0 else "o", color=DARK, markersize=6,
                    fillstyle="none" if interval is None else "full")  # fmt: skip
    size = rows[0][1]
    if noise and size is not None:
        ax.plot([size - NORMAL_95 * noise, size + NORMAL_95 * noise], [0.22, 0.22], color=LIGHT, linewidth=1)
    ax.set_yticks(range(len(rows)), [name for name, _, _ in rows])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    values = ax.secondary_yaxis("right")
    values.set_yticks(range(len(rows)), [_numbers(estimate, interval) for _, estimate, interval in rows])
    values.tick_params(length=0)
    ax.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
        values.spines[side].set_visible(False)
    ax.set_xlabel(label)
    return titled(ax, stamp)


def _numbers(estimate: float | None, interval: Interval | None) -> str:
    if estimate is None:
        return "no result"
    return f"{number_text(estimate, decimals_of(interval))} ({interval_text(interval) or 'no interval'})"


def normal_reach(coverage: float) -> float:
    """Return how many standard errors an interval of a normal estimate reaches to each side."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + coverage / 2))


def accepted_slopes(excess: Callable[[float], float], steps: int, centre: float = 0, scale: float = 1) -> Intervals:
    """Return the slopes, centre + scale · tan(angle), that a test does not reject: where ``excess`` is at most 0.

    It is homogeneous in outcome and treatment: the ends of the half circle are infinite slopes.
    """
    from scipy.optimize import brentq

    def slope(angle: float) -> float:
        return centre + scale * math.tan(angle) if abs(angle) < math.pi / 2 else math.copysign(math.inf, angle)

    marked = [(angle, excess(angle) <= 0) for angle in np.linspace(-math.pi / 2, math.pi / 2, steps + 1).tolist()]
    edges = [float(brentq(excess, low, high)) for (low, one), (high, other) in pairwise(marked) if one != other]
    edges = [*[marked[0][0]] * marked[0][1], *edges, *[marked[-1][0]] * marked[-1][1]]
    return tuple((slope(low), slope(high)) for low, high in zip(edges[::2], edges[1::2], strict=True))
