"""How likely noise leaves the direction as it is: the laws of the paper's theorems and of our own releases.

All are functions of public numbers; nothing here reads data.  Two questions are answered: before a release,
P(the noisy winner is the true winner) at a margin that is assumed; after it (``after_…``), P(the true winner is the
released one | what was released) under a flat prior on the margins that are possible.  The range of the true margin is
public, so noise that is large beside it leaves the winner near a coin's toss, however far out the noisy margin lies.
"""

from __future__ import annotations

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

    Notes
    -----
    *Source*: Kusner et al. (2016), Theorem 2; right as printed.

    Examples
    --------
    >>> two_draws(0, 1)
    0.5
    """
    t = _checked(margin, scale)
    return 1 - (t + 2) / 4 * math.exp(-t)


def four_draws(margin: float, scale: float) -> float:
    """Return P(correct) when each of four log IQRs gets Laplace noise: Theorem 4(2) of the paper.

    P = 1 − e^{−γ/σ} (48σ³ + 33σ²γ + 9σγ² + γ³)/(96σ³)

    where γ ≥ 0 is the ``margin`` between the two sums of log IQRs and σ > 0 the ``scale`` of each draw.

    Notes
    -----
    *Source*: Kusner et al. (2016), Theorem 4(2); right as printed.  Its part (1) cannot hold as stated and has no
    calculator.

    Examples
    --------
    >>> four_draws(0, 1)
    0.5
    """
    t = _checked(margin, scale)
    return 1 - math.exp(-t) * (48 + 33 * t + 9 * t**2 + t**3) / 96


def one_draw(margin: float, scale: float) -> float:
    """Return P(correct) when the difference of the scores gets one Laplace draw: 1 − ½ e^{−γ/b}.

    where γ ≥ 0 is the ``margin`` and b > 0 the ``scale``.  At equal total ε the scale is the same 2Δ/ε as that of
    each of two draws, and the failure is smaller by the factor 2/(2 + γ/b).

    Examples
    --------
    >>> one_draw(0, 1)
    0.5
    """
    return 1 - math.exp(-_checked(margin, scale)) / 2


def flip_draw(distance: int, epsilon: float) -> float:
    """Return P(correct) when the signed flip distance gets two-sided geometric noise: 1 − e^{−εd}/(1 + e^{−ε}).

    where d ≥ 1 is the number of records that must change for the other direction to win.

    Examples
    --------
    >>> round(flip_draw(10, 0.5), 4)
    0.9958
    """
    if isinstance(distance, bool) or not isinstance(distance, int) or distance < 1:
        raise ParameterError("the flip distance must be a whole number of at least 1")
    if not (_is_finite(epsilon) and epsilon > 0):
        raise ParameterError("epsilon must be finite and above 0")
    return 1 - math.exp(-epsilon * distance) / (1 + math.exp(-epsilon))


def after_one_draw(released: float, scale: float, largest: float) -> float:
    """Return P(correct | released) of a margin with one Laplace draw, prior flat on [−R, R].

    P = (2 − e^{−c/b} − e^{−(R−c)/b}) / (2 − e^{−(R−c)/b} − e^{−(R+c)/b}),  c = min(|released|, R)

    where b is the ``scale`` and R > 0 the ``largest`` margin that is possible.

    Examples
    --------
    >>> after_one_draw(0, 1, 10), round(after_one_draw(1e9, 1, 0.1), 3)
    (0.5, 0.525)
    """
    reach = _checked(largest, scale)
    c = min(_checked(abs(released), scale), reach)
    if reach == 0:
        return 0.5
    winner = -math.expm1(-c) - math.expm1(c - reach)
    loser = math.exp(-c) * -math.expm1(-reach)
    return winner / (winner + loser)


def after_two_draws(released: float, scale: float, largest: float) -> float:
    """Return P(correct | released) of a margin with the difference of two Laplace draws, prior flat on [−R, R].

    P = ∫_0^R g(γ − t) dt / ∫_{−R}^R g(γ − t) dt,  g(u) = (1 + |u|/b) e^{−|u|/b} / (4b)

    where γ = |``released``|, b is the ``scale`` of each draw and R > 0 the ``largest`` margin that is possible.

    Examples
    --------
    >>> after_two_draws(0, 1, 10), round(after_two_draws(1, 1, 1e3), 12) == round(two_draws(1, 1), 12)
    (0.5, True)
    """
    reach = _checked(largest, scale)
    c = _checked(abs(released), scale)
    if reach == 0:
        return 0.5
    if c < reach:
        # With T(u) = (2 + u) e^{−u}/4 the tail beyond u ≥ 0: 1 − T(c) − T(R − c), and T(c) − T(R + c).
        winner = 4 - (2 + c) * math.exp(-c) - (2 + reach - c) * math.exp(c - reach)
    else:
        # T(c − R) − T(c), times 4e^{c − R}.
        winner = -(c + 2) * math.expm1(-reach) - reach
    shrink = math.exp(-c if c < reach else -reach)
    loser = shrink * (-(c + 2) * math.expm1(-reach) - reach * math.exp(-reach))
    return winner / (winner + loser)


def after_flip_draw(released: int, epsilon: float, lowest: int, highest: int) -> float:
    """Return P(correct | released) of an integer z with geometric noise, prior flat on ``lowest``, …, ``highest``.

    The first wins if z ≥ 0, the second if z ≤ −1;  P = Σ_{z of the released winner} a^{|c − z|} / Σ_z a^{|c − z|}

    where a = e^{−ε} and c is ``released`` moved into lowest ≤ −1, …, highest ≥ 0.

    Examples
    --------
    >>> round(after_flip_draw(0, 1.0, -1, 0), 4) == round(1 / (1 + math.exp(-1)), 4)
    True
    """
    if not (_is_finite(epsilon) and epsilon > 0):
        raise ParameterError("epsilon must be finite and above 0")
    if not lowest < 0 <= highest:
        raise ParameterError("lowest must be below 0, highest at least 0")
    c = min(max(int(released), lowest), highest)
    if c < 0:  # the mirror image, in which −1 and 0 change places
        c, lowest, highest = -1 - c, -1 - highest, -1 - lowest
    winner = -math.expm1(-epsilon * (c + 1)) - math.exp(-epsilon) * math.expm1(-epsilon * (highest - c))
    loser = -math.exp(-epsilon * (c + 1)) * math.expm1(epsilon * lowest)
    return winner / (winner + loser)
