"""From noisy sums by cells to an effect, its ratios, groups and balance, and how strong an unmeasured cause would be.

All of it is post-processing of released numbers, free.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.core import validate as public
from dpcausal.effects.cells import standardise
from dpcausal.effects.cells.corner_counts import NoisyCells, Value, arms_of
from dpcausal.effects.cells.standardise import ArmMeans, Risk, Sums
from dpcausal.effects.result import NEARLY_ALL, Balance, Effect, GroupEffect, Ratio, normal_reach
from dpcausal.errors import ParameterError
from dpcausal.releases.release import estimate_release
from dpcausal.result import percent_text

UNMEASURED = ("e_value", "e_value_limit", "robustness_value", "robustness_value_limit")
LEAST_SHARE = 0.5
"""No answer where less of the records is in strata with enough of both arms."""
FIRM = 4.0
"""The ratio of risks is normal on its log if they are so many standard errors away from 0, and for odds from 1."""
RARE = 0.05
EXTRAPOLATED, LEFT = 1 / 3, 0.75
"""Of what an estimate moves by from parts of numbers that are twice as wide: what is added, and what may be left after
it.  A smooth curve leaves a quarter in parts half as wide, so that the estimate moves by three times what it is off."""
MOST_SKEW = 0.35
"""No normal interval where the skewness of the difference could be more: one covers 0.92 of a nominal 0.95 there."""
WIDEST = 0.5
"""No interval for any skew that would be so many widths of the outcome's range at either side."""

SKEWED = "an arm has too few records for how skewed the outcome can be within its bounds: narrower bounds would help"
WIDE = (
    "the interval is {:.2g} times as wide as a normal one: it allows for any skew within the outcome's bounds, as an "
    "arm has few records for them; narrower bounds would help"
)
WIDE_GROUPS = (
    "intervals of {} are wider than normal ones: they allow for any skew within the outcome's bounds, as an arm has "
    "few records there; narrower bounds would help"
)
MOST_IN_A_PART = 0.6
"""No interval where one part of a number that nobody cut has more of the records: it is not adjusted for then."""
CROWDED = (
    "one part of {!r} has {:.0%} of the records, which leaves it unadjusted: declare bounds nearer to where records "
    "lie, or cuts"
)
UNSUPPORTED = "less than half of the records is in strata with enough of both arms for the noise"
EMPTY = "less than half of the records is in strata with two records or more of both arms: adjust for fewer columns"


@estimate_release.register(NoisyCells)
def standardized_effect(
    release: NoisyCells, *, treatment: str, outcome: str, adjust: Any, groups: str | None, estimand: str,
    treated: object, control: object, coverage: Any, within_parts: tuple[float, float] = (0.0, 0.0),
) -> Effect:  # fmt: skip
    value = release.value(outcome)
    if value.degree == 0:
        raise ParameterError("no values were released, only counts")
    (treatment,) = public.names("treatment", [treatment], known=release.by)
    adjusted = public.names("adjust", adjust, known=release.by)
    grouped = () if groups is None else public.names("groups", [groups], known=release.by)
    if treatment in (*adjusted, *grouped):
        raise ParameterError("the treatment is not adjusted for")
    treated_only = public.check_choice("estimand", estimand, ("ate", "att")) == "att"
    reach = normal_reach(public.number("coverage", coverage, 0.5, 0.999))
    names = (*grouped, *(name for name in adjusted if name not in grouped))
    axis, strata = release.by.index(treatment), [release.by.index(name) for name in names]
    pair = arms_of(release.levels[axis], treatment, treated, control)
    sums, sizes = release.arms(value, axis, pair, strata), [len(release.levels[one]) for one in strata]
    merged = [place for place, name in enumerate(names) if name in release.cut and name not in grouped]
    parents = [standardise.parents_of(sizes, merged, first) for first in (0, 1) if merged]
    whole = sums.N.sum(axis=0).reshape(sizes)
    crowd = crowded(whole, names, merged)
    fields, own_notes = fields_in(sums, parents, treated_only, reach, value, crowd, within_parts)
    by_group, wide = [], list[str]()
    for place, level in enumerate(release.levels[strata[0]] if grouped else ()):
        chosen = np.arange(sums.N.shape[1]) // (sums.N.shape[1] // sizes[0]) == place
        crowd = crowded(whole[[place]], names, merged)
        coarser = [one[chosen] for one in parents]
        one, group_notes = fields_in(sums.part(chosen), coarser, treated_only, reach, value, crowd, within_parts)
        own = (one[name] for name in ("estimate", "interval", "interval_reason", "share_supported"))
        by_group.append(GroupEffect(f"{groups} = {level}", *own))
        wide += [by_group[-1].group] if any(WIDE.rpartition("}")[2] in note for note in group_notes) else []
    share_treated = float(sums.N[1].sum() / max(sums.N.sum(), 1.0))
    return Effect(
        treatment=treatment, outcome=outcome, treated=release.levels[axis][pair[1]],
        control=release.levels[axis][pair[0]], estimand=estimand, adjusted_for=names, coverage=float(coverage),
        signal_to_noise=sums.ratio, by_group=tuple(by_group), balance=balance(release, axis, pair, strata, value),
        **fields,
        notes=(*notes(fields["share_supported"], share_treated, "the treated" if treated_only else "the records"),
               *own_notes, *([WIDE_GROUPS.format(", ".join(wide))] if wide else [])),
        method="stratified", n=release.n, guarantee=release.guarantee,
        event=value.event, population="complete" if release.observed is None else "observed",
    )  # fmt: skip


