"""The Hilbert-Schmidt criterion by permutations, for x and y without z: a decision by noisy statistics.

A replaced row stands in one pair of the observed statistic, but in two of a permuted one: its x meets another row's y.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpcausal.dependence.hsic import MOST_RECORDS, root_hsic, root_hsic_sensitivity
from dpcausal.dependence.permuted_hsic import permuted_root_hsic_sensitivity
from dpcausal.errors import ParameterError
from dpcausal.independence.columns import Rows, width_of
from dpcausal.independence.crt import bounds_of, values_of
from dpcausal.independence.crt_global import largest_rank, settle_rank
from dpcausal.independence.route import Plan, Released, Route
from dpcausal.mechanisms.additive import laplace, laplace_scale
from dpcausal.mechanisms.noisy_rank import margin_sensitivity, rank_margin
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.call import pure_part
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Sensitivity

RESAMPLES = 199
WIDTH = 0.4
"""Default width of both Laplacian kernels: public, in units of half a column's range."""

_ROUNDING = Fraction(1, 2**50)
"""Sums of a statistic below 1 and a coin are rounded to floats."""


def sensitivities(n: int) -> tuple[Sensitivity, Sensitivity]:
    """Return how far the observed statistic and each permuted one move, rounding of sums included."""
    own, copies = root_hsic_sensitivity(n), permuted_root_hsic_sensitivity(n)
    return replace(own, bound=own.bound + _ROUNDING), replace(copies, bound=copies.bound + _ROUNDING)


def _release(rows: Rows, plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    loss: PureDP = plan.spent  # type: ignore[assignment]
    claim = margin_sensitivity(*sensitivities(plan.n), loss.epsilon)
    x, y = values_of(rows), rows.y @ np.arange(1.0, rows.y.shape[1] + 1)
    range_x, range_y = bounds_of(plan.schema, plan.x[0]), bounds_of(plan.schema, plan.y[0])
    widths = [(plan.width or WIDTH) * (high - low) / 2 for low, high in (range_x, range_y)]
    orders = [np.arange(rows.n), *(generator.permutation(rows.n) for _ in range(plan.resamples or 0))]
    found = np.array(
        [
            root_hsic(x, y[order], width_x=widths[0], width_y=widths[1], range_x=range_x, range_y=range_y)
            for order in orders
        ]
    )
    rank = largest_rank(plan.alpha, plan.resamples or 0)
    query = rank_margin(found, rank, laplace_scale(claim.bound, loss), claim, generator, "margin over permutations")
    margin = laplace(query, allotment, loss)
    return Released(margin, None, margin > 0)


def _settle(plan: Plan) -> Plan:
    if plan.given:
        raise ParameterError("method 'hsic' is for given=[]: permuting x is right only where nothing is conditioned on")
    if len(plan.x) != 1 or len(plan.y) != 1 or width_of(plan.schema, (*plan.x, *plan.y)) < 2:
        raise ParameterError("method 'hsic' takes one column x and one column y")
    if not 2 <= plan.n <= MOST_RECORDS["laplacian"]:
        raise ParameterError(f"method 'hsic' takes 2 to {MOST_RECORDS['laplacian']} rows")
    width = WIDTH if plan.width is None else plan.width
    if isinstance(width, bool) or not isinstance(width, (int, float)) or not 1e-3 <= width <= 1000:
        raise ParameterError("width must be between 0.001 and 1000, in units of half a column's range")
    return settle_rank(replace(plan, width=float(width)), RESAMPLES)


ROUTES = (
    Route(
        method="hsic",
        pay=lambda loss: pure_part(loss, "hsic"),
        proofs=lambda plan: ("root-hsic", "permuted-root-hsic", "noisy-rank", "laplace"),
        release=_release,
        settle=_settle,
        takes=frozenset({"resamples", "width"}),
        tests="kernel dependence among noisy permutations",
    ),
)
