"""From noisy sums by cells to an effect, its ratios, its groups, its balance: post-processing, free."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dpcausal.core import validate as public
from dpcausal.effects.cells.rare_outcomes import ENOUGH, Risk, difference, odds_ratio, ratio, risks
from dpcausal.effects.cells.standardise import ArmMeans, Sums, means, tail_quantile
from dpcausal.effects.cells.value import Value
from dpcausal.effects.result import Balance, Effect, GroupEffect, Interval, Ratio
from dpcausal.effects.unmeasured import e_value, e_value_limit, ratio_of_difference, robustness_limit, robustness_value
from dpcausal.errors import ParameterError
from dpcausal.result import Guarantee

Reals = npt.NDArray[np.float64]

LEAST_SHARE = 0.5
"""No answer where less of the records is in strata with enough of both arms."""
FIRM = 4.0
"""The ratio of risks is normal on its log if they are so many standard errors away from 0, and for odds from 1."""
RARE, LEAST_COUNTED = 0.05, 0.05
LEFT = 0.75
"""So much of what an answer moves by where the parts of numbers are twice as wide may be left in it: measured."""
MOST_SKEW = 0.35
"""No normal interval where the skewness of the difference could be more: one covers 0.92 of a nominal 0.95 there."""
WIDEST = 0.5
"""No interval for any skew that would be so many widths of the outcome's range at either side."""

SKEWED = "an arm has too few records for how skewed the outcome can be within its bounds: narrower bounds would help"
WIDE = (
    "the interval is {:.2g} times as wide as a normal one: it allows for any skew within the outcome's bounds, as an "
    "arm has few records for them; narrower bounds would help"
)
MOST_IN_A_PART = 0.6
"""No interval where one part of a number that nobody cut has more of the records: it is not adjusted for then."""
CROWDED = (
    "one part of {!r} has {:.0%} of the records, which leaves it unadjusted: declare bounds nearer to where records "
    "lie, or cuts"
)
UNSUPPORTED = "less than half of the records is in strata with enough of both arms for the noise"
EMPTY = "less than half of the records is in strata with two records or more of both arms: adjust for fewer columns"
FEW_COUNT = (
    "hardly any record counts: most have a missing value of the call, or hold levels, weights or numbers that are "
    "not as declared; schema.check(frame) shows the curator which, before anything is paid"
)


class ReleasedCells(Protocol):
    """What an effect is read off: noisy sums of values by the cells of some columns."""

    @property
    def by(self) -> tuple[str, ...]: ...
    @property
    def levels(self) -> tuple[tuple[str, ...], ...]: ...
    @property
    def cut(self) -> tuple[str, ...]: ...
    @property
    def observed(self) -> Reals | None: ...
    @property
    def n(self) -> int: ...
    @property
    def guarantee(self) -> Guarantee: ...
    def value(self, name: str) -> Value: ...
    def sums(self, value: Value, axes: Sequence[int]) -> tuple[Reals, Reals]: ...
    def arms(self, value: Value, treatment: int, pair: tuple[int, int], strata: Sequence[int]) -> Sums: ...


