"""DPSC: differentially private synthetic control, as published, and its two algorithms with bounds that hold.

A ridge regression of the target on the donors, its weights released, then the donors by these weights.  Rho, Cummings &
Misra (2023), Algorithms 2 (output perturbation) and 3 (objective perturbation), release all n × m later cells in the
second step; ``OutputPerturbation`` and ``ObjectivePerturbation`` add noise to the m numbers that are wanted.
Errata: 4T0√(8 + n)/λ is never below the exact bound on the weights, so DPSC_out is private; DPSC_obj is not, with
consent only (``docs/appendix/errata-synthetic-control.md``).  Proofs: ``dpsc.md``.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.core import validate as public
from dpcausal.core.method import Run
from dpcausal.errors import FenceError, ParameterError
from dpcausal.mechanisms.additive import gaussian, l2_ball
from dpcausal.mechanisms.gate import event_of, release
from dpcausal.papers.mechanisms import objective_perturbation as objective
from dpcausal.papers.mechanisms.objective_perturbation import l1_ball, objective_perturbation, simplex
from dpcausal.papers.statistics.ridge_weights import ridge_weight_sensitivity, ridge_weights
from dpcausal.privacy import noise
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.checks import charged_loss
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, PureDP, largest_rho
from dpcausal.privacy.noise import LARGEST_BALL
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity, Unit
from dpcausal.synthetic_control.donor_rows import TargetOnlyForecast
from dpcausal.synthetic_control.method import SyntheticMethod
from dpcausal.synthetic_control.placebo import Base, deviation_of
from dpcausal.synthetic_control.question import Path, Plan, Treated, past_of

HALF = Fraction(1, 2)

LEAST_WEIGHT, LARGEST_WEIGHT = 1e-9, 1e6
"""Between these weights count in the second step: a bound must be above 0, and its noise must be drawn."""


PROJECTIONS: dict[str, Callable[[Reals], Reals]] = {
    "simplex": simplex, "l1": l1_ball, "none": lambda v: np.clip(v, -LARGEST_WEIGHT, LARGEST_WEIGHT),
}  # fmt: skip


def row_sensitivity(periods: int) -> Sensitivity:
    """Return 2√periods, in l2 over all cells.  *Guarantee*: claim ``panel-rows``, replace one donor."""
    return Sensitivity(2 * math.sqrt(periods), Norm.L2, Relation.REPLACE_ONE, "panel-rows", Unit.DONOR)


def weighted_sensitivity(weights: Reals, after: int) -> Sensitivity:
    """Return 2√m ‖f‖_∞, in l2.  *Guarantee*: claim ``weighted-donors``, replace one donor, f released before."""
    largest = max(float(np.abs(weights).max()), LEAST_WEIGHT)
    bound = 2 * math.sqrt(after) * largest * (1 + len(weights) ** 2 * 2.0**-52)
    return Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "weighted-donors", Unit.DONOR)


def _with_l2_noise(query: Query, allotment: CallBudget, loss: Base) -> Reals:
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
        query = Query(Y.T @ weights, weighted_sensitivity(weights, Y.shape[1]), "weighted donors")
        return _with_l2_noise(query, allotment, loss)


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
        ridge = self.ridge(plan.start) / 2
        query = Query(ridge_weights(X, y, ridge), ridge_weight_sensitivity(y, ridge, len(X)), "weights")
        return PROJECTIONS[self.projection](_with_l2_noise(query, run.budget, plan.base.part(HALF)))


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
        loss, projected = of_weights(run.loss, plan.base), PROJECTIONS[self.projection]
        if isinstance(loss, ApproxDP):
            query = Query(X, row_sensitivity(X.shape[1]), "weights")
            return projected(objective_perturbation(query, run.budget, loss, target=y, quadratic=self.penalty))
        return projected(ridge_weights(X, y, float(self.penalty or 2 * len(y)) / 2))


def of_weights(loss: Loss, base: Base) -> ApproxDP | NoPrivacy:
    """Return what the weights of one target cost of an (ε, δ) loss: half of its ε and all of its δ."""
    if not (isinstance(loss, ApproxDP) and isinstance(base, PureDP)):
        return NoPrivacy()
    share = base.exact_epsilon / loss.exact_epsilon
    return ApproxDP(base.exact_epsilon / 2, loss.exact_delta * share)


def published_weights_bound(donors: int, periods: int, penalty: float) -> float:
    """Return 4T0√(8 + n)/λ, the printed bound on the weights: never below the exact one."""
    return 4 * periods * math.sqrt(8 + donors) / penalty


def published_constants(donors: int, periods: int, penalty: float, loss: PureDP | ApproxDP) -> tuple[float, float]:
    """Return Δ and β as printed, with c = (1 + √(16n − 15))T0."""
    n, epsilon = donors, loss.epsilon
    objective.checked_term("the penalty", penalty)
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
    n, periods = objective.checked_shape(query, target)
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
    return objective.weights_of(released, n)


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
