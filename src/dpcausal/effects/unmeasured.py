"""How strong an unmeasured cause would have to be: post-processing of released numbers, free."""

from __future__ import annotations

import math

UNMEASURED = ("e_value", "e_value_limit", "robustness_value", "robustness_value_limit")


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
    if between >= 1:
        return None
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