def checked_names(what: str, names: Any, known: Iterable[str]) -> tuple[str, ...]:
    """Return a list of different names that are all known."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ParameterError(f"{what} must be a list of column names")
    listed, there = tuple(names), tuple(known)
    for name in listed:
        if name not in there:
            raise ParameterError(f"{what}: a column that was not released; there are {', '.join(there)}")
    if len(set(listed)) < len(listed):
        raise ParameterError(f"{what} names a column twice")
    return listed


def level_text(level: object, levels: Sequence[str]) -> str | None:
    """Return the text among those of levels that a level goes by, numbers and booleans by number; ``None`` if none."""
    texts = [str(level)]
    if isinstance(level, (int, float, np.integer, np.floating, np.bool_)) and math.isfinite(level) and level % 1 == 0:
        texts += [str(int(level)), *([str(bool(level))] if level in (0, 1) else [])]
    return next((text for text in texts if text in levels), None)


def arms_of(levels: tuple[str, ...], treatment: str, treated: object, control: object) -> tuple[int, int]:
    """Return the codes of control and treated; of two levels the second is treated by default."""
    chosen = []
    for what, level in (("control", control), ("treated", treated)):
        if level is None and len(levels) != 2:
            some = f"{', '.join(levels[:8])}{', ...' if len(levels) > 8 else ''}"
            two = f"{treatment!r} has {len(levels)} levels: {some}"
            hint = "name two of them as treated and control"
            raise ParameterError(two, argument=what, rule="two-levels", value=level, hint=hint)
        text = level_text(level, levels)
        if level is not None and text is None:
            raise ParameterError(f"{what} must be a level of {treatment!r}: {', '.join(levels)}")
        chosen.append(None if text is None else levels.index(text))
    first = chosen[0] if chosen[0] is not None else 0 if chosen[1] is None else 1 - chosen[1]
    second = chosen[1] if chosen[1] is not None else 1 - first
    if first == second:
        raise ParameterError("treated and control must be different levels")
    return first, second


def standardized_effect(
    release: ReleasedCells, *, treatment: str, outcome: str, adjust: Any, groups: str | None, estimand: str,
    treated: object, control: object, coverage: Any,
) -> Effect:  # fmt: skip
    """Return ``NoisyCells.effect`` without its release."""
    from scipy.special import ndtri

    value = release.value(outcome)
    if value.degree == 0:
        raise ParameterError("no values were released, only counts")
    (treatment,) = checked_names("treatment", [treatment], release.by)
    adjusted = checked_names("adjust", adjust, release.by)
    grouped = () if groups is None else checked_names("groups", [groups], release.by)
    if treatment in (*adjusted, *grouped):
        raise ParameterError("the treatment is not adjusted for")
    treated_only = public.check_choice("estimand", estimand, ("ate", "att")) == "att"
    reach = float(ndtri(0.5 + public.number("coverage", coverage, 0.5, 0.999) / 2))
    names = (*grouped, *(name for name in adjusted if name not in grouped))
    axis, strata = release.by.index(treatment), [release.by.index(name) for name in names]
    pair = arms_of(release.levels[axis], treatment, treated, control)
    sums, sizes = release.arms(value, axis, pair, strata), [len(release.levels[one]) for one in strata]
    merged = [place for place, name in enumerate(names) if name in release.cut and name not in grouped]
    each = [sums, *(sums.coarser(sizes, merged, first) for first in (0, 1) if merged)]
    whole, crowd = sums.N.sum(axis=0).reshape(sizes), crowded(sums.N.sum(axis=0).reshape(sizes), names, merged)
    answer = Answer(each, treated_only, reach, value, crowd)
    by_group = []
    for place, level in enumerate(release.levels[strata[0]] if grouped else ()):
        chosen = [one.part(np.arange(one.N.shape[1]) // (one.N.shape[1] // sizes[0]) == place) for one in each]
        one = Answer(chosen, treated_only, reach, value, crowded(whole[[place]], names, merged))
        by_group.append(GroupEffect(f"{groups} = {level}", one.estimate, one.interval, one.reason, one.share))
    share_treated = float(sums.N[1].sum() / max(sums.N.sum(), 1.0))
    return Effect(
        treatment=treatment, outcome=outcome, treated=release.levels[axis][pair[1]],
        control=release.levels[axis][pair[0]], estimand=estimand, adjusted_for=names,
        estimate=answer.estimate, interval=answer.interval, interval_reason=answer.reason, coverage=float(coverage),
        standard_error=answer.error("covariance"), noise_error=answer.error("noise"),
        mean_treated=answer.mean(1), mean_control=answer.mean(0),
        risk_ratio=answer.risk_ratio(), odds_ratio=answer.odds_ratio(),
        signal_to_noise=sums.ratio, share_supported=answer.share, **answer.unmeasured(),
        by_group=tuple(by_group), balance=balance(release, axis, pair, strata, value),
        notes=(*notes(answer.share, share_treated), *answer.parts,
               *few_count_note(float(release.sums(value, ())[0][0]), release.n)),
        method="stratified", n=release.n, guarantee=release.guarantee,
        event=value.event, population="complete" if release.observed is None else "observed",
    )  # fmt: skip


def notes(share: float, treated: float) -> tuple[str, ...]:
    """Return what released shares say against an answer."""
    texts = []
    if LEAST_SHARE <= share < 0.95:
        texts.append(f"about {1 - share:.0%} of the records are in strata without both arms and do not count")
    if min(treated, 1 - treated) < RARE:
        texts.append(f"one arm has less than {RARE:.0%} of the records")
    return tuple(texts)


def few_count_note(counted: float, n: int) -> tuple[str, ...]:
    """Return what to look at where hardly any record counts: released numbers show it."""
    return (FEW_COUNT,) if counted < LEAST_COUNTED * n else ()


def crowded(records: Reals, names: Sequence[str], merged: Iterable[int]) -> str:
    """Return why parts of one width adjust for little, from the records by strata; empty where they do."""
    for place in merged:
        each = np.maximum(records.sum(axis=tuple(axis for axis in range(records.ndim) if axis != place)), 0.0)
        if each.max() > MOST_IN_A_PART * each.sum():
            return CROWDED.format(names[place], float(each.max() / each.sum()))
    return ""


class Answer:
    """The effect in some strata, in the outcome's unit."""

    def __init__(
        self, each: Sequence[Sums], treated_only: bool, reach: float, value: Value, crowd: str = ""
    ) -> None:
        self.reach, self.value, sums = reach, value, each[0]
        self.coarser = [Answer([one], treated_only, reach, value) for one in each[1:]]
        supported = sums.supported
        total = sums.standard.sum()
        self.share = float(np.clip(sums.standard[:, supported].sum() / total, 0, 1)) if total > 0 else 0.0
        self.means: ArmMeans | None = None
        if supported.any() and self.share >= LEAST_SHARE:
            self.means = means(sums.part(supported), treated_only, sums.left_out_by_chance)
        self.risks: tuple[Risk, Risk] | None = None
        if self.means is not None and value.degree == 1:
            self.risks = risks(sums.part(supported), self.means, treated_only, reach)
        self.skewed = self.means is not None and self.risks is None and self.means.skew > MOST_SKEW
        self.unsupported = UNSUPPORTED if sums.noise[0, 0] > 0 else EMPTY
        self.reason = self.unsupported if self.means is None else crowd
        if self.skewed and self.half > WIDEST * value.width:
            self.reason = SKEWED

    @property
    def rare(self) -> bool:
        """Whether so few have the outcome, or do not, that normal limits do not hold."""
        return self.risks is not None and min(risk.rarer for risk in self.risks) < ENOUGH

    def error(self, which: str) -> float | None:
        """Return a standard error of the difference, by the whole covariance or the noise alone."""
        if self.means is None:
            return None
        matrix: Reals = getattr(self.means, which)
        return math.sqrt(float(matrix[0, 0] + matrix[1, 1] - 2 * matrix[0, 1])) * self.value.width

    def mean(self, arm: int) -> float | None:
        return None if self.means is None else self.value.lower + self.value.width * float(self.means.values[arm])

    @property
    def estimate(self) -> float | None:
        if self.means is None:
            return None
        return float(self.means.values[1] - self.means.values[0]) * self.value.width

    @property
    def half(self) -> float:
        """Return half the width of an interval, but for what may vary within the parts of numbers."""
        error, adjusted = self.error("covariance"), self.means
        if error is None or adjusted is None:
            return 0.0
        if not self.skewed:
            return self.reach * error
        return tail_quantile(error**2, adjusted.far * self.value.width, self.reach)

    @property
    def interval(self) -> Interval | None:
        estimate, error = self.estimate, self.error("covariance")
        if self.reason or estimate is None or error is None:
            return None
        low, high = estimate - self.half, estimate + self.half
        if self.risks is not None and self.rare:
            low, high = difference(*self.risks, error**2, self.reach)
        return low - self.left, high + self.left

    @property
    def left(self) -> float:
        """Return what may vary within the parts of numbers, of the difference.

        Where parts are twice as wide, a smooth curve leaves four times as much; a step one and a half times as much or
        more, by where in its part it is.
        """
        own = self.estimate
        there = [] if own is None else [one.estimate - own for one in self.coarser if one.estimate is not None]
        return LEFT * max(map(abs, there), default=0.0)

    @property
    def parts(self) -> tuple[str, ...]:
        error = self.error("covariance")
        if self.interval is None or error is None:
            return ()
        left = f"the interval is wider by {self.left:.2g} at both ends for what may vary within parts of numbers"
        wide = WIDE.format(self.half / max(self.reach * error, 1e-300))
        return tuple(text for text, applies in ((left, self.left > 0), (wide, self.skewed)) if applies)

    def _ratio(self, read: Any, slopes: Any, firm: Any, limits: Any) -> Ratio | None:
        """Return exp of a difference of transformed risks, by the delta method on that scale; others where rare."""
        if self.value.degree != 1:
            return None
        if self.means is None or self.risks is None:
            return Ratio(None, None, self.unsupported)
        two, matrix = self.means.values, self.means.covariance
        left = self.left / self.value.width  # may be in either risk
        if self.rare or any(firm(risk) < FIRM * math.sqrt(matrix[a, a]) for a, risk in enumerate(two)):
            middle, ends = limits(*self.risks, self.reach)
            wider = math.exp(min(left / max(float(two.max()), 1e-9), 700.0))
            return Ratio(middle, (ends[0] / wider, ends[1] * wider))
        slope = np.array([-slopes(two[0]), slopes(two[1])])
        log, error = float(read(two[1]) - read(two[0])), math.sqrt(float(slope @ matrix @ slope))
        half = self.reach * error + left * float(np.abs(slope).max())
        return Ratio(math.exp(log), (math.exp(log - half), math.exp(min(log + half, 700.0))))

    def risk_ratio(self) -> Ratio | None:
        return self._ratio(math.log, lambda p: 1 / p, lambda p: p, ratio)

    def odds_ratio(self) -> Ratio | None:
        return self._ratio(
            lambda p: math.log(p / (1 - p)), lambda p: 1 / (p * (1 - p)), lambda p: min(p, 1 - p), odds_ratio
        )

    def unmeasured(self) -> dict[str, Any]:
        """Return E-values and robustness values, of the estimate and of the interval's limit; none without it."""
        adjusted, estimate, ends, risk = self.means, self.estimate, self.interval, self.risk_ratio()
        values: dict[str, Any] = dict.fromkeys(UNMEASURED)
        if adjusted is None or estimate is None or ends is None or not adjusted.partial_r2 < 1:  # as no share is
            return values
        robust = robustness_value(adjusted.partial_r2)
        values |= unmeasured_fields(robust, estimate, ends, math.sqrt(adjusted.spread) * self.value.width)
        if risk is None:
            return values
        values |= {"e_value": None, "e_value_limit": None}
        if risk.estimate is None or risk.interval is None:
            return values
        return values | {"e_value": e_value(risk.estimate), "e_value_limit": e_value_limit(risk.interval)}


