"""Noisy weights: a ridge regression of the target on the donors, its weights released, then the weighted donors.

The first step by output perturbation (exact sensitivity) or objective perturbation; the second adds noise to the m
numbers that are wanted, not to the n × m numbers that they are made of.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dpcausal.core import validate as public
from dpcausal.core.method import Run
from dpcausal.errors import ParameterError
from dpcausal.mechanisms.additive import gaussian, l2_ball
from dpcausal.papers.mechanisms import objective_perturbation as objective
from dpcausal.papers.mechanisms.objective_perturbation import checked_term, l1_ball, objective_perturbation, simplex
from dpcausal.papers.statistics.ridge_weights import ridge_weight_sensitivity, ridge_weights
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.checks import charged_loss
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, PureDP, largest_rho
from dpcausal.privacy.noise import LARGEST_BALL
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity, Unit
from dpcausal.synthetic_control.donor_rows import Reals, TargetOnlyForecast
from dpcausal.synthetic_control.method import SyntheticMethod
from dpcausal.synthetic_control.placebo import Base, deviation_of
from dpcausal.synthetic_control.question import Path, Plan, Treated, past_of

HALF = Fraction(1, 2)

LEAST_WEIGHT = 1e-9
"""Weights smaller than this count as this large in the second step: a bound must be above 0."""


LARGEST_WEIGHT = 1e6
"""Weights that no projection bounds are cut here, so that noise can be drawn for whatever was released."""


def unchanged(v: Reals) -> Reals:
    """Return v, its entries cut at ±10⁶."""
    return np.clip(v, -LARGEST_WEIGHT, LARGEST_WEIGHT)


def ridge_path(X: Reals, Y: Reals, y: Reals, penalty: float) -> Reals:
    """Return the ridge synthetic control X_post'f of Rho, Cummings & Misra, Algorithm 1, μ = λ/2."""
    return Y.T @ ridge_weights(X, y, penalty / 2)


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
    X: Reals, y: Reals, penalty: float, projection: str, allotment: CallBudget, loss: PureDP | ZCDP | NoPrivacy
) -> Reals:
    ridge = penalty / 2
    query = Query(ridge_weights(X, y, ridge), ridge_weight_sensitivity(y, ridge, len(X)), "weights")
    noisy = l2_ball(query, allotment, loss) if isinstance(loss, PureDP) else gaussian(query, allotment, loss)
    return PROJECTIONS[projection](np.asarray(noisy))


def release_objective(
    X: Reals, y: Reals, quadratic: float | None, projection: str, allotment: CallBudget, loss: ApproxDP | NoPrivacy
) -> Reals:
    if isinstance(loss, ApproxDP):
        query = Query(X, row_sensitivity(X.shape[1]), "weights")
        return PROJECTIONS[projection](objective_perturbation(query, allotment, loss, target=y, quadratic=quadratic))
    term = checked_term("the quadratic term", 2.0 * len(y) if quadratic is None else quadratic)
    return PROJECTIONS[projection](ridge_weights(X, y, term / 2))


def release_path(weights: Reals, Y: Reals, allotment: CallBudget, loss: PureDP | ZCDP | NoPrivacy) -> Reals:
    query = Query(Y.T @ weights, weighted_sensitivity(weights, Y.shape[1]), "weighted donors")
    return np.asarray(l2_ball(query, allotment, loss) if isinstance(loss, PureDP) else gaussian(query, allotment, loss))


def check_noise(
    y: Reals, after: int, donors: int, penalty: float, loss: Base, first: float = 0.0, numbers: int = 0
) -> None:
    """Raise before anything is spent if noise on the weights, or on the path, could not be drawn.

    ``loss`` is that of each of the two steps, ``first`` a larger bound on the weights, ``numbers`` how many draws one
    step needs if more than there are donors or periods.
    """
    numbers = max(numbers, donors, after)
    if isinstance(loss, PureDP) and numbers > LARGEST_BALL:
        raise ParameterError(f"pure noise is drawn for at most {LARGEST_BALL} numbers, and here there are {numbers}")
    bounds = max(first, float(ridge_weight_sensitivity(y, penalty / 2, donors).bound)), 2 * math.sqrt(after)
    for bound in (*bounds, bounds[1] * LARGEST_WEIGHT, bounds[1] * LEAST_WEIGHT):
        deviation_of(bound, loss)


