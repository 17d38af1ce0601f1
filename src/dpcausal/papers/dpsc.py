"""DPSC: differentially private synthetic control, weights and later cells with noise, and their product.

Rho, Cummings & Misra (2023), Algorithms 2 (output perturbation) and 3 (objective perturbation).
Errata: 4T0√(8 + n)/λ is never below the exact bound on the weights, so DPSC_out is private; DPSC_obj is not, with
consent only (``docs/errata_synthetic_control.md``).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.errors import LossError
from dpcausal.mechanisms.additive import l2_ball
from dpcausal.mechanisms.objective_perturbation import published_objective_perturbation
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.call import pure_part
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity
from dpcausal.regression.ridge import ridge_weights
from dpcausal.synthetic_control.forecast import DonorFree
from dpcausal.synthetic_control.method import SyntheticMethod, checked
from dpcausal.synthetic_control.perturbation import check_noise, of_weights, row_sensitivity
from dpcausal.synthetic_control.plan import Base, Plan
from dpcausal.synthetic_control.question import Path, Treated, later, past_of
from dpcausal.synthetic_control.rows import Reals


def published_weights_bound(donors: int, periods: int, penalty: float) -> float:
    """Return 4T0√(8 + n)/λ, the printed bound on the weights: never below the exact one."""
    return 4 * periods * math.sqrt(8 + donors) / penalty


@dataclass(frozen=True, kw_only=True)
class Dpsc(SyntheticMethod):
    """Weights as a subclass releases them, noise on all later cells, their product.

    Parameters
    ----------
    penalty : float, optional
        λ of the ridge, for entries in [−1, 1]; T0 by default, as in the paper.
    """

    penalty: float | None = None

    def ridge(self, start: int) -> float:
        """Return λ."""
        return float(self.penalty or start)

    def settle(self, question: Treated, spent: Loss) -> Self:
        checked("penalty", self.penalty)
        return super().settle(question, spent)

    def currency(self, spent: Loss) -> Base:
        return PureDP(spent.exact_epsilon) if isinstance(spent, (PureDP, ApproxDP)) else NoPrivacy()

    def constants(self, question: Treated, target: Any, free: DonorFree) -> dict[str, float]:
        return {"penalty": self.ridge(question.panel.start(target))}

    def expected_noise(self, question: Treated, target: Any, free: DonorFree, base: Any) -> float | None:
        """Raise where noise could not be drawn; no forecast of it is made."""
        start, n = question.panel.start(target), question.panel.n
        after = question.periods - start
        first = published_weights_bound(n, start, self.ridge(start))
        half = base.part(Fraction(1, 2))
        check_noise(past_of(question.panel, target), after, n, self.ridge(start), half, first, n * after)
        return None

    @abstractmethod
    def weights(self, X: Reals, y: Reals, plan: Plan, spent: Loss, allotment: Allotment) -> Reals:
        """Release the weights of a target."""

    def paths(
        self, scaled: Reals, question: Treated, plans: list[Plan], spent: Loss, allotment: Allotment
    ) -> list[Path]:
        found = []
        for plan in plans:
            X, Y = later(scaled, plan.start)
            weights = self.weights(X, past_of(question.panel, plan.target), plan, spent, allotment)
            half: Any = plan.base.part(Fraction(1, 2))
            cells = l2_ball(Query(Y.ravel(), row_sensitivity(Y.shape[1]), "later cells"), allotment, half)
            found.append(Path(np.asarray(cells).reshape(Y.shape).T @ weights, None))
        return found


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
        if isinstance(loss, NoPrivacy):
            raise LossError("the published variants are their noise: they take no NoPrivacy")
        return pure_part(loss, "the published output perturbation")

    def claims(self, question: Treated, spent: Loss) -> tuple[str, ...]:
        return "ridge-weights", "panel-rows", "l2-ball"

    def weights(self, X: Reals, y: Reals, plan: Plan, spent: Loss, allotment: Allotment) -> Reals:
        n, penalty = len(X), self.ridge(plan.start)
        bound = published_weights_bound(n, plan.start, penalty)
        claim = Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "ridge-weights", Unit.DONOR)
        half: Any = plan.base.part(Fraction(1, 2))
        return np.asarray(l2_ball(Query(ridge_weights(X, y, penalty / 2), claim, "weights"), allotment, half))


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
        if isinstance(loss, NoPrivacy):
            raise LossError("the published variants are their noise: they take no NoPrivacy")
        if isinstance(loss, ZCDP):
            raise LossError("objective perturbation is paid for in PureDP or ApproxDP")
        return loss, ""

    def weights(self, X: Reals, y: Reals, plan: Plan, spent: Loss, allotment: Allotment) -> Reals:
        bound = 2 * math.sqrt(plan.start)
        claim = Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "objective-perturbation-published", Unit.DONOR)
        first: Any = plan.base.part(Fraction(1, 2))
        if isinstance(spent, ApproxDP):
            first = of_weights(spent, plan.base)
        return published_objective_perturbation(
            Query(X, claim, "weights"), allotment, first, target=y, penalty=self.ridge(plan.start)
        )
