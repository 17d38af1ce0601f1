"""Kendall's tau and Spearman's rho within strata of z: the paper's baseline, with statistics that one row moves little.

Numbers among z are cut at public places: their declared cuts, or ``strata`` equal parts of their range.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpcausal.data.schema import Bounded
from dpcausal.dependence.conditional_kendall import (
    conditional_kendall,
    conditional_kendall_sensitivity,
    conditional_spearman,
    conditional_spearman_sensitivity,
)
from dpcausal.errors import ParameterError
from dpcausal.independence.blocks import whole
from dpcausal.independence.columns import Integers, Rows
from dpcausal.independence.crt import values_of
from dpcausal.independence.law import normal_laplace_pvalue
from dpcausal.independence.route import Plan, Released, Route
from dpcausal.mechanisms.additive import laplace, laplace_scale
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.call import pure_part
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Query

STRATA = 16
"""Default number of equal parts of a given number's range."""

MOST_STRATA = 10_000
LEAST_ROWS = 20

STATISTICS: dict[str, Any] = {
    "kendall": (conditional_kendall, conditional_kendall_sensitivity, "conditional-kendall", 2 / 3),
    "spearman": (conditional_spearman, conditional_spearman_sensitivity, "conditional-spearman", 1.0),
}
"""Statistic, sensitivity, claim, and the standard deviation times √n under independence, without ties."""


def strata_of(rows: Rows, plan: Plan) -> Integers:
    """Return each row's stratum: a public function of its z."""
    code = np.zeros(rows.n, dtype=np.int64)
    for place, name in enumerate(plan.given):
        declared, values = plan.schema[name], rows.raw[:, place]
        if isinstance(declared, Bounded):
            cuts = declared.cuts or tuple(np.linspace(declared.lower, declared.upper, (plan.strata or 1) + 1)[1:-1])
            part, parts = np.searchsorted(np.asarray(cuts), values, side="right"), len(cuts) + 1
        else:
            part, parts = values.astype(np.int64), len(declared)
        code = code * parts + part
    return code


def _release(rows: Rows, plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    statistic, sensitivity, _, spread = STATISTICS[plan.method]
    y = rows.y @ np.arange(1.0, rows.y.shape[1] + 1)
    claim = sensitivity(plan.n)
    value = statistic(values_of(rows), y, strata_of(rows, plan))
    noisy = laplace(Query(value, claim, f"{plan.method} within strata"), allotment, plan.spent)  # type: ignore[arg-type]
    deviation = spread / np.sqrt(plan.n)
    scale = laplace_scale(claim.bound, plan.spent)  # type: ignore[arg-type]
    return Released(noisy / deviation, normal_laplace_pvalue(noisy, deviation, scale))


def _settle(plan: Plan) -> Plan:
    if len(plan.x) != 1 or len(plan.y) != 1:
        raise ParameterError(f"method {plan.method!r} takes one column x and one column y")
    whole("the number of rows", plan.n, LEAST_ROWS, 10**8)
    strata = STRATA if plan.strata is None else plan.strata
    whole("strata", strata, 1, MOST_STRATA)
    parts = 1
    for name in plan.given:
        declared = plan.schema[name]
        parts *= (len(declared.cuts or ()) + 1 if declared.cuts else strata) if isinstance(declared, Bounded) else len(
            declared
        )
        if parts > 10**15:
            raise ParameterError("given has too many strata: declare cuts, or give fewer strata")
    return replace(plan, strata=int(strata))


def _route(method: str) -> Route:
    return Route(
        method=method,
        pay=lambda loss: pure_part(loss, method),
        proofs=lambda plan: (STATISTICS[method][2], "laplace"),
        release=_release,
        settle=_settle,
        takes=frozenset({"strata"}),
        tests="a rank correlation within strata",
    )


ROUTES = (_route("kendall"), _route("spearman"))