UNMEASURED = ("e_value", "e_value_limit", "robustness_value", "robustness_value_limit")


def e_value_fields(estimate: float, ends: Interval, deviation: float) -> dict[str, float | None]:
    """Return the E-values of a difference and its interval, from the outcome's standard deviation."""
    if not deviation > 0:
        return {"e_value": None, "e_value_limit": None}
    low, high = (ratio_of_difference(end, deviation) for end in ends)
    return {"e_value": e_value(ratio_of_difference(estimate, deviation)), "e_value_limit": e_value_limit((low, high))}


def unmeasured_fields(
    robust: float | None, estimate: float, interval: Interval | None, deviation: float
) -> dict[str, float | None]:
    """Return E-values and robustness values of a difference; none without an interval."""
    if robust is None or interval is None:
        return {}
    fields: dict[str, float | None] = e_value_fields(estimate, interval, deviation)
    return fields | {"robustness_value": robust, "robustness_value_limit": robustness_limit(robust, estimate, interval)}


def balance(
    release: ReleasedCells, treatment: int, pair: tuple[int, int], strata: list[int], value: Value
) -> tuple[Balance, ...]:
    """Return how the arms differ in each level of the strata's columns, the first level left out."""
    rows = []
    for axis in strata:
        (N, _, _), noise = release.sums(value, (treatment, axis))
        arms, size = N[list(pair)], N.shape[1]
        totals = np.maximum(arms.sum(axis=1), 1.0)
        shares = np.clip(arms / totals[:, None], 0, 1)
        # A share's noise: its own count's, and that of the total, of which it is a part.
        spread = noise[0, 0] * (1 - 2 * shares + size * shares**2) / totals[:, None] ** 2
        for place in range(1, size):
            p = shares[:, place]
            pooled = math.sqrt(max(float((p * (1 - p)).mean()), 1e-12))
            rows.append(
                Balance(
                    f"{release.by[axis]} = {release.levels[axis][place]}", float(p[1]), float(p[0]),
                    float(p[1] - p[0]) / pooled, math.sqrt(float(spread[:, place].sum())) / pooled,
                )
            )  # fmt: skip
    return tuple(rows)
