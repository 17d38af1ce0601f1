"""What a direction will cost and how it will run: fixed from public arguments before anything is spent or read.

All that can fail for public reasons fails here, so that no budget goes for an answer that cannot come.
"""

from __future__ import annotations

from fractions import Fraction

from dpcausal.data.schema import Bounded
from dpcausal.data.table import Table
from dpcausal.direction import blocks as by_blocks
from dpcausal.direction import exact, holdout, igci, iqr_release, joint, published, training
from dpcausal.direction.anm import LEAST_ROWS, Interval
from dpcausal.direction.route import Plan, Route
from dpcausal.direction.scores import NAMES
from dpcausal.errors import LossError, ParameterError, SchemaError
from dpcausal.privacy.call import check_consent, check_large
from dpcausal.privacy.loss import ApproxDP, Loss, NoPrivacy, PureDP

ROUTES: tuple[Route, ...] = (
    *by_blocks.ROUTES, *joint.ROUTES, *holdout.ROUTES, *iqr_release.ROUTES, *published.ROUTES, *training.ROUTES
)  # fmt: skip
"""Every private route; the first that fits is what ``method="auto"`` takes."""

PROTECT = ("everyone", "test", "training")
METHODS = ("auto", *dict.fromkeys(route.method for route in ROUTES))
OPTIONS = ("release_scores", "blocks", "training_share", "penalty", "width")

LARGEST_BOUND, LEAST_WIDTH = 1e100, 1e-100
"""Bounds beyond these have squares or products that no float holds."""

LEAST_EPSILON, LEAST_DELTA = Fraction(1, 10**9), Fraction(1, 10**18)
"""The ledger's units; noise for less would pass the largest scale that is drawn."""


def checked(
    table: Table, first: str, second: str, loss: Loss, *, score: str = "hsic", protect: str = "everyone",
    method: str = "auto", calibration: str = "corrected", release_scores: bool = False, blocks: int | None = None,
    training_share: float | None = None, penalty: float | tuple[float, ...] | None = None,
    width: float | tuple[float, ...] | None = None, min_probability: float | None = None,
    accept_unproven: bool = False, accept_large_epsilon: bool = False,
) -> Plan:  # fmt: skip
    """Check every public argument and return the plan; nothing is read or spent.  Arguments as in ``direction``."""
    if not isinstance(table, Table):
        raise ParameterError("table must be a dpcausal Table")
    range_first, range_second = _checked_column(table, first), _checked_column(table, second)
    if first == second:
        raise ParameterError("first and second must be two different columns")
    _one_of("score", score, NAMES)
    _one_of("protect", protect, PROTECT)
    _one_of("method", method, METHODS)
    _one_of("calibration", calibration, ("corrected", "published"))
    if not isinstance(release_scores, bool):
        raise ParameterError("release_scores must be True or False")
    _check_probability(min_probability)
    if table.n < LEAST_ROWS:
        raise ParameterError(f"a direction needs at least {LEAST_ROWS} rows, the table has {table.n}")
    check_large(loss, accept_large_epsilon)
    is_exact = isinstance(loss, NoPrivacy)
    if is_exact:
        route = next(route for route in exact.ROUTES if score in route.scores)
    else:
        route = _route(score, protect, method, calibration, release_scores)
    given = {"blocks": blocks, "training_share": training_share, "penalty": penalty, "width": width}
    for name, value in given.items():
        if value is not None and name not in route.takes:
            raise ParameterError(f"{name} goes with {_takers(name)}, not with {_described(route)}")
    if route.unproven:
        check_consent(accept_unproven, route.unproven)
    spent, note = route.pay(loss)
    _check_least(spent)
    plan = route.settle(
        Plan(
            first=first,
            second=second,
            range_first=range_first,
            range_second=range_second,
            n=table.n,
            score=score,
            protect=protect,
            calibration=calibration,
            route=route,
            spent=spent,
            note=note,
            release_scores=route.gives_scores == "always" or release_scores,
            min_probability=min_probability,
            **given,  # type: ignore[arg-type]
        )
    )
    if min_probability is not None and not (is_exact or route.gives_probability(plan)):
        # Below any threshold for want of a number: the budget would go for an answer that cannot come.
        raise ParameterError(f"min_probability needs a probability: both {score} scores are released without one")
    return plan


