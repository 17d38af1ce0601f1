"""The generalised covariance measure in blocks: residuals of x and of y given z, and whether they go together.

The score of a block is the studentised permutation rank of its covariance of residuals: with rare or skewed values the
plain statistic of a block is skewed, and the sum over blocks then rejects true nulls.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from dpcausal.errors import ParameterError
from dpcausal.independence.blocks import PROOFS, block_terms, release_sum, settle_blocks
from dpcausal.independence.columns import Reals, Rows, width_of
from dpcausal.independence.law import LEAST_PVALUE
from dpcausal.independence.ranks import permutation_score, studentised
from dpcausal.independence.residuals import checked_regression, residuals
from dpcausal.independence.route import Plan, Released, Route
from dpcausal.mechanisms.gate import book_exact
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.call import pure_part
from dpcausal.privacy.noise import PublicGenerator

MOST_COLUMNS = 400
"""Most products of columns of x and y."""

CUTS = (0.25, 0.5, 0.75)
"""Quantiles, inside the block, at which a weight of the weighted measure changes its sign."""

EXACT_PERMUTATIONS = 999


def weights(rows: Rows) -> Reals:
    """Return the weights of the weighted measure, shape (n, k): 1, signs around quantiles, signs of levels.

    *Source*: Scheidegger, Hörrmann & Bühlmann (2022), section 2.2, fixed weight functions.
    """
    n = rows.n
    found = [np.ones(n)]
    for column in rows.given.numbers.T:
        found += [np.where(column > np.quantile(column, cut), 1.0, -1.0) for cut in CUTS]
    for codes in rows.given.levels.T:
        found += [np.where(codes == code, 1.0, -1.0) for code in np.unique(codes)]
    return np.stack(found, axis=1)


def _residuals(rows: Rows, plan: Plan, generator: PublicGenerator) -> tuple[Reals, Reals, float]:
    p = rows.x.shape[1]
    found = residuals(rows.given, np.hstack([rows.x, rows.y]), plan.regression, generator)
    left, right = found.residuals[:, :p], found.residuals[:, p:]
    if plan.method == "gcm-weighted":
        right = (right[:, :, None] * weights(rows)[:, None, :]).reshape(rows.n, -1)
    return left, right, found.spread


def score(rows: Rows, plan: Plan, generator: PublicGenerator) -> float:
    """Return one block's standard score."""
    left, right, spread = _residuals(rows, plan, generator)
    return permutation_score(left, right, plan.resamples or 0, spread, generator)


def one_sided(plan: Plan) -> bool:
    """Return whether a block's score is of a largest absolute covariance, so that only large sums count."""
    pairs = width_of(plan.schema, plan.x) * width_of(plan.schema, plan.y)
    return pairs > 1 or (plan.method == "gcm-weighted" and bool(plan.given))


def _release(rows: Rows, plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    terms = block_terms(score, rows, plan, generator)
    return release_sum(terms, plan, allotment, two_sided=not one_sided(plan))


def _exact(rows: Rows, plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    """Return the measure of all rows without privacy: normal for one pair of columns, by permutations for more."""
    book_exact("covariance of residuals", allotment)
    left, right, spread = _residuals(rows, plan, generator)
    observed = float(np.abs(studentised(left, right)).max()) / math.sqrt(spread)
    if left.shape[1] == right.shape[1] == 1:
        signed = float(studentised(left, right)[0, 0]) / math.sqrt(spread)
        return Released(signed, max(LEAST_PVALUE, 2 * NormalDist().cdf(-observed)))
    above = 0
    for _ in range(EXACT_PERMUTATIONS):
        above += float(np.abs(studentised(left[generator.permutation(rows.n)], right)).max()) >= observed
    return Released(observed, (1 + above) / (1 + EXACT_PERMUTATIONS))


def _settle(plan: Plan) -> Plan:
    if width_of(plan.schema, plan.x) * width_of(plan.schema, plan.y) > MOST_COLUMNS:
        raise ParameterError(f"x and y may have at most {MOST_COLUMNS} pairs of columns, levels counted one by one")
    plan = settle_blocks(plan, two_sided=not one_sided(plan))
    return replace(plan, regression=checked_regression(plan))


def _route(method: str, tests: str) -> Route:
    return Route(
        method=method,
        pay=lambda loss: pure_part(loss, method),
        proofs=lambda plan: PROOFS,
        release=_release,
        exact=_exact,
        settle=_settle,
        takes=frozenset({"blocks", "regression", "resamples", "workers"}),
        tests=tests,
    )


ROUTES = (
    _route("gcm", "the covariance of residuals in blocks"),
    _route("gcm-weighted", "weighted covariances of residuals in blocks"),
)
