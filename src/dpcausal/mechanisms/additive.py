"""Additive noise: Laplace, two-sided geometric, Gaussian, and K-norm noise of the cube and the Euclidean ball.

Each function asks the allotment, records the spend, then draws.  The scale is rounded up by a relative 1e-12, so
that the loss of the float that is used stays within the exact amount that is charged.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

import numpy as np

from dpcausal.errors import FenceError, LossError
from dpcausal.mechanisms.gate import event_of, exact, release
from dpcausal.privacy import noise
from dpcausal.privacy.ledger import CallBudget
from dpcausal.privacy.loss import ZCDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import CONDITIONAL, Norm, Query

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


Spent = TypeVar("Spent", PureDP, ZCDP)


def _checked_loss(query: Query, loss: Loss, kind: type[Spent], norm: Norm, mechanism: str) -> Spent:
    """Return the loss, of the kind that pays for the noise, if the bound is in its norm. For a single number only a
    bound that is no norm is refused: the norms agree there."""
    if not isinstance(loss, kind):
        raise LossError(f"{mechanism} noise is paid for in {kind.__name__}")
    stated = query.sensitivity.norm
    if stated is not norm and (stated in CONDITIONAL or math.prod(query.shape) != 1):
        raise FenceError(f"'{query.label}' is bounded in {stated.value}, the noise needs {norm.value}")
    return loss


def _in_shape_of(query: Query, noisy: Any) -> Any:
    return noisy.item() if query.shape == () and isinstance(noisy, (np.ndarray, np.generic)) else noisy


def laplace(query: Query, allotment: CallBudget, loss: PureDP | NoPrivacy) -> Any:
    """Release a real answer, bounded in l1, with Laplace noise: answer + z, z_i ~ Lap(Δ₁/ε) independent.

    *Guarantee*: ε-DP, claim ``laplace``.  *Source*: Dwork, McSherry, Nissim & Smith (2006), Theorem 1.
    """
    if allotment.exact:
        return exact(query, allotment)
    spent, bound = _checked_loss(query, loss, PureDP, Norm.L1, "Laplace"), query.sensitivity.rounded_up
    if query.integral:
        raise FenceError(f"'{query.label}' is an integer: use geometric noise")
    scale = laplace_scale(query.sensitivity.bound, spent)
    draw = partial(noise.add_laplace, scale=scale, sensitivity=bound, epsilon=spent.epsilon)
    return _in_shape_of(query, release(query, allotment, event_of("laplace", query, spent, scale), draw))


def geometric(query: Query, allotment: CallBudget, loss: PureDP | NoPrivacy) -> Any:
    """Release integers, bounded in l1, with two-sided geometric noise: P(k_i) ∝ exp(−ε|k_i|/Δ₁) independent.

    *Guarantee*: ε-DP, claim ``geometric``.  *Source*: Ghosh, Roughgarden & Sundararajan (2009), Section 2.
    """
    if allotment.exact:
        return exact(query, allotment)
    spent, bound = _checked_loss(query, loss, PureDP, Norm.L1, "geometric"), math.ceil(query.sensitivity.bound)
    if not query.integral:
        raise FenceError(f"'{query.label}' is not an integer: use Laplace noise")
    scale = laplace_scale(bound, spent)
    draw = partial(noise.add_geometric, scale=scale, sensitivity=bound, epsilon=spent.epsilon)
    return _in_shape_of(query, release(query, allotment, event_of("geometric", query, spent, scale), draw))


def cube(query: Query, allotment: CallBudget, loss: PureDP | NoPrivacy) -> Any:
    """Release up to 8 integers, bounded in l∞, with K-norm noise of the cube: P(z) ∝ exp(−ε‖z‖_∞/Δ_∞), one draw.

    *Guarantee*: ε-DP, claim ``cube``.  *Source*: Hardt & Talwar (2010), Section 4, on integers.
    """
    if allotment.exact:
        return exact(query, allotment)
    spent, bound = _checked_loss(query, loss, PureDP, Norm.LINF, "cube"), math.ceil(query.sensitivity.bound)
    if not query.integral or len(query.shape) != 1 or not 1 <= query.shape[0] <= noise.MOST_SIDES:
        raise FenceError(f"'{query.label}' must be 1 to {noise.MOST_SIDES} integers for the cube's noise")
    scale = laplace_scale(bound, spent)
    noise.check_scale(2.0 * query.shape[0] * scale)  # of the candidates
    draw = partial(noise.add_cube, scale=scale, sensitivity=bound, epsilon=spent.epsilon)
    return release(query, allotment, event_of("cube", query, spent, scale), draw)


def gaussian(query: Query, allotment: CallBudget, loss: ZCDP | NoPrivacy) -> Any:
    """Release an answer, bounded in l2, with noise N(0, σ²), σ = Δ₂/√(2ρ); discrete Gaussian for integers.

    *Guarantee*: ρ-zCDP, claim ``gaussian``.
    *Source*: Bun & Steinke (2016), Proposition 1.6; Canonne, Kamath & Steinke (2020), Theorem 4.
    """
    if allotment.exact:
        return exact(query, allotment)
    spent, bound = _checked_loss(query, loss, ZCDP, Norm.L2, "Gaussian"), query.sensitivity.rounded_up
    scale = gaussian_scale(query.sensitivity.bound, spent)
    add: Callable[..., Any] = noise.add_discrete_gaussian if query.integral else noise.add_gaussian
    name = "discrete-gaussian" if query.integral else "gaussian"
    draw = partial(add, scale=scale, sensitivity=bound, rho=spent.rho)
    return _in_shape_of(query, release(query, allotment, event_of(name, query, spent, scale), draw))


def l2_ball(query: Query, allotment: CallBudget, loss: PureDP | NoPrivacy) -> Any:
    """Release a real vector, bounded in l2, with K-norm noise of the ball: density of z ∝ exp(−ε‖z‖₂/Δ₂).

    *Guarantee*: ε-DP up to a δ below 1e-29, claim ``l2-ball``.
    *Source*: Hardt & Talwar (2010), Theorem 4.2; Chaudhuri, Monteleoni & Sarwate (2011), Theorem 1.
    """
    if allotment.exact:
        return exact(query, allotment)
    spent, bound = _checked_loss(query, loss, PureDP, Norm.L2, "l2-ball"), query.sensitivity.rounded_up
    if query.integral or len(query.shape) != 1 or not 1 <= query.shape[0] <= noise.LARGEST_BALL:
        raise FenceError(f"'{query.label}' must be a real vector of 1 to 1,000,000 values for the ball's noise")
    scale = laplace_scale(query.sensitivity.bound, spent)
    draw = partial(noise.add_l2_ball, scale=scale, sensitivity=bound, epsilon=spent.epsilon)
    return release(query, allotment, event_of("l2-ball", query, spent, scale), draw)
