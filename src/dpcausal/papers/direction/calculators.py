"""How likely noise leaves the direction as it is: the distributions of the paper's theorems and of our own releases.

All are functions of public numbers; nothing here reads data.  Before a release: P(the noisy winner is the true winner)
at a margin that is assumed.  After it (``…_tail``): how easily noise alone makes a margin as large as the released one.
"""

import math
import sys

from dpcausal.core import validate as public


def _checked_ratio(margin: float, scale: float) -> float:
    ratio = public.number("margin", margin, 0, sys.float_info.max) / _positive("scale", scale)
    return min(ratio, 1e12)  # beyond, e^−t is 0 and sums of t lose their units


def _positive(name: str, value: float) -> float:
    return public.number(name, value, math.ulp(0.0), sys.float_info.max)


def two_draws(margin: float, scale: float) -> float:
    """Return P(correct) when each of two scores gets Laplace noise: Theorem 2 of the paper.

    P = 1 − (γ + 2σ)/(4σ) · e^{−γ/σ}, γ ≥ 0 the ``margin`` between the scores, σ > 0 the ``scale`` of each draw.
    *Source*: Kusner et al. (2016), Theorem 2; right as printed.

    >>> two_draws(0, 1)
    0.5
    """
    t = _checked_ratio(margin, scale)
    return 1 - (t + 2) / 4 * math.exp(-t)


def four_draws(margin: float, scale: float) -> float:
    """Return P(correct) when each of four log IQRs gets Laplace noise: Theorem 4(2) of the paper.

    P = 1 − e^{−γ/σ} (48σ³ + 33σ²γ + 9σγ² + γ³)/(96σ³), γ ≥ 0 the ``margin`` between the two sums of log IQRs.
    *Source*: Kusner et al. (2016), Theorem 4(2); right as printed.  Its part (1) cannot hold as stated.

    >>> four_draws(0, 1)
    0.5
    """
    t = _checked_ratio(margin, scale)
    return 1 - math.exp(-t) * (48 + 33 * t + 9 * t**2 + t**3) / 96


def one_draw(margin: float, scale: float) -> float:
    """Return P(correct) when the difference of the scores gets one Laplace draw: 1 − ½ e^{−γ/b}.

    At equal total ε the scale b is the same 2Δ/ε as that of each of two draws, and the failure is smaller by the
    factor 2/(2 + γ/b).

    >>> one_draw(0, 1)
    0.5
    """
    return 1 - math.exp(-_checked_ratio(margin, scale)) / 2


def flip_draw(distance: int, epsilon: float) -> float:
    """Return P(correct) when the signed flip distance gets two-sided geometric noise: 1 − e^{−εd}/(1 + e^{−ε}).

    d ≥ 1 is the number of records that must change for the other direction to win.

    >>> round(flip_draw(10, 0.5), 4)
    0.9958
    """
    epsilon = _positive("epsilon", epsilon)
    distance = public.whole("distance", distance, 1, 2**63)
    return 1 - math.exp(-epsilon * distance) / (1 + math.exp(-epsilon))


def one_draw_tail(margin: float, scale: float) -> float:
    """Return P(|z| ≥ |margin|) of one Laplace draw: how easily noise alone makes such a margin.

    >>> one_draw_tail(0, 1)
    1.0
    """
    return math.exp(-_checked_ratio(abs(margin), scale))


def two_draws_tail(margin: float, scale: float) -> float:
    """Return P(|z₁ − z₂| ≥ |margin|) of two Laplace draws: (1 + t/2) e^{−t}, t = |margin|/scale."""
    t = _checked_ratio(abs(margin), scale)
    return (1 + t / 2) * math.exp(-t)


def flip_draw_tail(distance: int, epsilon: float) -> float:
    """Return how easily geometric noise alone makes a signed flip distance, of a true one of 0 or −1: two-sided."""
    steps = max(distance, -1 - distance)
    return min(1.0, 2 * math.exp(-epsilon * steps) / (1 + math.exp(-epsilon))) if steps else 1.0
