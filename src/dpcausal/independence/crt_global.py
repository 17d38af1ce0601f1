"""Randomisation tests of all rows at once: a decision by noisy statistics, and the paper's noisy rank.

T_j = Σ_i c_i^{(j)} r_i, c the residuals of x (j = 0) or of a copy of x from its public model, in units of half x's
public range and clipped to [−1, 1], r the residuals of y given z, or y itself.  One row moves each T_j by at most Δ.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpcausal.errors import ParameterError
from dpcausal.independence.blocks import whole
from dpcausal.independence.columns import Reals, Rows
from dpcausal.independence.crt import bounds_of, check_model, values_of
from dpcausal.independence.features import WIDTH, chunks_of, unit_column
from dpcausal.independence.route import Plan, Released, Route, checked_calibration
from dpcausal.independence.scalar import settle_global
from dpcausal.mechanisms.additive import laplace, laplace_scale
from dpcausal.mechanisms.noisy_rank import margin_sensitivity, rank_margin, rank_scores
from dpcausal.mechanisms.selection import noisy_max
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.call import pure_part
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.regression.residual_products import (
    CHUNK_ROWS,
    fit_weights,
    fitted_residuals,
    published_resample_bound,
    resample_sum_sensitivity,
)

RESAMPLES, MOST_RESAMPLES = 499, 9_999
PUBLISHED_RESAMPLES = 19
"""As in the paper: with more copies its noisy maximum loses power."""

PENALTY = 10.0
"""Default λ: the level does not depend on it, and a heavy one keeps Δ small."""

NO_LEVEL = "the p-value's level is not proved: it is that of the published method"

CELLS = 4_000_000
"""Numbers of copies in memory at a time."""


def statistics(rows: Rows, plan: Plan, generator: PublicGenerator) -> Reals:
    """Return T_0, …, T_m, shape (m + 1,).

    The coins of the copies are drawn without a look at the rows and the model is asked row by row, so a replaced row
    changes its own copies only.
    """
    name = plan.x[0]
    low, high = bounds_of(plan.schema, name)
    half = (high - low) / 2
    law = plan.model_x.at(rows.raw, row_by_row=True)
    left = unit_column(rows.y[:, 0], plan.schema, plan.y[0])[:, None]
    if plan.given:
        chunks = chunks_of(rows, plan.schema, plan.given, plan.width or WIDTH, generator)
        left = fitted_residuals(chunks, left, fit_weights(chunks, left, plan.penalty or 0))
    found = np.zeros(1 + (plan.resamples or 0))
    found[0] = _summed(np.clip((values_of(rows) - law.centre) / half, -1, 1)[None, :], left[:, 0])[0]
    at_once = max(1, CELLS // rows.n)
    for start in range(1, found.size, at_once):
        size = min(at_once, found.size - start)
        copies = law.copies(size, (low, high), generator)
        found[start : start + size] = _summed(np.clip((copies - law.centre) / half, -1, 1), left[:, 0])
    return found


def _summed(left: Reals, right: Reals) -> Reals:
    total = np.zeros(len(left))
    for start in range(0, len(right), CHUNK_ROWS):
        part = slice(start, start + CHUNK_ROWS)
        total += left[:, part] @ right[part]
    return total


def _penalty(plan: Plan) -> float | None:
    return plan.penalty if plan.given else None


def _release_decision(rows: Rows, plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    loss: PureDP = plan.spent  # type: ignore[assignment]
    each = resample_sum_sensitivity(plan.n, _penalty(plan))
    claim = margin_sensitivity(each, each, loss.epsilon)
    found = np.abs(statistics(rows, plan, generator))
    rank = largest_rank(plan.alpha, plan.resamples or 0)
    query = rank_margin(found, rank, laplace_scale(claim.bound, loss), claim, generator, "margin over the copies")
    margin = laplace(query, allotment, loss)
    return Released(margin, None, margin > 0)


def _release_published(rows: Rows, plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    loss: PureDP = plan.spent  # type: ignore[assignment]
    each = resample_sum_sensitivity(plan.n, _penalty(plan))
    bound = each.rounded_up
    if plan.calibration == "published":
        bound = max(bound, published_resample_bound(plan.penalty or 0))
    found = statistics(rows, plan, generator)
    place = noisy_max(rank_scores(found, bound, "scores of ranks", each), allotment, loss)
    return Released(float(place), (1 + place) / found.size)


def largest_rank(alpha: float, resamples: int) -> int:
    """Return k = ⌊α (m + 1)⌋: among the k largest of m + 1 with probability at most α.

    Examples
    --------
    >>> largest_rank(0.05, 19), largest_rank(0.05, 499)
    (1, 25)
    """
    return math.floor(alpha * (resamples + 1) + 1e-9)


def settle_rank(plan: Plan, default: int) -> Plan:
    """Check the number of copies, or choose it: enough for the level."""
    resamples = default if plan.resamples is None else plan.resamples
    whole("resamples", resamples, 1, MOST_RESAMPLES)
    if not 1 <= largest_rank(plan.alpha, resamples) <= resamples:
        raise ParameterError(f"at alpha = {plan.alpha:g} resamples must be at least 1/alpha - 1")
    return replace(plan, resamples=int(resamples))


def _settle(plan: Plan) -> Plan:
    model = check_model(plan, fitted=False)
    if getattr(model, "kind", "") == "sampler":
        raise ParameterError(
            f"method {plan.method!r} needs a model of single rows: a ModelX with mean and sd, or a table; a sampler's "
            "coins could carry one row's value to another's copy"
        )
    published = plan.method == "crt-published"
    plan = settle_rank(settle_global(plan, PENALTY), PUBLISHED_RESAMPLES if published else RESAMPLES)
    if not published:
        return plan
    return replace(plan, calibration=checked_calibration(plan), caveats=(NO_LEVEL,))


ROUTES = (
    Route(
        method="crt-decision",
        pay=lambda loss: pure_part(loss, "crt-decision"),
        proofs=lambda plan: ("resample-product-sum", "residual-rounding", "noisy-rank", "laplace"),
        release=_release_decision,
        settle=_settle,
        takes=frozenset({"penalty", "width", "resamples", "model_x"}),
        tests="a noisy statistic among noisy copies",
    ),
    Route(
        method="crt-published",
        pay=lambda loss: pure_part(loss, "crt-published"),
        proofs=lambda plan: ("resample-product-sum", "residual-rounding", "rank-scores", "noisy-max"),
        release=_release_published,
        settle=_settle,
        takes=frozenset({"penalty", "width", "resamples", "model_x", "calibration"}),
        tests="a noisy rank among copies",
    ),
)