@dataclass(frozen=True, kw_only=True)
class WeightedDonors(SyntheticMethod):
    """A method that releases weights, then the weighted donors."""

    positive: ClassVar[tuple[str, ...]] = ("penalty",)

    penalty: float | None = None

    def ridge(self, start: int) -> float:
        """Return λ."""
        return float(self.penalty or start)

    def constants(self, question: Treated, target: Any, free: TargetOnlyForecast) -> dict[str, float]:
        return {"penalty": self.ridge(question.panel.start(target))}

    def expected_noise(self, question: Treated, target: Any, free: TargetOnlyForecast, base: Any) -> float | None:
        """Raise where noise could not be drawn; no forecast of it is made."""
        if isinstance(base, (PureDP, ZCDP)):
            start = question.panel.start(target)
            past, after = past_of(question.panel, target), question.periods - start
            self.check(past, after, question.panel.n, self.ridge(start), base.part(HALF))
        return None

    def check(self, past: Reals, after: int, donors: int, penalty: float, loss: Base) -> None:
        """Raise where the noise of a step could not be drawn."""
        check_noise(past, after, donors, penalty, loss)

    def path(self, scaled: Reals, plan: Plan, run: Run[Treated]) -> Path:
        X, Y = scaled[:, : plan.start], scaled[:, plan.start :]
        weights = self.weights(X, past_of(run.question.panel, plan.target), plan, run)
        return Path(self.weighted(weights, Y, run.budget, plan.base.part(HALF)), None)

    @abstractmethod
    def weights(self, X: Reals, y: Reals, plan: Plan, run: Run[Treated]) -> Reals:
        """Release the weights of a target."""

    def weighted(self, weights: Reals, Y: Reals, allotment: CallBudget, loss: Any) -> Reals:
        """Release what the donors' futures say, by weights that were released."""
        return release_path(weights, Y, allotment, loss)


@dataclass(frozen=True, kw_only=True)
class NoisyWeights(WeightedDonors):
    """Weights that are projected once they are noisy."""

    projection: Literal["simplex", "l1", "none"] = "simplex"

    def plan(self, question: Treated, loss: Loss) -> Self:
        public.check_choice("projection", self.projection, tuple(PROJECTIONS))
        return super().plan(question, loss)


@dataclass(frozen=True, kw_only=True)
class OutputPerturbation(NoisyWeights):
    """Ridge weights with noise of their exact sensitivity, projected.

    Parameters
    ----------
    penalty : float, optional
        λ of the ridge, for entries in [−1, 1]; T0 by default.
    projection : str
        Where noisy weights are brought to: the ``"simplex"``, the ``"l1"`` ball, or ``"none"``.
    """

    name: ClassVar[str] = "output-perturbation"
    about: ClassVar[str] = "noisy ridge weights"
    proofs: ClassVar[tuple[str, ...]] = ("ridge-weights", "weighted-donors")

    def charge(self, loss: Loss, question: Treated) -> tuple[Loss, str]:
        if isinstance(loss, ApproxDP) and not largest_rho(loss.exact_epsilon, loss.exact_delta):
            return charged_loss(loss, (PureDP,), "here the pure noise is the smaller, which")
        return loss, ""

    def weights(self, X: Reals, y: Reals, plan: Plan, run: Run[Treated]) -> Reals:
        return release_weights(X, y, self.ridge(plan.start), self.projection, run.budget, plan.base.part(HALF))


@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbation(NoisyWeights):
    """Weights by objective perturbation, projected: ``ApproxDP``.

    Parameters
    ----------
    penalty : float, optional
        The quadratic term M, by default from the budget.
    projection : str
        Where noisy weights are brought to: the ``"simplex"``, the ``"l1"`` ball, or ``"none"``.
    """

    name: ClassVar[str] = "objective-perturbation"
    about: ClassVar[str] = "noise inside the objective of the weights"
    losses: ClassVar[tuple[type[Loss], ...]] = (ApproxDP,)
    proofs: ClassVar[tuple[str, ...]] = ("objective-perturbation", "panel-rows", "weighted-donors")

    def currency(self, loss: Loss) -> Base:
        return PureDP(loss.exact_epsilon) if isinstance(loss, ApproxDP) else super().currency(loss)

    def constants(self, question: Treated, target: Any, free: TargetOnlyForecast) -> dict[str, float]:
        return {}

    def check(self, past: Reals, after: int, donors: int, penalty: float, loss: Base) -> None:
        super().check(past, after, donors, 2.0 * len(past), loss)

    def _plan(self, question: Treated, target: Any, loss: Loss, base: Base) -> Plan:
        plan = super()._plan(question, target, loss, base)
        return replace(plan, constants={"penalty": self._quadratic(question, target, loss, base)})

    def _quadratic(self, question: Treated, target: Any, loss: Loss, base: Base) -> float:
        start, n = question.panel.start(target), question.panel.n
        if isinstance(loss, ApproxDP):
            paid: Any = of_weights(loss, base)
            return objective.calibrate(n, start, paid, self.penalty).quadratic
        return float(self.penalty or 2 * start)

    def weights(self, X: Reals, y: Reals, plan: Plan, run: Run[Treated]) -> Reals:
        return release_objective(X, y, self.penalty, self.projection, run.budget, of_weights(run.loss, plan.base))


def of_weights(loss: Loss, base: Base) -> ApproxDP | NoPrivacy:
    """Return what the weights of one target cost of an (ε, δ) loss: half of its ε and all of its δ."""
    if not (isinstance(loss, ApproxDP) and isinstance(base, PureDP)):
        return NoPrivacy()
    share = base.exact_epsilon / loss.exact_epsilon
    return ApproxDP(base.exact_epsilon / 2, loss.exact_delta * share)
