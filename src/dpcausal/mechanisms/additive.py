"""Additive noise: Laplace, two-sided geometric, Gaussian, and K-norm noise of the cube and the Euclidean ball.

Each function asks the allotment, records the spend, then draws.  The scale is rounded up by a relative 1e-12, so
that the loss of the float that is used stays within the exact amount that is charged.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dpcausal.errors import FenceError, LossError
from dpcausal.mechanisms.gate import event_of, exact, release
from dpcausal.privacy import noise
from dpcausal.privacy.ledger import CallBudget
from dpcausal.privacy.loss import ZCDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import CONDITIONAL, Norm, Query, Sensitivity

_ROUND_UP = 1 + 1e-12


def laplace_scale(sensitivity: float | int | Fraction, loss: PureDP | NoPrivacy) -> float:
    """Return the Laplace scale b = Δ/ε, rounded up, or 0 without privacy; refused if no noise is drawn at it."""
    if isinstance(loss, NoPrivacy):
        return 0.0
    try:
        nearest = float(Fraction(sensitivity) / loss.exact_epsilon)
    except OverflowError:
        nearest = math.inf
    return noise.check_scale(nearest * _ROUND_UP)


def gaussian_scale(sensitivity: float | int | Fraction, loss: ZCDP | NoPrivacy) -> float:
    """Return the Gaussian σ = Δ/√(2ρ), rounded up, or 0 without privacy; refused if no noise is drawn at it."""
    if isinstance(loss, NoPrivacy):
        return 0.0
    return noise.check_scale(float(sensitivity) / math.sqrt(2 * loss.rho) * _ROUND_UP)


def geometric_variance(scale: float) -> float:
    """Return the variance of two-sided geometric noise, 2a/(1 − a)², a = exp(−1/scale)."""
    a = math.exp(-1 / scale)
    return 2 * a / (math.expm1(-1 / scale)) ** 2


def noise_variance(claim: Sensitivity, loss: PureDP | ZCDP | NoPrivacy) -> float:
    """Return the variance of the noise of ``whole_numbers`` on each, 0 without privacy."""
    if isinstance(loss, PureDP):
        return geometric_variance(laplace_scale(claim.bound, loss))
    return gaussian_scale(claim.bound, loss) ** 2


def _noisy(
    query: Query, allotment: CallBudget, loss: Loss, kind: type[PureDP | ZCDP], norm: Norm, name: str,
    add: Callable[..., Any], *, unfit: str = "", widest: float = 1.0,
) -> Any:  # fmt: skip
    """Release an answer with the noise that ``add`` draws, at the scale that its bound and the loss give. ``unfit``
    says why the noise is not of the answer's kind; draws are up to ``widest`` times as wide as the scale.  For a single
    number only a bound that is no norm is refused: the norms agree there."""
    if allotment.exact:
        return exact(query, allotment)
    if not isinstance(loss, kind):
        raise LossError(f"{name} noise is paid for in {kind.__name__}")
    stated = query.sensitivity.norm
    if stated is not norm and (stated in CONDITIONAL or math.prod(query.shape) != 1):
        raise FenceError(f"'{query.label}' is bounded in {stated.value}, the noise needs {norm.value}")
    if unfit:
        raise FenceError(f"'{query.label}' {unfit}")
    bound, sensitivity = query.sensitivity.bound, query.sensitivity.rounded_up
    if isinstance(loss, ZCDP):
        scale, amount = gaussian_scale(bound, loss), {"rho": loss.rho}
    else:
        if query.integral:
            bound = sensitivity = math.ceil(bound)
        scale, amount = laplace_scale(bound, loss), {"epsilon": loss.epsilon}
    noise.check_scale(widest * scale)
    draw = partial(add, scale=scale, sensitivity=sensitivity, **amount)
    noisy = release(query, allotment, event_of(name, query, loss, scale), draw)
    return noisy.item() if query.shape == () and isinstance(noisy, (np.ndarray, np.generic)) else noisy


def laplace(query: Query, allotment: CallBudget, loss: PureDP | NoPrivacy) -> Any:
    """Release a real answer, bounded in l1, with Laplace noise: answer + z, z_i ~ Lap(Δ₁/ε) independent.

    *Guarantee*: ε-DP, claim ``laplace``.  *Source*: Dwork, McSherry, Nissim & Smith (2006), Theorem 1.
    """
    unfit = "is an integer: use geometric noise" if query.integral else ""
    return _noisy(query, allotment, loss, PureDP, Norm.L1, "laplace", noise.add_laplace, unfit=unfit)


def geometric(query: Query, allotment: CallBudget, loss: PureDP | NoPrivacy) -> Any:
    """Release integers, bounded in l1, with two-sided geometric noise: P(k_i) ∝ exp(−ε|k_i|/Δ₁) independent.

    *Guarantee*: ε-DP, claim ``geometric``.  *Source*: Ghosh, Roughgarden & Sundararajan (2009), Section 2.
    """
    unfit = "" if query.integral else "is not an integer: use Laplace noise"
    return _noisy(query, allotment, loss, PureDP, Norm.L1, "geometric", noise.add_geometric, unfit=unfit)


def cube(query: Query, allotment: CallBudget, loss: PureDP | NoPrivacy) -> Any:
    """Release up to 8 integers, bounded in l∞, with K-norm noise of the cube: P(z) ∝ exp(−ε‖z‖_∞/Δ_∞), one draw.

    *Guarantee*: ε-DP, claim ``cube``.  *Source*: Hardt & Talwar (2010), Section 4, on integers.
    """
    fits = query.integral and _is_row(query, noise.MOST_SIDES)
    unfit = "" if fits else f"must be 1 to {noise.MOST_SIDES} integers for the cube's noise"
    widest = 2.0 * math.prod(query.shape)  # of the candidates
    return _noisy(query, allotment, loss, PureDP, Norm.LINF, "cube", noise.add_cube, unfit=unfit, widest=widest)


def gaussian(query: Query, allotment: CallBudget, loss: ZCDP | NoPrivacy) -> Any:
    """Release an answer, bounded in l2, with noise N(0, σ²), σ = Δ₂/√(2ρ); discrete Gaussian for integers.

    *Guarantee*: ρ-zCDP, claim ``gaussian``.
    *Source*: Bun & Steinke (2016), Proposition 1.6; Canonne, Kamath & Steinke (2020), Theorem 4.
    """
    if query.integral:
        return _noisy(query, allotment, loss, ZCDP, Norm.L2, "discrete-gaussian", noise.add_discrete_gaussian)
    return _noisy(query, allotment, loss, ZCDP, Norm.L2, "gaussian", noise.add_gaussian)


def norm_of(loss: PureDP | ZCDP | NoPrivacy) -> Norm:
    """Return the norm in which ``whole_numbers`` takes a bound."""
    return Norm.L1 if isinstance(loss, PureDP) else Norm.L2


def whole_numbers(query: Query, allotment: CallBudget, loss: PureDP | ZCDP | NoPrivacy) -> Any:
    """Release integers with geometric noise where the loss is an ε, and Gaussian noise where it is a ρ."""
    return geometric(query, allotment, loss) if isinstance(loss, PureDP) else gaussian(query, allotment, loss)


def l2_ball(query: Query, allotment: CallBudget, loss: PureDP | NoPrivacy) -> Any:
    """Release a real vector, bounded in l2, with K-norm noise of the ball: density of z ∝ exp(−ε‖z‖₂/Δ₂).

    *Guarantee*: ε-DP up to a δ below 1e-29, claim ``l2-ball``.
    *Source*: Hardt & Talwar (2010), Theorem 4.2; Chaudhuri, Monteleoni & Sarwate (2011), Theorem 1.
    """
    fits = not query.integral and _is_row(query, noise.LARGEST_BALL)
    unfit = "" if fits else "must be a real vector of 1 to 1,000,000 values for the ball's noise"
    return _noisy(query, allotment, loss, PureDP, Norm.L2, "l2-ball", noise.add_l2_ball, unfit=unfit)


def _is_row(query: Query, most: int) -> bool:
    return len(query.shape) == 1 and 1 <= query.shape[0] <= most
