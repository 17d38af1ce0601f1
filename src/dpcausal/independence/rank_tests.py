"""Kendall's tau and Spearman's rho within strata of z: the paper's baseline, with statistics that one row moves little.

Numbers among z are cut at public places: their declared cuts, or ``strata`` equal parts of their range.  As published,
``calibration="published"``, the strata are weighted otherwise; for tau no constant bounds what one row can move then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcausal.data.schema import Bounded, Levels
from dpcausal.dependence.conditional_kendall import (
    conditional_kendall,
    conditional_kendall_sensitivity,
    conditional_spearman,
    conditional_spearman_sensitivity,
)
from dpcausal.dependence.published_rank import (
    claimed_kendall_sensitivity,
    published_kendall,
    published_spearman,
    published_spearman_sensitivity,
)
from dpcausal.errors import ParameterError
from dpcausal.independence.blocks import whole
from dpcausal.independence.columns import Integers, Rows
from dpcausal.independence.crt import values_of
from dpcausal.independence.law import normal_laplace_pvalue
from dpcausal.independence.route import Plan, Released, Route, checked_calibration
from dpcausal.mechanisms.additive import laplace, laplace_scale
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.call import pure_part
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Query, Sensitivity

STRATA = 16
"""Default number of equal parts of a given number's range."""

COARSE = "within a stratum a given number still varies: with many rows that alone can make a true null look dependent"
THIN = "there may be as many strata as rows: what stands alone in its stratum says nothing"
ORDERED = "levels are ranked in the order in which they were declared"
MOST_STRATA = 10_000
LEAST_ROWS = 20


@dataclass(frozen=True)
class Statistic:
    """A coefficient within strata.

    Attributes
    ----------
    of : callable of (x, y, strata)
    sensitivity : callable of (rows, number of strata)
    claim : str
    deviation : callable of (rows, number of strata)
        Its standard deviation under independence without ties, at most: strata are as small as they may be.
    unproven : str
        What is published without a valid proof, in words.
    """

    of: Callable[[Any, Any, Any], float]
    sensitivity: Callable[[int, int], Sensitivity]
    claim: str
    deviation: Callable[[int, int], float]
    unproven: str = ""


CORRECTED, PUBLISHED = "corrected", "published"

STATISTICS = {
    ("kendall", CORRECTED): Statistic(
        conditional_kendall, lambda n, strata: conditional_kendall_sensitivity(n), "conditional-kendall",
        # Var K_s = m(m − 1)(2m + 5)/18, so n Var T = (4/9) Σ (m + 3/2 − 5/(2m))/n.
        lambda n, strata: 2 / 3 * (min(11 / 9, 1 + 1.5 * strata / n) / n) ** 0.5,
    ),
    ("spearman", CORRECTED): Statistic(
        conditional_spearman, lambda n, strata: conditional_spearman_sensitivity(n), "conditional-spearman",
        # Var rho_s = 1/(m − 1), so n Var = Σ m²/(m − 1)/n.
        lambda n, strata: (min(2, 1 + 2 * strata / n) / n) ** 0.5,
    ),
    ("kendall", PUBLISHED): Statistic(
        published_kendall, claimed_kendall_sensitivity, "", lambda n, strata: 1.0, unproven="conditional Kendall's tau",
    ),
    ("spearman", PUBLISHED): Statistic(
        published_spearman, lambda n, strata: published_spearman_sensitivity(n, strata, published=True),
        "published-conditional-spearman", lambda n, strata: 1.0,
    ),
}  # fmt: skip


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


def number_of_strata(plan: Plan) -> int:
    """Return how many strata the public cuts and levels of z make, empty ones too."""
    parts = 1
    for name in plan.given:
        declared = plan.schema[name]
        if isinstance(declared, Bounded):
            parts *= len(declared.cuts) + 1 if declared.cuts else plan.strata or 1
        else:
            parts *= len(declared)
    return parts


def _statistic(plan: Plan) -> Statistic:
    return STATISTICS[plan.method, plan.calibration or CORRECTED]


def _release(rows: Rows, plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    statistic = _statistic(plan)
    y = rows.y @ np.arange(1.0, rows.y.shape[1] + 1)
    strata = number_of_strata(plan)
    claim = statistic.sensitivity(plan.n, strata)
    value = statistic.of(values_of(rows), y, strata_of(rows, plan))
    noisy = laplace(Query(value, claim, f"{plan.method} within strata"), allotment, plan.spent)  # type: ignore[arg-type]
    deviation = statistic.deviation(plan.n, strata)
    scale = laplace_scale(claim.bound, plan.spent)  # type: ignore[arg-type]
    return Released(noisy / deviation, normal_laplace_pvalue(noisy, deviation, scale))


def _settle(plan: Plan) -> Plan:
    if len(plan.x) != 1 or len(plan.y) != 1:
        raise ParameterError(f"method {plan.method!r} takes one column x and one column y")
    whole("the number of rows", plan.n, LEAST_ROWS, 10**8)
    strata = STRATA if plan.strata is None else plan.strata
    whole("strata", strata, 1, MOST_STRATA)
    plan = replace(plan, strata=int(strata), calibration=checked_calibration(plan))
    statistic, parts = _statistic(plan), number_of_strata(plan)
    if parts > 10**15:
        raise ParameterError("given has too many strata: declare cuts, or give fewer strata")
    statistic.sensitivity(plan.n, parts)  # refuses more strata than it takes, before anything is spent
    caveats = plan.caveats
    if any(isinstance(plan.schema[name], Bounded) for name in plan.given):
        caveats += (COARSE,)
    declared = [plan.schema[name] for name in (*plan.x, *plan.y)]
    if any(isinstance(column, Levels) and len(column) > 2 for column in declared):
        caveats += (ORDERED,)
    if parts > plan.n / 2:
        caveats += (THIN,)
    if plan.calibration == PUBLISHED and not statistic.unproven:
        caveats += ("the statistic and constant as published: for comparison",)
    return replace(plan, unproven=statistic.unproven, caveats=caveats)


def _route(method: str) -> Route:
    return Route(
        method=method,
        pay=lambda loss: pure_part(loss, method),
        proofs=lambda plan: (STATISTICS[method, plan.calibration or CORRECTED].claim, "laplace"),
        release=_release,
        settle=_settle,
        takes=frozenset({"strata", "calibration"}),
        tests="a rank correlation within strata",
    )


ROUTES = (_route("kendall"), _route("spearman"))
