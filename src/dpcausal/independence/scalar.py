"""The generalised covariance measure of all rows at once: one noisy sum of residual products.

``gcm-scalar``: S1 + Lap(Δ/ε₁) and a clipped variance, from a fit of a heavier penalty, with ε₂.
``gcm-smooth``: the same with noise scaled to a smooth bound, and the scale released too.
``gcm-published``: noise on every product, as in the paper.

Bounds, penalty and width are public.  Claims: ``regression/residual_products.md``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpcausal.errors import LossError, ParameterError
from dpcausal.independence.blocks import whole
from dpcausal.independence.columns import Reals, Rows, width_of
from dpcausal.independence.crt import values_of
from dpcausal.independence.features import WIDTH, check_size, chunks_of, unit_column
from dpcausal.independence.law import normal_laplace_pvalue
from dpcausal.independence.route import Plan, Released, Route, checked_calibration
from dpcausal.mechanisms.additive import laplace, laplace_scale
from dpcausal.mechanisms.smooth_sensitivity import smooth_laplace, smoothness
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.call import pure_part
from dpcausal.privacy.loss import ApproxDP, Loss, PureDP
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
    products_sensitivity,
    published_products_bound,
    smooth_bound,
    smooth_sensitivity,
)

VARIANCE_PENALTY, THRESHOLD = 2.0, 1.0
"""λ of the fit for the variance, and τ of its clipping: at .5 it would be understated for values near their bounds."""

SUM_SHARE = Fraction(4, 5)
"""Share of ε for the sum; the rest is for the variance."""

SMOOTH_SHARES = Fraction(7, 10), Fraction(3, 20), Fraction(3, 20)
"""Shares of ε for the sum, the variance and the scale."""

PUBLISHED_PENALTY = 10.0
LEAST_ROWS = 10
SCALE_QUANTILE = 4.0
"""The released scale is raised so that its noise understates it with probability 1/8."""


def default_penalty(rows: int, least: float = LEAST_PENALTY) -> float:
    """Return λ = 3/√n, a public rule: the bias of S1 under independence grows like nλ, its spread like √n."""
    return max(least, 3 / math.sqrt(rows))


def responses(rows: Rows, plan: Plan) -> Reals:
    """Return x and y in [−1, 1], shape (n, 2)."""
    x = unit_column(values_of(rows), plan.schema, plan.x[0])
    return np.column_stack([x, unit_column(rows.y[:, 0], plan.schema, plan.y[0])])


def products(chunks: Chunks, U: Reals, penalty: float) -> tuple[Reals, float]:
    """Return the residual products, shape (n,), and the larger norm of the two weights."""
    weights = fit_weights(chunks, U, penalty)
    left = fitted_residuals(chunks, U, weights)
    return left[:, 0] * left[:, 1], weights.norm


def _chunks(rows: Rows, plan: Plan, generator: PublicGenerator) -> Chunks:
    return chunks_of(rows, plan.schema, plan.given, plan.width or WIDTH, generator)


def _variance(chunks: Chunks, U: Reals, plan: Plan, allotment: Allotment, loss: PureDP) -> float:
    """Return the noisy sum of clipped squared products, at least 1e-3 of a row's largest."""
    R, _ = products(chunks, U, VARIANCE_PENALTY)
    total = added(np.minimum(R * R, THRESHOLD**2))
    claim = clipped_squares_sensitivity(plan.n, VARIANCE_PENALTY, THRESHOLD)
    noisy = laplace(Query(total, claim, "clipped squares of products"), allotment, loss)
    return max(float(noisy), 1e-3 * THRESHOLD**2)


