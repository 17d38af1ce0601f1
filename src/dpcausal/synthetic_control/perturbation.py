"""Noisy weights: a ridge regression of the target on the donors, its weights released, then the weighted donors.

The first step by output perturbation (exact sensitivity) or objective perturbation; the second adds noise to the m
numbers that are wanted, not to the n × m numbers that they are made of.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpcausal.errors import ParameterError
from dpcausal.mechanisms.additive import gaussian, gaussian_scale, l2_ball, laplace_scale
from dpcausal.mechanisms.objective_perturbation import (
    checked_term,
    l1_ball,
    objective_perturbation,
    published_objective_perturbation,
)
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import ZCDP, ApproxDP, NoPrivacy, PureDP
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.noise import LARGEST_BALL
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity
from dpcausal.regression.ridge import ridge_weight_sensitivity, ridge_weights
from dpcausal.synthetic_control.rows import Reals

LEAST_WEIGHT = 1e-9
"""Weights smaller than this count as this large in the second step: a bound must be above 0."""

PROOFS = {
    "output-perturbation": ("ridge-weights", "weighted-donors"),
    "objective-perturbation": ("objective-perturbation", "panel-rows", "weighted-donors"),
}


@dataclass(frozen=True, eq=False)
class WeightedRelease:
    """A released path.

    Attributes
    ----------
    path : float array, shape (m,)
        On the scale [−1, 1], not cut at it.
    noise : float
        Standard deviation of the noise that the second step added to each entry.
    """

    path: Reals
    noise: float


def simplex(v: Reals) -> Reals:
    """Return the point of the simplex nearest to v.  *Source*: Duchi et al. (2008), Figure 1."""
    v = v - v.max()  # the same nearest point; and 1 is not lost beside noise of any size
    order = np.sort(v)[::-1]
    excess = (np.cumsum(order) - 1) / np.arange(1, len(v) + 1)
    level = excess[np.flatnonzero(order > excess)[-1]]
    return np.asarray(np.maximum(v - level, 0))


LARGEST_WEIGHT = 1e6
"""Weights that no projection bounds are cut here, so that noise can be drawn for whatever was released."""


def unchanged(v: Reals) -> Reals:
    """Return v, its entries cut at ±10⁶."""
    return np.clip(v, -LARGEST_WEIGHT, LARGEST_WEIGHT)


PROJECTIONS: dict[str, Callable[[Reals], Reals]] = {"simplex": simplex, "l1": l1_ball, "none": unchanged}


def row_sensitivity(periods: int) -> Sensitivity:
    """Return 2√periods, in l2 over all cells.  *Guarantee*: claim ``panel-rows``, replace one donor."""
    return Sensitivity(2 * math.sqrt(periods), Norm.L2, Relation.REPLACE_ONE, "panel-rows", Unit.DONOR)


def weighted_sensitivity(weights: Reals, after: int) -> Sensitivity:
    """Return 2√m ‖f‖_∞, in l2.  *Guarantee*: claim ``weighted-donors``, replace one donor, f released before."""
    largest = max(float(np.abs(weights).max()), LEAST_WEIGHT)
    bound = 2 * math.sqrt(after) * largest * (1 + len(weights) ** 2 * 2.0**-52)
    return Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "weighted-donors", Unit.DONOR)


def release_weights(
    X: Reals, y: Reals, penalty: float, projection: str, allotment: Allotment, loss: PureDP | ZCDP | NoPrivacy
) -> Reals:
    """Release ridge weights with noise of their exact sensitivity, then project them."""
    ridge = penalty / 2
    query = Query(ridge_weights(X, y, ridge), ridge_weight_sensitivity(y, ridge, len(X)), "weights")
    noisy = l2_ball(query, allotment, loss) if isinstance(loss, PureDP) else gaussian(query, allotment, loss)
    return PROJECTIONS[projection](np.asarray(noisy))


def release_objective(
    X: Reals, y: Reals, quadratic: float | None, projection: str, allotment: Allotment, loss: ApproxDP | NoPrivacy
) -> Reals:
    """Release weights by objective perturbation, then project them."""
    if isinstance(loss, NoPrivacy):
        term = checked_term("the quadratic term", 2.0 * len(y) if quadratic is None else quadratic)
        return PROJECTIONS[projection](ridge_weights(X, y, term / 2))
    query = Query(X, row_sensitivity(X.shape[1]), "weights")
    return PROJECTIONS[projection](
        objective_perturbation(query, allotment, loss, target=y, quadratic=quadratic)
    )


def release_path(
    weights: Reals, Y: Reals, allotment: Allotment, loss: PureDP | ZCDP | NoPrivacy
) -> WeightedRelease:
    """Release Y'f with noise of sensitivity 2√m‖f‖_∞, ``weights`` f as released and projected; Y is (n, m)."""
    claim = weighted_sensitivity(weights, Y.shape[1])
    query = Query(Y.T @ weights, claim, "weighted donors")
    if isinstance(loss, PureDP):
        noisy, noise = l2_ball(query, allotment, loss), math.sqrt(Y.shape[1] + 1) * laplace_scale(claim.bound, loss)
    else:
        noisy = gaussian(query, allotment, loss)
        noise = gaussian_scale(claim.bound, loss) if isinstance(loss, ZCDP) else 0.0
    return WeightedRelease(np.asarray(noisy), noise)


