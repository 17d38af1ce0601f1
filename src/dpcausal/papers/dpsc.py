"""DPSC: differentially private synthetic control, weights and later cells with noise, and their product.

Rho, Cummings & Misra (2023), Algorithms 2 (output perturbation) and 3 (objective perturbation).
Errata: 4T0√(8 + n)/λ is never below the exact bound on the weights, so DPSC_out is private; DPSC_obj is not, with
consent only (``docs/errata_synthetic_control.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpcausal.errors import LossError
from dpcausal.mechanisms.additive import l2_ball
from dpcausal.mechanisms.objective_perturbation import published_objective_perturbation
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.call import pure_part
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, PureDP
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity
from dpcausal.regression.ridge import ridge_weights
from dpcausal.synthetic_control.perturbation import HALF, WeightedDonors, check_noise, of_weights, row_sensitivity
from dpcausal.synthetic_control.plan import Base, Plan
from dpcausal.synthetic_control.question import Treated
from dpcausal.synthetic_control.rows import Reals


def published_weights_bound(donors: int, periods: int, penalty: float) -> float:
    """Return 4T0√(8 + n)/λ, the printed bound on the weights: never below the exact one."""
    return 4 * periods * math.sqrt(8 + donors) / penalty


def output_weights(X: Reals, y: Reals, penalty: float, allotment: Allotment, loss: PureDP) -> Reals:
    """Release ridge weights with ‖v‖ ~ Gamma(n, a): Algorithm 2."""
    bound = published_weights_bound(len(X), X.shape[1], penalty)
    claim = Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "ridge-weights", Unit.DONOR)
    return np.asarray(l2_ball(Query(ridge_weights(X, y, penalty / 2), claim, "weights"), allotment, loss))


def objective_weights(X: Reals, y: Reals, penalty: float, allotment: Allotment, loss: PureDP | ApproxDP) -> Reals:
    """Release weights by the printed objective perturbation: Algorithm 3, without a valid proof."""
    bound = 2 * math.sqrt(X.shape[1])
    claim = Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "objective-perturbation-published", Unit.DONOR)
    return published_objective_perturbation(Query(X, claim, "weights"), allotment, loss, target=y, penalty=penalty)


def printed_path(weights: Reals, Y: Reals, allotment: Allotment, loss: PureDP) -> Reals:
    """Release all later cells with ‖W‖_F ~ Gamma(nm, b), and return their product with the weights."""
    cells = l2_ball(Query(Y.ravel(), row_sensitivity(Y.shape[1]), "later cells"), allotment, loss)
    return np.asarray(cells).reshape(Y.shape).T @ weights


@dataclass(frozen=True, kw_only=True)
class Dpsc(WeightedDonors):
    """Weights as a subclass releases them, noise on all later cells, their product."""

    def pay(self, loss: Loss, question: Treated) -> tuple[Loss, str]:
        if loss.exact:
            raise LossError("the published variants are their noise: they take no NoPrivacy")
        return loss, ""

    def currency(self, spent: Loss) -> Base:
        return PureDP(spent.exact_epsilon) if isinstance(spent, (PureDP, ApproxDP)) else spent

    def check(self, past: Reals, after: int, donors: int, penalty: float, loss: Base) -> None:
        first = published_weights_bound(donors, len(past), penalty)
        check_noise(past, after, donors, penalty, loss, first, donors * after)

    def weighted(self, weights: Reals, Y: Reals, allotment: Allotment, loss: PureDP) -> Reals:
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

    def pay(self, loss: Loss, question: Treated) -> tuple[Loss, str]:
        return pure_part(super().pay(loss, question)[0], "the published output perturbation")

    def claims(self, question: Treated, spent: Loss) -> tuple[str, ...]:
        return "ridge-weights", "panel-rows", "l2-ball"

    def weights(self, X: Reals, y: Reals, plan: Plan, spent: Loss, allotment: Allotment) -> Reals:
        half: Any = plan.base.part(HALF)
        return output_weights(X, y, self.ridge(plan.start), allotment, half)


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

    @property
    def unproven(self) -> str:
        return "the objective perturbation of the synthetic control"

    def pay(self, loss: Loss, question: Treated) -> tuple[Loss, str]:
        if isinstance(loss, ZCDP):
            raise LossError("objective perturbation is paid for in PureDP or ApproxDP")
        return super().pay(loss, question)

    def weights(self, X: Reals, y: Reals, plan: Plan, spent: Loss, allotment: Allotment) -> Reals:
        first: Any = of_weights(spent, plan.base) if isinstance(spent, ApproxDP) else plan.base.part(HALF)
        return objective_weights(X, y, self.ridge(plan.start), allotment, first)
