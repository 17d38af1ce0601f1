"""What a test will cost and how it will run: fixed from public arguments before anything is spent or read.

All that can fail for public reasons fails here, so that no budget goes for an answer that cannot come.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from dpcausal.data.schema import Bounded
from dpcausal.data.table import Table
from dpcausal.errors import LossError, ParameterError, SchemaError
from dpcausal.independence import crt, crt_global, gcm, hsic, rank_tests, scalar, tests_of_blocks
from dpcausal.independence.route import OPTIONS, Plan, Route
from dpcausal.privacy.call import check_consent, check_large
from dpcausal.privacy.loss import ApproxDP, Loss, NoPrivacy, PureDP

PAGES = gcm, crt, crt_global, scalar, rank_tests, tests_of_blocks, hsic
ROUTES: dict[str, Route] = {route.method: route for page in PAGES for route in page.ROUTES}
"""Every method by its name."""

LARGEST_BOUND, LEAST_WIDTH = 1e100, 1e-100
"""Bounds beyond these have squares or products that no float holds."""

LEAST_EPSILON, LEAST_DELTA = Fraction(1, 10**6), Fraction(1, 10**18)
"""With less, no answer would be left in the noise."""

MOST_GIVEN = 200


def checked(
    table: Table,
    x: str | Iterable[str],
    y: str | Iterable[str],
    given: Iterable[str],
    loss: Loss,
    *,
    method: str,
    alpha: float,
    accept_large_epsilon: bool,
    accept_unproven: bool = False,
    **options: Any,
) -> Plan:
    """Check every public argument and return the plan; nothing is read or spent.  Arguments as in ``ci_test``."""
    if not isinstance(table, Table):
        raise ParameterError("table must be a dpcausal Table")
    if not (isinstance(method, str) and method in ROUTES):
        raise ParameterError(f"method must be one of {', '.join(ROUTES)}")
    route = ROUTES[method]
    names = _names("x", x), _names("y", y), _names("given", given, some=False)
    everything = [name for part in names for name in part]
    if len(set(everything)) < len(everything):
        raise ParameterError("x, y and given must name different columns, each once")
    if len(names[2]) > MOST_GIVEN:
        raise ParameterError(f"given may name at most {MOST_GIVEN} columns")
    for name in everything:
        _check_column(table, name)
    is_number = isinstance(alpha, (int, float)) and not isinstance(alpha, bool)
    if not (is_number and 0 < alpha < 1):
        raise ParameterError("alpha must be a number above 0 and below 1")
    check_large(loss, accept_large_epsilon)
    for option in OPTIONS:
        if options.get(option) is not None and option not in route.takes:
            takers = " or ".join(other.method for other in ROUTES.values() if option in other.takes)
            raise ParameterError(f"{option} goes with method {takers}, not with {method}")
    if isinstance(loss, NoPrivacy) and route.exact is None:
        with_exact = ", ".join(other.method for other in ROUTES.values() if other.exact is not None)
        raise ParameterError(f"method {method} has no form without privacy: {with_exact} have one")
    spent, note = route.pay(loss)
    _check_least(spent)
    plan = route.settle(
        Plan(
            x=names[0],
            y=names[1],
            given=names[2],
            schema=table.schema,
            n=table.n,
            alpha=float(alpha),
            route=route,
            spent=spent,
            note=note,
            **options,
        )
    )
    if plan.unproven:
        check_consent(accept_unproven, plan.unproven)
    return plan


def _names(role: str, names: object, some: bool = True) -> tuple[str, ...]:
    listed = (names,) if isinstance(names, str) else names
    if not isinstance(listed, (list, tuple)) or not all(isinstance(name, str) for name in listed):
        raise ParameterError(f"{role} must be a column's name or a list of names")
    if some and not listed:
        raise ParameterError(f"{role} must name at least one column")
    return tuple(listed)


def _check_column(table: Table, name: str) -> None:
    declared = table.schema.column(name)
    if isinstance(declared, Bounded) and (
        max(-declared.lower, declared.upper) > LARGEST_BOUND or declared.width < LEAST_WIDTH
    ):
        raise SchemaError(
            f"column {name!r}: a test needs bounds within ±{LARGEST_BOUND:g} and at least {LEAST_WIDTH:g} apart; "
            "declare it in another unit"
        )


def _check_least(spent: Loss) -> None:
    if isinstance(spent, (PureDP, ApproxDP)) and spent.exact_epsilon < LEAST_EPSILON:
        raise LossError("a test needs epsilon of at least 1e-6: no answer would be left in the noise")
    if isinstance(spent, ApproxDP) and spent.exact_delta < LEAST_DELTA:
        raise LossError("a test needs delta of at least 1e-18")
