"""Objective perturbation of a ridge regression of a target on donors: corrected, and as published.

The corrected one keeps the weights in the l1 ball, without which the gradient that one donor moves has no bound, and
covers its own solver: a public number of steps comes within a proved distance of the minimiser, and noise hides it.
"""

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpcausal.core import validate as public
from dpcausal.errors import FenceError, LossError, ParameterError
from dpcausal.mechanisms.gate import event_of, exact, release
from dpcausal.privacy import noise
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ApproxDP, NoPrivacy
from dpcausal.privacy.sensitivity import Query

Reals = noise.Reals

SOLVER_SHARE = Fraction(1, 100)
"""The share of ε that hides where the solver stopped."""

STEPS_LEAVE = 1e-9
"""Distance from the exact minimiser that the steps leave in exact arithmetic."""

MOST_STEPS = 1_000_000


@dataclass(frozen=True)
class Calibration:
    quadratic: float  # M of the term (M/2)‖f‖²
    gradient: float  # G, the most that one donor moves the gradient inside the l1 ball
    log_volume: float  # log Φ, the most that one donor moves the log of the Jacobian
    scale: float  # β, the standard deviation of the random linear term
    steps: int  # projected gradient steps
    solver_error: float  # distance from the exact minimiser, rounding included
    solver_scale: float  # of the noise that hides it


def checked_term(name: str, value: Any) -> float:
    """Return the factor of a squared length: without one the weights have no density and no bound."""
    return public.number(name, value, math.ulp(0.0), sys.float_info.max)


def gradient_bound(donors: int, periods: int) -> float:
    """Return G = 4T0·max(2, √(n + 5/4))."""
    return 4 * periods * max(2.0, math.sqrt(donors + 1.25))


def log_volume_bound(periods: int, quadratic: float) -> float:
    """Return log Φ, Φ = 1 + 2/(√(1 + M/(2T0)) − 1)."""
    # √(1 + v) − 1 = v/(√(1 + v) + 1): no cancellation for small v.
    v = quadratic / (2 * periods)
    return math.log1p(2 * (math.sqrt(1 + v) + 1) / v)


def calibrate(donors: int, periods: int, loss: ApproxDP, quadratic: float | None = None) -> Calibration:
    """Return the constants for (ε, δ).

    β = G(s + √(s² + 2ε0))/(2ε0),  s = √(2 log(1/δ)),  ε0 = 0.99ε − log Φ

    ``quadratic`` defaults to the least M with log Φ ≤ 0.99ε/2.
    """
    if not loss.exact_delta > 0:
        raise LossError("objective perturbation is paid for in ApproxDP with delta above 0")
    epsilon = float(loss.exact_epsilon * (1 - SOLVER_SHARE))
    if quadratic is None:
        root = 1 + 2 / math.expm1(epsilon / 2)
        quadratic = 2 * periods * (root * root - 1) * (1 + 1e-9)
    quadratic = checked_term("the quadratic term", quadratic)
    left = epsilon - log_volume_bound(periods, quadratic) * (1 + 1e-12)
    if left <= 0:
        raise ParameterError("the quadratic term is too small for this epsilon: nothing is left for the noise")
    G = gradient_bound(donors, periods)
    s = math.sqrt(-2 * math.log(loss.delta))
    beta = noise.check_scale(G * (s + math.sqrt(s * s + 2 * left)) / (2 * left) * (1 + 1e-9))
    largest = beta * (math.sqrt(donors) + 12)  # ‖b‖ passes it with probability below e^{−72}
    rounding = 2.0**-48 * (donors**2 + periods) * (4 * math.sqrt(donors) * periods + quadratic + largest) / quadratic
    steps = math.ceil((donors * periods + quadratic) / quadratic * math.log(2 / STEPS_LEAVE))
    if steps > MOST_STEPS:
        raise ParameterError(f"the minimiser needs more than {MOST_STEPS} steps: raise the quadratic term")
    error = STEPS_LEAVE + rounding
    solver_scale = noise.check_scale(2 * error / float(loss.exact_epsilon * SOLVER_SHARE) * (1 + 1e-9))
    return Calibration(quadratic, G, log_volume_bound(periods, quadratic), beta, steps, error, solver_scale)