def check_noise(y: Reals, after: int, donors: int, penalty: float, published: bool, loss: PureDP | ZCDP) -> None:
    """Raise before anything is spent if noise on the weights, or on the path, could not be drawn.

    ``loss`` is that of each of the two steps.
    """
    numbers = donors * after if published else donors
    numbers = max(numbers, after)
    if isinstance(loss, PureDP) and numbers > LARGEST_BALL:
        raise ParameterError(f"pure noise is drawn for at most {LARGEST_BALL} numbers, and here there are {numbers}")
    first = published_weights_bound(donors, len(y), penalty) if published else 0.0
    bounds = max(first, float(ridge_weight_sensitivity(y, penalty / 2, donors).bound)), 2 * math.sqrt(after)
    for bound in (*bounds, bounds[1] * LARGEST_WEIGHT, bounds[1] * LEAST_WEIGHT):
        if isinstance(loss, PureDP):
            laplace_scale(bound, loss)
        else:
            gaussian_scale(bound, loss)


def published_weights_bound(donors: int, periods: int, penalty: float) -> float:
    """Return 4T0√(8 + n)/λ, the printed bound on the weights: never below the exact one."""
    return 4 * periods * math.sqrt(8 + donors) / penalty


def release_published(
    X: Reals, Y: Reals, y: Reals, penalty: float, objective: bool, allotment: Allotment,
    first: PureDP | ApproxDP, second: PureDP,
) -> WeightedRelease:  # fmt: skip
    """Release a path as printed: weights by output (Algorithm 2) or objective perturbation (Algorithm 3), noise on all
    later cells, their product.

    The first is private with ‖v‖ ~ Gamma(n, a) and ‖W‖_F ~ Gamma(nm, b), since 4T0√(8 + n)/λ is never below the
    exact bound; the second is not.
    """
    n, periods = X.shape
    if objective:
        query = Query(X, Sensitivity(2 * math.sqrt(periods), Norm.L2, Relation.REPLACE_ONE,
                                     "objective-perturbation-published", Unit.DONOR), "weights")  # fmt: skip
        weights = published_objective_perturbation(query, allotment, first, target=y, penalty=penalty)
    elif isinstance(first, PureDP):
        bound = published_weights_bound(n, periods, penalty)
        claim = Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "ridge-weights", Unit.DONOR)
        weights = np.asarray(l2_ball(Query(ridge_weights(X, y, penalty / 2), claim, "weights"), allotment, first))
    else:
        raise TypeError("the printed output perturbation is paid for in PureDP")
    cells = l2_ball(Query(Y.ravel(), row_sensitivity(Y.shape[1]), "later cells"), allotment, second)
    return WeightedRelease(np.asarray(cells).reshape(Y.shape).T @ weights, 0.0)