def _release_scalar(rows: Rows, plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    loss: PureDP = plan.spent  # type: ignore[assignment]
    chunks, U = _chunks(rows, plan, generator), responses(rows, plan)
    first = PureDP(loss.exact_epsilon * SUM_SHARE)
    claim = product_sum_sensitivity(plan.n, plan.penalty or 0)
    R, _ = products(chunks, U, plan.penalty or 0)
    noisy = laplace(Query(added(R), claim, "sum of products"), allotment, first)
    variance = _variance(chunks, U, plan, allotment, PureDP(loss.exact_epsilon - first.exact_epsilon))
    deviation = math.sqrt(variance)
    return Released(noisy / deviation, normal_laplace_pvalue(noisy, deviation, laplace_scale(claim.bound, first)))


def _release_smooth(rows: Rows, plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    loss: ApproxDP = plan.spent  # type: ignore[assignment]
    shares = [loss.exact_epsilon * share for share in SMOOTH_SHARES]
    for_sum = ApproxDP(shares[0], loss.exact_delta)
    alpha, beta = smoothness(for_sum)
    claim = smooth_sensitivity(beta)
    chunks, U = _chunks(rows, plan, generator), responses(rows, plan)
    R, norm = products(chunks, U, plan.penalty or 0)
    bound = smooth_bound(norm, plan.n, plan.penalty or 0, beta)
    largest = float(product_sum_sensitivity(plan.n, plan.penalty or 0).bound) * 1.001
    query = Query(np.array([added(R), bound]), claim, "sum of products")
    noisy = smooth_laplace(query, allotment, for_sum, largest=largest)
    of_log = Sensitivity(beta, Norm.ABSOLUTE, Relation.REPLACE_ONE, "smooth-product-sum")
    third = PureDP(shares[2])
    log_scale = laplace(Query(math.log(bound), of_log, "logarithm of the smooth bound"), allotment, third)
    raised = log_scale + beta / third.epsilon * math.log(SCALE_QUANTILE)
    # Public limits: the bound is at least 2 and at most ``largest``.
    scale = math.exp(min(max(raised, math.log(2.0)), math.log(largest))) / alpha
    deviation = math.sqrt(_variance(chunks, U, plan, allotment, PureDP(shares[1])))
    return Released(noisy / deviation, normal_laplace_pvalue(noisy, deviation, scale))


def _release_published(rows: Rows, plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    from scipy.special import ndtr

    R, _ = products(_chunks(rows, plan, generator), responses(rows, plan), plan.penalty or 0)
    claim = products_sensitivity(plan.n, plan.penalty or 0)
    if plan.calibration == "published":
        claim = replace(claim, bound=max(float(claim.bound), published_products_bound(plan.penalty or 0)))
    noisy = laplace(Query(R, claim, "products of residuals"), allotment, plan.spent)  # type: ignore[arg-type]
    spread = float(noisy.std())
    statistic = math.sqrt(plan.n) * float(noisy.mean()) / spread if spread > 0 else 0.0
    return Released(statistic, float(2 * ndtr(-abs(statistic))))


def settle_global(plan: Plan, penalty: float, least: float = LEAST_PENALTY) -> Plan:
    """Check the columns, the penalty and the width of a method of all rows, or choose the last two."""
    if len(plan.x) != 1 or len(plan.y) != 1 or width_of(plan.schema, (*plan.x, *plan.y)) != 2:
        raise ParameterError(f"method {plan.method!r} takes one column x and one y, of numbers or of two levels")
    whole("the number of rows", plan.n, LEAST_ROWS, 10**8)
    check_size(plan.schema, plan.given)
    chosen = penalty if plan.penalty is None else plan.penalty
    is_number = isinstance(chosen, (int, float)) and not isinstance(chosen, bool)
    if not (is_number and least <= chosen <= LARGEST_PENALTY):
        raise ParameterError(f"penalty must be between {least:g} and {LARGEST_PENALTY:g} for method {plan.method!r}")
    width = WIDTH if plan.width is None else plan.width
    if isinstance(width, bool) or not isinstance(width, (int, float)) or not 0.005 <= width <= 1000:
        raise ParameterError("width must be between 0.005 and 1000, in units of half a column's range")
    return replace(plan, penalty=float(chosen), width=float(width))


def _settle_published(plan: Plan) -> Plan:
    return replace(settle_global(plan, PUBLISHED_PENALTY), calibration=checked_calibration(plan))


def _settle_smooth(plan: Plan) -> Plan:
    for_sum = ApproxDP(plan.spent.exact_epsilon * SMOOTH_SHARES[0], plan.spent.exact_delta)  # type: ignore[union-attr]
    smooth_sensitivity(smoothness(for_sum).beta)  # refuses a loss that is too small, before anything is spent
    return settle_global(plan, default_penalty(plan.n, LEAST_SMOOTH_PENALTY), LEAST_SMOOTH_PENALTY)


def _pay_with_delta(loss: Loss) -> tuple[Loss, str]:
    if not (isinstance(loss, ApproxDP) and loss.exact_delta > 0):
        raise LossError("gcm-smooth is paid for in ApproxDP with delta above 0")
    return loss, ""


ROUTES = (
    Route(
        method="gcm-scalar",
        pay=lambda loss: pure_part(loss, "gcm-scalar"),
        proofs=lambda plan: ("residual-product-sum", "clipped-product-squares", "residual-rounding", "laplace"),
        release=_release_scalar,
        settle=lambda plan: settle_global(plan, default_penalty(plan.n)),
        takes=frozenset({"penalty", "width"}),
        tests="a noisy sum of products of residuals of all rows",
    ),
    Route(
        method="gcm-smooth",
        pay=_pay_with_delta,
        proofs=lambda plan: (
            "smooth-product-sum", "clipped-product-squares", "residual-rounding", "smooth-laplace", "laplace",
        ),
        release=_release_smooth,
        settle=_settle_smooth,
        takes=frozenset({"penalty", "width"}),
        tests="the same with noise scaled to a smooth bound",
    ),
    Route(
        method="gcm-published",
        pay=lambda loss: pure_part(loss, "gcm-published"),
        proofs=lambda plan: ("residual-products", "residual-rounding", "laplace"),
        release=_release_published,
        settle=_settle_published,
        takes=frozenset({"penalty", "width", "calibration"}),
        tests="products of residuals with noise on each",
    ),
)  # fmt: skip
"""Of a number of rows that is not learnt from, no regression runs without privacy here: ``gcm`` has that form."""
