"""DPSC: differentially private synthetic control, weights and later cells with noise, and their product.

Rho, Cummings & Misra (2023), Algorithms 2 (output perturbation) and 3 (objective perturbation).
Errata: 4T0√(8 + n)/λ is never below the exact bound on the weights, so DPSC_out is private; DPSC_obj is not, with
consent only (``docs/appendix/errata-synthetic-control.md``).
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpcausal.core.method import Run
from dpcausal.errors import FenceError
from dpcausal.mechanisms.additive import l2_ball
from dpcausal.mechanisms.gate import event_of, release
from dpcausal.papers.mechanisms.objective_perturbation import checked_shape, checked_term, weights_of
from dpcausal.papers.statistics.ridge_weights import ridge_weights
from dpcausal.papers.synthetic_control.perturbation import (
    HALF,
    WeightedDonors,
    check_noise,
    of_weights,
    row_sensitivity,
)
from dpcausal.privacy import noise
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ApproxDP, Loss, PureDP
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity, Unit
from dpcausal.synthetic_control.donor_rows import Reals
from dpcausal.synthetic_control.placebo import Base
from dpcausal.synthetic_control.question import Plan, Treated


def published_weights_bound(donors: int, periods: int, penalty: float) -> float:
    """Return 4T0√(8 + n)/λ, the printed bound on the weights: never below the exact one."""
    return 4 * periods * math.sqrt(8 + donors) / penalty


def published_constants(donors: int, periods: int, penalty: float, loss: PureDP | ApproxDP) -> tuple[float, float]:
    """Return Δ and β as printed, with c = (1 + √(16n − 15))T0."""
    n, epsilon = donors, loss.epsilon
    checked_term("the penalty", penalty)
    c = (1 + math.sqrt(16 * n - 15)) * periods
    left, extra = epsilon - math.log(1 + 2 * c / penalty + (c / penalty) ** 2), 0.0
    if left <= 0:
        left, extra = epsilon / 2, c / math.expm1(epsilon / 4) - penalty
    first = 4 * periods * math.sqrt(8 + n) / left
    if loss.delta > 0:
        return extra, first * math.sqrt(2 * math.log(2 / loss.delta) + left)
    return extra, min(first, (c * math.sqrt(n) + 4 * periods) / left)


def published_objective_perturbation(
    query: Query, allotment: CallBudget, loss: PureDP | ApproxDP, *, target: Reals, penalty: float
) -> Reals:
    """Return weights by the printed objective perturbation, over all of R^n.

    argmin ‖y − X'f‖² + ((λ + Δ)/2)‖f‖² + b'f,  density of b ∝ exp(−‖b‖/β), or N(0, β²I) if δ > 0

    NOT PRIVATE AS CLAIMED, whatever β: the gradient that one donor moves grows with ‖f‖, which has no bound.  It runs
    on unproven allotments only.  *Source*: Rho, Cummings & Misra (2023), Algorithm 3.
    """
    if allotment.private:
        raise FenceError("the printed objective perturbation has no proof and runs on unproven allotments only")
    n, periods = checked_shape(query, target)
    extra, beta = published_constants(n, periods, penalty, loss)
    M = penalty + extra
    y = np.asarray(target, dtype=np.float64)

    def draw(answer: Reals) -> Reals:
        zeros = np.zeros(n)
        if loss.delta > 0:
            b = noise.add_gaussian(zeros, beta, sensitivity=1.0, rho=1 / beta**2)
        else:
            b = noise.add_l2_ball(zeros, beta, sensitivity=1.0, epsilon=2 / beta)
        return np.asarray(np.linalg.solve(2 * answer @ answer.T + M * np.eye(n), 2 * answer @ y - b))

    released = release(query, allotment, event_of("objective-perturbation-published", query, loss, beta), draw)
    return weights_of(released, n)


def output_weights(X: Reals, y: Reals, penalty: float, allotment: CallBudget, loss: PureDP) -> Reals:
    """Release ridge weights with ‖v‖ ~ Gamma(n, a): Algorithm 2."""
    bound = published_weights_bound(len(X), X.shape[1], penalty)
    claim = Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "ridge-weights", Unit.DONOR)
    return np.asarray(l2_ball(Query(ridge_weights(X, y, penalty / 2), claim, "weights"), allotment, loss))


def objective_weights(X: Reals, y: Reals, penalty: float, allotment: CallBudget, loss: PureDP | ApproxDP) -> Reals:
    """Release weights by the printed objective perturbation: Algorithm 3, without a valid proof."""
    bound = 2 * math.sqrt(X.shape[1])
    claim = Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "objective-perturbation-published", Unit.DONOR)
    return published_objective_perturbation(Query(X, claim, "weights"), allotment, loss, target=y, penalty=penalty)


def printed_path(weights: Reals, Y: Reals, allotment: CallBudget, loss: PureDP) -> Reals:
    """Release all later cells with ‖W‖_F ~ Gamma(nm, b), and return their product with the weights."""
    cells = l2_ball(Query(Y.ravel(), row_sensitivity(Y.shape[1]), "later cells"), allotment, loss)
    return np.asarray(cells).reshape(Y.shape).T @ weights


@dataclass(frozen=True, kw_only=True)
class Dpsc(WeightedDonors):
    """Weights as a subclass releases them, noise on all later cells, their product."""

    supports_no_privacy: ClassVar[bool] = False

    def currency(self, loss: Loss) -> Base:
        return PureDP(loss.exact_epsilon) if isinstance(loss, (PureDP, ApproxDP)) else loss

    def check(self, past: Reals, after: int, donors: int, penalty: float, loss: Base) -> None:
        first = published_weights_bound(donors, len(past), penalty)
        check_noise(past, after, donors, penalty, loss, first, donors * after)

    def weighted(self, weights: Reals, Y: Reals, allotment: CallBudget, loss: PureDP) -> Reals:
        return printed_path(weights, Y, allotment, loss)


@dataclass(frozen=True, kw_only=True)
class DpscOut(Dpsc):
    """DPSC_out: ‖v‖ ~ Gamma(n, a) on the weights and ‖W‖_F ~ Gamma(nm, b) on the later cells.

    Parameters
    ----------
    penalty : float, optional
        λ of the ridge, for entries in [−1, 1]; T0 by default, as in the paper.
    """

    name: ClassVar[str] = "DPSC_out"
    about: ClassVar[str] = "noisy ridge weights and noisy later cells"
    losses: ClassVar[tuple[type[Loss], ...]] = (PureDP,)
    proofs: ClassVar[tuple[str, ...]] = ("ridge-weights", "panel-rows")

    def weights(self, X: Reals, y: Reals, plan: Plan, run: Run[Treated]) -> Reals:
        half: Any = plan.base.part(HALF)
        return output_weights(X, y, self.ridge(plan.start), run.budget, half)


@dataclass(frozen=True, kw_only=True)
class DpscObj(Dpsc):
    """DPSC_obj: weights by objective perturbation as printed, which is not private.

    Parameters
    ----------
    penalty : float, optional
        λ of the ridge, for entries in [−1, 1]; T0 by default, as in the paper.
    """

    name: ClassVar[str] = "DPSC_obj"
    about: ClassVar[str] = "printed objective perturbation and noisy later cells"
    losses: ClassVar[tuple[type[Loss], ...]] = (PureDP, ApproxDP)

    @property
    def unproven(self) -> str:
        return "the objective perturbation of the synthetic control"

    def weights(self, X: Reals, y: Reals, plan: Plan, run: Run[Treated]) -> Reals:
        first: Any = of_weights(run.loss, plan.base) if isinstance(run.loss, ApproxDP) else plan.base.part(HALF)
        return objective_weights(X, y, self.ridge(plan.start), run.budget, first)