def _route(score: str, protect: str, method: str, calibration: str, release_scores: bool) -> Route:
    """Return the first route that fits, or say which argument leaves none and where it goes."""
    fitting = list(ROUTES)
    asked: list[str] = []
    wishes = (
        (f"method={method!r}", lambda route: method in ("auto", route.method)),
        (f"protect={protect!r}", lambda route: route.protect == protect),
        (f"calibration={calibration!r}", lambda route: route.calibration == calibration),
        (f"release_scores={release_scores}", lambda route: not release_scores or route.gives_scores != "never"),
        (f"score={score!r}", lambda route: score in route.scores),
    )
    for wish, fits in wishes:
        left = [route for route in fitting if fits(route)]
        if not left:
            raise ParameterError(_misfit(wish, asked, fitting, [route for route in ROUTES if fits(route)]))
        asked.append(wish)
        fitting = left
    return fitting[0]


def _misfit(wish: str, asked: list[str], fitting: list[Route], places: list[Route]) -> str:
    """Say in the caller's words what does not go together, and where the last of it goes."""
    defaults = ("method='auto'", "calibration='corrected'", "release_scores=False")
    told = " and ".join(text for text in asked if text not in defaults)
    if wish.startswith("protect") and told:
        return f"{told} goes with {_protects(fitting)}, not with {wish}: leave method out for the default there"
    name = wish.partition("=")[2].strip("'")
    why = ", for want of a bounded sensitivity" if name == "variance" or name in igci.SCORES else ""
    return f"{wish} does not go with {told}{why}: it goes with {_protects(places)}"


def _protects(routes: list[Route]) -> str:
    return " or ".join(dict.fromkeys(f"protect='{route.protect}'" for route in routes)) or "NoPrivacy"


def _described(route: Route) -> str:
    if route.method == "exact":
        return "NoPrivacy"
    printed = ", calibration='published'" if route.calibration == "published" else ""
    return f"protect='{route.protect}' (method='{route.method}'{printed})"


def _listed(words: object) -> str:
    return " or ".join(dict.fromkeys(words)) or "NoPrivacy"  # type: ignore[call-overload]


def _takers(option: str) -> str:
    return _listed(_described(route) for route in (*ROUTES, *exact.ROUTES) if option in route.takes)


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if not (isinstance(value, str) and value in allowed):
        raise ParameterError(f"{name} must be one of {', '.join(allowed)}")


def _check_probability(least: object) -> None:
    if least is not None and not (isinstance(least, float) and 0.5 < least < 1):
        raise ParameterError("min_probability must be a float above 0.5 and below 1")


def _checked_column(table: Table, name: str) -> Interval:
    """Return a column's public range if a direction can be asked about it."""
    declared = table.schema.column(name)
    if not isinstance(declared, Bounded):
        raise SchemaError(
            f"column {name!r} has levels: a direction needs two columns declared Bounded; columns of few values do not "
            "fit the additive noise model, so do not declare such a column anew"
        )
    if max(-declared.lower, declared.upper) > LARGEST_BOUND or declared.width < LEAST_WIDTH:
        raise SchemaError(
            f"column {name!r}: a direction needs bounds within ±{LARGEST_BOUND:g} and at least {LEAST_WIDTH:g} apart; "
            "declare it in another unit"
        )
    return declared.lower, declared.upper


def _check_least(spent: Loss) -> None:
    if isinstance(spent, (PureDP, ApproxDP)) and spent.exact_epsilon < LEAST_EPSILON:
        raise LossError("a direction needs epsilon of at least 1e-9: no answer would be left in the noise")
    if isinstance(spent, ApproxDP) and spent.exact_delta < LEAST_DELTA:
        raise LossError("a direction needs delta of at least 1e-18")
