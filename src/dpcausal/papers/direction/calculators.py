"""How likely noise leaves the direction as it is: the distributions of the paper's theorems and of our own releases.

All are functions of public numbers; nothing here reads data.  Before a release: P(the noisy winner is the true winner)
at a margin that is assumed.  After it (``…_tail``): how easily noise alone makes a margin as large as the released one.
"""

import math

import numpy as np

from dpcausal.errors import ParameterError


def _is_finite(value: object) -> bool:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:  # an integer beyond a float's range
        return False


def _checked(margin: float, scale: float) -> float:
    if not (_is_finite(margin) and margin >= 0):
        raise ParameterError("the margin must be finite and at least 0")
    if not (_is_finite(scale) and scale > 0):
        raise ParameterError("the noise scale must be finite and above 0")
    return min(float(margin) / float(scale), 1e12)  # beyond, e^−t is 0 and sums of t lose their units


def two_draws(margin: float, scale: float) -> float:
    """Return P(correct) when each of two scores gets Laplace noise: Theorem 2 of the paper.

    P = 1 − (γ + 2σ)/(4σ) · e^{−γ/σ}

    where γ ≥ 0 is the ``margin`` between the scores and σ > 0 the ``scale`` of each Laplace draw.

    *Source*: Kusner et al. (2016), Theorem 2; right as printed.

    >>> two_draws(0, 1)
    0.5
    """
    t = _checked(margin, scale)
    return 1 - (t + 2) / 4 * math.exp(-t)


def four_draws(margin: float, scale: float) -> float:
    """Return P(correct) when each of four log IQRs gets Laplace noise: Theorem 4(2) of the paper.

    P = 1 − e^{−γ/σ} (48σ³ + 33σ²γ + 9σγ² + γ³)/(96σ³)

    where γ ≥ 0 is the ``margin`` between the two sums of log IQRs and σ > 0 the ``scale`` of each draw.

    *Source*: Kusner et al. (2016), Theorem 4(2); right as printed.  Its part (1) cannot hold as stated and has no
    calculator.

    >>> four_draws(0, 1)
    0.5
    """
    t = _checked(margin, scale)
    return 1 - math.exp(-t) * (48 + 33 * t + 9 * t**2 + t**3) / 96


def one_draw(margin: float, scale: float) -> float:
    """Return P(correct) when the difference of the scores gets one Laplace draw: 1 − ½ e^{−γ/b}.

    where γ ≥ 0 is the ``margin`` and b > 0 the ``scale``.  At equal total ε the scale is the same 2Δ/ε as that of
    each of two draws, and the failure is smaller by the factor 2/(2 + γ/b).

    >>> one_draw(0, 1)
    0.5
    """
    return 1 - math.exp(-_checked(margin, scale)) / 2


def flip_draw(distance: int, epsilon: float) -> float:
    """Return P(correct) when the signed flip distance gets two-sided geometric noise: 1 − e^{−εd}/(1 + e^{−ε}).

    where d ≥ 1 is the number of records that must change for the other direction to win.

    >>> round(flip_draw(10, 0.5), 4)
    0.9958
    """
    if isinstance(distance, bool) or not isinstance(distance, int) or distance < 1:
        raise ParameterError("the flip distance must be a whole number of at least 1")
    if not (_is_finite(epsilon) and epsilon > 0):
        raise ParameterError("epsilon must be finite and above 0")
    return 1 - math.exp(-epsilon * distance) / (1 + math.exp(-epsilon))


def one_draw_tail(margin: float, scale: float) -> float:
    """Return P(|z| ≥ |margin|) of one Laplace draw: how easily noise alone makes such a margin.

    >>> one_draw_tail(0, 1)
    1.0
    """
    return math.exp(-_checked(abs(margin), scale))


def two_draws_tail(margin: float, scale: float) -> float:
    """Return P(|z₁ − z₂| ≥ |margin|) of two Laplace draws: (1 + t/2) e^{−t}, t = |margin|/scale."""
    t = _checked(abs(margin), scale)
    return (1 + t / 2) * math.exp(-t)


def flip_draw_tail(distance: int, epsilon: float) -> float:
    """Return how easily geometric noise alone makes a signed flip distance, of a true one of 0 or −1: two-sided."""
    steps = max(distance, -1 - distance)
    return min(1.0, 2 * math.exp(-epsilon * steps) / (1 + math.exp(-epsilon))) if steps else 1.0
