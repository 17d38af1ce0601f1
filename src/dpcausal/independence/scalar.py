"""The generalised covariance measure of all rows at once: one noisy sum of residual products.

``gcm-scalar``: S1 + Lap(Δ/ε₁) and a clipped variance, from a fit of a heavier penalty, with ε₂.
``gcm-smooth``: the same with noise scaled to a smooth bound, and the scale released too.

Bounds, penalty and width are public.  Claims: ``regression/residual_products.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from dpcausal.asking import public
from dpcausal.errors import LossError, ParameterError
from dpcausal.independence.columns import Reals, Rows, values_of, width_of
from dpcausal.independence.features import WIDTH, check_size, chunks_of, unit_column
from dpcausal.independence.law import normal_laplace_pvalue
from dpcausal.independence.question import LEAST_EPSILON, Hypothesis, IndependenceTest, PureTest, Released
from dpcausal.mechanisms.additive import laplace, laplace_scale
from dpcausal.mechanisms.smooth_sensitivity import smooth_laplace, smoothness
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import ApproxDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.neighbours import Relation
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity
from dpcausal.regression.residual_products import (
    LARGEST_PENALTY,
    LEAST_PENALTY,
    LEAST_SMOOTH_PENALTY,
    Chunks,
    added,
    clipped_squares_sensitivity,
    fit_weights,
    fitted_residuals,
    product_sum_sensitivity,
    smooth_bound,
    smooth_sensitivity,
)

VARIANCE_PENALTY, THRESHOLD = 2.0, 1.0
"""λ of the fit for the variance, and τ of its clipping: at .5 it would be understated for values near their bounds."""

SUM_SHARE = Fraction(4, 5)
"""Share of ε for the sum; the rest is for the variance."""

SMOOTH_SHARES = Fraction(7, 10), Fraction(3, 20), Fraction(3, 20)
"""Shares of ε for the sum, the variance and the scale."""

LEAST_ROWS = 10
SCALE_QUANTILE = 4.0
"""The released scale is raised so that its noise understates it with probability 1/8."""


def default_penalty(rows: int, least: float = LEAST_PENALTY) -> float:
    """Return λ = 3/√n, a public rule: the bias of S1 under independence grows like nλ, its spread like √n."""
    return max(least, 3 / math.sqrt(rows))


def responses(rows: Rows, question: Hypothesis) -> Reals:
    """Return x and y in [−1, 1], shape (n, 2), 0 for a row that lacks a column."""
    x = unit_column(values_of(rows.x), question.schema, question.x[0])
    both = np.column_stack([x, unit_column(rows.y[:, 0], question.schema, question.y[0])])
    both[~rows.kept] = 0.0
    return both


def products(chunks: Chunks, U: Reals, penalty: float) -> tuple[Reals, float]:
    """Return the residual products, shape (n,), and the larger norm of the two weights."""
    weights = fit_weights(chunks, U, penalty)
    left = fitted_residuals(chunks, U, weights)
    return left[:, 0] * left[:, 1], weights.norm


def features(rows: Rows, question: Hypothesis, width: float | None, coins: PublicGenerator) -> Chunks:
    """Return the public features of the given columns."""
    return chunks_of(rows, question.schema, question.given, width or WIDTH, coins)


def settled_ridge(
    method: str, question: Hypothesis, penalty: float | None, width: float | None, default: float,
    least: float = LEAST_PENALTY,
) -> tuple[float, float]:  # fmt: skip
    """Check the columns, the penalty and the width of a method of all rows, or choose the last two."""
    if len(question.x) != 1 or len(question.y) != 1 or width_of(question.schema, (*question.x, *question.y)) != 2:
        raise ParameterError(f"method {method!r} takes one column x and one y, of numbers or of two levels")
    public.whole("the number of rows", question.n, LEAST_ROWS, 10**8)
    check_size(question.schema, question.given)
    chosen = default if penalty is None else penalty
    if not (public.is_number(chosen) and least <= chosen <= LARGEST_PENALTY):
        raise ParameterError(f"penalty must be between {least:g} and {LARGEST_PENALTY:g} for method {method!r}")
    in_halves = ", in units of half a column's range"
    return float(chosen), public.number("width", WIDTH if width is None else width, 0.005, 1000, in_halves)


def _variance(chunks: Chunks, U: Reals, allotment: Allotment, loss: PureDP) -> float:
    """Return the noisy sum of clipped squared products, at least 1e-3 of a row's largest."""
    R, _ = products(chunks, U, VARIANCE_PENALTY)
    total = added(np.minimum(R * R, THRESHOLD**2))
    claim = clipped_squares_sensitivity(len(U), VARIANCE_PENALTY, THRESHOLD)
    noisy = laplace(Query(total, claim, "clipped squares of products"), allotment, loss)
    return max(float(noisy), 1e-3 * THRESHOLD**2)