def simplex(v: Reals) -> Reals:
    """Return the point of the simplex nearest to v.  *Source*: Duchi et al. (2008), Figure 1."""
    v = v - v.max()  # the same nearest point: those that stay are at most 1 below, so 1 is not lost beside them
    order = np.sort(v)[::-1]
    excess = (np.cumsum(order) - 1) / np.arange(1, len(v) + 1)
    level = excess[np.flatnonzero(order > excess)[-1]]
    return np.asarray(np.maximum(v - level, 0))


def l1_ball(v: Reals) -> Reals:
    """Return the point of the l1 ball of radius 1 nearest to v."""
    size = np.abs(v)
    return v if size.sum() <= 1 else np.asarray(np.sign(v) * simplex(size))


def minimiser(X: Reals, y: Reals, b: Reals, quadratic: float, steps: int) -> Reals:
    """Return argmin over ‖f‖₁ ≤ 1 of ‖y − X'f‖² + (M/2)‖f‖² + b'f, after a public number of steps."""
    n, periods = X.shape
    rate = 1 / (n * periods + quadratic)  # 2/(L + M) with L = 2nT0 + M
    f = np.zeros(n)
    for _ in range(steps):
        gradient = -2 * (X @ (y - X.T @ f)) + quadratic * f + b
        f = l1_ball(f - rate * gradient)
    return f


def objective_perturbation(
    query: Query, allotment: CallBudget, loss: ApproxDP | NoPrivacy, *, target: Reals, quadratic: float | None = None
) -> Reals:
    """Release weights of donors for a target by objective perturbation over the l1 ball.

    argmin over ‖f‖₁ ≤ 1 of ‖y − X'f‖² + (M/2)‖f‖² + b'f,  b ~ N(0, β²I)

    where X, hidden, are the donors before the treatment, a row for each unit, y is public, and the entries of both are
    cut to [−1, 1]; M as in ``calibrate``.

    *Guarantee*: (ε, δ)-DP when one row is replaced, for the weights as computed, claim ``objective-perturbation``.
    *Source*: this library, after Rho, Cummings & Misra (2023), Algorithm 3, and Kifer, Smith & Thakurta (2012).
    """
    if allotment.exact:
        return np.asarray(exact(query, allotment))
    if not isinstance(loss, ApproxDP):
        raise LossError("objective perturbation is paid for in ApproxDP with delta above 0")
    n, periods = checked_shape(query, target)
    constants = calibrate(n, periods, loss, quadratic)
    y = np.clip(np.asarray(target, dtype=np.float64), -1, 1)
    solver_epsilon = float(loss.exact_epsilon * SOLVER_SHARE)
    rho = (constants.gradient / constants.scale) ** 2 / 2 * (1 + 1e-9)

    def draw(answer: Reals) -> Reals:
        b = noise.add_gaussian(np.zeros(n), constants.scale, sensitivity=constants.gradient, rho=rho)
        f = minimiser(np.clip(answer, -1, 1), y, b, constants.quadratic, constants.steps)
        bound = 2 * constants.solver_error
        return noise.add_l2_ball(f, constants.solver_scale, sensitivity=bound, epsilon=solver_epsilon)

    released = release(query, allotment, event_of("objective-perturbation", query, loss, constants.scale), draw)
    return weights_of(released, n)


def checked_shape(query: Query, target: Reals) -> tuple[int, int]:
    if query.integral or len(query.shape) != 2 or query.shape[1] != len(target) or 0 in query.shape:
        raise FenceError(f"'{query.label}' must be the donors' real rows, as long as the target")
    return query.shape[0], query.shape[1]


def weights_of(released: Reals, donors: int) -> Reals:
    # A recording gate answers in the query's shape: the first entry of each row stands for its weight.
    array = np.asarray(released, dtype=np.float64)
    return array if array.shape == (donors,) else array[:, 0].copy()