def notes(share: float, treated: float, whose: str) -> tuple[str, ...]:
    texts = []
    if LEAST_SHARE <= share < NEARLY_ALL:
        texts.append(f"about {percent_text(1 - share)} of {whose} are not in the estimate: their strata have too "
                     "few of one arm. Fewer columns or coarser cuts in adjust would include more")  # fmt: skip
    return *texts, *rare_arm_note(treated)


def rare_arm_note(treated: float) -> tuple[str, ...]:
    return (f"one arm has less than {percent_text(RARE)} of the records",) if min(treated, 1 - treated) < RARE else ()


def crowded(records: Reals, names: Sequence[str], merged: Iterable[int]) -> str:
    """Return why parts of one width adjust for little, from the records by strata; empty where they do."""
    for place in merged:
        each = np.maximum(records.sum(axis=tuple(axis for axis in range(records.ndim) if axis != place)), 0.0)
        if each.max() > MOST_IN_A_PART * each.sum():
            return CROWDED.format(names[place], float(each.max() / each.sum()))
    return ""


def fields_in(
    sums: Sums, parents: Sequence[Integers], treated_only: bool, reach: float, value: Value, crowd: str = "",
    within_parts: tuple[float, float] = (0.0, 0.0),
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the fields of an effect in some strata, of coarser ones ``parents``, and its notes."""
    supported, width = sums.supported, value.width
    weights = sums.weights(treated_only)
    total = weights.sum()
    share = float(np.clip(weights[supported].sum() / total, 0, 1)) if total > 0 else 0.0
    if not supported.any() or share < LEAST_SHARE:
        reason = UNSUPPORTED if sums.noise[0, 0] > 0 else EMPTY
        none = Ratio(None, None, reason) if value.degree == 1 else None
        return {"estimate": None, "interval": None, "interval_reason": reason, "share_supported": share,
                "risk_ratio": none, "odds_ratio": none}, ()  # fmt: skip
    inside = sums.part(supported)
    adjusted = standardise.means(inside, treated_only, sums.left_out_by_chance)
    adjusted, left = _extrapolated(inside, adjusted, [one[supported] for one in parents], treated_only)
    left *= width
    risks = standardise.risks(inside, adjusted, treated_only, reach) if value.degree == 1 else None
    estimate = float(adjusted.values[1] - adjusted.values[0]) * width
    error, noise = (math.sqrt(float(one[0, 0] + one[1, 1] - 2 * one[0, 1])) * width
                    for one in (adjusted.covariance, adjusted.noise))  # fmt: skip
    below, above = (max(left, one) for one in within_parts)
    skewed = risks is None and adjusted.skew > MOST_SKEW
    half = standardise.tail_quantile(error**2, adjusted.far * width, reach) if skewed else reach * error
    reason = SKEWED if skewed and half > WIDEST * width else crowd
    low, high = estimate - half, estimate + half
    if risks is not None and _is_rare(risks):
        low, high = standardise.difference(*risks, error**2, reach)
    interval = None if reason else (low - below, high + above)
    risk_ratio = odds_ratio = None
    if risks is not None:
        risk_ratio, odds_ratio = _ratios(adjusted, risks, below / width, above / width, reach)
    control, treated = (value.lower + width * float(one) for one in adjusted.values)
    fields = {
        "estimate": estimate, "interval": interval, "interval_reason": reason, "standard_error": error,
        "noise_error": noise, "mean_treated": treated, "mean_control": control, "risk_ratio": risk_ratio,
        "odds_ratio": odds_ratio, "share_supported": share,
    }  # fmt: skip
    if interval is None:
        return fields, ()
    if adjusted.partial_r2 < 1:
        robust, deviation = robustness_value(adjusted.partial_r2), math.sqrt(adjusted.spread) * width
        fields |= unmeasured_fields(robust, estimate, interval, deviation)
        if risk_ratio is not None:
            fields |= {"e_value": None, "e_value_limit": None}
            if risk_ratio.estimate is not None and risk_ratio.interval is not None:
                fields |= {"e_value": e_value(risk_ratio.estimate), "e_value_limit": e_value_limit(risk_ratio.interval)}
    sides = f"{below:.2g} at both ends" if below == above else f"{below:.2g} below and {above:.2g} above"
    texts = ((f"the interval is wider by {sides} for what may vary within parts of numbers", max(below, above) > 0),
             (WIDE.format(half / max(reach * error, 1e-300)), skewed))  # fmt: skip
    return fields, tuple(text for text, applies in texts if applies)


def _extrapolated(
    sums: Sums, adjusted: ArmMeans, parents: Sequence[Integers], treated_only: bool
) -> tuple[ArmMeans, float]:
    """Return the means as narrower parts of numbers would have them, and how much may be left in the difference.

    Wider parts move them by what is not adjusted for, and by noise: the share of the square that is not noise counts.
    """
    if not parents:
        return adjusted, 0.0
    labels = [np.unique(one, return_inverse=True)[1] for one in parents]
    coarser = [standardise.means(sums.merged(own), treated_only) for own in labels]
    moved = np.array([adjusted.values - one.values for one in coarser])
    slopes = adjusted.slopes - np.mean([one.slopes[..., own] for one, own in zip(coarser, labels, strict=True)], axis=0)
    gaps, mean = moved[:, 1] - moved[:, 0], moved.mean(axis=0)
    square = float(mean[1] - mean[0]) ** 2
    clear = max(1 - sums.variance(*slopes) / square, 0.0) if square > 0 else 0.0
    values = np.clip(adjusted.values + EXTRAPOLATED * clear * mean, 0.0, 1.0)
    return replace(adjusted, values=values), LEFT * clear * float(np.abs(gaps).max())


def _is_rare(risks: tuple[Risk, Risk]) -> bool:
    return min(risk.rarer for risk in risks) < standardise.ENOUGH


def _ratios(
    adjusted: ArmMeans, risks: tuple[Risk, Risk], below: float, above: float, reach: float
) -> tuple[Ratio, Ratio]:
    """Return the ratios of risks and of odds: by the delta method on their logs, where rare by the risks' limits."""
    two, matrix = adjusted.values, adjusted.covariance

    def ratio(read: Any, slopes: Any, firm: Any, limits: Any) -> Ratio:
        if _is_rare(risks) or any(firm(risk) < FIRM * math.sqrt(matrix[a, a]) for a, risk in enumerate(two)):
            middle, ends = limits(*risks, reach)
            lower, upper = (math.exp(min(one / max(float(two.max()), 1e-9), 700.0)) for one in (below, above))
            return Ratio(middle, (ends[0] / lower, ends[1] * upper))  # what is left may be in either risk
        slope = np.array([-slopes(two[0]), slopes(two[1])])
        log, error = float(read(two[1]) - read(two[0])), math.sqrt(float(slope @ matrix @ slope))
        half, most = reach * error, float(np.abs(slope).max())
        lower, upper = log - half - below * most, min(log + half + above * most, 700.0)
        return Ratio(math.exp(log), (math.exp(lower), math.exp(upper)))

    return ratio(math.log, lambda p: 1 / p, lambda p: p, standardise.ratio), ratio(
        lambda p: math.log(p / (1 - p)), lambda p: 1 / (p * (1 - p)), lambda p: min(p, 1 - p), standardise.odds_ratio
    )


def balance(
    release: NoisyCells, treatment: int, pair: tuple[int, int], strata: list[int], value: Value
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
            pooled, noisy = math.sqrt(max(float((p * (1 - p)).mean()), 1e-12)), float(spread[:, place].sum())
            sampled = float((p * (1 - p) / totals).sum())
            rows.append(
                Balance(
                    f"{release.by[axis]} = {release.levels[axis][place]}", float(p[1]), float(p[0]),
                    float(p[1] - p[0]) / pooled, math.sqrt(noisy) / pooled, math.sqrt(noisy + sampled) / pooled,
                )
            )  # fmt: skip
    return tuple(rows)


def e_value(ratio: float) -> float:
    """Return the E-value of a risk ratio: both its links would have to be so strong to explain it away.

    E = RR + √(RR (RR − 1)),  RR or 1/RR, whichever is above 1

    *Source*: VanderWeele & Ding (2017).

    Examples
    --------
    >>> round(e_value(3.9), 2)
    7.26
    """
    if not ratio > 0:
        return math.inf
    above = max(ratio, 1 / ratio)
    return above + math.sqrt(above * (above - 1))


def e_value_limit(interval: tuple[float, float]) -> float:
    """Return the E-value of the limit nearest 1; 1 if the interval holds it."""
    low, high = interval
    return 1.0 if low <= 1 <= high else e_value(low if low > 1 else high)


def robustness_value(partial_r2: float) -> float:
    """Return the share of both treatment and outcome that a cause must explain to bring the effect to 0.

    RV = ½ (√(f⁴ + 4f²) − f²),  f² = R²/(1 − R²)

    *Source*: Cinelli & Hazlett (2020).  R² is that of released sums, never of an error that counts noise.

    Examples
    --------
    >>> round(robustness_value(0.0219), 3)
    0.139
    """
    if not partial_r2 < 1:
        return 1.0
    f2 = max(partial_r2, 0.0) / (1 - max(partial_r2, 0.0))
    return 0.5 * (math.sqrt(f2 * f2 + 4 * f2) - f2)


def robustness_limit(value: float, estimate: float, interval: tuple[float, float]) -> float:
    """Return the robustness value of the limit nearest 0, from that of the estimate; 0 if the interval holds 0.

    f shrinks as the effect does; with f² = RV²/(1 − RV) it is read off the value.

    *Source*: Cinelli & Hazlett (2020), RV_{1,α}; their Table 1 has 7.6 % for t = 4.18 and 783 degrees of freedom.

    Examples
    --------
    >>> round(robustness_limit(0.139, 4.18, (4.18 - 1.96, 4.18 + 1.96)), 3)
    0.076
    """
    low, high = interval
    if low <= 0 <= high or not 0 < value < 1:
        return 0.0 if low <= 0 <= high else value
    f2 = value**2 / (1 - value) * (min(abs(low), abs(high)) / estimate) ** 2
    return robustness_value(f2 / (1 + f2))


def benchmark(outcome: float, treatment: float) -> tuple[float, float] | None:
    """Return the shares of an unmeasured cause as strong as a measured one; ``None`` if none can be so strong.

    Of the measured one ``outcome`` and ``treatment`` are the partial R² with each, all else held.

    *Source*: Cinelli & Hazlett (2020), Section 4.4, k = 1.

    Examples
    --------
    >>> tuple(round(share, 3) for share in benchmark(0.109, 0.00908))
    (0.125, 0.009)
    """
    of_treatment = treatment / (1 - treatment)
    if of_treatment >= 1:
        return None
    between = treatment**2 / ((1 - treatment) * (1 - treatment))
    link = (1 + math.sqrt(between)) / math.sqrt(1 - between)
    of_outcome = link**2 * outcome / (1 - outcome)
    return (of_outcome, of_treatment) if of_outcome < 1 else None


def unmeasured_fields(
    robust: float | None, estimate: float, interval: tuple[float, float] | None, deviation: float
) -> dict[str, float | None]:
    """Return E-values and robustness values of a difference, from the outcome's deviation; none without an interval.

    A difference of d deviations corresponds to the risk ratio exp(0.91 d).

    *Source*: VanderWeele & Ding (2017), after Chinn (2000).
    """
    if robust is None or interval is None:
        return {}
    values: dict[str, float | None] = {"e_value": None, "e_value_limit": None}
    if deviation > 0:
        ratio, low, high = (math.exp(min(0.91 * one / deviation, 50.0)) for one in (estimate, *interval))
        values = {"e_value": e_value(ratio), "e_value_limit": e_value_limit((low, high))}
    return values | {"robustness_value": robust, "robustness_value_limit": robustness_limit(robust, estimate, interval)}