@dataclass(frozen=True, kw_only=True)
class ScalarGcm(PureTest):
    """A noisy sum of the products of residuals of all rows, and its noisy variance.

    Parameters
    ----------
    penalty : float, optional
        λ of the ridge; by default 3/√n.
    width : float, optional
        The kernel's, in units of half the public range of a column.
    """

    name: ClassVar[str] = "gcm-scalar"
    about: ClassVar[str] = "a noisy sum of products of residuals of all rows"
    leaves_out: ClassVar[bool] = True

    penalty: float | None = None
    width: float | None = None

    def claims(self, question: Hypothesis, spent: PureDP) -> tuple[str, ...]:
        return "residual-product-sum", "clipped-product-squares", "residual-rounding", "laplace"

    def settle(self, question: Hypothesis, spent: PureDP | NoPrivacy) -> Self:
        penalty, width = settled_ridge(self.name, question, self.penalty, self.width, default_penalty(question.n))
        return replace(self, penalty=penalty, width=width)

    def release(
        self, private: Rows, question: Hypothesis, spent: PureDP, coins: PublicGenerator, allotment: Allotment
    ) -> Released:
        chunks, U = features(private, question, self.width, coins), responses(private, question)
        first = spent.part(SUM_SHARE)
        claim = product_sum_sensitivity(question.n, self.penalty or 0)
        R, _ = products(chunks, U, self.penalty or 0)
        noisy = laplace(Query(added(R), claim, "sum of products"), allotment, first)
        deviation = math.sqrt(_variance(chunks, U, allotment, spent.part(1 - SUM_SHARE)))
        return Released(noisy / deviation, normal_laplace_pvalue(noisy, deviation, laplace_scale(claim.bound, first)))


@dataclass(frozen=True, kw_only=True)
class SmoothGcm(IndependenceTest[ApproxDP]):
    """The same with noise scaled to a smooth bound, and the scale released too; options as in ``ScalarGcm``."""

    name: ClassVar[str] = "gcm-smooth"
    about: ClassVar[str] = "the same with noise scaled to a smooth bound"

    penalty: float | None = None
    width: float | None = None

    def pay(self, loss: Loss, question: Hypothesis) -> tuple[ApproxDP | NoPrivacy, str]:
        if not (isinstance(loss, ApproxDP) and loss.exact_delta > 0):
            raise LossError("gcm-smooth is paid for in ApproxDP with delta above 0")
        public.check_least(loss, "a test", LEAST_EPSILON)
        return loss, ""

    def claims(self, question: Hypothesis, spent: ApproxDP) -> tuple[str, ...]:
        return "smooth-product-sum", "clipped-product-squares", "residual-rounding", "smooth-laplace", "laplace"

    def settle(self, question: Hypothesis, spent: ApproxDP | NoPrivacy) -> Self:
        if isinstance(spent, ApproxDP):
            smooth_sensitivity(smoothness(_shares(spent)[0]).beta)  # refuses a loss too small, before the spend
        default = default_penalty(question.n, LEAST_SMOOTH_PENALTY)
        penalty, width = settled_ridge(
            self.name, question, self.penalty, self.width, default, LEAST_SMOOTH_PENALTY
        )
        return replace(self, penalty=penalty, width=width)

    def release(
        self, private: Rows, question: Hypothesis, spent: ApproxDP, coins: PublicGenerator, allotment: Allotment
    ) -> Released:
        for_sum, for_variance, for_scale = _shares(spent)
        alpha, beta = smoothness(for_sum)
        claim = smooth_sensitivity(beta)
        chunks, U = features(private, question, self.width, coins), responses(private, question)
        R, norm = products(chunks, U, self.penalty or 0)
        bound = smooth_bound(norm, question.n, self.penalty or 0, beta)
        largest = float(product_sum_sensitivity(question.n, self.penalty or 0).bound) * 1.001
        query = Query(np.array([added(R), bound]), claim, "sum of products")
        noisy = smooth_laplace(query, allotment, for_sum, largest=largest)
        of_log = Sensitivity(beta, Norm.ABSOLUTE, Relation.REPLACE_ONE, "smooth-product-sum")
        log_scale = laplace(Query(math.log(bound), of_log, "logarithm of the smooth bound"), allotment, for_scale)
        raised = log_scale + beta / for_scale.epsilon * math.log(SCALE_QUANTILE)
        # Public limits: the bound is at least 2 and at most ``largest``.
        scale = math.exp(min(max(raised, math.log(2.0)), math.log(largest))) / alpha
        deviation = math.sqrt(_variance(chunks, U, allotment, for_variance))
        return Released(noisy / deviation, normal_laplace_pvalue(noisy, deviation, scale))


def _shares(spent: ApproxDP) -> tuple[ApproxDP, PureDP, PureDP]:
    """Return what the sum, the variance and the scale cost; all of δ goes with the sum."""
    of_sum, of_variance, of_scale = (spent.exact_epsilon * share for share in SMOOTH_SHARES)
    return ApproxDP(of_sum, spent.exact_delta), PureDP(of_variance), PureDP(of_scale)
